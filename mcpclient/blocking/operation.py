"""One tool that runs as a task, for a thread that waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from msgspec import UNSET

from mcpclient.engine.facts import documented_as
from mcpclient.engine.undertaking import OperationFace
from mcpclient.features.operation import Operation as Original

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpclient.connection.caller import Timeout
    from mcpclient.protocol.types import ToolResult


@documented_as(Original)
class Operation(OperationFace):
    """A tool that runs at a server, or ran there.

    ``operation.result()`` waits for the end; ``for status in operation`` gives the status now and
    after each change. See :class:`mcpclient.Operation`.
    """

    def refresh(self, *, timeout: Timeout = UNSET) -> Self:
        self._portal.run(lambda: self._original.refresh(timeout=timeout))
        return self

    def result(self, *, timeout: Timeout = UNSET) -> ToolResult:
        return self._portal.run(lambda: self._original.result(timeout=timeout))

    def cancel(self, *, timeout: Timeout = UNSET) -> None:
        self._portal.run(lambda: self._original.cancel(timeout=timeout))

    def __iter__(self) -> Iterator[str]:
        changes = self._original.__aiter__()

        async def step() -> str | None:
            try:
                return await changes.__anext__()
            except StopAsyncIteration:
                return None

        while (status := self._portal.run(step)) is not None:
            yield status
