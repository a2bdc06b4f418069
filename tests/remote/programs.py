"""Servers that we did not write, started as people start them, and reached over loopback."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.conftest import SERVERS, real_servers

COMMANDS = real_servers()


class Program:
    """A server that writes its origin to a descriptor once it listens, and ends with its stdin.

    Attributes:
        origin: Scheme, host and port.
        pid: Its process.
    """

    def __init__(self, argv: Sequence[str], port: int = 0) -> None:
        self._argv = list(argv)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by stop()
        self.origin = ""
        self._begin(port)

    def _begin(self, port: int) -> None:
        ours, theirs = os.pipe()
        with os.fdopen(ours) as said:
            self._process = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=self._log,
                stderr=self._log,
                pass_fds=[theirs],
                env={**os.environ, "PORT": str(port), "URL_FD": str(theirs)},
                start_new_session=True,
            )
            os.close(theirs)
            self.origin = said.readline().strip()
        if not self.origin:
            self.stop()
            pytest.fail(f"{self._argv} does not listen: {self.log()[-2000:]}")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def port(self) -> int:
        return int(self.origin.rpartition(":")[2])

    def log(self) -> str:
        """Return all that it wrote to stdout and stderr."""
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode("utf-8", "replace")

    def kill(self) -> None:
        """End it as a crash does."""
        self._process.send_signal(signal.SIGKILL)
        self._end()

    def again(self) -> None:
        """Start it anew on the port that it had."""
        self._begin(self.port)

    def stop(self) -> None:
        """End it in good order, and its log."""
        self._end()
        self._log.close()

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def program(argv: Sequence[str], port: int = 0) -> Iterator[Program]:
    """Run a program while the block runs."""
    one = Program(argv, port)
    try:
        yield one
    finally:
        one.stop()


def everything(how: str) -> list[str] | None:
    """Return what starts server-everything, ``streamableHttp`` or ``sse``, if there is Node.js."""
    if "everything" not in COMMANDS:
        return None
    node, script, _ = COMMANDS["everything"]
    return [node, "--require", str(SERVERS / "loopback.cjs"), script, how]


def sdk(*arguments: str | Path) -> list[str] | None:
    """Return what starts a server on the official SDK behind uvicorn, where they are set up."""
    if "time" not in COMMANDS:  # whose environment has both
        return None
    return [COMMANDS["time"][0], str(SERVERS / "sdk_http.py"), *map(str, arguments)]
