"""What goes wrong on the way, or at the other end of it: each costs its call, and nothing else.

A call ends with an error of its type, which says honestly whether the server may have carried it
out; it is never made twice; and the next one works.
"""

from __future__ import annotations

import gzip
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallLost,
    CallTimedOut,
    HttpError,
    Limits,
    Manager,
    McpClientError,
    RemoteProtocolError,
    Server,
)
from tests.conftest import eventually
from tests.features.followers import heard
from tests.http.helpers import reached, web
from tests.http.peer import Exchange, Handler, Handshake, Peer, answer, serving, stateless
from tests.remote.faults import Fault, Proxy, proxy

TOOLS_CHANGED = "notifications/tools/list_changed"
ECHO = {"resultType": "complete", "content": [{"type": "text", "text": "x"}]}


class Metered(Fault):
    """So many bytes of the server's pass over all connections together, then the next one ends."""

    left: int | None = None
    ended = 0
    reset_too = False

    async def down(self, data: bytes) -> None:
        kind = type(self)
        if kind.left is None:
            await super().down(data)
            return
        passed, left = data[: kind.left], kind.left - len(data)
        kind.left = None if left < 0 else left
        if passed:
            await self.link.client.send(passed)
        if left < 0:
            kind.ended += 1
            if kind.reset_too:
                self.link.reset()
            await self.link.cut()


@asynccontextmanager
async def between(
    handler: Handler, fault: Callable[[], Fault], **options: Any
) -> AsyncIterator[tuple[Peer, Proxy, Server]]:
    async with (
        serving(handler) as peer,
        proxy(peer.port, fault) as way,
        Manager() as manager,
    ):
        server = await manager.add("web", web(f"{way.origin}/mcp", **options))
        await server.wait_ready()
        yield peer, way, server
        await server.stop()


def only_calls(how: Handler) -> Handler:
    """Return a handler that answers calls as the test says, and all else lawfully."""

    async def handler(exchange: Exchange) -> None:
        given = exchange.message.get("params", {}).get("arguments", {})
        odd = exchange.message.get("method") == "tools/call" and given != {"well": True}
        await (how if odd else stateless)(exchange)

    return handler


async def works(server: Server) -> None:
    assert (await server.invoke_tool("echo", {"well": True})).text == '{"well": true}'


# -- on the way ----------------------------------------------------------------------------


async def as_json(exchange: Exchange) -> None:
    await exchange.result(ECHO)


async def as_events(exchange: Exchange) -> None:
    await exchange.events()
    await exchange.event(answer(exchange.message["id"], ECHO))
    await exchange.end()


@pytest.mark.parametrize("how", [as_json, as_events])
async def test_an_answer_is_cut_at_every_byte(how: Handler) -> None:
    fault = type("Fault", (Metered,), {})
    async with between(only_calls(how), fault) as (peer, _, server):
        place, answered = 0, 0
        while True:
            fault.left, fault.ended = place, 0
            fault.reset_too = place % 3 == 0
            lost: list[CallLost] = []
            try:
                assert (await server.invoke_tool("echo", {})).text == "x"
                answered += 1
            except CallLost as problem:
                lost.append(problem)
            for one in lost:
                # Whatever came, it may have been done: it was on the wire.
                assert one.maybe_done is True
                assert (one.method, one.server) == ("tools/call", "web")
                assert "broke" in str(one)
                assert answered == 0
            made, fault.left = fault.ended, None
            if not made:
                break
            if place % 20 == 0:
                await works(server)
            place += 1
        # Each was made once; whether it is answered depends on nothing but whether all is there.
        assert place > 150
        calls = [one for one in peer.of("tools/call") if one.message["params"]["arguments"] == {}]
        assert len(calls) == place + 1
        assert answered >= 1
        assert server.state == "up"
        assert server.generation == 1
        assert server.status().noise == 0


async def test_connections_that_are_reset_while_nobody_uses_them_cost_nothing() -> None:
    async with between(stateless, Fault) as (peer, way, server):
        for _ in range(5):
            await works(server)
            for link in way.links:
                await link.drop()
        await works(server)
        assert len(peer.of("tools/call")) == 6
        assert len(way.links) == 6
        assert server.incidents == []


