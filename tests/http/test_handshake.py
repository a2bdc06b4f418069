"""The handshake era over HTTP: sessions, streams on which the server speaks, and resumption."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from mcpclient import CallLost, CallTimedOut, Limits, Manager
from tests.conftest import eventually
from tests.http.helpers import reached, web
from tests.http.peer import Exchange, Handshake, answer, notice, serving


def text(said: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}]}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
async def test_all_that_follows_names_the_session_and_the_version_where_it_exists(
    version: str,
) -> None:
    async with reached(Handshake(version)) as (served, server):
        assert (await server.invoke_tool("echo", {})).text == "{}"
        await server.stop()
        after = served.requests[served.rpcs.index("initialize") + 1 :]
        assert [one.rpc for one in after] == [
            "notifications/initialized",
            "GET",
            "tools/call",
            "DELETE",
        ]
        for one in after:
            assert one.headers["mcp-session-id"] == "s-1"
            expected = version if version >= "2025-06-18" else None
            assert one.headers.get("mcp-protocol-version") == expected
        get = after[1]
        assert get.headers["accept"] == "text/event-stream"


async def test_a_server_without_sessions_is_sent_none_and_nothing_is_given_back() -> None:
    async with reached(Handshake(named=False)) as (served, server):
        assert (await server.invoke_tool("echo", {})).text == "{}"
        await server.stop()
        assert all("mcp-session-id" not in one.headers for one in served.requests)
        assert "DELETE" not in served.rpcs


async def test_a_server_may_ask_and_tell_on_the_stream_of_a_call() -> None:
    peer = Handshake()
    answered = anyio.Event()

    async def asking(exchange: Exchange) -> None:
        await exchange.events()
        token = exchange.message["params"]["_meta"]["progressToken"]
        told = {"progressToken": token, "progress": 1}
        await exchange.event(notice("notifications/progress", told))
        await exchange.event({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})
        await answered.wait()
        await exchange.event(answer(exchange.message["id"], text("asked")))
        await exchange.end()

    peer.call = asking

    async def watching(exchange: Exchange) -> None:
        await peer(exchange)
        if exchange.request.rpc == "answer":
            answered.set()

    progress: list[float] = []
    async with reached(watching, manager={"roots": ["file:///a"]}) as (served, server):
        result = await server.invoke_tool(
            "echo", {}, on_progress=lambda done, *_: progress.append(done)
        )
        assert result.text == "asked"
        assert progress == [1]
        [reply] = served.of("answer")
        assert reply.message["id"] == "q"
        assert reply.message["result"]["roots"][0]["uri"] == "file:///a"


async def test_what_the_server_tells_by_itself_comes_on_its_stream() -> None:
    peer = Handshake()
    got: list[str] = []
    async with serving(peer) as served, Manager() as manager:
        server = await manager.add("web", web(served.url))
        method = "notifications/message"
        manager.on_notification(method, lambda _, params: got.append(params["data"]))
        await server.wait_ready()
        await eventually(lambda: peer.streams)
        await peer.streams[0].event(notice(method, {"level": "info", "data": "hello"}))
        await eventually(lambda: got == ["hello"])


async def test_a_call_that_is_cancelled_is_cancelled_by_a_notification() -> None:
    peer = Handshake()
    begun = anyio.Event()

    async def lasting(exchange: Exchange) -> None:
        begun.set()
        await exchange.hung_up()

    peer.call = lasting
    async with reached(peer) as (served, server):
        async with anyio.create_task_group() as group:
            group.start_soon(server.invoke_tool, "echo", {})
            await begun.wait()
            group.cancel_scope.cancel()
        await eventually(lambda: served.of("notifications/cancelled"))
        [told] = served.of("notifications/cancelled")
        [call] = served.of("tools/call")
        assert told.message["params"]["requestId"] == call.message["id"]
        assert await server.list_tools()


async def test_a_call_that_waits_in_the_line_is_cancelled_without_a_word() -> None:
    peer = Handshake()
    parked: list[Exchange] = []

    async def lasting(exchange: Exchange) -> None:
        parked.append(exchange)
        await exchange.hung_up()

    peer.call = lasting
    async with reached(peer, limits=Limits(connections=1)) as (served, server):
        await server.wait_ready()
        async with anyio.create_task_group() as group:
            group.start_soon(server.invoke_tool, "echo", {})
            await eventually(lambda: parked)
            with pytest.raises(CallTimedOut) as caught:
                await server.invoke_tool("echo", {}, timeout=0.3)
            assert caught.value.maybe_done is False
            assert served.rpcs.count("notifications/cancelled") == 0
            group.cancel_scope.cancel()
        assert len(parked) == 1


async def test_a_broken_stream_is_resumed_where_it_broke_and_nothing_comes_twice() -> None:
    peer = Handshake()
    calls: list[dict[str, Any]] = []
    progress: list[float] = []

    async def breaking(exchange: Exchange) -> None:
        calls.append(exchange.message)
        await exchange.events()
        await exchange.event(tell(1), id="e-1", retry=10)
        exchange.drop()

    def tell(step: int) -> dict[str, Any]:
        token = calls[0]["params"]["_meta"]["progressToken"]
        return notice("notifications/progress", {"progressToken": token, "progress": step})

    peer.call = breaking
    resumed: list[str] = []

    async def resuming(exchange: Exchange) -> None:
        last = exchange.request.headers.get("last-event-id")
        if exchange.request.method != "GET" or last is None:
            await peer(exchange)
            return
        resumed.append(last)
        if len(resumed) == 2:
            await exchange.send(503)  # it is not back yet
            return
        await exchange.events()
        if len(resumed) == 1:
            await exchange.event(tell(2), id="e-2")
            exchange.drop()
        await exchange.event(answer(calls[0]["id"], text("at last")), id="e-3")
        await exchange.hung_up()

    async with reached(resuming) as (_, server):
        result = await server.invoke_tool(
            "echo", {}, on_progress=lambda done, *_: progress.append(done)
        )
        assert result.text == "at last"
        assert progress == [1, 2]
        assert resumed == ["e-1", "e-2", "e-2"]
        assert len(calls) == 1


@pytest.mark.parametrize("status", [404, 405])
async def test_a_stream_that_cannot_be_resumed_is_a_loss(status: int) -> None:
    peer = Handshake()

    async def breaking(exchange: Exchange) -> None:
        await exchange.events()
        await exchange.event(id="e-1", retry=10)
        exchange.drop()

    peer.call = breaking
    peer.offers_stream = False

    async def refusing(exchange: Exchange) -> None:
        if "last-event-id" in exchange.request.headers:
            await exchange.send(status)
        else:
            await peer(exchange)

    async with reached(refusing) as (_, server):
        with pytest.raises(CallLost, match=rf"cannot be resumed \(HTTP {status}\)") as caught:
            await server.invoke_tool("echo", {})
        assert caught.value.maybe_done
        assert server.generation == 1


async def test_a_stream_without_ids_that_breaks_is_a_loss_at_once() -> None:
    peer = Handshake()

    async def breaking(exchange: Exchange) -> None:
        await exchange.events()
        exchange.drop()

    peer.call = breaking
    async with reached(peer) as (_, server):
        with pytest.raises(CallLost, match="the stream of the answer broke"):
            await server.invoke_tool("echo", {})


async def test_a_session_that_is_gone_is_noticed_by_its_stream_too() -> None:
    peer = Handshake()
    async with reached(peer) as (_, server):
        await server.wait_ready()
        await eventually(lambda: peer.streams)
        await peer.streams[0].event(retry=10)
        peer.sessions.clear()
        await peer.streams[0].stream.aclose()
        await eventually(lambda: server.generation == 2 and server.state == "up")
        assert server.incidents[0].exit is not None
        assert server.incidents[0].exit.expired


async def test_the_id_of_a_session_is_a_secret(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "mcpclient")
    async with reached(Handshake()) as (_, server):
        await server.invoke_tool("echo", {})
        assert "s-1" not in caplog.text
        assert "s-1" not in repr(server)


async def test_a_forms_answer_goes_back_by_a_post_of_its_own() -> None:
    peer = Handshake()
    answered = anyio.Event()

    async def asking(exchange: Exchange) -> None:
        await exchange.events()
        params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
        ask = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}
        await exchange.event(ask)
        await answered.wait()
        await exchange.event(answer(exchange.message["id"], text("formed")))
        await exchange.end()

    peer.call = asking

    async def watching(exchange: Exchange) -> None:
        await peer(exchange)
        if exchange.request.rpc == "answer":
            answered.set()

    def elicit(server: object, params: Mapping[str, Any]) -> dict[str, Any]:
        return {"action": "accept", "content": {}}

    async with reached(watching, manager={"on_elicit": elicit}) as (served, server):
        assert (await server.invoke_tool("echo", {})).text == "formed"
        [reply] = served.of("answer")
        assert reply.message["result"]["action"] == "accept"
        assert "mcp-method" not in reply.headers
