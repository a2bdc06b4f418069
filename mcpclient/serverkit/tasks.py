"""Tools that run on after their call was answered: tasks of 2025-11-25, and of the extension.

A task lives in this process only, as long as its time to live; its id is not to be guessed, and
good only for who made it.

https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks
https://github.com/modelcontextprotocol/ext-tasks
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcpclient import loops
from mcpclient.protocol.eras.tasks import (
    CANCELLED,
    COMPLETED,
    ENDED,
    FAILED,
    INPUT_REQUIRED,
    WORKING,
)
from mcpclient.serverkit import asks as questions
from mcpclient.serverkit.errors import (
    BUSY,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    RpcError,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcpclient.loops.base import Stop, Waiter
    from mcpclient.serverkit.asks import Ask
    from mcpclient.serverkit.exchange import Exchange
    from mcpclient.serverkit.server import Server
    from mcpclient.serverkit.session import Session

_log = logging.getLogger("mcpclient.serverkit")
SHORTEST, LONGEST = 1.0, 3600.0


class TaskOptions(Struct, frozen=True, kw_only=True):
    """How tasks are run.

    Attributes:
        list: Whether they can be listed (2025-11-25).
        cancel: Whether they can be cancelled (2025-11-25; with the extension they always can).
        ttl: For how many seconds a task is kept if the client names no time.
        poll: How many seconds a client should wait before it asks again.
    """

    list: bool = False
    cancel: bool = True
    ttl: float = 300.0
    poll: float = 0.5


class Plan(Struct, frozen=True):
    """That a call becomes a task, and for how many seconds it is kept."""

    ttl: float


class Task:
    """One task.

    Attributes:
        id: Its name.
        owner: Who may ask about it.
        status: One of the five.
        result: What came of it, or None.
        error: The JSON-RPC error that came of it, or None.
        asks: What it asks and has no answer to, by key.
        ended: Whether nothing more will come of it.
    """

    def __init__(self, server: Server, id: str, owner: object, ttl: float) -> None:
        self._server = server
        self.id = id
        self.owner = owner
        self.ttl = ttl
        self.status = WORKING
        self.message: str | None = None
        self.result: dict[str, Any] | None = None
        self.error: dict[str, Any] | None = None
        self.asks: dict[str, Ask] = {}
        self.requests: dict[str, dict[str, Any]] = {}
        self.created = self.updated = server.clock()
        self.exchange: Exchange | None = None
        self._job: Stop | None = None
        self._timer: Stop | None = None
        self._answers: dict[str, Waiter] = {}
        self._waiting: set[Waiter] = set()
        # Those who wait for its result, through whom it may ask (LTSK-06).
        self.channels: list[Exchange] = []
        self._seeking: list[Waiter] = []

    @property
    def ended(self) -> bool:
        """Whether it is over."""
        return self.status in ENDED

    # -- as told ---------------------------------------------------------------------------

    def told(self) -> dict[str, Any]:
        """Return it as 2025-11-25 tells it."""
        found = self._told()
        found["ttl"] = round(self.ttl * 1000)
        if not self.ended:
            found["pollInterval"] = round(self._server.tasks.poll * 1000)
        return found

    def told_as_extension(self, *, detailed: bool = False) -> dict[str, Any]:
        """Return it as the extension tells it, with what came of it if it is to be detailed."""
        found = self._told()
        found["ttlMs"] = round(self.ttl * 1000)
        if not self.ended:
            found["pollIntervalMs"] = round(self._server.tasks.poll * 1000)
        if detailed:
            if self.status == INPUT_REQUIRED:
                found["inputRequests"] = dict(self.requests)
            elif self.status == COMPLETED:
                found["result"] = self.result
            elif self.status == FAILED:
                found["error"] = self.error
        return found

    def _told(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "taskId": self.id,
            "status": self.status,
            "createdAt": _written(self.created),
            "lastUpdatedAt": _written(self.updated),
        }
        if self.message is not None:
            found["statusMessage"] = self.message
        return found

    # -- moves -----------------------------------------------------------------------------

    def start(self, run: Callable[[], Awaitable[dict[str, Any]]]) -> None:
        """Run it in a job of its own, for as long as it is kept at most."""

        async def job() -> None:
            try:
                result = await run()
            except RpcError as problem:
                self.fail(problem)
            except Exception:  # the outer edge of a task: its failure is its outcome
                _log.exception("! task failed")
                self.fail(RpcError(INTERNAL_ERROR, "Internal error"))
            else:
                self.complete(result)
            finally:
                if not self.ended:
                    self.cancel("it was cancelled")

        loop = loops.current()
        self._timer = loop.later(self.ttl, lambda: self.cancel("its time to live is over"))
        self._job = loop.job(job, "task of a tool")

    def complete(self, result: dict[str, Any]) -> None:
        """End it with a result."""
        if not self.ended:
            self.result = result
            # What the one version calls failed is an outcome like others for the extension.
            era = self.exchange.era.name if self.exchange is not None else ""
            failed = result.get("isError") is True and era == "handshake"
            self._move(FAILED if failed else COMPLETED)

    def fail(self, problem: RpcError) -> None:
        """End it with a JSON-RPC error."""
        if not self.ended:
            error = {"code": problem.code, "message": problem.message, "data": problem.data}
            self.error = {key: value for key, value in error.items() if value is not None}
            self._move(FAILED, problem.message)

    def cancel(self, message: str) -> None:
        """End it without an outcome."""
        if not self.ended:
            self._move(CANCELLED, message)
            if self._job is not None:
                self._job.cancel()

    def _move(self, status: str, message: str | None = None) -> None:
        self.status, self.message = status, message
        self.updated = self._server.clock()
        if self.ended:
            if self._timer is not None:
                self._timer.cancel()
            for waiter in list(self._waiting):
                if not waiter.done():
                    waiter.set_result(None)
        self._server.task_moved(self)

    async def end(self) -> None:
        """Wait until it is over."""
        if self.ended:
            return
        waiter = loops.current().waiter()
        self._waiting.add(waiter)
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)

    # -- questions -------------------------------------------------------------------------

    async def ask(
        self, asks: Mapping[str, Ask], written: Callable[[Ask], dict[str, Any]]
    ) -> dict[str, Any]:
        """Wait for answers that come by ``tasks/update``."""
        loop = loops.current()
        for key, ask in asks.items():
            self.asks[key] = ask
            self.requests[key] = written(ask)
            self._answers[key] = loop.waiter()
        waiters = {key: self._answers[key] for key in asks}
        self._move(INPUT_REQUIRED)
        try:
            return {key: questions.parsed(asks[key], await one) for key, one in waiters.items()}
        finally:
            for key in asks:
                self._forget(key)
            if not self.ended and not self.asks:
                self._move(WORKING)

    def update(self, answers: Mapping[str, Any]) -> None:
        """Take answers; those that nobody waits for are dropped."""
        for key, answer in answers.items():
            waiter = self._answers.get(key)
            if waiter is not None and not waiter.done():
                self.asks.pop(key, None)
                self.requests.pop(key, None)
                waiter.set_result(answer)

    def _forget(self, key: str) -> None:
        self.asks.pop(key, None)
        self.requests.pop(key, None)
        self._answers.pop(key, None)

    async def channel(self) -> Exchange:
        """Wait until somebody waits for the result, and return through whom to ask."""
        while not self.channels:
            waiter = loops.current().waiter()
            self._seeking.append(waiter)
            await waiter
        return self.channels[-1]

    def attach(self, exchange: Exchange) -> None:
        """Let it ask through this exchange."""
        self.channels.append(exchange)
        for waiter in self._seeking:
            if not waiter.done():
                waiter.set_result(None)
        self._seeking.clear()

    def detach(self, exchange: Exchange) -> None:
        """Let it ask through this exchange no more."""
        self.channels.remove(exchange)

    def status_is(self, status: str) -> None:
        """Tell that it waits for input, or works on."""
        if not self.ended and self.status != status:
            self._move(status)


class TaskTable:
    """All tasks of a server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._tasks: dict[str, Task] = {}

    def __iter__(self) -> Any:
        return iter(list(self._tasks.values()))

    def new(self, exchange: Exchange, ttl: float) -> Task:
        """Return a new task of who asks, which can be asked about from now on.

        Raises:
            RpcError: There are too many.
        """
        from secrets import token_urlsafe

        self._sweep()
        if len(self._tasks) >= self._server.limits.tasks:
            raise RpcError(BUSY, f"more than {len(self._tasks)} tasks at once")
        task = Task(self._server, token_urlsafe(18), owner_of(exchange), ttl)
        self._tasks[task.id] = task
        return task

    def of(self, exchange: Exchange, id: str) -> Task:
        """Return a task that this caller may ask about.

        Raises:
            RpcError: There is none.
        """
        self._sweep()
        task = self._tasks.get(id)
        if task is None or task.owner != owner_of(exchange):
            raise RpcError(INVALID_PARAMS, "Task not found: it is unknown, or its time is over")
        return task

    def all_of(self, exchange: Exchange) -> list[Task]:
        """Return all tasks that this caller may ask about, by their ids."""
        self._sweep()
        owner = owner_of(exchange)
        return sorted((one for one in self if one.owner == owner), key=lambda one: one.id)

    def forsake(self, session: Session) -> None:
        """Cancel the tasks of a session that is over: nobody else may ask about them."""
        for task in self:
            if task.owner is session:
                task.cancel("the session is over")
                del self._tasks[task.id]

    def _sweep(self) -> None:
        now = self._server.clock()
        for task in self:
            if now - task.created > task.ttl:
                task.cancel("its time to live is over")
                del self._tasks[task.id]

    def end(self) -> None:
        """Cancel all of them."""
        for task in self:
            task.cancel("the server stops")
        self._tasks.clear()


def owner_of(exchange: Exchange) -> object:
    """Return whose tasks these are: the subject's, else the session's, else nobody's."""
    if exchange.peer.subject is not None:
        return exchange.peer.subject
    session = exchange.session
    return session if exchange.era.name == "handshake" else None


def _written(moment: float) -> str:
    from datetime import UTC, datetime

    stamp = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    return stamp.replace("+00:00", "Z")
