"""One piece of work for a portal, and what became of it, for any thread to see.

Knows threads and outcomes; knows no loop and no server. What ends first counts: the work itself,
or a cancellation, which also wins over an outcome that nobody has seen yet.
"""

from __future__ import annotations

import contextvars
from _thread import TIMEOUT_MAX, RLock, allocate_lock
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mcpclient.ground.errors import CallCancelled, McpClientError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from types import TracebackType

    from mcpclient.engine.errands import Errands
    from mcpclient.engine.portal import Portal

T = TypeVar("T")


class Call(Generic[T]):
    """Work that any thread gives, a portal's thread does, and any thread may wait for."""

    __slots__ = (
        "_cancelled",
        "_context",
        "_ended",
        "_error",
        "_lock",
        "_portal",
        "_seen",
        "_task",
        "_trace",
        "_value",
        "_watchers",
        "_work",
    )

    def __init__(self, portal: Portal, work: Callable[[], Awaitable[T]] | None) -> None:
        """Made by a portal.

        Args:
            portal: Does the work.
            work: Called on the portal's thread, in the present context of the caller. None: what
                becomes of it is said from elsewhere.
        """
        self._portal = portal
        self._work = work
        # Its own, so that nobody waits for who is busy with another call; one that a thread may
        # take twice: a signal handler may come in between.
        self._lock = RLock()
        # So that a caller's own trace, say, is that of the request.
        self._context = contextvars.copy_context()
        self._task: Any = None
        self._watchers: list[Callable[[], object]] | None = None
        self._ended = self._seen = self._cancelled = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._trace: TracebackType | None = None

    # -- on the portal's thread ------------------------------------------------------------

    def begin(self) -> None:
        """Begin the work, unless it was cancelled before."""
        work, self._work = self._work, None
        if work is not None and not self._ended:
            self._task = self._portal.start(self._run(work), self._context)

    async def _run(self, work: Callable[[], Awaitable[T]]) -> None:
        try:
            value = await work()
        except Exception as problem:  # a task's outer edge: whoever waits gets it
            self.end(None, problem)
        except (SystemExit, KeyboardInterrupt) as leaving:  # a handler's, for whoever waits too:
            self.end(None, leaving)  # raised here, it would end the loop
        except BaseException:  # a cancellation: by `cancel`, else by the end of the loop
            why = "the manager was closed" if self._portal.over else "it was cancelled"
            self.end(None, self._lost(why))
            raise
        else:
            self.end(value)

    # -- on any thread ---------------------------------------------------------------------

    def end(self, value: Any, error: BaseException | None = None) -> None:
        """Say what became of it; nothing happens if that was said already."""
        with self._lock:
            if self._ended:
                return
            watchers = self._close(value, error)
        self._portal.calls.discard(self)
        for watcher in watchers:
            watcher()

    def _close(self, value: Any, error: BaseException | None) -> list[Callable[[], object]]:
        """Take down the outcome, with the lock held; return whom to tell without it."""
        self._ended = True
        self._value, self._error = value, error
        self._trace = None if error is None else error.__traceback__
        watchers, self._watchers = self._watchers, None
        return watchers or []

    def abort(self) -> bool:
        """Cancel the work; return False if somebody has seen its outcome already."""
        with self._lock:
            if self._seen or self._cancelled:
                return self._cancelled
            self._cancelled = True
            error = self._lost("it was cancelled by the caller")
            if self._ended:  # but nobody knows: the cancellation wins
                self._value, self._error = None, error
                return True
            watchers = self._close(None, error)
        self._portal.calls.discard(self)
        self._portal.post(self._stop)
        for watcher in watchers:
            watcher()
        return True

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _lost(self, why: str) -> McpClientError:
        return CallCancelled(why, server=self._server, maybe_done=self._task is not None)

    @property
    def _server(self) -> str:
        return ""

    def watch(self, watcher: Callable[[], object]) -> bool:
        """Have a function called at the end, on whichever thread; return True if that is past."""
        with self._lock:
            if self._ended:
                return True
            if self._watchers is None:
                self._watchers = []
            self._watchers.append(watcher)
            return False

    def unwatch(self, watcher: Callable[[], object]) -> None:
        """Do not have it called any more."""
        with self._lock:
            if self._watchers is not None and watcher in self._watchers:
                self._watchers.remove(watcher)

    def wait(self, timeout: float | None = None) -> bool:
        """Block until the end, or for so many seconds; return whether it has ended."""
        if self._ended:
            return True
        self._portal.check_process()
        self._portal.check_thread()
        if timeout is None and (errands := self.errands) is not None:
            errands.wait(self)
            return True
        bell = allocate_lock()
        bell.acquire()
        if self.watch(bell.release):
            return True
        patience = -1 if timeout is None else min(max(timeout, 0), TIMEOUT_MAX)
        try:
            return bell.acquire(True, patience) or self._ended
        finally:
            self.unwatch(bell.release)

    @property
    def errands(self) -> Errands | None:
        """What this very thread may do for others while it waits; None if it is to do nothing."""
        errands = self._portal.errands
        return errands if errands is not None and errands.here else None

    def take(self) -> T:
        """Return or raise the outcome of what has ended. From now on it is seen."""
        error = self.see()
        if error is None:
            return self._value  # type: ignore[no-any-return]  # what the work returned
        try:
            if isinstance(error, McpClientError):
                raise error.again()
            # It cannot be copied; but its traceback must not grow by all who ask.
            raise error.with_traceback(self._trace)
        finally:
            del error  # its traceback holds this frame

    @property
    def error(self) -> BaseException | None:
        """What it failed by; it is not seen by that."""
        return self._error

    def see(self) -> BaseException | None:
        """Take note that the outcome is known outside; return the error, if it is one."""
        if self._portal.is_forked:
            return self._error  # the lock may be held for ever
        with self._lock:
            self._seen = True
            return self._error

    def forked(self, error: McpClientError) -> None:
        """End it in a child process, where nobody waits and nothing may be touched."""
        self._ended = True
        self._error = error
        self._watchers = self._work = None
