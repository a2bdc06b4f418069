"""A server on its own stdin and stdout: what a raw client sees of it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.serverkit.talking import HANDSHAKE, STATELESS, opening

SERVER = """
import asyncio, os, subprocess, sys, threading, time
from mcpclient.serverkit import Frame, KitLimits, Server, serve_stdio

server = Server("raw", "1", limits=KitLimits(frame=100_000, outbox=50_000))

@server.tool
async def echo(text: str) -> str:
    return text

@server.tool
async def talks() -> str:
    print("a stray print")
    os.write(1, b"a stray write\\n")
    subprocess.run(["echo", "a stray child"])
    sys.stdout.write("unfinished")
    return "said"

@server.tool
async def reads() -> str:
    return repr(sys.stdin.read())

@server.tool
async def forever(frame: Frame) -> str:
    frame.progress(1)
    try:
        await asyncio.sleep(3600)
    finally:
        print("gave up", file=sys.stderr, flush=True)

@server.tool
def block(seconds: float) -> str:
    print("blocking", file=sys.stderr, flush=True)
    time.sleep(seconds)
    return "slept"

@server.tool
async def asks(frame: Frame) -> str:
    return str(await frame.roots())

@server.tool
async def floods(frame: Frame, count: int) -> str:
    for number in range(count):
        frame.log("info", "x" * 1000)
    return f"{count} sent"

@server.hook
async def terminate(reason, frame):
    print(f"terminated: {reason}", file=sys.stderr, flush=True)

serve_stdio(server)
print("after", file=sys.stderr, flush=True)
"""


class Raw:
    """A client that writes and reads lines."""

    def __init__(self, code: str = SERVER, **options: Any) -> None:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code],
            stdin=options.pop("stdin", subprocess.PIPE),
            stdout=options.pop("stdout", subprocess.PIPE),
            stderr=subprocess.PIPE,
            env=env,
            **options,
        )

    def send(self, *messages: Any) -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            self.process.stdin.write(line)
        self.process.stdin.flush()

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.endswith(b"\n"), (line, self.process.stderr and self.process.stderr.read())
        return json.loads(line)

    def silent(self, seconds: float = 0.2) -> bool:
        """Return whether nothing comes for a while."""
        return not select.select([self.process.stdout], [], [], seconds)[0]

    def open(self) -> None:
        self.send(request("initialize", opening(), 0))
        assert self.read()["result"]["protocolVersion"] == HANDSHAKE
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def wait_for(self, word: str) -> str:
        """Read stderr until a line has a word."""
        assert self.process.stderr is not None
        while True:
            line = self.process.stderr.readline().decode()
            assert line, f"{word!r} never came"
            if word in line:
                return line

    def end(self, seconds: float = 20.0) -> tuple[int, str, bytes]:
        """Close stdin, and return the exit code, and what stood on stderr and stdout."""
        out, errors = self.process.communicate(timeout=seconds)
        return self.process.returncode, errors.decode(), out


def request(method: str, params: Any = None, id: Any = 1) -> dict[str, Any]:
    """Return a request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}


def call(name: str, id: Any = 1, **arguments: Any) -> dict[str, Any]:
    """Return a call of a tool."""
    return request("tools/call", {"name": name, "arguments": arguments}, id)


def text(reply: Any) -> str:
    """Return the first text of a tool's result."""
    return str(reply["result"]["content"][0]["text"])


@pytest.fixture
def raw() -> Iterator[Raw]:
    """An open server."""
    client = Raw()
    try:
        client.open()
        yield client
    finally:
        client.process.kill()
        client.process.communicate()


def test_it_answers_until_stdin_ends_and_then_exits_with_0(raw: Raw) -> None:
    raw.send(call("echo", 1, text="hello"))
    assert text(raw.read()) == "hello"
    code, errors, rest = raw.end()
    assert (code, rest) == (0, b"")
    assert errors == "terminated: the client closed stdin\nafter\n"


def test_both_eras_are_served_on_one_pipe(raw: Raw) -> None:
    prefix = "io.modelcontextprotocol/"
    meta = {f"{prefix}protocolVersion": STATELESS, f"{prefix}clientCapabilities": {}}
    raw.send(request("server/discover", {"_meta": meta}, "d"))
    assert raw.read()["result"]["supportedVersions"][0] == STATELESS
    raw.send(call("echo", 1, text="old"))
    assert text(raw.read()) == "old"


