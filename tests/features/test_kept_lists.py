"""Pages of lists that are kept as long as the server says, and results given past their time."""

from __future__ import annotations

from functools import partial
from typing import Any

import anyio
import pytest

from mcpclient import CallTimedOut, Manager, Server
from tests.conftest import spec
from tests.features.helpers import hold, journal, puppet, refusal, release, result, say

LONG = {"ttlMs": 60_000, "cacheScope": "private"}
LISTS = {
    "tools": ("tools/list", "list_tools"),
    "resources": ("resources/list", "list_resources"),
    "templates": ("resources/templates/list", "list_resource_templates"),
    "prompts": ("prompts/list", "list_prompts"),
}


def page(*names: str, cursor: str | None = None, **more: Any) -> dict[str, Any]:
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    return result(tools=tools, **({} if cursor is None else {"nextCursor": cursor}), **more)


async def names(server: Server, **options: Any) -> list[str]:
    return [tool.name for tool in await server.list_tools(**options)]


async def asked(server: Server, method: str = "tools/list") -> int:
    return len(await journal(server, method))


async def test_a_stateless_servers_lists_are_kept_page_by_page(manager: Manager) -> None:
    server = await manager.add("s", spec("good_stateless", "--pages", 3, "--ttl", 60_000))
    for method, verb in LISTS.values():
        first = await getattr(server, verb)()
        pages = await asked(server, method)
        assert await getattr(server, verb)() == first
        assert await asked(server, method) == pages
    assert manager.cache.stats().hits == 4 + 2 + 1 + 1


async def test_a_kept_list_can_be_changed_by_nobody_for_anybody(manager: Manager) -> None:
    server = await manager.add("s", spec("good_stateless", "--ttl", 60_000))
    tools = await server.list_tools()
    with pytest.raises(AttributeError):
        tools[0].name = "spoiled"  # type: ignore[misc]
    tools.clear()
    prompts = await server.list_prompts()
    assert isinstance(prompts[0].arguments, tuple)
    assert (await names(server))[0] == "echo"
    [argument] = (await server.list_prompts())[0].arguments or []
    assert argument.name == "name"


async def test_a_kept_page_expires_alone(manager: Manager) -> None:
    script = [page("a", cursor="2", **LONG), page("b", ttlMs=0), page("c", ttlMs=0)]
    server = await manager.add("s", puppet({"tools/list": script}, era="stateless"))
    assert await names(server) == ["a", "b"]
    assert await names(server) == ["a", "c"]
    assert await asked(server) == 3


@pytest.mark.parametrize("ttl", [{}, {"ttlMs": 0}, {"ttlMs": None}, {"ttlMs": -5}])
async def test_without_a_time_to_live_no_list_is_kept(manager: Manager, ttl: Any) -> None:
    script = {"tools/list": [page("a", **ttl), page("b", **ttl)]}
    server = await manager.add("s", puppet(script, era="stateless"))
    assert [await names(server), await names(server)] == [["a"], ["b"]]


