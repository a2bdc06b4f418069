"""Content blocks: every kind, the unknown ones kept as they came, base64 decoded or refused."""

from __future__ import annotations

import base64
import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.protocol.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    UnknownContent,
    block,
    blocks,
    unbase64,
)
from tests.protocol import quick


def raw(value: Any) -> Raw:
    """Return a value as a server would write it."""
    return Raw(json.dumps(value).encode())


KNOWN: list[tuple[dict[str, Any], Any]] = [
    ({"type": "text", "text": "hi"}, TextContent("hi")),
    (
        {"type": "text", "text": "", "annotations": {"priority": 0.5}, "_meta": {}, "more": 1},
        TextContent("", Raw(b'{"priority": 0.5}')),
    ),
    (
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        ImageContent("aGk=", "image/png"),
    ),
    (
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        AudioContent("aGk=", "audio/wav"),
    ),
    ({"type": "resource_link", "uri": "file:///a"}, ResourceLink("file:///a")),
    (
        {
            "type": "resource_link",
            "uri": "demo://a",
            "name": "a",
            "title": None,
            "description": "d",
            "mimeType": "text/plain",
            "size": 5,
        },
        ResourceLink("demo://a", "a", None, "d", "text/plain", 5),
    ),
    (
        {"type": "resource", "resource": {"uri": "file:///a", "text": "x"}},
        EmbeddedResource(ResourceContents("file:///a", text="x")),
    ),
    (
        {"type": "resource", "resource": {"uri": "b://b", "mimeType": "a/b", "blob": "AA=="}},
        EmbeddedResource(ResourceContents("b://b", "a/b", blob="AA==")),
    ),
]

# What lacks something its kind needs, has it of a wrong type, or is of no kind at all.
UNKNOWN: list[tuple[Any, str]] = [
    ({"type": "widget", "x": 1}, "widget"),
    ({"type": "text"}, "text"),
    ({"type": "text", "text": 5}, "text"),
    ({"type": "text", "text": None}, "text"),
    ({"type": "image", "data": "aGk="}, "image"),
    ({"type": "resource", "resource": {"text": "no uri"}}, "resource"),
    ({"type": "resource_link", "name": "no uri"}, "resource_link"),
    ({"type": 5, "text": "x"}, ""),
    ({"text": "no type"}, ""),
    ({}, ""),
    (None, ""),
    ("text", ""),
    (5, ""),
    ([], ""),
]


@pytest.mark.parametrize(("wire", "typed"), KNOWN)
def test_a_known_block_is_typed(wire: dict[str, Any], typed: Any) -> None:
    assert block(raw(wire)) == typed
    assert blocks(raw([wire])) == [typed]


@pytest.mark.parametrize(("wire", "kind"), UNKNOWN)
def test_an_unknown_or_malformed_block_is_kept_as_it_came(wire: Any, kind: str) -> None:
    assert block(raw(wire)) == UnknownContent(kind, wire)
    assert blocks(raw([wire])) == [UnknownContent(kind, wire)]


def test_one_bad_block_costs_no_other_and_the_order_stays() -> None:
    wires = [wire for wire, _ in KNOWN] + [wire for wire, _ in UNKNOWN] + [KNOWN[0][0]]
    found = blocks(raw(wires))
    assert found == [
        *(typed for _, typed in KNOWN),
        *(UnknownContent(kind, wire) for wire, kind in UNKNOWN),
        TextContent("hi"),
    ]


@pytest.mark.parametrize("content", [b"null", b"{}", b'"text"', b"5", b"", b"[]", b"broken"])
def test_content_that_is_no_array_or_an_empty_one_gives_no_blocks(content: bytes) -> None:
    assert blocks(Raw(content)) == []


@pytest.mark.parametrize(
    ("text", "shown"), [(b"it\x92s", "it�s"), (b"a\\ud83d", "a�"), (b"\xe2\x80\xa8", "\u2028")]
)
def test_text_that_is_not_unicode_does_not_change_the_kind_of_a_block(
    text: bytes, shown: str
) -> None:
    part = b'{"type":"text","text":"' + text + b'","annotations":{"priority":1}}'
    found = blocks(Raw(b'[{"type":"text","text":"first"},' + part + b"]"))
    assert [type(one) for one in found] == [TextContent, TextContent]
    assert [one.text for one in found if isinstance(one, TextContent)] == ["first", shown]


def test_a_block_that_cannot_be_read_is_kept_as_its_text() -> None:
    deep = b'{"type":"x","y":' + b"[" * 5000 + b"]" * 5000 + b"}"
    assert block(Raw(deep)) == UnknownContent("", deep.decode())


def test_blocks_are_frozen_values() -> None:
    with pytest.raises(AttributeError):
        TextContent("a").text = "b"  # type: ignore[misc]  # that is the point
    assert repr(TextContent("a")) == "TextContent(text='a')"
    assert repr(ResourceLink("a:b")) == "ResourceLink(uri='a:b')"


# -- base64 --------------------------------------------------------------------------------

ODD = bytes([0xFB, 0xFF, 0xFE, 0x3E, 0x3F, 0x00])  # holds + and / in one alphabet, - and _ in other


def test_images_sounds_and_blobs_give_their_bytes() -> None:
    text = base64.b64encode(ODD).decode()
    assert ImageContent(text, "image/png").decode() == ODD
    assert AudioContent(text, "audio/wav").decode() == ODD
    assert ResourceContents("a:b", blob=text).decode() == ODD
    assert ResourceContents("a:b", text="é\ud83d").decode() == "é?".encode()
    assert ResourceContents("a:b").decode() == b""
    assert ResourceContents("a:b", text="text", blob="").decode() == b""


@quick
@given(st.binary(max_size=200), st.booleans(), st.booleans())
def test_both_alphabets_with_line_breaks_and_without_padding_are_understood(
    data: bytes, urlsafe: bool, padded: bool
) -> None:
    text = (base64.urlsafe_b64encode if urlsafe else base64.b64encode)(data).decode()
    if not padded:
        text = text.rstrip("=")
    assert unbase64(text, "it") == data
    folded = "\r\n".join(text[i : i + 76] for i in range(0, len(text), 76))
    assert unbase64(f" {folded}\r\n", "it") == data


@pytest.mark.parametrize(
    "text", ["aGVs*bG8=", "a", "aGk=aGk=", "=", "aG=k", "ü", "aGk\x00", "aGk===", "\ud83d"]
)
def test_what_is_not_base64_is_an_error_that_names_it(text: str) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        unbase64(text, "test://blob")
    assert str(caught.value).startswith("test://blob is not base64: ")
    with pytest.raises(RemoteProtocolError) as caught:
        ResourceContents("test://blob", blob=text).decode()
    assert str(caught.value).startswith("test://blob is not base64: ")
    with pytest.raises(RemoteProtocolError) as caught:
        ImageContent(text, "image/png").decode()
    assert str(caught.value).startswith("an image is not base64: ")
    with pytest.raises(RemoteProtocolError) as caught:
        AudioContent(text, "audio/wav").decode()
    assert str(caught.value).startswith("a sound is not base64: ")


@quick
@given(st.text(alphabet=st.characters(exclude_categories=()), max_size=20))
def test_rubbish_is_bytes_or_the_servers_fault(text: str) -> None:
    with contextlib.suppress(RemoteProtocolError):
        assert isinstance(unbase64(text, "it"), bytes)


@quick
@given(st.binary(max_size=40))
def test_rubbish_as_content_is_no_exception(data: bytes) -> None:
    assert isinstance(blocks(Raw(data)), list)
    assert block(Raw(data)) is not None
