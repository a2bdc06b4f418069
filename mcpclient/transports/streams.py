"""A server at the other end of a socket: one message a line, as on stdin and stdout.

``unix:///path`` and ``tcp://host:port``. There is no process to watch, so the end of the stream is
the end of the connection; what was read before still counts. Whose the process is, whether it lives
on, and why it hung up, nobody here knows. Nothing is encrypted, and nobody is asked who he is.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports
"""

from __future__ import annotations

import contextlib
import socket
from typing import TYPE_CHECKING

import anyio

from mcpclient.ground.exits import Exit
from mcpclient.protocol.framing import LineSplitter
from mcpclient.transports.addresses import address_of
from mcpclient.transports.outbox import Outbox
from mcpclient.transports.sockets import connect

if TYPE_CHECKING:
    from mcpclient.ground.options import Limits, Timeouts
    from mcpclient.loops.base import Loop, Stop
    from mcpclient.protocol.envelope import Outgoing
    from mcpclient.transports.base import Sink

# What one read takes at most, as from a pipe.
_CHUNK = 65536
# While it is closed, how often to look whether the server has hung up: without a start, and while
# trio ends its run, no watch tells of it.
_LOOK = 0.05
HUNG_UP = Exit(words="the server closed the connection")
CLOSED = Exit(words="the connection was closed from this side")


async def dial(url: str, *, loop: Loop, timeouts: Timeouts, limits: Limits) -> StreamTransport:
    """Connect to a server and return the transport to it; cancelling it leaves nothing open.

    Args:
        url: ``unix:///path`` or ``tcp://host:port``.
        loop: The loop that runs this code.
        timeouts: ``write`` and ``eof`` are used; the caller bounds the connecting.
        limits: ``frame`` is used.

    Raises:
        OpeningFailed: Nobody listens there, it may not be entered, or the name is not known.
        ValueError: The URL names no such address.
    """
    address = address_of(url)
    if address is None:
        raise ValueError("a stream is dialled by unix:///path or tcp://host:port")
    return StreamTransport(
        await connect(address, loop), loop=loop, timeouts=timeouts, limits=limits
    )


class StreamTransport:
    """The transport over one connected stream socket."""

    pid = None

    def __init__(
        self, sock: socket.socket, *, loop: Loop, timeouts: Timeouts, limits: Limits
    ) -> None:
        """Take over a connected, non-blocking socket; it is closed with the transport."""
        self._sock = sock
        self._loop = loop
        self._timeouts = timeouts
        self._splitter = LineSplitter(limits.frame)
        self._sink: Sink | None = None
        self._outbox = Outbox(loop, sock.fileno(), timeouts.write, self._stalled, self._broken)
        self._reader: Stop | None = None
        self._doom: Stop | None = None
        self._exit: Exit | None = None
        self._over = anyio.Event()

    @property
    def waiting(self) -> int:
        """See :class:`~mcpclient.transports.base.Transport`."""
        return self._outbox.waiting

    def start(self, sink: Sink) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._sink = sink
        self._reader = self._loop.readable(self._sock.fileno(), self._read)

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
        """See :class:`~mcpclient.transports.base.Transport`. It stays with the server."""
        return ""

    async def close(self) -> Exit:
        """See :class:`~mcpclient.transports.base.Transport`.

        What waits is written, then this half is closed, which is the end of the server's input;
        if it has not hung up ``Timeouts.eof`` later, the rest is closed too.
        """
        if self._exit is None:
            self._outbox.finish(self._hang_up)
        with anyio.move_on_after(self._timeouts.eof, shield=True):
            while self._exit is None and self._sink is not None:
                with anyio.move_on_after(_LOOK):
                    await self._over.wait()
                self._read()
        self._end(CLOSED)
        return self._exit or CLOSED

    def destroy(self, reason: str) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        # Not on this very stack: whoever gives the server up may be in the middle of its calls.
        self._loop.soon(lambda: self._end(CLOSED, reason))

    def kill(self) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._end(CLOSED)

    # -- reading ---------------------------------------------------------------------------

    def _read(self) -> None:
        sink = self._sink
        if self._exit is not None or sink is None:
            return
        try:
            chunk = self._sock.recv(_CHUNK)
        except BlockingIOError:
            return
        except OSError as problem:
            self._drained(sink, Exit(words=f"the connection broke ({problem.strerror})"))
            return
        if not chunk:
            self._drained(sink, HUNG_UP)
            return
        for line in self._splitter.feed(chunk):
            if isinstance(line, bytes):
                sink.frame(line)
            else:
                sink.oversize(line)

    def _drained(self, sink: Sink, exit: Exit) -> None:
        """Nothing more comes: hand on what stands after the last line end, and end."""
        for line in self._splitter.end():
            if isinstance(line, bytes):
                sink.rest(line)
            else:
                sink.oversize(line)
        self._end(exit)

    # -- the end ---------------------------------------------------------------------------

    def _stalled(self, waited: float) -> None:
        if self._sink is not None:
            self._sink.stalled(waited)

    def _broken(self, problem: OSError) -> None:
        """It takes nothing any more. Mostly its end is just about to be read, and words before."""
        reason = f"the server takes nothing any more ({problem.strerror})"
        self._doom = self._loop.later(self._timeouts.eof, lambda: self.destroy(reason))

    def _hang_up(self) -> None:
        self._outbox.stop()
        with contextlib.suppress(OSError):  # the server was faster
            self._sock.shutdown(socket.SHUT_WR)

    def _end(self, exit: Exit, reason: str = "") -> None:
        if self._exit is not None:
            return
        self._exit = exit
        self._outbox.stop()
        for stop in (self._reader, self._doom):
            if stop is not None:
                stop.cancel()
        self._sock.close()
        self._over.set()
        if self._sink is not None:
            self._sink.gone(exit, reason)
