"""How a task asks the client, in either era's way. Knows no tool.

https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpclient.protocol.eras.handshake import RELATED_KEY
from mcpclient.protocol.eras.tasks import INPUT_REQUIRED, WORKING
from mcpclient.serverkit import asks as questions
from mcpclient.serverkit.requests import ask_all

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcpclient.serverkit.asks import Ask
    from mcpclient.serverkit.exchange import Exchange
    from mcpclient.serverkit.tasks import Task


class TaskRequests:
    """Questions of a task of 2025-11-25: requests, sent while its result is waited for."""

    def __init__(
        self,
        exchange: Exchange,
        task: Task,
        adapt: Callable[[str, dict[str, Any]], dict[str, Any]],
    ) -> None:
        self._exchange = exchange
        self._task = task
        self._adapt = adapt

    async def ask(self, asks: Mapping[str, Ask]) -> dict[str, Any]:
        """See :class:`~mcpclient.serverkit.asks.Asker`."""
        for ask in asks.values():
            questions.require(self._exchange.state.client_capabilities, ask)
        self._task.status_is(INPUT_REQUIRED)
        try:
            through = await self._task.channel()
            return await ask_all(self._exchange, asks, self._related, through.send)
        finally:
            self._task.status_is(WORKING)

    def _related(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        meta = {**params.get("_meta", {}), RELATED_KEY: {"taskId": self._task.id}}
        return {**self._adapt(method, params), "_meta": meta}

    async def once(self, key: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """See :class:`~mcpclient.serverkit.asks.Asker`."""
        return await make()


class TaskQuestions:
    """Questions of a task of the extension: told with its status, answered by ``tasks/update``."""

    def __init__(
        self, exchange: Exchange, task: Task, written: Callable[[Ask], dict[str, Any]]
    ) -> None:
        self._exchange = exchange
        self._task = task
        self._written = written

    async def ask(self, asks: Mapping[str, Ask]) -> dict[str, Any]:
        """See :class:`~mcpclient.serverkit.asks.Asker`."""
        for ask in asks.values():
            questions.require(self._exchange.state.client_capabilities, ask)
        return await self._task.ask(asks, self._written)

    async def once(self, key: str, make: Callable[[], Awaitable[Any]]) -> Any:
        """See :class:`~mcpclient.serverkit.asks.Asker`."""
        return await make()
