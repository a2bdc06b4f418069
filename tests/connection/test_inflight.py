"""The books of calls: every call is filed once and ends once, whatever is said about it."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mcpclient.connection.inflight import CALL, Call, Inflight
from mcpclient.ground.errors import LocalProtocolError
from mcpclient.protocol.envelope import Outgoing


class Slot:
    """A waiter that keeps what it is given; giving twice is a fault."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.used_up = False

    def done(self) -> bool:
        return self.used_up or bool(self.values)

    def set_result(self, value: Any, /) -> None:
        assert not self.done(), "a waiter is given one value"
        self.values.append(value)

    def __await__(self) -> Any:
        raise NotImplementedError


def call(id: int, *, written: bool = True, waiter: Any = None, watch: Any = None) -> Call:
    return Call(id, "tools/call", Outgoing(b"{}\n", "tools/call", written=written), waiter, watch)


def filed(books: Inflight, id: int, **options: Any) -> Call:
    made = call(id, **options)
    books.file(made)
    return made


# -- the table -----------------------------------------------------------------------------

EVENTS = ("write", "answer", "refuse", "abandon", "lose")
EXPECTED = {
    ("queued", "write"): "sent",
    ("queued", "abandon"): "abandoned",
    ("queued", "lose"): "lost",
    ("sent", "answer"): "answered",
    ("sent", "refuse"): "refused",
    ("sent", "abandon"): "abandoned",
    ("sent", "lose"): "lost",
    ("abandoned", "answer"): "abandoned",
    ("abandoned", "refuse"): "abandoned",
}


@pytest.mark.parametrize("state", list(CALL.moves))
def test_the_table_knows_each_move_and_refuses_each_other(state: str) -> None:
    for event in EVENTS:
        expected = EXPECTED.get((state, event))
        assert CALL.allows(state, event) == (expected is not None)
        if expected is not None:
            assert CALL.after(state, event) == expected
            continue
        with pytest.raises(LocalProtocolError) as caught:
            CALL.after(state, event)
        assert f"call: {event!r} is not possible in state {state!r}" in str(caught.value)


def test_the_table_has_no_other_moves() -> None:
    moves = {(state, event) for state, events in CALL.moves.items() for event in events}
    assert moves == set(EXPECTED)
    assert CALL.start == "queued"


# -- each transition, in the books ---------------------------------------------------------


def test_a_call_is_queued_until_a_byte_of_it_is_written() -> None:
    books = Inflight(10)
    made = filed(books, 1, written=False)
    assert made.state == "queued"
    made.item.written = True
    assert made.state == "sent"
    assert books.get(1) is made
    assert (len(books), books.filed) == (1, 1)
    books.check()


@pytest.mark.parametrize(("move", "state"), [("answer", "answered"), ("refuse", "refused")])
def test_an_answer_ends_the_call_it_names(move: str, state: str) -> None:
    books = Inflight(10)
    slots = [Slot(), Slot()]
    one, other = filed(books, 1, waiter=slots[0]), filed(books, 2, waiter=slots[1])
    assert books.settle(2, move, "outcome") is other
    assert slots[1].values == ["outcome"]
    assert slots[0].values == []
    assert (other.state, one.state) == (state, "sent")
    assert books.get(2) is None
    assert len(books) == 1
    books.check()


def test_an_answer_before_the_frame_is_known_to_be_written_counts() -> None:
    books = Inflight(10)
    slot = Slot()
    made = filed(books, 1, written=False, waiter=slot)
    assert books.settle(1, "answer", "early") is made
    assert slot.values == ["early"]
    assert made.state == "answered"
    books.check()


@pytest.mark.parametrize("written", [True, False], ids=["sent", "queued"])
def test_an_abandoned_call_is_ended_once(written: bool) -> None:
    books = Inflight(10)
    slot = Slot()
    made = filed(books, 1, written=written, waiter=slot)
    assert books.abandon(made, "timed out") is True
    assert books.abandon(made, "again") is False
    assert slot.values == ["timed out"]
    assert made.state == "abandoned"
    assert len(books) == 0
    books.check()


def test_an_abandoned_call_without_an_outcome_tells_nobody() -> None:
    books = Inflight(10)
    slot = Slot()
    made = filed(books, 1, waiter=slot)
    books.abandon(made)
    assert slot.values == []


def test_an_answered_call_cannot_be_abandoned() -> None:
    books = Inflight(10)
    made = filed(books, 1)
    books.settle(1, "answer", "outcome")
    assert books.abandon(made, "too late") is False
    assert made.state == "answered"
    books.check()


def test_lost_calls_each_get_an_outcome_of_their_own() -> None:
    books = Inflight(10)
    slots = [Slot() for _ in range(3)]
    calls = [filed(books, id, waiter=slots[id], written=id != 1) for id in range(3)]
    assert books.lose(lambda one: f"lost {one.id}") == 3
    assert [slot.values for slot in slots] == [["lost 0"], ["lost 1"], ["lost 2"]]
    assert {one.state for one in calls} == {"lost"}
    assert books.lose(lambda one: "nobody is left") == 0
    books.check()


def test_a_waiter_whose_task_was_cancelled_is_not_given_anything() -> None:
    books = Inflight(10)
    slot = Slot()
    filed(books, 1, waiter=slot)
    slot.used_up = True
    books.settle(1, "answer", "outcome")
    assert slot.values == []
    books.check()


