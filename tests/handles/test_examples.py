"""The hosts of the examples, really run: no tick takes long while servers flood."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conftest import ROOT

# Of a tick, in milliseconds of work of the thread that ticks: what it waits for a core, on a
# machine that is busy with the servers of other tests, is not its own doing.
MOST = 5


def ran(name: str, *args: str, **env: str) -> dict[str, Any]:
    """Run an example and return what it says at the end."""
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / f"{name}.py"), *args],
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_a_loop_of_sixty_ticks_a_second_keeps_its_time_while_servers_flood_it() -> None:
    said = ran("tick_loop", "2")
    assert said["tick_ms_worst_own_work"] < MOST
    # It was a flood, and all of it came through or was counted.
    assert said["frames"] >= 10
    assert said["answers"] >= 8
    assert said["notices"] > 1000


@pytest.fixture
def display() -> Iterator[str]:
    """A screen that nobody looks at."""
    if importlib.util.find_spec("tkinter") is None:
        pytest.skip("this Python has no tkinter")
    if shutil.which("Xvfb") is None:
        pytest.skip("there is no Xvfb to draw on: apt-get install xvfb")
    out, back = os.pipe()
    with subprocess.Popen(
        ["Xvfb", "-displayfd", str(back), "-screen", "0", "640x480x24", "-nolisten", "tcp"],
        pass_fds=[back],
        stderr=subprocess.DEVNULL,
    ) as screen:
        os.close(back)
        with os.fdopen(out) as numbers:
            number = numbers.readline().strip()
        yield f":{number}"
        screen.terminate()


def test_a_window_calls_tools_and_shows_news_without_waiting(display: str) -> None:
    said = ran("tick_tk", "--demo", DISPLAY=display)
    assert said["state"] == "up"
    assert said["news"] == 100
    hello, cancelled = said["lines"]
    assert hello == "hello from a button"
    assert "it was cancelled by the caller" in cancelled
    assert said["tick_ms_worst_own_work"] < 50  # Tk draws in it too
