"""Calls to a server behind an http or https URL: some are made a second time, if they are safe to.

Whoever calls learns that the server is gone, or has forgotten the session. A call that it did not
carry out waits for the next life like one that comes a moment later; the second time its failure is
told. A server that misses what a tool wants in the headers gets it, by the newest list of tools.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mcpclient.ground.errors import McpClientError, ReplyError, ServerDied
from mcpclient.manager.calls import Calls
from mcpclient.protocol.methods import HEADER_MISMATCH, TOOLS_CALL

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from msgspec import Raw

    from mcpclient.connection.caller import Timeout
    from mcpclient.connection.progress import Progress
    from mcpclient.manager.verbs import Verbs


class WebCalls(Calls):
    """Asks the present life of a server behind a URL."""

    _server: Verbs

    def _once(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: Timeout,
        on_progress: Progress | None,
    ) -> Coroutine[Any, Any, Raw]:
        return self._safely(method, params, self.limit(timeout), on_progress)

    async def _safely(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        limit: float | None,
        on_progress: Progress | None,
    ) -> Raw:
        begun = time.monotonic()
        try:
            return await self._late(method, params, limit, on_progress)
        except ServerDied as lost:
            left = _left(begun, limit)
            if lost.maybe_done or (left is not None and left <= 0):
                raise
        except ReplyError as refused:
            left = _left(begun, limit)
            if refused.code != HEADER_MISMATCH or method != TOOLS_CALL:
                raise
            if left is not None and left <= 0:
                raise
            try:
                await self._server.list_tools(cache="refresh", timeout=left)
            except McpClientError:
                raise refused from None  # it is that call of which the caller must hear
            left = _left(begun, limit)
        return await self._late(
            method, params, left if left is None else max(left, 0.001), on_progress
        )


def _left(begun: float, limit: float | None) -> float | None:
    return None if limit is None else begun + limit - time.monotonic()
