"""A server is asked whether it is well only if that is wanted, and judged by its silence alone."""

from __future__ import annotations

import anyio

from mcpclient import Manager, Server
from tests.conftest import alive, eventually, spec
from tests.faults.matrix import IMPATIENT


async def pings(server: Server) -> int:
    return int((await server.invoke_tool("pings")).text)


async def test_no_server_is_pinged_unless_it_is_wanted(manager: Manager) -> None:
    server = await manager.add("one", spec("pings"))
    await server.start()
    await anyio.sleep(0.15)
    assert await pings(server) == 0


async def test_a_server_that_is_well_stays_as_it_is(manager: Manager) -> None:
    server = await manager.add("one", spec("pings", ping=0.05, ping_misses=4))
    await server.start()
    with anyio.fail_after(10):
        while await pings(server) < 6:  # more than may be missed
            await anyio.sleep(0.1)
    assert (server.state, server.generation, server.incidents) == ("up", 1, [])


async def test_pings_are_no_calls_of_the_user(manager: Manager) -> None:
    server = await manager.add("one", spec("pings", ping=0.02, ping_misses=1000))
    await server.start()
    await anyio.sleep(0.15)
    assert server.status().calls == 0
    await pings(server)
    assert server.status().calls == 1


async def test_pings_end_with_the_server(manager: Manager) -> None:
    server = await manager.add("one", spec("pings", ping=0.02, ping_misses=1000))
    await server.start()
    await server.stop()
    await server.start()
    # A fresh process, and one ping at a time: had the old ones gone on, there would be more.
    await anyio.sleep(0.2)
    assert 1 <= await pings(server) <= 10


async def test_a_hung_server_is_ended_replaced_and_told_of(manager: Manager) -> None:
    one = spec("hangs", ping=0.1, ping_misses=3, timeouts=IMPATIENT)
    server = await manager.add("hung", one)
    incidents: list[str] = []
    manager.on_incident(lambda server, incident: incidents.append(incident.problem))
    await server.invoke_tool("sin")
    pid = server.pid
    assert pid is not None
    await eventually(lambda: server.generation == 2 and server.state == "up")
    assert not alive(pid)
    assert incidents == ["it answered no ping for 300 ms"]
    assert str(server.incidents[0].exit) == "killed by SIGKILL"
    assert (await server.invoke_tool("echo", {"text": "well"})).text == "well"
