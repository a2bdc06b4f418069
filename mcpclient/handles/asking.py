"""One ask on its way to a handler that is called in a tick, and its answer on the way back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpclient.engine.mail import Turn
from mcpclient.features.asks import Refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.engine.mail import Mail
    from mcpclient.engine.portal import Portal


_CANCELLED = "the request was cancelled by the user"


class Asking:
    """An ask that waits for delivery, and then for its answer.

    The handler returns the answer, or what will have it: a ``concurrent.futures.Future`` or
    another of its kind, or an awaitable. If the server takes the ask back, it is not delivered any
    more, or, if it was, what the handler returned is cancelled in a tick.
    """

    failed = 0  # what a handler raises is logged where the server is told of it

    def __init__(
        self,
        portal: Portal,
        mail: Mail,
        spawn: Callable[[Any], Callable[[], object]],
        handler: Callable[..., Any],
        facts: tuple[Any, ...],
    ) -> None:
        """Made on the portal's thread.

        Args:
            portal: Takes the answer back to that thread.
            mail: Delivers the ask.
            spawn: Runs an awaitable, and returns how to cancel it.
            handler: The user's.
            facts: Its arguments.
        """
        self._portal = portal
        self._mail = mail
        self._spawn = spawn
        self._handler = handler
        self._facts = facts
        self._waiter: Any = None
        self._taken = self._over = False
        self._cancel: Callable[[], object] | None = None

    async def answer(self) -> Any:
        """Have it delivered, and return the answer."""
        import asyncio

        self._waiter = asyncio.get_running_loop().create_future()
        self._mail.put(self)
        try:
            return await self._waiter
        except BaseException:  # a cancellation, or what the handler raised
            with self._portal.lock:
                self._over = True
                cancel = self._cancel
            if cancel is not None and self._waiter.cancelled():
                self._mail.put(Turn("the cancellation of an answer", [cancel]))
            raise

    def step(self) -> Any:
        """See :class:`~mcpclient.features.notifications.Delivery`."""
        if self._taken or self._over:
            return None
        self._taken = True
        try:
            answer = self._handler(*self._facts)
        except Exception as problem:  # the user's code; the server must hear of it
            self._reply(None, problem)
            return None
        except BaseException:  # the host leaves; the server must not wait for it
            self._reply(None, Refuse(_CANCELLED))
            raise
        if hasattr(answer, "add_done_callback"):
            answer.add_done_callback(self._come)
            self._cancel_by(answer.cancel)
        elif hasattr(answer, "__await__"):
            self._cancel_by(self._spawn(self._finish(answer)))
        else:
            self._reply(answer)
        return None

    def _cancel_by(self, cancel: Callable[[], object]) -> None:
        with self._portal.lock:
            self._cancel = cancel
            late = self._over
        if late:
            cancel()

    def _come(self, future: Any) -> None:
        try:
            answer = future.result()
        except Exception as problem:  # the user's code; the server must hear of it
            self._reply(None, problem)
        except BaseException:  # asyncio's cancellation
            self._reply(None, Refuse(_CANCELLED))
        else:
            self._reply(answer)

    async def _finish(self, answer: Any) -> None:
        try:
            self._reply(await answer)
        except Exception as problem:  # the user's code; the server must hear of it
            self._reply(None, problem)
        except BaseException:  # a cancellation by the host
            self._reply(None, Refuse(_CANCELLED))
            raise

    def _reply(self, answer: Any, problem: Exception | None = None) -> None:
        def give() -> None:
            if self._waiter.done():
                return  # it was taken back
            if problem is not None:
                self._waiter.set_exception(problem)
            else:
                self._waiter.set_result(answer)

        self._portal.post(give)
