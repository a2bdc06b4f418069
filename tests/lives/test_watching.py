"""Hosts hear of states and incidents, in the order in which they happened, and may act on them."""

from __future__ import annotations

import os
import signal

import anyio
import pytest

from mcpclient import Incident, Limits, Manager, RestartPolicy, Server, ServerDied
from tests.conftest import eventually, spec

STARTS = ["starting", "opening", "up"]


def noted(manager: Manager) -> list[str]:
    """Note all states and incidents of all servers."""
    seen: list[str] = []
    manager.on_state(lambda server, state: seen.append(f"{server} {state}"))
    manager.on_incident(lambda server, incident: seen.append(f"{server} ! {incident.exit}"))
    return seen


async def test_each_state_is_told_in_order(manager: Manager) -> None:
    seen = noted(manager)
    server = await manager.add("one", spec("good_handshake"))
    await server.start()
    await server.stop()
    expected = [f"one {state}" for state in (*STARTS, "stopping", "idle")]
    await eventually(lambda: len(seen) == len(expected))
    assert seen == expected


async def test_a_death_is_told_before_what_follows_from_it(manager: Manager) -> None:
    seen = noted(manager)
    server = await manager.add("one", spec("good_handshake"))
    await server.start()
    os.kill(server.pid or 0, signal.SIGKILL)
    expected = [
        *(f"one {state}" for state in STARTS),
        "one ! killed by SIGKILL",
        "one waiting",
        *(f"one {state}" for state in STARTS),
    ]
    await eventually(lambda: len(seen) == len(expected))
    assert seen == expected


async def test_an_incident_is_told_as_it_is_recorded(manager: Manager) -> None:
    found: list[tuple[Server, Incident]] = []
    manager.on_incident(lambda server, incident: found.append((server, incident)))
    server = await manager.add("one", spec("dies_in_call", 7))
    with pytest.raises(ServerDied):
        await server.invoke_tool("sin")
    await eventually(lambda: found)
    assert found == [(server, server.incidents[0])]
    incident = found[0][1]
    assert (incident.generation, incident.phase, incident.problem) == (1, "up", "")
    assert incident.exit is not None
    assert (incident.exit.code, incident.exit.signal) == (7, None)
    assert incident.stderr_tail == "the database is gone\n"
    assert incident.uptime > 0
    # Still there when the next life writes its own.
    assert server.incidents[0].stderr_tail == "the database is gone\n"


async def test_a_handler_may_stop_the_server_it_hears_of(manager: Manager) -> None:
    async def stop(server: Server, _incident: Incident) -> None:
        await server.stop()

    manager.on_incident(stop)
    policy = RestartPolicy(first=0.2, cap=0.2, jitter=0)
    server = await manager.add("one", spec("good_handshake", restart=policy))
    await server.start()
    os.kill(server.pid or 0, signal.SIGKILL)
    await eventually(lambda: server.state == "idle")
    await anyio.sleep(0.3)
    assert (server.state, server.generation) == ("idle", 1)


async def test_a_handler_that_was_taken_off_hears_no_more(manager: Manager) -> None:
    states: list[str] = []
    token = manager.on_state(lambda server, state: states.append(state))
    server = await manager.add("one", spec("good_handshake"))
    await server.start()
    await eventually(lambda: states == STARTS)
    manager.off_notification(token)
    await server.restart()
    assert states == STARTS


async def test_in_a_manual_manager_they_wait_for_the_tick() -> None:
    async with Manager({"one": spec("good_handshake")}, dispatch="manual") as manager:
        seen = noted(manager)
        await manager["one"].start()
        assert seen == []
        assert manager.tick(max_items=2).left == 1
        assert seen == ["one starting", "one opening"]
        manager.tick()
        assert seen == [f"one {state}" for state in STARTS]


async def test_nobody_who_does_not_listen_makes_them_pile_up() -> None:
    async with Manager({"one": spec("good_handshake")}, dispatch="manual") as manager:
        for _ in range(3):
            await manager["one"].restart()
        assert len(manager["one"].inbox) == 0


async def test_incidents_are_bounded_the_oldest_go(manager: Manager) -> None:
    policy = RestartPolicy(burst=9, first=0.001, cap=0.001, jitter=0)
    one = spec("exit_3", restart=policy, limits=Limits(incidents=3))
    server = await manager.add("one", one)
    server.begin()
    await eventually(lambda: server.state == "failed")
    # As many as the policy needs to count, at least.
    assert [incident.generation for incident in server.incidents] == list(range(1, 11))
    await server.stop()
    server.begin()
    await eventually(lambda: server.state == "failed")
    assert len(server.incidents) == 10
    assert server.incidents[-1].generation == server.generation
