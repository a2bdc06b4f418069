"""A call in progress that one may poll, watch, await or cancel, from any thread."""

from __future__ import annotations

import itertools
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from mcpclient.engine.calls import Call
from mcpclient.engine.mail import Turn
from mcpclient.features.notifications import arrival

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterator

    from mcpclient.engine.mail import Mail
    from mcpclient.engine.portal import Portal

T = TypeVar("T")
_numbers = itertools.count(1)


class Handle(Call[T]):
    """The outcome of a verb, now or later, in the words of ``concurrent.futures.Future``.

    It is read, awaited and watched any number of times, from any thread; whether anybody ticks
    matters only for callbacks. Its outcome is *delivered* when somebody first sees it: a callback,
    :meth:`result`, :meth:`exception`, an ``await``, or :meth:`done` that says so. Until then
    :meth:`cancel` wins, even over an answer that has arrived.

    ``await handle`` works in asyncio and trio. Cancelling the task that awaits leaves the call
    alone; :meth:`cancel` ends it.

    Attributes:
        id: Its number, of all handles of this process.
        verb: What was called, for people.
        server: The server's name, or an empty string.
    """

    __slots__ = ("_callbacks", "_mail", "_posted", "_when", "id", "server", "verb")

    def __init__(
        self,
        portal: Portal,
        work: Callable[[], Awaitable[T]] | None,
        mail: Mail,
        verb: str,
        server: str = "",
    ) -> None:
        """Made by the verbs."""
        super().__init__(portal, work)
        self.id = next(_numbers)
        self.verb = verb
        self.server = server
        self._mail = mail
        self._callbacks: list[Callable[[Handle[T]], Any]] = []
        self._posted = False
        self._when = 0

    def done(self) -> bool:
        """Return whether it has ended, in whatever way; then it can be cancelled no more."""
        self._portal.check_process()
        if self._ended:
            self.see()
        return self._ended

    def cancelled(self) -> bool:
        """Return whether it was cancelled by :meth:`cancel`."""
        return self._cancelled

    def cancel(self) -> bool:
        """Cancel the call, at the server too if it has reached it; return whether it is cancelled.

        False if its outcome was delivered before. Nothing is waited for. What then asks for the
        result gets ``CallCancelled``.
        """
        self._portal.check_process()
        return self.abort()

    def result(self, timeout: float | None = None) -> T:
        """Return what the verb returned, or raise what it raised; wait for that if need be.

        Args:
            timeout: For how many seconds to wait; None: as long as it takes. 0 never blocks.

        Raises:
            TimeoutError: It has not ended yet, and goes on.
            CallCancelled: It was cancelled.
        """
        self._await(timeout)
        return self.take()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Return what the verb raised, or None; wait as :meth:`result` does."""
        self._await(timeout)
        return self.see()

    def add_done_callback(self, callback: Callable[[Handle[T]], Any]) -> None:
        """Have a function called with the handle, in a tick, once it has ended.

        If it has ended already, in the next tick. One that raises is logged.
        """
        self._portal.check_process()
        with self._lock:
            self._callbacks.append(callback)
            late = self._ended and not self._posted
            self._posted = self._posted or late
        if late:
            self._post()

    def __await__(self) -> Generator[Any, Any, T]:
        from mcpclient import loops

        loop = loops.current()
        waiter = loop.waiter()

        def wake() -> None:
            if not waiter.done():
                waiter.set_result(None)

        def ended() -> None:
            loop.from_thread(wake)

        if self.watch(ended):
            wake()
        try:
            yield from waiter.__await__()
        finally:
            self.unwatch(ended)
        return self.take()

    def __repr__(self) -> str:
        what = f"{self.server}.{self.verb}" if self.server else self.verb
        if not self._ended:
            how = "running"
        elif self._cancelled:
            how = "cancelled"
        else:
            how = "failed" if self._error is not None else "complete"
        return f"<Handle {self.id} {what}: {how}>"

    # -- inside ----------------------------------------------------------------------------

    @property
    def _server(self) -> str:
        return self.server

    def _await(self, timeout: float | None) -> None:
        if not self.wait(timeout):
            raise TimeoutError(f"{self!r} has not ended yet; it goes on")

    def _close(self, value: Any, error: BaseException | None) -> list[Callable[[], object]]:
        self._when = arrival()
        watchers = super()._close(value, error)
        if self._callbacks:
            self._posted = True
            watchers.append(self._post)
        return watchers

    def _post(self) -> None:
        self._mail.put(Turn(f"a callback of {self!r}", self._told()), self._when)

    def _told(self) -> Iterator[Callable[[], Any]]:
        self.see()
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
            self._posted = False
        for callback in callbacks:
            yield partial(callback, self)
