"""A stop wins in every phase and every race; nothing is left, and later calls are told so."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    Manager,
    RestartPolicy,
    RestartsExhausted,
    Server,
    ServerSpec,
    ServerUnavailable,
    SpawnFailed,
    Timeouts,
)
from mcpclient.transports import process as process_module
from mcpclient.transports.process import Child
from tests.conftest import eventually, spec
from tests.supervision.helpers import NEVER_SOON, echo, gated, gone, in_state, pid_of


async def refused(server: Server) -> None:
    """Prove that a call is refused and starts nothing."""
    generation = server.generation
    for call in (echo(server), server.wait_ready(), server.list_tools(), server.request("x/y")):
        with pytest.raises(ServerUnavailable) as caught:
            await call
        assert type(caught.value) is ServerUnavailable
        assert str(caught.value) == (f'server "{server.name}": it was stopped; call start() first')
    assert (server.state, server.generation, server.pid) == ("idle", generation, None)


class Gate:
    """Holds the threads that start processes, after they did and before anybody knows."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.pids: list[int] = []


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    made = Gate()

    class Slow(Child):
        def __init__(self, *facts: Any, **options: Any) -> None:
            super().__init__(*facts, **options)
            made.pids.append(self.pid)
            assert made.open.wait(20)

    monkeypatch.setattr(process_module, "Child", Slow)
    yield made
    made.open.set()


# -- each phase ----------------------------------------------------------------------------


