"""What a hostile or odd server, proxy or function for credentials does to calls over HTTP."""

from __future__ import annotations

import asyncio
import logging
import time
from itertools import pairwise
from typing import Any

import pytest

from mcpclient import (
    CallLost,
    CallTimedOut,
    HttpError,
    LocalProtocolError,
    Manager,
    McpClientError,
    OpeningFailed,
    RemoteProtocolError,
    Timeouts,
)
from mcpclient.transports.http import courier, streams, transport, wire
from tests.conftest import eventually
from tests.http.helpers import reached, web
from tests.http.peer import Exchange, Handshake, notice, serving, stateless
from tests.http.test_old import Old

# -- proxies ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "proxy",
    ["http://me:hunter2/x@far.example:1", "http://me:hunter2@:1", "ftp://me:hunter2@p:1", "//ü:1"],
)
async def test_a_proxy_that_cannot_be_meant_is_told_of_without_its_password(
    proxy: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("http_proxy", proxy)
    monkeypatch.setenv("no_proxy", "")
    async with Manager() as manager:
        server = await manager.add("web", web("http://far.example/mcp"))
        with pytest.raises(OpeningFailed, match="the proxy that the environment names") as caught:
            await server.invoke_tool("echo", {})
    assert caught.value.final
    assert "hunter2" not in caplog.text + str(caught.value)


async def test_a_proxys_name_and_password_may_be_of_any_letters(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(stateless) as proxy, Manager() as manager:
        monkeypatch.setenv("http_proxy", proxy.origin.replace("//", "//me:h%C3%BC@"))
        monkeypatch.setenv("no_proxy", "")
        server = await manager.add("web", web("http://far.example/mcp"))
        await server.wait_ready()
        assert proxy.requests[0].headers["proxy-authorization"] == "Basic bWU6aMO8"


async def test_a_proxy_that_says_nothing_is_not_waited_for_longer_than_for_a_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wire, "_PROXY", 0.2)

    async def silent(exchange: Exchange) -> None:
        assert exchange.request.method == "CONNECT"
        await exchange.hung_up()

    async with serving(silent) as proxy, Manager() as manager:
        monkeypatch.setenv("https_proxy", proxy.origin)
        monkeypatch.setenv("no_proxy", "")
        server = await manager.add("web", web("https://far.example/mcp"))
        with pytest.raises(CallTimedOut, match="it did not answer within"):
            await server.wait_ready(timeout=3)
        await server.stop()
        await eventually(lambda: proxy.open == 0)


# -- credentials -----------------------------------------------------------------------------


def test_a_task_of_auth_that_is_cancelled_ends_the_call_at_once() -> None:
    """Only asyncio lets one task's cancellation reach another that waits for it."""
    broken = [False]

    async def auth(server: str, challenge: Any) -> None:
        if broken[0]:
            shared: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            shared.cancel()
            await shared

    async def main(handler: Any, path: str, **options: Any) -> None:
        async with reached(handler, auth=auth, path=path, **options) as (_, server):
            await server.wait_ready()
            broken[0] = True
            with pytest.raises(CallLost, match="perhaps from within auth"):
                await server.invoke_tool("echo", {}, timeout=None)
            broken[0] = False
            assert (await server.invoke_tool("echo", {})).text == "{}"

    asyncio.run(main(stateless, "/mcp"))
    asyncio.run(main(Old(), "/sse", type="sse"))


async def test_a_call_whose_stream_broke_may_have_been_done_though_auth_fails_then() -> None:
    peer = Handshake()
    broken = [False]

    async def auth(server: str, challenge: Any) -> None:
        if broken[0]:
            raise RuntimeError("no keychain")

    async def breaking(exchange: Exchange) -> None:
        await exchange.events()
        await exchange.event(id="1", retry=1)
        broken[0] = True
        exchange.drop()

    peer.call = breaking
    async with reached(peer, auth=auth) as (_, server):
        with pytest.raises(CallLost, match=r"resumed \(auth raised Runtime") as caught:
            await server.invoke_tool("echo", {})
        assert caught.value.maybe_done is True
        broken[0] = False


async def test_the_stream_of_notices_is_opened_again_after_auth_failed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "FIRST", 0.05)
    peer = Handshake()
    failing = [0]

    async def auth(server: str, challenge: Any) -> None:
        if failing[0]:
            failing[0] -= 1
            raise RuntimeError("no keychain")

    async with reached(peer, auth=auth) as (_, server):
        await server.wait_ready()
        [first] = await eventually(lambda: peer.streams)
        failing[0] = 1
        await first.stream.aclose()
        await eventually(lambda: peer.streams and peer.streams != [first])
        assert failing[0] == 0


