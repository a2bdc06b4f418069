"""The tasks of one server: which calls become some, and who is asked about which.

It knows no version: the era tells whether the client or the server decides, and how. Where no
task can come about, none of this stands in a call's way.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from msgspec import Raw

from mcpclient.features import catalog, rounds
from mcpclient.features.operation import Operation
from mcpclient.ground.errors import (
    CallLost,
    InputRefused,
    LocalProtocolError,
    McpClientError,
    RemoteProtocolError,
    ReplyError,
    UseAfterClose,
)
from mcpclient.protocol import methods
from mcpclient.protocol.eras import NoTasks, OtherResult
from mcpclient.protocol.extensions import TASK
from mcpclient.protocol.types import Tool, ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcpclient.connection.caller import Caller, Timeout
    from mcpclient.connection.connection import Connection
    from mcpclient.connection.progress import Progress
    from mcpclient.features.asks import Asks
    from mcpclient.features.course import Course
    from mcpclient.features.subscriptions import Subscriptions
    from mcpclient.ground.options import Limits, Timeouts
    from mcpclient.loops.base import Loop
    from mcpclient.protocol.eras.tasks import Tasks

# How a server refuses a plain call of a tool that must be a task (LTSK-03): as a method it does
# not have, or, some, as an invalid request.
_REFUSALS = frozenset({methods.METHOD_NOT_FOUND, -32600})
_REFUSED = f"MCP error {methods.METHOD_NOT_FOUND}"


class Operations:
    """The tasks of one server.

    Attributes:
        capable: The methods whose calls may become tasks, as far as is known: all that ever may
            while the server is not up.
        caller: Asks the server.
        epoch: How often the tools may have changed.
        loop: The loop that runs this code.
        most: ``Timeouts.call_max``.
    """

    caller: Caller
    most: float | None

    def __init__(self, server: Any, loop: Loop, asks: Asks, subscriptions: Subscriptions) -> None:
        """Begin with none; :meth:`serve` must follow.

        Args:
            server: Told to the handlers of asks.
            loop: The loop that runs this code.
            asks: The manager's handlers of what servers ask.
            subscriptions: Where news of tasks are asked for.
        """
        self.capable = methods.MAY_BE_TASKS
        self.epoch = 0
        self.loop = loop
        self._server = server
        self._asks = asks
        self._subscriptions = subscriptions
        self._rules: Tasks | NoTasks = NoTasks("it was not up yet")
        self._connection: Connection | None = None
        # All whom somebody holds, so that nobody is asked the same for two of them.
        self._known: WeakValueDictionary[str, Course] = WeakValueDictionary()
        self._watched: set[Course] = set()
        # How each tool runs, by name; None if the server was not asked yet in this life.
        self._support: dict[str, str] | None = None

    def serve(self, caller: Caller, timeouts: Timeouts, limits: Limits) -> None:
        """Ask in this way from now on."""
        self.caller = caller
        self.most = timeouts.call_max
        self._patience = timeouts.ask
        self._time = timeouts.call
        self._pages = limits.pages

    # -- what happens ----------------------------------------------------------------------

    def went_up(self, connection: Connection) -> None:
        """A life began."""
        self._connection = connection
        self._rules = connection.session.tasks()
        none = isinstance(self._rules, NoTasks)
        self.capable = frozenset() if none else methods.MAY_BE_TASKS

    def went_down(self) -> None:
        """It is over. Who sleeps is to ask the next life, or to hear that there is none."""
        self._connection = None
        self.forget_tools()
        self.capable = methods.MAY_BE_TASKS
        for course in list(self._watched):
            course.nudge()

    def close(self) -> None:
        """The server is removed."""
        for course in list(self._watched):
            name = self.caller.name
            course.end(UseAfterClose(f'the server "{name}" was removed, or its manager closed'))

    def noticed(self, params: Mapping[str, Any]) -> None:
        """There are news of a task: a hint, no more (LTSK-07)."""
        id = params.get("taskId")
        course = self._known.get(id) if isinstance(id, str) else None
        if course is not None:
            course.nudge()

    def learn(self, tools: list[Tool], epoch: int) -> None:
        """These are all the tools there are, or were when the epoch was this."""
        if epoch == self.epoch and self._directed:
            self._support = {tool.name: tool.task_support for tool in tools}

    def forget_tools(self) -> None:
        """They changed, or may have."""
        self.epoch += 1
        self._support = None

    # -- the verbs -------------------------------------------------------------------------

    async def start(
        self,
        caller: Caller,
        name: str,
        arguments: Mapping[str, Any] | None,
        ttl: float | None,
        timeout: Timeout,
        on_progress: Progress | None,
    ) -> Operation:
        """Call a tool as a task; see :meth:`mcpclient.manager.verbs.Verbs.start_tool`."""
        connection, left = await caller.line(timeout, methods.TOOLS_CALL)
        rules = connection.session.tasks()
        if isinstance(rules, NoTasks) or rules.barred:
            raise LocalProtocolError(
                f'the server "{caller.name}" runs no tool as a task: {rules.barred}; '
                f"use invoke_tool()"
            )
        params = {"name": name, "arguments": {} if arguments is None else arguments}
        if rules.directed:
            support = await self._support_of(caller, name, left)
            if support not in ("optional", "required"):
                raise LocalProtocolError(
                    f'the tool {name!r} of "{caller.name}" does not run as a task '
                    f"({support}); use invoke_tool()"
                )
            course = await self._create(caller, params, ttl, left, on_progress)
        else:
            course = await self._attempt(caller, params, left, on_progress)
        return Operation(course, self.most, name)

    def pick_up(self, id: str) -> Operation:
        """Return the operation of a task whose id was stored."""
        if type(id) is not str or not id:
            raise LocalProtocolError(f"a task's id is text, not {id!r}")
        return Operation(self._course(id), self.most)

    async def listed(self, caller: Caller, timeout: Timeout) -> list[Operation]:
        """Return the operations of all tasks that the server lists."""
        connection, left = await caller.line(timeout, methods.TASKS_LIST)
        rules = connection.session.tasks()
        if isinstance(rules, NoTasks) or not rules.lists:
            raise LocalProtocolError(f'the server "{caller.name}" does not list its tasks')
        from mcpclient.features import tasklist  # few ask for it

        found = []
        for task in await tasklist.tasks(connection, rules, left, self._pages):
            course = self._course(task.id)
            course.begin(rules, task)
            found.append(Operation(course, self.most))
        return found

    async def unseen(
        self,
        caller: Caller,
        call: Callable[[], Awaitable[Raw]],
        params: Mapping[str, Any],
        span: Callable[[], tuple[float, float | None]],
        on_progress: Progress | None,
    ) -> Raw:
        """Make a call and return what comes of it in the end, task or not.

        Args:
            caller: Who calls.
            call: Makes the call as an ordinary one.
            params: Its params.
            span: When the last round of it began, by the monotonic clock, and how long it may
                take.
            on_progress: Told of its progress.
        """
        made = None if self._must(params) else await self._plainly(caller, call, params, span)
        if isinstance(made, Raw):
            return made
        course = made or await self._create(caller, params, None, _left(span), on_progress)
        begun, limit = span()
        try:
            return await course.result(limit, "it was given up", begun)
        except BaseException as problem:  # a cancellation too: nobody waits for it any more
            # One that the server does not know needs no end.
            if type(problem) is not CallLost and not course.ended:
                course.vigil.end()
                if self._connection is not None and course.id is not None:
                    from mcpclient.features.creation import cancel

                    cancel(self._connection, course.id, self._time)
            raise

    # -- how a task comes about ------------------------------------------------------------

    async def _plainly(
        self,
        caller: Caller,
        call: Callable[[], Awaitable[Raw]],
        params: Mapping[str, Any],
        span: Callable[[], tuple[float, float | None]],
    ) -> Raw | Course | None:
        """Make an ordinary call; return its result, its task, or None if it must ask for one."""
        try:
            result = await call()
        except OtherResult as other:
            if other.kind != TASK:
                raise
            return self._adopt(other.result)
        except ReplyError as refused:
            if refused.code in _REFUSALS and await self._required(caller, params, span):
                return None
            raise
        # Another call may have found out meanwhile how the tool runs.
        unsure = self._directed and (self._support is None or self._must(params))
        if unsure and _refuses(result) and await self._required(caller, params, span):
            return None
        return result

    async def _attempt(
        self,
        caller: Caller,
        params: Mapping[str, Any],
        left: float | None,
        on_progress: Progress | None,
    ) -> Course:
        """Make a call of which the server may make a task."""
        try:
            result = await caller.plain(methods.TOOLS_CALL, params, left, on_progress)
        except OtherResult as other:
            if other.kind != TASK:
                raise
            return self._adopt(other.result)
        course = self._course()
        course.settle(result)
        return course

    def _adopt(self, result: Raw) -> Course:
        """Return the course of a task that the server made."""
        rules = self._rules
        assert not isinstance(rules, NoTasks), "else the era would have refused the result"
        task = rules.made(result)
        assert task is not None
        course = self._course(task.id)
        course.begin(rules, task)
        return course

    async def _create(
        self,
        caller: Caller,
        params: Mapping[str, Any],
        ttl: float | None,
        left: float | None,
        on_progress: Progress | None,
    ) -> Course:
        """Make a call that asks to become a task."""
        connection, left = await caller.line(left, methods.TOOLS_CALL)
        rules = connection.session.tasks()
        if isinstance(rules, NoTasks):
            raise LocalProtocolError(f'no tasks with the server "{caller.name}": {rules.barred}')
        from mcpclient.features.creation import Creation

        course = self._course()
        told = None if on_progress is None else course.moving(on_progress)
        creation = Creation(connection, rules, rules.augmented(params, ttl), told)
        result = await creation.answer(left)
        task = rules.made(result)
        if task is None:
            # Not what was asked for, but it is the answer.
            connection.kept.drop(creation.id)
            course.settle(result)
            return course
        course.begin(rules, task)
        course.keep(connection, creation.id)
        self._known[task.id] = course
        return course

    @property
    def _directed(self) -> bool:
        """Whether tools run as tasks here, and only if the client says so."""
        return not isinstance(self._rules, NoTasks) and self._rules.directed

    def _must(self, params: Mapping[str, Any]) -> bool:
        """Return whether it is known that a call must be a task. Who says so himself knows."""
        name = params.get("name")
        return (
            self._support is not None
            and isinstance(name, str)
            and self._support.get(name) == "required"
            and "task" not in params
        )

    async def _required(
        self,
        caller: Caller,
        params: Mapping[str, Any],
        span: Callable[[], tuple[float, float | None]],
    ) -> bool:
        """Return whether a call was refused only since it was no task."""
        name = params.get("name")
        if not self._directed or not isinstance(name, str) or "task" in params:
            return False
        try:
            return await self._support_of(caller, name, _left(span)) == "required"
        except McpClientError:
            return False  # the refusal says more

    async def _support_of(self, caller: Caller, name: str, left: float | None) -> str:
        """Return how a tool runs, as the server lists it."""
        if self._support is not None and name in self._support:
            return self._support[name]
        epoch = self.epoch
        tools = await catalog.listed(caller, methods.TOOLS_LIST, Tool, left, self._pages)
        self.learn(tools, epoch)
        return next((one.task_support for one in tools if one.name == name), "unknown")

    def _course(self, id: str | None = None) -> Course:
        from mcpclient.features.course import Course  # few servers have tasks

        if id is None:
            return Course(self)
        course = self._known.get(id)
        if course is None:
            course = self._known[id] = Course(self, id)
        return course

    # -- for the courses -------------------------------------------------------------------

    async def answer(self, requests: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
        """Return the answers to what a task asks; all of it is answered, or none."""
        needed = InputRefused(methods.TOOLS_CALL, requests, server=self.caller.name)
        return await rounds.answers(needed, self._asks, self._server, self._patience)

    def follow(self, course: Course) -> None:
        """See :class:`~mcpclient.features.course.Home`."""
        self._watched.add(course)
        self._want_news()

    def unfollow(self, course: Course) -> None:
        """See :class:`~mcpclient.features.course.Home`."""
        self._watched.discard(course)
        self._want_news()

    def _want_news(self) -> None:
        rules = self._rules
        if not isinstance(rules, NoTasks) and rules.listens:
            ids = (one.id for one in self._watched if one.wants_news)
            self._subscriptions.want_tasks(frozenset(id for id in ids if id is not None))


def _refuses(result: Raw) -> bool:
    """Return whether a result is how the SDK of TypeScript refuses a tool that must be a task."""
    try:
        told = ToolResult(result)
        return told.is_error and told.text.startswith(_REFUSED)
    except RemoteProtocolError:
        return False


def _left(span: Callable[[], tuple[float, float | None]]) -> float | None:
    begun, limit = span()
    return None if limit is None else max(begun + limit - time.monotonic(), 0.001)
