"""From which level on a server logs, over all its lives. Knows no era; shows no log.

What it logs comes as ``notifications/message``.

https://modelcontextprotocol.io/specification/2025-11-25/server/utilities/logging
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mcpclient.ground.errors import LocalProtocolError, McpClientError
from mcpclient.protocol.methods import SET_LEVEL

if TYPE_CHECKING:
    from mcpclient.connection.caller import Caller, Timeout
    from mcpclient.connection.connection import Connection
    from mcpclient.connection.inflight import Call

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")

_log = logging.getLogger("mcpclient")


class LogLevel:
    """The level of one server."""

    def __init__(self) -> None:
        self._level: str | None = None

    async def set(self, caller: Caller, level: str | None, timeout: Timeout) -> None:
        """Have the server log from a level on, in this life and the later ones."""
        if level is not None and level not in LEVELS:
            raise LocalProtocolError(f"a level is one of {', '.join(LEVELS)}, not {level!r}")
        connection, left = await caller.line(timeout, SET_LEVEL)
        params = _order(connection, level)
        if params is not None:
            await connection.request(SET_LEVEL, params, left)
        self._level = level

    def went_up(self, connection: Connection, patience: float | None) -> None:
        """A life began: it is told as the one before was (STD-15). Never raises."""
        if self._level is None:
            return
        call: Call | None = None

        def heard(outcome: Any) -> None:
            assert call is not None
            try:
                connection.read(call, outcome)
            except McpClientError as problem:
                if not connection.over:
                    _lament(connection, problem)

        try:
            params = _order(connection, self._level)
            if params is not None:
                call = connection.begin(SET_LEVEL, params, patience, watch=heard)
                connection.counts.own += 1
        except McpClientError as problem:
            _lament(connection, problem)


def _lament(connection: Connection, problem: McpClientError) -> None:
    _log.warning("%s ! does not take the log level: %s", connection.label, problem)


def _order(connection: Connection, level: str | None) -> dict[str, Any] | None:
    """Return the params of the request that is needed, or None."""
    terms = connection.session.terms
    return connection.session.era.log_from(level, terms.capabilities if terms is not None else {})
