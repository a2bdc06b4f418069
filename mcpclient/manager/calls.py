"""Asks one server, whichever life it is in: the :class:`Caller` that features speak to."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from mcpclient.features import rounds
from mcpclient.ground.errors import ServerUnavailable
from mcpclient.protocol import methods

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from msgspec import Raw

    from mcpclient.connection.caller import Timeout
    from mcpclient.connection.connection import Connection
    from mcpclient.connection.progress import Progress
    from mcpclient.features.asks import Asks
    from mcpclient.features.operations import Operations
    from mcpclient.ground.errors import InputRefused, ReplyError
    from mcpclient.manager.spec import ServerSpec
    from mcpclient.supervision.supervisor import Supervisor


class Calls:
    """Asks the present life of a server, waiting for it if it is not up."""

    def __init__(
        self,
        server: Any,
        supervisor: Supervisor,
        asks: Asks,
        operations: Operations,
        spec: ServerSpec,
    ) -> None:
        self._server = server
        self._supervisor = supervisor
        self._operations = operations
        self._asks = asks if asks.offers else None
        self._timeout = spec.timeouts.call
        self._rounds = spec.limits.rounds
        self._patience = spec.timeouts.ask
        self.name = supervisor.name

    def limit(self, timeout: Timeout) -> float | None:
        """See :class:`~mcpclient.connection.caller.Caller`."""
        return self._timeout if timeout is UNSET else timeout

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: Timeout,
        on_progress: Progress | None = None,
    ) -> Coroutine[Any, Any, Raw]:
        """See :class:`~mcpclient.connection.caller.Caller`."""
        if method in self._operations.capable:
            return self._becoming(method, params or {}, timeout, on_progress)
        if self._asks is not None and method in methods.MAY_ASK_BACK:
            return self._answering(method, params or {}, timeout, on_progress)
        return self._once(method, params, timeout, on_progress)

    def _once(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: Timeout,
        on_progress: Progress | None,
    ) -> Coroutine[Any, Any, Raw]:
        # No coroutine of its own where there is nothing to wait for.
        connection = self._supervisor.connection
        if connection is None or connection.over:
            return self._late(method, params, timeout, on_progress)
        return connection.request(
            method, params, self._timeout if timeout is UNSET else timeout, on_progress
        )

    async def line(
        self,
        timeout: Timeout,
        method: str,
    ) -> tuple[Connection, float | None]:
        """See :class:`~mcpclient.connection.caller.Caller`."""
        limit = self.limit(timeout)
        connection = self._supervisor.connection
        if connection is not None and not connection.over:
            return connection, limit
        begun = time.monotonic()
        connection = await self._supervisor.ready(limit, method)
        return connection, None if limit is None else max(begun + limit - time.monotonic(), 0.001)

    async def _late(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: Timeout,
        on_progress: Progress | None,
    ) -> Raw:
        connection, left = await self.line(timeout, method)
        return await connection.request(method, params, left, on_progress)

    def plain(
        self,
        method: str,
        params: Mapping[str, Any],
        timeout: Timeout,
        on_progress: Progress | None = None,
    ) -> Coroutine[Any, Any, Raw]:
        """See :class:`~mcpclient.connection.caller.Caller`."""
        if self._asks is not None and method in methods.MAY_ASK_BACK:
            return self._answering(method, params, timeout, on_progress)
        return self._once(method, params, timeout, on_progress)

    async def _becoming(
        self,
        method: str,
        params: Mapping[str, Any],
        timeout: Timeout,
        on_progress: Progress | None,
    ) -> Raw:
        """Make a call that may become a task, and wait for what comes of that."""
        begun = time.monotonic()

        def send(params: Mapping[str, Any]) -> Coroutine[Any, Any, Raw]:
            nonlocal begun
            begun = time.monotonic()  # what a person took before a round is nobody's time-out
            return self._once(method, params, timeout, on_progress)

        def call() -> Coroutine[Any, Any, Raw]:
            if self._asks is None or method not in methods.MAY_ASK_BACK:
                return send(params)
            return rounds.answered(
                send, params, self._asks, self._server, self._rounds, self._patience
            )

        def span() -> tuple[float, float | None]:
            return begun, self.limit(timeout)

        return await self._operations.unseen(self, call, params, span, on_progress)

    async def _answering(
        self,
        method: str,
        params: Mapping[str, Any],
        timeout: Timeout,
        on_progress: Progress | None,
    ) -> Raw:
        """Make a call whose result may ask for another round."""
        assert self._asks is not None
        return await rounds.answered(
            lambda params: self._once(method, params, timeout, on_progress),
            params,
            self._asks,
            self._server,
            self._rounds,
            self._patience,
        )

    async def resume(
        self,
        method: str,
        params: Mapping[str, Any],
        timeout: Timeout,
        needed: InputRefused | ReplyError,
    ) -> Raw:
        """See :class:`~mcpclient.connection.caller.Caller`."""
        if self._asks is None:
            raise needed
        return await rounds.answered(
            lambda params: self._once(method, params, timeout, None),
            params,
            self._asks,
            self._server,
            self._rounds,
            self._patience,
            needed,
        )


class ImpatientCalls(Calls):
    """Asks the present life of a server, and refuses if there is none."""

    async def line(
        self,
        timeout: Timeout,
        method: str,
    ) -> tuple[Connection, float | None]:
        """See :class:`~mcpclient.connection.caller.Caller`."""
        connection = self._supervisor.connection
        if connection is None or connection.over:
            raise self._supervisor.refusal() or ServerUnavailable(
                f"it is not up but {self._supervisor.phase}; wait_ready() waits for it",
                server=self.name,
            )
        return connection, self.limit(timeout)
