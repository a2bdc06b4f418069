"""Two transports that are each other's peer, for tests and servers in the same process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpclient.ground.exits import Exit
from mcpclient.protocol.framing import LineSplitter

if TYPE_CHECKING:
    from mcpclient.loops.base import Loop
    from mcpclient.protocol.envelope import Outgoing
    from mcpclient.transports.base import Sink


def pair(loop: Loop, limit: int | None = None) -> tuple[MemoryTransport, MemoryTransport]:
    """Return two ends; what is sent into one arrives, in order, at the other."""
    one, other = MemoryTransport(loop, limit), MemoryTransport(loop, limit)
    one.peer, other.peer = other, one
    return one, other


class MemoryTransport:
    """One end of a pair. Bytes cross in the next turn of the loop, cut into lines as on a pipe.

    Attributes:
        peer: The other end.
    """

    pid = None
    waiting = 0

    def __init__(self, loop: Loop, limit: int | None) -> None:
        self._loop = loop
        self._splitter = LineSplitter(limit)
        self._sink: Sink | None = None
        self._arrived: list[bytes] = []
        self._over = False
        self.peer = self

    def start(self, sink: Sink) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._sink = sink
        self._loop.soon(self._deliver)

    def send(self, item: Outgoing) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        if not self._over:
            item.written = True
            self.peer.feed(item.frame)

    send_soon = send

    def withdraw(self, item: Outgoing) -> bool:
        """See :class:`~mcpclient.transports.base.Transport`."""
        return not item.written

    def feed(self, data: bytes) -> None:
        """Let any bytes arrive at this end, whole frames or not."""
        self._arrived.append(data)
        self._loop.soon(self._deliver)

    def stderr_tail(self) -> str:
        """See :class:`~mcpclient.transports.base.Transport`."""
        return ""

    async def close(self) -> Exit:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self.kill()
        return Exit(code=0)

    def destroy(self, reason: str) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._end(Exit(signal=9), reason)
        self.peer._end(Exit(signal=9), reason)

    def kill(self) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._end(Exit(code=0))
        self.peer._end(Exit(code=0))

    def crash(self, exit: Exit) -> None:
        """End both ends as a process that ended this way would."""
        self._end(exit)
        self.peer._end(exit)

    def _deliver(self) -> None:
        if self._sink is None or self._over:
            return
        arrived, self._arrived = self._arrived, []
        for data in arrived:
            for line in self._splitter.feed(data):
                if isinstance(line, bytes):
                    self._sink.frame(line)
                else:
                    self._sink.oversize(line)

    def _end(self, exit: Exit, reason: str = "") -> None:
        if self._over:
            return
        self._deliver()
        self._over = True
        if self._sink is None:
            return
        for line in self._splitter.end():
            if isinstance(line, bytes):
                self._sink.rest(line)
            else:
                self._sink.oversize(line)
        self._sink.gone(exit, reason)
