"""Odd events, schemas, addresses and certificates: what they cost, and what is said of them."""

from __future__ import annotations

import socket
import ssl
import tracemalloc
from pathlib import Path
from typing import Any

import anyio
import pytest
import trustme
from anyio.abc import SocketAttribute, SocketListener
from anyio.streams.tls import TLSListener

from mcpclient import CallLost, Manager
from mcpclient.protocol.mirror import Mirror
from mcpclient.protocol.sse import Event, EventReader
from mcpclient.transports.urls import http_url
from tests.http.helpers import reached, web
from tests.http.peer import Exchange, Peer, stateless
from tests.http.test_old import Old


@pytest.mark.parametrize("line", [b"data\n", b"data:ab\n"])
def test_an_event_of_very_many_short_lines_takes_no_more_than_it_holds(line: bytes) -> None:
    reader = EventReader(10_000_000)
    chunk = line * 8_000
    tracemalloc.start()
    try:
        for _ in range(50):
            assert reader.feed(chunk) == []
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2_500_000
    [event] = reader.feed(b"\n")
    assert isinstance(event, Event)
    assert len(event.data) == 400_000 * len(line[5:-1]) + 399_999


@pytest.mark.parametrize(
    ("value", "id"), [(b"a\x01b", "old"), (b"\x7f", "old"), (b" 7\t ", "7"), ("ü".encode(), "ü")]
)
def test_an_id_counts_if_a_header_can_hold_it(value: bytes, id: str) -> None:
    reader = EventReader(None, "old")
    reader.feed(b"id:" + value + b"\n\n")
    assert reader.last_id == id


@pytest.mark.parametrize("name", [None, [], {}, 5])
def test_a_tool_whose_name_is_no_text_has_no_marks(name: Any) -> None:
    mirror = Mirror()
    mirror.learn("a", {"properties": {"x": {"type": "string", "x-mcp-header": "X"}}})
    assert mirror.headers({"name": name, "arguments": {"x": "1"}}) == []


@pytest.mark.parametrize("host", ["faß.example", "FAẞ.example", "νίκος.example"])
def test_a_host_that_two_rules_write_in_two_ways_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match="write its host in ASCII"):
        http_url(f"http://{host}/mcp")


async def test_a_broken_record_of_tls_breaks_its_exchange_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """So does an alert that comes later, such as of a server that wants a certificate of ours."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    listener = await SocketListener.from_socket(socket.create_server(("127.0.0.1", 0)))
    port = listener.extra(SocketAttribute.local_port)

    async def breaking(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call" and not broken:
            broken.append(1)
            stream: Any = exchange.stream
            await stream.transport_stream.send(b"\x17\x03\x03\x00\x20" + b"x" * 32)
            await exchange.hung_up()
        await stateless(exchange)

    broken: list[int] = []
    peer = Peer(port, breaking)
    secure = TLSListener(listener, context, standard_compatible=False)
    async with secure, anyio.create_task_group() as group, Manager() as manager:
        group.start_soon(secure.serve, peer.serve)
        server = await manager.add("web", web(f"https://127.0.0.1:{port}/mcp"))
        await server.wait_ready()
        with pytest.raises(CallLost, match="the connection broke before the answer") as caught:
            await server.invoke_tool("echo", {})
        assert caught.value.maybe_done is True
        assert "a fault" not in caplog.text
        assert (await server.invoke_tool("echo", {})).text == "{}"
        await server.stop()
        group.cancel_scope.cancel()


async def test_a_call_that_is_cancelled_before_its_turn_is_never_sent_to_an_old_server() -> None:
    async with reached(Old(), path="/sse", type="sse") as (served, server):
        await server.wait_ready()
        connection = server._supervisor.connection
        assert connection is not None
        call = connection.begin("tools/call", {"name": "echo", "arguments": {}}, None)
        connection.abandon(call, "cancelled in the same moment")
        await server.invoke_tool("echo", {"after": 1})
        assert [one.message["params"]["arguments"] for one in served.of("tools/call")] == [
            {"after": 1}
        ]
        assert not served.of("notifications/cancelled")
