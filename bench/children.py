"""Runs one driver at a time under a time-out and sees to it that nothing stays behind.

Only ever signals processes that descend from this one.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bench.probe import Figures

ROOT = Path(__file__).absolute().parent.parent
PR_SET_CHILD_SUBREAPER = 36


class DriverFailed(Exception):
    """A driver printed no figures; the text says why."""


def adopt_orphans() -> None:
    """Become the parent of what a dead driver leaves behind, so as to find it. Linux only."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def offspring(parent: int) -> list[int]:
    """List the living or unreaped children of a process; empty where there is no /proc."""
    found: list[int] = []
    for entry in os.listdir("/proc") if os.path.isdir("/proc/self") else []:
        if entry.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                stat = Path("/proc", entry, "stat").read_text(encoding="utf-8", errors="replace")
                # The name in parentheses may hold anything; what follows the last one may not.
                if int(stat.rpartition(")")[2].split()[1]) == parent:
                    found.append(int(entry))
    return found


def reap_strays(grace: float) -> int:
    """Wait for adopted children to end, kill those that do not, and count the killed."""
    killed: set[int] = set()
    deadline = time.monotonic() + grace
    give_up = deadline + 5
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        left = offspring(os.getpid())
        if not left or time.monotonic() > give_up:
            return len(killed)
        if time.monotonic() > deadline:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                killed.add(pid)
        time.sleep(0.01)


def environment() -> dict[str, str]:
    """Give this environment without what would change how Python itself runs."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def run(argv: list[str], limit: float) -> str:
    """Run a program in the project's root and give what it printed; DriverFailed if it fails."""
    # Out of our process group: Ctrl-C reaches only us, and we decide in which order things end.
    process = subprocess.Popen(
        argv,
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        raise DriverFailed(f"no figures within {limit:.0f} s") from None
    finally:
        if process.poll() is None:
            process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=5)
    if process.returncode:
        raise DriverFailed(f"exit {process.returncode}\n{err}".strip())
    return out


def figures_of(argv: list[str], limit: float) -> Figures:
    """Run a driver and read its line."""
    out = run(argv, limit)
    try:
        figures = json.loads(out.splitlines()[-1])
    except (IndexError, ValueError):
        raise DriverFailed("printed no figures") from None
    if not isinstance(figures, dict):
        raise DriverFailed("printed no figures")
    return figures
