"""How the tests use the command line: within this process, as a program, and at a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pexpect
import pytest

from mcpclient import cli
from tests.conftest import ROOT, SERVERS

HOSTILE = Path(__file__).with_name("hostile_server.py")
# As it says there: clears, titles, colours, bells, turns text around, and looks like markup.
EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\x07\x08\x7f\u202e\u2066\u2028[bold red]x[/] "


class Ran(NamedTuple):
    """What a command came to: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Its output as JSON."""
        return json.loads(self.out)

    @property
    def problem(self) -> Any:
        """Its one line of stderr as JSON."""
        [line] = self.err.splitlines()
        return json.loads(line)


def entry(server: str | Path, *args: object, **members: Any) -> dict[str, Any]:
    """Return the entry of a fixture server; it stops impatiently."""
    path = server if isinstance(server, Path) else SERVERS / f"{server}.py"
    members.setdefault("timeouts", {"eof": 1.0, "term": 0.5})
    return {"command": sys.executable, "args": [str(path), *map(str, args)], **members}


def config(folder: Path, **servers: Any) -> Path:
    """Write a file of servers and return its path."""
    path = folder / "servers.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


class Shell:
    """Runs commands in this process, with a folder of their own for home, cache and the rest."""

    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
    ) -> None:
        self.folder = folder
        self._capsys = capsys
        self._patch = patch

    def __call__(self, *words: object, stdin: bytes = b"") -> Ran:
        """Run a command."""
        import io

        self._patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as left:
            cli.main([str(word) for word in words])
        out, err = self._capsys.readouterr()
        assert isinstance(left.value.code, int)
        return Ran(left.value.code, out, err)


@contextlib.contextmanager
def program(
    *words: object, cwd: Path, env: dict[str, str] | None = None, **options: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """Run ``mcpclient`` as a program of its own; it is killed if it is still there at the end."""
    options = {"stdin": subprocess.DEVNULL, "stdout": -1, "stderr": -1, **options}
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-m", "mcpclient", *map(str, words)],
        cwd=cwd,
        env=environment(cwd, **(env or {})),
        **options,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()


def ended(process: subprocess.Popen[bytes], within: float = 30) -> Ran:
    """Wait for a program and return what it came to."""
    out, err = process.communicate(timeout=within)
    return Ran(process.returncode, (out or b"").decode(), (err or b"").decode())


@contextlib.contextmanager
def terminal(*words: object, cwd: Path, width: int = 100, **env: str) -> Iterator[pexpect.spawn]:
    """Run ``mcpclient`` at a terminal of its own."""
    with started(
        sys.executable, ["-m", "mcpclient", *map(str, words)], cwd=cwd, width=width, **env
    ) as child:
        yield child


@contextlib.contextmanager
def started(
    command: str, args: list[str], *, cwd: Path, width: int = 100, **env: str
) -> Iterator[pexpect.spawn]:
    """Run any program at a terminal of its own."""
    child = pexpect.spawn(
        command,
        args,
        cwd=str(cwd),
        env=environment(cwd, **{"TERM": "xterm", **env}),
        dimensions=(30, width),
        timeout=30,
        encoding="utf-8",
        codec_errors="replace",
    )
    try:
        yield child
    finally:
        child.close(force=True)


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return variables that have a program find nothing of the person who runs the tests."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "PYTHONPATH": str(ROOT),
        "PYTHONUTF8": "1",
        **more,
    }


# What must reach no terminal from a server: C0 but tab, newline and the return of a line that a
# terminal adds, DEL, C1, and marks that turn text around.
ACTS = [*range(0x09), *range(0x0B, 0x0D), *range(0x0E, 0x20), *range(0x7F, 0xA0)]
ACTS += [0x061C, 0x200E, 0x200F, *range(0x2028, 0x202F), *range(0x2066, 0x206A)]


def acting(text: str) -> set[str]:
    """Return which characters of a text would do something to a terminal."""
    return {hex(ord(letter)) for letter in text if ord(letter) in ACTS}
