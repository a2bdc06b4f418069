"""A server on its own stdin and stdout: one message a line. Has never heard of a tool.

stdout belongs to the protocol: what a tool prints goes to stderr. A client that does not read
stops nobody; one that closes stdin ends the server.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio
"""

from __future__ import annotations

import asyncio
import io
import logging
import os
import signal
import stat
import sys
from typing import TYPE_CHECKING, Any

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.loops.asyncio_loop import AsyncioLoop
from mcpclient.protocol.envelope import Outgoing
from mcpclient.protocol.framing import LineSplitter
from mcpclient.serverkit import incoming
from mcpclient.serverkit.errors import INVALID_REQUEST
from mcpclient.serverkit.incoming import Batch, Request
from mcpclient.transports.outbox import Outbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.serverkit.incoming import Item
    from mcpclient.serverkit.server import Server

_log = logging.getLogger("mcpclient.serverkit")
_CHUNK = 65536
# How long what runs may take to end after the client is gone, and answers to be written.
_GRACE = 1.0
# How often to look whether a client that did not read has begun to.
_LOOK = 0.02
# How long a client may read nothing before that is logged.
_PATIENCE = 30.0


def serve_stdio(server: Server) -> None:
    """Serve one client on stdin and stdout until it closes stdin, or SIGTERM or SIGINT comes.

    Requests run concurrently, plain functions in threads. The program should end after this: if a
    thread still runs a function then, the process ends at once.

    Raises:
        LocalProtocolError: On Windows, where pipes cannot be waited for like this.
    """
    if sys.platform == "win32":
        raise LocalProtocolError("serve_stdio does not run on Windows yet; run it under WSL")
    loop = asyncio.new_event_loop()
    try:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(_Stdio(server, loop).run())
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        if threads_left():
            # The interpreter would wait for them, for ever perhaps.
            os._exit(0)


def threads_left(named: str = "") -> bool:
    """Wait a moment for threads, of which the interpreter would wait for the end; return whether
    some are left. ``named``: only for those whose name begins so."""
    import threading

    here = threading.main_thread()
    others = [
        one
        for one in threading.enumerate()
        if one is not here and not one.daemon and one.name.startswith(named)
    ]
    for one in others:
        one.join(_GRACE / len(others))
    return any(one.is_alive() for one in others)