async def test_a_handshake_servers_lists_are_kept_only_if_a_time_is_set(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    await server.list_tools()
    await server.list_tools()
    assert await asked(server) == 2
    async with Manager({"s": spec("good_handshake")}, cache_ttl=60) as other:
        await other["s"].list_tools()
        await other["s"].list_tools()
        assert await asked(other["s"]) == 1


async def test_refresh_asks_and_keeps_and_bypass_only_asks(manager: Manager) -> None:
    script = {"tools/list": [page(name, **LONG) for name in "abcd"]}
    server = await manager.add("s", puppet(script, era="stateless"))
    assert await names(server) == ["a"]
    assert await names(server, cache="bypass") == ["b"]
    assert await names(server) == ["a"]
    assert await names(server, cache="refresh") == ["c"]
    assert await names(server) == ["c"]
    with pytest.raises(ValueError) as caught:
        await server.list_tools(cache="reload")
    assert str(caught.value) == "cache must be one of use, refresh, bypass, not 'reload'"


@pytest.mark.parametrize(
    ("notice", "forgotten"),
    [
        ("notifications/tools/list_changed", {"tools"}),
        ("notifications/prompts/list_changed", {"prompts"}),
        ("notifications/resources/list_changed", {"resources", "templates"}),
        ("notifications/resources/updated", set()),
    ],
)
async def test_a_notice_forgets_the_lists_that_it_tells_of(
    manager: Manager, notice: str, forgotten: set[str]
) -> None:
    script: dict[str, list[Any]] = {
        "tools/list": [page("a", **LONG)],
        "resources/list": [result(resources=[{"uri": "test://a"}], **LONG)],
        "resources/templates/list": [result(resourceTemplates=[], **LONG)],
        "prompts/list": [result(prompts=[], **LONG)],
    }
    server = await manager.add("s", puppet(script, era="stateless"))
    for _, verb in LISTS.values():
        await getattr(server, verb)()
    await say(server, notice, {"uri": "test://a"})
    again = set()
    for kind, (method, verb) in LISTS.items():
        await getattr(server, verb)()
        if await asked(server, method) == 2:
            again.add(kind)
    assert again == forgotten


async def test_a_list_that_changed_while_it_was_asked_for_is_not_kept(manager: Manager) -> None:
    script = {"tools/list": [page("old", **LONG), page("new", **LONG)]}
    server = await manager.add("s", puppet(script, era="stateless"))
    await hold(server, "tools/list")
    found: list[list[str]] = []

    async def read() -> None:
        found.append(await names(server))

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        while await asked(server) < 1:
            pass
        await say(server, "notifications/tools/list_changed")
        await release(server, "tools/list")
    assert found == [["old"]]
    assert await names(server) == ["new"]
    assert await names(server) == ["new"]
    assert await asked(server) == 2


async def test_a_stale_cursor_of_a_kept_page_begins_the_list_again(manager: Manager) -> None:
    script = [
        page("old", cursor="1", **LONG),
        refusal(-32602),
        page("new", cursor="2", **LONG),
        page("end", **LONG),
    ]
    server = await manager.add("s", puppet({"tools/list": script}, era="stateless"))
    assert await names(server) == ["new", "end"]
    assert await names(server) == ["new", "end"]
    assert await asked(server) == 4


async def test_the_page_of_an_empty_cursor_is_not_the_first_page(manager: Manager) -> None:
    script = [page("a", cursor="", **LONG), page("b", **LONG), page("c", cursor="", **LONG)]
    server = await manager.add("s", puppet({"tools/list": script}, era="stateless"))
    for _ in range(3):
        assert await names(server) == ["a", "b"]
    assert await asked(server) == 2
    sent = [one["params"].get("cursor") for one in await journal(server, "tools/list")]
    assert sent == [None, ""]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("ttl", ["60000", [60_000], {"ms": 1}, True, nested(900)], ids=str)
async def test_an_odd_time_to_live_keeps_nothing_and_costs_nothing(
    manager: Manager, ttl: Any
) -> None:
    contents = [{"uri": "test://a", "text": "x"}]
    script = {
        "tools/list": [page("a", ttlMs=ttl)],
        "resources/read": [result(contents=contents, ttlMs=ttl, cacheScope=ttl)],
    }
    server = await manager.add("s", puppet(script, era="stateless"))
    for count in (1, 2):
        assert await names(server) == ["a"]
        assert (await server.read_resource("test://a", timeout=5)).text == "x"
        assert await asked(server) == await asked(server, "resources/read") == count
    assert manager.cache.stats().entries == 0


async def test_a_restart_forgets_the_lists(manager: Manager) -> None:
    server = await manager.add("s", spec("good_stateless", "--ttl", 60_000))
    await server.list_tools()
    await server.restart()
    await server.list_tools()
    assert await asked(server) == 1
    assert manager.cache.stats().hits == 0


# -- past their time -----------------------------------------------------------------------


@pytest.mark.parametrize("grace", [60.0, None])
async def test_a_result_past_its_time_is_given_if_the_server_does_not_answer(
    grace: float | None,
) -> None:
    short = {"ttlMs": 1}
    script = {
        "tools/list": [page("a", **short)],
        "resources/read": [result(contents=[{"uri": "test://a", "text": "old"}], **short)],
    }
    async with Manager({"s": puppet(script, era="stateless")}, stale_if_error=grace) as manager:
        server = manager["s"]
        await server.read_resource("test://a")
        await server.list_tools()
        for method in script:
            await hold(server, method)
        read = partial(server.read_resource, "test://a", timeout=0.03)
        tools = partial(names, server, timeout=0.03)
        with anyio.fail_after(5):
            if grace is None:
                for call in (read, tools):
                    with pytest.raises(CallTimedOut):
                        while True:
                            await call()
            while grace is not None and manager.cache.stats().stale == 0:
                assert (await read()).text == "old"
            while grace is not None and manager.cache.stats().stale == 1:
                assert await tools() == ["a"]
        assert manager.cache.stats().stale == (0 if grace is None else 2)


@pytest.mark.parametrize("ttl", [60_000, 1])
async def test_who_would_not_take_what_is_kept_does_not_get_it_past_its_time(ttl: int) -> None:
    servers = {"s": puppet({"tools/list": [page("a", ttlMs=ttl)]}, era="stateless")}
    async with Manager(servers, stale_if_error=60) as manager:
        server = manager["s"]
        await server.list_tools()
        await hold(server, "tools/list")
        for use in ("refresh", "bypass"):
            with pytest.raises(CallTimedOut):
                await server.list_tools(cache=use, timeout=0.03)
        assert manager.cache.stats().stale == 0


async def test_what_was_invalidated_is_not_given_past_its_time() -> None:
    old = result(contents=[{"uri": "test://a", "text": "old"}], ttlMs=60_000)
    servers = {"s": puppet({"resources/read": [old]}, era="stateless")}
    async with Manager(servers, stale_if_error=60) as manager:
        server = manager["s"]
        await server.read_resource("test://a")
        await hold(server)
        server.invalidate_resource("test://a")
        for use in ("use", "refresh", "bypass"):
            with pytest.raises(CallTimedOut):
                await server.read_resource("test://a", cache=use, timeout=0.02)
        assert manager.cache.stats().entries == 0


async def test_an_error_of_the_server_is_an_answer_and_no_reason_to_give_old_results() -> None:
    old = result(contents=[{"uri": "test://a", "text": "old"}], ttlMs=1)
    servers = {"s": puppet({"resources/read": [old, refusal(-32000)]}, era="stateless")}
    async with Manager(servers, stale_if_error=60) as manager:
        server = manager["s"]
        with anyio.fail_after(5), pytest.raises(Exception, match="-32000"):
            while True:
                await server.read_resource("test://a")
        assert manager.cache.stats().stale == 0
