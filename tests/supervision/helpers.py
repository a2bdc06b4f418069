"""What the tests of supervision share: the words of an answer, and counting lives in the log."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mcpclient import RestartPolicy, Server, ServerSpec, Timeouts
from tests.conftest import SERVERS, alive, eventually

# Long enough that no test waits for it: who meets such a pause is stopped in it.
NEVER_SOON = RestartPolicy(first=600.0, cap=600.0, jitter=0.0)


async def echo(server: Server, text: str = "hello", **options: Any) -> str:
    """Call the tool that every fixture server has, and return what it said."""
    result = await server.invoke_tool("echo", {"text": text}, **options)
    return str(result.text)


async def in_state(server: Server, *states: str) -> str:
    """Wait until a server is in one of some states, and return it."""
    return str(await eventually(lambda: server.state if server.state in states else None))


async def reborn(server: Server, generation: int) -> None:
    """Wait until the life of this number is up."""
    await eventually(lambda: server.generation == generation and server.state == "up")


async def gone(*pids: int | None) -> None:
    """Wait until processes are gone and reaped."""
    await eventually(lambda: not any(pid and Path(f"/proc/{pid}").exists() for pid in pids))


def pid_of(server: Server) -> int:
    assert server.pid is not None
    assert alive(server.pid)
    return server.pid


def births(caplog: pytest.LogCaptureFixture, name: str) -> list[int]:
    """The pids of all processes of a server, oldest first; the log must be at INFO."""
    pattern = re.compile(rf"{re.escape(name)}#\d+ \+ pid (\d+)\Z")
    found = (pattern.match(record.getMessage()) for record in caplog.records)
    return [int(one.group(1)) for one in found if one]


def gated(gate: Path, name: str = "good_handshake", **options: Any) -> ServerSpec:
    """A fixture server that begins to run only when a file exists."""
    script = f'while [ ! -e "$1" ]; do sleep 0.01; done; exec {_python()} "$2"'
    options.setdefault("timeouts", Timeouts(eof=0.05, term=1.0))
    argv = ["-c", script, "gated", str(gate), str(SERVERS / f"{name}.py")]
    return ServerSpec("/bin/sh", argv, **options)


def _python() -> str:
    import shlex
    import sys

    return shlex.quote(sys.executable)
