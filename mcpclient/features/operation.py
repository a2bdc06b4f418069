"""One tool that runs as a task: its status, what it asks, its result. Knows no version.

While somebody waits for it, one job asks the server about it, as often as the server likes, and
answers what the task asks, each thing once. The job ends when nobody waits any more; what was
learnt stays. Over a restart of the server it goes on, as long as the new life knows the task.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Protocol, Self

import anyio
from msgspec import UNSET

from mcpclient.ground.errors import (
    CallCancelled,
    CallLost,
    CallTimedOut,
    LocalProtocolError,
    McpClientError,
    RemoteProtocolError,
    ReplyError,
    ServerDied,
    ToolError,
)
from mcpclient.ground.text import printable, seconds
from mcpclient.protocol import methods, payload
from mcpclient.protocol.eras import NoTasks
from mcpclient.protocol.eras.tasks import (
    ENDED,
    FAILED,
    INPUT_REQUIRED,
    WORKING,
    Again,
    Cancelled,
    Done,
    Failed,
    Fetch,
    Reply,
)
from mcpclient.protocol.types import ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw

    from mcpclient.connection.caller import Caller, Timeout
    from mcpclient.connection.connection import Connection
    from mcpclient.connection.progress import Progress
    from mcpclient.loops.base import Loop, Stop, Waiter
    from mcpclient.protocol.eras.tasks import Step, Task, Tasks

_log = logging.getLogger("mcpclient")
# Between two questions about one task, in seconds: at the least and at the most, whatever the
# server says. One that says nothing is asked after _FIRST, then ever more slowly, up to _CALM.
_SOONEST, _LATEST = 0.02, 60.0
_FIRST, _CALM = 0.1, 5.0
# How often in a row a question may fail before those who wait are told.
_MISSES = 3
# For how long the job goes on for nobody: a loop over the status comes back soon.
_LINGER = 1.0
# Refusals that no patience mends: no such method, or nothing of the kind for us.
_FINAL = frozenset({methods.METHOD_NOT_FOUND, methods.MISSING_CAPABILITY})


class Home(Protocol):
    """What an operation needs of its server."""

    caller: Caller
    loop: Loop

    def patience(self, timeout: Timeout) -> float | None:
        """Return how long :meth:`Operation.result` waits."""

    def most(self, limit: float) -> float | None:
        """Return how long a wait may become by progress."""

    async def answer(self, requests: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return the answers to what a task asks, or raise InputRefused."""

    def began(self, operation: Operation) -> None:
        """The operation is being asked about."""

    def rests(self, operation: Operation) -> None:
        """It is not any more."""

    def give_up(self, operation: Operation) -> None:
        """Have the server cancel the task, without waiting for it to say so."""


