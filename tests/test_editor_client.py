"""The editor client we surpass, sentence by sentence, against the fake in all its moods.

What it does with caches, tools, prompts and notifications in detail stands in `features/`.
"""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallTimedOut,
    Manager,
    OpeningFailed,
    RestartPolicy,
    RestartsExhausted,
    Server,
    ServerDied,
    ServerUnavailable,
    Timeouts,
)
from tests.conftest import alive, eventually, spec
from tests.features.helpers import puppet, refusal

ECHO = {"text": "hi"}
QUICK_STOP = Timeouts(eof=0.15, term=0.15)


def records(path: Path) -> list[Any]:
    """Return the JSON lines that the fake wrote into a file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def echoes(server: Server) -> bool:
    return (await server.invoke_tool("echo", ECHO)).text == "hi"


# -- states and names ----------------------------------------------------------------------


async def test_its_states_are_told_in_order_over_a_crash_and_a_stop(manager: Manager) -> None:
    states: list[str] = []
    manager.on_state(lambda server, state: states.append(state))
    server = await manager.add("fake", spec("fake"))
    assert server.state == "idle"
    await server.start()
    with pytest.raises(ServerDied):
        await server.invoke_tool("crash")
    await server.wait_ready()
    await server.stop()
    await eventually(lambda: states[-1:] == ["idle"])
    up = ["starting", "opening", "up"]
    assert states == [*up, "waiting", *up, "stopping", "idle"]


async def test_a_name_and_its_object_survive_restarts(manager: Manager) -> None:
    server = await manager.add("fake", spec("fake"))
    told: list[Any] = []
    manager.on_notification("notifications/resources/updated", lambda *facts: told.append(facts))
    for life in (1, 2, 3):
        assert await echoes(server)
        assert (server.generation, server is manager["fake"]) == (life, True)
        await server.invoke_tool("trigger_update", {"uri": f"fake://{life}"})
        await server.restart()
    await eventually(lambda: len(told) == 3)
    assert told == [(server, {"uri": f"fake://{life}"}) for life in (1, 2, 3)]


async def test_a_call_before_ready_waits_and_the_impatient_form_is_refused(
    manager: Manager,
) -> None:
    server = await manager.add("fake", spec("slow_open", 0.2))
    with pytest.raises(ServerUnavailable):
        await server.no_wait.invoke_tool("echo", ECHO)
    async with anyio.create_task_group() as group:
        group.start_soon(server.start)
        await eventually(lambda: server.state == "opening")
        with pytest.raises(ServerUnavailable) as caught:
            await server.no_wait.invoke_tool("echo", ECHO)
        assert str(caught.value).startswith('server "fake": it is not up but opening')
        assert await echoes(server)


async def test_waiting_for_ready_is_bounded_by_the_calls_own_time_out(manager: Manager) -> None:
    server = await manager.add("fake", spec("silent", timeouts=QUICK_STOP))
    with pytest.raises(CallTimedOut) as caught:
        await server.invoke_tool("echo", ECHO, timeout=0.1)
    assert (caught.value.method, caught.value.server) == ("tools/call", "fake")
    assert caught.value.maybe_done is False
    said = str(caught.value)  # and what it wrote to stderr, if that came in time
    assert said.startswith(
        'tools/call on "fake": the server was not up within 100 ms (it is opening)'
    )
    assert said.endswith("; the request was never sent, so it is safe to repeat")


async def test_every_wait_has_a_bound_that_can_be_set(manager: Manager) -> None:
    impatient = Timeouts(open=0.15, call=0.1, eof=0.1, term=0.1)
    silent = await manager.add("silent", spec("silent", timeouts=impatient))
    with pytest.raises(CallTimedOut):
        await silent.list_tools()  # by Timeouts.call
    once = RestartPolicy(burst=0)
    given_up = await manager.add("given-up", spec("silent", timeouts=impatient, restart=once))
    with pytest.raises(RestartsExhausted) as caught:
        await given_up.list_tools(timeout=None)  # by Timeouts.open
    [incident] = caught.value.incidents
    assert incident.phase == "opening"
    assert "the server did not open within 150 ms (Timeouts.open" in incident.problem
    # This one answers `sin` only once it was cancelled, so the time-out is no race.
    brief = Timeouts(call=0.1)
    late = await manager.add("late", spec("late_error", timeouts=brief))
    await late.start(timeout=10)
    with pytest.raises(CallTimedOut) as timed_out:
        await late.invoke_tool("sin")
    assert timed_out.value.maybe_done is True
    slow = await manager.add("slow", spec("fake", "slow", timeouts=brief))
    await slow.start(timeout=10)
    assert (await slow.invoke_tool("echo", ECHO, timeout=10)).text == "hi"


# -- deaths --------------------------------------------------------------------------------


async def test_an_answer_written_just_before_the_exit_still_settles_its_call(
    manager: Manager,
) -> None:
    server = await manager.add("fake", spec("fake", "crash-after-first-request"))
    for life in (1, 2, 3):
        assert await echoes(server)
        await eventually(lambda life=life: len(server.incidents) == life)
    assert [one.exit.code for one in server.incidents if one.exit] == [77, 77, 77]
    assert all(one.phase == "up" and one.uptime > 0 for one in server.incidents)


async def test_every_other_call_in_flight_ends_as_server_died_with_the_facts(
    manager: Manager,
) -> None:
    server = await manager.add("fake", spec("fake", "slow"))
    await server.start()
    problems: list[ServerDied] = []

    async def call(method: Any, *arguments: Any) -> None:
        with pytest.raises(ServerDied) as caught:
            await method(*arguments)
        problems.append(caught.value)

    async with anyio.create_task_group() as group:
        group.start_soon(call, server.invoke_tool, "echo", ECHO)
        group.start_soon(call, server.read_resource, "fake://x")
        group.start_soon(call, server.read_resource, "fake://x")
        await eventually(lambda: manager.status().servers[0].in_flight == 2)
        group.start_soon(call, server.invoke_tool, "crash")
    assert sorted(one.method for one in problems) == ["resources/read"] * 2 + ["tools/call"] * 2
    for problem in problems:
        assert (problem.exit.code, problem.exit.signal) == (78, None)
        assert (problem.server, problem.maybe_done) == ("fake", True)
        assert "the server died (exit code 78)" in str(problem)
    assert await echoes(server)
    assert server.generation == 2


async def test_a_death_tells_the_signal_and_the_last_words(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake"))
    await server.call_tool("stderr", {"n": 40})
    problems: list[ServerDied] = []

    async def wait() -> None:
        with pytest.raises(ServerDied) as caught:
            await server.call_tool("slow", {"seconds": 60})
        problems.append(caught.value)

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await eventually(lambda: manager.status().servers[0].in_flight)
        os.kill(server.pid or 0, signal.SIGKILL)
    [problem] = problems
    assert (problem.exit.code, problem.exit.signal) == (None, signal.SIGKILL)
    assert problem.stderr_tail == "0123456789abcde\n0123456789abcde\n01234567"
    assert "(stderr: 0123456789abcde | 0123456789abcde | 01234567)" in str(problem)


@pytest.mark.parametrize(
    ("when", "code", "state", "lives"),
    [
        ("on_crash", 0, "idle", 1),
        ("on_crash", 1, "up", 2),
        ("always", 0, "up", 2),
        ("always", 1, "up", 2),
        ("never", 1, "failed", 1),
        ("never", 0, "idle", 1),
    ],
)
async def test_the_policy_means_what_it_says_exit_0_included(
    manager: Manager, when: str, code: int, state: str, lives: int
) -> None:
    policy = RestartPolicy(when=when, first=0.01, jitter=0)
    server = await manager.add("good", spec("good_handshake", restart=policy))
    with pytest.raises(ServerDied) as caught:
        await server.call_tool("exit", {"code": code})
    assert caught.value.exit.code == code
    await eventually(lambda: server.state == state)
    assert server.generation == lives
    if state == "idle":  # it ended well: the next call starts it
        await server.list_tools()
        assert server.generation == 2
    if state == "failed":
        with pytest.raises(RestartsExhausted):
            await server.list_tools()
        await server.start()
        assert server.generation == 2


async def test_an_unknown_restart_word_is_refused_by_name() -> None:
    with pytest.raises(ValueError) as caught:
        RestartPolicy(when="on-crash")
    assert str(caught.value) == (
        "RestartPolicy.when must be one of on_crash, always, never, not 'on-crash'"
    )


@pytest.mark.parametrize(("mode", "code"), [("crash-after-init", 7), ("exit-after-init", 0)])
async def test_one_that_never_stays_up_is_given_up_by_name_until_it_is_started_again(
    manager: Manager, mode: str, code: int
) -> None:
    policy = RestartPolicy(when="always", burst=2, first=0.01, jitter=0)
    server = await manager.add("fake", spec("fake", mode, restart=policy, start="eager"))
    await eventually(lambda: server.state == "failed")
    with pytest.raises(RestartsExhausted) as caught:
        await server.invoke_tool("echo", ECHO)
    assert (caught.value.server, len(caught.value.incidents)) == ("fake", 3)
    for incident in caught.value.incidents:
        assert incident.exit is not None
        assert incident.exit.code == code
    assert str(caught.value).startswith('server "fake": it ended 3 times in a row; last, life 3 ')
    assert str(caught.value).endswith("; call start() to try again")
    assert (server.generation, manager.status().servers[0].restarts) == (3, 2)
    server.begin()
    await eventually(lambda: server.state == "failed" and server.generation > 3)


async def test_only_a_first_life_that_crashes_costs_nothing_but_a_restart(
    manager: Manager, tmp_path: Path
) -> None:
    env = {"FAKE_ONCE": str(tmp_path / "once")}
    server = await manager.add("fake", spec("fake", "crash-after-init", env=env, start="eager"))
    await eventually(lambda: server.generation == 2 and server.state == "up")
    assert await echoes(server)
    assert [one.exit.code for one in server.incidents if one.exit] == [7]


def block_until_dead(server: Server, state: str) -> None:
    """Block the host's loop, so that it takes the answer and the death after it at once."""
    end = time.monotonic() + 5
    while state == "opening" and alive(server.pid or 0) and time.monotonic() < end:
        time.sleep(0.001)


