"""A manager's life: opening, closing, its table of servers, and what it says of them."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    ConfigError,
    LocalProtocolError,
    Manager,
    Server,
    ServerUnavailable,
    Timeouts,
    UseAfterClose,
)
from tests.conftest import alive, eventually, spec

QUICK_STOP = Timeouts(eof=0.2, term=0.2)


# -- opening and closing -------------------------------------------------------------------


async def test_with_and_open_and_close_do_the_same() -> None:
    async with Manager({"s": spec("good_handshake")}) as manager:
        assert (await manager["s"].invoke_tool("echo", {"text": "hi"})).text == "hi"
        pid = manager["s"].pid
    assert pid is not None
    assert not alive(pid)
    manager = Manager({"s": spec("good_handshake")})
    await manager.open()
    await manager.open()  # twice is no fault
    server = manager["s"]
    await server.start()
    assert server is manager["s"]
    pid = server.pid
    await manager.close()
    assert pid is not None
    assert not alive(pid)
    await manager.close()  # nor is this


async def test_it_may_be_opened_and_closed_in_different_tasks() -> None:
    manager = Manager({"s": spec("good_handshake")})
    async with anyio.create_task_group() as group:
        group.start_soon(manager.open)
    async with anyio.create_task_group() as group:
        group.start_soon(manager["s"].start)
    async with anyio.create_task_group() as group:
        group.start_soon(manager.close)


async def test_nothing_starts_before_it_is_needed() -> None:
    servers = {"lazy": spec("good_handshake"), "eager": spec("good_handshake", start="eager")}
    async with Manager(servers) as manager:
        assert manager["lazy"].state == "idle"
        assert manager["lazy"].pid is None
        await eventually(lambda: manager["eager"].state == "up")
        assert manager["lazy"].state == "idle"
        await manager["lazy"].list_tools()
        assert manager["lazy"].state == "up"


async def test_before_it_is_open_and_after_it_is_closed_it_cannot_be_used() -> None:
    manager = Manager({"s": ["nothing-of-this-name"]})
    said = "the manager is not open: use `async with Manager(...)`"
    for use in (lambda: manager["s"], lambda: manager.tick()):
        with pytest.raises(UseAfterClose) as caught:
            use()
        assert str(caught.value) == said
    with pytest.raises(UseAfterClose):
        await manager.add("t", ["x"])
    with pytest.raises(UseAfterClose):
        await manager.remove("s")
    # What needs no server can be done before: names, handlers, the status.
    manager.off_notification(manager.on_notification("notifications/x", print))
    assert (list(manager), len(manager), "s" in manager, "t" in manager) == (["s"], 1, True, False)
    await manager.open()
    await manager.close()
    for use in (lambda: manager["s"], lambda: manager.tick()):
        with pytest.raises(UseAfterClose) as caught:
            use()
        assert str(caught.value) == "the manager is closed"
    with pytest.raises(UseAfterClose):
        await manager.add("t", ["x"])
    with pytest.raises(UseAfterClose) as caught:
        await manager.open()
    assert str(caught.value) == "the manager was closed; make a new one"


async def test_a_server_of_a_closed_manager_starts_for_nobody() -> None:
    async with Manager({"s": spec("good_handshake")}) as manager:
        server = manager["s"]
        await server.start()
    said = 'the server "s" was removed, or its manager closed'
    verbs: list[Any] = [
        server.start,
        server.restart,
        server.wait_ready,
        server.list_tools,
        lambda: server.invoke_tool("echo"),
        lambda: server.read_resource("test://a"),
        lambda: server.request("ping"),
        lambda: server.notify("notifications/x"),
        lambda: server.no_wait.list_tools(),
    ]
    for verb in verbs:
        with pytest.raises(UseAfterClose) as caught:
            await verb()
        assert str(caught.value) == said
    with pytest.raises(UseAfterClose):
        server.begin()
    assert (server.state, server.pid) == ("idle", None)
    await server.stop()


async def test_a_start_during_the_close_does_not_survive_it() -> None:
    async with Manager({"s": spec("ignores_eof", timeouts=QUICK_STOP)}) as manager:
        server = manager["s"]
        await server.start()
        async with anyio.create_task_group() as group:
            group.start_soon(manager.close)
            await eventually(lambda: server.state == "stopping")
            with pytest.raises(UseAfterClose):
                await server.start()
    assert server.state == "idle"
    assert server.generation == 1


async def test_closing_ends_calls_in_flight_and_those_that_wait() -> None:
    outcomes: list[Any] = []

    async def call(server: Server) -> None:
        try:
            await server.call_tool("slow", {"seconds": 60})
        except Exception as problem:
            outcomes.append(problem)

    servers = {"up": spec("good_handshake"), "opening": spec("silent", timeouts=QUICK_STOP)}
    async with anyio.create_task_group() as group, Manager(servers) as manager:
        await manager["up"].start()
        group.start_soon(call, manager["up"])
        await eventually(lambda: manager.status().servers[0].in_flight == 1)
        group.start_soon(call, manager["opening"])
        await eventually(lambda: manager["opening"].state == "opening")
    by_kind = {type(one): one for one in outcomes}
    assert set(by_kind) == {CallCancelled, UseAfterClose}
    assert by_kind[CallCancelled].maybe_done is True
    assert str(by_kind[CallCancelled]) == (
        'tools/call on "up": the server was stopped; the server may have carried it out'
    )


async def test_a_cancelled_close_still_waits_for_every_process() -> None:
    servers = {"quick": spec("good_handshake"), "slow": spec("ignores_eof", timeouts=QUICK_STOP)}
    pids: list[Any] = []
    with anyio.CancelScope() as scope:
        async with Manager(servers) as manager:
            for name in servers:
                await manager[name].start()
                pids.append(manager[name].pid)
            scope.cancel()
    assert [alive(pid) for pid in pids] == [False, False]


# Only asyncio has a cancel that comes once and from anywhere.
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_close_that_is_cancelled_natively_still_waits_for_every_process() -> None:
    servers = {"quick": spec("good_handshake"), "slow": spec("ignores_eof", timeouts=QUICK_STOP)}
    manager = Manager(servers)
    await manager.open()
    for name in servers:
        await manager[name].start()
    pids = [manager[name].pid or 0 for name in servers]
    closing = asyncio.create_task(manager.close())
    await asyncio.sleep(0)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert [alive(pid) for pid in pids] == [False, False]


async def test_all_servers_stop_at_the_same_time() -> None:
    names = [f"s{n}" for n in range(6)]
    one = spec("ignores_eof", timeouts=Timeouts(eof=0.3, term=0.3))
    async with Manager(dict.fromkeys(names, one)) as manager:
        servers = [manager[name] for name in names]
        async with anyio.create_task_group() as group:
            for server in servers:
                group.start_soon(server.start)
        async with anyio.create_task_group() as group:
            group.start_soon(manager.close)
            await eventually(lambda: servers[0].state != "up")
            assert {server.state for server in servers} == {"stopping"}


def test_outside_of_a_loop_it_cannot_be_opened() -> None:
    opening = Manager().open()
    with pytest.raises(LocalProtocolError) as caught:
        opening.send(None)
    assert "no event loop runs here" in str(caught.value)


# -- the table of servers ------------------------------------------------------------------


def test_servers_without_names_are_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        Manager(["mcp-server-time"])  # type: ignore[arg-type]
    assert str(caught.value) == 'servers are given by name: write {"name": …}'


async def test_an_unknown_name_is_refused_with_those_that_are_known(manager: Manager) -> None:
    with pytest.raises(KeyError) as caught:
        manager["x"]
    assert caught.value.args == ("no server is named 'x' (known: none)",)
    await manager.add("one", ["x"])
    await manager.add("two", ["x"])
    with pytest.raises(KeyError) as caught:
        manager["tow"]
    assert caught.value.args == ("no server is named 'tow' (known: 'one', 'two')",)
    with pytest.raises(KeyError):
        await manager.remove("tow")


async def test_it_is_a_table_of_names(manager: Manager) -> None:
    assert (list(manager), len(manager), "a" in manager, 5 in manager) == ([], 0, False, False)
    for name in ("b", "a"):
        await manager.add(name, ["x"])
    assert (list(manager), len(manager), "a" in manager) == (["b", "a"], 2, True)
    for name in manager:  # it may change on the way
        await manager.remove(name)
    assert len(manager) == 0


async def test_servers_are_added_and_removed_while_it_runs(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    assert server is manager["s"]
    assert (server.name, str(server), repr(server)) == ("s", "s", "<Server 's' idle>")
    other = await manager.add("other", spec("good_stateless"))
    assert (await server.invoke_tool("echo", {"text": "hi"})).text == "hi"
    assert (await other.invoke_tool("echo", {"text": "hi"})).text == "hi"
    pid = server.pid
    await manager.remove("s")
    assert pid is not None
    assert not alive(pid)
    assert "s" not in manager
    with pytest.raises(UseAfterClose):
        await server.start()
    assert (await other.invoke_tool("echo", {"text": "still"})).text == "still"
    again = await manager.add("s", spec("good_handshake", start="eager"))
    assert again is not server
    await eventually(lambda: again.state == "up")


async def test_a_name_that_is_taken_and_an_entry_that_is_wrong_are_refused(
    manager: Manager,
) -> None:
    server = await manager.add("s", spec("good_handshake"))
    with pytest.raises(ConfigError) as caught:
        await manager.add("s", ["x"])
    assert str(caught.value) == "s: there is a server of this name; remove it first"
    assert manager["s"] is server
    with pytest.raises(ConfigError):
        await manager.add("", ["x"])
    with pytest.raises(ConfigError) as caught:
        await manager.add("t", {"command": "x", "disabled": True})
    assert str(caught.value) == 't: it is disabled; leave "disabled" out to run it'
    with pytest.raises(ConfigError):
        await manager.add("t", {"comand": "x"})
    assert list(manager) == ["s"]


async def test_a_server_that_is_starting_can_be_removed(manager: Manager) -> None:
    server = await manager.add("s", spec("silent", start="eager", timeouts=QUICK_STOP))
    await eventually(lambda: server.state == "opening")
    pid = server.pid
    await manager.remove("s")
    assert pid is not None
    assert not alive(pid)
    assert server.state == "idle"
    assert server.incidents == []


async def test_a_name_can_be_taken_again_while_the_old_server_still_stops(
    manager: Manager,
) -> None:
    old = await manager.add("s", spec("ignores_eof", timeouts=QUICK_STOP))
    await old.start()
    async with anyio.create_task_group() as group:
        group.start_soon(manager.remove, "s")
        await eventually(lambda: "s" not in manager)
        new = await manager.add("s", spec("good_handshake"))
        assert (await new.read_resource("test://counter")).text == "1"
    assert old.state == "idle"
    assert (await new.read_resource("test://counter")).text == "1"
    assert manager.cache.stats().entries == 1


async def test_one_that_cannot_start_hurts_no_other() -> None:
    servers = {"bad": ["nothing-of-this-name"], "good": spec("good_handshake")}
    async with Manager(servers) as manager:
        with pytest.raises(ServerUnavailable) as caught:
            await manager["bad"].list_tools()
        assert str(caught.value) == (
            "'nothing-of-this-name' was not found on PATH (server \"bad\"); "
            'install it or give the full path in "command"'
        )
        assert (await manager["good"].invoke_tool("echo", {"text": "hi"})).text == "hi"
        assert [one.state for one in manager.status().servers] == ["failed", "up"]