class Operation:
    """A tool that runs at a server, or ran there: ``start_tool`` returns it.

    ``await operation.result()`` waits for the end. ``async for status in operation`` gives the
    status now and after each change, the last one included; what comes and goes between two
    steps of the loop is not seen. Both answer what the task asks, by the manager's ``on_sample``,
    ``on_elicit`` and ``roots``. Without either, nothing is sent.
    """

    def __init__(self, home: Home, id: str | None, tool: str = "") -> None:
        self._home = home
        self._id = id
        self.tool = tool
        self._task: Task | None = None
        self._step: Step | None = None
        self._outcome: Raw | McpClientError | None = None
        # How often the status changed, and whether it must be asked for before anything else.
        self.changes = 0
        self._due = True
        self._job: Stop | None = None
        self._linger: Stop | None = None
        self._waiters: set[Waiter] = set()
        self._news: anyio.Event | None = None
        self._pause = _FIRST
        self._cancelled = False
        # Answers by key, and which of them the server has (TSK-13).
        self._answers: dict[str, Any] = {}
        self._delivered: set[str] = set()
        # For how long a person, not the server, was waited for.
        self._asked = 0.0
        self._asking_since: float | None = None
        self._connection: Connection | None = None
        self._held = 0.0
        self._moved = 0.0
        self._token: tuple[Connection, int] | None = None

    # -- what is known ---------------------------------------------------------------------

    @property
    def id(self) -> str | None:
        """The server's name for the task, to be stored; None if the tool answered at once."""
        return self._id

    @property
    def server(self) -> str:
        """The server's name."""
        return self._home.caller.name

    @property
    def status(self) -> str:
        """``working``, ``input_required``, ``completed``, ``failed`` or ``cancelled``.

        As last told; one that was picked up is ``working`` until the server was asked.
        """
        return self._task.status if self._task is not None else WORKING

    @property
    def message(self) -> str | None:
        """What the server says about the status, or None."""
        return self._task.message if self._task is not None else None

    @property
    def created_at(self) -> str | None:
        """When it was made, as the server wrote it, or None."""
        return self._task.created_at if self._task is not None else None

    @property
    def ttl(self) -> float | None:
        """For how many seconds from then the server keeps it; None if for ever or unknown."""
        return self._task.ttl if self._task is not None else None

    @property
    def poll_interval(self) -> float | None:
        """How many seconds the server wants between two questions, or None."""
        return self._task.poll if self._task is not None else None

    @property
    def raw(self) -> dict[str, Any]:
        """What the server last told of the task, as received; empty if nothing yet."""
        return payload.decode(self._task.data, dict[str, Any]) if self._task is not None else {}

    @property
    def ended(self) -> bool:
        """Whether it has ended, one way or another."""
        return self._outcome is not None or (self._task is not None and self.status in ENDED)

    def __repr__(self) -> str:
        return f"<Operation {self._id!r} of {self.server!r}: {self.status}>"

    # -- verbs -----------------------------------------------------------------------------

    async def refresh(self, *, timeout: Timeout = UNSET) -> Self:
        """Ask the server for the status, once, and return the operation.

        Raises:
            CallLost: The server does not know the task, or not any more.
        """
        if not self.ended:
            await self._poll(timeout)
        return self

    async def result(self, *, timeout: Timeout = UNSET) -> ToolResult:
        """Wait for the end and return the tool's result. May be asked for more than once.

        Args:
            timeout: Seconds; left out, it is ``Timeouts.call_max``. The task goes on when it is
                over, and when the caller is cancelled. Time in which a person is asked does not
                count; progress starts it anew.

        Raises:
            ToolError: The tool answered that it failed.
            ReplyError: The server answered no.
            CallCancelled: The task was cancelled.
            CallLost: The server does not know the task any more: it expired, or the server was
                restarted and does not store its tasks.
            CallTimedOut: It did not end in time.
            InputRefused: It asks what nothing here answers.
        """
        limit = self._home.patience(timeout)
        result = ToolResult(await self.outcome(limit, "it goes on; wait again, or cancel() it"))
        if result.is_error or self.status == FAILED:
            text = result.error_text
            raise ToolError(text, result, tool=self.tool, server=self.server)
        return result

    async def cancel(self, *, timeout: Timeout = UNSET) -> None:
        """Have the server cancel the task. It may decide otherwise: :meth:`result` tells.

        Raises:
            LocalProtocolError: The server does not offer to cancel tasks.
            CallLost: It does not know the task any more.
        """
        if self.ended:
            return
        try:
            rules, told = await self._ask(methods.TASKS_CANCEL, timeout)
        except ReplyError as refused:
            if refused.code != methods.INVALID_PARAMS:
                raise
            await self._poll(timeout)  # it has ended already (LTSK-09), or is unknown
            if not self.ended:
                raise
            return
        self._cancelled = True
        task = rules.cancelled(told)
        if task is not None:
            self._take(rules, task)
        self.nudge()

    def __aiter__(self) -> Changes:
        return Changes(self)

    # -- for the server's side of the house ------------------------------------------------

    async def outcome(self, limit: float | None, then: str) -> Raw:
        """Wait for the result as it came, or raise why there is none.

        Args:
            limit: Seconds, None for no limit.
            then: What becomes of the task if they run out, for the error.
        """
        begun = time.monotonic()
        idle = self._idle()
        while self._outcome is None:
            left = None
            if limit is not None:
                left = self._until(begun, limit) + self._idle() - idle - time.monotonic()
                if left <= 0:
                    problem = f"the task {self._named} did not end within {seconds(limit)}; {then}"
                    raise CallTimedOut(problem, method=methods.TOOLS_CALL, server=self.server)
            await self.wait(left)
        if isinstance(self._outcome, McpClientError):
            raise self._outcome.again()
        return self._outcome

    async def wait(self, left: float | None = None) -> None:
        """Wait for a change, for so many seconds; raise what went wrong with asking."""
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        loop = self._home.loop
        waiter = loop.waiter()
        self._waiters.add(waiter)

        def expire() -> None:
            if not waiter.done():
                waiter.set_result(None)

        timer = None if left is None else loop.later(left, expire)
        try:
            if self._job is None and not self.ended_for_good:
                self._job = loop.job(self._run, f"task of {self.server}")
            problem = await waiter
        finally:
            self._waiters.discard(waiter)
            if timer is not None:
                timer.cancel()
            if not self._waiters and self._job is not None:
                self._linger = loop.later(_LINGER, self.rest)
        if problem is not None:
            raise problem.again()

    @property
    def ended_for_good(self) -> bool:
        """Whether the outcome is known too, so that there is nothing more to ask."""
        return self._outcome is not None

    def settle(self, result: Raw) -> None:
        """It has this result, without ever having been a task."""
        self._outcome = result

    def start(self, rules: Tasks, task: Task) -> None:
        """It is this task, just made."""
        self._id = task.id
        if task.status == WORKING:
            self._take(rules, task)
            self._due = False
        else:
            # What came along is not all of it: the rest is there for the asking.
            self._task = task
            self.changes += 1

    def listen(self, connection: Connection, id: int) -> None:
        """Progress comes by this token until it ends (PRG-06)."""
        self._token = (connection, id)

    def moving(self, on_progress: Progress) -> Progress:
        """Return a handler of progress that starts the waiting anew, too."""

        def told(progress: float, total: float | None, message: str | None) -> Any:
            self._moved = time.monotonic()
            return on_progress(progress, total, message)

        return told

    def nudge(self) -> None:
        """There may be news: ask at once (LTSK-07)."""
        if self._news is not None:
            self._news.set()

    def rest(self) -> None:
        """Ask no more, unless somebody waits."""
        self._linger = None
        if not self._waiters and self._job is not None:
            self._job.cancel()

    def end(self, problem: McpClientError) -> None:
        """Nobody can be asked any more: tell those who wait."""
        self._tell(problem)
        self.rest()

    @property
    def wants_news(self) -> bool:
        """Whether asking is so seldom that news are worth asking for."""
        poll = self.poll_interval
        return self._id is not None and poll is not None and poll >= _LINGER

    # -- the job ---------------------------------------------------------------------------

    async def _run(self) -> None:
        self._home.began(self)
        misses = 0
        try:
            while self._outcome is None:
                try:
                    await self._advance()
                    misses = 0
                except ServerDied:
                    self._due = True  # the next life is asked, if there is one
                except (ReplyError, RemoteProtocolError, CallTimedOut) as problem:
                    misses += 1
                    code = problem.code if isinstance(problem, ReplyError) else 0
                    if misses > _MISSES or code in _FINAL:
                        raise
                    self._due = True
                    await self._sleep()
        except McpClientError as problem:
            self._tell(problem)
        except Exception:  # the job's outer edge: a fault of ours must not let anybody wait
            _log.exception("%s ! the task %s failed", self.server, self._named)
            self._tell(McpClientError("a fault in mcpclient itself; see the log"))
        finally:
            self._job = None
            if self._linger is not None:
                self._linger.cancel()
                self._linger = None
            self._home.rests(self)
            self._wake()  # whoever came meanwhile begins anew

    async def _advance(self) -> None:
        """Do what is to be done next, whatever that is."""
        step = self._step
        if self._due or step is None:
            await self._poll(UNSET)
            return
        if isinstance(step, Fetch):
            await self._fetch()
            return
        if isinstance(step, Reply) and any(one not in self._delivered for one in step.requests):
            await self._reply(step.requests)
        await self._sleep()
        # It may have been cancelled from this side meanwhile.
        self._due = not self.ended

    async def _sleep(self) -> None:
        poll = self.poll_interval
        if poll is None:
            pause = self._pause
            self._pause = min(pause * 1.5, _CALM)
        else:
            pause = min(max(poll, _SOONEST), _LATEST)
        if self._news is None:
            self._news = anyio.Event()
        # However many notices come, the server is not asked more often than this.
        await anyio.sleep(_SOONEST)
        with anyio.move_on_after(pause - _SOONEST):
            await self._news.wait()

    async def _poll(self, timeout: Timeout) -> None:
        self._news = anyio.Event()  # what comes from here on is newer than the answer
        try:
            rules, told = await self._ask(methods.TASKS_GET, timeout)
        except ReplyError as refused:
            if refused.code == methods.INVALID_PARAMS and not self.ended:
                raise self._unknown(refused) from refused
            raise
        self._take(rules, rules.told(told))
        self._due = False

    async def _fetch(self) -> None:
        """Get the outcome; if the task still runs, this takes as long as it does."""
        task = self._task
        assert task is not None
        try:
            rules, result = await self._ask(methods.TASKS_RESULT, None)
        except ReplyError as refused:
            if task.status == FAILED:
                self._conclude(refused)
                return
            if task.status == INPUT_REQUIRED:
                await self._poll(UNSET)  # was it the task that failed, or this request?
                if self.status not in (WORKING, INPUT_REQUIRED):
                    return
            elif refused.code == methods.INVALID_PARAMS:
                raise self._unknown(refused) from refused
            raise
        self._renew(rules.fetched(task, result))
        self._conclude(result)

    async def _reply(self, requests: Mapping[str, Mapping[str, Any]]) -> None:
        """Answer what is asked and was not answered yet; it is asked in vain only once (TSK-13)."""
        new = {key: one for key, one in requests.items() if key not in self._answers}
        if new:
            self._asking_since = time.monotonic()
            try:
                self._answers.update(await self._home.answer(new))
            finally:
                self._asked += time.monotonic() - self._asking_since
                self._asking_since = None
        ready = {key: self._answers[key] for key in requests if key not in self._delivered}
        try:
            await self._ask(methods.TASKS_UPDATE, UNSET, {"inputResponses": ready})
        except ReplyError as refused:
            # It ended meanwhile, or wants no answer any more: the next status tells.
            if refused.code != methods.INVALID_PARAMS:
                raise
        self._delivered.update(ready)

    async def _ask(
        self, method: str, timeout: Timeout, more: Mapping[str, Any] | None = None
    ) -> tuple[Tasks, Raw]:
        if self._id is None:
            raise LocalProtocolError("the tool answered at once; there is no task to ask about")
        connection, left = await self._home.caller.line(timeout, method)
        rules = rules_of(connection)
        if isinstance(rules, NoTasks):
            raise LocalProtocolError(f'no tasks with the server "{self.server}": {rules.barred}')
        if method == methods.TASKS_CANCEL and not rules.cancels:
            raise LocalProtocolError(f'the server "{self.server}" does not offer to cancel tasks')
        if connection is not self._connection:
            self._held = self._idle() - self._asking() - connection.deadlines.held
            self._connection = connection
        params = {"taskId": self._id, **(more or {})}
        return rules, await connection.request(method, params, left)

    # -- what was learnt -------------------------------------------------------------------

    def _take(self, rules: Tasks, task: Task) -> None:
        if task.id != self._id:
            told = printable(task.id, 100)
            raise RemoteProtocolError(f"asked for the task {self._named}, told of {told!r}")
        if self.ended:
            return  # and nothing follows that
        step = rules.step(task)
        self._renew(task)
        self._step = step
        match step:
            case Done(result=result):
                self._conclude(result)
            case Failed(code=code, message=message, data=data):
                facts = {"method": methods.TOOLS_CALL, "server": self.server}
                self._conclude(ReplyError(code, message, data, **facts))
            case Cancelled():
                self._conclude(self._gone("the task was cancelled"))
            case Again() | Fetch() | Reply():
                pass

    def _renew(self, task: Task) -> None:
        before = self._task
        self._task = task
        if before is None or (before.status, before.message) != (task.status, task.message):
            self.changes += 1
            _log.info("%s = task %s: %s", self.server, self._named, task.status)
            self._wake()

    def _conclude(self, outcome: Raw | McpClientError) -> None:
        self._outcome = outcome
        if self._token is not None:
            connection, id = self._token
            connection.kept.drop(id)
        self._wake()

    def _unknown(self, refused: ReplyError) -> McpClientError:
        if self._cancelled:
            # A task that was cancelled may be forgotten at once.
            problem: McpClientError = self._gone("the task was cancelled")
            self._conclude(problem)
            return problem
        said = printable(refused.message, 200)
        return CallLost(
            f"the server does not know the task {self._named} (any more): {said}",
            method=refused.method,
            server=self.server,
        )

    def _gone(self, problem: str) -> CallCancelled:
        said = f" ({printable(self.message, 200)})" if self.message else ""
        return CallCancelled(f"{problem}{said}", method=methods.TOOLS_CALL, server=self.server)

    def _tell(self, problem: McpClientError) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(problem)

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    # -- time ------------------------------------------------------------------------------

    def _until(self, begun: float, limit: float) -> float:
        """Return when a wait is over: progress moves it, up to a hard end."""
        if self._moved <= begun:
            return begun + limit
        most = self._home.most(limit)
        end = self._moved + limit
        return end if most is None else min(end, begun + most)

    def _asking(self) -> float:
        since = self._asking_since
        return self._asked + (0.0 if since is None else time.monotonic() - since)

    def _idle(self) -> float:
        """Return for how long nobody could blame the server, since it waited for us."""
        held = self._connection.deadlines.held if self._connection is not None else 0.0
        return self._asking() + held + self._held

    @property
    def _named(self) -> str:
        return repr(printable(self._id or "", 100))


class Changes:
    """The status of an operation, now and after each change."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation
        self._seen = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        operation = self._operation
        while operation.changes == self._seen:
            if operation.ended:
                raise StopAsyncIteration
            await operation.wait()
        self._seen = operation.changes
        return operation.status


def rules_of(connection: Connection) -> Tasks | NoTasks:
    """Return how the server at the other end runs tasks."""
    terms = connection.session.terms
    return connection.session.era.tasks(terms.capabilities if terms is not None else {})
