"""Programs of their own for what a test's process must not do: fork, be interrupted, end."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time

from tests.conftest import ROOT, SERVERS, alive

GOOD = str(SERVERS / "good_handshake.py")
running: list[subprocess.Popen[str]] = []
HEAD = """
import os, signal, sys, threading, time
from mcpclient import CallCancelled, LocalProtocolError, UseAfterClose, blocking, handles
GOOD = [sys.executable, sys.argv[1]]
"""


def begin(code: str, *flags: str) -> subprocess.Popen[str]:
    """Start a program; it finds the command of a server in GOOD."""
    program = subprocess.Popen(
        [sys.executable, "-W", "error", *flags, "-c", HEAD + textwrap.dedent(code), GOOD],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    running.append(program)
    return program


def end_all() -> None:
    """End what a failed test left running."""
    while running:
        program = running.pop()
        if program.poll() is None:
            program.kill()
        program.communicate()


def finish(program: subprocess.Popen[str], code: int = 0) -> list[str]:
    """Wait for the end of a program and return the rest of its lines; it complains of nothing."""
    assert program.stdout is not None
    assert program.stderr is not None
    late = threading.Timer(60, program.kill)
    late.start()
    try:
        # Not by communicate, which would not see what readline has read ahead.
        out, problems = program.stdout.read(), program.stderr.read()
        program.wait()
    finally:
        late.cancel()
        late.join()
    assert (program.returncode, problems) == (code, ""), problems
    return out.splitlines()


def ran(code: str, *flags: str) -> list[str]:
    """Run a program and return its lines."""
    return finish(begin(code, *flags))


def gone(pid: str) -> bool:
    """Wait until a process is gone; return whether it is."""
    end = time.monotonic() + 10
    while alive(int(pid)) and time.monotonic() < end:
        time.sleep(0.01)
    return not alive(int(pid))
