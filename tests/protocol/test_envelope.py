"""What is written is one line of plain ASCII JSON that says what the caller said, or is refused."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Raw

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.protocol import envelope
from mcpclient.protocol.content import EmbeddedResource, ResourceContents, TextContent
from mcpclient.protocol.envelope import Envelope, decode_envelope
from tests.protocol import quick

# What some reader somewhere takes for the end of a line, and text that needs two code units.
BREAKS = "\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\U0001f600"

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()), max_size=20)
ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | ANY_TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(ANY_TEXT, inner, max_size=4),
    max_leaves=12,
)


def read(line: bytes) -> Any:
    """Return a line's value after checking that it is one line for any reader."""
    assert line.endswith(b"\n")
    assert line.isascii()
    text = line.decode("ascii")
    assert text.splitlines() == [text[:-1]]
    return json.loads(text)


def test_a_request_has_its_four_members() -> None:
    assert envelope.request(7, "tools/call", {"name": "add"}) == (
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"add"}}\n'
    )


def test_a_notification_has_no_id() -> None:
    assert envelope.notification("notifications/cancelled", {"requestId": 7}) == (
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}\n'
    )


def test_no_params_are_left_out_and_never_null() -> None:
    assert envelope.request(1, "ping", None) == b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    assert envelope.notification("notifications/initialized", None) == (
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    )
    assert read(envelope.request(1, "ping", {}))["params"] == {}


@pytest.mark.parametrize("id", [0, 1, -5, 2**70, "s1", "", "ü\u2028", 1.5, 3.0])
def test_an_answer_gives_the_id_back_as_it_came(id: Any) -> None:
    found = read(envelope.answer(id, {"a": 1}))
    assert found == {"jsonrpc": "2.0", "id": id, "result": {"a": 1}}
    assert type(found["id"]) is type(id)
    refused = read(envelope.refusal(id, -32601, "no \u2028"))
    assert refused == {
        "jsonrpc": "2.0",
        "id": id,
        "error": {"code": -32601, "message": "no \u2028"},
    }
    assert type(refused["id"]) is type(id)


def test_text_that_some_reader_would_split_goes_out_escaped() -> None:
    line = envelope.request(1, "echo", {BREAKS: BREAKS, "plain": "ünïcödé 日本"})
    assert read(line)["params"] == {BREAKS: BREAKS, "plain": "ünïcödé 日本"}
    assert b"\\u2028" in line
    assert b"\\ud83d\\ude00" in line


def test_a_lone_surrogate_goes_out_as_the_escape_it_came_as() -> None:
    params: dict[str, Any] = {
        "half": "a\ud83d",
        "other": "\ude00b",
        "\udfff": [{"deep": "\ud800"}],
        "n": 1,
    }
    line = envelope.request(1, "echo", params)
    assert b'"a\\ud83d"' in line
    assert read(line)["params"] == params


@quick
@given(st.dictionaries(ANY_TEXT, ANY_JSON, max_size=4), ANY_TEXT)
def test_any_json_arrives_as_it_was_meant(params: dict[str, Any], method: str) -> None:
    found = read(envelope.request(3, method, params))
    assert found == {"jsonrpc": "2.0", "id": 3, "method": method, "params": params}
    assert read(envelope.notification(method, params))["params"] == params


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "around",
    [
        lambda number: {"x": number},
        lambda number: {"x": [1, {"y": (2, number)}]},
        lambda number: {"x": None, "y": [number]},
        lambda number: {"x": "\ud83d", "y": number},
        lambda number: {"x": Raw(b"[1]"), "y": number},
        lambda number: {"x": {number}},
    ],
)
def test_nan_and_infinity_are_refused_wherever_they_hide(number: float, around: Any) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        envelope.request(1, "echo", around(number))
    assert "JSON" in str(caught.value)


def test_an_honest_null_is_no_nan() -> None:
    params: dict[str, Any] = {"a": None, "b": "null", "c": [None, 1.5], "null": {}}
    assert read(envelope.request(1, "echo", params))["params"] == params


def test_integers_stay_exact_however_large() -> None:
    params = {
        "id": 1915883588174806058,
        "i64": [2**63 - 1, -(2**63)],
        "u64": 2**64 - 1,
        "more": 2**64,
        "huge": 10**300 + 7,
    }
    assert read(envelope.request(1, "echo", params))["params"] == params
    with_surrogate = {**params, "s": "\ud800"}
    assert read(envelope.request(1, "echo", with_surrogate))["params"] == with_surrogate


