"""The verbs of every server that need no feature, and what a manager says of its servers."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import anyio
import pytest

from mcpclient import Manager, ServerUnavailable
from tests.conftest import eventually, spec

# -- verbs on every server -----------------------------------------------------------------


async def test_a_request_is_sent_as_it_is(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    assert await server.request("ping") == {}
    added = await server.request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})
    assert added == {"content": [{"type": "text", "text": "3"}], "structuredContent": {"sum": 3}}
    journal = json.loads((await server.call_tool("journal")).text)
    by_method = {one["method"]: one for one in journal}
    assert set(by_method["ping"]) == {"id", "method"}  # no params means none, not null
    assert set(by_method["notifications/initialized"]) == {"method"}


async def test_a_notification_is_sent_as_it_is(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    await server.notify("notifications/own", {"x": [1]})
    await server.notify("notifications/own")
    journal = json.loads((await server.call_tool("journal")).text)
    own = [one for one in journal if one["method"] == "notifications/own"]
    assert own == [
        {"method": "notifications/own", "params": {"x": [1]}},
        {"method": "notifications/own"},
    ]


async def test_the_impatient_verbs_wait_for_nothing(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    verbs: list[Any] = [
        lambda: server.no_wait.invoke_tool("echo", {"text": "x"}),
        lambda: server.no_wait.read_resource("test://a"),
        lambda: server.no_wait.list_tools(),
        lambda: server.no_wait.get_prompt("plain"),
        lambda: server.no_wait.request("ping"),
        lambda: server.no_wait.notify("notifications/x"),
    ]
    for verb in verbs:
        with pytest.raises(ServerUnavailable) as caught:
            await verb()
        assert str(caught.value) == ('server "s": it is not up but idle; wait_ready() waits for it')
    assert server.state == "idle"
    await server.start()
    assert (await server.no_wait.invoke_tool("echo", {"text": "x"})).text == "x"
    assert (await server.no_wait.read_resource("test://a")).text == "this is a"
    assert server.no_wait.name == "s"
    await server.stop()
    with pytest.raises(ServerUnavailable) as caught:
        await server.no_wait.request("ping")
    assert str(caught.value) == 'server "s": it was stopped; call start() first'


# -- the status ----------------------------------------------------------------------------


async def test_the_status_is_a_table_for_people(manager: Manager) -> None:
    good = await manager.add("good", spec("good_handshake"))
    new = await manager.add("a-longer-name", spec("good_stateless"))
    await manager.add("idle", ["x"])
    await good.invoke_tool("echo", {"text": "x"})
    await good.list_tools()
    await new.read_resource("test://a")
    await new.read_resource("test://a")
    pid = good.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: good.generation == 2 and good.state == "up")
    status = manager.status()
    lines = str(status).splitlines()
    assert [line.split() for line in lines[:4]] == [
        ["server", "state", "era", "version", "life", "restarts", "calls", "in", "flight"],
        ["good", "up", "handshake", "2025-11-25", "2", "1", "2", "0"],
        ["a-longer-name", "up", "stateless", "2026-07-28", "1", "0", "1", "0"],
        ["idle", "idle", "–", "–", "0", "0", "0", "0"],
    ]
    column = lines[0].index("state")
    assert [line[column:].split()[0] for line in lines[:4]] == ["state", "up", "up", "idle"]
    assert lines[4].startswith("good: last, life 1 ended after ")
    assert lines[4].endswith(" up: killed by SIGKILL")
    size = manager.cache.stats().bytes
    assert lines[5] == (f"cache: 1 entries, {size} bytes, 1 hits, 1 misses, 0 joins, 0 evictions")
    assert len(lines) == 6


async def test_the_status_holds_the_numbers_of_all_lives(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    fresh = manager.status().servers[0]
    assert (fresh.name, fresh.state, fresh.generation, fresh.pid) == ("s", "idle", 0, None)
    for _ in range(3):
        await server.call_tool("echo", {"text": "x"})
    one = manager.status().servers[0]
    assert (one.state, one.generation, one.restarts, one.calls) == ("up", 1, 0, 3)
    assert (one.era, one.version, one.pid) == ("handshake", "2025-11-25", server.pid)
    await server.restart()
    await server.call_tool("echo", {"text": "x"})
    two = manager.status().servers[0]
    assert (two.generation, two.restarts, two.calls, two.in_flight) == (2, 0, 4, 0)
    assert (two.late, two.stray, two.noise, two.oversize, two.asks, two.ignored) == (0,) * 6
    # A snapshot does not change.
    await server.stop()
    assert (one.calls, two.state) == (3, "up")
    assert manager.status().servers[0].state == "idle"
    assert manager.status().servers[0].calls == 4


async def test_the_status_counts_calls_in_flight(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    await server.start()
    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(server.call_tool, "slow", {"seconds": 60})
        await eventually(lambda: manager.status().servers[0].in_flight == 3)
        assert manager.status().servers[0].calls == 3
        group.cancel_scope.cancel()
    assert manager.status().servers[0].in_flight == 0


@pytest.mark.parametrize("dispatch", ["", "never", None, True, "Auto"])
def test_an_unknown_dispatch_is_refused_by_name(dispatch: Any) -> None:
    with pytest.raises(ValueError) as caught:
        Manager(dispatch=dispatch)
    assert str(caught.value) == f'dispatch must be "auto" or "manual", not {dispatch!r}'


async def test_servers_are_told_who_we_are() -> None:
    options: dict[str, Any] = {"client_name": "my editor", "client_version": "7"}
    servers = {"old": spec("good_handshake"), "new": spec("good_stateless")}
    async with Manager(servers, **options) as manager:
        journal = json.loads((await manager["old"].call_tool("journal")).text)
        opening = next(one for one in journal if one["method"] == "initialize")
        assert opening["params"]["clientInfo"] == {"name": "my editor", "version": "7"}
        journal = json.loads((await manager["new"].call_tool("journal")).text)
        for one in journal:
            meta = one["params"]["_meta"]
            assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "my editor"
