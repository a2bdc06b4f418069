"""Servers in this very process, as specs that any manager takes.

What is scripted, replayed or made of the server kit is served over a pair of memory transports:
no process, no pipe, and each life begins at once.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, assert_never

from mcpclient.ground.exits import Exit
from mcpclient.manager.spec import ServerSpec
from mcpclient.protocol.envelope import Outgoing
from mcpclient.testing import acts
from mcpclient.testing.silent import Silent
from mcpclient.transports.memory import MemoryTransport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpclient.loops.base import Loop, Stop
    from mcpclient.testing.acts import Act, Part
    from mcpclient.transports.base import Transport

# As much as is kept of a process's stderr by default.
_STDERR = 64 * 1024


class InMemory(ServerSpec, frozen=True):
    """The spec of a server in this process. Made by :func:`in_memory`."""

    source: Any = None

    def dial(
        self, loop: Loop, connect: Callable[[ServerSpec], Awaitable[Transport]]
    ) -> Awaitable[Transport] | None:
        """See :class:`~mcpclient.manager.spec.ServerSpec`."""
        return self._transport(loop)

    async def _transport(self, loop: Loop) -> Transport:
        near, far = ends(loop, self.limits.frame)
        if callable(getattr(self.source, "part", None)):
            Stage(loop, far, near, self.source.part())
        else:
            from mcpclient.testing.kit import serve  # only who uses the kit needs it

            serve(self.source, loop, far)
        return near


def in_memory(source: Any, **options: Any) -> ServerSpec:
    """Return the spec of a server in this process, for any manager.

    Args:
        source: A :class:`Script`, a :class:`Replay`, or a server of :mod:`mcpclient.serverkit`.
        options: As for :class:`ServerSpec`, without ``command``.

    Raises:
        TypeError: The source is none of these.
    """
    if not is_source(source):
        raise TypeError(f"only a Script, a Replay or a kit server can be served, not {source!r}")
    return InMemory(f"<{type(source).__name__} in memory>", source=source, **options)


def is_source(source: Any) -> bool:
    """Return whether something can be served in memory."""
    ours = ("part",), ("open", "handle")
    return any(all(callable(getattr(source, name, None)) for name in one) for one in ours)


class NearEnd(MemoryTransport):
    """The client's end, which also keeps what the server writes to stderr."""

    def __init__(self, loop: Loop, limit: int | None) -> None:
        super().__init__(loop, limit)
        self._stderr = bytearray()

    def complain(self, data: bytes) -> None:
        """Let some bytes arrive as if they were written to stderr."""
        self._stderr += data
        del self._stderr[:-_STDERR]

    def stderr_tail(self) -> str:
        """See :class:`~mcpclient.transports.base.Transport`."""
        return self._stderr.decode("utf-8", "replace")


def ends(loop: Loop, limit: int | None) -> tuple[NearEnd, MemoryTransport]:
    """Return the client's end and the server's; ``limit`` bounds a frame to the client."""
    near, far = NearEnd(loop, limit), MemoryTransport(loop, None)
    near.peer, far.peer = far, near
    return near, far


class Stage(Silent):
    """Performs one life at the far end of a pair."""

    def __init__(self, loop: Loop, far: MemoryTransport, near: NearEnd, part: Part) -> None:
        """Begin the life."""
        self._loop = loop
        self._far = far
        self._near = near
        self._part = part
        self._timer: Stop | None = None
        self._deaf = False
        self._over = False
        far.start(self)
        # In the next turn: whoever connects is not listening yet.
        loop.soon(self._begin)

    def _begin(self) -> None:
        self._perform(self._part.begin(time.monotonic()))

    def frame(self, line: bytes) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        if not self._deaf and not self._over:
            self._perform(self._part.receive(line, time.monotonic()))

    def gone(self, exit: Exit, reason: str) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        self._over = True
        if self._timer is not None:
            self._timer.cancel()

    def _perform(self, what: list[Act]) -> None:
        for act in what:
            if self._over:
                return
            match act:
                case acts.Write(data=data):
                    self._far.send(Outgoing(data))
                case acts.Complained(data=data):
                    self._near.complain(data)
                case acts.End(code=code, signal=signal):
                    self._far.crash(Exit(code=code, signal=signal))
                case acts.Deaf():
                    self._deaf = True
                case acts.Dumb():
                    # A pipe's end can close alone; a server that is mute is ended by the client.
                    self._far.destroy("the server closed its stdout")
                case _:
                    assert_never(act)
        self._watch()

    def _watch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        due = self._part.due
        if due is not None and not self._over:
            self._timer = self._loop.later(max(due - time.monotonic(), 0.0), self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._perform(self._part.tick(time.monotonic()))