async def test_a_connection_that_is_reset_by_the_request_loses_it_and_does_not_repeat_it() -> None:
    class Refusing(Fault):
        async def up(self, data: bytes) -> None:
            if b"tools/call" in data and b"well" not in data:
                await super().up(data)
                self.link.reset()
            await super().up(data)

    async with between(stateless, Refusing) as (peer, _, server):
        await works(server)
        with pytest.raises(CallLost) as caught:
            await server.invoke_tool("echo", {"a": 1})
        assert caught.value.maybe_done is True
        assert "the server may have carried it out" in str(caught.value)
        await works(server)
        assert server.generation == 1
        # It may have reached the server, which is what the error says; it did so once at most.
        sent = [one.message["params"]["arguments"] for one in peer.of("tools/call")]
        assert sent.count({"a": 1}) <= 1


async def test_a_peer_that_vanishes_in_the_middle_is_waited_for_until_the_time_out() -> None:
    class Vanishing(Fault):
        async def down(self, data: bytes) -> None:
            if b'"x"' in data:
                await super().down(data[:-20])
            else:
                await super().down(data)

    async with between(only_calls(as_json), Vanishing) as (_, way, server):
        with pytest.raises(CallTimedOut) as caught:
            await server.invoke_tool("echo", {}, timeout=0.3)
        assert caught.value.maybe_done is True
        await works(server)
        assert server.state == "up"
        assert len(way.links) > 1  # that connection is not used again


# -- at the other end ----------------------------------------------------------------------


async def test_a_server_that_never_answers_is_left_at_the_time_out() -> None:
    gone = anyio.Event()

    async def silent(exchange: Exchange) -> None:
        try:
            await exchange.hung_up()
        finally:
            gone.set()

    async with reached(only_calls(silent)) as (_, server):
        with pytest.raises(CallTimedOut, match="no answer within"):
            await server.invoke_tool("echo", {}, timeout=0.3)
        with anyio.fail_after(10):
            await gone.wait()
        await works(server)


async def test_a_stream_of_comments_without_end_is_left_at_the_time_out() -> None:
    sent: list[int] = []

    async def chatting(exchange: Exchange) -> None:
        await exchange.events()
        while True:
            await exchange.text(": still here\n\n")
            sent.append(1)
            await anyio.sleep(0.001)

    async with reached(only_calls(chatting)) as (served, server):
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("echo", {}, timeout=0.5)
        assert sent
        await works(server)
        await eventually(lambda: served.open <= 1)


async def test_what_is_sent_twice_counts_once() -> None:
    told: list[Any] = []

    async def twice(exchange: Exchange) -> None:
        await exchange.events()
        token = exchange.message["params"]["_meta"]["progressToken"]
        for done in (1, 1, 2, 2):
            params = {"progressToken": token, "progress": done}
            note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
            await exchange.event(note)
        for _ in range(3):
            await exchange.event(answer(exchange.message["id"], ECHO))
        await exchange.end()

    async with reached(only_calls(twice)) as (_, server):
        result = await server.invoke_tool("echo", {}, on_progress=lambda *facts: told.append(facts))
        assert result.text == "x"
        assert [one[0] for one in told] in ([1, 2], [1, 1, 2, 2])
        await works(server)
        assert server.status().noise == 0


@pytest.mark.parametrize("end", [True, False])
async def test_an_event_that_the_end_of_its_stream_cuts_off_is_none(end: bool) -> None:
    async def half(exchange: Exchange) -> None:
        await exchange.events()
        whole = json.dumps(answer(exchange.message["id"], ECHO))
        # All of it is there, but the line that says so.
        await exchange.text(f"data: {whole}\n")
        if end:
            await exchange.end()
        exchange.drop()

    async with reached(only_calls(half)) as (_, server):
        with pytest.raises(CallLost, match=r"the stream of the answer (ended|broke)") as caught:
            await server.invoke_tool("echo", {})
        assert caught.value.maybe_done is True
        await works(server)


PAGE = b"<html>\n<body><h1>Bad \x1b[31mGateway</h1></body>\n</html>\n"


@pytest.mark.parametrize("status", [500, 502, 503, 504, 520])
async def test_a_page_of_a_proxy_fails_its_call_with_the_status(status: int) -> None:
    async def page(exchange: Exchange) -> None:
        await exchange.send(status, PAGE, "text/html; charset=utf-8")

    async with reached(only_calls(page)) as (_, server):
        with pytest.raises(HttpError) as caught:
            await server.invoke_tool("echo", {})
        assert (caught.value.status, caught.value.maybe_done) == (status, True)
        assert f"HTTP {status}" in str(caught.value)
        assert "\x1b" not in str(caught.value)
        assert "\n" not in str(caught.value)
        assert "Gateway" in str(caught.value.body)
        await works(server)
        assert server.generation == 1


