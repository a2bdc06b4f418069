"""The transport of 2024-11-05: one stream to listen to, another endpoint to talk to."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpclient import (
    AccessRefused,
    CallTimedOut,
    HttpError,
    Manager,
    OpeningFailed,
    ServerDied,
)
from tests.conftest import eventually
from tests.http.helpers import reached, web
from tests.http.peer import Exchange, answer, notice, serving


class Old:
    """A server of that time.

    Attributes:
        endpoint: What it says of where to POST.
        stream: The exchange whose stream is open.
        asked: Answers of the client.
    """

    def __init__(self, endpoint: str = "/messages?id=7") -> None:
        self.endpoint = endpoint
        self.stream: Exchange | None = None
        self.answers: list[dict[str, Any]] = []
        self.status = 202

    async def __call__(self, exchange: Exchange) -> None:
        if exchange.request.method == "GET" and exchange.request.target == "/sse":
            await exchange.events()
            self.stream = exchange
            await exchange.event(self.endpoint, name="endpoint")
            await exchange.hung_up()
        elif exchange.request.method == "POST" and exchange.request.target == "/messages?id=7":
            message = exchange.message
            if message.get("method") == "tools/call" and self.status != 202:
                await exchange.send(self.status, b"no")
                return
            await exchange.send(202, b"Accepted")
            await self.handle(message)
        else:
            await exchange.send(405)

    async def handle(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method is None:
            self.answers.append(message)
        elif method == "initialize":
            await self.tell(
                answer(message["id"], {"protocolVersion": "2024-11-05", "capabilities": {}})
            )
        elif method == "tools/call":
            text = json.dumps(message["params"]["arguments"])
            await self.tell(answer(message["id"], {"content": [{"type": "text", "text": text}]}))

    async def tell(self, message: dict[str, Any]) -> None:
        assert self.stream is not None
        await self.stream.event(message)


async def test_an_old_server_is_found_out_and_remembered() -> None:
    async with reached(Old(), path="/sse") as (served, server):
        assert (await server.invoke_tool("echo", {"a": 1})).text == '{"a": 1}'
        assert (server.era, server.protocol_version) == ("handshake", "2024-11-05")
        ways = [(one.method, one.target, one.rpc) for one in served.requests]
        assert ways == [
            ("POST", "/sse", "server/discover"),
            ("POST", "/sse", "initialize"),
            ("GET", "/sse", "GET"),
            ("POST", "/messages?id=7", "initialize"),
            ("POST", "/messages?id=7", "notifications/initialized"),
            ("POST", "/messages?id=7", "tools/call"),
        ]
        assert all("mcp-protocol-version" not in one.headers for one in served.requests[3:])
        await server.restart()
        assert [one.rpc for one in served.requests[6:]][:2] == ["GET", "initialize"]


async def test_a_server_that_is_said_to_be_old_is_not_asked() -> None:
    headers = {"X-Key": "k"}
    async with reached(Old(), path="/sse", type="sse", headers=headers) as (served, server):
        assert (await server.invoke_tool("echo", {})).text == "{}"
        assert served.rpcs[0] == "GET"
        assert all(one.headers["x-key"] == "k" for one in served.requests)


async def test_it_may_ask_and_tell_at_any_time() -> None:
    peer = Old()
    got: list[str] = []
    async with serving(peer) as served, Manager(roots=["file:///a"]) as manager:
        server = await manager.add("web", web(f"{served.origin}/sse", type="sse"))
        method = "notifications/message"
        manager.on_notification(method, lambda _, params: got.append(params["data"]))
        await server.wait_ready()
        await peer.tell(notice(method, {"level": "info", "data": "hello"}))
        await peer.tell({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})
        await eventually(lambda: got and peer.answers)
        assert got == ["hello"]
        assert peer.answers[0]["id"] == "q"
        assert peer.answers[0]["result"]["roots"][0]["uri"] == "file:///a"


async def test_with_its_stream_the_life_ends_and_another_begins() -> None:
    peer = Old()
    async with reached(peer, path="/sse", type="sse") as (_, server):
        await server.wait_ready()
        assert peer.stream is not None
        await peer.stream.end()
        await eventually(lambda: server.generation == 2 and server.state == "up")
        assert "the server closed its stream" in str(server.incidents[0])


async def test_a_call_in_flight_is_lost_with_the_stream() -> None:
    peer = Old()
    began = anyio.Event()

    async def silent(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            await exchange.send(202)
            began.set()
        else:
            await peer(exchange)

    async with reached(silent, path="/sse", type="sse") as (_, server):
        await server.wait_ready()
        async with anyio.create_task_group() as group:

            async def call() -> None:
                with pytest.raises(ServerDied, match="the server closed its stream") as caught:
                    await server.invoke_tool("echo", {})
                assert caught.value.maybe_done is True

            group.start_soon(call)
            await began.wait()
            assert peer.stream is not None
            await peer.stream.end()


async def test_a_call_that_is_refused_is_its_own() -> None:
    peer = Old()
    async with reached(peer, path="/sse", type="sse") as (_, server):
        await server.wait_ready()
        peer.status = 500
        with pytest.raises(HttpError) as caught:
            await server.invoke_tool("echo", {})
        assert caught.value.status == 500
        peer.status = 202
        assert (await server.invoke_tool("echo", {})).text == "{}"
        assert server.generation == 1


async def test_a_call_that_times_out_is_cancelled_by_a_notification() -> None:
    peer = Old()

    async def silent(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            await exchange.send(202)
        else:
            await peer(exchange)

    async with reached(silent, path="/sse", type="sse") as (served, server):
        await server.wait_ready()
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("echo", {}, timeout=0.5)
        await eventually(lambda: "notifications/cancelled" in served.rpcs)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:9/x", "//evil.example/x", "mailto:x"])
async def test_messages_are_never_sent_to_another_origin(endpoint: str) -> None:
    async with reached(Old(endpoint), path="/sse", type="sse", headers={"X": "k"}) as (
        served,
        server,
    ):
        server.begin()
        await eventually(lambda: server.incidents)
        assert "it wants its messages at another origin" in str(server.incidents[0])
        assert "POST" not in {one.method for one in served.requests}


async def test_what_is_of_neither_kind_is_told_by_what_the_newer_way_gave() -> None:
    async def neither(exchange: Exchange) -> None:
        await exchange.send(404, b"nothing here")

    async with reached(neither) as (served, server):
        with pytest.raises(OpeningFailed) as caught:
            await server.wait_ready()
        assert str(caught.value) == (
            'server "web": HTTP 404: the server has no such endpoint; check the path of the url '
            "(nothing here)"
        )
        assert server.state == "failed"
        assert served.rpcs == ["server/discover", "initialize", "GET"]


async def test_an_old_server_that_wants_credentials_says_so() -> None:
    async def guarded(exchange: Exchange) -> None:
        await exchange.send(401, WWW_Authenticate="Bearer")

    async with reached(guarded, path="/sse", type="sse") as (_, server):
        with pytest.raises(AccessRefused) as caught:
            await server.wait_ready()
        assert caught.value.challenges[0].scheme == "Bearer"
        assert server.state == "failed"
