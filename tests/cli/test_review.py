"""The command line without a home, with files in its way, and broken off while it reads."""

from __future__ import annotations

import array
import fcntl
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from msgspec import Raw

from mcpclient.cli import names
from mcpclient.cli.shell import SHELLS
from mcpclient.protocol.types import Tool
from tests.blocking.conftest import until
from tests.cli.driving import Shell, config, ended, entry, environment, program

EVIL = [
    "a;touch PWNED",
    "b$(touch PWNED)",
    "c`touch PWNED`",
    "d'x",
    'e"x',
    "f x",
    "g&touch P",
    "-n",
    "%F{red}h",
    "~i",
    "j\\",
    "k*",
]


def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Be a user whom this machine does not know, as in a container."""

    def unknown(uid: int) -> None:
        raise KeyError(uid)

    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)


def test_a_user_without_a_home_keeps_no_names_and_misses_nothing_else(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = config(shell.folder, good=entry("good_handshake"))
    nobody(monkeypatch)
    ran = shell("tools", "-c", file)
    assert (ran.code, ran.err) == (0, "")
    assert "echo" in ran.out
    assert not (shell.folder / "~").exists()
    assert names.load("good", {}, {}) == {}


def test_a_user_without_a_home_and_without_servers_is_told_what_to_do(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    nobody(monkeypatch)
    ran = shell("tools")
    assert ran.code == 1
    assert ran.err.startswith("error: no servers: name some in ./.mcp.json")


def test_a_server_cannot_have_files_overwritten_that_nobody_named(shell: Shell) -> None:
    file = config(shell.folder, good=entry("good_handshake"))
    (shell.folder / "got.png").write_text("the person's own, and named")
    (shell.folder / "got-2.png").write_text("the person's own")
    ran = shell("call", "good", "kinds", "-o", "got.png", "-c", file)
    assert (ran.code, ran.err) == (
        1,
        "error: got-2.png is there already, and only got.png was named: remove it first\n",
    )
    assert (shell.folder / "got-2.png").read_text() == "the person's own"
    assert (shell.folder / "got.png").read_text() == "the person's own, and named"
    (shell.folder / "got-2.png").unlink()
    (shell.folder / "got-2.png").symlink_to("elsewhere")  # it may dangle
    assert shell("call", "good", "kinds", "-o", "got.png", "-c", file).code == 1
    assert not (shell.folder / "elsewhere").exists()


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "stdin holds no JSON: Expecting value"),
        (b'{"a": 1', "stdin holds no JSON: Expecting"),
        (b"[1]", "stdin must hold a JSON object"),
        (b'{"a": Infinity}', "stdin holds no JSON: Infinity is not JSON"),
        (b'{"a": ' + b"1" * 5000 + b"}", "stdin holds no JSON: Exceeds the limit"),
        (b"[" * 100_000, "stdin holds no JSON: "),
        (b"\xff\xfe\x00", "stdin holds no JSON: "),
    ],
)
def test_what_is_no_json_on_stdin_is_one_line_and_code_1(
    shell: Shell, data: bytes, problem: str
) -> None:
    file = config(shell.folder, good=entry("good_handshake"))
    ran = shell("--json", "call", "good", "echo", "-", "-c", file, stdin=data)
    assert (ran.code, ran.out) == (1, "")
    assert ran.problem["error"].startswith(problem)
    assert ran.problem["exit"] == 1


def test_ctrl_c_while_the_arguments_are_read_is_130_with_its_line_of_json(tmp_path: Path) -> None:
    file = config(tmp_path, good=entry("good_handshake"))
    words = ("--json", "-c", file, "call", "good", "echo", "-")
    reading, writing = os.pipe()
    try:
        with program(*words, cwd=tmp_path, stdin=reading) as process:
            os.write(writing, b'{"text":')
            until(lambda: not _waits(reading))  # it has what there is, and reads on
            process.send_signal(signal.SIGINT)
            ran = ended(process)
    finally:
        os.close(writing)
        os.close(reading)
    assert (ran.code, ran.out) == (130, "")
    assert ran.problem == {"error": "interrupted", "type": "Interrupted", "exit": 130}


def test_a_locale_that_is_not_utf_8_costs_letters_and_no_traceback(tmp_path: Path) -> None:
    file = config(tmp_path, good=entry("good_handshake"))
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    words = ("-c", file, "call", "good", "echo", "text:=" + json.dumps("a\u00e9\U0001f600"))
    with program(*words, cwd=tmp_path, env=env) as process:
        ran = ended(process)
    assert (ran.code, ran.out, ran.err) == (0, "a\\xe9\\U0001f600\n", "")


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_completing_what_a_server_named_runs_nothing_in_other_shells_either(
    tmp_path: Path, name: str
) -> None:
    program_ = shutil.which(name)
    if program_ is None:
        pytest.skip(f"{name} is not installed")
    (tmp_path / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"good": entry("good_handshake")}})
    )
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mcpclient").write_text(
        f'#!/bin/sh\nexec {shutil.which("env")} {sys.executable} -m mcpclient "$@"\n'
    )
    (tmp_path / "bin" / "mcpclient").chmod(0o755)
    tools = [Tool.from_wire(Raw(json.dumps({"name": one}).encode())) for one in EVIL]
    names.store(
        "good", entry("good_handshake"), {"XDG_CACHE_HOME": f"{tmp_path}/cache"}, tools=tools
    )
    script = SHELLS[name].source_template
    if name == "zsh":  # what compadd is given, as the script gives it
        code = (
            "compdef() { : }\ncompadd() { print -rl -- ${(P)@[-1]} }\n"
            f"{script}\nwords=(mcpclient call good ''); CURRENT=4\n_mcpclient\n"
        )
        argv = [program_, "-f", "-c", code]
    else:
        argv = [program_, "--no-config", "-c", f"{script}\ncomplete -C 'mcpclient call good '"]
    ran = subprocess.run(
        argv,
        cwd=tmp_path,
        env=environment(tmp_path, PATH=f"{tmp_path}/bin:/usr/bin:/bin"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stderr == ""
    offered = {line.split("\t")[0] for line in ran.stdout.splitlines()}
    assert set(EVIL) <= offered | {"-n"}  # fish offers options only where one was begun
    assert not list(tmp_path.glob("P*"))


def _waits(fd: int) -> int:
    """Return how many bytes nobody has read of a pipe yet."""
    count = array.array("i", [0])
    fcntl.ioctl(fd, termios.FIONREAD, count)
    return count[0]
