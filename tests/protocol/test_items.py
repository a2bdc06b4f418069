"""Listed items and pages: typed where the shape allows it, one odd item costs no other."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.protocol.types import (
    Item,
    Page,
    Prompt,
    PromptArgument,
    Resource,
    ResourceTemplate,
    Tool,
    page,
)
from tests.protocol import quick


def raw(value: Any) -> Raw:
    """Return a value as a server would write it."""
    return Raw(json.dumps(value).encode())


# -- items ---------------------------------------------------------------------------------


def test_a_tool_has_its_members_and_keeps_the_unknown_ones() -> None:
    wire = {
        "name": "add",
        "title": "Add",
        "description": "adds",
        "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/x"}}, "x-y": 1},
        "outputSchema": {"type": "number"},
        "annotations": {"readOnlyHint": True, "title": "Hinted"},
        "icons": [{"src": "a:b"}],
        "_meta": {"k": 1},
    }
    tool = Tool.from_wire(raw(wire))
    assert (tool.name, tool.title, tool.description) == ("add", "Add", "adds")
    assert tool.input_schema == wire["inputSchema"]
    assert tool.output_schema == {"type": "number"}
    assert tool.annotations == {"readOnlyHint": True, "title": "Hinted"}
    assert tool.raw == wire
    tool.raw.clear()
    tool.input_schema.clear()
    assert tool.raw == wire
    assert tool.input_schema == wire["inputSchema"]
    assert repr(tool) == "Tool(name='add', title='Add', description='adds')"


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"type": "object"}, {"type": "object"}),
        ({"$schema": "http://json-schema.org/draft-07/schema#"},) * 2,
        (None, {"type": "object"}),
        ({}, {"type": "object"}),
        ("text", {"type": "object"}),
        ([], {"type": "object"}),
        (True, {"type": "object"}),
    ],
)
def test_a_tool_always_has_an_input_schema(schema: Any, found: Any) -> None:
    assert Tool.from_wire(raw({"name": "a", "inputSchema": schema})).input_schema == found
    assert Tool.from_wire(raw({"name": "a"})).input_schema == {"type": "object"}


def test_a_schema_is_not_looked_into_until_it_is_asked_for() -> None:
    # A number that no float can hold is found out only when the schema is decoded.
    [tool] = page(Raw(b'{"tools":[{"name":"a","outputSchema":{"maximum":1e999}}]}'), Tool).items
    assert tool.name == "a"
    with pytest.raises(RemoteProtocolError):
        _ = tool.output_schema


@pytest.mark.parametrize(
    ("members", "label"),
    [
        ({"title": "T", "annotations": {"title": "A"}}, "T"),
        ({"annotations": {"title": "A"}}, "A"),
        ({"title": None, "annotations": {"title": 5}}, "n"),
        ({"title": "", "annotations": None}, "n"),
        ({}, "n"),
    ],
)
def test_the_name_for_people_is_title_then_hint_then_name(members: Any, label: str) -> None:
    assert Tool.from_wire(raw({"name": "n", **members})).label == label


ITEMS: list[tuple[type[Item], dict[str, Any], dict[str, Any]]] = [
    (
        Resource,
        {"uri": "a:b", "name": "n", "mimeType": "text/plain", "size": 5, "title": "t"},
        {"uri": "a:b", "name": "n", "mime_type": "text/plain", "size": 5, "title": "t"},
    ),
    (
        ResourceTemplate,
        {"uriTemplate": "a:{b}", "name": "n", "mimeType": None},
        {"uri_template": "a:{b}", "name": "n", "mime_type": None, "title": None},
    ),
    (
        Prompt,
        {"name": "p", "arguments": [{"name": "a", "required": True, "more": 1}, {"name": "b"}]},
        {
            "name": "p",
            "description": None,
            "arguments": (PromptArgument("a", required=True), PromptArgument("b")),
        },
    ),
]


@pytest.mark.parametrize(("kind", "wire", "members"), ITEMS)
def test_listed_items_have_their_members(
    kind: type[Item], wire: dict[str, Any], members: dict[str, Any]
) -> None:
    item = kind.from_wire(raw({**wire, "vendor": 1}))
    assert {name: getattr(item, name) for name in members} == members
    assert item.raw == {**wire, "vendor": 1}


ALL = [
    (Tool, {"name": "a"}, ["title", "description"]),
    (Resource, {"uri": "a:b"}, ["name", "title", "description", "mimeType", "size"]),
    (ResourceTemplate, {"uriTemplate": "a:{b}"}, ["name", "title", "description", "mimeType"]),
    (Prompt, {"name": "a"}, ["title", "description", "arguments"]),
]


@pytest.mark.parametrize(("kind", "needed", "optional"), ALL)
@pytest.mark.parametrize("odd", [{"a": 1}, [5], 1.5, True])
def test_a_member_of_the_wrong_type_costs_itself_and_not_the_item(
    kind: type[Item], needed: dict[str, Any], optional: list[str], odd: Any
) -> None:
    wire = {**dict.fromkeys(optional, odd), **needed, "kept": odd, "big": 10**30}
    item = kind.from_wire(raw(wire))
    assert item == kind.from_wire(raw(wire))
    for name in optional:
        attribute = "mime_type" if name == "mimeType" else name
        assert not getattr(item, attribute), name
    for key, value in needed.items():
        attribute = "uri_template" if key == "uriTemplate" else key
        assert getattr(item, attribute) == value
    assert item.raw == wire


@pytest.mark.parametrize(("kind", "needed", "optional"), ALL)
def test_null_is_absence(kind: type[Item], needed: dict[str, Any], optional: list[str]) -> None:
    optional = [name for name in optional if name != "name"]
    item = kind.from_wire(raw({**needed, **dict.fromkeys(optional)}))
    for name in optional:
        assert getattr(item, "mime_type" if name == "mimeType" else name) is None


@pytest.mark.parametrize(("kind", "needed", "optional"), ALL)
@pytest.mark.parametrize("odd", [None, 5, [], {}])
def test_an_item_without_what_it_needs_is_the_servers_fault(
    kind: type[Item], needed: dict[str, Any], optional: list[str], odd: Any
) -> None:
    for wire in ({}, dict.fromkeys(needed, odd), odd):
        with pytest.raises(RemoteProtocolError) as caught:
            kind.from_wire(raw(wire))
        assert str(caught.value).startswith("an item has an unexpected shape: ")


# -- pages ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "needed", "optional"), ALL)
def test_a_page_leaves_out_what_is_no_item_and_says_why(
    kind: type[Item], needed: dict[str, Any], optional: list[str]
) -> None:
    listed = [needed, 5, None, "text", [], {}, {**needed, "title": "second"}]
    found = page(raw({Page.MEMBER[kind]: listed, "nextCursor": "c"}), kind)
    assert [getattr(item, "title", "") for item in found.items] == [None, "second"]
    assert len(found.skipped) == 5
    assert all(why.startswith("an item has an unexpected shape: ") for why in found.skipped)
    assert found.next_cursor == "c"


@pytest.mark.parametrize(
    ("cursor", "found"),
    [("", ""), ("a b\u2028", "a b\u2028"), (None, None), (5, None), ({}, None), (False, None)],
)
def test_an_empty_cursor_is_a_cursor_and_what_is_no_text_is_none(cursor: Any, found: Any) -> None:
    assert page(raw({"tools": [], "nextCursor": cursor}), Tool).next_cursor == found
    assert page(raw({"tools": []}), Tool).next_cursor is None


def test_null_or_nothing_instead_of_a_list_is_an_empty_page() -> None:
    assert page(raw({"tools": None}), Tool) == Page([], [], None)
    assert page(raw({"prompts": [{"name": "a"}]}), Tool) == Page([], [], None)


@pytest.mark.parametrize(
    "data", [b"null", b"[]", b'{"tools":{}}', b'{"tools":"a"}', b'{"tools":5}']
)
def test_a_page_that_is_no_list_at_all_is_the_servers_fault(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError):
        page(Raw(data), Tool)


def test_bad_text_in_one_item_costs_no_other() -> None:
    data = b'{"tools":[{"name":"a"},{"name":"b","description":"it\x92s","x":{"y":1}},{"name":"c"}]}'
    found = page(Raw(data), Tool)
    assert [item.name for item in found.items] == ["a", "b", "c"]
    assert found.items[1].description == "it�s"
    assert found.items[1].raw == {"name": "b", "description": "it�s", "x": {"y": 1}}


# -- rubbish -------------------------------------------------------------------------------

NAMES = """
    name uri uriTemplate title arguments tools prompts resources resourceTemplates inputSchema
    outputSchema annotations nextCursor description mimeType size required _meta
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


