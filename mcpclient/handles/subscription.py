"""One follower's view of a resource, in handles."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

from mcpclient.ground.errors import LocalProtocolError, UseAfterClose

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from mcpclient.features.following import Subscription as Original
    from mcpclient.handles.handle import Handle
    from mcpclient.handles.manager import Manager


class Subscription:
    """Follows one resource: :meth:`open`, :meth:`next` again and again, :meth:`close`.

    What an update is, and when there is one, is said at :class:`mcpclient.Subscription`. Where a
    loop runs, ``async with`` and ``async for`` do the same.

    Attributes:
        uri: The resource.
    """

    def __init__(self, home: Manager, server: str, uri: str, find: Callable[[], Original]) -> None:
        """Made by a server.

        Args:
            home: The manager.
            server: The server's name.
            uri: The resource.
            find: Returns the async one, on the manager's thread.
        """
        self.uri = uri
        self._home = home
        self._server = server
        self._find = find
        self._original: Original | None = None
        self._opening: Handle[Self] | None = None

    def open(self) -> Handle[Self]:
        """Follow the resource from now on; done when the server agreed. Once opened, it stays so.

        The handle raises ``LocalProtocolError`` if the server offers no subscription to this.
        """

        async def enter() -> Self:
            original = self._find()
            await original.__aenter__()
            self._original = original
            return self

        if self._opening is None:
            self._opening = self._home._begin("subscribe", enter, self._server)
        return self._opening

    def next(self) -> Handle[Any]:
        """Return the next update, now or later; None if there will be no more."""

        async def take() -> Any:
            try:
                return await self._entered.__anext__()
            except StopAsyncIteration:
                return None

        return self._home._begin("next", take, self._server)

    def close(self) -> Handle[None]:
        """Follow it no more. A :meth:`next` that waits ends with None."""

        async def leave() -> None:
            if self._original is not None:
                await self._original.__aexit__(None, None, None)

        if self._opening is not None:
            self._opening.cancel()
        return self._home._begin("unsubscribe", leave, self._server)

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with suppress(UseAfterClose):  # then nothing is followed any more
            await self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        if (update := await self.next()) is None:
            raise StopAsyncIteration
        return update

    @property
    def _entered(self) -> Original:
        if self._original is None:
            raise LocalProtocolError("open the subscription first, or use it with `async with`")
        return self._original
