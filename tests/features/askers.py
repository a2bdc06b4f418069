"""What the tests of asks share: servers that ask, who answers them, and how they are called."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio

from mcpclient import Manager, Server, Timeouts
from tests.conftest import spec

SAMPLE, ELICIT = "sampling/createMessage", "elicitation/create"
SAID = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}


class Model:
    """A model that answers when it is told to, and tells who asked and who gave up."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.stopped = 0
        self.answer = anyio.Event()

    async def __call__(self, server: Server, params: Any) -> Any:
        self.asked.append(params)
        try:
            await self.answer.wait()
        except BaseException:
            self.stopped += 1
            raise
        return SAID


@asynccontextmanager
async def asking(
    on_sample: Callable[..., Any] | None = None, *args: str, **options: Any
) -> AsyncIterator[Server]:
    """Open a manager of one server that asks; ``on_elicit`` and ``roots`` are the manager's."""
    mine = {name: options.pop(name) for name in ("on_elicit", "roots") if name in options}
    servers = {"s": spec("asks_handshake", *args, **options)}
    async with Manager(servers, on_sample=on_sample, **mine) as manager:
        yield manager["s"]


def hasty(**times: float) -> Timeouts:
    return Timeouts(eof=1.0, term=0.5, **times)


async def told(server: Server, tool: str, **arguments: Any) -> Any:
    """Return what a tool of the server tells, read from JSON."""
    return json.loads((await server.invoke_tool(tool, arguments)).text)


async def ask(server: Server, method: str = SAMPLE, **arguments: Any) -> dict[str, Any]:
    """Let the server ask once, and return the client's whole reply."""
    [reply] = await told(server, "ask", method=method, **arguments)
    assert isinstance(reply, dict)
    return reply


async def call(group: Any, server: Server, tool: str, **arguments: Any) -> list[Any]:
    """Begin a call that may take long; what comes of it stands in the list."""
    found: list[Any] = []

    async def run() -> None:
        try:
            found.append(await server.invoke_tool(tool, arguments))
        except Exception as problem:
            found.append(problem)

    group.start_soon(run)
    return found


def sample(server: Server, params: Any) -> Any:
    return SAID
