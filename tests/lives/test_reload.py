"""A reload touches what changed and nothing else, whatever it finds under way."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    ConfigError,
    Manager,
    RestartPolicy,
    Server,
    ServerSpec,
    ServerUnavailable,
    Timeouts,
)
from tests.cases import case
from tests.conftest import SERVERS, alive, eventually, spec
from tests.faults.matrix import IMPATIENT

GOOD = spec("good_handshake")
OTHER = spec("good_handshake", "--tools", 3)  # the same server with three tools more

# It is being stopped for half a second.
STUBBORN = spec("ignores_eof", timeouts=Timeouts(eof=0.5, term=0.5))


async def tools_of(server: Server) -> int:
    return len(await server.list_tools())


async def up(manager: Manager) -> dict[str, int | None]:
    """Start all servers and return their processes."""
    for name in manager:
        await manager[name].start()
    return {name: manager[name].pid for name in manager}


@case("B104")
async def test_only_what_changed_is_touched_and_the_old_process_is_gone() -> None:
    servers = {"same": GOOD, "changed": GOOD, "gone": GOOD}
    async with Manager(servers) as manager:
        before = await up(manager)
        changed, gone = manager["changed"], manager["gone"]
        report = await manager.reload({"same": GOOD, "changed": OTHER, "new": GOOD})
        assert (report.added, report.removed, report.changed) == (["new"], ["gone"], ["changed"])
        assert not alive(before["changed"] or 0)
        assert not alive(before["gone"] or 0)
        assert list(manager) == ["same", "changed", "new"]
        # The same object, in its second life, which was started since the first one ran.
        assert manager["changed"] is changed
        await changed.wait_ready()
        assert (await tools_of(changed), changed.generation, changed.incidents) == (13, 2, [])
        assert (manager["same"].pid, manager["same"].generation) == (before["same"], 1)
        assert manager["new"].state == "idle"
        assert await tools_of(manager["new"]) == 10
        with pytest.raises(Exception, match='the server "gone" was removed'):
            await gone.list_tools()


async def test_entries_are_compared_by_what_they_mean() -> None:
    path = str(SERVERS / "good_handshake.py")
    async with Manager({"one": [sys.executable, path]}) as manager:
        before = await up(manager)
        for entry in (
            {"command": sys.executable, "args": [path]},
            {"type": "stdio", "command": sys.executable, "args": [path], "env": {}},
            ServerSpec(sys.executable, (path,)),
        ):
            report = await manager.reload({"one": entry})
            assert (report.added, report.removed, report.changed) == ([], [], [])
        assert manager["one"].pid == before["one"]


async def test_an_entry_that_cannot_be_meant_touches_nothing() -> None:
    async with Manager({"one": GOOD, "two": GOOD}) as manager:
        before = await up(manager)
        with pytest.raises(ConfigError, match="unknown key 'comand'"):
            await manager.reload({"one": OTHER, "three": {"comand": "x"}})
        assert {name: manager[name].pid for name in manager} == before


async def test_a_file_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"

    def write(**servers: Any) -> None:
        path.write_text(json.dumps({"mcpServers": servers}))

    one = {"command": sys.executable, "args": [str(SERVERS / "good_handshake.py")]}
    write(one=one)
    async with Manager.from_config(path) as manager:
        assert await tools_of(manager["one"]) == 10
        write(one={**one, "args": [*one["args"], "--tools", "1"]}, two=one)
        report = await manager.reload(path)
        assert (report.added, report.removed, report.changed) == (["two"], [], ["one"])
        assert await tools_of(manager["one"]) == 11
        write(one=one, two={**one, "disabled": True})
        report = await manager.reload(str(path))
        assert (report.added, report.removed, report.changed) == ([], ["two"], ["one"])


async def test_calls_of_a_changed_server_end_and_those_that_follow_reach_the_new_one() -> None:
    async with Manager({"one": GOOD}) as manager:
        server = manager["one"]
        await server.start()
        ended: list[str] = []

        async def ask() -> None:
            try:
                await server.invoke_tool("slow", {"seconds": 60})
            except CallCancelled as problem:
                ended.append(problem.problem)

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await eventually(lambda: server.status().in_flight == 1)
            await manager.reload({"one": OTHER})
        assert ended == ["the server was stopped"]
        assert await tools_of(server) == 13


@pytest.mark.parametrize(
    ("state", "old"),
    [
        ("starting", GOOD),
        ("opening", spec("slow_open", 60, timeouts=IMPATIENT)),
        ("waiting", spec("exit_3", restart=RestartPolicy(first=60, cap=60, jitter=0))),
    ],
)
async def test_a_server_on_its_way_up_is_turned_round(state: str, old: ServerSpec) -> None:
    async with Manager({"one": old}) as manager:
        server = manager["one"]
        server.begin()
        with anyio.fail_after(10):
            while server.state != state:
                await anyio.sleep(0)
        await manager.reload({"one": OTHER})
        assert await tools_of(server) == 13
        assert server.state == "up"


async def test_a_caller_who_waits_meanwhile_gets_the_new_one() -> None:
    async with Manager({"one": spec("slow_open", 60, timeouts=IMPATIENT)}) as manager:
        found: list[int] = []

        async def ask() -> None:
            found.append(await tools_of(manager["one"]))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await eventually(lambda: manager["one"].state == "opening")
            await manager.reload({"one": OTHER})
        assert found == [13]


async def test_a_server_that_is_idle_is_not_started_but_run_in_the_new_way() -> None:
    async with Manager({"one": GOOD, "eager": GOOD}) as manager:
        await manager.reload({"one": OTHER, "eager": spec("good_handshake", start="eager")})
        assert (manager["one"].state, manager["one"].generation) == ("idle", 0)
        await eventually(lambda: manager["eager"].state == "up")
        assert await tools_of(manager["one"]) == 13


async def test_a_server_that_had_failed_may_be_tried_again() -> None:
    async with Manager({"one": ServerSpec("no-such-server")}) as manager:
        server = manager["one"]
        with pytest.raises(ServerUnavailable):
            await server.start()
        assert server.state == "failed"
        await manager.reload({"one": GOOD})
        assert server.state == "idle"
        assert await tools_of(server) == 10


async def test_a_server_that_was_stopped_stays_stopped() -> None:
    async with Manager({"one": GOOD}) as manager:
        server = manager["one"]
        await server.start()
        await server.stop()
        await manager.reload({"one": OTHER})
        with pytest.raises(ServerUnavailable, match="it was stopped"):
            await server.list_tools()
        await server.start()
        assert await tools_of(server) == 13


async def test_a_stop_during_a_reload_wins() -> None:
    async with Manager({"one": STUBBORN}) as manager:
        server = manager["one"]
        await server.start()
        async with anyio.create_task_group() as group:
            group.start_soon(manager.reload, {"one": OTHER})
            await eventually(lambda: server.state == "stopping")
            await server.stop()
        assert server.state == "idle"
        with pytest.raises(ServerUnavailable, match="it was stopped"):
            await server.list_tools()


async def test_two_reloads_at_once_end_with_what_the_later_one_said() -> None:
    async with Manager({"one": STUBBORN}) as manager:
        server = manager["one"]
        await server.start()
        async with anyio.create_task_group() as group:
            group.start_soon(manager.reload, {"one": spec("good_handshake", "--tools", 1)})
            await eventually(lambda: server.state == "stopping")
            group.start_soon(manager.reload, {"one": OTHER})
        assert server.spec == OTHER
        await server.wait_ready()
        assert await tools_of(server) == 13


async def test_options_that_are_no_part_of_the_command_count_as_well() -> None:
    async with Manager({"one": spec("good_handshake")}) as manager:
        server = manager["one"]
        await server.start()
        report = await manager.reload({"one": spec("good_handshake", idle_stop=0.05)})
        assert report.changed == ["one"]
        await server.wait_ready()
        await eventually(lambda: server.state == "idle")


async def test_a_close_waits_for_a_server_that_is_being_removed() -> None:
    manager = Manager({"one": STUBBORN})
    await manager.open()
    pid = (await up(manager))["one"]
    assert pid is not None
    server = manager["one"]
    async with anyio.create_task_group() as group:
        group.start_soon(manager.remove, "one")
        await eventually(lambda: server.state == "stopping")
        assert list(manager) == []
        await manager.close()
        assert not alive(pid)


async def test_a_reload_that_is_cancelled_is_done_all_the_same() -> None:
    async with Manager({"one": STUBBORN, "two": GOOD}) as manager:
        before = await up(manager)
        server = manager["one"]
        with anyio.move_on_after(0.05):
            await manager.reload({"one": OTHER})
        assert list(manager) == ["one"]
        assert await tools_of(server) == 13
        assert not any(alive(pid) for pid in before.values() if pid)