class _Stdio:
    """The client at the other end of two descriptors."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self._server = server
        self._loop = loop
        self._over: asyncio.Future[str] = loop.create_future()
        self._splitter = LineSplitter(server.limits.frame)
        self._running: set[asyncio.Task[None]] = set()
        self._dropped = 0
        self._in = _own_stdin()
        self._out, self._restore = _own_stdout()
        self._outbox = Outbox(AsyncioLoop(loop), self._out, _PATIENCE, self._stalled, self._broken)
        self._session = server.open(self._send)

    async def run(self) -> None:
        for one in (signal.SIGTERM, signal.SIGINT):
            self._loop.add_signal_handler(one, self._end, one.name)
        stop = self._reading()
        try:
            reason = await self._over
        finally:
            stop()
            for one in (signal.SIGTERM, signal.SIGINT):
                self._loop.remove_signal_handler(one)
        try:
            await self._wind_up(reason)
        finally:
            self._outbox.stop()
            self._restore()
            os.close(self._in)

    # -- in --------------------------------------------------------------------------------

    def _reading(self) -> Callable[[], object]:
        """Begin to read stdin; return what stops it."""
        try:
            self._loop.add_reader(self._in, self._poll)
        except PermissionError:  # a regular file is always readable, and no poll takes it
            self._loop.call_soon(self._read_file)
            return lambda: None
        return lambda: self._loop.remove_reader(self._in)

    def _poll(self) -> None:
        self._read()
        if self._is_full():
            self._loop.remove_reader(self._in)
            self._loop.call_later(_LOOK, self._look)

    def _look(self) -> None:
        if self._is_full():
            self._loop.call_later(_LOOK, self._look)
        elif not self._over.done():
            self._loop.add_reader(self._in, self._poll)

    def _read_file(self) -> None:
        if self._is_full():
            self._loop.call_later(_LOOK, self._read_file)
        elif not self._over.done():
            self._read()
            self._loop.call_soon(self._read_file)

    def _is_full(self) -> bool:
        """Return whether nothing more is read until the client reads: answers must be kept."""
        return not self._over.done() and self._outbox.waiting > self._server.limits.outbox

    def _read(self) -> None:
        try:
            chunk = os.read(self._in, _CHUNK)
        except BlockingIOError:
            return
        except OSError as problem:
            self._end(f"stdin: {problem}")
            return
        if not chunk:
            for line in self._splitter.end():
                self._line(line)
            self._end("the client closed stdin")
            return
        for line in self._splitter.feed(chunk):
            self._line(line)

    def _line(self, line: Any) -> None:
        if not isinstance(line, bytes):
            limit = self._server.limits.frame
            text = f"Invalid request: {line.length} bytes, over the limit of {limit}"
            self._outbox.send_soon(Outgoing(incoming.fault(INVALID_REQUEST, text).reply.frame))
            return
        for item in self._session.receive(line):
            self._begin(item)

    def _begin(self, item: Item) -> None:
        if not isinstance(item, Request | Batch):
            # Short, and in order: a cancellation must not overtake the request it names.
            self._job(self._answer(item, None))
            return
        task: asyncio.Task[None] | None = None

        def cancel() -> None:
            if task is not None:
                task.cancel()

        task = self._job(self._answer(item, cancel))

    def _job(self, run: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = self._loop.create_task(run)
        self._running.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        if not task.cancelled() and (problem := task.exception()) is not None:
            _log.error("! a request ended by a fault of its own", exc_info=problem)

    async def _answer(self, item: Item, cancel: Callable[[], object] | None) -> None:
        reply = await self._session.answer(item, cancel=cancel)
        if reply is not None:
            self._outbox.send_soon(Outgoing(reply.frame))

    # -- out -------------------------------------------------------------------------------

    def _send(self, item: Outgoing) -> None:
        # Answers must come; of what else is told, a client that does not read loses some.
        if self._outbox.waiting > self._server.limits.outbox:
            self._dropped += 1
            return
        self._outbox.send_soon(item)

    def _stalled(self, waited: float) -> None:
        _log.warning(
            "! the client has read nothing for %.0f s; %d bytes wait, %d notices were dropped",
            waited,
            self._outbox.waiting,
            self._dropped,
        )

    def _broken(self, problem: OSError) -> None:
        self._end(f"stdout: {problem}")

    # -- the end ---------------------------------------------------------------------------

    def _end(self, reason: str) -> None:
        if not self._over.done():
            self._over.set_result(reason)

    async def _wind_up(self, reason: str) -> None:
        """Let what was asked be answered, for a moment; then give it up."""
        for listener in list(self._server.listeners):
            listener.end()
        for _ in range(2):  # their answers are on their way
            await asyncio.sleep(0)
        if self._running and reason == "the client closed stdin":
            await asyncio.wait(self._running, timeout=_GRACE)
        self._server.close(reason)
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running, timeout=_GRACE)
        others = asyncio.all_tasks() - {asyncio.current_task()}  # hooks, tasks of tools
        if others:
            await asyncio.wait(others, timeout=_GRACE)
        drained = asyncio.Event()
        self._outbox.finish(drained.set)
        try:
            await asyncio.wait_for(drained.wait(), _GRACE)
        except TimeoutError:
            pass  # a client that does not read gets no more


def _own_stdin() -> int:
    """Return a descriptor of stdin that nobody else has: children and tools read nothing."""
    own = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return own


def _own_stdout() -> tuple[int, Callable[[], None]]:
    """Return a non-blocking descriptor of stdout that nobody else has, and what undoes that.

    What tools and children write to stdout goes to stderr. Non-blocking is a property of the open
    file, which stderr or a terminal may share, so a pipe is opened anew where the system can.
    """
    own = os.dup(1)
    try:
        os.dup2(2, 1)
    except OSError:  # there is no stderr
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.close(nothing)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    if stat.S_ISFIFO(os.fstat(own).st_mode):
        try:
            again = os.open(f"/proc/self/fd/{own}", os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            pass
        else:
            os.close(own)
            return again, lambda: os.close(again)
    before = os.get_blocking(own)
    os.set_blocking(own, False)

    def restore() -> None:
        os.set_blocking(own, before)
        os.close(own)

    return own, restore
