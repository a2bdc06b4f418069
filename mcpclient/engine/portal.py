"""A thread with a loop of its own, and the way to it from every other thread.

Knows threads, forks and the interpreter's end; what lives on the loop it only opens and closes.
No loop is imported before it opens. The loop's class and policy are nobody's but its own: it is a
plain selector loop whatever policy is set, and nothing of asyncio is patched.

The thread is a daemon, and so are those that it starts, so that the interpreter does not wait for
them; an exit handler closes what is open. Exit handlers run when all other threads have ended, so
what these still ask is answered.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, TypeVar

from mcpclient.engine.calls import Call
from mcpclient.ground.errors import LocalProtocolError, McpClientError, UseAfterClose

if TYPE_CHECKING:
    import asyncio
    import contextvars
    from collections.abc import Awaitable, Callable, Coroutine

    from mcpclient.engine.errands import Errands

_log = logging.getLogger("mcpclient")
T = TypeVar("T")
# How long the interpreter's end waits for one that does not end, in seconds: a handler of the
# user's may refuse to be cancelled, and what a manager itself waits for is bounded below this.
_AT_EXIT = 60.0

_open: weakref.WeakSet[Portal] = weakref.WeakSet()
_hooked = False

_NOT_OPEN = "the manager is not open: use `with Manager(...)`, or open() and close()"
_CLOSED = "the manager is closed"
_FORKED = (
    "this process was forked from the one that opened the manager, whose servers are that one's; "
    "make a new manager here"
)
_OWN_THREAD = (
    "a blocking call on the manager's own thread would wait for itself; here runs what is called "
    "for each request or awaited by an async handler: use a plain handler, which has its own thread"
)


class Portal:
    """The thread, from its opening to its end.

    Attributes:
        lock: Guards all that more than one thread changes; held for moments, and never while
            anybody's function runs.
        calls: The work that has no outcome yet.
        is_forked: Whether this is a copy, in a process forked from that which opened it.
        errands: What the main thread does while it waits for a call; None for nothing.
    """

    def __init__(
        self, opening: Callable[[], Awaitable[None]], closing: Callable[[], Awaitable[None]]
    ) -> None:
        """Take note of what to do on the loop. Nothing starts yet.

        Args:
            opening: Awaited first; work waits for it.
            closing: Awaited last.
        """
        self._opening = opening
        self._closing = closing
        # One that a thread may take twice: a signal handler may come in between.
        self.lock = threading.RLock()
        self.calls: set[Call[Any]] = set()
        self._work: deque[Callable[[], None]] = deque()
        # A pipe of its own wakes the loop, and only if it sleeps: who writes lets the other thread
        # have the interpreter, and if that has something to do, getting it back may take 5 ms.
        # Under a flood of messages it always has, and then it looks by itself.
        self._bell = self._ear = -1
        self._asleep = self._waking = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._stop: asyncio.Event | None = None
        self._opened: Call[None] | None = None
        self._closed: Call[None] | None = None
        self.is_forked = False
        self.errands: Errands | None = None
        # Why no work is taken, if it is not.
        self._refusal: McpClientError | None = UseAfterClose(_NOT_OPEN)

    # -- life ------------------------------------------------------------------------------

    def open(self) -> Call[None]:
        """Start the thread, if it was never started; return what tells when it is open.

        Raises:
            UseAfterClose: It was closed. It is opened once.
        """
        self.check_process()
        with self.lock:
            if self._closed is not None:
                raise UseAfterClose(f"{_CLOSED}; make a new one")
            if self._opened is None:
                _hook()
                opened = Call[None](self, None)
                thread = threading.Thread(
                    target=self._main, args=[opened], name="mcpclient", daemon=True
                )
                # It waits for the lock, so that all of this is so when it begins.
                thread.start()
                self._thread = thread
                self.calls.add(opened)
                _open.add(self)
                # Last: without it Ctrl-C came before, and the thread ends at once.
                self._opened = opened
                self._refusal = None
            return self._opened

    def close(self) -> Call[None]:
        """Begin to close; return what tells when all is closed and the loop has ended."""
        with self.lock:
            if self._closed is not None:
                return self._closed
            closed = self._closed = Call(self, None)
            if self._opened is None:
                self._refusal = UseAfterClose(_CLOSED)
            elif not self.is_forked:
                self.post(self._leave)
                return closed
        closed.end(None)  # it was never open, or belongs to the process this one was forked from
        return closed

    def join(self, timeout: float | None = None) -> None:
        """Wait for the end of the thread."""
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def _main(self, opened: Call[None]) -> None:
        with self.lock:
            if self._opened is not opened:
                self.calls.discard(opened)
                return  # whoever opened it was interrupted; it may be opened again
            self._refusal = None
        try:
            import asyncio

            # Not the policy's: any other loop may be a patched one, or none of asyncio's own.
            with asyncio.Runner(loop_factory=self._new_loop) as runner:
                runner.run(self._live(opened))
        except BaseException:  # the thread's outer edge: whoever waits must hear of the end
            _log.exception("! the manager's thread ended by a fault of its own")
        finally:
            self._end()

    def _new_loop(self) -> asyncio.AbstractEventLoop:
        import asyncio
        import selectors

        portal = self

        class Selector(selectors.DefaultSelector):
            def select(self, timeout: float | None = None) -> list[Any]:
                portal._asleep = True  # first; who gives work looks at it last
                try:
                    return super().select(0 if portal._due else timeout)
                finally:
                    portal._asleep = portal._waking = False
                    if portal._due:
                        loop.call_soon(portal._drain)

        loop = asyncio.SelectorEventLoop(Selector())
        return loop

    async def _live(self, opened: Call[None]) -> None:
        import asyncio

        self._stop = asyncio.Event()
        try:
            with self.lock:
                self._ear, self._bell = os.pipe()
            os.set_blocking(self._ear, False)
            await self._opening()
        except Exception as problem:  # whoever opens it gets the problem
            if isinstance(problem, McpClientError):
                self._refusal = problem
            opened.end(None, problem)
            return
        opened.end(None)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._ear, self._rung)
        try:
            await self._stop.wait()
            await self._closing()
        finally:
            self._loop.remove_reader(self._ear)

    def _leave(self) -> None:
        assert self._stop is not None
        self._stop.set()

    def _end(self) -> None:
        with self.lock:
            self._loop = None
            self._hang_up()
            self._refusal = self._refusal or UseAfterClose(_CLOSED)
            if self._closed is None:
                self._closed = Call(self, None)
            closed = self._closed
        self._work.clear()
        for call in list(self.calls):  # other threads end some of them meanwhile
            call.end(None, self._refusal.again())
        _open.discard(self)
        closed.end(None)

    def forked(self) -> None:
        """Be of no use in a child process, and touch nothing that belongs to the parent."""
        self.lock = threading.RLock()
        self.is_forked = True
        self.errands = None
        self._refusal = UseAfterClose(_FORKED)
        self._thread = self._loop = self._closed = None
        self._hang_up()
        self._work = deque()
        for call in self.calls:
            call.forked(self._refusal)
        self.calls = set()

    # -- work ------------------------------------------------------------------------------

    def post(self, work: Callable[[], None]) -> None:
        """Have a function called on the loop, after all that was given before; at once if not open.

        It must neither raise nor wait.
        """
        if self._opened is None:
            work()
        elif self._refusal is None:
            self._work.append(work)
            self._wake()

    def submit(self, call: Call[Any]) -> None:
        """Have a call begun on the loop, after all that was given before."""
        # First among the calls: whoever ends the portal then ends it too.
        self.calls.add(call)
        if self._refusal is not None:
            call.end(None, self._refusal.again())
            return
        self._work.append(call.begin)
        self._wake()

    def run(
        self, work: Callable[[], Awaitable[T]], wait: Callable[[Call[T]], object] = Call.wait
    ) -> T:
        """Do work on the loop, wait for it, and return or raise its outcome.

        Whatever else ends the waiting, Ctrl-C above all, cancels the work.

        Args:
            work: What to await there.
            wait: Waits for the call.
        """
        self.check_thread()
        call = Call(self, work)
        try:
            self.submit(call)
            wait(call)
            return call.take()
        except BaseException:  # Ctrl-C above all: nobody waits for the work any more
            call.abort()
            raise

    @property
    def over(self) -> bool:
        """Whether it was closed, or is being closed."""
        return self._closed is not None

    def check(self) -> None:
        """Refuse what needs it to be open.

        Raises:
            UseAfterClose: It is not.
        """
        if self._refusal is not None:
            raise self._refusal.again()

    def check_process(self) -> None:
        """Refuse to be used in a fork of the process that opened it.

        Raises:
            UseAfterClose: This is one.
        """
        if self.is_forked:
            self.check()

    def check_thread(self) -> None:
        """Refuse to wait on the portal's own thread.

        Raises:
            LocalProtocolError: This is it.
        """
        if self._thread is not None and self._thread.ident == threading.get_ident():
            raise LocalProtocolError(_OWN_THREAD)

    def start(
        self, work: Coroutine[Any, Any, None], context: contextvars.Context | None = None
    ) -> asyncio.Task[None]:
        """Begin a task, on the portal's thread."""
        assert self._loop is not None
        if context is not None:
            context.run(_forget_library)
        task = self._loop.create_task(work, context=context)
        self._tasks.add(task)  # the loop itself holds it only weakly
        task.add_done_callback(self._tasks.discard)
        return task

    @property
    def _due(self) -> bool:
        """Whether there is work to begin."""
        return self._loop is not None and bool(self._work)

    def _wake(self) -> None:
        if self._waking or not self._asleep or self._bell < 0:
            return
        with self.lock:  # or the number might be another's by now
            try:
                self._waking = True
                if self._bell >= 0:
                    os.write(self._bell, b"\0")  # never full: one for each thread at most
            except BaseException:  # Ctrl-C: the next one must not take it for done
                self._waking = False
                raise

    def _hang_up(self) -> None:
        for end in (self._bell, self._ear):
            if end >= 0:
                os.close(end)
        self._bell = self._ear = -1

    def _rung(self) -> None:
        # One, and not all there are: each may stand for a `_waking` that only the next `select`
        # takes back, and if it did not, nobody would wake the loop again.
        os.read(self._ear, 1)

    def _drain(self) -> None:
        work = self._work
        for _ in range(len(work)):
            work.popleft()()


def _forget_library() -> None:
    """Let the caller's context not claim that another loop runs here."""
    import sys

    sniffio = sys.modules.get("sniffio")
    if sniffio is not None:
        sniffio.current_async_library_cvar.set(None)


def _hook() -> None:
    global _hooked
    if not _hooked:
        _hooked = True
        atexit.register(_close_all)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_forked)


def _close_all() -> None:
    portals = list(_open)
    for portal in portals:
        portal.close()
    for portal in portals:
        portal.join(_AT_EXIT)


def _forked() -> None:
    for portal in list(_open):
        portal.forked()
    _open.clear()
