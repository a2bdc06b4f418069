"""Results as callers see them: typed where the shape allows it, and raw in any case."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.protocol.content import ResourceContents, TextContent, UnknownContent
from mcpclient.protocol.types import (
    PromptMessage,
    PromptResult,
    Resource,
    ResourceResult,
    Result,
    ToolResult,
    page,
)
from tests.protocol import quick


def raw(value: Any) -> Raw:
    """Return a value as a server would write it."""
    return Raw(json.dumps(value).encode())


def tool_result(**members: Any) -> ToolResult:
    """Return a tool's result with these members."""
    return ToolResult(raw(members))


def text(words: str) -> dict[str, Any]:
    """Return a block of text."""
    return {"type": "text", "text": words}


IMAGE = {"type": "image", "data": "", "mimeType": "image/png"}

# -- what tools answer ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([text("a")], "a"),
        ([text("a"), text("b\nc"), text("")], "a\nb\nc\n"),
        ([text("a"), IMAGE, text("b")], "a\n[non-text content omitted]\nb"),
        ([IMAGE], "[non-text content omitted]"),
        ([{"type": "widget"}, None], "[non-text content omitted]\n[non-text content omitted]"),
        ([], "tool errored (empty content)"),
        (None, "tool errored (no content provided)"),
        ({}, "tool errored (no content provided)"),
        ("text", "tool errored (no content provided)"),
        (5, "tool errored (no content provided)"),
    ],
)
def test_the_message_of_a_failed_tool_is_in_the_words_editors_show(
    content: Any, words: str
) -> None:
    result = tool_result(content=content, isError=True)
    assert result.is_error is True
    assert result.error_text == words


def test_without_content_a_failed_tool_still_has_a_message() -> None:
    assert tool_result(isError=True).error_text == "tool errored (no content provided)"
    spaced = ToolResult(Raw(b'{ "content" : \t [ {"type":"text","text":"a"} ] }'))
    assert spaced.error_text == "a"


@pytest.mark.parametrize("flag", [False, None, 0, 1, "true", "", [], {}])
def test_only_a_json_true_says_that_a_tool_failed(flag: Any) -> None:
    assert tool_result(content=[], isError=flag).is_error is False
    assert tool_result(content=[]).is_error is False


@pytest.mark.parametrize("value", [None, 0, False, "", [], {}, 1.5, {"a": [None]}, "text", [1]])
def test_structured_content_is_any_json_and_present_by_its_key(value: Any) -> None:
    result = tool_result(content=[], structuredContent=value)
    assert result.has_structured
    assert result.structured == value
    assert type(result.structured) is type(value)


def test_without_structured_content_there_is_none() -> None:
    result = tool_result(content=[text("{}")])
    assert not result.has_structured
    assert result.structured is None


@pytest.mark.parametrize("number", [1915883588174806058, 2**53 + 1, 2**63, 2**64, 10**30])
def test_large_integers_stay_exact(number: int) -> None:
    result = ToolResult(Raw(b'{"content":[],"structuredContent":{"id":%d}}' % number))
    assert result.structured == {"id": number}
    assert result.raw["structuredContent"] == {"id": number}
    assert str(number) in result.text


def test_text_joins_the_text_blocks_and_falls_back_to_the_structured_content() -> None:
    assert tool_result(content=[text("a"), IMAGE, text("b")], structuredContent=1).text == "a\nb"
    assert tool_result(content=[IMAGE]).text == ""
    assert tool_result(content=[], structuredContent={"a": 1}).text == '{"a": 1}'
    assert tool_result(structuredContent=None).text == "null"
    assert tool_result(content=[text("")], structuredContent=1).text == ""


def test_unknown_blocks_and_missing_content_are_no_failure() -> None:
    result = tool_result(content=[text("a"), {"type": "widget", "x": 1}])
    assert result.content == [
        TextContent("a"),
        UnknownContent("widget", {"type": "widget", "x": 1}),
    ]
    assert tool_result(structuredContent={}).content == []
    assert tool_result(content=None).content == []


@pytest.mark.parametrize("data", [b"null", b"[]", b'"text"', b"5", b"broken", b""])
@pytest.mark.parametrize("kind", [ToolResult, ResourceResult, PromptResult])
def test_a_result_that_is_no_object_is_the_servers_fault(data: bytes, kind: Any) -> None:
    with pytest.raises(RemoteProtocolError):
        kind(Raw(data))


# -- raw -----------------------------------------------------------------------------------

WIRE = {
    "content": [text("a")],
    "contents": [{"uri": "a:b", "text": "x", "_meta": {"k": 1}}],
    "messages": [{"role": "user", "content": text("a")}],
    "resultType": "complete",
    "vendor/more": [1, {"deep": None}],
    "_meta": {"vendor/key": "v"},
}


@pytest.mark.parametrize("kind", [Result, ToolResult, ResourceResult, PromptResult])
def test_raw_is_the_whole_result_and_a_fresh_copy_each_time(kind: Any) -> None:
    result = kind(raw(WIRE))
    first = result.raw
    assert first == WIRE
    first["vendor/more"][1]["deep"] = "changed"
    first.clear()
    assert result.raw == WIRE
    assert result.meta == {"vendor/key": "v"}
    assert result.size == len(json.dumps(WIRE))
    assert kind(raw({**WIRE, "_meta": None})).meta == {}
    assert kind(raw({**WIRE, "_meta": 5})).meta == {}


