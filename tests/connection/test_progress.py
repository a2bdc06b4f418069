"""Progress: asked for only when wanted, told in order, and it buys time, but not for ever."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from mcpclient import CallTimedOut, Timeouts
from tests.conftest import eventually
from tests.connection.peer import Peer, conversation

Facts = tuple[float, float | None, str | None]


def token_of(request: dict[str, Any]) -> Any:
    return request["params"]["_meta"]["progressToken"]


def into(told: list[Facts]) -> Callable[[float, float | None, str | None], None]:
    def keep(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    return keep


def run(group: Any, call: Awaitable[Any], kept: list[Any]) -> None:
    async def keep() -> None:
        try:
            kept.append(json.loads(bytes(await call)))
        except Exception as problem:
            kept.append(problem)

    group.start_soon(keep)


# -- asking for it -------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_a_token_is_sent_only_when_progress_is_wanted(era: str) -> None:
    async with conversation(era) as (connection, peer, _), anyio.create_task_group() as group:
        kept: list[Any] = []
        run(group, connection.request("plain", {"a": 1}, 5), kept)
        run(group, connection.request("asking", {"a": 1, "_meta": {"x": 2}}, 5, into([])), kept)
        (plain,), (asking,) = await peer.get("plain"), await peer.get("asking")
        assert "progressToken" not in plain["params"].get("_meta", {})
        assert token_of(asking) == asking["id"]
        assert type(token_of(asking)) is int
        assert asking["params"]["_meta"]["x"] == 2
        assert asking["params"]["a"] == 1
        peer.answer(plain, resultType="complete")
        peer.answer(asking, resultType="complete")


async def test_params_of_the_caller_are_left_alone() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        params: dict[str, Any] = {"name": "x", "_meta": {"mine": 1}}
        run(group, connection.request("tools/call", params, 5, into([])), [])
        (request,) = await peer.get("tools/call")
        assert params == {"name": "x", "_meta": {"mine": 1}}
        peer.answer(request)


# -- being told ----------------------------------------------------------------------------


async def test_progress_is_told_in_order_with_what_the_server_said() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        told: list[Facts] = []
        kept: list[Any] = []
        run(group, connection.request("tools/call", {"name": "a"}, 5, into(told)), kept)
        (request,) = await peer.get("tools/call")
        token = token_of(request)
        peer.progress(token, 1, total=3, message="one")
        peer.progress(token, 2.5)
        peer.progress(token, 2)  # not increasing: the server's fault, and no reason to break
        peer.progress(token, 3, total="three", message=["three"])
        peer.answer(request, done=True)
        await eventually(lambda: kept)
        assert told == [(1, 3, "one"), (2.5, None, None), (2, None, None), (3, None, None)]
        assert kept == [{"done": True}]


async def test_progress_of_several_calls_goes_each_to_its_own() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        told: dict[str, list[Facts]] = {name: [] for name in "abc"}
        for name in told:
            run(group, connection.request(name, {}, 5, into(told[name])), [])
        requests = {name: (await peer.get(name))[0] for name in told}
        for step in range(3):
            for name, request in requests.items():
                peer.progress(token_of(request), step, message=name)
        for request in requests.values():
            peer.answer(request)
        await eventually(lambda: len(connection.inflight) == 0)
        assert told == {name: [(step, None, name) for step in range(3)] for name in "abc"}


async def test_an_async_handler_is_awaited() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        told: list[Any] = []

        async def handler(progress: float, total: float | None, message: str | None) -> None:
            await anyio.lowlevel.checkpoint()
            told.append((progress, total, message))

        run(group, connection.request("tools/call", {"name": "a"}, 5, handler), [])
        (request,) = await peer.get("tools/call")
        peer.progress(token_of(request), 1, total=2, message="half")
        await eventually(lambda: told)
        assert told == [(1, 2, "half")]
        peer.answer(request)


@pytest.mark.parametrize("seed", range(5))
async def test_an_async_handler_is_told_in_order_and_never_twice_at_once(seed: int) -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        told: list[float] = []
        running: list[int] = []

        async def handler(progress: float, total: float | None, message: str | None) -> None:
            running.append(1)
            assert len(running) == 1, "the one before has not ended"
            await anyio.sleep(0.002 if progress % 2 else 0)
            told.append(progress)
            running.pop()

        run(group, connection.request("tools/call", {"name": "a"}, 5, handler), [])
        (request,) = await peer.get("tools/call")
        for step in range(20):
            peer.progress(token_of(request), step)
        peer.answer(request)
        await eventually(lambda: len(told) == 20)
        assert told == list(range(20))


@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_handler_that_raises_is_logged_and_the_call_goes_on(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with conversation() as (connection, peer, _):
        told: list[float] = []

        def plain(progress: float, total: float | None, message: str | None) -> None:
            told.append(progress)
            if progress == 1:
                raise ValueError("a bad handler")

        async def coroutine(progress: float, total: float | None, message: str | None) -> None:
            await anyio.lowlevel.checkpoint()
            plain(progress, total, message)

        kept: list[Any] = []
        async with anyio.create_task_group() as group:
            handler = plain if kind == "plain" else coroutine
            run(group, connection.request("tools/call", {"name": "a"}, 5, handler), kept)
            (request,) = await peer.get("tools/call")
            peer.progress(token_of(request), 1)
            peer.progress(token_of(request), 2)
            await eventually(lambda: told == [1, 2])
            peer.answer(request, done=True)
        assert kept == [{"done": True}]
        problems = [r for r in caplog.records if r.levelno == logging.ERROR]
        assert len(problems) == 1
        assert problems[0].name == "mcpclient"
        assert problems[0].exc_info is not None
        assert str(problems[0].exc_info[1]) == "a bad handler"


async def test_a_handler_may_make_calls_on_the_same_connection() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        inner: list[Any] = []

        async def handler(progress: float, total: float | None, message: str | None) -> None:
            inner.append(bytes(await connection.request("inner", None, 5)))

        run(group, connection.request("outer", {}, 5, handler), [])
        (outer,) = await peer.get("outer")
        peer.progress(token_of(outer), 1)
        peer.answer((await peer.get("inner"))[0], x=1)
        await eventually(lambda: inner)
        peer.answer(outer)


# -- progress that means nothing -----------------------------------------------------------


async def test_progress_with_a_token_that_is_none_of_ours_is_dropped() -> None:
    async with conversation() as (connection, peer, ears), anyio.create_task_group() as group:
        told: list[Facts] = []
        kept: list[Any] = []
        # Ids count from the opening on: make one call whose id is 1 in any dress.
        connection.session._next_id = 1
        run(group, connection.request("tools/call", {"name": "a"}, 5, into(told)), kept)
        (request,) = await peer.get("tools/call")
        assert token_of(request) == 1
        for token in (True, "1", 1.0, 2, 0, -1, None, [1], {"id": 1}):
            peer.progress(token, 50)
        peer.say(method="notifications/progress")
        peer.say(method="notifications/progress", params=[1, 2])
        peer.say(method="notifications/progress", params={"progressToken": 1})
        peer.progress(1, "half")
        peer.progress(1, None)
        peer.progress(1, 99)
        peer.answer(request)
        await eventually(lambda: kept)
        assert told == [(99, None, None)]
        assert ears.notices == [], "progress is no news for others"


async def test_progress_of_a_call_that_asked_for_none_or_is_over_is_dropped() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        told: list[Facts] = []
        kept: list[Any] = []
        run(group, connection.request("plain", {}, 5), kept)
        run(group, connection.request("asking", {}, 5, into(told)), kept)
        (plain,), (asking,) = await peer.get("plain"), await peer.get("asking")
        peer.progress(plain["id"], 1)
        peer.answer(asking)
        peer.progress(asking["id"], 1)
        peer.answer(plain)
        await eventually(lambda: len(kept) == 2)
        assert told == []


# -- time ----------------------------------------------------------------------------------


async def keep_going(peer: Peer, token: int, ended: list[Any]) -> None:
    """Tell of progress all the time until the call ends."""
    with anyio.fail_after(10):
        while not ended:
            peer.progress(token, 1)
            await anyio.sleep(0.01)


async def test_progress_extends_the_time_out() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        kept: list[Any] = []
        begun = time.monotonic()
        run(group, connection.request("tools/call", {"name": "a"}, 1.0, into([])), kept)
        (request,) = await peer.get("tools/call")
        while time.monotonic() - begun < 1.4:
            peer.progress(token_of(request), 1)
            await anyio.sleep(0.02)
        assert kept == [], "without progress it would have timed out"
        peer.answer(request, done=True)
        await eventually(lambda: kept)
        assert kept == [{"done": True}]
        assert peer.cancels == []


async def test_after_progress_stops_the_time_out_runs_anew() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        kept: list[Any] = []
        run(group, connection.request("tools/call", {"name": "a"}, 1.0, into([])), kept)
        (request,) = await peer.get("tools/call")
        await anyio.sleep(0.05)
        peer.progress(token_of(request), 1)
        last = time.monotonic()
        await eventually(lambda: kept)
        assert time.monotonic() - last >= 0.99
        assert type(kept[0]) is CallTimedOut
        assert "no answer within 1 s" in str(kept[0])


async def test_the_hard_maximum_ends_a_call_whatever_its_progress() -> None:
    async with (
        conversation(timeouts=Timeouts(call_max=1.3)) as (connection, peer, _),
        anyio.create_task_group() as group,
    ):
        kept: list[Any] = []
        begun = time.monotonic()
        run(group, connection.request("tools/call", {"name": "a"}, 1.0, into([])), kept)
        (request,) = await peer.get("tools/call")
        await keep_going(peer, token_of(request), kept)
        assert time.monotonic() - begun >= 1.3
        (problem,) = kept
        assert type(problem) is CallTimedOut
        assert "no answer within 1.3 s (progress or not)" in str(problem)
        await peer.get("notifications/cancelled")
        assert peer.cancels == [request["id"]]


async def test_a_time_out_longer_than_the_maximum_is_meant() -> None:
    async with (
        conversation(timeouts=Timeouts(call_max=0.02)) as (connection, peer, _),
        anyio.create_task_group() as group,
    ):
        kept: list[Any] = []
        begun = time.monotonic()
        run(group, connection.request("tools/call", {"name": "a"}, 0.2, into([])), kept)
        await peer.get("tools/call")
        await eventually(lambda: kept)
        assert time.monotonic() - begun >= 0.2
        assert "no answer within 200 ms" in str(kept[0])


async def test_without_a_maximum_progress_extends_for_ever() -> None:
    async with (
        conversation(timeouts=Timeouts(call_max=None)) as (connection, peer, _),
        anyio.create_task_group() as group,
    ):
        kept: list[Any] = []
        run(group, connection.request("tools/call", {"name": "a"}, 1.0, into([])), kept)
        (request,) = await peer.get("tools/call")
        until = time.monotonic() + 1.4
        while time.monotonic() < until:
            peer.progress(token_of(request), 1)
            await anyio.sleep(0.02)
        assert kept == []
        peer.answer(request)


async def test_progress_that_nobody_asked_for_buys_no_time() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        kept: list[Any] = []
        run(group, connection.request("tools/call", {"name": "a"}, 0.1), kept)
        (request,) = await peer.get("tools/call")
        await keep_going(peer, request["id"], kept)
        assert type(kept[0]) is CallTimedOut


async def test_a_call_without_a_time_out_has_none_with_progress_either() -> None:
    async with (
        conversation(timeouts=Timeouts(call_max=0.05)) as (connection, peer, _),
        anyio.create_task_group() as group,
    ):
        kept: list[Any] = []
        run(group, connection.request("tools/call", {"name": "a"}, None, into([])), kept)
        (request,) = await peer.get("tools/call")
        peer.progress(token_of(request), 1)
        await anyio.sleep(0.15)
        assert kept == []
        peer.answer(request, done=True)
        await eventually(lambda: kept == [{"done": True}])