def test_what_is_asked_before_the_end_of_input_is_answered() -> None:
    client = Raw()
    lines = [
        request("initialize", opening(), 0),
        call("echo", 1, text="a"),
        call("block", 2, seconds=0.1),
    ]
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    # The last line without its end.
    out, _ = client.process.communicate(data + json.dumps(call("echo", 3, text="b")).encode(), 20)
    found = {reply["id"]: reply for reply in map(json.loads, out.splitlines())}
    assert [text(found[id]) for id in (1, 2, 3)] == ["a", "slept", "b"]
    assert client.process.returncode == 0


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"nonsense\n", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":\n', -32700),
        (b"[]\n", -32600),
        (b"{}\n", -32600),
        (b"\xff\xfe\n", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 200_000 + b'"}\n', -32600),
    ],
)
def test_what_cannot_be_read_is_answered_and_the_next_line_is_read(
    raw: Raw, line: bytes, code: int
) -> None:
    raw.send(line, b"\n", b"\r\n", call("echo", 5, text="next"))
    refusal = raw.read()
    assert (refusal["id"], refusal["error"]["code"]) == (None, code)
    assert text(raw.read()) == "next"


def test_a_message_may_come_byte_by_byte(raw: Raw) -> None:
    for byte in json.dumps(call("echo", 1, text="slow ä")).encode() + b"\n":
        raw.send(bytes([byte]))
    assert text(raw.read()) == "slow ä"


def test_stdout_is_the_protocols_whoever_prints(raw: Raw) -> None:
    raw.send(call("talks", 1))
    assert text(raw.read()) == "said"
    raw.send(call("echo", 2, text="after"))
    assert text(raw.read()) == "after"
    code, errors, rest = raw.end()
    assert (code, rest) == (0, b"")
    for stray in ("a stray print", "a stray write", "a stray child", "unfinished"):
        assert stray in errors


def test_stdin_is_the_protocols_whoever_reads(raw: Raw) -> None:
    raw.send(call("reads", 1), call("echo", 2, text="mine"))
    assert text(raw.read()) == "''"
    assert text(raw.read()) == "mine"


def test_a_plain_function_blocks_nobody(raw: Raw) -> None:
    raw.send(call("block", 1, seconds=3600))
    raw.wait_for("blocking")
    for number in range(2, 5):
        raw.send(request("ping", id=number))
        assert raw.read() == {"jsonrpc": "2.0", "id": number, "result": {}}
    # And it does not keep the process once the client is gone.
    code, errors, _ = raw.end()
    assert code == 0
    assert "after" not in errors


def test_a_cancel_reaches_the_tool_and_gets_no_reply(raw: Raw) -> None:
    raw.send(request("tools/call", {"name": "forever", "_meta": {"progressToken": "t"}}, 1))
    assert raw.read()["method"] == "notifications/progress"
    raw.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    raw.wait_for("gave up")
    raw.send(call("echo", 2, text="still here"))
    assert text(raw.read()) == "still here"
    assert raw.silent()


def test_a_cancel_that_comes_in_the_same_write_reaches_it_too(raw: Raw) -> None:
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    lines = [call("forever", 1), cancel, call("echo", 2, text="b")]
    raw.send(b"".join(json.dumps(line).encode() + b"\n" for line in lines))
    assert raw.read()["id"] == 2
    assert raw.silent()


def test_what_runs_when_the_client_leaves_is_given_up(raw: Raw) -> None:
    raw.send(request("tools/call", {"name": "forever", "_meta": {"progressToken": 1}}, 1))
    raw.read()
    code, errors, rest = raw.end()
    assert (code, rest) == (0, b"")
    assert "gave up" in errors


def test_a_question_is_answered_in_the_same_stream(raw: Raw) -> None:
    raw.send(call("asks", 1))
    assert text(raw.read()).startswith("the client does not declare roots")


