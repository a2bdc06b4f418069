"""What the tests of subscriptions share: streams that are agreed to and ended by hand."""

from __future__ import annotations

from typing import Any

import anyio

from mcpclient import Manager, Server
from tests.features.helpers import hold, journal, puppet, say

KEY = "io.modelcontextprotocol/subscriptionId"
LISTEN = "subscriptions/listen"
AGREED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"
UPDATED = "notifications/resources/updated"
TOOLS_CHANGED = "notifications/tools/list_changed"
A, B, C = "test://a", "test://b", "test://c"
ALL = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "prompts": {}}


async def heard(updates: Any) -> Any:
    """Return the next update; there must be one."""
    with anyio.fail_after(10):
        return await anext(updates)


class Streams:
    """The streams of a puppet, which are agreed to and ended by hand."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.entered: dict[str, Any] = {}

    async def begin(self) -> None:
        await hold(self.server, LISTEN)

    async def asked(self, count: int) -> list[dict[str, Any]]:
        """Wait for so many listens in all; return what each wants, and its id."""
        with anyio.fail_after(5):
            while len(found := await journal(self.server, LISTEN)) < count:
                await anyio.sleep(0.005)
        assert len(found) == count
        return [{"id": one["id"], **one["params"]["notifications"]} for one in found]

    async def agree(self, count: int, *uris: str, **more: Any) -> int:
        """Agree to the newest of so many listens, for these URIs; return its id."""
        id = (await self.asked(count))[-1]["id"]
        told = {"resourceSubscriptions": list(uris), **more}
        await say(self.server, AGREED, {"_meta": {KEY: id}, "notifications": told})
        return int(id)

    async def follow(self, group: Any, uri: str, count: int, **options: Any) -> anyio.CancelScope:
        """Begin to follow a resource, until the scope is cancelled, and wait for the listen."""
        scope = anyio.CancelScope()

        async def run() -> None:
            with scope:
                try:
                    async with self.server.subscribe(uri, **options) as updates:
                        self.entered[uri] = updates
                        await anyio.sleep_forever()
                except Exception as problem:
                    self.entered[uri] = problem

        group.start_soon(run)
        if count:
            await self.asked(count)
        return scope

    async def update(self, uri: str, id: Any = None) -> None:
        meta = {} if id is None else {"_meta": {KEY: id}}
        await say(self.server, UPDATED, {"uri": uri, **meta})

    async def given_up(self, ids: list[Any]) -> None:
        """Wait until just these are cancelled."""
        with anyio.fail_after(5):
            while await self.cancels() != ids:
                await anyio.sleep(0.005)

    async def cancels(self) -> list[Any]:
        return [one["params"]["requestId"] for one in await journal(self.server, CANCELLED)]


async def add(manager: Manager, answers: Any = None, **options: Any) -> Streams:
    options.setdefault("capabilities", ALL)
    return Streams(await manager.add("s", puppet(answers, era="stateless", **options)))
