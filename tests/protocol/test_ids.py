"""Which of our requests an answer's id means: any number in another dress, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from mcpclient.protocol.ids import meant
from tests.protocol import quick


@pytest.mark.parametrize(
    ("id", "number"),
    [
        (1, 1),
        (0, 0),
        (-1, -1),
        (2**80, 2**80),
        (1.0, 1),
        (3e0, 3),
        ("1", 1),
        ("1.0", 1),
        ("1.000", 1),
        (" 12\t", 12),
        ("007", 7),
        ("999999999999999999", 999999999999999999),
    ],
)
def test_a_number_in_another_dress_means_the_number(id: object, number: int) -> None:
    found = meant(id)
    assert found == number
    assert type(found) is int


@pytest.mark.parametrize(
    "id",
    [
        True,
        False,
        None,
        UNSET,
        1.5,
        float("nan"),
        float("inf"),
        "",
        "null",
        "one",
        "1.5",
        "1.",
        ".0",
        "1e0",
        "+1",
        "-1",
        "0x1",
        "1_0",
        "1 1",
        "1.0.0",
        "1\n2",
        "١",
        "1234567890123456789",
        [1],
        {"id": 1},
        b"1",
    ],
)
def test_anything_else_means_no_request(id: Any) -> None:
    assert meant(id) is None


@quick
@given(st.integers(min_value=1, max_value=10**17))
def test_every_dress_of_a_number_means_it(number: int) -> None:
    assert meant(number) == meant(str(number)) == meant(f"{number}.0") == number
    if number < 2**53:
        assert meant(float(number)) == number


@quick
@given(st.text() | st.floats() | st.binary() | st.lists(st.integers()))
def test_whatever_comes_as_an_id_is_a_number_or_nothing(id: Any) -> None:
    found = meant(id)
    assert found is None or type(found) is int
