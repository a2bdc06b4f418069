"""The registry, the bounded inbox and the tick: who is told what, in which order, how much."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from mcpclient import TickReport, Token
from mcpclient.features.notifications import Handlers, Inbox, tick

A, B = "notifications/a", "notifications/b"


class Desk:
    """Handlers, an inbox or more, and a list of what was told."""

    def __init__(self, limit: int = 1000) -> None:
        self.handlers = Handlers()
        self.inbox = Inbox("server", self.handlers, limit)
        self.other = Inbox("other", self.handlers, limit)
        self.told: list[Any] = []
        self.spawned: list[Any] = []

    def on(self, method: str, name: str) -> Token:
        return self.handlers.add(method, lambda server, params: self.told.append((name, params)))

    def off(self, token: Token) -> None:
        if self.handlers.remove(token):
            self.inbox.drop(token.method)

    def put(self, method: str, *params: Any) -> None:
        for one in params:
            self.inbox.put(method, one)

    def tick(self, max_items: int | None = None, budget: float | None = None) -> TickReport:
        inboxes = [self.inbox, self.other]
        return tick(inboxes, max_items, budget, self.spawned.append)


# -- the registry --------------------------------------------------------------------------


def test_all_handlers_of_one_notification_run_before_the_next_one() -> None:
    desk = Desk()
    desk.on(A, "first")
    desk.on(A, "second")
    desk.put(A, 1, 2)
    assert desk.tick() == TickReport(delivered=2, left=0, dropped=0, failed=0)
    assert desk.told == [("first", 1), ("second", 1), ("first", 2), ("second", 2)]


def test_the_same_function_registered_twice_is_called_twice_and_removed_once() -> None:
    desk = Desk()
    calls: list[Any] = []

    def handler(server: Any, params: Any) -> None:
        calls.append((server, params))

    first = desk.handlers.add(A, handler)
    second = desk.handlers.add(A, handler)
    assert first != second
    desk.put(A, 1)
    desk.tick()
    assert calls == [("server", 1), ("server", 1)]
    desk.off(first)
    desk.off(first)  # twice is no fault, and removes nothing else
    desk.put(A, 2)
    desk.tick()
    assert calls[2:] == [("server", 2)]


@pytest.mark.parametrize("other", ["notifications/A", "notifications/a/", "a", "", "notifications"])
def test_only_the_exact_method_is_handled(other: str) -> None:
    desk = Desk()
    desk.on(A, "a")
    assert desk.inbox.put(other, 1) is False
    assert len(desk.inbox) == 0
    desk.tick()
    assert desk.told == []


def test_a_method_nobody_handles_is_not_queued() -> None:
    desk = Desk()
    assert desk.inbox.put(A, 1) is False
    desk.on(A, "late")  # the first handler subscribes: what came before is not for it
    assert desk.tick().delivered == 0
    assert desk.inbox.put(A, 2) is True
    desk.tick()
    assert desk.told == [("late", 2)]


def test_removing_the_last_handler_drops_what_is_queued_of_its_method() -> None:
    desk = Desk()
    first, second = desk.on(A, "first"), desk.on(A, "second")
    desk.on(B, "b")
    for number in range(3):
        desk.put(A, number)
        desk.put(B, number)
    desk.off(first)
    assert len(desk.inbox) == 6
    desk.off(second)
    assert len(desk.inbox) == 3
    desk.on(A, "again")
    assert desk.tick() == TickReport(delivered=3, left=0, dropped=0, failed=0)
    assert desk.told == [("b", 0), ("b", 1), ("b", 2)]


def test_an_unknown_token_removes_nothing() -> None:
    desk = Desk()
    token = desk.on(A, "a")
    desk.off(Token(A, token.number + 1))
    desk.off(Token(B, token.number))
    desk.put(A, 1)
    desk.tick()
    assert desk.told == [("a", 1)]


# -- order ---------------------------------------------------------------------------------


def test_the_order_of_arrival_holds_over_methods_and_servers() -> None:
    desk = Desk()
    for method in (A, B):
        desk.handlers.add(method, lambda server, params: desk.told.append((server, params)))
    desk.inbox.put(A, 1)
    desk.other.put(A, 2)
    desk.inbox.put(B, 3)
    desk.inbox.put(A, 4)
    desk.other.put(B, 5)
    desk.inbox.put(B, 6)
    desk.tick()
    assert desk.told == [
        ("server", 1),
        ("other", 2),
        ("server", 3),
        ("server", 4),
        ("other", 5),
        ("server", 6),
    ]


def test_params_are_decoded_when_their_turn_comes(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk()
    desk.on(A, "a")
    texts = [b'{"x":[1]}', b"", b"null", b"[1,2]", b'{"x":', b'"\xff"']
    desk.put(A, *map(Raw, texts))
    assert desk.tick().delivered == 6
    # Broken ones are told as None, with a line in the log; bad UTF-8 alone spoils nothing.
    assert [params for _, params in desk.told] == [{"x": [1]}, None, None, [1, 2], None, "\ufffd"]
    assert caplog.text.count("the params of notifications/a cannot be read") == 1


# -- changes while it is delivered ---------------------------------------------------------


def test_a_handler_may_remove_itself() -> None:
    desk = Desk()
    tokens: list[Token] = []

    def once(server: Any, params: Any) -> None:
        desk.told.append(("once", params))
        desk.off(tokens[0])

    tokens.append(desk.handlers.add(A, once))
    desk.on(A, "always")
    desk.put(A, 1, 2)
    desk.tick()
    assert desk.told == [("once", 1), ("always", 1), ("always", 2)]


def test_a_handler_removed_by_one_before_it_is_not_called_again() -> None:
    desk = Desk()
    tokens: list[Token] = []

    def remover(server: Any, params: Any) -> None:
        desk.told.append(("remover", params))
        desk.off(tokens[0])

    desk.handlers.add(A, remover)
    tokens.append(desk.on(A, "removed"))
    desk.on(A, "after")
    desk.put(A, 1, 2)
    desk.tick()
    assert desk.told == [("remover", 1), ("after", 1), ("remover", 2), ("after", 2)]


def test_a_handler_added_by_another_first_sees_the_next_notification() -> None:
    desk = Desk()

    def adder(server: Any, params: Any) -> None:
        desk.told.append(("adder", params))
        if params == 1:
            desk.on(A, "added")
            desk.on(B, "other")

    desk.handlers.add(A, adder)
    desk.put(A, 1, 2)
    desk.put(B, 3)  # came before anybody wanted it
    desk.tick()
    assert desk.told == [("adder", 1), ("adder", 2), ("added", 2)]


def test_the_last_handler_that_removes_itself_drops_what_is_queued() -> None:
    desk = Desk()
    tokens: list[Token] = []

    def once(server: Any, params: Any) -> None:
        desk.told.append(("once", params))
        desk.off(tokens[0])

    tokens.append(desk.handlers.add(A, once))
    desk.on(B, "b")
    desk.put(A, 1, 2)
    desk.put(B, 3)
    assert desk.tick().delivered == 2
    assert desk.told == [("once", 1), ("b", 3)]


def test_a_handler_replaced_within_a_delivery_is_not_called_for_it() -> None:
    desk = Desk()
    tokens: list[Token] = []

    def replacer(server: Any, params: Any) -> None:
        desk.off(tokens.pop())
        tokens.append(desk.on(A, f"new {params}"))

    desk.handlers.add(A, replacer)
    tokens.append(desk.on(A, "old"))
    desk.put(A, 1, 2)
    desk.tick()
    # The one of the first is gone before its turn in the second, and so is each after it.
    assert desk.told == []


def test_a_tick_inside_a_handler_delivers_the_rest_once_and_in_order() -> None:
    desk = Desk()

    def nested(server: Any, params: Any) -> None:
        desk.told.append(params)
        if params == 1:
            assert desk.tick().delivered == 2

    desk.handlers.add(A, nested)
    desk.put(A, 1, 2, 3)
    assert desk.tick() == TickReport(delivered=1, left=0, dropped=0, failed=0)
    assert desk.told == [1, 2, 3]


def test_a_notification_that_arrives_while_it_ticks_is_delivered_last() -> None:
    desk = Desk()

    def echo(server: Any, params: Any) -> None:
        desk.told.append(params)
        if params < 3:
            desk.put(A, params + 10)

    desk.handlers.add(A, echo)
    desk.put(A, 1, 2, 3)
    assert desk.tick().delivered == 5
    assert desk.told == [1, 2, 3, 11, 12]


# -- what goes wrong -----------------------------------------------------------------------


def test_a_handler_that_raises_is_reported_and_the_others_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk()

    def broken(server: Any, params: Any) -> None:
        raise KeyError("the handler is broken")

    desk.handlers.add(A, broken)
    desk.on(A, "after")
    desk.handlers.add(A, broken)
    desk.put(A, 1, 2)
    assert desk.tick() == TickReport(delivered=2, left=0, dropped=0, failed=4)
    assert desk.told == [("after", 1), ("after", 2)]
    assert caplog.text.count("a handler of notifications/a raised") == 4
    assert "KeyError: 'the handler is broken'" in caplog.text
    assert desk.tick().failed == 0  # it tells of one tick


def test_what_an_asynchronous_handler_returns_is_handed_on_to_be_run() -> None:
    desk = Desk()

    async def handler(server: Any, params: Any) -> None:
        desk.told.append(params)

    desk.handlers.add(A, handler)
    desk.put(A, 1, 2)
    assert desk.tick().delivered == 2
    assert desk.told == []
    for one in desk.spawned:
        with pytest.raises(StopIteration):
            one.send(None)
    assert desk.told == [1, 2]


# -- bounds --------------------------------------------------------------------------------


def test_a_full_inbox_drops_the_oldest_and_counts_them() -> None:
    desk = Desk(limit=3)
    desk.on(A, "a")
    desk.put(A, 1, 2, 3, 4, 5)
    assert (len(desk.inbox), desk.inbox.dropped) == (3, 2)
    assert desk.tick() == TickReport(delivered=3, left=0, dropped=2, failed=0)
    assert [params for _, params in desk.told] == [3, 4, 5]
    desk.put(A, 6)
    assert desk.tick() == TickReport(delivered=1, left=0, dropped=2, failed=0)


def test_a_tick_delivers_at_most_so_many() -> None:
    desk = Desk()
    desk.on(A, "a")
    desk.put(A, *range(5))
    assert desk.tick(max_items=2) == TickReport(delivered=2, left=3, dropped=0, failed=0)
    assert desk.tick(max_items=0) == TickReport(delivered=0, left=3, dropped=0, failed=0)
    assert desk.tick(max_items=100) == TickReport(delivered=3, left=0, dropped=0, failed=0)
    assert desk.tick(max_items=1) == TickReport(delivered=0, left=0, dropped=0, failed=0)
    assert [params for _, params in desk.told] == [0, 1, 2, 3, 4]


def test_a_tick_begins_none_after_its_budget_but_always_delivers_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("mcpclient.features.notifications.time.monotonic", lambda: now)
    desk = Desk()

    def slow(server: Any, params: Any) -> None:
        nonlocal now
        now += 0.4
        desk.told.append(params)

    desk.handlers.add(A, slow)
    desk.put(A, *range(6))
    assert desk.tick(budget=1.0) == TickReport(delivered=3, left=3, dropped=0, failed=0)
    assert desk.tick(budget=0.0) == TickReport(delivered=1, left=2, dropped=0, failed=0)
    assert desk.tick(budget=1.0, max_items=1) == TickReport(
        delivered=1, left=1, dropped=0, failed=0
    )
    assert desk.tick(budget=None) == TickReport(delivered=1, left=0, dropped=0, failed=0)
    assert desk.told == [0, 1, 2, 3, 4, 5]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 1), st.sampled_from([A, B])), max_size=40),
    st.integers(1, 8),
    st.lists(st.integers(0, 5), max_size=5),
)
def test_however_it_is_ticked_all_that_was_not_dropped_is_delivered_once_and_in_order(
    arrivals: list[tuple[int, str]], limit: int, ticks: list[int]
) -> None:
    desk = Desk(limit=limit)
    inboxes = (desk.inbox, desk.other)
    for method in (A, B):
        desk.handlers.add(method, lambda server, params: desk.told.append(params))
    for number, (which, method) in enumerate(arrivals):
        inboxes[which].put(method, (which, number))
    kept = [
        (which, number)
        for number, (which, _) in enumerate(arrivals)
        if sum(1 for later, _ in arrivals[number:] if later == which) <= limit
    ]
    for most in ticks:
        assert desk.tick(max_items=most).delivered <= most
    report = desk.tick()
    assert desk.told == kept
    assert (report.left, report.dropped) == (0, len(arrivals) - len(kept))
