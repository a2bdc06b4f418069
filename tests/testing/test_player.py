"""The process that plays a script ends when it should, whoever runs it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpclient.testing import Script
from tests.conftest import alive

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}},
}


class Client:
    """A client by hand, of plain pipes."""

    def __init__(self, script: Script) -> None:
        self.script = script  # its folder goes with it
        self.process = subprocess.Popen(
            script.spec().argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def put(self, message: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def take(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())


@pytest.fixture
def clients() -> Iterator[list[Client]]:
    made: list[Client] = []
    yield made
    for client in made:
        client.process.kill()
        client.process.wait(timeout=20)
        for pipe in (client.process.stdin, client.process.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):
                pipe.close()


def run(clients: list[Client], script: Script) -> Client:
    client = Client(script)
    clients.append(client)
    client.put(INITIALIZE)
    assert client.take()["result"]["serverInfo"]["name"] == "script"
    return client


def test_it_ends_when_its_stdin_ends_also_in_the_middle_of_a_step(clients: list[Client]) -> None:
    script = Script()
    script.on("tools/call").wait(1000).text("too late")
    client = run(clients, script)
    client.put({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "a"}})
    assert client.process.stdin is not None
    client.process.stdin.close()
    assert client.process.wait(timeout=20) == 0


def test_it_ends_when_nobody_can_read_its_stdout(clients: list[Client]) -> None:
    client = run(clients, Script())
    assert client.process.stdout is not None
    client.process.stdout.close()
    assert client.process.wait(timeout=20) == 0


def test_one_that_ignores_the_end_of_stdin_and_sigterm_ends_with_its_parent(
    tmp_path: Path,
) -> None:
    script = Script(ignore_eof=True, ignore_term=True, folder=tmp_path)
    # A client that starts it, and is killed. Its pipes end with it.
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)\n"
        'child.stdin.write(b\'{"jsonrpc":"2.0","id":1,"method":"ping"}\\n\')\n'
        "child.stdin.flush()\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(1000)\n"
    )
    argv = [sys.executable, "-c", code, *script.spec().argv]
    parent = subprocess.Popen(argv, stdout=subprocess.PIPE)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    assert json.loads(parent.stdout.readline())["id"] == 1  # it is there, and heard
    os.kill(pid, signal.SIGTERM)
    parent.kill()
    parent.communicate(timeout=20)
    end = time.monotonic() + 20
    while alive(pid):
        assert time.monotonic() < end, "it outlived its client"
        time.sleep(0.02)


def test_it_ignores_sigterm_and_the_end_of_its_stdin_while_its_parent_lives(
    clients: list[Client],
) -> None:
    client = run(clients, Script(ignore_eof=True, ignore_term=True))
    client.process.send_signal(signal.SIGTERM)
    client.put({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    assert client.take() == {"jsonrpc": "2.0", "id": 2, "result": {}}
    assert client.process.stdin is not None
    client.process.stdin.close()
    with pytest.raises(subprocess.TimeoutExpired):
        client.process.wait(timeout=1.2)


def test_a_client_that_does_not_read_does_not_keep_it_from_ending(clients: list[Client]) -> None:
    script = Script()
    script.on("tools/call").flood("notifications/message", 50_000, data="x" * 100).text("done")
    client = run(clients, script)
    client.put({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "a"}})
    assert client.process.stdin is not None
    client.process.stdin.close()
    assert client.process.wait(timeout=20) == 0


def test_what_it_wrote_before_its_death_is_out(clients: list[Client]) -> None:
    script = Script()
    script.on("tools/call").flood("notifications/message", 5000, data="x" * 100).text("a").die(9)
    client = run(clients, script)
    client.put({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "a"}})
    out, _ = client.process.communicate(timeout=20)
    lines = out.splitlines()
    assert len(lines) == 5001
    assert json.loads(lines[-1])["id"] == 2
    assert client.process.returncode == 9


def test_rubbish_and_long_lines_on_stdin_do_not_harm_it(clients: list[Client]) -> None:
    script = Script()
    client = run(clients, script)
    assert client.process.stdin is not None
    deep = b"[" * 100_000 + b"]" * 100_000
    for rubbish in (b"", b"\x00\xff", b"{", b"[1]", b"null", deep, b'{"id": {}}', b'"' * 200_000):
        client.process.stdin.write(rubbish + b"\n")
    client.put({"jsonrpc": "2.0", "id": [], "method": "ping"})
    assert client.take() == {"jsonrpc": "2.0", "id": [], "result": {}}
    with pytest.raises(AssertionError, match="the client sent what is no message"):
        script.check()


def test_without_a_folder_to_play_it_says_so(tmp_path: Path) -> None:
    def ran(*args: str) -> tuple[int, str]:
        argv = [sys.executable, "-m", "mcpclient.testing.player", *args]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stderr

    code, text = ran()
    assert (code, text) == (2, "usage: python -m mcpclient.testing.player FOLDER\n")
    code, text = ran(str(tmp_path))
    assert code == 2
    assert text.startswith(f"there is nothing to play in {tmp_path}: ")
    (tmp_path / "played.json").write_text('{"script": 7}')
    code, text = ran(str(tmp_path))
    assert code == 2
    assert "Expected `object | null`, got `int`" in text


def test_the_temporary_folder_goes_with_the_script_and_its_specs() -> None:
    script = Script()
    spec = script.spec()
    folder = Path(spec.args[-1])
    del script
    assert folder.is_dir()  # whoever runs it needs it
    del spec
    assert not folder.exists()