def test_raw_json_goes_out_as_it_is() -> None:
    line = envelope.request(1, "echo", {"raw": Raw(b'{"a":1.10,"b":[]}')})
    assert line == (
        b'{"jsonrpc":"2.0","id":1,"method":"echo","params":{"raw":{"a":1.10,"b":[]}}}\n'
    )


@pytest.mark.parametrize("white", [b"\n", b"\r\n", b"\r", b" \n\t"])
def test_raw_json_of_many_lines_is_folded_into_one(white: bytes) -> None:
    raw = b"{" + white + b'"a": "\\n",' + white + b'"b": null}'
    line = envelope.request(1, "echo", {"raw": Raw(raw), "n": None})
    assert read(line)["params"] == {"raw": {"a": "\n", "b": None}, "n": None}


def test_raw_text_that_is_not_ascii_is_escaped_too() -> None:
    line = envelope.request(1, "echo", {"raw": Raw('"a\u2028ü"'.encode())})
    assert read(line)["params"] == {"raw": "a\u2028ü"}
    beside = envelope.request(1, "echo", {"raw": Raw('"ü"'.encode()), "half": "\ud800"})
    assert read(beside)["params"] == {"raw": "ü", "half": "\ud800"}


@pytest.mark.parametrize(
    "raw", [b'"\xff"', b'"a\nb"', b"{oops\n}", b'{"a":\n}', b'"half\nof a \\ud83d"']
)
def test_raw_bytes_that_are_no_json_and_cannot_stand_on_one_line_are_refused(raw: bytes) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        envelope.request(1, "echo", {"raw": Raw(raw)})
    assert str(caught.value).startswith("the params cannot be written as JSON: ")


@pytest.mark.parametrize("value", [object(), 1j, lambda: 0, {1: object()}, ["\ud800", object()]])
def test_what_is_no_json_is_refused_with_its_type(value: Any) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        envelope.notification("echo", {"x": value})
    assert str(caught.value).startswith("the params cannot be written as JSON: ")
    assert "type" in str(caught.value)


@pytest.mark.parametrize("leaf", [None, 1, "\ud800", math.nan])
@pytest.mark.parametrize("depth", [50, 300, 480, 700, 990, 5000, 100_000])
def test_depth_is_written_or_refused_and_never_crashes(depth: int, leaf: Any) -> None:
    value = leaf
    for _ in range(depth):
        value = [value]
    try:
        line = envelope.request(1, "echo", {"x": value})
    except LocalProtocolError:
        assert depth > 300 or leaf is math.nan
    else:
        assert leaf is not math.nan
        assert line.count(b"[") == line.count(b"]") == depth


def test_what_a_server_gave_can_be_sent_back() -> None:
    block = TextContent("half \ud83d")
    resource = EmbeddedResource(ResourceContents("file:///a", text="é"))
    found = read(envelope.request(1, "echo", {"blocks": [block, resource]}))["params"]["blocks"]
    assert found[0] == {"type": "text", "text": "half \ud83d"}
    assert found[1]["type"] == "resource"
    assert found[1]["resource"]["text"] == "é"


def test_reading_tells_an_absent_member_from_null() -> None:
    bare = decode_envelope(b"{}")
    assert bare == Envelope()
    assert bare.id is UNSET
    nulls = decode_envelope(
        b'{"jsonrpc":null,"id":null,"method":null,"params":null,"result":null,"error":null}'
    )
    assert nulls.id is None
    assert (bytes(nulls.params), bytes(nulls.result), bytes(nulls.error)) == (b"null",) * 3


def test_a_payload_is_not_looked_into() -> None:
    found = decode_envelope(b'{"id":1,"result":{"a":"\xff","b":[1,2]},"more":{}}')
    assert bytes(found.result) == b'{"a":"\xff","b":[1,2]}'


def test_an_envelope_keeps_the_type_of_an_id() -> None:
    for text, id in [(b"1", 1), (b"1.0", 1.0), (b'"1"', "1"), (b"3e0", 3.0)]:
        found = decode_envelope(b'{"id":' + text + b"}").id
        assert found == id
        assert type(found) is type(id)
    with pytest.raises(msgspec.ValidationError):
        decode_envelope(b'{"id":true}')