def test_a_watch_is_told_instead_of_a_waiter() -> None:
    books = Inflight(10)
    told: list[Any] = []
    filed(books, 1, watch=told.append)
    made = filed(books, 2, watch=told.append)
    filed(books, 3, watch=told.append)
    filed(books, 4)  # nobody waits: no fault
    books.settle(1, "answer", "answer")
    books.abandon(made, "abandoned")
    books.lose(lambda one: "lost")
    assert told == ["answer", "abandoned", "lost"]


def test_a_watch_may_make_the_next_call() -> None:
    books = Inflight(10)
    told: list[Any] = []

    def again(outcome: Any) -> None:
        told.append(outcome)
        if books.filed < 4:
            filed(books, books.filed + 1, watch=again)

    filed(books, 1, watch=again)
    for id in range(1, 5):
        assert books.settle(id, "answer", id) is not None
        books.check()
    assert told == [1, 2, 3, 4]


# -- answers for nobody --------------------------------------------------------------------


def test_an_answer_for_an_abandoned_call_is_late_and_one_for_no_call_is_stray() -> None:
    books = Inflight(10)
    books.abandon(filed(books, 1))
    assert books.settle(1, "answer", "late") is None
    assert (books.late, books.stray) == (1, 0)
    assert books.settle(1, "answer", "again") is None
    assert (books.late, books.stray) == (1, 1), "an id is remembered until its answer came"
    assert books.settle(99, "refuse", "never asked") is None
    assert (books.late, books.stray) == (1, 2)


def test_a_second_answer_is_stray_and_changes_nothing() -> None:
    books = Inflight(10)
    slot = Slot()
    made = filed(books, 1, waiter=slot)
    books.settle(1, "answer", "first")
    assert books.settle(1, "refuse", "second") is None
    assert slot.values == ["first"]
    assert (made.state, books.stray) == ("answered", 1)


def test_the_answer_to_a_call_that_was_never_written_is_not_awaited() -> None:
    books = Inflight(10)
    books.abandon(filed(books, 1, written=False))
    books.settle(1, "answer", "impossible")
    assert (books.late, books.stray) == (0, 1)


def test_only_the_newest_abandoned_ids_are_remembered() -> None:
    books = Inflight(3)
    for id in range(10):
        books.abandon(filed(books, id))
        books.check()
    for id in range(10):
        books.settle(id, "answer", "late or stray")
    assert (books.late, books.stray) == (3, 7)


# -- deadlines -----------------------------------------------------------------------------


def test_due_are_the_open_calls_whose_time_is_over() -> None:
    books = Inflight(10)
    for id, deadline in ((1, 10.0), (2, 20.0), (3, None), (4, 15.0), (5, 10.0)):
        filed(books, id).deadline = deadline
    books.settle(5, "answer", "in time")
    assert [one.id for one in books.due(15.0)] == [1, 4]
    assert books.next_deadline() == 10.0
    for one in books.due(15.0):
        books.abandon(one)
    assert books.due(15.0) == []
    assert books.next_deadline() == 20.0
    books.settle(2, "answer", "x")
    assert books.next_deadline() is None


# -- the check -----------------------------------------------------------------------------


def test_two_calls_with_one_id_are_refused() -> None:
    books = Inflight(10)
    filed(books, 1)
    with pytest.raises(AssertionError, match="two calls in flight with id 1"):
        books.file(call(1))
    books.check()


def test_an_illegal_move_changes_nothing() -> None:
    books = Inflight(10)
    slot = Slot()
    filed(books, 1, waiter=slot)
    with pytest.raises(KeyError):
        books.settle(1, "write", "no answer")
    assert slot.values == []
    books.check()
    assert books.settle(1, "answer", "an answer") is not None
    assert slot.values == ["an answer"]


def test_the_check_finds_a_call_that_vanished() -> None:
    books = Inflight(10)
    filed(books, 1)
    filed(books, 2)
    del books._open[1]
    with pytest.raises(AssertionError, match="2 calls filed, but 1 open and 0 ended"):
        books.check()


def test_the_check_finds_an_ended_call_among_the_open_ones() -> None:
    books = Inflight(10)
    filed(books, 7).ending = "answered"
    with pytest.raises(AssertionError, match=r"ended calls still open: \[7\]"):
        books.check()


def test_iterating_sees_the_calls_of_that_moment() -> None:
    books = Inflight(10)
    for id in range(3):
        filed(books, id)
    for one in books:
        books.settle(one.id, "answer", "outcome")
    assert len(books) == 0
    assert list(books) == []


@pytest.mark.parametrize("seed", range(20))
def test_any_course_of_events_keeps_the_books(seed: int) -> None:
    chance = random.Random(seed)
    books = Inflight(5)
    slots: dict[int, Slot] = {}
    made: list[Call] = []
    for _ in range(500):
        step = chance.random()
        if step < 0.4 or not made:
            id = len(made) + 1
            slots[id] = Slot()
            made.append(filed(books, id, written=chance.random() < 0.7, waiter=slots[id]))
        elif step < 0.6:
            books.settle(chance.randrange(len(made) + 3), chance.choice(["answer", "refuse"]), "x")
        elif step < 0.75:
            books.abandon(chance.choice(made), chance.choice([None, "abandoned"]))
        elif step < 0.85:
            slots[chance.choice(made).id].used_up = True
        elif step < 0.98:
            chance.choice(made).item.written = True
        else:
            books.lose(lambda one: "lost")
        books.check()
    books.lose(lambda one: "lost")
    books.check()
    assert books.filed == len(made)
    assert all(one.ending in ("answered", "refused", "abandoned", "lost") for one in made)
    assert all(len(slot.values) <= 1 for slot in slots.values())
