"""What a call does not cost: no task, no memory stream, no cancel scope of its own."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anyio
import pytest
import trio

from mcpclient import loops
from mcpclient.connection.connection import Connection
from tests.conftest import eventually
from tests.connection.peer import Peer, conversation

MANY = 100


def running(backend: str) -> int:
    """Return how many tasks the loop has, whoever began them."""
    if backend == "trio":
        return trio.lowlevel.current_statistics().tasks_living
    return len(asyncio.all_tasks())


async def settled(connection: Connection, peer: Peer) -> None:
    """Make one call, whose deadline is the nearest: the one timer of the connection is set."""
    connection.begin("first", None, 5, watch=lambda outcome: None)
    await peer.get("first")
    await peer.quiet()


def forbid(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note all that a call must not make; making it works, so that nothing else breaks."""
    made: list[str] = []
    for name in (
        "create_memory_object_stream",
        "create_task_group",
        "CancelScope",
        "Event",
        "Lock",
        "Condition",
        "Semaphore",
        "fail_after",
        "move_on_after",
    ):
        real = getattr(anyio, name)

        def noting(*facts: Any, name: str = name, real: Any = real, **more: Any) -> Any:
            made.append(name)
            return real(*facts, **more)

        monkeypatch.setattr(anyio, name, noting)
    return made


async def test_a_hundred_calls_in_flight_cost_no_task_of_their_own(anyio_backend: str) -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        await settled(connection, peer)
        before = running(anyio_backend)
        results: list[Any] = []

        async def call(number: int) -> None:
            result = await connection.request("tools/call", {"name": "a", "n": number}, 30)
            results.append(json.loads(bytes(result))["n"])

        for number in range(MANY):
            group.start_soon(call, number)
        requests = await peer.get("tools/call", MANY)
        assert len(connection.inflight) == MANY + 1
        assert running(anyio_backend) == before + MANY, "more than the callers' own tasks"
        for request in requests:
            peer.answer(request, n=request["params"]["n"])
        await eventually(lambda: len(results) == MANY)
        assert sorted(results) == list(range(MANY))
        assert running(anyio_backend) == before


async def test_a_hundred_calls_begun_in_one_task_cost_no_task_at_all(anyio_backend: str) -> None:
    async with conversation() as (connection, peer, _):
        await settled(connection, peer)
        before = running(anyio_backend)
        outcomes: list[Any] = []
        for number in range(MANY):
            connection.begin("tools/call", {"name": "a", "n": number}, 30, watch=outcomes.append)
        requests = await peer.get("tools/call", MANY)
        assert running(anyio_backend) == before
        for request in requests:
            peer.answer(request)
        await eventually(lambda: len(outcomes) == MANY)
        assert running(anyio_backend) == before


async def test_calls_use_no_stream_scope_or_event(monkeypatch: pytest.MonkeyPatch) -> None:
    async with conversation() as (connection, peer, _):
        await settled(connection, peer)
        made = forbid(monkeypatch)
        transport = connection.transport
        send = transport.send

        def answering(item: Any) -> None:
            send(item)
            request = json.loads(item.frame)
            if "id" in request:
                peer.answer(request, n=request["params"]["n"])

        transport.send = transport.send_soon = answering  # type: ignore[method-assign]
        for number in range(MANY):
            result = await connection.request("tools/call", {"name": "a", "n": number}, 30)
            assert json.loads(bytes(result)) == {"n": number}
        told: list[float] = []
        result = await connection.request(
            "tools/call",
            {"name": "a", "n": 1},
            30,
            lambda progress, total, message: told.append(progress),
        )
        assert made == []


async def test_time_outs_of_many_calls_share_one_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with conversation() as (connection, peer, _):
        await settled(connection, peer)
        timers: list[float] = []
        kind = type(connection.loop)
        later = kind.later

        def counted(loop: Any, delay: float, call: Any) -> Any:
            timers.append(delay)
            return later(loop, delay, call)

        monkeypatch.setattr(kind, "later", counted)
        for number in range(MANY):
            connection.begin(
                "tools/call", {"name": "a", "n": number}, 30 + number, watch=lambda outcome: None
            )
        await peer.get("tools/call", MANY)
        assert timers == []
        connection.begin("tools/call", {"name": "a", "n": 0}, 1, watch=lambda outcome: None)
        assert len(timers) == 1, "a nearer deadline sets the timer anew"


async def test_settled_calls_leave_nothing_in_the_connection() -> None:
    async with conversation() as (connection, peer, _):
        for number in range(MANY):
            connection.begin(
                "tools/call", {"name": "a", "n": number}, 30, watch=lambda outcome: None
            )
        for request in await peer.get("tools/call", MANY):
            peer.answer(request)
        await eventually(lambda: len(connection.inflight) == 0)
        assert connection.inflight.filed == MANY
        assert connection.inflight.next_deadline() is None
        assert type(connection.loop) is type(loops.current())
