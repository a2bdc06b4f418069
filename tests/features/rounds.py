"""What the tests of rounds share: a server that asks by rounds, and who answers it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcpclient import Manager, Server
from tests.conftest import spec

SAMPLE, ELICIT = "sampling/createMessage", "elicitation/create"
SAID = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
ADA = {"action": "accept", "content": {"name": "Ada", "size": 3}}
ASK = {"method": SAMPLE, "params": {"messages": [], "maxTokens": 1}}


def sample(server: Server, params: Any) -> Any:
    return SAID


def ada(server: Server, params: Any) -> Any:
    return {"action": "accept", "content": {"name": "Ada"}}


def nobody(server: Server, params: Any) -> Any:
    pytest.fail("asked all the same")


@asynccontextmanager
async def asking(
    on_sample: Callable[..., Any] | None = sample,
    on_elicit: Callable[..., Any] | None = ada,
    **options: Any,
) -> AsyncIterator[Server]:
    """Open a manager of one server that asks by rounds."""
    servers = {"s": spec("asks_stateless_rounds", **options)}
    roots = ["file:///w"]
    async with Manager(servers, roots=roots, on_sample=on_sample, on_elicit=on_elicit) as manager:
        yield manager["s"]


async def told(server: Server, tool: str, **arguments: Any) -> Any:
    return json.loads((await server.invoke_tool(tool, arguments)).text)


async def rounds(server: Server, *steps: Any, **more: Any) -> list[dict[str, Any]]:
    """Let rounds be answered with these steps; return what each of them brought, ids left out."""
    brought = await told(server, "rounds", steps=steps, **more)
    ids = [one.pop("id") for one in brought]
    assert ids == sorted(set(ids))  # each round has a new one (MRTR-06)
    return brought  # type: ignore[no-any-return]


def step(requests: Any = None, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"resultType": "input_required", **more}
    return found if requests is None else {**found, "inputRequests": requests}