def whole(**more: str) -> Callable[[bytes], bytes]:
    """Return what makes an answer of a body, with other headers."""

    def made(body: bytes) -> bytes:
        told = {"Content-Type": "application/json", "Content-Length": str(len(body)), **more}
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in told.items()]
        return "\r\n".join(["HTTP/1.1 200 OK", *lines, "", ""]).encode() + body

    return made


def chunked(*parts: bytes, last: bytes = b"0\r\n\r\n") -> Callable[[bytes], bytes]:
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    return lambda body: head + b"".join(parts) + last


JSON = b"Content-Type: application/json\r\n"
# What a lawful, if odd, server may send.
FINE: dict[str, Callable[[bytes], bytes]] = {
    "until the end of the connection": lambda b: b"HTTP/1.0 200 OK\r\n" + JSON + b"\r\n" + b,
    "after an early hint": lambda b: b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + whole()(b),
    "after two that say to go on": lambda b: b"HTTP/1.1 100 Continue\r\n\r\n" * 2 + whole()(b),
    "in chunks with words after their size": lambda b: chunked(
        b"%x;name=value\r\n" % len(b) + b + b"\r\n"
    )(b),
    "in chunks with a trailer": lambda b: chunked(
        b"%X\r\n" % len(b) + b + b"\r\n", last=b"0\r\nX-Sum: 1\r\n\r\n"
    )(b),
    "byte by byte in chunks": lambda b: chunked(
        *(b"1\r\n" + b[n : n + 1] + b"\r\n" for n in range(len(b)))
    )(b),
    "without a reason": lambda b: whole()(b).replace(b"200 OK", b"200"),
    "with headers of 60 kB": whole(X_Long="y" * 60_000),
    "with odd headers": whole(X_Odd="\u00fc \t;;,", Set_Cookie="a=b; Secure"),
}


@pytest.mark.parametrize("how", FINE)
async def test_what_is_lawful_and_odd_is_read(how: str) -> None:
    async def odd(exchange: Exchange) -> None:
        body = json.dumps(answer(exchange.message["id"], ECHO)).encode()
        await exchange.raw(FINE[how](body))
        if "end" in how:
            exchange.drop()

    async with reached(only_calls(odd)) as (_, server):
        assert (await server.invoke_tool("echo", {})).text == "x"
        await works(server)


