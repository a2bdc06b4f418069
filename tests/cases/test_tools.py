"""Results of tools as odd as they come: what is of worth in them reaches the caller."""

from __future__ import annotations

import json
import logging

import pytest

from mcpclient import (
    ImageContent,
    Manager,
    ReplyError,
    ResourceLink,
    Server,
    TextContent,
    ToolError,
    UnknownContent,
)
from tests.cases import case
from tests.conftest import spec
from tests.features import test_catalog as lists
from tests.features import test_schemas as schemas
from tests.features.helpers import puppet, refusal, result

BIG = 1915883588174806058

# Shown where schemas and lists are.
case("B165")(schemas.test_a_failure_is_a_failure_whatever_its_content)
case("B167")(schemas.test_the_value_alone_is_checked_and_not_what_is_around_it)
case("B168")(schemas.test_content_without_its_structure_is_raised_with_the_content)
case("B168")(schemas.test_what_does_not_fit_is_logged_and_returned)
case("B170", "B171")(lists.test_a_faulty_item_costs_neither_the_others_nor_the_list)
case("B170", "B171", "B173", "B174")(schemas.test_a_list_of_faulty_tools_is_a_list_all_the_same)
case("B173")(schemas.test_a_schema_that_cannot_be_used_is_told_and_costs_only_its_own_tool)
case("B174")(schemas.test_a_schema_that_refers_to_itself_is_followed_as_far_as_the_value_goes)


@pytest.fixture
async def odd(manager: Manager) -> Server:
    """A server whose tools are named for what is odd about their results."""
    return await manager.add("s", spec("tool_results"))


@case("B159")
async def test_a_link_among_the_blocks_is_a_link(odd: Server) -> None:
    found = await odd.invoke_tool("link")
    text, link = found.content
    assert text == TextContent("words")
    assert isinstance(link, ResourceLink)
    assert (link.uri, link.name) == ("test://a", "a")
    assert found.text == "words"


@case("B161")
async def test_a_block_of_an_unknown_kind_is_kept_as_it_is(odd: Server) -> None:
    found = await odd.invoke_tool("widget")
    assert not found.is_error
    assert found.content == [
        TextContent("words"),
        UnknownContent("widget", {"type": "widget", "x": 1}),
    ]


@case("B161")
@pytest.mark.parametrize("tool", ["no_content", "empty_result", "content_null"])
async def test_content_that_is_absent_is_empty_and_no_error(odd: Server, tool: str) -> None:
    found = await odd.invoke_tool(tool)
    assert found.content == []
    assert not found.is_error
    assert found.structured == ({"a": 1} if tool == "no_content" else None)


@case("B161")
async def test_a_failure_is_what_the_server_says_is_one(odd: Server) -> None:
    for tool in ("is_error_text", "is_error_null"):
        assert (await odd.invoke_tool(tool)).text == "words"
    with pytest.raises(ToolError):
        await odd.invoke_tool("no_content_error")


@case("B162")
async def test_structure_without_content_is_there_and_is_the_text(odd: Server) -> None:
    found = await odd.invoke_tool("structured_only")
    assert (found.has_structured, found.structured) == (True, {"a": 1})
    assert json.loads(found.text) == {"a": 1}


@case("B164")
@pytest.mark.parametrize(
    ("tool", "message", "content"),
    [
        ("empty_error", "tool errored (empty content)", []),
        ("image_error", "[non-text content omitted]", [ImageContent]),
        ("no_content_error", "tool errored (no content provided)", []),
    ],
)
async def test_a_failure_without_words_has_a_message_and_its_result(
    odd: Server, tool: str, message: str, content: list[type]
) -> None:
    with pytest.raises(ToolError) as caught:
        await odd.invoke_tool(tool)
    problem = caught.value
    assert str(problem) == message
    assert [type(block) for block in problem.result.content] == content
    assert problem.result.raw["isError"] is True
    assert (problem.tool, problem.server) == (tool, "s")


@case("B176")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_a_failure_and_a_refusal_are_different_things(manager: Manager, era: str) -> None:
    failed = result(content=[{"type": "text", "text": "disk full"}], isError=True)
    refused = refusal(-32602, "no such argument", data={"argument": "n", "id": BIG})
    server = await manager.add("s", puppet({"tools/call": [failed, refused] * 2}, era=era))
    with pytest.raises(ToolError) as tool:
        await server.invoke_tool("sin")
    assert tool.value.message == "disk full"
    assert not isinstance(tool.value, ReplyError)
    with pytest.raises(ReplyError) as reply:
        await server.invoke_tool("sin")
    assert (reply.value.code, reply.value.message) == (-32602, "no such argument")
    assert reply.value.data == {"argument": "n", "id": BIG}
    assert (reply.value.method, reply.value.server) == ("tools/call", "s")
    # The bypass raises the one and returns the other.
    assert (await server.call_tool("sin")).is_error
    with pytest.raises(ReplyError):
        await server.call_tool("sin")


@case("B177")
async def test_escape_codes_of_a_server_are_kept_but_never_shown(
    odd: Server, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="mcpclient")
    with pytest.raises(ReplyError) as caught:
        await odd.invoke_tool("escapes")
    assert caught.value.message == "x\x1b[2J\x1b]0;t\x07"
    assert str(caught.value) == '[-32603] x\\x1b[2J\\x1b]0;t\\x07 (tools/call on "s")'
    assert "\x1b" not in caplog.text
    assert "\x07" not in caplog.text


@case("B177")
async def test_escape_codes_of_a_failed_tool_are_kept_but_never_shown(manager: Manager) -> None:
    words = "one\n\x1b[31mtwo\x1b[0m\r\x9b2J"
    failed = result(content=[{"type": "text", "text": words}], isError=True)
    server = await manager.add("s", puppet({"tools/call": [failed]}))
    with pytest.raises(ToolError) as caught:
        await server.invoke_tool("sin")
    assert caught.value.message == words
    assert str(caught.value) == "one\n\\x1b[31mtwo\\x1b[0m\\r\\x9b2J"


@case("B179")
async def test_integers_keep_their_last_digit(odd: Server) -> None:
    exact = {"id": BIG, "beyond_64_bits": 2**70, "negative": -(2**63)}
    found = await odd.invoke_tool("big_int")
    assert found.structured == found.raw["structuredContent"] == exact
    assert all(type(value) is int for value in found.structured.values())


@case("B179")
async def test_integers_keep_their_last_digit_through_the_cache_and_back(manager: Manager) -> None:
    contents = [{"uri": "test://a", "text": "x", "_meta": {"id": BIG}}]
    server = await manager.add("s", puppet({"resources/read": [result(contents=contents)]}))
    for _ in range(2):
        read = await server.read_resource("test://a")
        assert read.raw["contents"][0]["_meta"]["id"] == BIG
    assert manager.cache.stats().hits == 1
    sent = await server.call_tool("echo", {"text": "x", "ids": [BIG, -BIG, 2**64 - 1]})
    assert sent.text == "x"
    received = json.loads((await server.call_tool("journal")).text)
    echoed = [m for m in received if (m.get("params") or {}).get("name") == "echo"]
    assert echoed[0]["params"]["arguments"]["ids"] == [BIG, -BIG, 2**64 - 1]
