"""The watchdog costs next to nothing, outlives nobody, and never touches what is not its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from mcpclient import Manager, Timeouts
from mcpclient.transports.process import Child, Command
from mcpclient.transports.watchdog import Watchdog
from tests.conftest import ROOT, SERVERS, alive, eventually, spec
from tests.faults.matrix import IMPATIENT


def guard_of(manager: Manager) -> int:
    """Return the process id of a manager's watchdog."""
    assert manager._watchdog is not None
    assert manager._watchdog.pid is not None
    return manager._watchdog.pid


def state_of(pid: int) -> str:
    """Return the state of a process as the kernel tells it, or nothing if it was reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


async def test_there_is_one_for_all_servers_of_a_manager_and_it_ends_with_it() -> None:
    servers = {str(n): spec("good_handshake") for n in range(5)}
    async with Manager(servers) as manager, Manager({"other": spec("good_handshake")}) as other:
        assert manager._watchdog is None, "it starts with the first server"
        seen = set()
        for name in manager:
            await manager[name].start()
            seen.add(guard_of(manager))
        await other["other"].start()
        assert len(seen) == 1
        assert guard_of(other) not in seen
        (pid,) = seen
        # One that stands for nobody waits for the next.
        for name in manager:
            await manager[name].stop()
        assert alive(pid)
    assert not alive(pid)


async def test_it_takes_less_than_two_megabytes_with_a_hundred_servers_on_its_list() -> None:
    watchdog = Watchdog()
    for target in range(100):
        watchdog.guard(1_000_000_000 + target)
    pid = watchdog.pid
    assert pid is not None
    await eventually(lambda: not pending(pid))
    sizes = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in ("Rss", "Pss"):
            sizes[name] = int(rest.split()[0])
    assert 0 < sizes["Pss"] <= sizes["Rss"] < 2048
    for target in range(100):
        watchdog.release(1_000_000_000 + target)
    watchdog.close()
    assert state_of(pid) == ""


def pending(pid: int) -> bool:
    """Return whether a process has something to read, or is at work on it."""
    return state_of(pid) != "S"


async def test_one_that_was_killed_is_replaced_and_knows_all_that_the_first_knew(
    tmp_path: Path,
) -> None:
    # In a host of its own, which is then killed: only the second watchdog can end its servers.
    code = """
import os, signal, sys, time
import anyio
from mcpclient import Manager
async def main():
    async with Manager({"old": sys.argv[1:], "new": sys.argv[1:]}) as manager:
        await manager["old"].start()
        first = manager._watchdog.pid
        os.kill(first, signal.SIGKILL)
        while b") Z " not in open(f"/proc/{first}/stat", "rb").read():
            time.sleep(0.001)
        await manager["new"].start()
        second = manager._watchdog.pid
        assert second != first
        pids = [manager["old"].pid, manager["new"].pid, first, second]
        print(*pids, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
anyio.run(main)
"""
    server = [sys.executable, str(SERVERS / "ignores_eof_and_term.py")]
    ran = subprocess.run(
        [sys.executable, "-c", code, *server],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (-signal.SIGKILL, "")
    pids = [int(word) for word in ran.stdout.split()]
    assert len(pids) == 4
    await eventually(lambda: not any(alive(pid) for pid in pids), within=5)


async def test_it_is_deaf_to_the_signals_of_a_terminal(manager: Manager) -> None:
    server = await manager.add("one", spec("good_handshake"))
    await server.start()
    pid = guard_of(manager)
    assert os.getsid(pid) == pid
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        os.kill(pid, number)
    await server.restart()
    assert guard_of(manager) == pid
    assert alive(pid)


# -- kill_tree -----------------------------------------------------------------------------


async def test_a_tree_that_is_to_live_lives_on_after_a_stop(manager: Manager) -> None:
    server = await manager.add("tree", spec("grandchild", kill_tree=False, timeouts=IMPATIENT))
    grandchild = int((await server.invoke_tool("pid")).text)
    pid = server.pid
    assert pid is not None
    await server.stop()
    assert not alive(pid)
    assert alive(grandchild)
    os.kill(grandchild, signal.SIGKILL)
    await eventually(lambda: not alive(grandchild))


async def test_a_tree_that_is_to_live_outlives_its_host() -> None:
    code = """
import os, signal, sys
import anyio
from mcpclient import Manager, ServerSpec
async def main():
    tree = ServerSpec(sys.argv[1], sys.argv[2:], kill_tree=False)
    async with Manager({"tree": tree}) as manager:
        grandchild = (await manager["tree"].invoke_tool("pid")).text
        print(grandchild, manager["tree"].pid, manager._watchdog.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
anyio.run(main)
"""
    server = [sys.executable, str(SERVERS / "grandchild.py")]
    ran = subprocess.run(
        [sys.executable, "-c", code, *server],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stderr == ""
    grandchild, *others = map(int, ran.stdout.split())
    try:
        await eventually(lambda: not any(alive(pid) for pid in others), within=5)
        assert alive(grandchild)
    finally:
        os.kill(grandchild, signal.SIGKILL)


# -- numbers that may belong to others -----------------------------------------------------


class Witness(Watchdog):
    """A watchdog that notes what the process was when it was let go."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[str] = []

    def release(self, target: int) -> None:
        if target in self._targets:
            self.states.append(state_of(abs(target)))
        super().release(target)


@pytest.mark.parametrize("end", ["exits", "is killed", "is abandoned"])
def test_a_process_is_let_go_before_its_number_is(end: str) -> None:
    watchdog = Witness()
    child = Child(Command(("sleep", "60")), kill_tree=True, watchdog=watchdog)
    if end == "is abandoned":
        child.abandon()
    else:
        child.signal(signal.SIGKILL if end == "is killed" else signal.SIGTERM)
        while not child.ended():
            pass
        child.sweep()
        assert child.reap() is not None
    child.close()
    # It had ended, but nobody had reaped it: its number could not be another's yet.
    assert watchdog.states == ["Z"]
    assert state_of(child.pid) == ""
    watchdog.close()


async def test_no_signal_ever_goes_to_a_number_that_was_given_back(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, str]] = []
    kill: Callable[[int, int], None] = os.kill

    def noted(pid: int, number: int) -> None:
        sent.append((pid, state_of(abs(pid))))
        kill(pid, number)

    monkeypatch.setattr(os, "kill", noted)
    hasty = Timeouts(eof=0.05, term=0.05)
    stubborn = await manager.add("stubborn", spec("ignores_eof_and_term", timeouts=hasty))
    await stubborn.restart()
    await stubborn.stop()
    tree = await manager.add("tree", spec("grandchild"))
    with pytest.raises(Exception, match="exit code 0"):
        await tree.invoke_tool("exit")
    mute = await manager.add("mute", spec("stdout_closed", timeouts=IMPATIENT))
    with pytest.raises(Exception, match="killed by SIGKILL"):
        await mute.invoke_tool("sin")
    with anyio.move_on_after(0.03):  # while it starts
        await (await manager.add("late", spec("slow_open", 60, timeouts=hasty))).start()
    await manager.remove("late")
    await manager.close()
    assert len(sent) >= 7
    assert [one for one in sent if not one[1]] == []
