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
    from mcpclient.protocol.envelope import Outgoing
    from mcpclient.protocol.events import Ask

_log = logging.getLogger("mcpclient")
_INTERNAL = -32603


class _Open:
    """An ask that is being answered."""

    __slots__ = ("ask", "connection", "job")

    def __init__(self, connection: Connection, ask: Ask) -> None:
        self.connection = connection
        self.ask = ask
        self.job: Stop | None = None


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
        self._open: dict[object, _Open] = {}

    @property
    def busy(self) -> bool:
        """Whether an ask is being answered."""
        return bool(self._open)

    def take(self, connection: Connection, ask: Ask) -> bool:
        """Begin to answer an ask; return False if nothing answers such."""
        if not self._asks.answers(ask.method):
            return False
        problem = ""
        if ask.id in self._open:
            problem = "a request with this id is being answered"
        elif len(self._open) >= self._most:
            problem = "too many requests at once"
        if problem:
            connection.send(connection.session.refuse(ask, _INTERNAL, problem))
            return True
        connection.deadlines.hold()
        entry = self._open[ask.id] = _Open(connection, ask)
        entry.job = connection.loop.job(
            lambda: self._answer(entry), f"{ask.method} of {connection.label}"
        )
        return True

    def withdraw(self, id: object) -> None:
        """Stop to answer an ask that the server took back; no answer is sent (CAN-05)."""
        # By exact type: in Python True is 1, and a list is no key.
        entry = self._open.get(id) if type(id) in (int, float, str) else None
        if entry is not None:
            self._stop(entry)

    def clear(self) -> None:
        """Stop to answer: the server is gone."""
        for entry in list(self._open.values()):
            self._stop(entry)

    def _stop(self, entry: _Open) -> None:
        # First off the desk: a job that is cancelled before it began runs no line of its own, and
        # one whose handler does not heed it may end long after the id is in use again.
        self._close(entry)
        if entry.job is not None:
            entry.job.cancel()

    def _close(self, entry: _Open) -> bool:
        """Take an ask off the desk; return False if that was done already."""
        if self._open.get(entry.ask.id) is not entry:
            return False
        del self._open[entry.ask.id]
        entry.connection.deadlines.release()
        return True

    async def _answer(self, entry: _Open) -> None:
        item = None
        try:
            item = await self._item(entry.connection, entry.ask)
        finally:
            # Without an item the handler was cancelled. If not by us, the server must hear of it.
            if self._close(entry) and not entry.connection.over:
                if item is None:
                    item = entry.connection.session.refuse(
                        entry.ask, _INTERNAL, "the client's handler was cancelled"
                    )
                entry.connection.send(item)

    async def _item(self, connection: Connection, ask: Ask) -> Outgoing:
        session = connection.session
        with anyio.move_on_after(self._patience):
            try:
                params = payload.value(ask.params)
                answer = await self._asks.answer(
                    self._server, ask.method, params if isinstance(params, dict) else {}
                )
                return session.answer(ask, session.era.replying(params, answer))
            except Refuse as problem:
                return session.refuse(ask, problem.code, problem.message)
            except McpClientError as problem:
                return session.refuse(ask, _INTERNAL, str(problem))
            except Exception:  # the user's code; the server must hear of it
                _log.exception("%s ! the handler of %s raised", connection.label, ask.method)
                return session.refuse(ask, _INTERNAL, "the client's handler failed")
        what = printable(ask.method, 100)
        _log.warning("%s ! %s was not answered in time", connection.label, what)
        return session.refuse(ask, _INTERNAL, "the client did not answer in time")
