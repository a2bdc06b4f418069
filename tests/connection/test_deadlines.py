"""While a person is asked no call times out, and all get their time back after."""

from __future__ import annotations

import time
from typing import Any

import anyio

from mcpclient import CallTimedOut, Timeouts
from tests.conftest import eventually
from tests.connection.peer import Outcomes, conversation


async def test_a_held_call_does_not_time_out_and_gets_the_time_back() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        outcomes = Outcomes()
        group.start_soon(outcomes.keep, "call", connection.request("tools/call", {}, 0.1))
        await peer.get("tools/call")
        connection.deadlines.hold()
        await anyio.sleep(0.3)
        assert outcomes.of == {}
        assert peer.cancels == []
        connection.deadlines.release()
        released = time.monotonic()
        await eventually(lambda: outcomes.of)
        assert time.monotonic() - released >= 0.05, "most of its time was left"
        assert type(outcomes.of["call"]) is CallTimedOut
        assert "no answer within 100 ms" in str(outcomes.of["call"])
        assert connection.deadlines.held >= 0.3


async def test_a_call_made_during_a_hold_has_all_its_time_after() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        outcomes = Outcomes()
        connection.deadlines.hold()
        group.start_soon(outcomes.keep, "call", connection.request("tools/call", {}, 0.1))
        await peer.get("tools/call")
        await anyio.sleep(0.2)
        connection.deadlines.release()
        released = time.monotonic()
        await eventually(lambda: outcomes.of)
        assert time.monotonic() - released >= 0.09


async def test_of_several_holds_the_last_release_counts() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        outcomes = Outcomes()
        group.start_soon(outcomes.keep, "call", connection.request("tools/call", {}, 0.05))
        await peer.get("tools/call")
        connection.deadlines.hold()
        connection.deadlines.hold()
        await anyio.sleep(0.1)
        connection.deadlines.release()
        await anyio.sleep(0.1)
        assert outcomes.of == {}
        connection.deadlines.release()
        await eventually(lambda: outcomes.of)
        assert type(outcomes.of["call"]) is CallTimedOut


async def test_the_hard_maximum_is_put_off_by_a_hold_too() -> None:
    timeouts = Timeouts(call_max=0.2)
    async with (
        conversation(timeouts=timeouts) as (connection, peer, _),
        anyio.create_task_group() as group,
    ):
        outcomes = Outcomes()
        told: list[Any] = []
        request = connection.request("tools/call", {}, 0.1, lambda *facts: told.append(facts))
        group.start_soon(outcomes.keep, "call", request)
        (sent,) = await peer.get("tools/call")
        connection.deadlines.hold()
        for step in range(10):
            peer.progress(sent["id"], step)
            await anyio.sleep(0.04)
        assert outcomes.of == {}, "twice the maximum is over, but nobody counted"
        connection.deadlines.release()
        released = time.monotonic()
        while not outcomes.of:
            peer.progress(sent["id"], 99)
            await anyio.sleep(0.01)
        assert time.monotonic() - released >= 0.1
        assert "(progress or not)" in str(outcomes.of["call"])


async def test_an_answer_during_a_hold_is_taken_at_once() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        outcomes = Outcomes()
        connection.deadlines.hold()
        group.start_soon(outcomes.keep, "call", connection.request("tools/call", {}, 5))
        peer.answer((await peer.get("tools/call"))[0], x=1)
        await eventually(lambda: outcomes.of == {"call": {"x": 1}})
        connection.deadlines.release()


async def test_a_death_ends_a_hold() -> None:
    async with conversation() as (connection, peer, _):
        connection.deadlines.hold()
        connection.begin("tools/call", {}, 5, watch=lambda outcome: None)
        peer.die()
        connection.deadlines.release()
        assert len(connection.inflight) == 0
