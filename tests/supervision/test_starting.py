"""Starts: at first use or at once, one for many callers, bounded, and none hurts another."""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallTimedOut,
    Manager,
    OpeningFailed,
    ServerSpec,
    ServerUnavailable,
    SpawnFailed,
    Timeouts,
)
from tests.conftest import QUICK, eventually, spec
from tests.supervision.helpers import births, echo, gated, gone, in_state, pid_of


@pytest.fixture(autouse=True)
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "mcpclient")
    return caplog


MISSING = ServerSpec("no-such-program-anywhere")


# -- lazy and eager ------------------------------------------------------------------------


async def test_a_lazy_server_starts_at_its_first_use(
    manager: Manager, log: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("lazy", spec("good_handshake"))
    await anyio.sleep(0.02)
    assert (server.state, server.generation, server.pid) == ("idle", 0, None)
    assert births(log, "lazy") == []
    assert await echo(server) == "hello"
    assert (server.state, server.generation) == ("up", 1)
    assert births(log, "lazy") == [pid_of(server)]


async def test_an_eager_server_starts_by_itself_as_soon_as_the_manager_opens() -> None:
    async with Manager({"eager": spec("good_handshake", start="eager")}) as manager:
        server = manager["eager"]
        assert server.state == "starting"
        await in_state(server, "up")
        first = pid_of(server)
        assert await echo(server) == "hello"
        assert (server.generation, server.pid) == (1, first)
        added = await manager.add("added", spec("good_stateless", start="eager"))
        await in_state(added, "up")


async def test_start_and_wait_ready_return_when_it_is_up(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake"))
    await server.start()
    assert server.state == "up"
    first = pid_of(server)
    await server.start()
    await server.wait_ready()
    assert (server.generation, server.pid) == (1, first), "a server that is up is left alone"


async def test_wait_ready_alone_starts_it_too(manager: Manager) -> None:
    server = await manager.add("good", spec("good_stateless"))
    await server.wait_ready()
    assert server.state == "up"


# -- many callers --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["good_handshake", "good_stateless"])
async def test_ten_first_calls_at_the_same_time_start_one_process(
    manager: Manager, log: pytest.LogCaptureFixture, name: str
) -> None:
    server = await manager.add("shared", spec(name))
    got: list[str] = []

    async def call(number: int) -> None:
        got.append(await echo(server, f"call {number}"))

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(call, number)
    assert sorted(got) == [f"call {number}" for number in range(10)]
    assert births(log, "shared") == [pid_of(server)]
    assert (server.generation, server.incidents) == (1, [])


async def test_a_call_waits_for_a_slow_server(manager: Manager) -> None:
    server = await manager.add("slow", spec("slow_open", 0.3))
    assert await echo(server) == "hello"
    assert server.generation == 1


async def test_a_call_waits_no_longer_than_its_time_out_and_the_start_goes_on(
    manager: Manager, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    server = await manager.add("slow", gated(gate))
    server.begin()
    await in_state(server, "opening")
    begun = time.monotonic()
    with pytest.raises(CallTimedOut) as caught:
        await echo(server, timeout=0.1)
    assert time.monotonic() - begun >= 0.1
    problem = caught.value
    assert (problem.method, problem.server, problem.maybe_done) == ("tools/call", "slow", False)
    assert str(problem) == (
        'tools/call on "slow": the server was not up within 100 ms (it is opening); '
        "the request was never sent, so it is safe to repeat"
    )
    with pytest.raises(CallTimedOut) as caught:
        await server.wait_ready(timeout=0.02)
    assert caught.value.method == "start"
    pid = pid_of(server)
    gate.touch()
    assert await echo(server) == "hello"
    assert (server.generation, server.pid) == (1, pid)


async def test_the_default_time_out_of_a_call_covers_the_start(
    manager: Manager, tmp_path: Path
) -> None:
    timeouts = Timeouts(call=0.1, eof=0.05)
    server = await manager.add("slow", gated(tmp_path / "never", timeouts=timeouts))
    with pytest.raises(CallTimedOut):
        await echo(server)


async def test_a_caller_that_is_cancelled_does_not_stop_the_server(
    manager: Manager, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    server = await manager.add("slow", gated(gate))
    scope = anyio.CancelScope()
    got: list[str] = []

    async def first() -> None:
        with scope:
            await server.start()

    async def second() -> None:
        got.append(await echo(server, "second"))

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        group.start_soon(second)
        await in_state(server, "opening")
        pid = pid_of(server)
        scope.cancel()
        await anyio.wait_all_tasks_blocked()
        assert server.state == "opening"
        gate.touch()
    assert scope.cancelled_caught
    assert got == ["second"]
    assert (server.generation, server.pid) == (1, pid)


# -- starts that fail ----------------------------------------------------------------------


async def test_a_command_that_is_not_there_is_told_to_every_caller_and_not_tried_again(
    manager: Manager,
) -> None:
    server = await manager.add("missing", MISSING)
    problems: list[SpawnFailed] = []

    async def call() -> None:
        with pytest.raises(SpawnFailed) as caught:
            await echo(server)
        problems.append(caught.value)

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(call)
    await call()
    assert {str(problem) for problem in problems} == {
        "'no-such-program-anywhere' was not found on PATH (server \"missing\"); "
        'install it or give the full path in "command"'
    }
    assert len({id(problem) for problem in problems}) == 6, "one raised twice mixes tracebacks"
    assert (server.state, server.generation) == ("failed", 1)
    (incident,) = server.incidents
    assert (incident.phase, incident.exit, incident.uptime) == ("starting", None, 0.0)
    assert "was not found on PATH" in incident.problem


async def test_a_failed_server_is_tried_again_when_it_is_told_to_start(
    manager: Manager, tmp_path: Path
) -> None:
    program = tmp_path / "server"
    server = await manager.add("later", ServerSpec(str(program)))
    for generation in (1, 2):
        with pytest.raises(SpawnFailed, match="does not exist"):
            await server.start()
        assert (server.state, server.generation) == ("failed", generation)
    good = Path(__file__).parent.parent.parent / "fixtures" / "servers" / "good_handshake.py"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{good}"\n')
    program.chmod(0o755)
    with pytest.raises(SpawnFailed):
        await echo(server)
    await server.start()
    assert await echo(server) == "hello"
    assert (server.state, server.generation) == ("up", 3)


async def test_a_server_that_refuses_us_is_not_retried(
    manager: Manager, log: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("refusing", spec("fake", "init-error"))
    for _ in range(2):
        with pytest.raises(OpeningFailed) as caught:
            await echo(server)
        assert caught.value.final
        assert caught.value.server == "refusing"
        assert "[-32603] the fake refuses to initialize" in str(caught.value)
    assert (server.state, server.generation) == ("failed", 1)
    assert len(births(log, "refusing")) == 1
    await gone(*births(log, "refusing"))


async def test_a_server_that_does_not_open_in_time_is_ended_and_retried(
    manager: Manager, log: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    timeouts = Timeouts(open=0.2, eof=0.05, term=1.0)
    server = await manager.add("late", gated(gate, timeouts=timeouts, restart=QUICK))
    server.begin()
    await eventually(lambda: len(births(log, "late")) >= 2)
    incident = server.incidents[0]
    assert incident.phase == "opening"
    assert "the server did not open within 200 ms (Timeouts.open" in incident.problem
    await gone(births(log, "late")[0])


# -- each for itself -----------------------------------------------------------------------


async def test_servers_that_fail_do_not_hurt_those_that_do_not(
    log: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    eager: dict[str, Any] = {"start": "eager"}
    servers = {
        "missing": ServerSpec("no-such-program-anywhere", **eager),
        "crashing": spec("exit_3", **eager),
        "refusing": spec("fake", "bad-version", **eager),
        "stuck": gated(tmp_path / "never", **eager),
        "rubbish": spec("fake", "garbage", **eager),
        "good": spec("good_handshake", **eager),
        "other": spec("good_stateless", **eager),
    }
    async with Manager(servers) as manager:
        for _ in range(20):
            for name in ("good", "other", "rubbish"):
                assert await echo(manager[name], name) == name
        await eventually(
            lambda: all(manager[n].state == "failed" for n in ("missing", "crashing", "refusing"))
        )
        assert manager["stuck"].state == "opening"
        for name in ("good", "other", "rubbish"):
            assert (manager[name].generation, manager[name].incidents) == (1, [])
        assert "no-such-program-anywhere" in manager["missing"].incidents[0].problem
    await gone(*births(log, "good"), *births(log, "stuck"))


async def test_twenty_servers_start_at_the_same_time_and_stop_together(
    log: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    names = [f"server{number}" for number in range(20)]
    timeouts = Timeouts(eof=20.0)
    servers = {name: gated(gate, start="eager", timeouts=timeouts) for name in names}
    async with Manager(servers) as manager:
        # None can be up before the gate opens: that all are opening shows that none waits.
        await eventually(lambda: all(manager[name].state == "opening" for name in names))
        servers_up = [manager[name] for name in names]
        pids = [pid_of(server) for server in servers_up]
        assert len(set(pids)) == 20
        gate.touch()
        await eventually(lambda: all(manager[name].state == "up" for name in names), within=30)
        assert await echo(manager["server19"], "last") == "last"
    assert [server.state for server in servers_up] == ["idle"] * 20
    await gone(*pids)


# -- who does not want to wait -------------------------------------------------------------


async def test_who_does_not_want_to_wait_is_refused_at_once(
    manager: Manager, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    server = await manager.add("slow", gated(gate))
    for state in ("idle", "opening"):
        with pytest.raises(ServerUnavailable) as caught:
            await server.no_wait.invoke_tool("echo", {"text": "x"})
        assert type(caught.value) is ServerUnavailable
        assert str(caught.value) == (
            f'server "slow": it is not up but {state}; wait_ready() waits for it'
        )
        if state == "idle":
            assert server.state == "idle", "asking is not starting"
            server.begin()
            await in_state(server, "opening")
    gate.touch()
    await server.wait_ready()
    result = await server.no_wait.invoke_tool("echo", {"text": "now"})
    assert result.text == "now"
    await server.stop()
    with pytest.raises(ServerUnavailable, match="it was stopped; call start"):
        await server.no_wait.list_tools()


async def test_who_does_not_want_to_wait_is_told_of_a_failure(manager: Manager) -> None:
    server = await manager.add("missing", MISSING)
    with pytest.raises(SpawnFailed):
        await server.start()
    with pytest.raises(SpawnFailed, match="was not found on PATH"):
        await server.no_wait.read_resource("test://a")
