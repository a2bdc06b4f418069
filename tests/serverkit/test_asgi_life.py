"""The life of the HTTP shell: under a host's lifespan, mounted, and run alone by uvicorn."""

from __future__ import annotations

import contextlib
import http.client
import logging
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from mcpclient.ground.errors import ConfigError
from mcpclient.serverkit import asgi, serve_http
from tests.conftest import SERVERS
from tests.serverkit.test_asgi_posts import made
from tests.serverkit.web import BOTH, META, STATELESS, Web, living


async def test_the_lifespan_begins_at_once_and_its_end_ends_what_listens() -> None:
    app = asgi(made())
    async with Web(app) as web:
        async with living(app) as said:
            one = web.call("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
            assert (await one.message())["method"] == "notifications/subscriptions/acknowledged"
            assert said == ["lifespan.startup.complete"]
        assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
        assert "result" in await one.message()
        assert (await one.ended()).done


async def test_a_websocket_is_closed() -> None:
    said: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        said.append(message)

    await asgi(made())({"type": "websocket"}, receive, send)
    assert said == [{"type": "websocket.close"}]


async def test_closing_twice_is_no_fault() -> None:
    app = asgi(made())
    await app.close()
    await app.close()


# -- alone ---------------------------------------------------------------------------------


@contextlib.contextmanager
def everything(*args: str) -> Iterator[tuple[subprocess.Popen[str], str, int]]:
    """Run the fixture server over HTTP; give its process, its host and its port."""
    process = subprocess.Popen(
        [sys.executable, str(SERVERS / "everything.py"), "http", *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = urlsplit(process.stdout.readline().strip())
        assert url.path == "/mcp"
        assert url.hostname is not None
        assert url.port is not None
        yield process, url.hostname, url.port
    finally:
        process.kill()
        process.communicate()


def message(method: str, **params: Any) -> bytes:
    """Return a message of the stateless era."""
    found = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    return msgspec.json.encode(found)


def headers(method: str, name: str | None = None) -> dict[str, str]:
    """Return the headers that go with it."""
    found = {
        "content-type": "application/json",
        "accept": BOTH,
        "mcp-protocol-version": STATELESS,
        "mcp-method": method,
    }
    return found if name is None else {**found, "mcp-name": name}


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_run_alone_it_prints_its_url_and_ends_in_order(ending: signal.Signals) -> None:
    with everything() as (process, host, port):
        assert host == "127.0.0.1"
        connection = http.client.HTTPConnection(host, port, timeout=20)
        body = message("tools/call", name="add", arguments={"a": 1, "b": 2})
        connection.request("POST", "/mcp", body, headers("tools/call", "add"))
        answer = msgspec.json.decode(connection.getresponse().read())
        assert answer["result"]["structuredContent"] == {"sum": 3.0}
        wanted = {"toolsListChanged": True}
        body = message("subscriptions/listen", notifications=wanted)
        connection.request("POST", "/mcp", body, headers("subscriptions/listen"))
        stream = connection.getresponse()
        assert b"acknowledged" in stream.readline()
        begun = time.monotonic()
        process.send_signal(ending)
        # Who listens is told that it ends, and holds nobody up.
        assert b'"resultType":"complete"' in stream.read()
        assert process.wait(timeout=20) in (0, -ending)
        assert time.monotonic() - begun < 15
        connection.close()
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()


def test_a_body_that_is_too_long_is_refused_over_a_socket_before_all_of_it_is_sent() -> None:
    with everything() as (_, host, port), socket.create_connection((host, port), 20) as sock:
        head = "".join(f"{name}: {value}\r\n" for name, value in headers("ping").items())
        length = 100 * 1024 * 1024
        sock.sendall(
            f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\n{head}"
            f"Content-Length: {length}\r\nExpect: 100-continue\r\n\r\n".encode()
        )
        answer = b""
        while chunk := sock.recv(65536):
            answer += chunk
        assert answer.startswith(b"HTTP/1.1 413 ")
        assert b"connection: close\r\n" in answer.lower()


def test_who_closes_the_connection_cancels_the_tool_and_the_server_goes_on() -> None:
    with everything() as (process, host, port):
        for _ in range(3):
            with socket.create_connection((host, port), 20) as sock:
                body = message("tools/call", name="slow", arguments={"seconds": 60})
                named = {**headers("tools/call", "slow"), "host": f"{host}:{port}"}
                head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
                sock.sendall(
                    f"POST /mcp HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\n\r\n".encode()
                    + body
                )
                assert sock.recv(65536).startswith(b"HTTP/1.1 200 ")
        connection = http.client.HTTPConnection(host, port, timeout=20)
        connection.request("POST", "/mcp", message("server/discover"), headers("server/discover"))
        assert connection.getresponse().status == 200
        connection.close()
        begun = time.monotonic()
        process.terminate()
        process.wait(timeout=20)
        assert time.monotonic() - begun < 15


def test_without_uvicorn_the_next_step_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(ConfigError) as caught:
        serve_http(made())
    assert str(caught.value) == ("serving over HTTP needs uvicorn: pip install 'mcpclient[serve]'")


def test_options_of_an_application_belong_to_the_application() -> None:
    with pytest.raises(ConfigError) as caught:
        serve_http(asgi(made()), path="/x")
    assert str(caught.value) == "path: give that to asgi() already"


def test_serving_beyond_this_machine_without_tokens_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with socket.create_server(("0.0.0.0", 0)) as taken, pytest.raises(OSError):
        # The port is taken, so it goes no further.
        caplog.set_level(logging.WARNING)
        serve_http(made(), host="0.0.0.0", port=taken.getsockname()[1])
    assert "! web is open to whoever reaches 0.0.0.0" in caplog.text


def test_the_kit_on_stdio_loads_nothing_of_this() -> None:
    program = (
        "import sys, mcpclient.serverkit as kit; kit.serve_stdio; "
        "print(*[name for name in sys.modules if name.startswith("
        "('mcpclient.serverkit.http', 'uvicorn', 'starlette', 'ipaddress', 'email'))])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout.strip() == ""
