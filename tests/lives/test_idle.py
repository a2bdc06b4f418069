"""A server that nobody uses is stopped, and wakes at the next call as if nothing had been."""

from __future__ import annotations

import anyio
import pytest

from mcpclient import Manager, Server, ServerUnavailable
from tests.conftest import alive, eventually, spec
from tests.faults.matrix import IMPATIENT


async def asleep(server: Server) -> None:
    """Wait until the server was stopped because nobody used it."""
    await eventually(lambda: server.state == "idle")
    assert (server.pid, server.incidents) == (None, [])


async def test_it_stops_after_its_time_and_wakes_at_a_call(manager: Manager) -> None:
    server = await manager.add("one", spec("good_handshake", idle_stop=0.1))
    assert (await server.read_resource("test://counter")).text == "1"
    pid = server.pid
    assert pid is not None
    await asleep(server)
    assert not alive(pid)
    # A new process, and nothing cached of the old one.
    assert (await server.read_resource("test://counter")).text == "1"
    status = server.status()
    assert (status.generation, status.restarts, status.state) == (2, 0, "up")


async def test_it_is_awake_as_long_as_a_call_takes(manager: Manager) -> None:
    server = await manager.add("one", spec("good_handshake", idle_stop=0.1))
    await server.invoke_tool("slow", {"seconds": 0.5})
    assert server.generation == 1
    await asleep(server)


async def test_calls_keep_it_awake(manager: Manager) -> None:
    server = await manager.add("one", spec("good_handshake", idle_stop=0.6))
    for _ in range(14):
        await server.invoke_tool("echo", {"text": "awake"})
        await anyio.sleep(0.05)
    assert server.generation == 1


async def test_pings_do_not_keep_it_awake(manager: Manager) -> None:
    server = await manager.add("one", spec("pings", idle_stop=0.3, ping=0.02, ping_misses=1000))
    await server.start()
    await asleep(server)
    assert server.status().calls == 0


@pytest.mark.parametrize("name", ["good_handshake", "good_stateless"])
async def test_who_waits_for_changes_of_a_list_does_not_keep_it_awake(
    manager: Manager, name: str
) -> None:
    # In the stateless era a request is open for that, which is never answered.
    manager.on_notification("notifications/tools/list_changed", lambda server, params: None)
    server = await manager.add("one", spec(name, idle_stop=0.2))
    await server.start()
    await server.invoke_tool("echo", {"text": "x"})
    assert server.status().in_flight == 0
    await asleep(server)
    assert server.generation == 1


@pytest.mark.parametrize("name", ["good_handshake", "good_stateless"])
async def test_who_follows_a_resource_keeps_it_awake(manager: Manager, name: str) -> None:
    server = await manager.add("one", spec(name, idle_stop=0.08))
    async with server.subscribe("test://counter"):
        await anyio.sleep(0.25)
        assert (server.state, server.generation) == ("up", 1)
    await asleep(server)


async def test_a_call_that_comes_while_it_is_being_stopped_is_answered_by_its_next_life(
    manager: Manager,
) -> None:
    one = spec("ignores_eof", idle_stop=0.05, timeouts=IMPATIENT)
    server = await manager.add("slow to go", one)
    await server.start()
    await eventually(lambda: server.state == "stopping")
    assert (await server.invoke_tool("echo", {"text": "already?"})).text == "already?"
    assert (server.generation, server.incidents) == (2, [])


async def test_who_will_not_wait_is_told_that_it_sleeps(manager: Manager) -> None:
    server = await manager.add("one", spec("good_handshake", idle_stop=0.05))
    await server.start()
    await asleep(server)
    with pytest.raises(ServerUnavailable, match="it is not up but idle"):
        await server.no_wait.list_tools()
    assert server.state == "idle"


async def test_one_that_was_stopped_on_purpose_is_not_woken(manager: Manager) -> None:
    server = await manager.add("one", spec("good_handshake", idle_stop=0.05))
    await server.start()
    await asleep(server)
    await server.stop()
    with pytest.raises(ServerUnavailable, match="it was stopped"):
        await server.list_tools()


async def test_a_crash_on_waking_is_an_incident_like_any_other(manager: Manager) -> None:
    server = await manager.add("one", spec("dies_in_call", 5, idle_stop=0.05))
    await server.start()
    await asleep(server)
    with pytest.raises(Exception, match="exit code 5"):
        await server.invoke_tool("sin")
    await eventually(lambda: server.generation == 3)
    assert [incident.generation for incident in server.incidents] == [2]


async def test_without_the_option_it_is_never_stopped(manager: Manager) -> None:
    server = await manager.add("one", spec("good_handshake"))
    await server.start()
    await anyio.sleep(0.2)
    assert (server.state, server.generation) == ("up", 1)
