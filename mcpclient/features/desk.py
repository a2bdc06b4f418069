"""Answers what one server asks as requests, beside everything else that goes on with it.

Each ask runs in a job of its own, so that a handler may call the server back, or take its time,
while the calls that wait for it go on waiting. While somebody is asked, no call times out.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio

from mcpclient.features.asks import Refuse
from mcpclient.ground.errors import McpClientError
from mcpclient.ground.text import printable
from mcpclient.protocol import payload

if TYPE_CHECKING:
    from mcpclient.connection.connection import Connection
    from mcpclient.features.asks import Asks
    from mcpclient.loops.base import Stop
    from mcpclient.protocol.events import Ask

_log = logging.getLogger("mcpclient")
_INTERNAL = -32603


class Desk:
    """Where one server's asks are answered."""

    def __init__(self, server: Any, asks: Asks, most: int, patience: float | None) -> None:
        """Answer for one server.

        Args:
            server: Told to the handlers.
            asks: The handlers.
            most: How many asks are answered at the same time.
            patience: How long one may take, in seconds.
        """
        self._server = server
        self._asks = asks
        self._most = most
        self._patience = patience
        self._open: dict[object, Stop] = {}

    def take(self, connection: Connection, ask: Ask) -> bool:
        """Begin to answer an ask; return False if nothing answers such."""
        if not self._asks.answers(ask.method):
            return False
        if len(self._open) >= self._most or ask.id in self._open:
            connection.send(connection.session.refuse(ask, _INTERNAL, "too many requests at once"))
            return True
        connection.deadlines.hold()
        self._open[ask.id] = connection.loop.job(
            lambda: self._answer(connection, ask), f"{ask.method} of {connection.label}"
        )
        return True

    def withdraw(self, id: object) -> None:
        """Stop to answer an ask that the server took back; no answer is sent (CAN-05)."""
        stop = self._open.get(id)
        if stop is not None:
            stop.cancel()

    def clear(self) -> None:
        """Stop to answer: the server is gone."""
        for stop in list(self._open.values()):
            stop.cancel()

    async def _answer(self, connection: Connection, ask: Ask) -> None:
        session = connection.session
        try:
            item = None
            with anyio.move_on_after(self._patience):
                try:
                    params = payload.value(ask.params)
                    answer = await self._asks.answer(
                        self._server, ask.method, params if isinstance(params, dict) else {}
                    )
                    item = session.answer(ask, answer)
                except Refuse as problem:
                    item = session.refuse(ask, problem.code, problem.message)
                except McpClientError as problem:
                    item = session.refuse(ask, _INTERNAL, str(problem))
                except Exception:  # the user's code; the server must hear of it
                    _log.exception("%s ! the handler of %s raised", connection.label, ask.method)
                    item = session.refuse(ask, _INTERNAL, "the client's handler failed")
            if item is None:
                what = printable(ask.method, 100)
                _log.warning("%s ! %s was not answered in time", connection.label, what)
                item = session.refuse(ask, _INTERNAL, "the client did not answer in time")
            if not connection.over:
                connection.send(item)
        finally:
            self._open.pop(ask.id, None)
            connection.deadlines.release()
