"""One follower's view of a resource: a context to be in, and updates to iterate over."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Self

import anyio

from mcpclient.ground.errors import (
    CallTimedOut,
    LocalProtocolError,
    McpClientError,
    UseAfterClose,
)
from mcpclient.protocol.methods import LISTEN

if TYPE_CHECKING:
    from types import TracebackType

    from mcpclient.connection.caller import Caller, Timeout
    from mcpclient.features.subscriptions import Subscriptions
    from mcpclient.loops.base import Loop, Waiter


class Subscription:
    """Follows one resource. Use it with ``async with``; iterate it for the updates.

    Each update is the ``params`` of the notice: a mapping with ``uri``, of the resource or of one
    below it. Updates that say the same and are not taken yet are one. After a restart of the
    server there is one more, since nobody knows what was missed. The iteration ends when the
    server is removed, and raises if the server does not agree any more.

    Attributes:
        uri: The resource.
    """

    def __init__(
        self,
        uri: str,
        caller: Caller,
        home: Subscriptions,
        timeout: Timeout,
        limit: int,
    ) -> None:
        if not isinstance(uri, str):
            raise LocalProtocolError(f"a URI is text, not {type(uri).__name__}")
        self.uri = uri
        self._caller = caller
        self._home = home
        self._timeout = timeout
        self._updates: deque[Any] = deque(maxlen=limit)
        self._waiters: set[Waiter] = set()
        self._loop: Loop | None = None
        self._over = False

    async def __aenter__(self) -> Self:
        connection, left = await self._caller.line(self._timeout, LISTEN)
        if self._loop is not None:
            raise LocalProtocolError("a subscription is entered once; make another")
        self._loop = connection.loop
        home = self._home
        home.follow(self)
        try:
            with anyio.move_on_after(left) as scope:
                while (state := home.state_of(self.uri)) is False:
                    if self._over:
                        raise UseAfterClose(f'the server "{self._caller.name}" was removed')
                    if home.up:
                        await self._wait()
                    else:  # wait for the next life, or hear that there is none
                        await self._caller.line(None, LISTEN)
            if scope.cancelled_caught:
                raise CallTimedOut(
                    "the server did not agree to the subscription in time",
                    method=LISTEN,
                    server=self._caller.name,
                )
            if isinstance(state, McpClientError):
                raise state.again()
        except BaseException:  # a cancellation too: who never entered follows nothing
            self._over = True
            home.unfollow(self)
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.end()
        self._home.unfollow(self)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        while not self._updates:
            if self._over:
                raise StopAsyncIteration
            if isinstance(refused := self._home.state_of(self.uri), McpClientError):
                raise refused.again()
            await self._wait()
        return self._updates.popleft()

    def put(self, params: Any) -> None:
        """Take an update in; the oldest is dropped if nobody takes them out."""
        if params not in self._updates:
            self._updates.append(params)
        self.wake()

    def end(self) -> None:
        """There will be no more."""
        self._over = True
        self.wake()

    def wake(self) -> None:
        """Have who waits look again."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def _wait(self) -> None:
        if self._loop is None:
            raise LocalProtocolError("use a subscription with `async with`")
        waiter = self._loop.waiter()
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
