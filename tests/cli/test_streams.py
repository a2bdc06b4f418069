"""What goes on until it is ended: watch, top, logs; and what ends it: signals, lost readers."""

from __future__ import annotations

import array
import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.driving import Shell, config, ended, entry, environment, program
from tests.conftest import alive


def until(fact: Any, within: float = 20.0) -> Any:
    """Wait until a fact holds, and return it."""
    end = time.monotonic() + within
    while not (found := fact()):
        assert time.monotonic() < end, "did not come true in time"
        time.sleep(0.01)
    return found


def events(process: subprocess.Popen[bytes], wanted: str) -> list[dict[str, Any]]:
    """Return the lines of JSON up to the one about a state."""
    found: list[dict[str, Any]] = []
    assert process.stdout is not None
    for line in process.stdout:
        found.append(json.loads(line))
        if found[-1].get("state") == wanted:
            break
    return found


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a server that lives on when its stdin ends, and one that logs its wire."""
    config(
        tmp_path,
        good=entry("good_handshake", wire_log=str(tmp_path / "wire")),
        early=entry("early_notices"),
        stubborn=entry("ignores_eof_and_term", timeouts={"eof": 60.0, "term": 60.0}),
    ).rename(tmp_path / ".mcp.json")
    return tmp_path


def wire(home: Path) -> str:
    """Return what went over the wire so far."""
    path = home / "wire"
    return path.read_text() if path.exists() else ""


# -- watch, top, logs ----------------------------------------------------------------------


def test_watch_tells_states_and_notifications_until_it_is_interrupted(home: Path) -> None:
    with program("watch", "early", "--json", cwd=home) as process:
        told = events(process, "up")
        assert [one["state"] for one in told if one["event"] == "state"] == [
            "starting",
            "opening",
            "up",
        ]
        pid = told[-1]["pid"]
        assert alive(pid)
        process.send_signal(signal.SIGINT)
        ran = ended(process)
    assert ran.code == 130
    assert ran.problem == {"error": "interrupted", "type": "Interrupted", "exit": 130}
    assert not alive(pid)
    told += [json.loads(line) for line in ran.out.splitlines()]
    methods = {one["method"] for one in told if one["event"] == "notification"}
    assert methods == {"notifications/tools/list_changed", "notifications/message"}
    assert {one["server"] for one in told} == {"early"}


def test_watch_ends_when_nothing_more_can_come(shell: Shell) -> None:
    never = {"when": "never"}
    path = config(shell.folder, bad=entry("exit_3", restart=never), odd={"comand": "x"})
    ran = shell("watch", "-c", path)
    assert ran.code == 4
    lines = [line.split("  ", 2)[1:] for line in ran.out.splitlines()]
    assert [line[1] for line in lines if "life" not in line[1]] == ["starting", "opening", "failed"]
    assert any("the database is missing" in line[1] for line in lines)
    assert ran.err.startswith("error: ")
    assert "unknown key 'comand'" in ran.err


def test_watch_follows_a_resource(home: Path) -> None:
    server = Path(__file__).parents[2] / "mcpclient" / "cli" / "demo_server.py"
    config(home, demo=entry(server, wire_log=str(home / "wire")))
    words = ("watch", "demo", "-r", "demo://notes", "-c", "servers.json", "--json")
    with program(*words, cwd=home) as process:
        events(process, "up")
        until(lambda: "resources/subscribe" in wire(home))
        process.send_signal(signal.SIGTERM)
        assert ended(process).code == 143


def test_watch_ends_if_a_resource_cannot_be_followed(shell: Shell) -> None:
    path = config(shell.folder, lines=entry("log_lines"))
    ran = shell("watch", "lines", "-r", "test://x", "-c", path)
    assert ran.code == 1
    assert "up: handshake" in ran.out
    assert ran.err.startswith("error: ")


def test_top_prints_a_table_each_time_and_json_lines(shell: Shell) -> None:
    path = config(shell.folder, good=entry("good_handshake"), new=entry("good_stateless"))
    ran = shell("top", "-c", path, "-n", 2, "-i", 0.3)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert [line.split()[0] for line in lines] == ["SERVER", "good", "new"] * 2


def test_top_measures_how_long_each_server_takes_to_answer(home: Path) -> None:
    config(home, good=entry("good_handshake"), new=entry("good_stateless"))
    with program("top", "-c", "servers.json", "-i", "0.2", "--json", cwd=home) as process:
        assert process.stdout is not None
        for line in process.stdout:
            last = json.loads(line)
            if all(one["p50"] for one in last):
                break
        process.send_signal(signal.SIGINT)
        assert ended(process).code == 130
    assert [(one["server"], one["state"]) for one in last] == [("good", "up"), ("new", "up")]
    assert all(0 < one["p50"] < 60 for one in last)
    assert all(one["memory"] > 1_000_000 for one in last)


def test_top_ends_with_4_if_no_server_runs(shell: Shell) -> None:
    path = config(shell.folder, none={"command": "no-such-command"})
    ran = shell("top", "-c", path, "-n", 1, "-i", 0.1)
    assert ran.code == 4
    assert "was not found on PATH" in ran.out


def test_logs_are_the_end_of_the_file_that_the_entry_names(shell: Shell) -> None:
    kept = shell.folder / "stderr"
    path = config(shell.folder, good=entry("good_handshake", stderr_file=str(kept)))
    assert shell("logs", "good", "-c", path).err.endswith("nobody ran the server yet\n")
    (shell.folder / "stderr.1").write_text("one\ntwo\n")
    kept.write_text("three\n\x1b[2Jfour\n")
    ran = shell("logs", "good", "-c", path, "-n", 3)
    assert (ran.code, ran.out) == (0, "two\nthree\n\\x1b[2Jfour\n")
    assert shell("logs", "good", "-c", path, "--json").document[2:] == ["three", "\x1b[2Jfour"]


def test_logs_that_are_followed_run_the_server_and_end_with_its_error(shell: Shell) -> None:
    path = config(shell.folder, bad=entry("exit_3", restart={"when": "never"}))
    ran = shell("logs", "-f", "bad", "-c", path)
    assert ran.code == 4
    assert "cannot start: the database is missing\n" in ran.out
    assert ran.err.startswith('error: server "bad": the server ended while it was opened')


def test_logs_that_are_followed_show_messages_over_renewals_of_the_file(home: Path) -> None:
    config(home, talks=entry("tells", stderr_file=str(home / "stderr")))
    (home / "stderr").write_text("of an earlier life\n")
    with program("logs", "-f", "talks", "-c", "servers.json", "--json", cwd=home) as process:
        assert process.stdout is not None
        events(process, "up")
        with (home / "stderr").open("a") as file:
            file.write("first\n")
        assert json.loads(process.stdout.readline())["text"] == "first"
        os.replace(home / "stderr", home / "stderr.1")
        (home / "stderr").write_text("second\n")
        assert json.loads(process.stdout.readline())["text"] == "second"
        process.send_signal(signal.SIGINT)
        assert ended(process).code == 130


# -- what ends it --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_cancels_the_call_at_the_server_and_stops_it(
    home: Path, number: int, code: int
) -> None:
    with program("call", "good", "slow", "seconds=600", cwd=home) as process:
        until(lambda: '"tools/call"' in wire(home))
        process.send_signal(number)
        ran = ended(process)
    assert (ran.code, ran.out, ran.err) == (code, "", "")
    sent = [line for line in wire(home).splitlines() if " > " in line]
    assert "notifications/cancelled" in sent[-1]
    assert " x exit code 0" in wire(home).splitlines()[-1]


def test_a_second_signal_does_not_wait_for_a_stubborn_server(home: Path) -> None:
    with program("watch", "stubborn", "--json", "-v", cwd=home) as process:
        pid = events(process, "up")[-1]["pid"]
        process.send_signal(signal.SIGINT)
        assert process.stderr is not None
        assert any(b"up \xe2\x86\x92 stopping" in line for line in process.stderr)
        process.send_signal(signal.SIGINT)
        assert ended(process, within=20).code == 130
    until(lambda: not alive(pid))  # the watchdog's work


def test_a_reader_that_leaves_ends_what_goes_on(home: Path) -> None:
    with program("watch", "early", "--json", cwd=home) as process:
        pid = events(process, "up")[-1]["pid"]
        assert process.stdout is not None
        process.stdout.close()  # as head does; nothing more is written that could fail
        assert process.wait(timeout=20) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""
    assert not alive(pid)


def test_a_reader_that_left_before_the_answer_costs_no_traceback(home: Path) -> None:
    with program("tools", "good", cwd=home) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=20) == 141
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_a_reader_that_does_not_read_does_not_keep_a_signal_out(home: Path) -> None:
    (home / "big").write_text(json.dumps({"text": "x" * 1_000_000}))
    waiting = array.array("i", [0])
    with (
        (home / "big").open("rb") as stdin,
        program("call", "good", "echo", "-", cwd=home, stdin=stdin) as process,
    ):

        def full() -> bool:
            assert process.stdout is not None
            fcntl.ioctl(process.stdout.fileno(), termios.FIONREAD, waiting)
            return waiting[0] >= 65536

        until(full)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 143


def test_output_that_cannot_be_written_is_an_error(home: Path) -> None:
    with (
        open("/dev/full", "wb") as full,
        program("read", "good", "test://a", cwd=home, stdout=full) as process,
    ):
        ran = ended(process)
    assert ran.code == 1
    assert ran.err == "error: the output cannot be written: No space left on device\n"


def test_a_program_without_stdout_still_works(home: Path) -> None:
    ran = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m mcpclient read good test://a >&-', sys.executable],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
