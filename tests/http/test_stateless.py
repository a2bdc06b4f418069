"""The stateless era over HTTP: each request stands for itself, and its headers say what it is."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallLost,
    CallTimedOut,
    Limits,
    LocalProtocolError,
    RemoteProtocolError,
    ReplyError,
)
from tests.conftest import eventually
from tests.http.helpers import reached
from tests.http.peer import STATELESS, Exchange, answer, notice, stateless

META = "io.modelcontextprotocol/"
TASKS = "io.modelcontextprotocol/tasks"


def text(said: str) -> dict[str, Any]:
    return {"resultType": "complete", "content": [{"type": "text", "text": said}]}


def of_tool_calls(handler: Any) -> Any:
    """Return a handler that leaves all but tool calls to the lawful one."""

    async def both(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            await handler(exchange)
        else:
            await stateless(exchange)

    return both


async def test_each_message_is_a_post_of_its_own_with_its_name_and_version() -> None:
    async with reached(stateless) as (served, server):
        await server.invoke_tool("ümlaut", {"a": 1})
        await server.notify("notifications/custom", {"x": 1})
        await eventually(lambda: served.of("notifications/custom"))
        for one in served.requests:
            assert one.method == "POST"
            assert one.headers["mcp-protocol-version"] == STATELESS
            assert one.headers["mcp-method"] == one.message["method"]
            assert "mcp-session-id" not in one.headers
        [call] = served.of("tools/call")
        name = base64.b64encode("ümlaut".encode()).decode()
        assert call.headers["mcp-name"] == f"=?base64?{name}?="
        assert call.message["params"]["_meta"][f"{META}protocolVersion"] == STATELESS


async def test_a_sessions_id_is_ignored_where_there_are_no_sessions() -> None:
    async def naming(exchange: Exchange) -> None:
        if exchange.message.get("method") == "server/discover":
            result = {
                "resultType": "complete",
                "supportedVersions": [STATELESS],
                "capabilities": {"tools": {}},
            }
            await exchange.result(result, Mcp_Session_Id="s")
        else:
            await stateless(exchange)

    async with reached(naming) as (served, server):
        await server.invoke_tool("echo", {})
        assert all("mcp-session-id" not in one.headers for one in served.requests)
        assert "DELETE" not in served.rpcs


async def test_progress_comes_on_the_stream_of_its_call_and_the_stream_is_let_go() -> None:
    told: list[tuple[float, float | None, str | None]] = []
    left = anyio.Event()

    async def progressing(exchange: Exchange) -> None:
        token = exchange.message["params"]["_meta"]["progressToken"]
        await exchange.events()
        for step in (1, 2):
            params = {"progressToken": token, "progress": step, "total": 2}
            await exchange.event(notice("notifications/progress", params))
        await exchange.event(answer(exchange.message["id"], text("done")))
        try:
            await exchange.hung_up()  # the server does not end it by itself
        finally:
            left.set()

    async with reached(of_tool_calls(progressing)) as (_, server):
        result = await server.invoke_tool("echo", {}, on_progress=lambda *facts: told.append(facts))
        assert result.text == "done"
        await left.wait()
        assert told == [(1, 2, None), (2, 2, None)]


async def test_a_call_that_is_cancelled_closes_its_stream_and_says_nothing_more() -> None:
    begun, left = anyio.Event(), anyio.Event()

    async def lasting(exchange: Exchange) -> None:
        await exchange.events()
        begun.set()
        try:
            await exchange.hung_up()
        finally:
            left.set()

    async with reached(of_tool_calls(lasting)) as (served, server):
        async with anyio.create_task_group() as group:
            group.start_soon(server.invoke_tool, "echo", {})
            await begun.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(10):
            await left.wait()
        assert await server.list_tools()
        assert served.rpcs == ["server/discover", "tools/call", "tools/list"]


async def test_a_call_that_times_out_closes_its_connection() -> None:
    left = anyio.Event()

    async def silent(exchange: Exchange) -> None:
        try:
            await exchange.hung_up()
        finally:
            left.set()

    async with reached(of_tool_calls(silent)) as (served, server):
        await server.wait_ready()
        with pytest.raises(CallTimedOut) as caught:
            await server.invoke_tool("echo", {}, timeout=0.3)
        assert caught.value.maybe_done
        with anyio.fail_after(10):
            await left.wait()
        assert "notifications/cancelled" not in served.rpcs


async def test_a_request_on_a_stream_is_dropped_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def asking(exchange: Exchange) -> None:
        await exchange.events()
        await exchange.event({"jsonrpc": "2.0", "id": 9, "method": "roots/list"})
        await exchange.event(answer(exchange.message["id"], text("done")))
        await exchange.end()

    async with reached(of_tool_calls(asking)) as (served, server):
        assert (await server.invoke_tool("echo", {})).text == "done"
        assert "answer" not in served.rpcs
        assert "which this era forbids: roots/list" in caplog.text


async def test_a_stream_that_ends_without_an_answer_is_a_loss_and_is_not_resumed() -> None:
    async def ending(exchange: Exchange) -> None:
        await exchange.events()
        await exchange.event(id="e-1", retry=10)
        await exchange.end()

    async with reached(of_tool_calls(ending)) as (served, server):
        with pytest.raises(CallLost, match="ended before the answer") as caught:
            await server.invoke_tool("echo", {})
        assert caught.value.maybe_done
        assert "GET" not in served.rpcs
        assert server.generation == 1


async def test_what_only_reads_is_asked_again_where_an_exchange_broke_and_a_tool_is_not() -> None:
    broken: list[str] = []

    async def breaking(exchange: Exchange) -> None:
        method = exchange.message["method"]
        if method in ("resources/read", "tools/call") and method not in broken:
            broken.append(method)
            await exchange.events()
            await exchange.end()
        elif method == "resources/read":
            page = {"uri": "test://a", "text": "this is a"}
            result = {"contents": [page], "ttlMs": 0, "cacheScope": "private"}
            await exchange.result({"resultType": "complete", **result})
        else:
            await stateless(exchange)

    async with reached(breaking, resend="safe") as (served, server):
        assert (await server.read_resource("test://a")).text == "this is a"
        with pytest.raises(CallLost, match="ended before the answer"):
            await server.invoke_tool("echo", {"text": "hi"})
        assert [served.rpcs.count(one) for one in broken] == [2, 1]
        assert server.generation == 1


async def test_an_unknown_method_is_the_servers_own_error_though_it_comes_with_404() -> None:
    async with reached(stateless) as (_, server):
        with pytest.raises(ReplyError) as caught:
            await server.request("no/such")
        assert caught.value.code == -32601
        assert server.generation == 1


async def test_an_answer_over_the_limit_ends_its_call_alone() -> None:
    async def long(exchange: Exchange) -> None:
        size = exchange.message["params"]["arguments"]["size"]
        if exchange.message["params"]["name"] == "json":
            await exchange.result(text("x" * size))
        else:
            await exchange.events()
            await exchange.event(answer(exchange.message["id"], text("x" * size)))
            await exchange.end()

    async with reached(of_tool_calls(long), limits=Limits(frame=10_000)) as (_, server):
        for kind in ("json", "stream"):
            with pytest.raises(RemoteProtocolError, match=r"10.0 kB \(Limits.frame\)"):
                await server.invoke_tool(kind, {"size": 200_000})
            assert (await server.invoke_tool(kind, {"size": 9_000})).text == "x" * 9_000
        assert server.generation == 1
        assert server.status().oversize == 2


async def test_several_rounds_repeat_the_same_headers() -> None:
    async def rounds(exchange: Exchange) -> None:
        params = exchange.message["params"]
        if "inputResponses" not in params:
            ask = {
                "method": "elicitation/create",
                "params": {"message": "?", "requestedSchema": {"type": "object", "properties": {}}},
            }
            await exchange.result(
                {"resultType": "input_required", "inputRequests": {"q": ask}, "requestState": "s"}
            )
        else:
            assert params["requestState"] == "s"
            await exchange.result(text(params["inputResponses"]["q"]["action"]))

    def elicit(server: object, params: Mapping[str, Any]) -> dict[str, Any]:
        return {"action": "decline"}

    async with reached(of_tool_calls(rounds), manager={"on_elicit": elicit}) as (served, server):
        assert (await server.invoke_tool("echo", {})).text == "decline"
        assert [one.headers["mcp-name"] for one in served.of("tools/call")] == ["echo", "echo"]
        ids = [one.message["id"] for one in served.of("tools/call")]
        assert len(set(ids)) == 2


# -- subscriptions -------------------------------------------------------------------------


async def test_a_subscription_is_a_stream_that_lasts_and_is_opened_anew() -> None:
    streams: list[Exchange] = []

    async def listening(exchange: Exchange) -> None:
        if exchange.message.get("method") != "subscriptions/listen":
            await stateless(exchange)
            return
        await exchange.events()
        meta = {f"{META}subscriptionId": exchange.message["id"]}
        filters = exchange.message["params"]["notifications"]
        acknowledged = {"_meta": meta, "notifications": filters}
        await exchange.event(notice("notifications/subscriptions/acknowledged", acknowledged))
        streams.append(exchange)
        if len(streams) == 1:
            told = {"_meta": meta, "uri": "test://a"}
            await exchange.event(notice("notifications/resources/updated", told))
            await broken.wait()
            exchange.drop()
        await exchange.hung_up()

    broken = anyio.Event()
    async with reached(listening) as (served, server):
        async with server.subscribe("test://a") as updates:
            assert (await anext(updates))["uri"] == "test://a"
            broken.set()
            # It may have changed meanwhile: whoever follows is told so.
            assert (await anext(updates))["uri"] == "test://a"
            assert len(streams) == 2
            assert await server.list_tools()
        assert server.generation == 1
        assert "notifications/cancelled" not in served.rpcs
        await eventually(lambda: served.open <= 1)


# -- arguments in headers ------------------------------------------------------------------

REGION = {"type": "string", "x-mcp-header": "Region"}


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


class Marked:
    """A server whose tools want arguments in headers, and checks that they are there."""

    def __init__(self, **tools: Any) -> None:
        self.tools = tools
        self.wanted: dict[str, str] = {}

    async def __call__(self, exchange: Exchange) -> None:
        message = exchange.message
        if message.get("method") == "tools/list":
            listed = [{"name": name, "inputSchema": one} for name, one in self.tools.items()]
            await exchange.result({"resultType": "complete", "tools": listed})
        elif message.get("method") == "tools/call" and any(
            exchange.request.headers.get(name) != value for name, value in self.wanted.items()
        ):
            await exchange.error(-32020, "header mismatch", 400)
        else:
            await stateless(exchange)


async def test_marked_arguments_are_in_the_headers_once_the_schema_is_known() -> None:
    peer = Marked(query=schema(region=REGION, n={"type": "integer", "x-mcp-header": "N"}))
    async with reached(peer) as (served, server):
        await server.invoke_tool("query", {"region": "eu", "n": 1})
        assert await server.list_tools()
        await server.invoke_tool("query", {"region": "eu", "n": 1.0, "sql": "x"})
        await server.invoke_tool("query", {"region": None})
        calls = [
            {name: value for name, value in one.headers.items() if name.startswith("mcp-param-")}
            for one in served.of("tools/call")
        ]
        assert calls == [{}, {"mcp-param-region": "eu", "mcp-param-n": "1"}, {}]
        with pytest.raises(LocalProtocolError, match="Mcp-Param-N must be within"):
            await server.invoke_tool("query", {"n": 2**60})
        assert len(served.of("tools/call")) == 3


async def test_tools_that_cannot_be_called_are_left_out_with_one_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    peer = Marked(good=schema(region=REGION), bad=schema(x={"type": "number", "x-mcp-header": "X"}))
    async with reached(peer) as (_, server):
        for _ in range(2):
            assert [tool.name for tool in await server.list_tools()] == ["good"]
        assert [tool.name for tool in await server.no_wait.list_tools()] == ["good"]
        warned = [one for one in caplog.records if one.levelno == logging.WARNING]
        assert [one.getMessage() for one in warned] == [
            "web ! the tool 'bad' is left out: x-mcp-header 'X' at properties/x is on the type "
            "'number', not on string, integer or boolean"
        ]


async def test_a_mismatch_of_headers_has_the_tools_listed_and_the_call_made_once_more() -> None:
    peer = Marked(query=schema(region=REGION))
    peer.wanted = {"mcp-param-region": "eu"}
    async with reached(peer) as (served, server):
        # Nothing is known of the tool yet.
        assert (await server.invoke_tool("query", {"region": "eu"})).text == '{"region": "eu"}'
        assert served.rpcs[1:] == ["tools/call", "tools/list", "tools/call"]
        # The schema changes under us.
        peer.tools["query"] = schema(region=REGION | {"x-mcp-header": "Area"})
        peer.wanted = {"mcp-param-area": "eu"}
        assert (await server.invoke_tool("query", {"region": "eu"})).text == '{"region": "eu"}'


async def test_a_mismatch_that_stays_is_told() -> None:
    peer = Marked(query=schema(region=REGION))
    peer.wanted = {"mcp-param-region": "us"}
    async with reached(peer) as (served, server):
        with pytest.raises(ReplyError) as caught:
            await server.invoke_tool("query", {"region": "eu"})
        assert caught.value.code == -32020
        assert served.rpcs.count("tools/call") == 2


async def test_a_tool_that_is_called_again_and_again_is_not_listed_each_time() -> None:
    async with reached(stateless) as (served, server):
        for number in range(5):
            result = await server.invoke_tool("echo", {"n": number})
            assert json.loads(result.text) == {"n": number}
        assert served.rpcs == ["server/discover", *["tools/call"] * 5]
        assert served.connections == 1


async def test_a_task_is_followed_by_its_name_in_the_headers() -> None:
    asked: list[str] = []

    def task(status: str, **more: Any) -> dict[str, Any]:
        return {
            "taskId": "t-1",
            "status": status,
            "createdAt": "2026-08-01T00:00:00Z",
            "lastUpdatedAt": "2026-08-01T00:00:00Z",
            "ttlMs": None,
            "pollIntervalMs": 10,
            **more,
        }

    async def tasked(exchange: Exchange) -> None:
        method = exchange.message.get("method")
        if method == "server/discover":
            await exchange.result(
                {
                    "resultType": "complete",
                    "supportedVersions": [STATELESS],
                    "capabilities": {"tools": {}, "extensions": {TASKS: {}}},
                }
            )
        elif method == "tools/call":
            await exchange.result({"resultType": "task", **task("working")})
        elif method == "tasks/get":
            asked.append(exchange.request.headers["mcp-name"])
            done = len(asked) > 1
            more = {"result": text("done")} if done else {}
            status = "completed" if done else "working"
            await exchange.result({"resultType": "complete", **task(status, **more)})
        else:
            await stateless(exchange)

    async with reached(tasked, manager={"extensions": {TASKS: {}}}) as (_, server):
        assert (await server.invoke_tool("slow", {})).text == "done"
        assert asked == ["t-1", "t-1"]
