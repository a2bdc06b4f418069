"""One follower's view of a resource, for a thread that waits."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self

import anyio

from mcpclient.ground.errors import LocalProtocolError, UseAfterClose

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from mcpclient.engine.portal import Portal
    from mcpclient.features.following import Subscription as Original


class Subscription:
    """Follows one resource. Use it with ``with``; iterate it for the updates.

    What an update is, and when there is one, is said at :class:`mcpclient.Subscription`.

    Attributes:
        uri: The resource.
    """

    def __init__(self, portal: Portal, uri: str, find: Callable[[], Original]) -> None:
        """Made by a server.

        Args:
            portal: The manager's.
            uri: The resource.
            find: Returns the async one, on the manager's thread.
        """
        self.uri = uri
        self._portal = portal
        self._find = find
        self._original: Original | None = None

    def __enter__(self) -> Self:
        async def enter() -> None:
            original = self._find()
            await original.__aenter__()
            self._original = original

        if self._original is not None:
            raise LocalProtocolError("a subscription is entered once; make another")
        self._portal.run(enter)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        original = self._entered
        with suppress(UseAfterClose):  # then nothing is followed any more
            self._portal.run(lambda: original.__aexit__(None, None, None))

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        update = self.next()
        if update is None:
            raise StopIteration
        return update

    def next(self, *, timeout: float | None = None) -> Any:
        """Wait for an update and return it; None if there will be no more.

        Args:
            timeout: Seconds; None for no limit.

        Raises:
            TimeoutError: There was none in time. What comes later is not lost.
            LocalProtocolError: The server does not agree any more.
        """
        original = self._entered

        async def take() -> Any:
            # Timed where updates come in, so that none falls between.
            try:
                with anyio.fail_after(timeout):
                    return await original.__anext__()
            except StopAsyncIteration:
                return None

        return self._portal.run(take)

    @property
    def _entered(self) -> Original:
        if self._original is None:
            raise LocalProtocolError("use a subscription with `with`")
        return self._original
