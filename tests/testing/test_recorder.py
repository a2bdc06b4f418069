"""What passes is written down, by a manager's own server or by a relay for any client."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from mcpclient import Exit, Manager, ServerDied, ServerSpec, ServerUnavailable
from mcpclient.testing import Recorder, Script, connect, in_memory
from mcpclient.testing.recording import load
from tests.conftest import QUICK, SERVERS, alive, spec


async def test_a_server_of_any_kind_is_recorded_with_its_lives(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r.jsonl")
    async with connect(recorder.spec(spec("good_handshake"))) as server:
        assert (await server.invoke_tool("echo", {"text": "hello"})).text == "hello"
        with pytest.raises(ServerDied):
            await server.invoke_tool("exit", {"code": 7})
        await server.start()
    first, second = load(tmp_path / "r.jsonl").lives
    assert [one.method for one in first if one.dir == ">"] == [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "tools/call",
        "tools/call",
    ]
    assert (first[-1].dir, first[-1].code, first[-1].asked) == ("x", 7, False)
    assert (second[-1].dir, second[-1].code, second[-1].asked) == ("x", 0, True)
    assert [one["params"]["name"] for one in recorder.sent("tools/call")] == ["echo", "exit"]
    assert recorder.received()[-1]["result"]["serverInfo"]["name"] == "good-handshake"


async def test_secrets_of_params_results_and_the_servers_own_variables_are_not_written(
    tmp_path: Path,
) -> None:
    path = tmp_path / "r.jsonl"
    recorder = Recorder(path, patterns=["card-[0-9]+"])
    server = spec("good_handshake", env={"SHOP_API_KEY": "hunter2hunter2"})
    async with connect(recorder.spec(server)) as client:
        text = "hunter2hunter2 card-17 Bearer abcdefgh"
        result = await client.invoke_tool("echo", {"text": text, "password": "swordfish"})
        assert result.text == text  # what passes is not changed
    written = path.read_text()
    for secret in ("hunter2", "card-17", "abcdefgh", "swordfish"):
        assert secret not in written
    assert recorder.sent("tools/call")[0]["params"]["arguments"] == {
        "text": "*** *** Bearer ***",
        "password": "***",
    }


async def test_a_script_in_memory_is_recorded_too_and_without_a_file(tmp_path: Path) -> None:
    script = Script()
    script.on("tools/call", name="a").garbage(b"rubbish\n").text("a")
    recorder = Recorder()
    async with Manager({"s": recorder.spec(script)}) as manager:
        assert (await manager["s"].invoke_tool("a")).text == "a"
    assert [one.raw for one in recorder.entries if one.raw] == ["rubbish"]
    assert recorder.entries[-1].dir == "x"
    assert list(tmp_path.iterdir()) == []


async def test_the_options_of_a_server_stay_its_own(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r.jsonl")
    log = str(tmp_path / "wire.log")
    made = recorder.spec(spec("good_handshake", era="handshake", wire_log=log), start="eager")
    assert (made.era, made.start, made.restart) == ("handshake", "eager", QUICK)
    async with connect(made) as server:
        await server.list_tools()
    assert "tools/list" in Path(log).read_text()


async def test_a_recording_is_begun_anew_by_each_recorder(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    for _ in range(2):
        async with connect(Recorder(path).spec(Script())):
            pass
    assert len(load(path).lives) == 1


async def test_a_file_that_is_no_recording_is_left_alone_and_the_server_not_started(
    tmp_path: Path,
) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("My thesis\n")
    script = Script()
    async with Manager({"s": Recorder(path).spec(script)}) as manager:
        with pytest.raises(
            ServerUnavailable, match=r"cannot be recorded: .*thesis.txt:1: this is no"
        ):
            await manager["s"].start()
        assert manager["s"].state == "failed"
    assert path.read_text() == "My thesis\n"
    assert script.lives == 0


async def test_a_function_that_redacts_and_fails_ends_the_recording_and_no_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def redact(message: Any) -> Any:
        raise KeyError("oh")

    script = Script()
    script.on("tools/call", name="a").text("a")
    async with connect(Recorder(tmp_path / "r.jsonl", redact=redact).spec(script)) as server:
        assert (await server.invoke_tool("a")).text == "a"
    assert caplog.text.count("the recording ends here") == 1


async def test_a_server_that_cannot_be_started_is_told_as_ever(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "r.jsonl")
    async with Manager({"s": recorder.spec(["no-such-program"])}) as manager:
        with pytest.raises(ServerUnavailable, match="'no-such-program' was not found"):
            await manager["s"].start()


# -- the relay -----------------------------------------------------------------------------


def relayed(path: Path, *argv: object, options: tuple[str, ...] = ()) -> list[str]:
    module = [sys.executable, "-m", "mcpclient.testing.recorder", *options, str(path), "--"]
    return [*module, *map(str, argv)]


def server(name: str, *args: object) -> list[object]:
    return [sys.executable, SERVERS / f"{name}.py", *args]


async def test_a_relay_records_for_any_client_and_dies_as_its_server(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    argv = relayed(path, *server("good_handshake"))
    made = ServerSpec(argv[0], argv[1:], restart=QUICK, env={"A_TOKEN": "hunter2hunter2"})
    async with connect(made) as client:
        text = "hunter2hunter2"
        assert (await client.invoke_tool("echo", {"text": text})).text == text
        with pytest.raises(ServerDied) as raised:
            await client.invoke_tool("exit", {"code": 7})
        assert raised.value.exit == Exit(code=7)
        await client.start()
    first, second = load(path).lives
    assert (first[-1].dir, first[-1].code, first[-1].asked) == ("x", 7, False)
    assert (second[-1].dir, second[-1].code, second[-1].asked) == ("x", 0, True)
    assert b"hunter2" not in path.read_bytes()


def test_a_relay_hands_on_every_byte_and_the_end_of_stdin(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    data = b"no json\r\n\xff\xfe\nhalf a li"
    ran = subprocess.run(
        relayed(path, "cat"), input=data, stdout=subprocess.PIPE, timeout=60, check=True
    )
    assert ran.stdout == data
    (life,) = load(path).lives
    for sign in "><":
        found = [
            (one.raw or "").encode("utf-8", "surrogateescape") for one in life if one.dir == sign
        ]
        assert found == [b"no json", b"\xff\xfe", b"half a li"]


def test_a_relay_dies_of_the_signal_its_server_died_of(tmp_path: Path) -> None:
    argv = relayed(tmp_path / "r.jsonl", "sh", "-c", "kill -9 $$")
    assert subprocess.run(argv, timeout=60, check=False).returncode == -9
    assert load(tmp_path / "r.jsonl").lives[0][-1].signal == 9


def test_sigterm_ends_the_server_and_then_the_relay(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    process = subprocess.Popen(
        relayed(path, "sh", "-c", "echo $$; exec sleep 1000"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == -signal.SIGTERM
    assert not alive(pid)
    end = load(path).lives[0][-1]
    assert (end.signal, end.asked) == (signal.SIGTERM, True)


def test_a_relay_does_not_wait_for_a_grandchild_that_holds_the_pipe(tmp_path: Path) -> None:
    code = "sleep 1000 & echo $!; exit 3"
    process = subprocess.Popen(
        relayed(tmp_path / "r.jsonl", "sh", "-c", code),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        try:
            assert process.wait(timeout=20) == 3
        finally:
            os.kill(pid, signal.SIGKILL)


def test_a_relay_of_a_killed_client_ends_with_its_server(tmp_path: Path) -> None:
    code = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)\n"
        "print(child.pid, flush=True)\n"
        "time.sleep(1000)\n"
    )
    argv = relayed(tmp_path / "r.jsonl", "sh", "-c", "echo $$; exec cat")
    client = subprocess.Popen([sys.executable, "-c", code, *argv], stdout=subprocess.PIPE)
    with client:
        assert client.stdout is not None
        pids = [int(client.stdout.readline()) for _ in range(2)]
        client.kill()
    end = time.monotonic() + 20
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < end, "they outlived their client"
        time.sleep(0.02)


def test_a_relay_that_cannot_work_says_why(tmp_path: Path) -> None:
    def ran(argv: list[str]) -> tuple[int, str]:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stderr

    code, text = ran(relayed(tmp_path / "r.jsonl"))
    assert code == 2
    assert "the server's command is missing: FILE -- COMMAND" in text
    code, text = ran(relayed(tmp_path / "r.jsonl", "no-such-program"))
    assert code == 2
    assert "recorder: [Errno 2] No such file or directory: 'no-such-program'" in text
    (tmp_path / "thesis").write_text("My thesis\n")
    code, text = ran(relayed(tmp_path / "thesis", "cat"))
    assert code == 2
    assert "thesis:1: this is no recording" in text
    assert (tmp_path / "thesis").read_text() == "My thesis\n"


def test_a_relay_takes_out_what_it_is_told_to(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    home = os.path.expanduser("~")
    frame = json.dumps({"card": "card-17", "path": f"{home}/x"}).encode() + b"\n"
    argv = relayed(path, "cat", options=("--home", "--redact", "card-[0-9]+"))
    subprocess.run(argv, input=frame, stdout=subprocess.DEVNULL, timeout=60, check=True)
    recording = load(path)
    assert recording.head.home is True
    assert recording.lives[0][0].body == {"card": "***", "path": "${HOME}/x"}


async def test_a_recorded_server_may_be_recorded_once_more() -> None:
    inner, outer = Recorder(), Recorder()
    async with connect(outer.spec(inner.spec(in_memory(Script())))):
        pass
    assert [one.method for one in inner.entries] == [one.method for one in outer.entries]
    assert len(inner.entries) == 6
