"""What a task is on the wire of either era, and what to do next about one. Waits for nothing.

In the one era the client says which call becomes a task, and fetches what came of it; in the
other the server decides, and tells all of it with the status.

https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/tasks
https://github.com/modelcontextprotocol/ext-tasks
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Raw, Struct, structs

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.ground.text import printable
from mcpclient.protocol import payload

if TYPE_CHECKING:
    from collections.abc import Mapping

WORKING = "working"
INPUT_REQUIRED = "input_required"
COMPLETED = "completed"
FAILED = "failed"
CANCELLED = "cancelled"
ENDED = frozenset({COMPLETED, FAILED, CANCELLED})

_STATUSES = ENDED | {WORKING, INPUT_REQUIRED}
_NOTHING = Raw(b"")
_MOST = 10**15  # milliseconds: for ever


class Task(Struct, frozen=True):
    """A task as it was last told of.

    Attributes:
        id: The server's name for it.
        status: One of the five.
        message: What the server says about the status, or None.
        created_at: When it was made, as the server wrote it, or None.
        ttl: For how many seconds the server keeps it, or None if it does not say, or for ever.
        poll: How many seconds to wait before asking again, or None if the server does not say.
        data: The whole of it, as received.
        result: The result, if that came along.
        error: The error, if that came along.
        requests: What it asks, if that came along.
    """

    id: str
    status: str
    message: str | None = None
    created_at: str | None = None
    ttl: float | None = None
    poll: float | None = None
    data: Raw = _NOTHING
    result: Raw = _NOTHING
    error: Raw = _NOTHING
    requests: Raw = _NOTHING


class Again(Struct, frozen=True, gc=False):
    """A step: wait, then ask for the status."""


class Fetch(Struct, frozen=True, gc=False):
    """A step: ask for the outcome, which is answered as soon as there is one.

    Meanwhile the server may ask, by requests.
    """


class Reply(Struct, frozen=True):
    """A step: answer these requests, by their keys; then as :class:`Again`."""

    requests: dict[str, dict[str, Any]]


class Done(Struct, frozen=True, gc=False):
    """A step: it has ended, with this result."""

    result: Raw


class Failed(Struct, frozen=True):
    """A step: it has ended, with a JSON-RPC error."""

    code: int
    message: str
    data: Any


class Cancelled(Struct, frozen=True, gc=False):
    """A step: it has ended, since somebody cancelled it."""


Step = Again | Fetch | Reply | Done | Failed | Cancelled


class Tasks(Protocol):
    """How one server runs tasks, as its era has it."""

    @property
    def barred(self) -> str:
        """Why no call may be made for a task's sake, or an empty string."""

    @property
    def directed(self) -> bool:
        """Whether a call becomes a task only if it says so."""

    @property
    def cancels(self) -> bool:
        """Whether a task can be cancelled."""

    @property
    def lists(self) -> bool:
        """Whether the tasks can be listed."""

    @property
    def listens(self) -> bool:
        """Whether news of a task must be asked for."""

    def augmented(self, params: Mapping[str, Any], ttl: float | None) -> dict[str, Any]:
        """Return the params of a call that may become a task."""

    def made(self, result: Raw) -> Task | None:
        """Return the task that a call became, or None if the result is an ordinary one."""

    def told(self, data: Raw) -> Task:
        """Return the task that a result, or an item of a list, tells of."""

    def cancelled(self, result: Raw) -> Task | None:
        """Return the task as the answer to a cancellation tells of it, if it does."""

    def fetched(self, task: Task, result: Raw) -> Task:
        """Return the task as it must be now that its outcome is known."""

    def step(self, task: Task) -> Step:
        """Return what to do next."""


class _Wire(Struct, gc=False, rename="camel"):
    task_id: str
    status: str
    status_message: Any = None
    created_at: Any = None
    # As the one era calls them, and as the other does.
    ttl: Any = None
    poll_interval: Any = None
    ttl_ms: Any = None
    poll_interval_ms: Any = None
    result: Raw = _NOTHING
    error: Raw = _NOTHING
    input_requests: Raw = _NOTHING


class _Made(Struct, gc=False):
    task: Raw = _NOTHING


class _Flag(Struct, gc=False, rename={"flag": "isError"}):
    flag: Any = None


class _Error(Struct):
    code: Any = None
    message: Any = None
    data: Raw = _NOTHING


