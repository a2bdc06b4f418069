"""The course of one task: asked about, answered and kept, until its outcome is known.

While somebody waits for it, one job asks the server about it, as often as the server likes, and
answers what the task asks, each thing once. The job ends when nobody waits any more; what was
learnt stays. Over a restart of the server it goes on, as long as the new life knows the task.
Which version is spoken it does not know: the era says what the next step is.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Protocol, assert_never

import anyio
from msgspec import UNSET

from mcpclient.features.leeway import Leeway
from mcpclient.features.vigil import Vigil
from mcpclient.ground.errors import (
    CallCancelled,
    CallLost,
    CallTimedOut,
    LocalProtocolError,
    McpClientError,
    RemoteProtocolError,
    ReplyError,
    ServerDied,
)
from mcpclient.ground.text import printable, seconds
from mcpclient.protocol import methods
from mcpclient.protocol.eras import NoTasks
from mcpclient.protocol.eras.tasks import (
    COMPLETED,
    ENDED,
    FAILED,
    WORKING,
    Again,
    Cancelled,
    Done,
    Failed,
    Fetch,
    Reply,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw

    from mcpclient.connection.caller import Caller, Timeout
    from mcpclient.connection.connection import Connection
    from mcpclient.connection.progress import Progress
    from mcpclient.loops.base import Loop
    from mcpclient.protocol.eras.tasks import Step, Task, Tasks

_log = logging.getLogger("mcpclient")
# Between two questions about one task, in seconds: at the least and at the most, whatever the
# server says. One that says nothing is asked after _FIRST, then ever more slowly, up to _CALM.
_SOONEST, _LATEST = 0.02, 60.0
_FIRST, _CALM = 0.1, 5.0
# How often in a row a question may fail before those who wait are told.
_MISSES = 3
# Where the server wants to be asked so seldom, news are worth asking for.
_SELDOM = 1.0
# Refusals that no patience mends: no such method, or nothing of the kind for us.
_FINAL = frozenset({methods.METHOD_NOT_FOUND, methods.MISSING_CAPABILITY})


class Home(Protocol):
    """What a course needs of its server.

    Attributes:
        caller: Asks the server.
        loop: The loop that runs this code.
        most: How long a wait may become by progress, in seconds; None for no limit.
    """

    caller: Caller
    loop: Loop
    most: float | None

    async def answer(self, requests: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return the answers to what a task asks, or raise InputRefused."""

    def follow(self, course: Course) -> None:
        """It is being asked about; whether news would help may have changed."""

    def unfollow(self, course: Course) -> None:
        """It is not asked about any more."""


