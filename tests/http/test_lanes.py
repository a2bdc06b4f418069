"""Many calls share few connections; slow ones open more; what lasts or answers stands aside."""

from __future__ import annotations

import anyio
import pytest

from mcpclient import CallLost, Limits
from tests.conftest import eventually
from tests.http.helpers import reached
from tests.http.peer import Exchange, Handshake, stateless


async def test_two_hundred_calls_share_few_connections() -> None:
    texts: list[str] = []
    async with reached(stateless) as (served, server):
        await server.wait_ready()

        async def call(number: int) -> None:
            texts.append((await server.invoke_tool("echo", {"n": number})).text)

        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(call, number)
        assert sorted(texts) == sorted(f'{{"n": {number}}}' for number in range(200))
        assert served.most <= 16  # 4, unless the machine stalls meanwhile


async def test_calls_that_last_do_not_hold_up_the_others() -> None:
    parked: list[Exchange] = []
    go = anyio.Event()

    async def slow(exchange: Exchange) -> None:
        if exchange.message.get("params", {}).get("name") == "slow":
            parked.append(exchange)
            await go.wait()
        await stateless(exchange)

    async with reached(slow) as (_, server), anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(server.invoke_tool, "slow", {})
        await eventually(lambda: len(parked) == 20)
        assert (await server.invoke_tool("echo", {})).text == "{}"
        go.set()


async def test_no_more_calls_than_allowed_are_on_the_wire() -> None:
    now, most = [0], [0]
    go = anyio.Event()

    async def counting(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            now[0] += 1
            most[0] = max(most[0], now[0])
            await go.wait()
            now[0] -= 1
        await stateless(exchange)

    async with reached(counting, limits=Limits(connections=2)) as (_, server):
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(server.invoke_tool, "echo", {})
            await eventually(lambda: now[0] == 2)
            go.set()
        assert most[0] == 2


async def test_an_answer_to_the_server_does_not_stand_in_the_line_behind_the_call() -> None:
    peer = Handshake()
    answered = anyio.Event()

    async def asking(exchange: Exchange) -> None:
        await exchange.events()
        await exchange.event({"jsonrpc": "2.0", "id": 1, "method": "ping"})
        await answered.wait()
        text = {"content": [{"type": "text", "text": "pong"}]}
        await exchange.event({"jsonrpc": "2.0", "id": exchange.message["id"], "result": text})
        await exchange.end()

    peer.call = asking

    async def watching(exchange: Exchange) -> None:
        await peer(exchange)
        if exchange.request.rpc == "answer":
            answered.set()

    async with reached(watching, limits=Limits(connections=1)) as (_, server):
        assert (await server.invoke_tool("echo", {})).text == "pong"


async def test_a_stream_that_lasts_takes_nobodys_place() -> None:
    async with reached(stateless, limits=Limits(connections=1)) as (served, server):
        with anyio.move_on_after(20) as scope:
            async with server.subscribe("test://a"):
                assert "subscriptions/listen" in served.rpcs
                assert (await server.invoke_tool("echo", {})).text == "{}"
        assert not scope.cancelled_caught


async def test_a_line_that_is_too_long_takes_no_more() -> None:
    parked, go = anyio.Event(), anyio.Event()

    async def slow(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            parked.set()
            await go.wait()
        await stateless(exchange)

    async with reached(slow, limits=Limits(connections=1, outbox=2000)) as (_, server):
        await server.wait_ready()
        async with anyio.create_task_group() as group:
            group.start_soon(server.invoke_tool, "echo", {})
            await parked.wait()
            group.start_soon(server.invoke_tool, "echo", {"long": "x" * 2000})
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(CallLost, match=r"Limits.outbox") as caught:
                await server.invoke_tool("echo", {})
            assert caught.value.maybe_done is False
            go.set()


async def test_many_notifications_share_few_connections() -> None:
    async with reached(Handshake()) as (served, server):
        await server.wait_ready()
        for number in range(100):
            await server.notify("notifications/custom", {"n": number})
        await eventually(lambda: served.rpcs.count("notifications/custom") == 100)
        assert served.most <= 20