async def test_a_stream_of_notices_that_is_denied_later_is_told_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "FIRST", 0.05)
    peer = Handshake()
    denied = [False]

    async def denying(exchange: Exchange) -> None:
        if exchange.request.method == "GET" and denied[0]:
            await exchange.send(401)
        else:
            await peer(exchange)

    async with reached(denying) as (_, server):
        await server.wait_ready()
        [first] = await eventually(lambda: peer.streams)
        denied[0] = True
        await first.stream.aclose()
        await eventually(lambda: "no stream by GET: HTTP 401" in caplog.text)


async def test_what_a_server_repeats_of_the_headers_is_not_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    peer = Handshake()
    peer.made = 100_000  # ids that are too long to stand anywhere by chance
    status = [500]

    async def echoing(exchange: Exchange) -> None:
        await exchange.send(status[0], repr(exchange.request.headers).encode(), "text/plain")

    async def auth(server: str, challenge: Any) -> dict[str, str]:
        return {"X-Token": "hunter4"}

    peer.call = echoing
    caplog.set_level(logging.DEBUG, "mcpclient")
    async with reached(peer, headers={"Authorization": "Bearer hunter2"}, auth=auth) as (_, server):
        await server.wait_ready()
        for status[0] in (500, 403, 200):
            with pytest.raises(McpClientError, match=r"\*\*\*|HTTP 403") as caught:
                await server.invoke_tool("echo", {})
            shown = f"{caught.value} {caught.value!r} {getattr(caught.value, 'body', '')}"
            assert "hunter" not in shown + caplog.text
            assert "s-10000" not in shown + caplog.text
            assert caught.type is RemoteProtocolError or "'authorization': '***'" in shown


# -- what goes into a header -----------------------------------------------------------------


@pytest.mark.parametrize("method", ["a\r\nX-Key: b", "a\0", " a", "ü"])
async def test_a_method_that_fits_no_header_is_the_callers_fault(method: str) -> None:
    async with reached(stateless) as (served, server):
        await server.wait_ready()
        with pytest.raises(LocalProtocolError, match="cannot be sent over HTTP"):
            await server.request(method, {})
        assert len(served.requests) == 1
        assert (await server.invoke_tool("echo", {})).text == "{}"


@pytest.mark.parametrize(("told", "sent"), [("a\x01b", None), ("\x7f", None), (" 7\t ", "7")])
async def test_a_stream_whose_ids_fit_no_header_is_asked_for_again(
    told: str, sent: str | None
) -> None:
    peer = Handshake()
    asked: list[str | None] = []

    async def odd(exchange: Exchange) -> None:
        if exchange.request.method != "GET":
            await peer(exchange)
            return
        asked.append(exchange.request.headers.get("last-event-id"))
        await exchange.events()
        await exchange.event(notice("notifications/x", {}), id=told, retry=10)
        await exchange.end()

    async with reached(odd) as (_, server):
        await server.wait_ready()
        await eventually(lambda: len(asked) > 2)
        assert asked[:3] == [None, sent, sent]


async def test_an_offer_of_another_version_begins_without_the_session_of_the_first() -> None:
    peer = Handshake("2025-03-26")

    async def picky(exchange: Exchange) -> None:
        message = exchange.message
        if message.get("method") == "server/discover":
            await exchange.error(-32601)
        elif message.get("method") == "initialize" and peer.made == 0:
            peer.made += 1
            error = {"code": -32602, "message": "no", "data": {"supported": ["2025-03-26"]}}
            whole = {"jsonrpc": "2.0", "id": message["id"], "error": error}
            await exchange.json(whole, Mcp_Session_Id="s-refused")
        else:
            await peer(exchange)

    async with reached(picky) as (served, server):
        await server.wait_ready()
        first, second = served.of("initialize")
        assert "mcp-session-id" not in first.headers
        assert "mcp-session-id" not in second.headers
        [told] = await eventually(lambda: served.of("notifications/initialized"))
        assert told.headers["mcp-session-id"] == "s-2"


# -- streams that break ----------------------------------------------------------------------


