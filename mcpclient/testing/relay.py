"""A process between any client and the command of a server, which writes down what passes.

It hands on every byte at once, ends when the server does, in the same way, and ends the server
when the client ends it. stderr is the server's own.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

from mcpclient.ground.exits import Exit
from mcpclient.protocol.framing import LineSplitter
from mcpclient.testing.recording import RecordingError, Track
from mcpclient.testing.redaction import Redaction

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_CHUNK = 65536
_USAGE = 2
# How long what a dead server left in its pipe may take to be read.
_LAST = 2.0


class Relay:
    """One server and its client."""

    def __init__(self, argv: Sequence[str], track: Track) -> None:
        """Start the server.

        Raises:
            OSError: It cannot be started.
        """
        self._track = track
        self._lock = threading.Lock()
        self._asked = False
        self._child = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._hand_on)

    def run(self) -> int:
        """Carry until the server ends; return its exit code, or die as it died."""
        child = self._child
        assert child.stdin is not None
        assert child.stdout is not None
        outward = threading.Thread(
            target=self._carry, args=(child.stdout.fileno(), 1, "<"), daemon=True
        )
        outward.start()
        threading.Thread(target=self._inward, args=(child.stdin.fileno(),), daemon=True).start()
        # Its own end counts: a grandchild may hold its stdout for long.
        code = child.wait()
        outward.join(_LAST)
        exit = Exit(code=code) if code >= 0 else Exit(signal=-code)
        with self._lock:
            self._track.end(exit, asked=self._asked)
        if code < 0:
            with contextlib.suppress(OSError, ValueError):
                signal.signal(-code, signal.SIG_DFL)  # SIGKILL cannot be set, and need not be
            os.kill(os.getpid(), -code)
        return code

    def _inward(self, into: int) -> None:
        self._carry(0, into, ">")
        self._asked = True
        # Only now does the server see the end of its stdin.
        with contextlib.suppress(OSError):
            os.close(into)

    def _carry(self, source: int, into: int, sign: str) -> None:
        lines = LineSplitter()
        while chunk := _read(source):
            frames = lines.feed(chunk)
            if sign == ">":
                self._note(sign, frames)  # before the server can answer it
            try:
                _write_all(into, chunk)
            except OSError:
                # A client that does not read any more has ended; a server that does not may
                # still say why.
                if sign == "<":
                    self._child.terminate()
                break
            if sign == "<":
                self._note(sign, frames)
        self._note(sign, lines.end())

    def _note(self, sign: str, frames: Sequence[object]) -> None:
        with self._lock:
            for line in frames:
                assert isinstance(line, bytes)  # it has no limit
                self._track.frame(sign, line)

    def _hand_on(self, number: int, frame: object) -> None:
        self._asked = True
        self._child.send_signal(number)


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, _CHUNK)
    except OSError:
        return b""


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def main(argv: Sequence[str]) -> int:
    """Record what the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m mcpclient.testing.recorder",
        description="Run the command of an MCP server and write down what passes.",
    )
    parser.add_argument("file", help="the recording; to one that is there a life is added")
    parser.add_argument("--home", action="store_true", help="write the home directory as ${HOME}")
    parser.add_argument(
        "--redact", action="append", default=[], metavar="PATTERN", help="take out what matches"
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="after --")
    given = parser.parse_args(argv)
    command = given.command[1:] if given.command[:1] == ["--"] else given.command
    if not command:
        parser.error("the server's command is missing: FILE -- COMMAND ARGUMENT…")
    return _guarded(lambda: _record(given.file, command, given.redact, home=given.home))


def _record(file: str, command: Sequence[str], patterns: list[str], *, home: bool) -> int:
    # All the variables are the server's too.
    redaction = Redaction(patterns, home=home, env=os.environ)
    return Relay(command, Track(file, redaction, os.path.basename(command[0]))).run()


def _guarded(run: Callable[[], int]) -> int:
    try:
        return run()
    except (OSError, RecordingError) as problem:
        print(f"recorder: {problem}", file=sys.stderr)
        return _USAGE
