"""A call that is to become a task, on its way. It is never cancelled as a request (CAN-08).

If nobody waits for it any more, its answer is waited for all the same, to have the task that it
names cancelled: the server would keep a task that nobody knows.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mcpclient.ground.errors import CallTimedOut, McpClientError, RemoteProtocolError, timed_out
from mcpclient.protocol import methods
from mcpclient.protocol.eras import NoTasks
from mcpclient.protocol.events import Answer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw

    from mcpclient.connection.connection import Connection
    from mcpclient.connection.progress import Progress
    from mcpclient.loops.base import Stop
    from mcpclient.protocol.eras.tasks import Tasks

_log = logging.getLogger("mcpclient")
# How long an answer may take that nobody waits for but this.
_ORPHANED = 60.0


class Creation:
    """One such call.

    Attributes:
        id: The id of the request, and so the token of its progress.
    """

    def __init__(
        self,
        connection: Connection,
        rules: Tasks,
        params: Mapping[str, Any],
        on_progress: Progress | None,
    ) -> None:
        """Send it."""
        self._connection = connection
        self._rules = rules
        self._waiter = connection.loop.waiter()
        self._outcome: Any = None
        self._orphaned = False
        self._timer: Stop | None = None
        self._call = connection.begin(
            methods.TOOLS_CALL, params, None, on_progress, watch=self._arrived
        )
        self.id = self._call.id

    async def answer(self, limit: float | None) -> Raw:
        """Return the answer, as a request does."""
        connection, call = self._connection, self._call
        connection.kept.keep(call.id, call.teller)
        timer = None if limit is None else connection.loop.later(limit, self._wake)
        try:
            await self._waiter
        except BaseException:  # a cancellation: the task, once made, must not run for nobody
            self._leave()
            raise
        finally:
            if timer is not None:
                timer.cancel()
        if self._outcome is None:
            self._leave()
            tail = connection.transport.stderr_tail()
            raise CallTimedOut(
                timed_out(limit or 0.0, "that a task was made", tail, connection.noise.text()),
                method=call.method,
                server=connection.server,
                maybe_done=call.item.written,
            )
        return connection.read(call, self._outcome)

    def _wake(self) -> None:
        if not self._waiter.done():
            self._waiter.set_result(None)

    def _arrived(self, outcome: Any) -> None:
        self._outcome = outcome
        if self._orphaned:
            self._disown()
        else:
            self._wake()

    def _leave(self) -> None:
        connection, call = self._connection, self._call
        connection.kept.drop(call.id)
        if self._outcome is not None:
            self._disown()
        elif connection.transport.withdraw(call.item):
            connection.forget(call)
        else:
            self._orphaned = True
            self._timer = connection.loop.later(_ORPHANED, self._expire)

    def _expire(self) -> None:
        self._timer = None
        self._connection.forget(self._call)

    def _disown(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if not isinstance(self._outcome, Answer):
            return
        try:
            task = self._rules.made(self._outcome.result)
        except RemoteProtocolError:
            return
        if task is not None:
            cancel(self._connection, task.id, _ORPHANED)


def cancel(connection: Connection, id: str, timeout: float | None) -> None:
    """Have a task cancelled, without waiting for the answer. Never raises."""
    rules = connection.session.tasks()
    if connection.over or isinstance(rules, NoTasks) or not rules.cancels:
        return
    try:
        connection.begin(methods.TASKS_CANCEL, {"taskId": id}, timeout, watch=_ignore)
    except McpClientError as problem:
        _log.warning("%s ! a task was not cancelled: %s", connection.label, problem)
    else:
        connection.counts.own += 1


def _ignore(outcome: Any) -> None:
    # It was cancelled, or had ended before, or is unknown: nobody wants to know.
    pass
