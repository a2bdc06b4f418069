"""When the host is gone nothing of it is left, however it went: within 5 s, or at once."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases import case
from tests.conftest import ROOT, alive

HOST = Path(__file__).with_name("host.py")


class Host:
    """A host with five servers, and what must not outlive it."""

    def __init__(self, backend: str, how: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", str(HOST), backend, how],
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.communicate()[1].decode()
        self.found: dict[str, Any] = json.loads(line)
        self.all = [*self.found["servers"], self.found["grandchild"], self.found["watchdog"]]
        assert len(set(self.all)) == 7
        assert all(type(pid) is int for pid in self.all)

    def ended(self) -> int:
        """Wait for the end of the host and return how it ended."""
        return self.process.wait(timeout=20)

    def all_are_gone(self, within: float = 5.0) -> None:
        """Fail unless everything is gone in time."""
        end = time.monotonic() + within
        while left := [pid for pid in self.all if alive(pid)]:
            assert time.monotonic() < end, f"{left} of {self.found} are left"
            time.sleep(0.01)

    def clear(self) -> None:
        """Leave nothing behind, whatever the test found."""
        heir = self.found["heir"]
        for pid in (self.process.pid, *self.all, *([heir] if heir else [])):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.communicate()


@pytest.fixture
def host(backend: str, how: str) -> Iterator[Host]:
    """A host of which everything is up, and is ended after the test."""
    started = Host(backend, how)
    yield started
    started.clear()


BOTH = pytest.mark.parametrize("backend", ["asyncio", "trio"])
ONE = pytest.mark.parametrize("backend", ["asyncio"])


@case("B125")
@BOTH
@pytest.mark.parametrize("how", ["waits"])
def test_nothing_is_left_of_a_host_that_is_killed(host: Host) -> None:
    assert all(alive(pid) for pid in host.all)
    host.process.kill()
    assert host.ended() == -signal.SIGKILL
    host.all_are_gone()


@case("B125")
@ONE
@pytest.mark.parametrize(("how", "code"), [("exits", 3), ("crashes", -signal.SIGSEGV)])
def test_nothing_is_left_of_a_host_that_ends_without_a_word(host: Host, code: int) -> None:
    assert host.ended() == code
    host.all_are_gone()


@ONE
@pytest.mark.parametrize("how", ["forks"])
def test_a_child_that_the_host_forked_does_not_keep_its_servers(host: Host) -> None:
    assert host.ended() == -signal.SIGKILL
    host.all_are_gone()
    # It holds copies of all that the host had open but the watchdog's pipe.
    assert alive(host.found["heir"])


@ONE
@pytest.mark.parametrize("how", ["execs"])
def test_nothing_is_left_of_a_host_that_became_another_program(host: Host) -> None:
    host.all_are_gone()
    assert host.process.poll() is None


@ONE
@pytest.mark.parametrize("how", ["waits"])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_of_a_host_that_is_told_to_go(host: Host, number: int) -> None:
    host.process.send_signal(number)
    assert host.ended() == -number
    host.all_are_gone()


@case("B82")
@BOTH
@pytest.mark.parametrize("how", ["waits"])
def test_ctrl_c_at_the_host_is_for_the_host_which_then_stops_its_servers(host: Host) -> None:
    # As a terminal does: to the whole group of the host.
    os.killpg(host.process.pid, signal.SIGINT)
    assert host.ended() == -signal.SIGINT
    # Whatever is left then was left on purpose, and nothing was.
    host.all_are_gone(within=0.5)


@BOTH
@pytest.mark.parametrize("how", ["raises"])
def test_a_host_whose_main_raises_stops_its_servers_on_the_way(host: Host) -> None:
    assert host.ended() == 4
    host.all_are_gone(within=0.5)