class Course:
    """What is known of one task, and who waits for more.

    Attributes:
        id: The server's name for it, or None if there never was a task.
        task: It as last told, or None.
        outcome: The result, or why there is none, or None before it is known.
        changes: How often the status changed.
        vigil: Those who wait for news of it.
    """

    def __init__(self, home: Home, id: str | None = None) -> None:
        self.id = id
        self.task: Task | None = None
        self.outcome: Raw | McpClientError | None = None
        self.changes = 0
        self._home = home
        self._step: Step | None = None
        # Whether the status must be asked for before anything else.
        self._due = True
        self.vigil = Vigil(home.loop, self._run, f"task of {home.caller.name}")
        self._news: anyio.Event | None = None
        self._pause = _FIRST
        self._cancelled = False
        # Answers by key, and which of them the server has (TSK-13).
        self._answers: dict[str, Any] = {}
        self._delivered: set[str] = set()
        self._leeway = Leeway(home.most)
        self._token: tuple[Connection, int] | None = None

    @property
    def server(self) -> str:
        """The server's name."""
        return self._home.caller.name

    @property
    def status(self) -> str:
        """The status as last told."""
        return self.task.status if self.task is not None else WORKING

    @property
    def ended(self) -> bool:
        """Whether it has ended, though the outcome may have to be fetched yet."""
        return self.outcome is not None or (self._step is not None and self.status in ENDED)

    @property
    def wants_news(self) -> bool:
        """Whether the server wants to be asked so seldom that news are worth asking for."""
        poll = self.task.poll if self.task is not None else None
        return poll is not None and poll >= _SELDOM

    # -- how it begins ---------------------------------------------------------------------

    def settle(self, result: Raw) -> None:
        """It has this result, and never was a task."""
        self.outcome = result

    def begin(self, rules: Tasks, task: Task) -> None:
        """It is this task, just made or found in a list."""
        self.id = task.id
        if rules.directed or task.status == WORKING:
            self._take(rules, task)
            self._due = False
        elif self.task is None:
            # What came along is not all of it: the rest is there for the asking.
            self.task = task
            self.changes += 1

    def moving(self, on_progress: Progress) -> Progress:
        """Return a handler of progress that starts the waiting anew, too."""

        def told(progress: float, total: float | None, message: str | None) -> Any:
            self._leeway.moved()
            return on_progress(progress, total, message)

        return told

    def keep(self, connection: Connection, id: int) -> None:
        """Progress comes by this token until it ends (PRG-06)."""
        self._token = (connection, id)

    # -- waiting ---------------------------------------------------------------------------

    async def result(self, limit: float | None, then: str, begun: float | None = None) -> Raw:
        """Wait for the result as it came, or raise why there is none.

        Args:
            limit: Seconds, None for no limit.
            then: What becomes of the task if they run out, for the error.
            begun: When they began, by the monotonic clock; now if not given.
        """
        begun = time.monotonic() if begun is None else begun
        idle = self._leeway.idle()
        while self.outcome is None:
            left = self._leeway.left(begun, idle, limit)
            if left is not None and left <= 0:
                waited = seconds(limit or 0.0)
                problem = f"the task {self._named} did not end within {waited}; {then}"
                raise CallTimedOut(problem, method=methods.TOOLS_CALL, server=self.server)
            await self.vigil.wait(left)
        if isinstance(self.outcome, McpClientError):
            raise self.outcome.again()
        return self.outcome

    def nudge(self) -> None:
        """There may be news: ask at once (LTSK-07)."""
        if self._news is not None:
            self._news.set()

    def end(self, problem: McpClientError) -> None:
        """Nobody is to be asked any more: tell those who wait."""
        self.vigil.wake(problem)
        self.vigil.end()

    # -- the job ---------------------------------------------------------------------------

    async def _run(self) -> None:
        misses = 0
        try:
            while self.outcome is None:
                self._home.follow(self)
                try:
                    await self._advance()
                    if not isinstance(self._step, Fetch):  # else nothing came of it yet
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
            self.vigil.wake(problem)
        except Exception:  # the job's outer edge: a fault of ours must let nobody wait for ever
            _log.exception("%s ! the task %s failed", self.server, self._named)
            self.vigil.wake(McpClientError("a fault in mcpclient itself; the log tells more"))
        finally:
            self._home.unfollow(self)

    async def _advance(self) -> None:
        """Do what is to be done next, whatever that is."""
        step = self._step
        if self._due or step is None:
            self._news = anyio.Event()  # what comes from here on is newer than the answer
            await self.poll(UNSET)
            return
        if isinstance(step, Fetch):
            await self._fetch()
            return
        if isinstance(step, Reply) and any(one not in self._delivered for one in step.requests):
            await self._reply(step.requests)
        await self._sleep()
        self._due = not self.ended  # it may have been cancelled from this side meanwhile

    async def _sleep(self) -> None:
        poll = self.task.poll if self.task is not None else None
        if poll is None:
            pause = self._pause
            self._pause = min(pause * 1.5, _CALM)
        else:
            pause = min(max(poll, _SOONEST), _LATEST)
        news = self._news = self._news or anyio.Event()
        # However many notices come, the server is not asked more often than this.
        await anyio.sleep(_SOONEST)
        with anyio.move_on_after(pause - _SOONEST):
            await news.wait()

    async def poll(self, timeout: Timeout) -> None:
        """Ask for the status."""
        try:
            rules, told = await self._ask(methods.TASKS_GET, timeout)
        except ReplyError as refused:
            if refused.code == methods.INVALID_PARAMS and not self.ended:
                raise self._unknown(refused) from refused
            raise
        self._take(rules, rules.told(told))
        self._due = False

    async def cancel(self, timeout: Timeout) -> None:
        """Ask the server to cancel it."""
        try:
            rules, told = await self._ask(methods.TASKS_CANCEL, timeout)
        except ReplyError as refused:
            if refused.code != methods.INVALID_PARAMS:
                raise
            await self.poll(timeout)  # it has ended already (LTSK-09), or is unknown
            if not self.ended:
                raise
            return
        self._cancelled = True
        task = rules.cancelled(told)
        if task is not None:
            self._take(rules, task)
        self.nudge()

    async def _fetch(self) -> None:
        """Get the outcome; if the task still runs, this takes as long as it does."""
        task = self.task
        assert task is not None, "only what is known is fetched"
        try:
            rules, result = await self._ask(methods.TASKS_RESULT, None)
        except ReplyError as refused:
            if task.status == FAILED:
                self._conclude(refused)
                return
            if task.status == COMPLETED and refused.code == methods.INVALID_PARAMS:
                raise self._unknown(refused) from refused
            raise  # was it the task that failed, or this request? The status will tell
        self._renew(rules.fetched(task, result))
        self._conclude(result)

    async def _reply(self, requests: Mapping[str, Mapping[str, Any]]) -> None:
        """Answer what is asked and was not answered yet; nobody is asked twice (TSK-13)."""
        new = {key: one for key, one in requests.items() if key not in self._answers}
        if new:
            with self._leeway.asking():
                self._answers.update(await self._home.answer(new))
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
        if self.id is None:
            raise LocalProtocolError("the tool answered at once; there is no task to ask about")
        connection, left = await self._home.caller.line(timeout, method)
        rules = connection.session.tasks()
        if isinstance(rules, NoTasks):
            raise LocalProtocolError(f'no tasks with the server "{self.server}": {rules.barred}')
        if method == methods.TASKS_CANCEL and not rules.cancels:
            raise LocalProtocolError(f'the server "{self.server}" does not offer to cancel tasks')
        self._leeway.use(connection)
        params = {"taskId": self.id, **(more or {})}
        return rules, await connection.request(method, params, left)

    # -- what was learnt -------------------------------------------------------------------

    def _take(self, rules: Tasks, task: Task) -> None:
        if task.id != self.id:
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
                self._conclude(self._gone())
            case Again() | Fetch() | Reply():
                self.vigil.wake()
            case _:
                assert_never(step)

    def _renew(self, task: Task) -> None:
        before = self.task
        self.task = task
        if before is None or (before.status, before.message) != (task.status, task.message):
            self.changes += 1
            _log.info("%s = task %s: %s", self.server, self._named, task.status)

    def _conclude(self, outcome: Raw | McpClientError) -> None:
        self.outcome = outcome
        if self._token is not None:
            connection, id = self._token
            connection.kept.drop(id)
        self.vigil.wake()

    def _unknown(self, refused: ReplyError) -> McpClientError:
        if self._cancelled:
            self._conclude(self._gone())  # a task that was cancelled may be forgotten at once
            return self._gone()
        said = printable(refused.message, 200)
        return CallLost(
            f"the server does not know the task {self._named} (any more): {said}",
            method=refused.method,
            server=self.server,
        )

    def _gone(self) -> CallCancelled:
        message = self.task.message if self.task is not None else None
        said = f" ({printable(message, 200)})" if message else ""
        problem = f"the task {self._named} was cancelled{said}"
        return CallCancelled(problem, method=methods.TOOLS_CALL, server=self.server)

    @property
    def _named(self) -> str:
        return repr(printable(self.id or "", 100))
