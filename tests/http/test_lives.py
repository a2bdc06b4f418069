"""A server behind a URL is kept as a process is: it goes, it is waited for, it comes back."""

from __future__ import annotations

import subprocess
import sys
import time

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    CallTimedOut,
    HttpError,
    Manager,
    RestartPolicy,
    ServerDied,
    ServerSpec,
)
from tests.conftest import eventually
from tests.http.helpers import reached, web
from tests.http.peer import Exchange, Handshake, serving, stateless


async def test_a_server_that_is_away_is_waited_for_and_the_caller_learns_nothing_of_it() -> None:
    async with Manager() as manager:
        async with serving(stateless) as served:
            port = served.port
            server = await manager.add("web", web(served.url))
            await server.invoke_tool("echo", {})
        states: list[str] = []
        manager.on_state(lambda _, state: states.append(state))
        # It is gone; nobody has noticed. The first who calls does, and waits for it.
        async with anyio.create_task_group() as group:
            texts: list[str] = []

            async def call() -> None:
                texts.append((await server.invoke_tool("echo", {"a": 1}, timeout=30)).text)

            group.start_soon(call)
            await eventually(lambda: len(server.incidents) > 2)
            assert server.state in ("waiting", "starting", "opening")
            with pytest.raises(Exception, match="it is not up but"):
                await server.no_wait.list_tools()
            async with serving(stateless, port):
                await eventually(lambda: texts)
                assert texts == ['{"a": 1}']
                assert server.state == "up"
                await server.stop()
        assert "it cannot be reached: Connection refused" in str(server.incidents[0])
        assert {"waiting", "opening", "up"} <= set(states)


async def test_a_call_to_a_server_that_stays_away_times_out_and_was_never_made() -> None:
    async with serving(stateless) as served:
        url = served.url
    async with Manager() as manager:
        slow = RestartPolicy(burst=None, first=60, jitter=0)
        server = await manager.add("web", web(url, restart=slow))
        with pytest.raises(CallTimedOut) as caught:
            await server.invoke_tool("echo", {}, timeout=0.5)
        assert caught.value.maybe_done is False
        assert "it cannot be reached: Connection refused" in str(caught.value)
        assert server.state == "waiting"


async def test_a_server_that_never_was_there_is_not_given_up() -> None:
    async with serving(stateless) as served:
        url = served.url
    async with Manager() as manager:
        server = await manager.add("web", web(url))
        server.begin()
        await eventually(lambda: server.generation > 12)
        assert server.state != "failed"
        assert len(server.incidents) <= 20


async def test_whoever_wants_it_given_up_says_so() -> None:
    async with serving(stateless) as served:
        url = served.url
    async with Manager() as manager:
        policy = RestartPolicy(burst=2, first=0.01, jitter=0)
        server = await manager.add("web", ServerSpec(url=url, restart=policy))
        with pytest.raises(Exception, match="it ended 3 times in a row"):
            await server.wait_ready()
        assert server.state == "failed"


def test_a_url_has_patience_by_default_and_a_command_has_not() -> None:
    assert ServerSpec(url="http://host").restart.burst is None
    assert ServerSpec(url="tcp://host:1").restart.burst is None
    assert ServerSpec("x").restart == RestartPolicy()
    assert ServerSpec(url="http://host", restart=RestartPolicy()).restart.burst == 5


async def test_a_call_in_flight_ends_by_the_loss_of_its_session_and_may_have_been_done() -> None:
    peer = Handshake()
    begun = anyio.Event()

    async def lasting(exchange: Exchange) -> None:
        if exchange.message["params"]["arguments"]:
            await exchange.result({"content": []})
        begun.set()
        await exchange.hung_up()

    peer.call = lasting
    async with reached(peer) as (_, server):
        async with anyio.create_task_group() as group:
            caught: list[ServerDied] = []

            async def call() -> None:
                with pytest.raises(ServerDied) as error:
                    await server.invoke_tool("echo", {})
                caught.append(error.value)

            group.start_soon(call)
            await begun.wait()
            peer.sessions.clear()
            assert await server.list_tools()
        assert caught[0].maybe_done is True
        assert "does not know the session any more" in str(caught[0])


async def test_how_long_a_server_wants_to_be_left_alone_is_heeded() -> None:
    came: list[float] = []

    async def busy(exchange: Exchange) -> None:
        came.append(time.monotonic())
        if len(came) == 1:
            await exchange.send(503, b"deploying", Retry_After="2")
        else:
            await stateless(exchange)

    async with reached(busy) as (_, server):
        await server.wait_ready()
        assert came[1] - came[0] >= 2
        assert "HTTP 503: the server or a proxy before it failed (deploying)" in str(
            server.incidents[0]
        )


