"""Calling tools: what counts as a failure, in which words, and what is never done for a caller."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpclient import (
    CacheStats,
    LocalProtocolError,
    Manager,
    RemoteProtocolError,
    ReplyError,
    Server,
    TextContent,
    ToolError,
    UnknownContent,
)
from tests.conftest import spec
from tests.features.helpers import journal, puppet, refusal, result

TEXT = {"type": "text", "text": "words"}
IMAGE = {"type": "image", "data": "R0lGODlhAQABAAAAACw=", "mimeType": "image/gif"}
LINK = {"type": "resource_link", "uri": "test://a", "name": "a"}
EMBEDDED = {"type": "resource", "resource": {"uri": "test://a", "text": "this is a"}}
OMITTED = "[non-text content omitted]"


async def calls(server: Server) -> int:
    """Return how many tool calls a server got, without those that ask for it."""
    called = await journal(server, "tools/call")
    return sum(1 for one in called if one["params"]["name"] != "journal")


# -- failures ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["good_handshake", "good_stateless"])
async def test_a_result_that_says_it_failed_is_raised_with_all_of_it(
    manager: Manager, name: str
) -> None:
    server = await manager.add("s", spec(name))
    with pytest.raises(ToolError) as caught:
        await server.invoke_tool("fail")
    problem = caught.value
    assert problem.message == "it failed\nand here is why"
    assert str(problem) == problem.message
    assert (problem.tool, problem.server) == ("fail", "s")
    assert problem.result == await server.call_tool("fail")
    assert problem.result.is_error
    assert problem.result.raw["content"][0] == {"type": "text", "text": "it failed"}
    assert problem.result.raw["isError"] is True


FAILURES: list[tuple[dict[str, Any], str]] = [
    ({"content": [TEXT]}, "words"),
    ({"content": [TEXT, IMAGE, TEXT]}, f"words\n{OMITTED}\nwords"),
    ({"content": [IMAGE]}, OMITTED),
    ({"content": [LINK, EMBEDDED]}, f"{OMITTED}\n{OMITTED}"),
    ({"content": [{"type": "widget", "x": 1}, TEXT]}, f"{OMITTED}\nwords"),
    ({"content": ["only text", 5, None, TEXT]}, f"{OMITTED}\n{OMITTED}\n{OMITTED}\nwords"),
    ({"content": [{"type": "text", "text": ""}]}, ""),
    ({"content": [{"type": "text"}]}, OMITTED),  # a text part without its text
    ({"content": []}, "tool errored (empty content)"),
    ({}, "tool errored (no content provided)"),
    ({"content": None}, "tool errored (no content provided)"),
    ({"content": "words"}, "tool errored (no content provided)"),
    ({"content": {"type": "text", "text": "words"}}, "tool errored (no content provided)"),
    ({"content": [], "structuredContent": {"why": 1}}, "tool errored (empty content)"),
]


async def test_the_message_of_a_failure_is_in_the_words_that_editors_show(
    manager: Manager,
) -> None:
    script = [result(isError=True, **members) for members, _ in FAILURES]
    server = await manager.add("s", puppet({"tools/call": script}))
    for members, message in FAILURES:
        with pytest.raises(ToolError) as caught:
            await server.invoke_tool("sin")
        assert caught.value.message == message
        assert caught.value.result.raw == {"isError": True, **members}
        assert str(caught.value) == (message or "tool errored (empty text)")


async def test_call_tool_never_raises_because_the_tool_failed(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    failed = await server.call_tool("fail")
    assert failed.is_error
    assert failed.text == "it failed\nand here is why"
    assert not (await server.call_tool("echo", {"text": "hi"})).is_error


async def test_only_a_json_true_says_that_a_tool_failed(manager: Manager) -> None:
    flags: list[Any] = [False, None, "true", "yes", 1, 1.0, [True], {"isError": True}]
    script = [result(content=[TEXT], isError=flag) for flag in flags]
    server = await manager.add("s", puppet({"tools/call": script}))
    for flag in flags:
        found = await server.invoke_tool("sin")
        assert not found.is_error
        assert found.raw == {"content": [TEXT], "isError": flag}


@pytest.mark.parametrize("verb", ["invoke_tool", "call_tool"])
async def test_a_refusal_is_no_failure_of_the_tool(manager: Manager, verb: str) -> None:
    data = {"tool": "sin", "big": 2**60}
    server = await manager.add(
        "s", puppet({"tools/call": [refusal(-32602, "no \x1b[2J", data=data)]})
    )
    with pytest.raises(ReplyError) as caught:
        await getattr(server, verb)("sin")
    problem = caught.value
    assert (problem.code, problem.message, problem.data) == (-32602, "no \x1b[2J", data)
    assert str(problem).startswith("[-32602] no ")
    assert "\x1b" not in str(problem)
    assert (problem.method, problem.server) == ("tools/call", "s")


@pytest.mark.parametrize("name", ["good_handshake", "good_stateless"])
async def test_an_unknown_tool_is_refused_by_the_server(manager: Manager, name: str) -> None:
    server = await manager.add("s", spec(name))
    with pytest.raises(ReplyError) as caught:
        await server.invoke_tool("nonsense")
    assert str(caught.value) == '[-32602] Unknown tool: nonsense (tools/call on "s")'


async def test_a_result_that_is_no_object_cannot_be_read(manager: Manager) -> None:
    odd: list[Any] = [[1, 2], "words", 5, None]
    server = await manager.add("s", puppet({"tools/call": [{"result": one} for one in odd * 2]}))
    for verb in (server.invoke_tool, server.call_tool):
        for _ in odd:
            with pytest.raises(RemoteProtocolError) as caught:
                await verb("sin")
            assert "the tool's result has an unexpected shape: Expected `object`" in str(
                caught.value
            )


# -- results -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["good_handshake", "good_stateless"])
async def test_a_result_has_text_structure_and_typed_blocks(manager: Manager, name: str) -> None:
    server = await manager.add("s", spec(name))
    added = await server.invoke_tool("add", {"a": 2, "b": 0.5})
    assert (added.text, added.structured, added.has_structured) == ("2.5", {"sum": 2.5}, True)
    assert added.content == [TextContent("2.5")]
    kinds = await server.invoke_tool("kinds")
    names = [type(part).__name__ for part in kinds.content]
    assert names == [
        "TextContent",
        "ImageContent",
        "AudioContent",
        "ResourceLink",
        "EmbeddedResource",
        "EmbeddedResource",
        "UnknownContent",
    ]
    assert kinds.content[-1] == UnknownContent("widget", {"type": "widget", "x": 1})
    assert (kinds.text, kinds.structured, kinds.has_structured) == ("plain words", None, False)


async def test_any_structured_value_survives_even_null(manager: Manager) -> None:
    values: list[Any] = [None, 0, False, "", [], {}, [1, 2], 2**63 + 1, -(2**63)]
    script = [result(content=[], structuredContent=value) for value in values]
    server = await manager.add("s", puppet({"tools/call": script}))
    for value in values:
        found = await server.invoke_tool("sin")
        assert found.has_structured
        assert found.structured == value
        assert type(found.structured) is type(value)
        assert found.raw == {"content": [], "structuredContent": value}


async def test_without_text_the_structured_content_is_the_text(manager: Manager) -> None:
    script = {"tools/call": [result(content=[], structuredContent={"a": [1, 2]}), result()]}
    server = await manager.add("s", puppet(script))
    assert (await server.invoke_tool("sin")).text == '{"a":[1,2]}'
    nothing = await server.invoke_tool("sin")
    assert (nothing.text, nothing.content, nothing.has_structured) == ("", [], False)


async def test_a_result_can_be_changed_by_nobody_for_anybody(manager: Manager) -> None:
    script = {"tools/call": [result(content=[TEXT], structuredContent={"a": [1]}, _meta={"m": 1})]}
    server = await manager.add("s", puppet(script))
    found = await server.invoke_tool("sin")
    found.structured["a"].append(2)
    found.raw["content"].clear()
    found.meta["m"] = 2
    found.content.clear()
    assert (found.structured, found.meta, found.text) == ({"a": [1]}, {"m": 1}, "words")


# -- what is sent --------------------------------------------------------------------------


async def test_no_arguments_are_sent_as_an_empty_object(manager: Manager) -> None:
    server = await manager.add("s", spec("fake"))
    for verb in (server.invoke_tool, server.call_tool):
        assert (await verb("nullary")).text == "{}"
        assert (await verb("nullary", None)).text == "{}"
        assert (await verb("nullary", {})).text == "{}"
        assert (await verb("nullary", {"x": None})).text == '{"x": null}'


async def test_arguments_arrive_as_they_are(manager: Manager) -> None:
    values: list[Any] = [7, 2**70, "\u2028 ü \U0001f600", [None, {"a": True}], 0.1, ""]
    server = await manager.add("s", puppet())
    for value in values:
        await server.call_tool("echo", {"value": value})
    called = await journal(server, "tools/call")
    assert [one["params"] for one in called[: len(values)]] == [
        {"name": "echo", "arguments": {"value": value}} for value in values
    ]


async def test_arguments_that_are_no_json_are_refused_and_nothing_is_sent(
    manager: Manager,
) -> None:
    server = await manager.add("s", puppet())
    for value in (object(), {1, 2j}, float("nan"), float("inf"), 1j):
        for verb in (server.invoke_tool, server.call_tool):
            with pytest.raises(LocalProtocolError) as caught:
                await verb("echo", {"value": value})
            assert str(caught.value).startswith("the params ")
    assert await calls(server) == 0
    assert manager.status().servers[0].in_flight == 0


async def test_calls_are_never_joined_and_never_cached(manager: Manager) -> None:
    server = await manager.add("s", puppet())
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(server.invoke_tool, "echo", {"text": "same"})
    await server.invoke_tool("echo", {"text": "same"})
    await server.call_tool("echo", {"text": "same"})
    assert await calls(server) == 12
    assert manager.cache.stats() == CacheStats()


async def test_a_tool_is_not_called_again_after_the_server_died_of_it(manager: Manager) -> None:
    server = await manager.add("s", spec("fake"))
    with pytest.raises(Exception, match="the server died"):
        await server.invoke_tool("crash")
    await server.wait_ready()
    assert (await server.invoke_tool("nullary")).text == "{}"
    assert server.generation == 2


# -- the raw way, and progress -------------------------------------------------------------


async def test_the_raw_request_translates_nothing(manager: Manager) -> None:
    server = await manager.add("s", spec("fake"))
    failed = await server.request("tools/call", {"name": "multipart_fail", "arguments": {}})
    assert failed["isError"] is True
    assert [part["type"] for part in failed["content"]] == ["text", "image", "text"]
    read = await server.request("resources/read", {"uri": "fake://x"})
    again = await server.request("resources/read", {"uri": "fake://x"})
    assert [one["contents"][0]["text"] for one in (read, again)] == ["1", "2"]


@pytest.mark.parametrize("name", ["good_handshake", "good_stateless"])
async def test_progress_is_told_in_order_before_the_result(manager: Manager, name: str) -> None:
    server = await manager.add("s", spec(name))
    told: list[Any] = []
    found = await server.invoke_tool(
        "progress", {"n": 3}, on_progress=lambda *facts: told.append(facts)
    )
    assert told == [(n, 3, f"step {n} of 3") for n in (1, 2, 3)]
    assert found.text == "3 steps done"
    # Nobody asked this time, so nothing is told.
    await server.call_tool("progress", {"n": 3})
    assert len(told) == 3


async def test_a_progress_handler_that_raises_spoils_nothing(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("s", spec("good_handshake"))

    def broken(*facts: Any) -> None:
        raise ValueError("the handler is broken")

    found = await server.invoke_tool("progress", {"n": 2}, on_progress=broken)
    assert found.text == "2 steps done"
    assert caplog.text.count("a progress handler raised") == 2
    assert "ValueError: the handler is broken" in caplog.text