async def test_one_that_answers_the_opening_and_dies_at_once_is_a_death_and_no_fault_of_ours(
    manager: Manager,
) -> None:
    # Each of these opens only with what the first answer brings, and is dead when it is read.
    gone = {"exit": 3}
    discovered = {
        "result": {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {},
            "resultType": "complete",
        }
    }
    servers = {
        "initialize": spec(
            "fake", "crash-after-init", era="handshake", restart=RestartPolicy(burst=0)
        ),
        "discover": puppet(
            {"server/discover": [discovered | gone]},
            era="stateless",
            restart=RestartPolicy(burst=0),
        ),
    }
    manager.on_state(block_until_dead)
    for name, one in servers.items():
        server = await manager.add(name, one)
        with pytest.raises(RestartsExhausted) as caught:
            await server.wait_ready()
        [incident] = caught.value.incidents
        assert (incident.phase, incident.generation) == ("opening", 1)
        assert incident.exit is not None
        code = incident.exit.code
        assert code == {"initialize": 7, "discover": 3}[name]
        assert f"the server ended while it was opened (exit code {code})" in incident.problem


async def test_one_that_refuses_the_probe_and_dies_at_once_is_opened_without_it(
    manager: Manager,
) -> None:
    script = {"server/discover": [refusal(-32601) | {"exit": 1}]}
    manager.on_state(block_until_dead)
    server = await manager.add("s", puppet(script))
    await server.wait_ready()
    assert (server.era, server.generation, server.incidents) == ("handshake", 1, [])