async def test_too_many_requests_fail_the_call_and_say_when_to_ask_again() -> None:
    async def busy(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            await exchange.send(429, b"slow down", Retry_After="17")
        else:
            await stateless(exchange)

    async with reached(busy) as (_, server):
        with pytest.raises(HttpError) as caught:
            await server.invoke_tool("echo", {})
        assert (caught.value.status, caught.value.retry_after) == (429, 17)
        assert caught.value.maybe_done is False
        assert str(caught.value).endswith("slow down; the server did not carry it out")
        assert server.state == "up"


async def test_a_session_that_is_lost_at_once_each_time_is_not_opened_in_a_storm() -> None:
    peer = Handshake()

    async def forgetful(exchange: Exchange) -> None:
        if exchange.message.get("method") == "notifications/initialized":
            peer.sessions.clear()
        await peer(exchange)

    policy = RestartPolicy(burst=None, first=30, jitter=0)
    async with reached(forgetful, restart=policy) as (served, server):
        with pytest.raises(ServerDied):
            await server.invoke_tool("echo", {})
        await eventually(lambda: server.state == "waiting")
        assert served.rpcs.count("initialize") == 2


async def test_a_stop_ends_the_calls_in_flight_and_leaves_no_connection() -> None:
    begun = anyio.Event()

    async def lasting(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            await exchange.events()
            begun.set()
            await exchange.hung_up()
        await stateless(exchange)

    async with reached(lasting) as (served, server):
        async with anyio.create_task_group() as group:

            async def call() -> None:
                with pytest.raises(CallCancelled):
                    await server.invoke_tool("echo", {})

            group.start_soon(call)
            await begun.wait()
            await server.stop()
        await eventually(lambda: served.open == 0)
        assert server.state == "idle"
        with pytest.raises(Exception, match="it was stopped"):
            await server.list_tools()
        await server.start()
        assert await server.list_tools()


async def test_a_server_that_nobody_uses_is_let_go_and_reached_again() -> None:
    async with reached(Handshake(), idle_stop=0.2) as (served, server):
        await server.invoke_tool("echo", {})
        await eventually(lambda: server.state == "idle")
        await eventually(lambda: "DELETE" in served.rpcs)
        assert (await server.invoke_tool("echo", {})).text == "{}"
        assert server.generation == 2


async def test_pings_go_over_http_and_a_hung_server_is_dialled_again() -> None:
    peer = Handshake()
    pinged: list[int] = []

    async def deaf(exchange: Exchange) -> None:
        if exchange.message.get("method") == "ping" and peer.made == 1:
            pinged.append(1)
            await exchange.hung_up()
        await peer(exchange)

    async with reached(deaf, ping=0.1, ping_misses=2) as (_, server):
        await server.wait_ready()
        await eventually(lambda: server.generation == 2 and server.state == "up")
        assert len(pinged) == 2
        assert "it answered no ping" in str(server.incidents[0])


async def test_what_is_changed_by_a_reload_is_dialled_anew() -> None:
    async with serving(stateless) as one, serving(Handshake()) as two, Manager() as manager:
        server = await manager.add("web", web(one.url))
        await server.invoke_tool("echo", {})
        report = await manager.reload({"web": web(two.url)})
        assert report.changed == ["web"]
        assert (await server.invoke_tool("echo", {})).text == "{}"
        assert server.era == "handshake"
        await eventually(lambda: one.open == 0)


async def test_a_thousand_servers_that_nobody_uses_open_and_send_nothing() -> None:
    async with serving(stateless) as served:
        servers = {f"s{n}": ServerSpec(url=f"{served.url}/{n}") for n in range(1000)}
        async with Manager(servers) as manager:
            assert len(manager) == 1000
            assert all(manager[name].state == "idle" for name in manager)
            assert (await manager["s500"].invoke_tool("echo", {})).text == "{}"
            assert served.connections == 1
        assert served.rpcs == ["server/discover", "tools/call"]


def test_nothing_of_http_is_loaded_before_a_url_is_dialled() -> None:
    code = """
import sys
from mcpclient import Manager, ServerSpec
Manager({"web": ServerSpec(url="https://host/mcp", headers={"a": "b"})})
loaded = [name for name in ("httpcore2", "httpx2", "ssl", "h11", "mcpclient.transports.http")
          if name in sys.modules]
assert not loaded, loaded
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


async def test_a_loop_that_ends_with_a_server_up_leaves_nothing() -> None:
    async with serving(Handshake()) as served:
        code = f"""
import sys, anyio
from mcpclient import Manager, ServerSpec
async def main():
    manager = Manager({{"web": ServerSpec(url={served.url!r})}})
    await manager.open()
    print((await manager["web"].invoke_tool("echo", {{"a": 1}})).text)
anyio.run(main, backend=sys.argv[1])
"""
        for backend in ("asyncio", "trio"):
            ended = await anyio.run_process(
                [sys.executable, "-W", "error", "-c", code, backend], check=False
            )
            assert ended.stdout.decode().strip() == '{"a": 1}'
            assert ended.stderr.decode() == ""
            assert ended.returncode == 0
        await eventually(lambda: served.open == 0)
