"""A server as a child process: one message a line on its stdin and stdout.

The death of the process, not the end of its output, ends the connection; what it wrote before
still counts. Both of its outputs are read from the start and all the time, so that it never
blocks on one of them.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio
"""

from __future__ import annotations

import os
import select
import signal
import sys
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread

from mcpclient.ground.errors import SpawnFailed
from mcpclient.ground.exits import Exit
from mcpclient.protocol.framing import LineSplitter
from mcpclient.transports.logs import BoundedFile
from mcpclient.transports.outbox import Outbox
from mcpclient.transports.process import Child, Command, Ticket

if TYPE_CHECKING:
    from anyio import CapacityLimiter

    from mcpclient.ground.options import Limits, Timeouts
    from mcpclient.loops.base import Loop, Stop
    from mcpclient.protocol.envelope import Outgoing
    from mcpclient.transports.base import Sink
    from mcpclient.transports.watchdog import Watchdog

# What one read takes at most. A pipe holds 64 KiB by default, and a larger buffer costs a
# mapping of memory at each read.
_CHUNK = 65536
# How long the kernel may take to end a process after SIGKILL before it is given up as stuck.
_UNKILLABLE = 5.0
# Without a pidfd, how often to look whether the process lives.
_LOOK = 0.05


async def spawn(
    command: Command,
    *,
    loop: Loop,
    limiter: CapacityLimiter,
    timeouts: Timeouts,
    limits: Limits,
    kill_tree: bool,
    watchdog: Watchdog | None = None,
    stderr_file: str | None = None,
) -> StdioTransport:
    """Start a server and return the transport to it; a cancelled start leaves no process.

    Raises:
        SpawnFailed: The command or its working directory does not exist, or cannot be used.
    """
    if sys.platform == "win32":
        raise SpawnFailed(
            "servers cannot be run on Windows yet",
            command=command.argv[0],
            hint="run the host under WSL",
        )
    ticket = Ticket()
    try:
        # In a thread: starting a process takes milliseconds, and many may start at once.
        child = await to_thread.run_sync(
            lambda: ticket.spawn(command, kill_tree=kill_tree, watchdog=watchdog),
            limiter=limiter,
        )
    except BaseException:  # a cancellation above all: the thread may still be starting it
        ticket.void()
        raise
    kept = BoundedFile(stderr_file, limits.log) if stderr_file is not None else None
    return StdioTransport(child, loop=loop, timeouts=timeouts, limits=limits, kept=kept)


