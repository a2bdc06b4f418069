"""Delivery: one order of arrival, within a budget, on the thread that ticks; and the wake-up."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from typing import Any

import anyio
import pytest

from mcpclient import Exit, Refuse, TickReport, loops
from mcpclient.handles import Handle, Manager, Server
from tests.conftest import eventually, spec
from tests.handles.conftest import ticking, until

GOOD = spec("good_handshake")
UPDATED = "notifications/resources/updated"
SAID = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
ASK = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}


def arrived(handle: Handle[Any]) -> None:
    assert handle.wait(10)


def test_nothing_is_delivered_but_in_a_tick_and_on_its_thread(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    told: list[int] = []
    host.on_notification(UPDATED, lambda server, params: told.append(threading.get_ident()))
    handle = one.invoke_tool("notify", {"n": 2, "uri": "test://a"})
    handle.add_done_callback(lambda handle: told.append(threading.get_ident()))
    arrived(handle)
    assert told == []
    assert host.tick() == TickReport(delivered=3, left=0, dropped=0, failed=0)
    assert told == [threading.get_ident()] * 3


def test_what_came_first_is_delivered_first_notices_and_answers_alike(host: Manager) -> None:
    # Each answer comes in one write with a notice before it and one after it.
    one = host.add("one", spec("two_in_one", "notifications/vendor")).result()
    told: list[Any] = []
    one.start().result()
    host.on_notification("notifications/vendor", lambda server, params: told.append("notice"))
    for n in range(20):
        handle = one.invoke_tool("echo", {"text": str(n)})
        handle.add_done_callback(lambda handle: told.append(handle.result().text))
    ticking(host, lambda: len(told) == 60)
    assert told == [word for n in range(20) for word in ("notice", str(n), "notice")]


def test_answers_and_notices_of_many_calls_keep_the_order_of_the_wire(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    told: list[Any] = []
    host.on_notification(UPDATED, lambda server, params: told.append("notice"))
    one.start().result()
    for n in range(50):
        handle = one.invoke_tool("notify", {"n": 1, "uri": "test://a"})
        handle.add_done_callback(lambda handle, n=n: told.append(n))  # type: ignore[misc]
    ticking(host, lambda: len(told) == 100)
    assert told == [word for n in range(50) for word in ("notice", n)]


def test_a_tick_keeps_to_its_number_and_reports_what_is_left(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    told: list[Any] = []
    host.on_notification(UPDATED, lambda server, params: told.append(params))
    one.invoke_tool("notify", {"n": 150, "uri": "test://a"}).result()
    assert host.tick(max_items=0).left == 150
    assert host.tick(max_items=30, budget=None).left == 120
    assert host.tick(budget=None) == TickReport(delivered=100, left=20, dropped=0, failed=0)
    assert host.tick(max_items=None, budget=None).left == 0
    assert len(told) == 150


def test_a_tick_keeps_to_its_time_and_always_delivers_one(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    told: list[Any] = []

    def slow(server: Server, params: Any) -> None:
        time.sleep(0.003)
        told.append(params)

    host.on_notification(UPDATED, slow)
    one.invoke_tool("notify", {"n": 3, "uri": "test://a"}).result()
    for n in (2, 1, 0):
        assert host.tick() == TickReport(delivered=1, left=n, dropped=0, failed=0)
    assert host.tick().delivered == 0


def test_a_full_inbox_drops_the_oldest_and_counts(host: Manager) -> None:
    from mcpclient import Limits

    one = host.add("one", spec("good_handshake", limits=Limits(inbox=10))).result()
    told: list[Any] = []
    host.on_notification("notifications/message", lambda server, params: told.append(params))
    one.set_log_level("debug").result()
    one.invoke_tool("notify", {"n": 25, "log": "info"}).result()
    report = host.tick()
    assert (report.delivered, report.left) == (10, 0)
    assert report.dropped + one.status().dropped >= 15
    assert len(told) == 10


def test_handlers_that_raise_are_logged_and_the_others_go_on(
    host: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    one = host.add("one", GOOD).result()
    told: list[Any] = []

    def wrong(*facts: Any) -> None:
        raise ValueError("of the user's own")

    host.on_notification(UPDATED, wrong)
    host.on_notification(UPDATED, lambda server, params: told.append("notice"))
    handle = one.invoke_tool("notify", {"uri": "test://a"})
    handle.add_done_callback(wrong)
    handle.add_done_callback(lambda handle: told.append("answer"))
    arrived(handle)
    assert host.tick() == TickReport(delivered=2, left=0, dropped=0, failed=2)
    assert told == ["notice", "answer"]
    assert caplog.text.count("ValueError: of the user's own") == 2


def test_registering_removing_and_ticking_in_handlers_is_safe(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    told: list[str] = []

    def second(server: Server, params: Any) -> None:
        told.append("second")

    def first(server: Server, params: Any) -> None:
        told.append("first")
        host.off_notification(token)
        if len(told) == 1:
            host.on_notification(UPDATED, second)
            host.tick()  # goes on with the next one, in which the new one is called

    host.on_notification(UPDATED, lambda server, params: None)
    token = host.on_notification(UPDATED, first)
    one.invoke_tool("notify", {"n": 3, "uri": "test://a"}).result()
    host.tick()
    assert told == ["first", "second", "second"]
    assert host.tick().left == 0


def test_callbacks_are_called_once_each_however_late_and_always_in_a_tick(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    told: list[str] = []
    handle = one.invoke_tool("echo", {"text": "hi"})

    def again(handle: Handle[Any]) -> None:
        told.append("a")
        handle.add_done_callback(lambda handle: told.append("later"))

    handle.add_done_callback(again)
    arrived(handle)
    handle.add_done_callback(lambda handle: told.append("b"))
    assert told == []
    host.tick(max_items=1)
    assert told == ["a", "b"]
    host.tick(max_items=1)
    assert told == ["a", "b", "later"]
    assert handle.result().text == "hi"
    handle.add_done_callback(lambda handle: told.append("last"))
    assert told[-1] == "later"
    host.tick()
    assert told[-1] == "last"
    assert host.tick() == TickReport(delivered=0, left=0, dropped=0, failed=0)


def test_a_callback_may_begin_the_next_call(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    texts: list[str] = []

    def next_one(handle: Handle[Any]) -> Any:
        texts.append(handle.result().text)
        if len(texts) < 5:
            following = one.invoke_tool("echo", {"text": str(len(texts))})
            following.add_done_callback(next_one)
            return following  # as a lambda would; it is nobody's to await
        return None

    one.invoke_tool("echo", {"text": "0"}).add_done_callback(next_one)
    ticking(host, lambda: len(texts) == 5)
    assert texts == list("01234")


def test_progress_is_told_in_ticks_before_the_answer(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    told: list[Any] = []
    handle = one.invoke_tool("progress", {"n": 3}, on_progress=lambda *facts: told.append(facts[0]))
    handle.add_done_callback(lambda handle: told.append("done"))
    arrived(handle)
    assert told == []
    host.tick()
    assert told == [1, 2, 3, "done"]


def test_progress_that_is_not_taken_is_bounded_and_the_newest_counts(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    told: list[Any] = []
    one.invoke_tool(
        "progress", {"n": 500}, on_progress=lambda *facts: told.append(facts[0])
    ).result()
    assert host.tick(None, None) == TickReport(delivered=100, left=0, dropped=0, failed=0)
    assert told == list(range(401, 501))


def test_what_waits_of_a_server_that_was_removed_is_dropped(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    told: list[Any] = []
    host.on_notification(UPDATED, lambda server, params: told.append(server))
    one.invoke_tool("notify", {"n": 3, "uri": "test://a"}).result()
    host.remove("one").result()
    again = host.add("one", GOOD).result()
    assert again is not one
    again.invoke_tool("notify", {"uri": "test://a"}).result()
    host.tick()
    assert told == [again]


# -- what servers ask ----------------------------------------------------------------------


def test_asks_are_answered_in_a_tick_at_once_or_later() -> None:
    asked: list[Any] = []
    later: Future[Any] = Future()

    def sample(server: Server, params: Any) -> Any:
        asked.append((threading.get_ident(), server.name))
        return SAID if len(asked) == 1 else later

    with Manager({"asks": spec("asks_handshake")}, on_sample=sample) as manager:
        asks = manager["asks"]
        first = asks.invoke_tool("ask", ASK)
        ticking(manager, lambda: asked)
        assert "hi" in first.result().text
        second = asks.invoke_tool("ask", ASK)
        ticking(manager, lambda: len(asked) == 2)
        with pytest.raises(TimeoutError):
            second.result(timeout=0.05)
        later.set_result({**SAID, "model": "later"})  # from any thread
        assert "later" in second.result().text
    assert asked == [(threading.get_ident(), "asks")] * 2


def test_an_ask_that_is_refused_fails_or_is_cancelled_is_told_to_the_server() -> None:
    cancelled: Future[Any] = Future()
    cancelled.cancel()
    cancelled.set_running_or_notify_cancel()
    answers = iter(["refuse", "fail", cancelled])

    def sample(server: Server, params: Any) -> Any:
        match next(answers):
            case "refuse":
                raise Refuse("not for you")
            case "fail":
                raise ValueError("of the user's own")
            case answer:
                return answer

    with Manager({"asks": spec("asks_handshake")}, on_sample=sample) as manager:
        texts = []
        for _ in range(3):
            handle = manager["asks"].invoke_tool("ask", ASK)
            ticking(manager, handle.done)
            texts.append(handle.result().text)
    assert "not for you" in texts[0]
    assert '"error"' in texts[1]
    assert '"error"' in texts[2]


async def test_async_handlers_run_in_the_loop_that_ticks() -> None:
    loop = loops.current()
    told: list[Any] = []

    async def sample(server: Server, params: Any) -> Any:
        await server.list_tools()
        await anyio.lowlevel.checkpoint()
        told.append(threading.get_ident())
        return SAID

    async def notice(server: Server, params: Any) -> None:
        await anyio.lowlevel.checkpoint()
        told.append("notice")

    servers = {"asks": spec("asks_handshake"), "one": GOOD}
    with Manager(servers, on_sample=sample) as manager:

        def tick() -> None:
            manager.tick()

        manager.set_wakeup(lambda: loop.from_thread(tick))
        manager.on_notification(UPDATED, notice)
        assert "hi" in (await manager["asks"].invoke_tool("ask", ASK)).text
        await manager["one"].invoke_tool("notify", {"uri": "test://a"})
        await eventually(lambda: "notice" in told)
        await manager.close()
    assert told == [threading.get_ident(), "notice"]


def test_async_handlers_run_in_the_managers_own_loop_where_there_is_no_other(
    host: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    one = host.add("one", GOOD).result()
    told: list[Any] = []

    async def notice(server: Server, params: Any) -> None:
        assert (await server.invoke_tool("echo", {"text": "hi"})).text == "hi"
        told.append(threading.current_thread().name)
        raise ValueError("of the user's own")

    host.on_notification(UPDATED, notice)
    one.invoke_tool("notify", {"uri": "test://a"}).result()
    host.tick()
    until(lambda: "of the user's own" in caplog.text)
    assert told == ["mcpclient"]


# -- the wake-up ---------------------------------------------------------------------------


def test_the_wake_up_comes_once_and_again_if_a_tick_left_something(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    wakes: list[str] = []
    host.on_notification(UPDATED, lambda server, params: None)
    host.set_wakeup(lambda: wakes.append(threading.current_thread().name))
    one.invoke_tool("notify", {"n": 5, "uri": "test://a"}).result()
    assert wakes == ["mcpclient"]
    host.tick(max_items=2)
    assert wakes == ["mcpclient", "MainThread"]
    host.tick()
    assert len(wakes) == 2
    handle = one.invoke_tool("echo", {"text": "hi"})
    handle.result()
    assert len(wakes) == 2  # nobody waits for a tick
    handle.add_done_callback(lambda handle: None)
    assert len(wakes) == 3
    host.set_wakeup(None)
    host.set_wakeup(lambda: wakes.append("at once"))
    assert wakes[-1] == "at once"
    host.tick()


def test_no_lock_is_held_in_a_wake_up_and_its_faults_are_logged(
    host: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    one = host.add("one", GOOD).result()
    handle = one.invoke_tool("slow", {"seconds": 0.1})
    looked: list[bool] = []

    def wake() -> None:
        # Another thread can use all of it meanwhile.
        looker = threading.Thread(target=lambda: looked.append(handle.done()))
        looker.start()
        looker.join(10)
        raise ValueError("of the user's own")

    handle.add_done_callback(lambda handle: None)
    host.set_wakeup(wake)
    until(lambda: "the wake-up function raised" in caplog.text)
    assert looked == [True]
    assert one.invoke_tool("echo", {"text": "on"}).result().text == "on"
    host.tick()


def test_states_are_told_in_ticks_in_their_order(host: Manager) -> None:
    told: list[Any] = []
    host.on_state(lambda server, state: told.append(state))
    host.on_incident(lambda server, incident: told.append(incident.exit))
    one = host.add("one", GOOD).result()
    one.start().result()
    one.invoke_tool("exit", {"code": 4}).exception()
    one.wait_ready().result()
    ticking(host, lambda: told.count("up") == 2)
    assert told == [
        "starting",
        "opening",
        "up",
        Exit(code=4),
        "waiting",
        "starting",
        "opening",
        "up",
    ]
