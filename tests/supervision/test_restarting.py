"""Deaths nobody asked for: who is told what, when the next life comes, and when none does."""

from __future__ import annotations

import json
import logging
import os
import signal
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    CallLost,
    Manager,
    RestartPolicy,
    RestartsExhausted,
    Server,
    ServerDied,
    Timeouts,
)
from mcpclient.ground.exits import Exit
from tests.conftest import QUICK, alive, eventually, spec
from tests.supervision.helpers import NEVER_SOON, births, echo, gone, in_state, pid_of, reborn

SIGKILLED = Exit(signal=signal.SIGKILL)


def slowly(first: float) -> RestartPolicy:
    return RestartPolicy(first=first, cap=first, jitter=0.0)


def kill(server: Server) -> int:
    pid = pid_of(server)
    os.kill(pid, signal.SIGKILL)
    return pid


# -- a crash -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["good_handshake", "good_stateless"])
async def test_a_killed_server_lives_again_without_being_asked(manager: Manager, name: str) -> None:
    server = await manager.add("good", spec(name))
    assert await echo(server) == "hello"
    reads = [(await server.read_resource("test://counter", cache="bypass")).text for _ in "ab"]
    assert reads == ["1", "2"]
    first = kill(server)
    await reborn(server, 2)
    assert server.pid not in (first, None)
    assert await echo(server) == "hello"
    fresh = await server.read_resource("test://counter")
    assert fresh.text == "1", "it is another process, and nothing of the old one is kept"
    (incident,) = server.incidents
    assert (incident.generation, incident.phase, incident.exit) == (1, "up", SIGKILLED)
    assert incident.uptime > 0
    assert manager.status().servers[0].restarts == 1
    await gone(first)


async def test_each_life_is_opened_and_listed_anew(manager: Manager) -> None:
    server = await manager.add("fake", spec("fake"))
    await server.invoke_tool("add_tool", {"name": "fresh"})
    assert "fresh" in [tool.name for tool in await server.list_tools()]
    kill(server)
    await reborn(server, 2)
    names = [tool.name for tool in await server.list_tools()]
    assert "echo" in names
    assert "fresh" not in names


