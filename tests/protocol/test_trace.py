"""What is trace context of the W3C's shape, and what is not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpclient.protocol.trace import context

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    "parent",
    [
        PARENT,
        "00-11111111111111111111111111111111-2222222222222222-00",
        "01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff",
        "cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-the-future-brings",
    ],
)
def test_a_parent_of_the_right_shape_is_kept(parent: str) -> None:
    assert context({"traceparent": parent}) == ({"traceparent": parent}, [])


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "00",
        PARENT.upper(),
        PARENT[:-1],
        PARENT + "0",
        PARENT + "\n",
        " " + PARENT,
        PARENT + "-more",
        "ff" + PARENT[2:],
        "0g" + PARENT[2:],
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        PARENT.replace("-", "_"),
        PARENT.replace("0af7", "٠af7"),
    ],
)
def test_any_other_parent_is_left_out(parent: str) -> None:
    assert context({"traceparent": parent}) == ({}, ["traceparent"])


@pytest.mark.parametrize(
    "state",
    [
        "rojo=00f067aa0ba902b7",
        "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE",
        "a=1 , b=2",
        "a=1,,b=2,",
        "tenant@system=x y",
        "0tenant@system=x",
        "a-b_c*d/e=!;:<>~",
        ",".join(f"k{n}=v" for n in range(32)),
        "a=" + "v" * 256,
    ],
)
def test_a_state_of_the_right_shape_is_kept(state: str) -> None:
    told = {"traceparent": PARENT, "tracestate": state}
    assert context(told) == (told, [])


@pytest.mark.parametrize(
    "state",
    [
        "",
        ",",
        "a",
        "a=",
        "=1",
        "A=1",
        "0a=1",
        "a=1=2",
        "a=ü",
        "a=\t",
        "a=1,a=2",
        "a=1\n",
        "a@=1",
        "@a=1",
        "a@0b=1",
        "a" * 257 + "=1",
        "a=" + "v" * 257,
        ",".join(f"k{n}=v" for n in range(33)),
        ",".join(f"k{n}=" + "v" * 100 for n in range(6)),
    ],
)
def test_any_other_state_is_left_out(state: str) -> None:
    told = {"traceparent": PARENT, "tracestate": state}
    assert context(told) == ({"traceparent": PARENT}, ["tracestate"])


def test_a_state_without_its_parent_is_left_out() -> None:
    assert context({"tracestate": "a=1"}) == ({}, ["tracestate"])
    assert context({"traceparent": "x", "tracestate": "a=1"}) == ({}, ["traceparent", "tracestate"])


@pytest.mark.parametrize(
    "baggage",
    [
        "userId=alice",
        "userId=alice,serverNode=DF%2028,isProduction=false",
        "a=1;p1;p2=v , b = 2 ; q = w",
        "a=",
        "SomeKey=SomeValue;ValueProp=PropVal",
        "k=" + "v" * 8190,
    ],
)
def test_baggage_of_the_right_shape_is_kept(baggage: str) -> None:
    assert context({"baggage": baggage}) == ({"baggage": baggage}, [])


@pytest.mark.parametrize(
    "baggage",
    ["", "a", "=1", "a b=1", "a=1,", "a=b c", 'a="b"', "a=ü", "a=1\n", "a=\\", "k=" + "v" * 8191],
)
def test_any_other_baggage_is_left_out(baggage: str) -> None:
    assert context({"baggage": baggage}) == ({}, ["baggage"])


def test_only_the_three_keys_are_known() -> None:
    told = {"traceparent": PARENT, "Traceparent": PARENT, "x": "y"}
    assert context(told) == ({"traceparent": PARENT}, ["Traceparent", "x"])


@pytest.mark.parametrize("odd", [None, 1, True, b"x", [PARENT], {}])
def test_what_is_no_text_is_left_out(odd: object) -> None:
    for key in ("traceparent", "tracestate", "baggage"):
        told = {"traceparent": PARENT, key: odd}
        kept, left = context(told)
        assert key not in kept
        assert left == [key]


@given(st.dictionaries(st.sampled_from(["traceparent", "tracestate", "baggage", "x"]), st.text()))
def test_rubbish_is_left_out_and_never_raises(told: dict[str, str]) -> None:
    kept, left = context(told)
    assert set(kept) | set(left) == set(told)
    for value in kept.values():
        assert value.isascii()
        assert value.isprintable()


@pytest.mark.parametrize("text", ["a=" * 4000, "a=1;" * 2000, "a=1;p=" * 1300, "a = " * 2000])
def test_long_rubbish_takes_no_long_time(text: str) -> None:
    # As a pattern that backtracks it would take ages, and the test would not end.
    told = {"traceparent": PARENT, "tracestate": text, "baggage": text + "\n"}
    assert context(told)[0] == {"traceparent": PARENT}
