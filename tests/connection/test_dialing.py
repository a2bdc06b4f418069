"""Dialing: a second process where the first died of the probe, the era kept, the time bounded."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from mcpclient import Limits, OpeningFailed, SpawnFailed, Timeouts, loops
from mcpclient.connection.connection import Connection
from mcpclient.connection.dialing import Dialer
from mcpclient.ground.exits import Exit
from mcpclient.transports.memory import MemoryTransport, pair
from tests.conftest import eventually
from tests.connection.openings import discovered, initialized
from tests.connection.peer import IDENTITY, Ears, Peer

# How a scripted process answers: given itself and a request, it does as it likes.
Script = Callable[["Process", dict[str, Any]], None]


class Process(Peer):
    """A scripted process; ``script`` is called with each request."""

    def __init__(self, transport: MemoryTransport, script: Script) -> None:
        super().__init__(transport)
        self.respond = lambda request: script(self, request)


class World:
    """A dialer, and the processes it started."""

    def __init__(
        self,
        *scripts: Script,
        era: str = "auto",
        connect: Callable[[], Awaitable[MemoryTransport]] | None = None,
        **timeouts: Any,
    ) -> None:
        self.processes: list[Process] = []
        self.told: list[Connection] = []
        self.ears = Ears()
        self.loop = loops.current()
        self._scripts = list(scripts)
        self.dialer = Dialer(
            "scripted",
            connect or self.connect,
            loop=self.loop,
            identity=IDENTITY,
            era=era,
            timeouts=Timeouts(**{"probe": 60.0, **timeouts}),
            limits=Limits(),
            command="scripted-server",
        )

    async def connect(self) -> MemoryTransport:
        await self.loop.checkpoint()
        ours, theirs = pair(self.loop)
        # The last script is the one of all further processes.
        script = self._scripts[min(len(self.processes), len(self._scripts) - 1)]
        self.processes.append(Process(theirs, script))
        return ours

    async def dial(self, generation: int = 1) -> Connection:
        return await self.dialer.dial(generation, self.ears, self.told.append)

    def methods(self, number: int) -> list[str]:
        """What the process of this number received."""
        return [str(message.get("method")) for message in self.processes[number].received]


def stateless(process: Process, request: dict[str, Any]) -> None:
    if request["method"] == "server/discover":
        process.answer(request, **discovered())
    elif request["method"] == "initialize":
        process.refuse(request, -32022, "no", data={"supported": ["2026-07-28"]})


def handshake(process: Process, request: dict[str, Any]) -> None:
    if request["method"] == "initialize":
        process.answer(request, **initialized())
    else:
        process.refuse(request, -32601, "Method not found")


def dies_on_probe(process: Process, request: dict[str, Any]) -> None:
    if request["method"] == "initialize":
        process.answer(request, **initialized())
    else:
        process.die(Exit(code=1))


def dies(process: Process, request: dict[str, Any]) -> None:
    process.die(Exit(code=3))


def silent(process: Process, request: dict[str, Any]) -> None:
    pass


def refuses(process: Process, request: dict[str, Any]) -> None:
    process.refuse(request, -32603, "not today")


# -- one life ------------------------------------------------------------------------------


@pytest.mark.parametrize(("script", "era"), [(stateless, "stateless"), (handshake, "handshake")])
async def test_a_dial_returns_an_open_connection(script: Script, era: str) -> None:
    world = World(script)
    connection = await world.dial(generation=3)
    assert connection.session.state == "open"
    assert connection.session.era.name == era
    assert connection.label == "scripted#3"
    assert world.told == [connection], "told once"
    assert len(world.processes) == 1
    await connection.close()


async def test_a_server_that_dies_of_the_probe_is_started_once_more_without(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "mcpclient")
    world = World(dies_on_probe)
    connection = await world.dial()
    assert connection.session.era.name == "handshake"
    assert len(world.processes) == len(world.told) == 2
    assert world.methods(0) == ["server/discover"]
    await world.processes[1].get("notifications/initialized")
    assert world.methods(1) == ["initialize", "notifications/initialized"]
    assert "scripted#1 = ended when probed; once more" in [r.getMessage() for r in caplog.records]
    await connection.close()


async def test_what_died_of_the_probe_and_is_away_for_a_while_is_not_probed_when_it_is_back() -> (
    None
):
    away = [False, True, True, False, False]
    found: list[World] = []

    async def reach() -> MemoryTransport:
        if away.pop(0):
            raise OpeningFailed("nobody listens")
        return await found[0].connect()

    found.append(world := World(dies_on_probe, connect=reach))
    for life in (1, 2):
        with pytest.raises(OpeningFailed, match="nobody listens"):
            await world.dial(life)
    connection = await world.dial(3)
    assert world.methods(0) == ["server/discover"]
    await world.processes[1].get("notifications/initialized")
    assert world.methods(1) == ["initialize", "notifications/initialized"]
    await connection.close()
    assert away == [False], "each life tried once or twice"


async def test_a_server_that_dies_whatever_it_is_asked_is_started_no_third_time() -> None:
    world = World(dies)
    with pytest.raises(OpeningFailed) as caught:
        await world.dial()
    assert caught.value.exit == Exit(code=3)
    assert not caught.value.final
    assert len(world.processes) == 2


@pytest.mark.parametrize("era", ["handshake", "2025-06-18"])
async def test_where_the_era_is_given_a_death_is_a_failure(era: str) -> None:
    world = World(dies, era=era)
    with pytest.raises(OpeningFailed):
        await world.dial()
    assert len(world.processes) == 1
    assert world.methods(0) == ["initialize"]


async def test_a_failed_dial_closes_what_it_opened() -> None:
    world = World(refuses)
    with pytest.raises(OpeningFailed) as caught:
        await world.dial()
    assert caught.value.final
    assert world.processes[0].exit is not None


async def test_a_command_that_cannot_be_started_is_told_as_it_is() -> None:
    problem = SpawnFailed("'x' was not found", command="x", hint="install it")

    async def connect() -> MemoryTransport:
        raise problem

    world = World(connect=connect)
    with pytest.raises(SpawnFailed) as caught:
        await world.dial()
    assert caught.value is problem
    assert world.told == []


# -- what is remembered --------------------------------------------------------------------


async def test_the_handshake_era_is_remembered_for_the_next_life() -> None:
    world = World(dies_on_probe)
    for generation in (1, 2, 3):
        connection = await world.dial(generation)
        await world.processes[-1].get("notifications/initialized")
        await connection.close()
    assert len(world.processes) == 4, "only the first life costs a second process"
    assert world.methods(2) == world.methods(3) == ["initialize", "notifications/initialized"]


async def test_a_stateless_server_is_probed_in_every_life() -> None:
    world = World(stateless)
    for generation in (1, 2):
        await (await world.dial(generation)).close()
    assert world.methods(0) == world.methods(1) == ["server/discover"]


async def test_a_server_that_changed_its_era_between_two_lives_is_probed_anew() -> None:
    world = World(handshake, refuses, stateless)
    await (await world.dial(1)).close()
    connection = await world.dial(2)
    assert connection.session.era.name == "stateless"
    assert world.methods(1) == ["initialize"]
    assert world.methods(2) == ["server/discover"]
    assert world.processes[1].exit is not None
    await connection.close()
    await (await world.dial(3)).close()
    assert world.methods(3) == ["server/discover"], "what was proven before is forgotten"


async def test_a_server_that_refuses_its_proven_era_by_naming_the_other_is_asked() -> None:
    world = World(handshake, stateless)
    await (await world.dial(1)).close()
    connection = await world.dial(2)
    assert connection.session.era.name == "stateless"
    await connection.close()


# -- time ----------------------------------------------------------------------------------


async def test_a_server_that_does_not_open_in_time_is_told_with_all_that_is_known() -> None:
    world = World(silent, open=0.05)
    with pytest.raises(OpeningFailed) as caught:
        await world.dial()
    problem = caught.value
    assert not problem.final
    assert str(problem) == (
        'server "scripted": the server did not open within 50 ms '
        "(Timeouts.open; its command is 'scripted-server')"
    )
    assert world.processes[0].exit is not None


async def test_the_noise_of_a_server_that_does_not_open_is_shown() -> None:
    def noisy(process: Process, request: dict[str, Any]) -> None:
        process.write(b"enter your password:\n")

    world = World(noisy, open=0.05)
    with pytest.raises(OpeningFailed) as caught:
        await world.dial()
    assert "(not a message of the protocol: 'enter your password:')" in str(caught.value)


async def test_a_process_that_does_not_start_in_time_is_told_as_such() -> None:
    async def connect() -> MemoryTransport:
        await anyio.sleep_forever()
        raise AssertionError

    world = World(connect=connect, open=0.05)
    with pytest.raises(OpeningFailed) as caught:
        await world.dial()
    assert "the process did not start within 50 ms (Timeouts.open" in str(caught.value)


async def test_both_processes_of_one_life_share_the_time() -> None:
    def dies_late(process: Process, request: dict[str, Any]) -> None:
        world.loop.later(1.0, process.die)

    world = World(dies_late, silent, open=2.0)
    begun = anyio.current_time()
    with pytest.raises(OpeningFailed):
        await world.dial()
    assert len(world.processes) == 2
    assert 2.0 <= anyio.current_time() - begun < 3.0, "the second does not begin anew"


async def test_without_a_limit_an_opening_may_take_for_ever() -> None:
    world = World(silent, open=None)
    connections: list[Connection] = []

    async def run() -> None:
        connections.append(await world.dial())

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await eventually(lambda: world.processes and world.processes[0].received)
        await anyio.sleep(0.05)
        probe = world.processes[0].received[0]
        world.processes[0].answer(probe, **discovered())
    assert connections[0].session.state == "open"
    await connections[0].close()


async def test_a_cancelled_dial_leaves_no_process() -> None:
    world = World(silent)
    scope = anyio.CancelScope()

    async def run() -> None:
        with scope:
            await world.dial()

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await eventually(lambda: world.processes and world.processes[0].received)
        scope.cancel()
    assert scope.cancelled_caught
    assert world.processes[0].exit is not None
    assert world.methods(0) == ["server/discover"]
