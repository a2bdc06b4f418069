"""When a kept read is forgotten: by order, by notice, by the server's end, and by time."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import Manager, ReplyError, Server, ServerDied, ServerSpec, Timeouts
from tests.conftest import QUICK, eventually, spec
from tests.features.helpers import hold, puppet, reads, refusal, release, result, say

COUNTER = "test://counter"
UPDATED = "notifications/resources/updated"
CHANGED = "notifications/resources/list_changed"


async def is_kept(server: Server, uri: str) -> bool:
    """Return whether a read is answered without a request."""
    before = len(await reads(server))
    await server.read_resource(uri)
    return len(await reads(server)) == before


# -- by order ------------------------------------------------------------------------------


async def test_invalidating_what_is_not_kept_does_nothing(manager: Manager) -> None:
    server = await manager.add("s", puppet())
    server.invalidate_resource("test://never-read")
    assert server.state == "idle"  # nor does it start anything
    await server.read_resource("test://a")
    server.invalidate_resource("test://b")
    server.invalidate_resource("test://a/")
    assert await is_kept(server, "test://a")


async def test_after_an_invalidation_the_server_is_asked_again(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    await server.read_resource(COUNTER)
    server.invalidate_resource(COUNTER)
    assert manager.cache.stats().entries == 0
    assert (await server.read_resource(COUNTER)).text == "2"
    assert await reads(server) == [COUNTER, COUNTER]


async def overtaken(manager: Manager, server: Server, change: Any) -> tuple[str, str, str]:
    """Change something while a resource is read; return what this and two later reads got."""
    await hold(server)
    got: dict[str, str] = {}

    async def read(name: str) -> None:
        got[name] = (await server.read_resource(COUNTER)).text

    async with anyio.create_task_group() as group:
        group.start_soon(read, "during")
        while len(await reads(server)) < 1:
            pass
        await change()
        group.start_soon(read, "after")  # while the first is still under way
        while len(await reads(server)) < 2:
            pass
        await release(server)
    later = await server.read_resource(COUNTER)
    assert len(await reads(server)) == 2
    return got["during"], got["after"], later.text


async def test_a_read_that_is_invalidated_under_way_is_answered_but_not_kept(
    manager: Manager,
) -> None:
    server = await manager.add("s", puppet())

    async def change() -> None:
        server.invalidate_resource(COUNTER)

    assert await overtaken(manager, server, change) == ("1", "2", "2")


# -- by notice -----------------------------------------------------------------------------


async def test_a_notice_during_a_read_is_not_lost(manager: Manager) -> None:
    server = await manager.add("s", puppet())
    assert await overtaken(manager, server, lambda: say(server, UPDATED, {"uri": COUNTER})) == (
        "1",
        "2",
        "2",
    )
    other = await manager.add("other", puppet())
    assert await overtaken(manager, other, lambda: say(other, CHANGED)) == ("1", "2", "2")


async def test_the_result_of_a_read_that_came_after_the_notice_is_not_kept(
    manager: Manager,
) -> None:
    # Both in one write: the old text must not be kept past the notice that outdates it.
    old = {"uri": COUNTER, "text": "old"}
    notice = {"method": UPDATED, "params": {"uri": COUNTER}}
    script = {
        "resources/read": [{**result(contents=[old]), "before": [notice]}, result(contents=[])]
    }
    server = await manager.add("s", puppet(script))
    assert (await server.read_resource(COUNTER)).text == "old"
    assert (await server.read_resource(COUNTER)).text == ""


async def test_an_update_forgets_the_resource_those_below_and_those_above(
    manager: Manager,
) -> None:
    server = await manager.add("s", puppet())
    for kept, updated, forgotten in [
        ("test://dir/a", "test://dir/a", True),
        ("test://dir/a", "test://dir", True),  # below what changed
        ("test://dir/a", "test://dir/", True),
        ("test://dir", "test://dir/a", True),  # above it: a listing may name it
        ("test://dir/", "test://dir/a/b", True),
        ("test://dir", "test://dir/", True),
        ("test://dir/a", "test://dir/b", False),
        ("test://dir/a", "test://dir/a2", False),
        ("test://dir/a2", "test://dir/a", False),
        ("test://dir/a", "test://dir/A", False),
        ("test://dir/a", "other://dir/a", False),
    ]:
        await server.read_resource(kept)
        await say(server, UPDATED, {"uri": updated})
        assert await is_kept(server, kept) is not forgotten, (kept, updated)
        server.invalidate_resource(kept)


async def test_updates_count_whether_or_not_anybody_subscribed_or_listens(
    manager: Manager,
) -> None:
    server = await manager.add("s", spec("good_handshake"))
    await server.read_resource(COUNTER)
    await server.invoke_tool("notify", {"n": 3, "uri": COUNTER})
    assert (await server.read_resource(COUNTER)).text == "2"
    await server.request("resources/subscribe", {"uri": COUNTER})
    manager.on_notification(UPDATED, lambda server, params: None)
    await server.invoke_tool("notify", {"n": 1, "uri": COUNTER})
    assert (await server.read_resource(COUNTER)).text == "3"


async def test_a_changed_list_forgets_all_of_this_server_and_nothing_of_others(
    manager: Manager,
) -> None:
    server, other = [await manager.add(name, puppet()) for name in ("s", "other")]
    for uri in ("test://a", "else://b"):
        await server.read_resource(uri)
        await other.read_resource(uri)
    await say(server, CHANGED)
    assert manager.cache.stats().entries == 2
    assert not await is_kept(server, "test://a")
    assert not await is_kept(server, "else://b")
    assert await is_kept(other, "test://a")
    assert await is_kept(other, "else://b")


async def test_an_update_of_one_server_forgets_nothing_of_another(manager: Manager) -> None:
    server, other = [await manager.add(name, puppet()) for name in ("s", "other")]
    await other.read_resource(COUNTER)
    await say(server, UPDATED, {"uri": COUNTER})
    assert await is_kept(other, COUNTER)


async def test_notices_that_mean_something_else_or_nothing_forget_nothing(
    manager: Manager,
) -> None:
    server = await manager.add("s", puppet())
    await server.read_resource(COUNTER)
    notices: list[tuple[str, Any]] = [
        (UPDATED, {}),
        (UPDATED, {"uri": None}),
        (UPDATED, {"uri": 5}),
        (UPDATED, {"uri": [COUNTER]}),
        ("notifications/resources/updates", {"uri": COUNTER}),
        ("notifications/tools/list_changed", {}),
        ("notifications/prompts/list_changed", {}),
    ]
    for method, params in notices:
        await say(server, method, params)
        assert await is_kept(server, COUNTER), (method, params)
    assert manager.status().servers[0].noise == 0


# -- by the end of the server --------------------------------------------------------------


async def test_a_restart_a_stop_and_a_removal_forget_all_of_the_server(manager: Manager) -> None:
    server, other = [await manager.add(name, puppet()) for name in ("s", "other")]
    for uri in ("test://a", "test://b"):
        await server.read_resource(uri)
        await other.read_resource(uri)
    await server.restart()
    assert manager.cache.stats().entries == 2
    assert not await is_kept(server, "test://a")
    await server.stop()
    assert manager.cache.stats().entries == 2
    await server.start()
    assert not await is_kept(server, "test://a")
    await manager.remove("s")
    assert manager.cache.stats().entries == 2
    again = await manager.add("s", puppet())
    assert not await is_kept(again, "test://a")
    assert await is_kept(other, "test://a")
    assert await is_kept(other, "test://b")


async def test_a_crash_forgets_all_of_the_server(manager: Manager) -> None:
    server, other = [await manager.add(name, puppet()) for name in ("s", "other")]
    await server.read_resource(COUNTER)
    await other.read_resource(COUNTER)
    with pytest.raises(ServerDied):
        await server.call_tool("exit", {"code": 1})
    assert manager.cache.stats().entries == 1
    assert not await is_kept(server, COUNTER)
    assert await is_kept(other, COUNTER)


# A server that leaves an heir when it is told to die. The heir holds the old pipe and says that
# everything changed, over and over, until nobody reads it any more; then it makes a file.
HEIR = """
import os, sys, time
sys.path.insert(0, sys.argv[1])
import _wire
for message in _wire.messages():
    if _wire.called(message) == "sin":
        if os.fork() == 0:
            try:
                for _ in range(20000):
                    _wire.send(_wire.notification("notifications/resources/list_changed"))
                    time.sleep(0.001)
            except OSError:
                open(sys.argv[2], "w").close()
            os._exit(0)
        os._exit(1)
    elif message.get("method") == "resources/read":
        contents = [{"uri": "test://a", "text": str(os.getpid())}]
        _wire.send(_wire.result(message["id"], {"contents": contents}))
    else:
        _wire.reply(message)