async def test_a_stream_that_breaks_again_and_again_without_an_event_is_given_up() -> None:
    peer = Handshake()
    resumed: list[float] = []

    async def breaking(exchange: Exchange) -> None:
        await exchange.events()
        await exchange.event(id="1", retry=1)
        exchange.drop()

    async def resuming(exchange: Exchange) -> None:
        if exchange.request.headers.get("last-event-id") is None:
            await peer(exchange)
            return
        resumed.append(time.monotonic())
        await exchange.events()
        exchange.drop()

    peer.call = breaking
    async with reached(resuming) as (_, server):
        with pytest.raises(CallLost, match="and cannot be resumed") as caught:
            await server.invoke_tool("echo", {}, timeout=None)
        assert caught.value.maybe_done is True
        assert len(resumed) == 5


async def test_a_server_that_offers_no_stream_any_more_is_asked_ever_more_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Though it said before that it wants to be asked again at once."""
    monkeypatch.setattr(streams, "FIRST", 0.2)
    peer = Handshake()
    asked: list[float] = []

    async def hasty(exchange: Exchange) -> None:
        if exchange.request.method != "GET":
            await peer(exchange)
        elif not asked:
            asked.append(0.0)
            await exchange.events()
            await exchange.event(id="1", retry=0)
            await exchange.end()
        else:
            asked.append(time.monotonic())
            await exchange.send(502)

    async with reached(hasty) as (_, server):
        await server.wait_ready()
        await eventually(lambda: len(asked) == 5)
        pauses = [after - before for before, after in pairwise(asked[1:])]
        assert pauses[0] > 0.15
        assert pauses[1] > 0.35
        assert pauses[2] > 0.75
        assert server.state == "up"


# -- answers ---------------------------------------------------------------------------------


async def test_a_refusal_whose_body_never_ends_is_told_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(courier, "_DRAINING", 0.2)

    async def dripping(exchange: Exchange) -> None:
        if exchange.message.get("method") != "tools/call":
            await stateless(exchange)
            return
        await exchange.head(503, {"Content-Length": "100"})
        await exchange.raw(b"come back")
        await exchange.hung_up()

    async with reached(dripping) as (served, server):
        with pytest.raises(HttpError, match="come back") as caught:
            await server.invoke_tool("echo", {}, timeout=None)
        assert caught.value.status == 503
        await eventually(lambda: served.open == 0)


async def test_an_answer_that_is_compressed_unasked_is_named() -> None:
    async def packing(exchange: Exchange) -> None:
        assert exchange.request.headers["accept-encoding"] == "identity"
        if exchange.message.get("method") == "tools/call":
            await exchange.send(200, b"\x1f\x8b" * 50, "text/event-stream", Content_Encoding="gzip")
        else:
            await stateless(exchange)

    async with reached(packing) as (_, server):
        with pytest.raises(RemoteProtocolError, match=r"the answer is compressed \(gzip\)"):
            await server.invoke_tool("echo", {})


async def test_a_notification_that_nobody_takes_is_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(transport, "_NOTICE", 0.2)
    peer = Handshake()

    async def deaf(exchange: Exchange) -> None:
        if exchange.message.get("method") == "notifications/x" if exchange.request.body else False:
            await exchange.hung_up()
        await peer(exchange)

    caplog.set_level(logging.WARNING)
    async with reached(deaf) as (_, server):
        await server.wait_ready()
        await server.notify("notifications/x", {})
        await eventually(lambda: "notifications/x was not taken" in caplog.text)
        assert server.state == "up"


@pytest.mark.parametrize("status", [101, 204, 205])
async def test_a_status_that_has_no_answer_ends_its_call_and_no_other(status: int) -> None:
    first = [0]

    async def odd(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            first[0] = first[0] or exchange.message["id"]
        if exchange.message.get("method") != "tools/call" or exchange.message["id"] != first[0]:
            await stateless(exchange)
        elif status == 101:
            await exchange.head(status, {"Upgrade": "x", "Connection": "upgrade"})
            await exchange.hung_up()
        else:
            await exchange.head(status, {"Content-Length": "0"})

    async with reached(odd, timeouts=Timeouts(call=20)) as (_, server):
        with pytest.raises((RemoteProtocolError, CallLost)):
            await server.invoke_tool("echo", {})
        assert (await server.invoke_tool("echo", {})).text == "{}"