# -- the opening ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        (
            "init-error",
            "the server refused initialize for 2025-11-25: [-32603] the fake refuses to initialize",
        ),
        (
            "bad-version",
            "the server wants protocol version 1999-01-01; offered was 2025-11-25, possible are "
            "2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25",
        ),
    ],
)
async def test_one_that_refuses_the_handshake_is_not_asked_for_ever(
    manager: Manager, mode: str, said: str
) -> None:
    server = await manager.add("fake", spec("fake", mode))
    for _ in (1, 2):
        with pytest.raises(OpeningFailed) as caught:
            await server.invoke_tool("echo", ECHO)
        assert (caught.value.problem, caught.value.server) == (said, "fake")
        assert caught.value.final is True
        assert (server.state, server.generation) == ("failed", 1)


async def test_after_a_refusal_start_tries_again(manager: Manager, tmp_path: Path) -> None:
    env = {"FAKE_ONCE": str(tmp_path / "once")}
    server = await manager.add("fake", spec("fake", "init-error", env=env))
    with pytest.raises(OpeningFailed):
        await server.start()
    await server.start()
    assert await echoes(server)


async def test_capabilities_may_be_missing(manager: Manager) -> None:
    server = await manager.add("fake", spec("fake", "no-capabilities"))
    assert await echoes(server)
    assert server.capabilities == {}
    assert len(await server.list_tools()) == 15
    assert [one.name for one in await server.list_prompts()] == ["greet", "plain"]


@pytest.mark.parametrize(
    "version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]
)
async def test_every_version_is_spoken(manager: Manager, version: str) -> None:
    name = "good_stateless" if version == "2026-07-28" else "good_handshake"
    server = await manager.add("s", spec(name, era=version))
    assert (await server.invoke_tool("echo", ECHO)).text == "hi"
    assert server.protocol_version == version