def test_results_are_equal_by_value_and_cannot_be_keys() -> None:
    assert tool_result(content=[]) == ToolResult(Raw(b'{ "content" : [ ] }'))
    assert tool_result(content=[]) != tool_result(content=[text("a")])
    assert Result(raw(WIRE)) != ToolResult(raw(WIRE))
    assert Result(raw(WIRE)) != WIRE
    with pytest.raises(TypeError):
        hash(tool_result(content=[]))


def test_results_show_what_they_are() -> None:
    assert repr(tool_result(content=[text("a\x1b")])) == r"ToolResult('a\x1b')"
    assert repr(tool_result(content=[], isError=True)) == "ToolResult('', is_error=True)"
    assert len(repr(tool_result(content=[text("x" * 10_000)]))) < 300
    assert repr(ResourceResult(raw({"contents": []}))) == "ResourceResult(0 contents, 16 bytes)"
    assert repr(PromptResult(raw({"messages": []}))) == "PromptResult('')"


# -- resources and prompts -----------------------------------------------------------------


def test_a_resource_has_one_or_several_contents() -> None:
    result = ResourceResult(
        raw(
            {
                "contents": [
                    {"uri": "a:b", "mimeType": "text/plain", "text": "one"},
                    {"uri": "a:c", "blob": "AAE=", "more": 1},
                    {"uri": "a:d", "text": ""},
                    {"uri": "a:e", "text": "two", "mimeType": None},
                ]
            }
        )
    )
    assert result.contents[0] == ResourceContents("a:b", "text/plain", "one")
    assert [part.uri for part in result.contents] == ["a:b", "a:c", "a:d", "a:e"]
    assert result.contents[1].decode() == b"\x00\x01"
    assert result.text == "one\n\ntwo"
    result.contents.clear()
    assert len(result.contents) == 4


@pytest.mark.parametrize(
    ("wire", "where"),
    [
        ({}, "Object missing required field `contents`"),
        ({"contents": None}, "Expected `array`, got `null` - at `$.contents`"),
        ({"contents": [{"text": "x"}]}, "Object missing required field `uri` - at `$.contents[0]`"),
        ({"contents": [5]}, "Expected `object`, got `int` - at `$.contents[0]`"),
    ],
)
def test_a_resource_without_contents_is_the_servers_fault(wire: Any, where: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        ResourceResult(raw(wire))
    assert str(caught.value) == f"the resource has an unexpected shape: {where}"


@pytest.mark.parametrize("uri", ["https://example.com", "demo://a", "FILE:///A%20b", "not a uri"])
def test_a_uri_stays_the_text_that_the_server_wrote(uri: str) -> None:
    assert ResourceResult(raw({"contents": [{"uri": uri}]})).contents[0].uri == uri
    assert page(raw({"resources": [{"uri": uri}]}), Resource).items[0].uri == uri


def test_a_prompt_is_its_messages_in_order() -> None:
    result = PromptResult(
        raw(
            {
                "description": "d",
                "messages": [
                    {"role": "user", "content": text("a")},
                    {"role": "assistant", "content": {"type": "widget"}},
                    {"content": text("b"), "more": 1},
                ],
            }
        )
    )
    assert result.description == "d"
    assert result.messages == [
        PromptMessage("user", TextContent("a")),
        PromptMessage("assistant", UnknownContent("widget", {"type": "widget"})),
        PromptMessage("", TextContent("b")),
    ]
    assert result.text == "a\nb"
    assert PromptResult(raw({"messages": [], "description": 5})).description is None
    assert PromptResult(raw({})).messages == []


# -- rubbish -------------------------------------------------------------------------------

NAMES = """
    name uri uriTemplate title arguments type text role content contents messages tools prompts
    resources inputSchema isError structuredContent resource nextCursor annotations size _meta
"""
FINITE = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | FINITE,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES.split()), inner, max_size=5)
    ),
    max_leaves=15,
)


def near(member: str) -> st.SearchStrategy[Any]:
    """Return what nearly is a result with this member."""
    members = st.dictionaries(st.sampled_from(NAMES.split()), VALUES, max_size=3)
    listed = VALUES | st.lists(members | VALUES, max_size=3)
    return st.builds(lambda more, value: {**more, member: value}, members, listed)


@quick
@given(near("content") | near("contents") | near("messages") | VALUES)
def test_any_json_as_a_result_is_typed_or_the_servers_fault(value: Any) -> None:
    for view in (ToolResult, ResourceResult, PromptResult):
        try:
            result = view(raw(value))
        except RemoteProtocolError:
            assert view is not ToolResult or not isinstance(value, dict)
            continue
        assert result.raw == value
        assert isinstance(result.text, str)
        assert repr(result)
        if isinstance(result, ToolResult):
            assert result.is_error is (value.get("isError") is True)
            assert isinstance(result.error_text, str)
            listed = value.get("content")
            assert len(result.content) == (len(listed) if isinstance(listed, list) else 0)
