"""One tool that runs as a task, as its user sees it: status, message, result, cancel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from msgspec import UNSET

from mcpclient.ground.errors import ToolError
from mcpclient.protocol import payload
from mcpclient.protocol.types import ToolResult

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpclient.connection.caller import Timeout
    from mcpclient.features.course import Course

    Check = Callable[[Callable[..., Awaitable[ToolResult]], float | None], Awaitable[ToolResult]]


class Operation:
    """A tool that runs at a server, or ran there: ``start_tool`` and ``operation`` return it.

    ``await operation.result()`` waits for the end. ``async for status in operation`` gives the
    status now and after each change, the last one included; what comes and goes between two
    steps of the loop is not seen. Both answer what the task asks, by the manager's ``on_sample``,
    ``on_elicit`` and ``roots``. Without either, the server is not asked about it.

    Attributes:
        tool: The tool's name, or an empty string if it is not known.
    """

    def __init__(self, course: Course, patience: float | None, tool: str = "") -> None:
        """Made by a server.

        Args:
            course: The course of the task.
            patience: How long :meth:`result` waits if it is not told, in seconds.
            tool: The tool's name.
        """
        self._course = course
        self._patience = patience
        self._check: Check | None = None
        self.tool = tool

    @property
    def id(self) -> str | None:
        """The server's name for the task, to be stored; None if the tool answered at once."""
        return self._course.id

    @property
    def server(self) -> str:
        """The server's name."""
        return self._course.server

    @property
    def status(self) -> str:
        """``working``, ``input_required``, ``completed``, ``failed`` or ``cancelled``.

        As last told; one that was picked up is ``working`` until the server was asked.
        """
        told = self._course.task is not None or self._course.outcome is None
        return self._course.status if told else "completed"

    @property
    def message(self) -> str | None:
        """What the server says about the status, or None."""
        task = self._course.task
        return task.message if task is not None else None

    @property
    def created_at(self) -> str | None:
        """When it was made, as the server wrote it, or None."""
        task = self._course.task
        return task.created_at if task is not None else None

    @property
    def ttl(self) -> float | None:
        """For how many seconds from then the server keeps it; None if for ever, or not known."""
        task = self._course.task
        return task.ttl if task is not None else None

    @property
    def poll_interval(self) -> float | None:
        """How many seconds the server wants between two questions about it, or None."""
        task = self._course.task
        return task.poll if task is not None else None

    @property
    def raw(self) -> dict[str, Any]:
        """What the server last told of the task, as received; empty if nothing yet."""
        task = self._course.task
        return payload.decode(task.data, dict[str, Any]) if task is not None else {}

    @property
    def ended(self) -> bool:
        """Whether it has ended, one way or another."""
        return self._course.ended

    def __repr__(self) -> str:
        return f"<Operation {self.id!r} of {self.server!r}: {self.status}>"

    async def refresh(self, *, timeout: Timeout = UNSET) -> Self:
        """Ask the server for the status, once, and return the operation. What ended stays so.

        Raises:
            CallLost: The server does not know the task, or not any more.
            ReplyError, RemoteProtocolError, CallTimedOut: As for any request.
        """
        if not self._course.ended:
            await self._course.poll(timeout)
        return self

    async def result(self, *, timeout: Timeout = UNSET) -> ToolResult:
        """Wait for the end and return the tool's result. It may be asked for more than once.

        The task goes on at the server if this times out or is cancelled.

        Args:
            timeout: Seconds; left out, it is ``Timeouts.call_max``. Time in which a person is
                asked does not count, and progress starts it anew.

        Raises:
            ToolError: The tool answered that it failed.
            ReplyError: The server answered no.
            CallCancelled: The task was cancelled, or the server stopped from this side.
            CallLost: The server does not know the task any more: it expired, or the server was
                restarted and does not store its tasks.
            CallTimedOut: It did not end in time.
            InputRefused: It asks what nothing here answers.
            OutputInvalid: As for ``invoke_tool``; of a task that was picked up, nothing is checked.
        """
        limit = self._patience if timeout is UNSET else timeout
        if self._check is None:
            return await self._result(limit)
        return await self._check(self._result, limit)

    async def _result(self, limit: float | None) -> ToolResult:
        data = await self._course.result(limit, "it goes on, and can be waited for")
        result = ToolResult(data)
        if result.is_error or self._course.status == "failed":
            raise ToolError(result.error_text, result, tool=self.tool, server=self.server)
        return result

    def checked_by(self, check: Check | None) -> None:
        """Check each result by this, which is given a call and its time-out."""
        self._check = check

    async def cancel(self, *, timeout: Timeout = UNSET) -> None:
        """Have the server cancel the task. It may end otherwise all the same: see :meth:`result`.

        Raises:
            LocalProtocolError: The server does not offer to cancel tasks.
            CallLost: It does not know the task, or not any more.
        """
        if not self._course.ended:
            await self._course.cancel(timeout)

    def __aiter__(self) -> Changes:
        return Changes(self._course)


class Changes:
    """The status of an operation, now and after each change."""

    def __init__(self, course: Course) -> None:
        self._course = course
        self._seen = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        """Return the status if it changed, or wait for that."""
        course = self._course
        while course.changes == self._seen:
            if course.ended:
                raise StopAsyncIteration
            await course.vigil.wait()
        self._seen = course.changes
        return course.status
