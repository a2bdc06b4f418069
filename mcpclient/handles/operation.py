"""One tool that runs as a task, in handles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from msgspec import UNSET

from mcpclient.engine.facts import documented_as
from mcpclient.engine.undertaking import OperationFace
from mcpclient.features.operation import Operation as Original

if TYPE_CHECKING:
    from mcpclient.connection.caller import Timeout
    from mcpclient.features.operation import Changes as OriginalChanges
    from mcpclient.handles.handle import Handle
    from mcpclient.handles.manager import Manager
    from mcpclient.protocol.types import ToolResult


@documented_as(Original)
class Operation(OperationFace):
    """A tool that runs at a server, or ran there; see :class:`mcpclient.Operation`.

    :meth:`changes` gives its status now and after each change, as ``async for`` over the
    operation does where a loop runs.
    """

    def __init__(self, home: Manager, original: Original) -> None:
        super().__init__(home._portal, original)
        self._home = home

    def refresh(self, *, timeout: Timeout = UNSET) -> Handle[Self]:
        async def refresh() -> Self:
            await self._original.refresh(timeout=timeout)
            return self

        return self._home._begin("refresh", refresh, self.server)

    def result(self, *, timeout: Timeout = UNSET) -> Handle[ToolResult]:
        return self._home._begin(
            "result", lambda: self._original.result(timeout=timeout), self.server
        )

    def cancel(self, *, timeout: Timeout = UNSET) -> Handle[None]:
        return self._home._begin(
            "cancel", lambda: self._original.cancel(timeout=timeout), self.server
        )

    def changes(self) -> Changes:
        """Return the changes of its status, to be asked for one after the other."""
        return Changes(self._home, self.server, self._original.__aiter__())

    def __aiter__(self) -> Changes:
        return self.changes()


class Changes:
    """The status of an operation, now and after each change."""

    def __init__(self, home: Manager, server: str, original: OriginalChanges) -> None:
        self._home = home
        self._server = server
        self._original = original

    def next(self) -> Handle[str | None]:
        """Return the next status; None if there will be no more."""

        async def step() -> str | None:
            try:
                return await self._original.__anext__()
            except StopAsyncIteration:
                return None

        return self._home._begin("changes", step, self._server)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        if (status := await self.next()) is None:
            raise StopAsyncIteration
        return status