class StdioTransport:
    """The transport to one child process."""

    def __init__(
        self,
        child: Child,
        *,
        loop: Loop,
        timeouts: Timeouts,
        limits: Limits,
        kept: BoundedFile | None = None,
    ) -> None:
        self._child = child
        self._loop = loop
        self._timeouts = timeouts
        self._limits = limits
        self._splitter = LineSplitter(limits.frame)
        self._stderr = bytearray()
        self._kept = kept
        self._sink: Sink | None = None
        self._outbox = Outbox(loop, child.stdin, timeouts.write, self._stalled, self._broken)
        self._stops: dict[str, Stop] = {}
        self._reason = ""
        self._exit: Exit | None = None
        self._over = anyio.Event()
        self.pid = child.pid

    @property
    def waiting(self) -> int:
        """See :class:`~mcpclient.transports.base.Transport`."""
        return self._outbox.waiting

    def start(self, sink: Sink) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._sink = sink
        loop, child, stops = self._loop, self._child, self._stops
        # stderr first: a server may fill it before it answers anything (B66).
        stops["stderr"] = loop.readable(child.stderr, self._read_stderr)
        stops["stdout"] = loop.readable(child.stdout, self._read_stdout)
        if child.exit_fd is not None:
            stops["exit"] = loop.readable(child.exit_fd, self._look)
        else:
            self._look()

    def send(self, item: Outgoing) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._outbox.send(item)

    def send_soon(self, item: Outgoing) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._outbox.send_soon(item)

    def withdraw(self, item: Outgoing) -> bool:
        """See :class:`~mcpclient.transports.base.Transport`."""
        return self._outbox.withdraw(item)

    def stderr_tail(self) -> str:
        """See :class:`~mcpclient.transports.base.Transport`."""
        return self._stderr[-self._limits.stderr :].decode("utf-8", "replace")

    async def close(self) -> Exit:
        """See :class:`~mcpclient.transports.base.Transport`.

        The ladder of the specification: close stdin; after ``Timeouts.eof`` SIGTERM; after
        ``Timeouts.term`` SIGKILL; each to the whole group.
        """
        self._outbox.finish(self._hang_up)
        with anyio.CancelScope(shield=True):
            for patience, step in (
                (self._timeouts.eof, signal.SIGTERM),
                (self._timeouts.term, signal.SIGKILL),
                (_UNKILLABLE, None),
            ):
                if await self._ended_within(patience):
                    break
                if step is not None:
                    self._child.signal(step)
        self._end(self._exit or Exit(), "the process does not end, not even by SIGKILL")
        return self._exit or Exit()

    async def _ended_within(self, patience: float) -> bool:
        """Wait for the end. Looks by itself too: without a start, and while trio ends its run,
        no watch tells of it."""
        until = anyio.current_time() + patience
        while not self._over.is_set() and (left := until - anyio.current_time()) > 0:
            with anyio.move_on_after(min(left, _LOOK)):
                await self._over.wait()
            if self._child.ended():
                self._look()
        return self._over.is_set()

    def destroy(self, reason: str) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._reason = reason
        self._child.signal(signal.SIGKILL)

    def kill(self) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._unwatch()
        self._child.abandon()
        self._end(self._child.reap() or Exit(), self._reason)

    # -- reading ---------------------------------------------------------------------------

    def _read_stdout(self) -> None:
        try:
            chunk = os.read(self._child.stdout, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if chunk:
            self._feed(self._splitter.feed(chunk))
        else:
            self._stop_watching("stdout")
            # It can answer nothing any more. Mostly the process is just about to end.
            self._doom("the server closed its stdout")

    def _feed(self, lines: list[Any]) -> None:
        sink = self._sink
        assert sink is not None
        for line in lines:
            if type(line) is bytes:
                sink.frame(line)
            else:
                sink.oversize(line)

    def _read_stderr(self) -> None:
        try:
            chunk = os.read(self._child.stderr, _CHUNK)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        if not chunk:
            self._stop_watching("stderr")
            return
        if self._kept is not None:
            self._kept.write(chunk)
        tail = self._stderr
        tail += chunk
        if len(tail) > 2 * self._limits.stderr:
            del tail[: -self._limits.stderr]

    # -- the end ---------------------------------------------------------------------------

    def _stalled(self, waited: float) -> None:
        if self._sink is not None:
            self._sink.stalled(waited)

    def _broken(self, problem: OSError) -> None:
        self._doom(f"the server closed its stdin ({problem.strerror})")

    def _doom(self, reason: str) -> None:
        """End a process that is deaf or mute, unless it ends by itself within moments."""
        if "doom" in self._stops:
            return

        self._stops["doom"] = self._loop.later(self._timeouts.eof, lambda: self.destroy(reason))

    def _hang_up(self) -> None:
        self._outbox.stop()
        self._child.close_stdin()

    def _look(self) -> None:
        """See whether the process has ended, and if so end everything."""
        if self._exit is not None:
            return
        if not self._child.ended():
            if self._child.exit_fd is None:
                self._stops["exit"] = self._loop.later(_LOOK, self._look)
            return
        # The group first, while the unreaped leader keeps its number: then nobody writes to the
        # pipes any more, and what is in them is all there will be.
        self._child.sweep()
        self._drain()
        self._end(self._child.reap() or Exit(), self._reason)

    def _drain(self) -> None:
        """Read what the dead process left behind. Bounded: with an opt-out, heirs may write on."""
        budget = 16 + (self._limits.frame or 1 << 30) // _CHUNK
        for name, read in (("stdout", self._read_stdout), ("stderr", self._read_stderr)):
            fd = getattr(self._child, name)
            for _ in range(budget):
                if name not in self._stops or not _readable(fd):
                    break
                read()
        for line in self._splitter.end():
            assert self._sink is not None  # it read nothing before
            if isinstance(line, bytes):
                self._sink.rest(line)
            else:
                self._sink.oversize(line)

    def _end(self, exit: Exit, reason: str) -> None:
        if self._exit is not None:
            return
        self._exit = exit
        self._unwatch()
        self._child.close()
        if self._kept is not None:
            self._kept.close()
        self._over.set()
        if self._sink is not None:
            self._sink.gone(exit, reason)

    def _stop_watching(self, name: str) -> None:
        stop = self._stops.pop(name, None)
        if stop is not None:
            stop.cancel()

    def _unwatch(self) -> None:
        self._outbox.stop()
        for name in list(self._stops):
            self._stop_watching(name)


def _readable(fd: int) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(0))