async def test_the_new_life_gets_a_whole_handshake(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake"))
    await server.start()
    kill(server)
    await reborn(server, 2)
    journal = json.loads((await server.invoke_tool("journal")).text)
    assert [one["method"] for one in journal] == [
        "initialize",
        "notifications/initialized",
        "tools/call",
    ], "the era is known by now, so it is not probed again"


async def test_calls_in_flight_are_told_at_once_how_it_died(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake", restart=slowly(0.05)))
    await server.invoke_tool("stderr", {"n": 32})
    await eventually(lambda: server.stderr_tail())
    problems: list[ServerDied] = []

    async def call() -> None:
        with pytest.raises(ServerDied) as caught:
            await server.invoke_tool("slow", {"seconds": 60})
        problems.append(caught.value)

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(call)
        await eventually(lambda: manager.status().servers[0].in_flight == 5)
        kill(server)
    assert len({id(problem) for problem in problems}) == 5
    for problem in problems:
        assert (problem.method, problem.server) == ("tools/call", "good")
        assert problem.exit == SIGKILLED
        assert problem.stderr_tail == "0123456789abcde\n" * 2
        assert problem.maybe_done is True
        assert str(problem) == (
            'tools/call on "good": the server died (killed by SIGKILL) '
            "(stderr: 0123456789abcde | 0123456789abcde); the server may have carried it out"
        )
    await reborn(server, 2)


async def test_a_call_that_was_never_written_says_so_when_the_server_dies(
    manager: Manager,
) -> None:
    server = await manager.add("deaf", spec("stops_reading", restart=NEVER_SOON))
    await server.start()
    await eventually(lambda: server.stderr_tail() == "" and server.state == "up")
    problems: dict[str, CallLost] = {}

    async def call(text: str) -> None:
        with pytest.raises(ServerDied) as caught:
            await server.invoke_tool("echo", {"text": text}, timeout=60)
        problems[text[:5]] = caught.value

    async with anyio.create_task_group() as group:
        # The first fills the pipe and more; the second waits behind it.
        group.start_soon(call, "first" + "x" * 400_000)
        await eventually(lambda: manager.status().servers[0].in_flight == 1)
        await anyio.wait_all_tasks_blocked()
        group.start_soon(call, "after")
        await eventually(lambda: manager.status().servers[0].in_flight == 2)
        await anyio.wait_all_tasks_blocked()
        kill(server)
    assert problems["first"].maybe_done is True
    assert problems["after"].maybe_done is False
    assert str(problems["after"]).endswith("the request was never sent, so it is safe to repeat")
    await server.stop()


async def test_calls_made_between_two_lives_wait_for_the_next(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake", restart=slowly(0.2)))
    await server.start()
    kill(server)
    await in_state(server, "waiting")
    assert (server.pid, server.generation) == (None, 1)
    got: list[str] = []

    async def call(number: int) -> None:
        got.append(await echo(server, str(number)))

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(call, number)
    assert sorted(got) == list("01234")
    assert server.generation == 2


async def test_a_death_between_calls_is_noticed_without_one(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake", restart=NEVER_SOON))
    await server.start()
    kill(server)
    await in_state(server, "waiting")
    assert server.incidents[0].exit == SIGKILLED
    await server.stop()


async def test_ten_deaths_in_a_row_leave_the_tenth_successor_as_good_as_the_first(
    manager: Manager,
) -> None:
    policy = RestartPolicy(burst=20, first=0.0, jitter=0.0)
    server = await manager.add("good", spec("good_stateless", restart=policy))
    await server.start()
    pids = []
    for generation in range(2, 12):
        pids.append(kill(server))
        await reborn(server, generation)
    assert await echo(server) == "hello"
    assert [one.generation for one in server.incidents] == list(range(1, 11))
    assert manager.status().servers[0].restarts == 10
    await gone(*pids)


# -- a crash loop --------------------------------------------------------------------------


async def test_a_crash_loop_ends_failed_with_all_its_deaths(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mcpclient")
    policy = RestartPolicy(burst=2, first=0.01, cap=0.01, jitter=0.0)
    server = await manager.add("crashing", spec("exit_3", restart=policy, era="handshake"))
    with pytest.raises(RestartsExhausted) as caught:
        await echo(server)
    problem = caught.value
    assert problem.server == "crashing"
    assert [one.generation for one in problem.incidents] == [1, 2, 3]
    assert {one.exit for one in problem.incidents} == {Exit(code=3)}
    assert {one.phase for one in problem.incidents} == {"opening"}
    assert problem.incidents[0].stderr_tail == "cannot start: the database is missing\n"
    text = str(problem)
    assert text.startswith('server "crashing": it ended 3 times in a row; last, life 3 ended ')
    assert "exit code 3" in text
    assert "cannot start: the database is missing" in text
    assert text.endswith("; call start() to try again")
    assert server.state == "failed"
    assert server.incidents == list(problem.incidents)
    # From now on it is refused at once, and nothing is started.
    with pytest.raises(RestartsExhausted) as caught:
        await echo(server)
    assert caught.value is not problem
    assert str(caught.value) == text
    assert len(births(caplog, "crashing")) == server.generation == 3
    await gone(*births(caplog, "crashing"))


async def test_start_arms_a_failed_server_again(manager: Manager, tmp_path: Path) -> None:
    once = {"FAKE_ONCE": str(tmp_path / "once")}
    policy = RestartPolicy(burst=0, jitter=0.0)
    server = await manager.add("fake", spec("fake", "crash-after-init", env=once, restart=policy))
    with pytest.raises(RestartsExhausted, match="it ended once; last, life 1 ended"):
        await server.start()
        await in_state(server, "failed")
        await server.wait_ready()
    assert server.state == "failed"
    await server.start()
    assert await echo(server) == "hello"
    assert (server.state, server.generation) == ("up", 2)


async def test_callers_that_wait_through_a_crash_loop_are_all_told(manager: Manager) -> None:
    policy = RestartPolicy(burst=1, first=0.02, jitter=0.0)
    server = await manager.add("crashing", spec("exit_3", restart=policy))
    told: list[str] = []

    async def call() -> None:
        with pytest.raises(RestartsExhausted) as caught:
            await server.list_tools()
        told.append(str(caught.value))

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for _ in range(10):
                group.start_soon(call)
    assert len(told) == 10
    assert len(set(told)) == 1


# -- deaf and mute -------------------------------------------------------------------------


async def test_a_server_that_closed_its_stdout_is_ended_and_lives_again(manager: Manager) -> None:
    timeouts = Timeouts(eof=0.1, term=1.0)
    server = await manager.add("mute", spec("stdout_closed", timeouts=timeouts))
    await server.start()
    with pytest.raises(ServerDied) as caught:
        await server.invoke_tool("sin")
    assert caught.value.maybe_done
    await reborn(server, 2)
    assert server.incidents[0].problem == "the server closed its stdout"
    assert await echo(server) == "hello"


async def test_a_server_that_closed_its_stdin_is_ended_and_lives_again(manager: Manager) -> None:
    timeouts = Timeouts(eof=0.1, term=1.0)
    server = await manager.add("deaf", spec("stdin_closed", timeouts=timeouts))
    assert (await server.invoke_tool("sin")).text == "deaf now"
    with pytest.raises(ServerDied) as caught:
        await echo(server)
    assert caught.value.maybe_done is False, "the pipe took nothing of it"
    await reborn(server, 2)
    assert server.incidents[0].problem == "the server closed its stdin (Broken pipe)"
    assert await echo(server) == "hello"


async def test_a_server_that_dies_of_a_cancellation_is_not_asked_again(manager: Manager) -> None:
    server = await manager.add("touchy", spec("dies_on_cancel"))
    await server.start()
    with pytest.raises(TimeoutError):
        await server.invoke_tool("sin", timeout=0.05)
    await reborn(server, 2)
    await anyio.sleep(0.05)
    assert (server.state, server.generation) == ("up", 2), "no loop of cancels and crashes"
    assert server.incidents[0].exit == Exit(code=1)


async def test_a_leader_that_leaves_a_grandchild_behind_is_dead_and_the_rest_swept(
    manager: Manager,
) -> None:
    server = await manager.add("leaves", spec("grandchild"))
    grandchild = int((await server.invoke_tool("pid")).text)
    with pytest.raises(ServerDied) as caught:
        await server.invoke_tool("exit")
    assert caught.value.exit == Exit(code=0)
    await eventually(lambda: not alive(grandchild))
    assert await echo(server) == "hello"
    assert int((await server.invoke_tool("pid")).text) != grandchild


# -- another server does not notice --------------------------------------------------------


async def test_calls_of_others_go_on_while_one_crashes_again_and_again(manager: Manager) -> None:
    policy = RestartPolicy(burst=50, within=0.0, first=0.0, jitter=0.0)
    crashing = await manager.add("crashing", spec("good_handshake", restart=policy))
    steady = await manager.add("steady", spec("good_handshake"))
    await crashing.start()
    await steady.start()
    pid = pid_of(steady)
    answers: list[Any] = []

    async def ask() -> None:
        for number in range(200):
            answers.append(await echo(steady, str(number)))
            await anyio.sleep(0.001)

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        for generation in range(2, 6):
            kill(crashing)
            await reborn(crashing, generation)
    assert answers == [str(number) for number in range(200)]
    assert (steady.pid, steady.generation, steady.incidents) == (pid, 1, [])


async def test_a_stop_and_a_crash_are_told_apart(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake", restart=QUICK))
    await server.start()
    problems: list[CallLost] = []

    async def call() -> None:
        with pytest.raises(CallLost) as caught:
            await server.invoke_tool("slow", {"seconds": 60})
        problems.append(caught.value)

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await eventually(lambda: manager.status().servers[0].in_flight == 1)
        await server.stop()
    assert [type(problem) for problem in problems] == [CallCancelled]
    assert server.incidents == []
    await server.start()
    assert server.generation == 2