# What nobody may send: the rows tell how, and by what name its call ends.
WRONG: dict[str, tuple[Callable[[bytes], bytes], type[McpClientError]]] = {
    "no HTTP": (lambda b: b"hello\r\n\r\n", CallLost),
    "the banner of another protocol": (lambda b: b"SSH-2.0-OpenSSH_9.2\r\n", CallLost),
    "binary rubbish": (lambda b: bytes(range(256)) * 4, CallLost),
    "a status that is no number": (lambda b: b"HTTP/1.1 abc OK\r\n\r\n", CallLost),
    "a header without a name": (lambda b: b"HTTP/1.1 200 OK\r\n: x\r\n\r\n", CallLost),
    "headers of 1 MB": (whole(X_Long="y" * 1_000_000), CallLost),
    "two lengths": (lambda b: whole(Content_length="3")(b), CallLost),
    "a length that is no number": (whole(Content_Length="many"), CallLost),
    "a length below zero": (whole(Content_Length="-5"), CallLost),
    "less than it says": (lambda b: whole(Content_Length=str(len(b) + 9))(b), CallLost),
    "half of it, as it says": (lambda b: whole()(b[: len(b) // 2]), RemoteProtocolError),
    "a size of a chunk that is none": (chunked(b"zz\r\nabc\r\n"), CallLost),
    "a size of a chunk without end": (chunked(b"f" * 200 + b"\r\nabc\r\n"), CallLost),
    "a chunk that is longer than it says": (chunked(b"1\r\nabc\r\n"), CallLost),
    "compressed, though nobody asked": (
        lambda b: whole(Content_Encoding="gzip")(gzip.compress(b)),
        RemoteProtocolError,
    ),
    "another's answer": (
        lambda b: whole()(b'{"jsonrpc":"2.0","id":99999,"result":{}}'),
        RemoteProtocolError,
    ),
    "nothing, with 204": (lambda b: b"HTTP/1.1 204 No Content\r\n\r\n", RemoteProtocolError),
    "nothing, with 202": (
        lambda b: b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n",
        RemoteProtocolError,
    ),
    "another protocol": (
        lambda b: b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        CallLost,
    ),
}


@pytest.mark.parametrize("how", WRONG)
async def test_what_is_not_lawful_ends_its_call_by_name(how: str) -> None:
    made, kind = WRONG[how]

    async def wrong(exchange: Exchange) -> None:
        body = json.dumps(answer(exchange.message["id"], ECHO)).encode()
        await exchange.raw(made(body))
        exchange.drop()

    async with reached(only_calls(wrong)) as (_, server):
        with pytest.raises(kind) as caught:
            await server.invoke_tool("echo", {}, timeout=20)
        assert type(caught.value) is kind
        if isinstance(caught.value, CallLost):
            assert caught.value.maybe_done is True
        assert 'tools/call on "web"' in str(caught.value)
        assert len(str(caught.value)) < 1000
        assert str(caught.value).isprintable()
        await works(server)
        assert server.state == "up"
        assert server.generation == 1


@pytest.mark.parametrize("form", ["json", "one event", "many lines"])
async def test_an_answer_without_end_is_left_at_the_limit(form: str) -> None:
    ended = anyio.Event()

    async def endless(exchange: Exchange) -> None:
        try:
            if form == "json":
                told = {"Content-Type": "application/json", "Transfer-Encoding": "chunked"}
                await exchange.head(200, told)
                await exchange.text('{"jsonrpc": "2.0", "result": {"a": "')
            else:
                await exchange.events()
                await exchange.text("data: ")
            while True:
                await exchange.text("y" * 1000 + ("\ndata: " if form == "many lines" else ""))
        finally:
            ended.set()

    handler = only_calls(endless)
    async with reached(handler, limits=Limits(frame=100_000)) as (_, server):
        with pytest.raises((RemoteProtocolError, CallTimedOut)) as caught:
            # An event that is too long is skipped to its end, if there is one: the time-out is it.
            await server.invoke_tool("echo", {}, timeout=20 if form == "json" else 0.5)
        if form == "json":
            assert "the limit is 100.0 kB (Limits.frame)" in str(caught.value)
        with anyio.fail_after(10):
            await ended.wait()
        await works(server)


async def test_a_server_that_wants_to_be_asked_again_at_once_is_not_asked_in_a_storm() -> None:
    """It closes each stream at once, says ``retry: 0``, and repeats itself."""
    peer = Handshake()
    asked: list[float] = []

    async def hasty(exchange: Exchange) -> None:
        if exchange.request.method != "GET":
            await peer(exchange)
            return
        asked.append(time.monotonic())
        await exchange.events()
        await exchange.event(id="1", retry=0)
        await exchange.end()

    async with reached(hasty) as (_, server):
        await server.wait_ready()
        await eventually(lambda: len(asked) == 20)
        pauses = [after - before for before, after in pairwise(asked)]
        assert min(pauses) >= 0.015
        assert server.state == "up"
        assert server.incidents == []


async def test_what_was_told_while_there_was_no_stream_is_made_good_for() -> None:
    """The server has no ids for its events, so nobody can ask for those that were lost."""
    peer = Handshake(named=False)
    reads: list[int] = []
    uri = "test://a"

    async def old(exchange: Exchange) -> None:
        method = exchange.message.get("method")
        if method == "initialize":
            offered = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}
            told = {"protocolVersion": "2025-11-25", "capabilities": offered}
            await exchange.result({**told, "serverInfo": {"name": "peer", "version": "1"}})
        elif method == "resources/subscribe":
            await exchange.result({})
        elif method == "resources/read":
            reads.append(1)
            text = {"uri": uri, "text": f"read {len(reads)}"}
            await exchange.result({"contents": [text]})
        else:
            await peer(exchange)

    changed: list[str] = []
    async with serving(old) as served, Manager() as manager:
        manager.on_notification(TOOLS_CHANGED, lambda server, params: changed.append(server.name))
        server = await manager.add("web", web(served.url))
        async with server.subscribe(uri) as updates:
            assert (await server.read_resource(uri)).text == "read 1"
            assert (await server.read_resource(uri)).text == "read 1"
            await eventually(lambda: peer.streams)
            await peer.streams[0].stream.aclose()
            assert await heard(updates) == {"uri": uri}
            assert (await server.read_resource(uri)).text == "read 2"
            assert (await server.read_resource(uri)).text == "read 2"
        await eventually(lambda: changed == ["web"])
        assert server.generation == 1
        assert server.incidents == []
