"""Payloads become typed values; what has a clear meaning is repaired, the rest is told in words."""

from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, Struct

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.protocol import payload
from tests.protocol import quick


class Point(Struct):
    """A type of its own, so that nothing here depends on a method's result."""

    x: int
    name: str = ""
    rest: Any = None


def test_a_payload_becomes_a_value_of_the_type() -> None:
    assert payload.decode(Raw(b'{"x":1,"name":"a","unknown":[]}'), Point) == Point(1, "a")
    assert payload.decode(b'{"x":1}', dict[str, Any]) == {"x": 1}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'{"x":"1"}', "Expected `int`, got `str` - at `$.x`"),
        (b"{}", "Object missing required field `x`"),
        (b"[]", "Expected `object`, got `array`"),
        (b"null", "Expected `object`, got `null`"),
    ],
)
def test_another_shape_is_the_servers_fault_and_the_text_says_where(
    data: bytes, problem: str
) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        payload.decode(data, Point)
    assert str(caught.value) == f"the result has an unexpected shape: {problem}"
    with pytest.raises(RemoteProtocolError) as caught:
        payload.decode(data, Point, "the point")
    assert str(caught.value) == f"the point has an unexpected shape: {problem}"
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize(
    ("data", "name"),
    [
        (b'{"x":1,"name":"it\x92s"}', "it�s"),
        (b'{"x":1,"name":"a\\ud83d"}', "a�"),
        (b'{"x":1,"name":"\\ud83d\\ude00"}', "😀"),
        (b'{"x":1,"name":"\xe2\x80\xa8\\u2029"}', "\u2028\u2029"),
    ],
)
def test_text_that_is_not_unicode_is_repaired(data: bytes, name: str) -> None:
    assert payload.decode(data, Point).name == name
    assert payload.value(data) == {"x": 1, "name": name}


def test_a_repaired_payload_must_fit_too() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        payload.decode(b'{"x":"\xff"}', Point)
    assert str(caught.value) == (
        "the result has an unexpected shape: Expected `int`, got `str` - at `$.x`"
    )


@pytest.mark.parametrize("data", [b"{", b"NaN", b'{"x":Infinity}', b"", b"\xff", b'{"x":1,}'])
def test_what_is_no_json_is_the_servers_fault(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        payload.decode(data, Point)
    assert str(caught.value).startswith("the server's JSON cannot be read: ")


@pytest.mark.parametrize("depth", [900, 980, 990, 995, 1000, 1100, 5000, 100_000])
@pytest.mark.parametrize("dirt", [b"1", b'"\xff"'])
def test_depth_gives_a_value_or_the_servers_fault(depth: int, dirt: bytes) -> None:
    data = b"[" * depth + dirt + b"]" * depth
    try:
        found = payload.value(data)
    except RemoteProtocolError:
        assert depth > 900
    else:
        assert depth <= 1000
        assert isinstance(found, list)


@pytest.mark.parametrize("number", [1915883588174806058, 2**63, 2**64 - 1, 2**64, -(10**30)])
def test_integers_stay_exact(number: int) -> None:
    assert payload.value(b"[%d]" % number) == [number]
    assert payload.value(b'[%d,"\xff"]' % number) == [number, "�"]


def test_an_absent_payload_is_none_as_null_is() -> None:
    assert payload.value(Raw(b"")) is None
    assert payload.value(Raw(b"null")) is None
    assert payload.value(Raw(b"0")) == 0


def test_what_is_only_shown_costs_no_outcome() -> None:
    assert payload.told(Raw(b'{"a":1}')) == {"a": 1}
    assert payload.told(Raw(b"")) is None
    assert payload.told(Raw(b'{"a":1e999}')) == '{"a":1e999}'
    deep = b"[" * 5000 + b"]" * 5000
    assert payload.told(Raw(deep)) == deep.decode()


@quick
@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text()
        | st.floats(allow_nan=False, allow_infinity=False),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
        max_leaves=10,
    )
)
def test_any_json_comes_out_as_it_went_in(value: Any) -> None:
    assert payload.value(msgspec.json.encode(value)) == value


@quick
@given(st.binary(max_size=40))
def test_rubbish_gives_a_value_or_the_servers_fault(data: bytes) -> None:
    for kind in (Point, dict[str, Raw], list[Raw], object):
        with contextlib.suppress(RemoteProtocolError):
            payload.decode(data, kind)
    payload.told(data)
