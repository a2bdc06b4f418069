"""What servers declare and what they have: lists that are not there, and cursors that never end."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpclient import Limits, Manager, Server
from tests.cases import case
from tests.conftest import eventually, spec
from tests.features.helpers import journal, puppet, refusal, result

TOOLS_CHANGED = "notifications/tools/list_changed"
BOTH = pytest.mark.parametrize("era", ["handshake", "stateless"])


async def asked(server: Server) -> list[str]:
    """Return the methods that the server of undeclared lists received."""
    return json.loads((await server.call_tool("asked")).text)  # type: ignore[no-any-return]


async def listed(server: Server, within: float = 10) -> list[str]:
    """Return the names of the tools; the list must end by itself."""
    with anyio.fail_after(within):
        return [tool.name for tool in await server.list_tools()]


def page(name: str, cursor: Any = None) -> dict[str, Any]:
    tools = [{"name": name, "inputSchema": {"type": "object"}}]
    return result(tools=tools, nextCursor=cursor)


@case("B149")
async def test_a_server_with_resources_alone_opens_and_lists_no_tools(manager: Manager) -> None:
    server = await manager.add("s", spec("undeclared"))
    await server.start()
    assert await listed(server) == []
    assert await server.list_prompts() == []
    assert [one.uri for one in await server.list_resources()] == ["test://a"]
    assert (await server.read_resource("test://a")).text == "this is a"
    assert (server.state, server.generation) == ("up", 1)


@case("B149")
@BOTH
@pytest.mark.parametrize("declared", [{}, {"tools": {}}, None], ids=str)
async def test_a_list_that_is_refused_as_unknown_is_empty_and_no_failure(
    manager: Manager, era: str, declared: Any
) -> None:
    script = {"tools/list": [refusal(-32601)], "prompts/list": [refusal(-32601)]}
    server = await manager.add("s", puppet(script, era=era, capabilities=declared))
    assert await listed(server) == []
    assert await server.list_prompts() == []


@case("B151")
async def test_nothing_that_was_not_declared_is_ever_asked_for_or_polled(manager: Manager) -> None:
    server = await manager.add("s", spec("undeclared"))
    manager.on_notification(TOOLS_CHANGED, lambda server, params: None)
    for _ in range(3):
        await server.list_tools()
        await server.list_prompts()
        await server.complete("greet", "name", "A")
    assert await asked(server) == [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "tools/call",
    ]


@case("B152", "B155", "B157")
@pytest.mark.parametrize(("mode", "pages"), [("empty", 2), ("same", 2), ("cycle", 3)])
async def test_a_cursor_that_comes_again_ends_the_list(
    manager: Manager, caplog: pytest.LogCaptureFixture, mode: str, pages: int
) -> None:
    server = await manager.add("s", spec("cursor_loop", mode))
    names = await listed(server)
    assert len(names) == len(set(names))
    assert int((await server.call_tool("asked")).text) == pages
    assert "s ! tools/list repeats a cursor; the list ends here" in caplog.text


@case("B152", "B157")
async def test_a_list_whose_cursors_never_repeat_ends_at_the_limit(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("s", spec("cursor_loop", "endless", limits=Limits(pages=7)))
    pages = [name for name in await listed(server) if name.startswith("page_")]
    assert pages == [f"page_{number}" for number in range(1, 8)]
    assert int((await server.call_tool("asked")).text) == 7
    assert "s ! tools/list has over 7 pages (Limits.pages)" in caplog.text


@case("B154")
async def test_an_empty_cursor_leads_to_page_two_which_is_the_last(manager: Manager) -> None:
    script = [page("first", ""), page("second")]
    server = await manager.add("s", puppet({"tools/list": script}))
    assert await listed(server) == ["first", "second"]
    cursors = [one.get("params", {}).get("cursor") for one in await journal(server, "tools/list")]
    assert cursors == [None, ""]


@case("B154")
async def test_a_lawful_server_may_number_its_pages_so(manager: Manager) -> None:
    server = await manager.add("s", spec("good_stateless", "--pages", 2, "--empty-cursor"))
    plain = await manager.add("plain", spec("good_stateless"))
    assert await listed(server) == await listed(plain)


@case("B155")
async def test_a_server_that_always_gives_the_same_page_gives_it_once(manager: Manager) -> None:
    server = await manager.add("s", puppet({"tools/list": [page("only", "next")]}))
    assert await listed(server) == ["only"]
    assert len(await journal(server, "tools/list")) == 2


@case("B157")
async def test_cursors_that_turn_in_a_circle_give_each_tool_once(manager: Manager) -> None:
    script = [page("start", "A"), page("a", "B"), page("b", "A"), page("never", "B")]
    server = await manager.add("s", puppet({"tools/list": script}))
    assert await listed(server) == ["start", "a", "b"]


@case("B158")
async def test_a_change_that_was_not_declared_is_told_and_counts_all_the_same() -> None:
    told: list[str] = []
    async with Manager({"s": spec("undeclared")}, cache_ttl=60) as manager:
        manager.on_notification(TOOLS_CHANGED, lambda server, params: told.append(server.name))
        await manager["s"].invoke_tool("sin")
        await eventually(lambda: told == ["s"])


@case("B158")
async def test_a_change_that_was_not_declared_empties_the_cache() -> None:
    script = {"tools/list": [page("old"), page("new")]}
    servers = {"s": puppet(script, capabilities={"tools": {}})}
    async with Manager(servers, cache_ttl=60) as manager:
        server = manager["s"]
        assert [await listed(server), await listed(server)] == [["old"], ["old"]]
        await server.notify("puppet/say", {"method": TOOLS_CHANGED})
        await server.call_tool("echo", {"text": "after it"})
        assert await listed(server) == ["new"]