class CoreTasks:
    """Tasks as version 2025-11-25 has them: the client directs."""

    barred = ""
    directed = True
    listens = False

    def __init__(self, declared: Mapping[str, Any]) -> None:
        """Take what the server declared as ``tasks`` (LTSK-01, LTSK-09)."""
        # An empty object says yes; null and false say what they say.
        self.cancels = declared.get("cancel") not in (None, False)
        self.lists = declared.get("list") not in (None, False)

    def augmented(self, params: Mapping[str, Any], ttl: float | None) -> dict[str, Any]:
        """See :class:`Tasks`."""
        return {**params, "task": {} if ttl is None else {"ttl": round(ttl * 1000)}}

    def made(self, result: Raw) -> Task | None:
        """See :class:`Tasks`."""
        found = payload.decode(result, _Made).task
        # Of what stands around the task, the host may want to see some (LTSK-13).
        return structs.replace(self.told(found), data=result) if found else None

    def told(self, data: Raw) -> Task:
        """See :class:`Tasks`."""
        wire = _wire(data)
        return _task(wire, data, wire.ttl, wire.poll_interval)

    def cancelled(self, result: Raw) -> Task | None:
        """See :class:`Tasks`."""
        return self.told(result)

    def fetched(self, task: Task, result: Raw) -> Task:
        """See :class:`Tasks`."""
        if task.status in ENDED:
            return task
        failed = payload.decode(result, _Flag).flag is True  # as LTSK-10 says
        return structs.replace(task, status=FAILED if failed else COMPLETED)

    def step(self, task: Task) -> Step:
        """See :class:`Tasks`."""
        if task.status == WORKING:
            return Again()
        return Cancelled() if task.status == CANCELLED else Fetch()  # LTSK-06, LTSK-10


class ExtensionTasks:
    """Tasks as the extension has them: the server decides."""

    directed = False
    cancels = True
    lists = False

    def __init__(self, *, declared: bool) -> None:
        """Take whether the server declared the extension."""
        self.listens = declared
        self.barred = "" if declared else "it does not declare the extension for tasks"

    def augmented(self, params: Mapping[str, Any], ttl: float | None) -> dict[str, Any]:
        """See :class:`Tasks`. There is nothing to say (TSK-01, TSK-28)."""
        return dict(params)

    def made(self, result: Raw) -> Task | None:
        """See :class:`Tasks`."""
        return self.told(result)

    def told(self, data: Raw) -> Task:
        """See :class:`Tasks`."""
        wire = _wire(data)
        return _task(wire, data, wire.ttl_ms, wire.poll_interval_ms)

    def cancelled(self, result: Raw) -> Task | None:
        """See :class:`Tasks`. It is an acknowledgement, no more (TSK-17)."""
        return None

    def fetched(self, task: Task, result: Raw) -> Task:
        """See :class:`Tasks`. Nothing is ever fetched."""
        return task

    def step(self, task: Task) -> Step:
        """See :class:`Tasks`."""
        if task.status == WORKING:
            return Again()
        if task.status == CANCELLED:
            return Cancelled()
        if task.status == INPUT_REQUIRED:
            found = payload.value(task.requests)
            if not isinstance(found, dict) or not all(isinstance(v, dict) for v in found.values()):
                raise RemoteProtocolError(f"{_named(task)} asks in a shape that nobody can answer")
            return Reply(found)
        if task.status == COMPLETED:
            if not task.result:
                raise RemoteProtocolError(f"{_named(task)} is completed and has no result")
            return Done(task.result)
        return _failed(task)


def _wire(data: Raw) -> _Wire:
    wire = payload.decode(data, _Wire, "the task")
    if wire.status not in _STATUSES or not wire.task_id:
        raise RemoteProtocolError(f"a task's status is unknown: {printable(wire.status, 100)!r}")
    return wire


def _task(wire: _Wire, data: Raw, ttl: Any, poll: Any) -> Task:
    message, created = wire.status_message, wire.created_at
    return Task(
        id=wire.task_id,
        status=wire.status,
        message=message if isinstance(message, str) else None,
        created_at=created if isinstance(created, str) else None,
        ttl=_seconds(ttl),
        poll=_seconds(poll),
        data=data,
        result=wire.result,
        error=wire.error,
        requests=wire.input_requests,
    )


def _seconds(told: Any) -> float | None:
    # By exact type: True is no number. An integer may be too large for a float.
    return min(told, _MOST) / 1000 if type(told) in (int, float) and told >= 0 else None


def _failed(task: Task) -> Failed:
    if not task.error:
        # Not as it should be, but that it failed is clear.
        return Failed(0, task.message or "the server gives no reason", None)
    error = payload.decode(task.error, _Error, "the task's error")
    message = error.message if isinstance(error.message, str) else task.message
    code = error.code if type(error.code) is int else 0
    return Failed(code, message or "", payload.told(error.data))


def _named(task: Task) -> str:
    return f"the task {printable(task.id, 100)!r}"


def core(declared: Any) -> CoreTasks | None:
    """Return the tasks of a server that declared this as ``tasks``, if tools may be some."""
    requests = declared.get("requests") if isinstance(declared, dict) else None
    tools = requests.get("tools") if isinstance(requests, dict) else None
    if not isinstance(tools, dict) or tools.get("call") in (None, False):
        return None
    return CoreTasks(declared)
