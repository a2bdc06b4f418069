"""Waits and buffers have numbers, the documented ones, and refuse senseless ones by name."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from mcpclient.ground.options import Limits, Timeouts

WAITS = Timeouts.__struct_fields__
BUFFERS = Limits.__struct_fields__


def test_the_defaults_are_those_of_the_documentation() -> None:
    waits = msgspec.structs.asdict(Timeouts())
    assert (
        waits.items()
        >= {
            "open": 30.0,
            "probe": 5.0,
            "call": 60.0,
            "call_max": 600.0,
            "write": 10.0,
            "eof": 2.0,
            "term": 2.0,
        }.items()
    )
    buffers = msgspec.structs.asdict(Limits())
    assert (
        buffers.items()
        >= {
            "frame": 64 * 1024 * 1024,
            "stderr": 64 * 1024,
            "inbox": 1000,
            "retired": 1000,
        }.items()
    )
    assert {"noise", "cache_entries", "cache_bytes"} <= buffers.keys()


def test_every_wait_and_every_buffer_is_bounded_by_default() -> None:
    assert all(value > 0 for value in msgspec.structs.asdict(Timeouts()).values())
    assert all(value > 0 for value in msgspec.structs.asdict(Limits()).values())


@pytest.mark.parametrize("name", WAITS)
@pytest.mark.parametrize("value", [0, -1, -0.5, float("nan")])
def test_a_wait_that_is_not_above_zero_is_refused_by_name(name: str, value: float) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(ValueError) as caught:
        Timeouts(**options)
    assert str(caught.value) == f"Timeouts.{name} must be above 0 seconds, not {value!r}"


@pytest.mark.parametrize("name", BUFFERS)
@pytest.mark.parametrize("value", [0, -5])
def test_a_buffer_that_holds_nothing_is_refused_by_name(name: str, value: int) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(ValueError) as caught:
        Limits(**options)
    assert str(caught.value) == f"Limits.{name} must be at least 1, not {value!r}"


def test_none_means_no_limit() -> None:
    waits = Timeouts(open=None, call=None, call_max=None)
    assert (waits.open, waits.call, waits.call_max) == (None, None, None)
    assert Limits(frame=None, outbox=None).frame is None


def test_the_least_values_are_allowed() -> None:
    options: dict[str, Any] = dict.fromkeys(WAITS, 0.001)
    assert Timeouts(**options).eof == 0.001
    counts: dict[str, Any] = dict.fromkeys(BUFFERS, 1)
    assert Limits(**counts).inbox == 1


@pytest.mark.parametrize("kind", [Timeouts, Limits])
def test_options_are_frozen_and_keyword_only(kind: type[Any]) -> None:
    with pytest.raises(TypeError):
        kind(1)
    options = kind()
    with pytest.raises(AttributeError):
        setattr(options, kind.__struct_fields__[0], 1)
    assert options == kind()
