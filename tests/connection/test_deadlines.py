"""While a person is asked no call times out, and all get their time back after."""

from __future__ import annotations

import time
from typing import Any

import anyio

from mcpclient import CallTimedOut, Timeouts
from mcpclient.connection.connection import Connection
from tests.conftest import eventually
from tests.connection.peer import Outcomes, conversation


def held(connection: Connection, timeout: float, **options: Any) -> list[Any]:
    """Make a call and hold all time-outs in the same turn; return where its outcome will be."""
    outcomes: list[Any] = []
    connection.begin("tools/call", {"name": "a"}, timeout, watch=outcomes.append, **options)
    connection.deadlines.hold()
    return outcomes


async def test_a_held_call_does_not_time_out_and_gets_the_time_back() -> None:
    async with conversation() as (connection, peer, _):
        outcomes = held(connection, 0.1)
        await anyio.sleep(0.3)
        assert outcomes == []
        assert peer.cancels == []
        connection.deadlines.release()
        released = time.monotonic()
        await eventually(lambda: outcomes)
        assert time.monotonic() - released >= 0.09, "all of its time was left"
        assert type(outcomes[0]) is CallTimedOut
        assert "no answer within 100 ms" in str(outcomes[0])
        assert connection.deadlines.held >= 0.3


async def test_a_call_made_during_a_hold_has_all_its_time_after() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        outcomes = Outcomes()
        connection.deadlines.hold()
        group.start_soon(
            outcomes.keep, "call", connection.request("tools/call", {"name": "a"}, 0.1)
        )
        await peer.get("tools/call")
        await anyio.sleep(0.2)
        connection.deadlines.release()
        released = time.monotonic()
        await eventually(lambda: outcomes.of)
        assert time.monotonic() - released >= 0.09


async def test_of_several_holds_the_last_release_counts() -> None:
    async with conversation() as (connection, _, _ears):
        outcomes = held(connection, 0.05)
        connection.deadlines.hold()
        await anyio.sleep(0.1)
        connection.deadlines.release()
        await anyio.sleep(0.1)
        assert outcomes == []
        connection.deadlines.release()
        await eventually(lambda: outcomes)
        assert type(outcomes[0]) is CallTimedOut


async def test_the_hard_maximum_is_put_off_by_a_hold_too() -> None:
    async with conversation(timeouts=Timeouts(call_max=1.2)) as (connection, peer, _):
        outcomes = held(connection, 1.0, on_progress=lambda *facts: None)
        (sent,) = await peer.get("tools/call")
        for step in range(35):
            peer.progress(sent["id"], step)
            await anyio.sleep(0.04)
        assert outcomes == [], "the maximum is over, but nobody counted"
        connection.deadlines.release()
        released = time.monotonic()
        while not outcomes:
            peer.progress(sent["id"], 99)
            await anyio.sleep(0.01)
        assert time.monotonic() - released >= 1.19
        assert "no answer within 1.2 s (progress or not)" in str(outcomes[0])


async def test_an_answer_during_a_hold_is_taken_at_once() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        outcomes = Outcomes()
        connection.deadlines.hold()
        group.start_soon(outcomes.keep, "call", connection.request("tools/call", {"name": "a"}, 5))
        peer.answer((await peer.get("tools/call"))[0], x=1)
        await eventually(lambda: outcomes.of == {"call": {"x": 1}})
        connection.deadlines.release()


async def test_a_death_ends_a_hold() -> None:
    async with conversation() as (connection, peer, _):
        connection.deadlines.hold()
        connection.begin("tools/call", {"name": "a"}, 5, watch=lambda outcome: None)
        peer.die()
        connection.deadlines.release()
        assert len(connection.inflight) == 0
