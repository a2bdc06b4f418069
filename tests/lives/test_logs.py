"""What a server says is kept in files where the user wants it: bounded, and without secrets."""

from __future__ import annotations

import os
import re
import signal
import stat
from pathlib import Path

import pytest

from mcpclient import Limits, Manager
from tests.conftest import eventually, spec

LINE = "0123456789abcde\n"


async def test_all_of_stderr_is_kept_over_all_lives(manager: Manager, tmp_path: Path) -> None:
    path = tmp_path / "stderr.log"
    one = spec("good_handshake", stderr_file=str(path), limits=Limits(stderr=64))
    server = await manager.add("one", one)
    await server.invoke_tool("stderr", {"n": 160_000})
    os.kill(server.pid or 0, signal.SIGKILL)
    await eventually(lambda: server.generation == 2 and server.state == "up")
    await server.invoke_tool("stderr", {"n": 16})
    await server.stop()
    assert path.read_text() == LINE * 10_001
    # The tail is another matter.
    assert server.stderr_tail() == LINE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_the_file_of_stderr_is_begun_anew_at_its_bound(
    manager: Manager, tmp_path: Path
) -> None:
    path = tmp_path / "stderr.log"
    one = spec("good_handshake", stderr_file=str(path), limits=Limits(log=100_000))
    server = await manager.add("one", one)
    for _ in range(25):
        await server.invoke_tool("stderr", {"n": 16_000})
    await server.stop()
    assert sorted(os.listdir(tmp_path)) == ["stderr.log", "stderr.log.1"]
    for name in os.listdir(tmp_path):
        assert 0 < (tmp_path / name).stat().st_size <= 100_000


async def test_a_file_that_cannot_be_written_costs_one_warning(
    manager: Manager, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    missing = str(tmp_path / "no" / "such" / "folder")
    one = spec("good_handshake", stderr_file=missing, wire_log=missing)
    server = await manager.add("one", one)
    for _ in range(3):
        await server.invoke_tool("stderr", {"n": 1600})
    assert server.stderr_tail() == LINE * 300
    found = [text for text in caplog.messages if "cannot be written" in text]
    assert found == [f"! {missing} cannot be written: No such file or directory"] * 2


# -- the wire log --------------------------------------------------------------------------


async def test_the_wire_log_tells_all_that_was_said(manager: Manager, tmp_path: Path) -> None:
    path = tmp_path / "wire.log"
    server = await manager.add("one", spec("good_handshake", wire_log=str(path)))
    await server.invoke_tool("echo", {"text": "hello"})
    await server.stop()
    lines = path.read_text().splitlines()
    assert all(re.match(r"\d\d:\d\d:\d\d\.\d\d\d [<>x] ", line) for line in lines)
    said = [line[13:] for line in lines]
    assert said[0].startswith("> ")
    assert '"method":"server/discover"' in said[0]
    (call,) = (line for line in said if '"tools/call"' in line)
    (answer,) = (line for line in said if line[0] == "<" and "hello" in line)
    assert call[0] == ">"
    assert said.index(call) < said.index(answer)
    assert said[-1] == "x exit code 0"
    # The size is that of the frame.
    size, frame = re.match(r"< (\d+) (.*)", answer).groups()  # type: ignore[union-attr]
    assert int(size) == len(frame)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_secrets_are_not_in_the_wire_log(manager: Manager, tmp_path: Path) -> None:
    path = tmp_path / "wire.log"
    env = {"GITHUB_TOKEN": "ghp_s3cr3t-value", "PLAIN": "visible-value"}
    server = await manager.add("one", spec("good_handshake", wire_log=str(path), env=env))
    secrets = {
        "api_key": "key-s3cr3t",
        "Authorization": "Bearer s3cr3t",
        "password": 'quoted \\" s3cr3t',
        "client_secret": "s3cr3t",
        "text": "it was ghp_s3cr3t-value and visible-value",
    }
    await server.invoke_tool("echo", secrets)
    await server.stop()
    text = path.read_text()
    assert "s3cr3t" not in text
    assert text.count("it was *** and visible-value") == 2  # asked, and answered
    assert '"api_key":"***"' in text
    assert '"password":"***"' in text


async def test_the_wire_log_is_bounded_in_each_line_and_in_all(
    manager: Manager, tmp_path: Path
) -> None:
    path = tmp_path / "wire.log"
    one = spec("good_handshake", wire_log=str(path), limits=Limits(log=50_000))
    server = await manager.add("one", one)
    for _ in range(20):
        await server.invoke_tool("echo", {"text": "\x1b[2J" + "x" * 100_000})
    await server.stop()
    assert sorted(os.listdir(tmp_path)) == ["wire.log", "wire.log.1"]
    for name in os.listdir(tmp_path):
        data = (tmp_path / name).read_bytes()
        assert len(data) <= 50_000
        assert b"\x1b" not in data
        assert max(map(len, data.splitlines())) < 5000