@pytest.mark.parametrize("which", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_and_in_order(raw: Raw, which: signal.Signals) -> None:
    raw.send(request("tools/call", {"name": "forever", "_meta": {"progressToken": 1}}, 1))
    raw.read()
    raw.process.send_signal(which)
    raw.process.wait(20)  # before its stdin is closed, which would be another reason
    code, errors, rest = raw.end()
    assert (code, rest) == (0, b"")
    assert errors == f"gave up\nterminated: {which.name}\nafter\n"


def test_a_client_that_reads_nothing_blocks_nobody_and_loses_notices_only(raw: Raw) -> None:
    raw.send(call("floods", 1, count=1000), call("block", 2, seconds=0))
    # It goes on working, though nobody reads a byte.
    raw.wait_for("blocking")
    seen = [raw.read()]
    while not {1, 2} <= {one.get("id") for one in seen}:
        seen.append(raw.read())
    notices = [one for one in seen if one.get("method") == "notifications/message"]
    assert 0 < len(notices) < 1000
    assert text(next(one for one in seen if one.get("id") == 1)) == "1000 sent"


def test_a_client_that_writes_and_never_reads_is_not_read_any_more(raw: Raw) -> None:
    assert raw.process.stdin is not None
    fd = raw.process.stdin.fileno()
    count = 10_000
    lines = (json.dumps(call("echo", id, text="x" * 1000)).encode() for id in range(count))
    rest = memoryview(b"".join(line + b"\n" for line in lines))
    os.set_blocking(fd, False)
    stalled = time.monotonic()
    # Pipes and buffers hold some hundred kilobytes; the rest stays with the client.
    while time.monotonic() - stalled < 0.5:
        try:
            rest = rest[os.write(fd, rest[:65536]) :]
            stalled = time.monotonic()
        except BlockingIOError:
            time.sleep(0.01)
        assert rest, "all of it was taken, though nobody read"
    # Nothing is lost: as soon as it reads, each call is answered.
    answered = set()
    while len(answered) < count:
        try:
            rest = rest[os.write(fd, rest[:65536]) :] if rest else rest
        except BlockingIOError:
            pass
        answered.add(raw.read()["id"])
    os.set_blocking(fd, True)


def test_a_client_that_closes_its_end_of_stdout_ends_it() -> None:
    client = Raw()
    client.open()
    assert client.process.stdout is not None
    client.process.stdout.close()
    client.send(call("echo", 1, text="to nobody"))
    assert client.process.wait(20) == 0
    assert client.process.stdin is not None
    assert client.process.stderr is not None
    assert "terminated: stdout: [Errno 32] Broken pipe" in client.process.stderr.read().decode()
    client.process.stdin.close()
    client.process.stderr.close()


def test_stdin_and_stdout_may_be_files(tmp_path: Path) -> None:
    lines = [request("initialize", opening(), 0), call("echo", 1, text="from a file")]
    (tmp_path / "in").write_text("".join(json.dumps(line) + "\n" for line in lines))
    with open(tmp_path / "in", "rb") as source, open(tmp_path / "out", "wb") as target:
        client = Raw(stdin=source, stdout=target)
        _, errors = client.process.communicate(timeout=20)
    assert client.process.returncode == 0, errors
    found = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert [one["id"] for one in found] == [0, 1]


def test_an_inherited_stdout_stays_as_blocking_as_it_was() -> None:
    import socket

    ours, theirs = socket.socketpair()
    with ours, theirs:
        client = Raw(stdout=theirs.fileno())
        client.send(request("initialize", opening(), 0))
        assert b'"id":0' in ours.recv(65536)
        client.process.communicate(timeout=20)
        assert os.get_blocking(theirs.fileno())
    assert client.process.returncode == 0


def test_coming_up_loads_nothing_that_is_not_needed() -> None:
    code = """
import json, os, sys
from mcpclient.serverkit import Server, serve_stdio
server = Server("a", "1")

@server.hook
async def init(client_info, frame):
    print(json.dumps(sorted(sys.modules)), file=sys.stderr, flush=True)

serve_stdio(server)
"""
    client = Raw(code)
    client.open()
    assert client.process.stderr is not None
    loaded = set(json.loads(client.process.stderr.readline()))
    client.end()
    heavy = {
        *("anyio", "trio", "sqlite3"),
        *("hashlib", "hmac", "secrets", "http", "urllib.parse", "email", "jsonschema"),
        *("mcpclient.manager", "mcpclient.features", "mcpclient.connection"),
        *("mcpclient.supervision", "mcpclient.engine", "mcpclient.serverkit.forms"),
        *("mcpclient.serverkit.eras.gateway", "starlette", "uvicorn"),
    }
    assert loaded & heavy == set()