async def test_stop_before_the_first_start(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake"))
    await server.stop()
    assert server.state == "idle"
    await refused(server)
    await server.start()
    assert await echo(server) == "hello"


async def test_stop_while_it_is_asked_to_start(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake"))
    server.begin()
    assert server.state == "starting"
    await server.stop()  # before its job ran at all
    await refused(server)
    assert server.incidents == []


async def test_stop_while_the_process_is_being_started(manager: Manager, gate: Gate) -> None:
    server = await manager.add("good", spec("good_handshake"))
    server.begin()
    await eventually(lambda: gate.pids)
    async with anyio.create_task_group() as group:
        group.start_soon(server.stop)
        await in_state(server, "stopping")
        gate.open.set()
    await gone(*gate.pids)
    await refused(server)
    assert server.incidents == []
    assert len(gate.pids) == 1
    await server.start()
    assert await echo(server) == "hello"


async def test_stop_while_it_opens(manager: Manager, tmp_path: Path) -> None:
    server = await manager.add("slow", gated(tmp_path / "never"))
    server.begin()
    await in_state(server, "opening")
    pid = pid_of(server)
    await server.stop()
    await gone(pid)
    await refused(server)
    assert server.incidents == []


async def test_stop_while_it_is_up(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake"))
    await server.start()
    pid = pid_of(server)
    await server.stop()
    assert not Path(f"/proc/{pid}").exists(), "gone and reaped when stop returns"
    await refused(server)
    assert server.incidents == []


async def test_stop_between_two_lives(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake", restart=NEVER_SOON))
    await server.start()
    os.kill(pid_of(server), signal.SIGKILL)
    await in_state(server, "waiting")
    with anyio.fail_after(10):
        await server.stop()
    await refused(server)
    assert len(server.incidents) == 1


async def test_stop_after_it_failed(manager: Manager) -> None:
    server = await manager.add("crashing", spec("exit_3", restart=RestartPolicy(burst=0)))
    with pytest.raises(RestartsExhausted):
        await server.start()
    assert server.state == "failed"
    await server.stop()
    await refused(server)


async def test_stop_while_a_failed_opening_is_cleaned_up(manager: Manager, tmp_path: Path) -> None:
    # It answers nothing, tells of the end of its input by a file, and lives on: there the stop
    # comes, while its time to leave is running.
    ended = tmp_path / "ended"
    script = 'cat >/dev/null; : > "$1"; exec sleep 300'
    timeouts = Timeouts(open=0.1, eof=0.6, term=1.0)
    deaf = ServerSpec("/bin/sh", ["-c", script, "deaf", str(ended)], timeouts=timeouts)
    server = await manager.add("deaf", deaf)
    server.begin()
    await eventually(ended.exists)
    assert server.state == "opening"
    pid = pid_of(server)
    await server.stop()
    await gone(pid)
    await refused(server)


async def test_stop_while_a_missing_command_is_looked_for(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached, go_on = threading.Event(), threading.Event()

    class Slow(Child):
        def __init__(self, *facts: Any, **options: Any) -> None:
            reached.set()
            assert go_on.wait(20)
            super().__init__(*facts, **options)

    monkeypatch.setattr(process_module, "Child", Slow)
    server = await manager.add("missing", ServerSpec("no-such-program-anywhere"))
    server.begin()
    await eventually(reached.is_set)
    async with anyio.create_task_group() as group:
        group.start_soon(server.stop)
        await in_state(server, "stopping")
        go_on.set()
    await refused(server)
    with pytest.raises(SpawnFailed):
        await server.start()


async def test_stop_in_the_turn_in_which_it_dies(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake", restart=RestartPolicy(first=0.0)))
    for _ in range(5):
        await server.start()
        os.kill(pid_of(server), signal.SIGKILL)
        await server.stop()
        await refused(server)


@pytest.mark.parametrize("turns", range(0, 40, 3))
async def test_stop_at_any_turn_of_a_start(manager: Manager, turns: int) -> None:
    server = await manager.add("good", spec("good_stateless"))
    server.begin()
    for _ in range(turns):
        await anyio.sleep(0.0005 if turns % 2 else 0.002)
    pid = server.pid
    await server.stop()
    await gone(pid)
    await refused(server)
    assert server.incidents == []


async def test_a_server_that_ignores_everything_is_stopped_too(manager: Manager) -> None:
    timeouts = Timeouts(eof=0.05, term=0.05)
    server = await manager.add("stubborn", spec("ignores_eof_and_term", timeouts=timeouts))
    assert await echo(server) == "hello"
    pid = pid_of(server)
    with anyio.fail_after(10):
        await server.stop()
    await gone(pid)
    await refused(server)


# -- those who wait and those who call -----------------------------------------------------


async def test_calls_in_flight_end_as_cancelled(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake"))
    await server.start()
    problems: list[CallCancelled] = []

    async def call() -> None:
        with pytest.raises(CallCancelled) as caught:
            await server.invoke_tool("slow", {"seconds": 60})
        problems.append(caught.value)

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(call)
        await eventually(lambda: manager.status().servers[0].in_flight == 3)
        await server.stop()
    assert len(problems) == 3
    for problem in problems:
        assert (problem.server, problem.maybe_done) == ("good", True)
        assert "the server was stopped" in str(problem)


async def test_callers_that_wait_for_it_are_refused_at_once(
    manager: Manager, tmp_path: Path
) -> None:
    timeouts = Timeouts(eof=0.5, term=1.0)
    server = await manager.add("slow", gated(tmp_path / "never", timeouts=timeouts))
    problems: list[str] = []

    async def call() -> None:
        with pytest.raises(ServerUnavailable) as caught:
            await echo(server)
        problems.append(str(caught.value))

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(call)
        await in_state(server, "opening")
        await server.stop()
    assert problems == ['server "slow": it was stopped; call start() first'] * 3


# -- stops and starts that meet ------------------------------------------------------------


async def test_two_tasks_may_stop_it_at_the_same_time(manager: Manager) -> None:
    timeouts = Timeouts(eof=0.1, term=5.0)
    server = await manager.add("slow", spec("ignores_eof", timeouts=timeouts))
    await server.start()
    pid = pid_of(server)
    ended: list[bool] = []

    async def stop() -> None:
        await server.stop()
        ended.append(Path(f"/proc/{pid}").exists())

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(stop)
    assert ended == [False] * 3, "each returns only when it is gone"
    await server.stop()
    await refused(server)


async def test_a_start_during_a_stop_starts_it_again_after(manager: Manager) -> None:
    timeouts = Timeouts(eof=0.1, term=5.0)
    server = await manager.add("slow", spec("ignores_eof", timeouts=timeouts))
    await server.start()
    first = pid_of(server)
    async with anyio.create_task_group() as group:
        group.start_soon(server.stop)
        await in_state(server, "stopping")
        await server.start()
        assert not Path(f"/proc/{first}").exists(), "one process at a time"
    assert (server.state, server.generation) == ("up", 2)
    assert await echo(server) == "hello"


async def test_the_last_word_counts(manager: Manager) -> None:
    timeouts = Timeouts(eof=0.1, term=5.0)
    server = await manager.add("slow", spec("ignores_eof", timeouts=timeouts))
    await server.start()
    server.halt()
    server.begin()
    server.halt()
    await server.stop()
    await refused(server)
    server.begin()
    server.halt()
    server.begin()
    await server.wait_ready()
    assert await echo(server) == "hello"


async def test_restart_gives_a_new_process(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake"))
    await server.start()
    first = pid_of(server)
    await server.restart()
    assert server.pid not in (None, first)
    assert (server.state, server.generation) == ("up", 2)
    assert server.incidents == []
    await gone(first)


async def test_restart_starts_what_did_not_run(manager: Manager, tmp_path: Path) -> None:
    server = await manager.add("good", spec("good_handshake"))
    await server.restart()
    assert (server.state, server.generation) == ("up", 1)
    await server.stop()
    await server.restart()
    assert (server.state, server.generation) == ("up", 2)
    once = {"FAKE_ONCE": str(tmp_path / "once")}
    failing = spec("fake", "init-error", env=once)
    server = await manager.add("failing", failing)
    with pytest.raises(ServerUnavailable):
        await server.start()
    assert server.state == "failed"
    await server.restart()
    assert await echo(server) == "hello"


async def test_restarts_from_several_tasks_leave_one_process(manager: Manager) -> None:
    server = await manager.add("good", spec("good_stateless"))
    await server.start()
    pids = [pid_of(server)]
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(server.restart)
    assert server.state == "up"
    assert await echo(server) == "hello"
    await gone(*pids)


# -- cancellation --------------------------------------------------------------------------


async def test_a_cancelled_stop_goes_all_the_way_first(manager: Manager) -> None:
    timeouts = Timeouts(eof=0.1, term=0.1)
    server = await manager.add("stubborn", spec("ignores_eof_and_term", timeouts=timeouts))
    await server.start()
    pid = pid_of(server)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await server.stop()
        await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert not Path(f"/proc/{pid}").exists()
    await refused(server)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_natively_cancelled_stop_goes_all_the_way_first(manager: Manager) -> None:
    timeouts = Timeouts(eof=0.1, term=0.1)
    server = await manager.add("stubborn", spec("ignores_eof_and_term", timeouts=timeouts))
    await server.start()
    pid = pid_of(server)
    task = asyncio.create_task(server.stop())
    await in_state(server, "stopping")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not Path(f"/proc/{pid}").exists()
    await refused(server)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_natively_cancelled_start_leaves_the_server_running(
    manager: Manager, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    server = await manager.add("slow", gated(gate))
    current = asyncio.current_task()
    assert current is not None
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(server.start(), 0.05)
    assert current.cancelling() == 0
    pid = pid_of(server)
    gate.touch()
    assert await echo(server) == "hello"
    assert server.pid == pid