"""


async def test_a_notice_out_of_an_earlier_life_touches_nothing_of_the_next(
    manager: Manager, tmp_path: Path
) -> None:
    heard_nobody = tmp_path / "heard-nobody"
    wire = Path(__file__).resolve().parents[2] / "fixtures" / "servers"
    options: dict[str, Any] = {
        "kill_tree": False,
        "restart": QUICK,
        "timeouts": Timeouts(eof=1.0, term=0.5),
    }
    argv = ["-c", HEIR, str(wire), str(heard_nobody)]
    server = await manager.add("s", ServerSpec(sys.executable, argv, **options))
    with pytest.raises(ServerDied):
        await server.call_tool("sin")
    text = (await server.read_resource("test://a")).text
    await eventually(heard_nobody.exists)
    assert server.generation == 2
    assert (await server.read_resource("test://a")).text == text
    assert manager.cache.stats().hits == 1


# -- by time -------------------------------------------------------------------------------


async def until_read_anew(server: Server, uri: str) -> None:
    """Read until the server is asked again."""
    asked = len(await reads(server))
    with anyio.fail_after(5):
        while len(await reads(server)) == asked:
            await server.read_resource(uri)


async def test_a_stateless_servers_time_to_live_is_honoured(manager: Manager) -> None:
    long = await manager.add("long", spec("good_stateless", "--ttl", 60_000))
    assert (await long.read_resource(COUNTER)).text == "1"
    assert (await long.read_resource(COUNTER)).text == "1"
    none = await manager.add("none", spec("good_stateless", "--ttl", 0))
    assert (await none.read_resource(COUNTER)).text == "1"
    assert (await none.read_resource(COUNTER)).text == "2"
    short = await manager.add("short", spec("good_stateless", "--ttl", 200))
    before = manager.cache.stats().hits
    with anyio.fail_after(5):
        while manager.cache.stats().hits == before:
            await short.read_resource(COUNTER)
    await until_read_anew(short, COUNTER)


async def test_an_odd_or_absent_time_to_live_keeps_nothing(manager: Manager) -> None:
    contents = [{"uri": COUNTER, "text": "x"}]
    odd: list[Any] = [{}, *({"ttlMs": ttl} for ttl in (None, 0, -1, "60000", [1], {}, -0.5))]
    script = {"resources/read": [result(contents=contents, **hints) for hints in odd]}
    server = await manager.add("s", puppet(script, era="stateless"))
    for _ in odd:
        assert (await server.read_resource(COUNTER)).text == "x"
    assert len(await reads(server)) == len(odd)
    assert manager.cache.stats().entries == 0


async def test_the_default_lifetime_is_for_servers_whose_era_names_none() -> None:
    async with Manager({"s": puppet()}, cache_ttl=0.2) as manager:
        server = manager["s"]
        with anyio.fail_after(5):
            while not manager.cache.stats().hits:
                await server.read_resource(COUNTER)
        await until_read_anew(server, COUNTER)
    servers = {"s": puppet(), "stateless": spec("good_stateless", "--ttl", 60_000)}
    async with Manager(servers, cache_ttl=0) as manager:
        assert not await is_kept(manager["s"], COUNTER)
        assert not await is_kept(manager["s"], COUNTER)
        await manager["stateless"].read_resource(COUNTER)
        assert await is_kept(manager["stateless"], COUNTER)


async def test_a_hint_of_the_other_era_means_nothing_to_a_handshake_server(
    manager: Manager,
) -> None:
    contents = [{"uri": COUNTER, "text": "x"}]
    script = {"resources/read": [result(contents=contents, ttlMs=0, cacheScope="private")]}
    server = await manager.add("s", puppet(script))
    await server.read_resource(COUNTER)
    assert await is_kept(server, COUNTER)


async def test_a_refusal_does_not_bring_back_what_was_forgotten(manager: Manager) -> None:
    contents = [{"uri": COUNTER, "text": "old"}]
    script = {"resources/read": [result(contents=contents), refusal(-32002)]}
    server = await manager.add("s", puppet(script))
    await server.read_resource(COUNTER)
    for _ in range(2):
        with pytest.raises(ReplyError):
            await server.read_resource(COUNTER, cache="refresh")
    with pytest.raises(ReplyError):
        await server.read_resource(COUNTER)
