"""An opening under way against a scripted server: what it sends, and how it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from mcpclient import OpeningFailed
from mcpclient.connection.connection import Connection
from mcpclient.connection.opening import DiedOnProbe, Opening
from tests.conftest import eventually
from tests.connection.peer import Peer, unopened

STATELESS = "2026-07-28"
LATEST = "2025-11-25"
# No test waits so long; the probe's patience is not the point.
LONG = 60.0


class Run:
    """An opening under way, and what became of it."""

    def __init__(self, connection: Connection, peer: Peer) -> None:
        self.connection = connection
        self.peer = peer
        self.problem: BaseException | None = None
        self.done = False
        self.scope = anyio.CancelScope()

    @property
    def sent(self) -> list[str]:
        """What we sent, by method, in order."""
        return [str(message.get("method")) for message in self.peer.received]

    async def ended(self) -> BaseException | None:
        """Wait for the end of the opening; return why it failed, if it did."""
        await eventually(lambda: self.done)
        return self.problem

    async def failed(self) -> OpeningFailed:
        problem = await self.ended()
        assert type(problem) is OpeningFailed
        assert problem.server == "peer"
        return problem

    async def next(self, method: str, count: int = 1) -> dict[str, Any]:
        """Return the last of so many requests of a method."""
        return (await self.peer.get(method, count))[count - 1]


@asynccontextmanager
async def opening(era: str = "auto", probe_time: float = LONG) -> AsyncIterator[Run]:
    connection, peer, _ = unopened()
    run = Run(connection, peer)

    async def go() -> None:
        with run.scope:
            try:
                await Opening(connection, era, probe_time).run()
            except (OpeningFailed, DiedOnProbe) as problem:
                run.problem = problem
        run.done = True

    async with anyio.create_task_group() as group:
        group.start_soon(go)
        try:
            yield run
        finally:
            run.scope.cancel()
    await connection.close()
    connection.inflight.check()


def discovered(*versions: str) -> dict[str, Any]:
    info = {"io.modelcontextprotocol/serverInfo": {"name": "scripted"}}
    return {
        "resultType": "complete",
        "supportedVersions": list(versions or [STATELESS]),
        "capabilities": {"tools": {}},
        "_meta": info,
    }


def initialized(version: str = LATEST) -> dict[str, Any]:
    return {
        "protocolVersion": version,
        "capabilities": {"prompts": {}},
        "serverInfo": {"name": "scripted"},
        "instructions": "be kind",
    }
