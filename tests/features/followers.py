"""What the tests of following share: who follows, and what a server is asked to tell of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from mcpclient import Server, ServerSpec, Subscription
from tests.conftest import eventually
from tests.features.helpers import journal, puppet, result

A, B = "test://a", "test://b"
UPDATED = "notifications/resources/updated"
BOTH = pytest.mark.parametrize("name", ["good_handshake", "good_stateless"])


def agreeing(answers: Any = None, **options: Any) -> ServerSpec:
    """Return the spec of a puppet that agrees to subscriptions, if the script says no other."""
    agreed = {"resources/subscribe": [result()], "resources/unsubscribe": [result()]}
    return puppet({**agreed, **(answers or {})}, **options)


async def heard(updates: Any) -> Any:
    """Return the next update; there must be one."""
    with anyio.fail_after(10):
        return await anext(updates)


async def touch(server: Server, uri: str, n: int = 1) -> None:
    """Let the server tell that a resource changed."""
    await server.invoke_tool("notify", {"n": n, "uri": uri})


async def wanted(server: Server) -> list[str]:
    """Return what the server is asked to tell of by now, in order."""
    found: list[str] = []
    for message in await journal(server):
        method, params = message.get("method"), message.get("params") or {}
        if method == "resources/subscribe":
            found.append(params["uri"])
        elif method == "resources/unsubscribe":
            found.remove(params["uri"])
        elif method == "subscriptions/listen":
            found = list(params["notifications"].get("resourceSubscriptions", []))
            last = message["id"]
        elif method == "notifications/cancelled" and params["requestId"] == last:
            found = []
    return sorted(found)


async def until(fact: Callable[[], Awaitable[Any]], value: Any) -> None:
    """Wait until what is asked for is so."""
    with anyio.fail_after(10):
        while await fact() != value:
            await anyio.sleep(0.005)


class Followers:
    """Some who follow resources, each in a task of its own."""

    def __init__(self, group: Any, server: Server) -> None:
        self.inside: dict[int, Subscription] = {}
        self.ended: dict[int, Any] = {}
        self.heard: dict[int, list[str]] = {}
        self.scopes: list[anyio.CancelScope] = []
        self._group = group
        self._server = server

    def begin(self, uri: str, **options: Any) -> int:
        number = len(self.scopes)
        self.scopes.append(anyio.CancelScope())
        self.heard[number] = []
        self._group.start_soon(self._run, number, uri, options)
        return number

    async def enter(self, *uris: str) -> list[int]:
        numbers = [self.begin(uri) for uri in uris]
        await eventually(lambda: all(number in self.inside for number in numbers))
        return numbers

    async def leave(self, number: int) -> None:
        self.scopes[number].cancel()
        await eventually(lambda: number in self.ended)

    async def _run(self, number: int, uri: str, options: Any) -> None:
        outcome: Any = "cancelled"
        with self.scopes[number]:
            try:
                async with self._server.subscribe(uri, **options) as updates:
                    self.inside[number] = updates
                    async for params in updates:
                        self.heard[number].append(params["uri"])
                outcome = "ended"
            except Exception as problem:
                outcome = problem
        self.ended[number] = outcome


async def journal_length(server: Server, method: str) -> int:
    return len(await journal(server, method))
