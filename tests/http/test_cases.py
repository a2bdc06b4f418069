"""The cases of the kind http of the field reports, and those of other kinds that are of HTTP."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from mcpclient import CallLost, HttpError, Manager, RemoteProtocolError, ReplyError, ServerDied
from tests.cases import case
from tests.conftest import eventually
from tests.http.helpers import reached, web
from tests.http.peer import Exchange, Handshake, answer, notice, serving, stateless


def echo(message: dict[str, Any], text: str = "late") -> dict[str, Any]:
    return answer(message["id"], {"content": [{"type": "text", "text": text}]})


@case("B221")
async def test_a_session_that_is_gone_is_opened_anew_and_the_call_made_in_it() -> None:
    peer = Handshake()
    async with reached(peer) as (served, server):
        assert (await server.invoke_tool("echo", {"a": 1})).text == '{"a": 1}'
        peer.sessions.clear()  # the server was restarted
        assert (await server.invoke_tool("echo", {"a": 2})).text == '{"a": 2}'
        assert (server.generation, server.state) == (2, "up")
        peer.sessions.clear()
        assert [tool.name for tool in await server.list_tools()] == ["echo"]
        assert [one.problem for one in server.incidents] == ["", ""]
        assert "does not know the session any more" in str(server.incidents[0])
        sent = [one.headers.get("mcp-session-id") for one in served.of("tools/call")]
        assert sent == ["s-1", "s-1", "s-2"]
        assert all("mcp-session-id" not in one.headers for one in served.of("initialize"))


@case("B221")
async def test_many_calls_that_find_the_session_gone_are_all_made_in_the_next() -> None:
    peer = Handshake()
    async with reached(peer) as (_, server):
        await server.wait_ready()
        peer.sessions.clear()
        texts: list[str] = []

        async def call(number: int) -> None:
            texts.append((await server.invoke_tool("echo", {"n": number})).text)

        async with anyio.create_task_group() as group:
            for number in range(12):
                group.start_soon(call, number)
        assert sorted(texts) == sorted(f'{{"n": {number}}}' for number in range(12))
        assert server.generation == 2


@case("B221")
async def test_a_session_that_is_gone_a_second_time_is_told() -> None:
    peer = Handshake()

    async def forgetful(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            peer.sessions.clear()
        await peer(exchange)

    async with reached(forgetful) as (_, server):
        with pytest.raises(ServerDied) as caught:
            await server.invoke_tool("echo", {})
        assert "does not know the session any more" in str(caught.value)
        assert caught.value.maybe_done is False


@case("B223")
async def test_a_stream_that_breaks_before_the_answer_loses_its_call() -> None:
    async def breaking(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            await exchange.events()
            await exchange.event(notice("notifications/progress", {"progressToken": 1}))
            exchange.drop()
        await stateless(exchange)

    async with reached(breaking) as (_, server):
        with pytest.raises(CallLost) as caught:
            await server.invoke_tool("echo", {})
        assert "the stream of the answer broke" in str(caught.value)
        assert caught.value.maybe_done is True
        assert await server.list_tools()
        assert server.generation == 1


@case("B224", "B244", "B133")
async def test_a_status_of_5xx_fails_its_call_alone_with_status_and_body() -> None:
    parked = anyio.Event()
    go = anyio.Event()

    async def failing(exchange: Exchange) -> None:
        arguments = exchange.message.get("params", {}).get("arguments", {})
        if arguments.get("fail"):
            await exchange.send(500, b"<h1>out\n of order</h1>", "text/html")
        elif arguments.get("wait"):
            parked.set()
            await go.wait()
            await stateless(exchange)
        else:
            await stateless(exchange)

    async with reached(failing) as (_, server):
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                assert (await server.invoke_tool("echo", {"wait": 1})).text == '{"wait": 1}'

            group.start_soon(wait)
            await parked.wait()
            with pytest.raises(HttpError) as caught:
                await server.invoke_tool("echo", {"fail": 1})
            go.set()
        assert (caught.value.status, caught.value.body) == (500, "<h1>out\n of order</h1>")
        assert caught.value.maybe_done is True
        assert str(caught.value) == (
            'tools/call on "web": HTTP 500, the server or a proxy before it failed: '
            "<h1>out of order</h1>; the server may have carried it out"
        )
        assert (server.state, server.generation) == ("up", 1)


@case("B244")
async def test_a_refusal_keeps_what_stands_in_its_body() -> None:
    async def refusing(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            await exchange.send(400, b'{"error": "the moon is full"}', "application/json")
        else:
            await stateless(exchange)

    async with reached(refusing) as (_, server):
        with pytest.raises(HttpError, match=r'HTTP 400, .*: \{"error": "the moon is full"\}'):
            await server.invoke_tool("echo", {})


@case("B226", "B227")
@pytest.mark.parametrize("status", [200, 400, 404, 405, 406, 501])
async def test_a_server_that_offers_no_stream_is_used_without(status: int) -> None:
    peer = Handshake()

    async def streamless(exchange: Exchange) -> None:
        if exchange.request.method == "GET":
            await exchange.send(status, b'{"ok": false}', "application/json")
        else:
            await peer(exchange)

    async with reached(streamless) as (served, server):
        assert (await server.invoke_tool("echo", {})).text == "{}"
        await server.invoke_tool("echo", {})
        assert (server.generation, server.state) == (1, "up")
        assert served.rpcs.count("GET") == 1


@case("B229", "B230")
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (202, b""),
        (204, b""),
        (200, b"null"),
        (200, b'{"jsonrpc":"2.0","id":null}'),
        (202, b"Accepted"),
    ],
)
async def test_whatever_a_notification_is_taken_with_is_fine(status: int, body: bytes) -> None:
    peer = Handshake()

    async def odd(exchange: Exchange) -> None:
        if exchange.message.get("method", "").startswith("notifications/"):
            await exchange.send(status, body, "application/json" if status == 200 and body else "")
        else:
            await peer(exchange)

    async with reached(odd) as (_, server):
        assert (await server.invoke_tool("echo", {})).text == "{}"
        assert server.status().noise == 0


@case("B232")
async def test_a_stream_that_was_cut_is_asked_for_again_and_a_conflict_waited_out() -> None:
    peer = Handshake()
    asked: list[int] = []

    async def cutting(exchange: Exchange) -> None:
        if exchange.request.method != "GET":
            await peer(exchange)
            return
        asked.append(len(asked))
        if len(asked) == 1:
            await exchange.events()
            await exchange.event(retry=10)
            exchange.drop()
        elif len(asked) == 2:
            await exchange.send(409)
        else:
            await exchange.events()
            told = {"level": "info", "data": "again"}
            await exchange.event(notice("notifications/message", told))
            await exchange.hung_up()

    async with reached(cutting) as (_, server):
        await server.wait_ready()
        await eventually(lambda: len(asked) >= 3)
        assert (server.generation, server.state, server.incidents) == (1, "up", [])
        assert (await server.invoke_tool("echo", {})).text == "{}"


@case("B233", "B223")
async def test_a_stream_that_is_closed_after_an_id_is_polled_for_the_answer() -> None:
    peer = Handshake()
    called: list[dict[str, Any]] = []

    async def early(exchange: Exchange) -> None:
        message = exchange.message
        if message.get("method") == "tools/call":
            called.append(message)
            await exchange.events()
            await exchange.event(id="e-1", retry=10)  # data is empty: no message
            await exchange.end()
        elif exchange.request.headers.get("last-event-id") == "e-1":
            await exchange.events()
            await exchange.event(echo(called[0]), id="e-2")
            await exchange.end()
        else:
            await peer(exchange)

    async with reached(early) as (served, server):
        assert (await server.invoke_tool("echo", {})).text == "late"
        resumed = [one for one in served.of("GET") if "last-event-id" in one.headers]
        assert [one.headers["mcp-session-id"] for one in resumed] == ["s-1"]
        assert server.status().noise == 0
        assert len(called) == 1


@case("B235")
async def test_only_messages_are_frames() -> None:
    async def pinging(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            await exchange.events()
            await exchange.text(": comment\n\n")
            await exchange.event("not json", name="ping")
            await exchange.event("   ")
            await exchange.event(echo(exchange.message), name="message")
            await exchange.end()
        else:
            await stateless(exchange)

    async with reached(pinging) as (_, server):
        assert (await server.invoke_tool("echo", {})).text == "late"
        assert server.status().noise == 0


@case("B236")
async def test_an_error_in_an_error_event_is_the_calls_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def failing(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            await exchange.events()
            await exchange.event("the disk is full", name="error")
            error = {"code": -32603, "message": "no disk"}
            told = {"jsonrpc": "2.0", "id": exchange.message["id"], "error": error}
            await exchange.event(told, name="error")
            await exchange.hung_up()
        await stateless(exchange)

    async with reached(failing) as (_, server):
        with caplog.at_level(logging.WARNING), pytest.raises(ReplyError, match="no disk"):
            await server.invoke_tool("echo", {})
        assert "an error event from the server: the disk is full" in caplog.text


@case("B238")
@pytest.mark.parametrize("kind", ["Text/Event-Stream; charset=utf-8", "text/event-stream;a=b"])
async def test_a_stream_is_known_by_its_type_in_any_spelling(kind: str) -> None:
    async def streaming(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            await exchange.head(200, {"Content-Type": kind, "Transfer-Encoding": "chunked"})
            await exchange.event(echo(exchange.message))
            await exchange.end()
        else:
            await stateless(exchange)

    async with reached(streaming) as (_, server):
        assert (await server.invoke_tool("echo", {})).text == "late"


@case("B238")
@pytest.mark.parametrize(
    ("kind", "body", "said"),
    [
        ("text/html", b"<html>", "the answer is of the type text/html, neither"),
        ("application/json", b"", "HTTP 200 came without an answer in it"),
        ("application/json", b"{}", "what came back is no answer to this: {}"),
        ("application/json", b"not json", "what came back is no answer to this: not json"),
        ("", b"", "HTTP 200 came without an answer in it"),
    ],
)
async def test_what_is_no_answer_is_an_error_and_never_an_empty_result(
    kind: str, body: bytes, said: str
) -> None:
    async def odd(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            await exchange.send(200, body, kind)
        else:
            await stateless(exchange)

    async with reached(odd) as (_, server):
        with pytest.raises(RemoteProtocolError) as caught:
            await server.invoke_tool("echo", {})
        assert said in str(caught.value)


@case("B239", "B241")
@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_within_the_origin_is_followed_with_body_and_headers(status: int) -> None:
    async def moved(exchange: Exchange) -> None:
        if exchange.request.target == "/mcp":
            await exchange.send(status, Location="/mcp/")
        else:
            await stateless(exchange)

    headers = {"Authorization": "Bearer hunter2"}
    async with reached(moved, headers=headers) as (served, server):
        assert (await server.invoke_tool("echo", {"a": 1})).text == '{"a": 1}'
        arrived = [one for one in served.requests if one.target == "/mcp/"]
        assert [one.rpc for one in arrived] == ["server/discover", "tools/call"]
        assert all(one.headers["authorization"] == "Bearer hunter2" for one in arrived)
        # A permanent one is remembered.
        assert len(served.requests) - len(arrived) == (2 if status == 307 else 1)


@case("B242", "B248")
@pytest.mark.parametrize("status", [200, 204, 405, 500])
async def test_the_session_is_given_back_once_whatever_the_server_says_to_it(status: int) -> None:
    peer = Handshake()
    deleted: list[str | None] = []

    async def ending(exchange: Exchange) -> None:
        if exchange.request.method == "DELETE":
            deleted.append(exchange.request.headers.get("mcp-session-id"))
            await exchange.send(status)
        else:
            await peer(exchange)

    async with serving(ending) as served:
        async with Manager({"web": web(served.url)}) as manager:
            await manager["web"].invoke_tool("echo", {})
            await manager["web"].stop()
            assert deleted == ["s-1"]
            assert manager["web"].state == "idle"
        assert deleted == ["s-1"]


@case("B248")
async def test_a_server_that_does_not_answer_to_the_end_of_the_session_is_left() -> None:
    peer = Handshake()
    asked = anyio.Event()

    async def silent(exchange: Exchange) -> None:
        if exchange.request.method == "DELETE":
            asked.set()
            await exchange.hung_up()
        await peer(exchange)

    async with reached(silent) as (_, server):
        await server.invoke_tool("echo", {})
        with anyio.fail_after(15):
            await server.stop()
        assert asked.is_set()


@case("B245")
@pytest.mark.parametrize("status", [400, 404, 500])
async def test_a_refused_notification_is_logged_and_changes_nothing(
    status: int, caplog: pytest.LogCaptureFixture
) -> None:
    peer = Handshake()

    async def refusing(exchange: Exchange) -> None:
        if exchange.message.get("method") == "notifications/odd":
            await exchange.send(status, b"what?")
        else:
            await peer(exchange)

    async with reached(refusing) as (served, server):
        await server.notify("notifications/odd")
        await eventually(lambda: "notifications/odd was not taken" in caplog.text)
        assert f"HTTP {status}" in caplog.text
        await server.invoke_tool("echo", {})
        assert (server.generation, served.rpcs.count("initialize")) == (1, 1)


@case("B247")
async def test_the_stream_is_there_before_the_first_call_is_made() -> None:
    peer = Handshake()

    async def asking(exchange: Exchange) -> None:
        # As soon as a call comes, the server asks on the stream that must be there.
        [stream] = peer.streams
        params = {"messages": [], "maxTokens": 1}
        ask = {"jsonrpc": "2.0", "id": "a", "method": "sampling/createMessage", "params": params}
        await stream.event(ask)
        await answered.wait()
        await exchange.result({"content": [{"type": "text", "text": "asked"}]})

    answered = anyio.Event()
    peer.call = asking

    async def slow(exchange: Exchange) -> None:
        if exchange.request.method == "GET":
            await anyio.sleep(0.2)
        await peer(exchange)
        if "result" in exchange.message and exchange.message["id"] == "a":
            answered.set()

    def sample(server: object, params: Any) -> dict[str, Any]:
        return {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}

    async with reached(slow, manager={"on_sample": sample}) as (served, server):
        assert (await server.invoke_tool("echo", {})).text == "asked"
        rpcs = served.rpcs
        assert (
            rpcs.index("notifications/initialized") < rpcs.index("GET") < rpcs.index("tools/call")
        )
        [reply] = served.of("answer")
        assert reply.headers["mcp-session-id"] == "s-1"
        assert reply.message["result"]["model"] == "m"


@case("B247")
async def test_a_stream_whose_head_never_comes_does_not_hold_up_the_calls() -> None:
    peer = Handshake()

    async def mute(exchange: Exchange) -> None:
        if exchange.request.method == "GET":
            await exchange.hung_up()
        await peer(exchange)

    async with reached(mute) as (_, server):
        assert (await server.invoke_tool("echo", {}, timeout=15)).text == "{}"


@case("B68")
@pytest.mark.parametrize("status", [400, 404, 405, 406, 415, 422])
async def test_an_old_server_that_refuses_the_probe_is_opened_by_initialize(status: int) -> None:
    peer = Handshake()

    async def refusing(exchange: Exchange) -> None:
        if exchange.message.get("method") == "server/discover":
            error = {"code": -32600, "message": "missing session"}
            await exchange.json({"jsonrpc": "2.0", "id": None, "error": error}, status)
        else:
            await peer(exchange)

    async with reached(refusing) as (served, server):
        assert (await server.invoke_tool("echo", {})).text == "{}"
        assert (server.era, server.protocol_version) == ("handshake", "2025-11-25")
        [opened] = served.of("initialize")
        assert "mcp-protocol-version" not in opened.headers
        assert "mcp-method" not in opened.headers
        assert server.status().noise == 0