def item_like() -> st.SearchStrategy[Any]:
    """Return what nearly is an item of some kind."""
    needed = st.sampled_from([{"name": "a"}, {"uri": "a:b"}, {"uriTemplate": "a:{b}"}, {}])
    members = st.dictionaries(st.sampled_from(NAMES.split()), VALUES, max_size=4)
    return st.builds(lambda more, least: {**more, **least}, members, needed) | VALUES


@quick
@given(st.lists(item_like(), max_size=4), VALUES)
def test_any_json_in_a_list_is_an_item_or_left_out(listed: list[Any], cursor: Any) -> None:
    for kind, member in Page.MEMBER.items():
        found = page(raw({member: listed, "nextCursor": cursor}), kind)
        assert len(found.items) + len(found.skipped) == len(listed)
        assert found.next_cursor == (cursor if isinstance(cursor, str) else None)
        for item in found.items:
            assert item.raw in listed
            assert repr(item)
            if isinstance(item, Tool):
                assert item.label
                assert item.input_schema


@quick
@given(VALUES)
def test_any_json_as_a_page_is_a_page_or_the_servers_fault(value: Any) -> None:
    for kind in Page.MEMBER:
        with contextlib.suppress(RemoteProtocolError):
            assert isinstance(page(raw(value), kind), Page)
