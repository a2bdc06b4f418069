"""Lists over all their pages, however a server turns its cursors, and what is never asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpclient import (
    CallTimedOut,
    Limits,
    Manager,
    RemoteProtocolError,
    ReplyError,
    Server,
    ServerDied,
)
from tests.conftest import spec
from tests.features.helpers import journal, puppet, refusal, result

BOTH = pytest.mark.parametrize("name", ["good_handshake", "good_stateless"])
TOOLS = ["echo", "add", "fail", "slow", "progress", "notify", "stderr", "exit", "kinds", "journal"]


def page(*names: str, cursor: Any = None, **more: Any) -> dict[str, Any]:
    """Return a scripted page of tools."""
    tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
    return result(tools=tools, **({} if cursor is None else {"nextCursor": cursor}), **more)


async def names(server: Server) -> list[str]:
    return [tool.name for tool in await server.list_tools()]


async def cursors(server: Server, method: str = "tools/list") -> list[Any]:
    """Return the cursors that a server was asked for, ``-`` for none."""
    asked = await journal(server, method)
    return [one.get("params", {}).get("cursor", "-") for one in asked]


# -- all pages -----------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("size", [0, 1, 3, 10, 11])
async def test_lists_hold_all_pages_in_order(manager: Manager, name: str, size: int) -> None:
    options = ("--pages", size) if size else ()
    server = await manager.add("s", spec(name, *options))
    assert await names(server) == TOOLS
    resources = await server.list_resources()
    assert [one.uri for one in resources] == [f"test://{n}" for n in ("counter", "a", "b", "blob")]
    assert resources[3].mime_type == "application/octet-stream"
    templates = await server.list_resource_templates()
    assert [(one.uri_template, one.name) for one in templates] == [("test://item/{name}", "item")]
    prompts = await server.list_prompts()
    assert [one.name for one in prompts] == ["greet", "plain"]
    [argument] = prompts[0].arguments or []
    assert (argument.name, argument.required) == ("name", True)
    assert prompts[1].arguments is None


@BOTH
async def test_a_long_list_is_complete(manager: Manager, name: str) -> None:
    server = await manager.add("s", spec(name, "--pages", 7, "--tools", 100))
    assert await names(server) == TOOLS + [f"generated_{n}" for n in range(100)]
    assert len(await journal(server, "tools/list")) == 16


async def test_a_tool_has_its_schema_and_all_it_came_with(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    tools = {tool.name: tool for tool in await server.list_tools()}
    assert tools["echo"].input_schema == {
        "type": "object",
        "properties": {"text": {"type": "string"}},
        "required": ["text"],
    }
    assert tools["echo"].output_schema is None
    assert tools["add"].output_schema["required"] == ["sum"]
    assert (tools["add"].title, tools["add"].label) == ("Add", "Add")
    assert set(tools["add"].raw) == {"name", "title", "description", "inputSchema", "outputSchema"}


async def test_cursors_are_sent_back_exactly_as_they_came(manager: Manager) -> None:
    odd = ["", " ", "null", "0", "ü\u2028\n", '"{', "a" * 5000]
    script = [page(f"t{n}", cursor=cursor) for n, cursor in enumerate(odd)] + [page("end")]
    server = await manager.add("s", puppet({"tools/list": script}))
    assert await names(server) == [f"t{n}" for n in range(len(odd))] + ["end"]
    assert await cursors(server) == ["-", *odd]


async def test_an_empty_cursor_leads_to_the_next_page(manager: Manager) -> None:
    server = await manager.add("s", spec("good_stateless", "--pages", 4, "--empty-cursor"))
    assert await names(server) == TOOLS
    assert (await cursors(server))[:2] == ["-", ""]


async def test_only_a_text_is_a_cursor(manager: Manager) -> None:
    ends: list[Any] = [None, 5, False, [], {}]
    script = [result(tools=[{"name": "a"}], nextCursor=end) for end in ends]
    server = await manager.add("s", puppet({"tools/list": script}))
    for _ in ends:
        assert await names(server) == ["a"]
    assert await cursors(server) == ["-"] * len(ends)


async def test_each_list_has_its_own_cursors_and_members(manager: Manager) -> None:
    script = {
        "resources/list": [
            result(resources=[{"uri": "a"}], nextCursor="2"),
            result(resources=[{"uri": "b", "name": "B", "size": 5}]),
        ],
        "resources/templates/list": [
            result(resourceTemplates=[{"uriTemplate": "a/{x}"}], nextCursor="2"),
            result(resourceTemplates=[{"uriTemplate": "b/{x}"}]),
        ],
        "prompts/list": [
            result(prompts=[{"name": "a"}], nextCursor="2"),
            result(prompts=[{"name": "b", "description": "B"}]),
        ],
    }
    server = await manager.add("s", puppet(script))
    resources = await server.list_resources()
    assert [(one.uri, one.name, one.size) for one in resources] == [("a", "", None), ("b", "B", 5)]
    templates = await server.list_resource_templates()
    assert [one.uri_template for one in templates] == ["a/{x}", "b/{x}"]
    prompts = await server.list_prompts()
    assert [(one.name, one.description) for one in prompts] == [("a", None), ("b", "B")]
    for method in script:
        assert await cursors(server, method) == ["-", "2"]


# -- lists without end ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "found", "pages"),
    [
        ("empty", ["echo", "page", "asked"], 2),
        ("same", ["echo", "page", "asked"], 2),
        ("cycle", ["echo", "page_A", "asked", "page_B"], 3),
    ],
)
async def test_a_cursor_that_comes_again_ends_the_list(
    manager: Manager,
    mode: str,
    found: list[str],
    pages: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = await manager.add("s", spec("cursor_loop", mode))
    assert await names(server) == found
    assert (await server.call_tool("asked")).text == str(pages)
    assert "s ! tools/list repeats a cursor; the list ends here" in caplog.text


async def test_a_list_without_end_is_cut_at_the_limit(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("s", spec("cursor_loop", "endless", limits=Limits(pages=5)))
    pages = [f"page_{n}" for n in range(1, 6)]
    assert await names(server) == ["echo", pages[0], "asked", *pages[1:]]
    assert (await server.call_tool("asked")).text == "5"
    assert "s ! tools/list has over 5 pages (Limits.pages)" in caplog.text


async def test_the_time_out_is_for_all_pages_together(manager: Manager) -> None:
    # Each page comes in no time, and there are more of them than can come in this time.
    server = await manager.add("s", spec("cursor_loop", "endless", limits=Limits(pages=20_000)))
    await server.start()
    with pytest.raises(CallTimedOut) as caught:
        await server.list_tools(timeout=0.05)
    assert (caught.value.method, caught.value.server) == ("tools/list", "s")
    assert "no answer within " in str(caught.value)
    assert int((await server.call_tool("asked")).text) > 1


async def test_of_items_of_the_same_name_the_first_counts(manager: Manager) -> None:
    one, other = {"name": "a", "title": "first"}, {"name": "a", "title": "second"}
    script = [result(tools=[one, other, {"name": "b"}], nextCursor="2"), result(tools=[other])]
    server = await manager.add("s", puppet({"tools/list": script}))
    assert [(tool.name, tool.title) for tool in await server.list_tools()] == [
        ("a", "first"),
        ("b", None),
    ]


# -- stale cursors, deaths -----------------------------------------------------------------


async def test_a_stale_cursor_begins_the_list_again_once(manager: Manager) -> None:
    script = [page("old", cursor="1"), refusal(-32602), page("new", cursor="1"), page("end")]
    server = await manager.add("s", puppet({"tools/list": script}))
    # What was read before is dropped, and the cursor that was seen then may come again.
    assert await names(server) == ["new", "end"]
    assert await cursors(server) == ["-", "1", "-", "1"]


async def test_a_cursor_that_is_always_stale_is_an_error(manager: Manager) -> None:
    script = [page("a", cursor="1"), refusal(-32602, "bad cursor")] * 2
    server = await manager.add("s", puppet({"tools/list": script}))
    with pytest.raises(ReplyError) as caught:
        await server.list_tools()
    assert (caught.value.code, caught.value.message) == (-32602, "bad cursor")
    assert await cursors(server) == ["-", "1", "-", "1"]


async def test_invalid_params_without_a_cursor_are_an_error_at_once(manager: Manager) -> None:
    server = await manager.add("s", puppet({"tools/list": [refusal(-32602)]}))
    with pytest.raises(ReplyError):
        await server.list_tools()
    assert await cursors(server) == ["-"]


@pytest.mark.parametrize("code", [-32601, -32603])
async def test_an_error_on_a_later_page_is_not_taken_for_an_end(
    manager: Manager, code: int
) -> None:
    script = [page("a", cursor="1"), refusal(code)]
    server = await manager.add("s", puppet({"tools/list": script}))
    with pytest.raises(ReplyError) as caught:
        await server.list_tools()
    assert caught.value.code == code


async def test_a_server_that_dies_between_two_pages_ends_the_list_as_any_call(
    manager: Manager,
) -> None:
    script = [{**page("a", cursor="1"), "exit": 9}]
    server = await manager.add("s", puppet({"tools/list": script}))
    for _ in range(5):  # whether or not the second page was asked for in time is a matter of luck
        with pytest.raises(ServerDied) as caught:
            await server.list_tools()
        assert caught.value.exit.code == 9
        assert (caught.value.method, caught.value.server) == ("tools/list", "s")


# -- what is not asked, or not there -------------------------------------------------------


async def test_a_method_that_is_not_there_lists_nothing(manager: Manager) -> None:
    lists = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
    script: dict[str, Any] = {method: [refusal(-32601)] for method in lists}
    server = await manager.add("s", puppet(script))
    assert await server.list_tools() == []
    assert await server.list_resources() == []
    assert await server.list_resource_templates() == []
    assert await server.list_prompts() == []


async def test_what_a_server_does_not_declare_is_not_asked_for(manager: Manager) -> None:
    server = await manager.add("s", spec("undeclared"))
    assert await server.list_tools() == []
    assert await server.list_prompts() == []
    assert [one.uri for one in await server.list_resources()] == ["test://a"]
    asked = json.loads((await server.call_tool("asked")).text)
    assert "tools/list" not in asked
    assert "prompts/list" not in asked
    assert "resources/list" in asked


@pytest.mark.parametrize("era", ["handshake", "stateless"])
@pytest.mark.parametrize("capabilities", [{}, None, "text"])
async def test_a_server_that_declares_nothing_at_all_is_asked(
    manager: Manager, era: str, capabilities: Any
) -> None:
    script = {"tools/list": [page("a")], "prompts/list": [refusal(-32601)]}
    server = await manager.add("s", puppet(script, era=era, capabilities=capabilities))
    assert await names(server) == ["a"]
    assert await server.list_prompts() == []


# -- odd items -----------------------------------------------------------------------------


async def test_a_faulty_item_costs_neither_the_others_nor_the_list(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("s", spec("bad_tool_schema"))
    tools = {tool.name: tool for tool in await server.list_tools()}
    assert list(tools) == [
        "echo",
        "only_marker",
        "no_schema",
        "null_schema",
        "null_fields",
        "text_schema",
        "missing_ref",
        "cyclic_ref",
        "tree",
    ]
    for name in ("no_schema", "null_schema", "null_fields", "text_schema"):
        assert tools[name].input_schema == {"type": "object"}
    assert tools["only_marker"].input_schema == {
        "$schema": "http://json-schema.org/draft-07/schema#"
    }
    assert (tools["null_fields"].title, tools["null_fields"].description) == (None, None)
    assert tools["missing_ref"].output_schema == {"$ref": "#/$defs/X"}
    assert caplog.text.count("s ! an item of tools/list was left out: ") == 3


async def test_a_list_that_is_null_or_absent_is_empty(manager: Manager) -> None:
    script = [result(tools=None), result(tools=[]), result()]
    server = await manager.add("s", puppet({"tools/list": script}))
    for _ in script:
        assert await server.list_tools() == []


async def test_a_page_that_cannot_be_read_is_an_error(manager: Manager) -> None:
    odd: list[Any] = [{"tools": "text"}, {"tools": {}}, [], "text", None]
    server = await manager.add("s", puppet({"tools/list": [{"result": one} for one in odd]}))
    for _ in odd:
        with pytest.raises(RemoteProtocolError) as caught:
            await server.list_tools()
        assert "has an unexpected shape" in str(caught.value)
