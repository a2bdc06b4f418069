"""What the tests of tasks share: a manager of the two servers with tasks, and who answers them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcpclient import Manager, Server, Timeouts
from tests.conftest import spec
from tests.features.helpers import journal, puppet, result

TASKS = "io.modelcontextprotocol/tasks"
ON: dict[str, Any] = {TASKS: {}}
# By era: the server, and its tool that completes after a moment.
TASKERS = {"handshake": "tasks_handshake", "stateless": "tasks_stateless"}
SOON = {"handshake": "must", "stateless": "soon"}
# The task that a puppet makes.
MADE = {"resultType": "task", "taskId": "t", "status": "working", "ttlMs": None}
ERAS = pytest.mark.parametrize("era", sorted(TASKERS))


class People:
    """Answers what tasks ask: a name, and what one likes."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answers: dict[str, Any] = {"name": "Ada", "likes": "tea"}
        self.hold: anyio.Event | None = None

    async def __call__(self, server: Server, params: dict[str, Any]) -> dict[str, Any]:
        """Answer one question, as soon as nobody holds the answer back."""
        self.asked.append(params["message"])
        if self.hold is not None:
            await self.hold.wait()
        [name] = params["requestedSchema"]["properties"]
        return {"action": "accept", "content": {name: self.answers[name]}}


@asynccontextmanager
async def tasker(era: str, *args: object, **options: Any) -> AsyncIterator[Server]:
    """A server of an era that runs tools as tasks, and is up."""
    timeouts = options.pop("timeouts", Timeouts(eof=1.0, term=0.5, call=5.0))
    more = {key: options.pop(key) for key in ("restart", "validate") if key in options}
    options.setdefault("extensions", ON)
    one = spec(TASKERS[era], *args, timeouts=timeouts, **more)
    async with Manager({"s": one}, **options) as manager:
        await manager["s"].wait_ready()
        yield manager["s"]


async def count(server: Server, method: str) -> int:
    """Return how many messages of a method a server received."""
    return len(await journal(server, method))


async def until_asked(server: Server, method: str) -> None:
    """Wait until a server received a message of a method."""
    with anyio.fail_after(10):
        while not await count(server, method):
            await anyio.sleep(0.01)


def odd_tasker(*gets: Any, made: Any = None, **answers: list[Any]) -> Any:
    """Return the spec of a puppet whose tool makes a task, with these answers to tasks/get."""
    script = {
        "tools/call": [result(**{**MADE, "pollIntervalMs": 1, **(made or {})})],
        "tasks/get": list(gets),
        **{method.replace("_", "/"): one for method, one in answers.items()},
    }
    capabilities: dict[str, Any] = {"tools": {}, "extensions": {TASKS: {}}}
    return puppet(script, era="stateless", capabilities=capabilities)


def told(status: str, **more: Any) -> dict[str, Any]:
    """Return a scripted answer to tasks/get."""
    return result(taskId="t", status=status, **more)
