"""The phases of a server: each move that is possible, and each that is not."""

from __future__ import annotations

import pytest

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.supervision.phases import PHASE

STATES = ("idle", "starting", "opening", "up", "waiting", "stopping", "failed")
EVENTS = (
    "start",
    "spawned",
    "opened",
    "retry",
    "give_up",
    "rest",
    "pause",
    "stop",
    "stopped",
)
POSSIBLE = {
    ("idle", "start"): "starting",
    ("idle", "stop"): "idle",
    ("starting", "spawned"): "opening",
    ("starting", "retry"): "waiting",
    ("starting", "give_up"): "failed",
    ("starting", "stop"): "stopping",
    ("opening", "spawned"): "opening",
    ("opening", "opened"): "up",
    ("opening", "retry"): "waiting",
    ("opening", "give_up"): "failed",
    ("opening", "stop"): "stopping",
    ("up", "retry"): "waiting",
    ("up", "give_up"): "failed",
    ("up", "rest"): "idle",
    ("up", "pause"): "stopping",
    ("up", "stop"): "stopping",
    ("waiting", "start"): "starting",
    ("waiting", "stop"): "stopping",
    ("stopping", "stopped"): "idle",
    ("stopping", "stop"): "stopping",
    ("failed", "start"): "starting",
    ("failed", "stop"): "idle",
}


@pytest.mark.parametrize("state", STATES)
def test_each_move_is_possible_or_refused_with_a_sentence(state: str) -> None:
    possible = ", ".join(PHASE.moves[state])
    for event in EVENTS:
        expected = POSSIBLE.get((state, event))
        assert PHASE.allows(state, event) == (expected is not None)
        if expected is not None:
            assert PHASE.after(state, event) == expected
            continue
        with pytest.raises(LocalProtocolError) as caught:
            PHASE.after(state, event)
        assert str(caught.value) == (
            f"server: {event!r} is not possible in state {state!r} (possible: {possible})"
        )


def test_the_table_knows_no_other_states_and_events() -> None:
    assert tuple(PHASE.moves) == STATES
    moves = {(state, event) for state, events in PHASE.moves.items() for event in events}
    assert moves == set(POSSIBLE)
    assert PHASE.start == "idle"


@pytest.mark.parametrize("state", STATES)
def test_a_stop_wins_in_every_phase(state: str) -> None:
    assert PHASE.after(state, "stop") in ("idle", "stopping")


@pytest.mark.parametrize("state", STATES)
def test_every_phase_leads_to_idle(state: str) -> None:
    reached, todo = {state}, [state]
    while todo:
        for following in PHASE.moves[todo.pop()].values():
            if following not in reached:
                reached.add(following)
                todo.append(following)
    assert "idle" in reached
