"""A server that died is started again: what must hold on holds on, what must not is gone."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpclient import Exit, Server, ServerDied
from tests.behaviour.bench import Bench, endings
from tests.conftest import eventually


async def die(server: Server, code: int = 3) -> None:
    """Let the server end, and wait until its next life is up."""
    with pytest.raises(ServerDied) as caught:
        await server.invoke_tool("exit", {"code": code})
    assert caught.value.exit in endings(server, code)
    assert caught.value.maybe_done
    await server.wait_ready()


async def test_after_a_death_the_next_call_is_answered_by_a_new_life(bench: Bench) -> None:
    server = await bench.open()
    assert (await server.invoke_tool("echo", {"text": "one"})).text == "one"
    with pytest.raises(ServerDied) as caught:
        await server.invoke_tool("exit", {"code": 3})
    assert caught.value.exit in endings(server, 3)
    assert (caught.value.method, caught.value.server) == ("tools/call", "peer")
    # It waits for the new life, and is not sent twice.
    assert (await server.invoke_tool("echo", {"text": "two"})).text == "two"
    assert server.generation == 2
    assert server.protocol_version == bench.version
    [incident] = server.incidents
    assert incident.exit in endings(server, 3)
    first, second = bench.lives
    opening = ["server/discover"]
    if not bench.stateless:
        opening = ["initialize", "notifications/initialized"]
        assert first.methods[0] == "server/discover"
    # What era it speaks was found out once; the handshake is made anew.
    assert second.methods == [*opening, "tools/call"]


async def test_all_calls_in_flight_end_with_the_death(bench: Bench) -> None:
    server = await bench.open()
    await server.start()
    ends: list[Exit] = []

    async def hold(key: str) -> None:
        with pytest.raises(ServerDied) as caught:
            await server.invoke_tool("hold", {"key": key})
        ends.append(caught.value.exit)

    async with anyio.create_task_group() as group:
        group.start_soon(hold, "a")
        group.start_soon(hold, "b")
        await eventually(lambda: len(bench.life.of("tools/call")) == 2)
        await die(server, 7)
    assert len(ends) == 2
    assert set(ends) <= set(endings(server, 7))
    names = [one["params"]["name"] for one in bench.lives[1].of("tools/call")]
    assert names == []  # nothing is called twice behind anybody's back


async def test_a_subscription_and_a_log_level_are_restored(bench: Bench) -> None:
    server = await bench.open()
    told: list[str] = []
    bench.manager.on_notification(
        "notifications/message", lambda server, params: told.append(params["level"])
    )
    await server.set_log_level("error")
    async with server.subscribe("test://a") as updates:
        await die(server)
        # Nobody knows what was missed, so there is one update that nobody sent.
        assert (await anext(updates))["uri"] == "test://a"
        method = "subscriptions/listen" if bench.stateless else "resources/subscribe"
        await eventually(lambda: bench.lives[1].of(method))
        await server.invoke_tool("echo", {"text": "so that it has been read"})
        assert (await server.invoke_tool("touch", {"uri": "test://a"})).text == "1"
        assert (await anext(updates))["uri"] == "test://a"
    assert (await server.invoke_tool("log", {"level": "warning"})).text == "0"
    assert (await server.invoke_tool("log", {"level": "critical"})).text == "1"
    await eventually(lambda: told == ["critical"])
    if not bench.stateless:
        assert [m["params"] for m in bench.lives[1].of("logging/setLevel")] == [{"level": "error"}]


async def test_a_subscription_that_was_given_up_is_not_restored(bench: Bench) -> None:
    server = await bench.open()
    async with server.subscribe("test://a"):
        pass
    await die(server)
    await server.invoke_tool("echo", {"text": "hi"})
    follow = {"subscriptions/listen", "resources/subscribe"}
    assert follow.isdisjoint(bench.lives[1].methods)


async def test_what_was_read_and_listed_is_asked_for_anew(bench: Bench) -> None:
    server = await bench.open(cache_ttl=60)
    for _ in range(2):
        await server.read_resource("test://a")
        await server.list_prompts()
    pages = len(bench.lives[0].of("prompts/list"))
    assert len(bench.lives[0].of("resources/read")) == 1
    await die(server)
    await server.read_resource("test://a")
    await server.list_prompts()
    assert len(bench.lives[1].of("resources/read")) == 1
    # From the first page on: no cursor outlives its session.
    assert len(bench.lives[1].of("prompts/list")) == pages
    assert "cursor" not in (bench.lives[1].of("prompts/list")[0].get("params") or {})


async def test_what_the_dead_server_asked_is_not_answered_to_the_new_one(bench: Bench) -> None:
    asked = anyio.Event()
    go = anyio.Event()

    async def sample(server: Any, params: Any) -> Any:
        asked.set()
        await go.wait()
        return {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}

    server = await bench.open(on_sample=sample)
    message = {"role": "user", "content": {"type": "text", "text": "hi"}}
    params = {
        "method": "sampling/createMessage",
        "params": {"messages": [message], "maxTokens": 1},
    }
    ends: list[Any] = []

    async def call() -> None:
        try:
            ends.append((await server.invoke_tool("ask", params)).text)
        except ServerDied as died:
            ends.append(died.exit)

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await asked.wait()
        await die(server)
        if not bench.stateless:
            await eventually(lambda: ends)
        go.set()
    if bench.stateless:
        # The round had ended and all state is in it: the next one may go to any life.
        assert "hi" in ends[0]
        assert "inputResponses" in bench.lives[1].of("tools/call")[0]["params"]
    else:
        assert len(ends) == 1
        assert ends[0] in endings(server, 3)
        await server.invoke_tool("echo", {"text": "hi"})
        assert "answer" not in bench.lives[1].methods


async def test_servers_that_end_at_a_stop_are_no_incident(bench: Bench) -> None:
    server = await bench.open()
    await server.invoke_tool("echo", {"text": "hi"})
    await server.restart()
    assert (await server.invoke_tool("echo", {"text": "hi"})).text == "hi"
    assert server.incidents == []
    assert len(bench.lives) == 2
