"""What the tests of features share: the puppet's spec, and what a server says it received."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio

from mcpclient import McpClientError, Server, ServerSpec, Timeouts
from mcpclient.features.cache import ReadCache
from tests.conftest import QUICK, eventually

ALL = {"tools": {}, "resources": {"subscribe": True}, "prompts": {}}
_PUPPET = str(Path(__file__).with_name("puppet.py"))


def puppet(
    answers: dict[str, list[Any]] | None = None,
    *,
    era: str = "handshake",
    capabilities: Any = ALL,
    **options: Any,
) -> ServerSpec:
    """Return the spec of a server that does as it is told; ``puppet.py`` tells what it can do."""
    options.setdefault("restart", QUICK)
    options.setdefault("timeouts", Timeouts(eof=1.0, term=0.5))
    script = {"era": era, "capabilities": capabilities, "answers": answers or {}}
    return ServerSpec(sys.executable, [_PUPPET, json.dumps(script)], **options)


def result(**members: Any) -> dict[str, Any]:
    """Return a scripted answer that is a result."""
    return {"result": members}


def refusal(code: int, message: str = "no", **more: Any) -> dict[str, Any]:
    """Return a scripted answer that is an error."""
    return {"error": {"code": code, "message": message, **more}}


async def hold(server: Server, method: str = "resources/read") -> None:
    """Let a puppet answer nothing of a method until it is released."""
    await server.notify("puppet/hold", {"method": method})


async def release(server: Server, method: str = "resources/read", **answer: Any) -> None:
    """Let a puppet answer what it held; with its own answer, or as the script says."""
    params = {"method": method, **({"answer": answer} if answer else {})}
    await server.notify("puppet/release", params)


async def say(server: Server, method: str, params: Any = None, n: int = 1) -> None:
    """Let a puppet send a notification, and return once it has arrived."""
    await server.notify("puppet/say", {"method": method, "params": params or {}, "n": n})
    await server.call_tool("echo", {"text": "after it"})


async def journal(server: Server, method: str | None = None) -> list[dict[str, Any]]:
    """Return the messages a server received so far, or those of one method."""
    received = json.loads((await server.call_tool("journal")).text)
    return [one for one in received if method in (None, one.get("method"))]


async def reads(server: Server) -> list[str]:
    """Return the URIs that a server was asked to read, one for each request on the wire."""
    return [one["params"]["uri"] for one in await journal(server, "resources/read")]


class Readers:
    """Several reads under way at once, each of which may be cancelled alone."""

    def __init__(self, group: Any, server: Server, cache: ReadCache) -> None:
        self.outcomes: dict[int, Any] = {}
        self.scopes: dict[int, anyio.CancelScope] = {}
        self._group = group
        self._server = server
        self._cache = cache

    async def begin(self, count: int, uri: str = "test://counter", **options: Any) -> None:
        """Let so many more read, and return when all of them wait for the answer."""
        first = len(self.scopes)
        begun = self._begun()
        for number in range(first, first + count):
            self.scopes[number] = anyio.CancelScope()
            self._group.start_soon(self._read, number, uri, options)
        await eventually(lambda: self._begun() == begun + count)

    def _begun(self) -> int:
        stats = self._cache.stats()
        return stats.misses + stats.joins

    async def _read(self, number: int, uri: str, options: Any) -> None:
        with self.scopes[number] as scope:
            try:
                self.outcomes[number] = await self._server.read_resource(uri, **options)
            except McpClientError as problem:
                self.outcomes[number] = problem
        if scope.cancelled_caught:
            self.outcomes[number] = "cancelled"
