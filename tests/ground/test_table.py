"""A table of states: moves lead on, and an illegal one changes nothing and says a sentence."""

from __future__ import annotations

import pytest

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.ground.table import Table

DOOR = Table(
    "door",
    {
        "shut": {"open": "ajar", "lock": "locked"},
        "ajar": {"shut": "shut", "burn": "gone"},
        "locked": {"unlock": "shut"},
        "gone": {},
    },
)


def test_the_first_state_is_the_start() -> None:
    assert DOOR.start == "shut"


def test_every_move_leads_where_the_table_says() -> None:
    for state, moves in DOOR.moves.items():
        for event, following in moves.items():
            assert DOOR.allows(state, event)
            assert DOOR.after(state, event) == following


def test_an_illegal_move_says_what_is_possible_instead() -> None:
    assert not DOOR.allows("shut", "burn")
    with pytest.raises(LocalProtocolError) as caught:
        DOOR.after("shut", "burn")
    assert str(caught.value) == (
        "door: 'burn' is not possible in state 'shut' (possible: open, lock)"
    )


def test_an_end_says_that_it_is_one() -> None:
    with pytest.raises(LocalProtocolError) as caught:
        DOOR.after("gone", "open")
    assert str(caught.value) == (
        "door: 'open' is not possible in state 'gone' (possible: nothing, it is the end)"
    )
    assert not DOOR.allows("gone", "open")


def test_an_unknown_state_is_a_mistake_in_the_code_and_not_of_the_user() -> None:
    with pytest.raises(KeyError):
        DOOR.after("elsewhere", "open")
