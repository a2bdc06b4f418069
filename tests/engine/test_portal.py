"""The thread with a loop of its own: its order, its faults, its end."""

from __future__ import annotations

import contextvars
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from mcpclient import CallCancelled, LocalProtocolError, UseAfterClose
from mcpclient.engine.calls import Call
from mcpclient.engine.portal import Portal


class Resource:
    """What a portal opens and closes."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.events: list[str] = []
        self.fault = fault
        self.threads: set[int] = set()

    async def open(self) -> None:
        self.threads.add(threading.get_ident())
        if self.fault is not None:
            raise self.fault
        self.events.append("open")

    async def close(self) -> None:
        self.threads.add(threading.get_ident())
        self.events.append("close")

    async def note(self, event: str) -> str:
        self.events.append(event)
        return event


def opened(resource: Resource) -> Portal:
    portal = Portal(resource.open, resource.close)
    portal.open().wait()
    return portal


def waiting_for(gate: threading.Event) -> Callable[[], None]:
    def wait() -> None:
        gate.wait()

    return wait


def closed(portal: Portal) -> None:
    portal.close().wait()
    portal.join()


def test_all_of_it_happens_on_one_thread_that_is_not_ours() -> None:
    resource = Resource()
    portal = opened(resource)
    assert portal.run(lambda: resource.note("work")) == "work"
    closed(portal)
    assert resource.events == ["open", "work", "close"]
    assert len(resource.threads) == 1
    assert threading.get_ident() not in resource.threads


def test_what_is_given_first_is_begun_first() -> None:
    resource = Resource()
    portal = Portal(resource.open, resource.close)
    opening = portal.open()
    calls = []
    for number in range(100):
        portal.post(lambda number=number: resource.events.append(f"post {number}"))  # type: ignore[misc]
        call = Call(portal, lambda number=number: resource.note(f"call {number}"))  # type: ignore[misc]
        portal.submit(call)
        calls.append(call)
    opening.wait()
    for call in calls:
        assert call.wait(10)
    closed(portal)
    begun = resource.events[1:-1]
    assert [one for one in begun if "post" in one] == [f"post {n}" for n in range(100)]
    assert [one for one in begun if "call" in one] == [f"call {n}" for n in range(100)]


def test_many_pieces_of_work_wake_the_loop_once() -> None:
    class Counting(Portal):
        drained = 0

        def _drain(self) -> None:
            self.drained += 1
            super()._drain()

    resource = Resource()
    portal = Counting(resource.open, resource.close)
    portal.open().wait()
    gate = threading.Event()
    busy = threading.Event()

    def hold() -> None:
        busy.set()
        gate.wait()

    portal.post(hold)
    busy.wait()
    before = portal.drained
    for number in range(1000):
        portal.post(lambda number=number: resource.events.append(str(number)))  # type: ignore[misc]
    gate.set()
    portal.run(lambda: resource.note("after"))
    assert portal.drained - before <= 3
    assert resource.events[1:] == [*map(str, range(1000)), "after"]
    closed(portal)


def test_no_work_is_overlooked_whenever_it_comes_while_the_loop_falls_asleep_and_wakes() -> None:
    portal = opened(Resource())
    done: list[int] = []

    async def work() -> int:
        return 1

    def give(number: int) -> None:
        chance = random.Random(number)
        for _ in range(500):
            done.append(portal.run(work))
            if chance.random() < 0.3:
                time.sleep(chance.random() * 0.0005)

    threads = [threading.Thread(target=give, args=[n], daemon=True) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)  # for ever, if one was
    assert len(done) == 1500
    closed(portal)


def test_a_fault_of_the_work_is_raised_where_it_is_waited_for() -> None:
    portal = opened(Resource())

    async def fail() -> None:
        raise ValueError("no good")

    with pytest.raises(ValueError, match="no good"):
        portal.run(fail)
    closed(portal)


def test_a_fault_of_the_opening_is_told_to_who_opens_and_to_all_who_call() -> None:
    resource = Resource(UseAfterClose("cannot be opened"))
    portal = Portal(resource.open, resource.close)
    opening = portal.open()
    early = Call(portal, lambda: resource.note("never"))
    portal.submit(early)
    assert opening.wait(10)
    for call in (opening, early):
        call.wait(10)
        with pytest.raises(UseAfterClose, match="cannot be opened"):
            call.take()
    with pytest.raises(UseAfterClose, match="cannot be opened"):
        portal.run(lambda: resource.note("never"))
    closed(portal)
    assert resource.events == []


def test_what_was_never_opened_or_is_closed_refuses_with_the_reason() -> None:
    resource = Resource()
    portal = Portal(resource.open, resource.close)
    with pytest.raises(UseAfterClose, match=r"the manager is not open: use `with Manager\(...\)`"):
        portal.run(lambda: resource.note("never"))
    portal.open().wait()
    closed(portal)
    closed(portal)  # twice is no fault
    with pytest.raises(UseAfterClose, match="the manager is closed"):
        portal.run(lambda: resource.note("never"))
    with pytest.raises(UseAfterClose, match="make a new one"):
        portal.open()
    never = Portal(resource.open, resource.close)
    closed(never)
    with pytest.raises(UseAfterClose, match="the manager is closed"):
        never.run(lambda: resource.note("never"))
    assert resource.events == ["open", "close"]


def test_work_that_is_under_way_at_the_end_is_cancelled_and_says_so() -> None:
    import asyncio

    portal = opened(Resource())
    begun = threading.Event()
    ended = threading.Event()

    async def last() -> None:
        begun.set()
        try:
            await asyncio.sleep(3600)
        finally:
            ended.set()

    call = Call(portal, last)
    portal.submit(call)
    assert begun.wait(10)
    closed(portal)
    assert ended.is_set()
    with pytest.raises(CallCancelled, match="the manager was closed"):
        call.take()


def test_a_call_that_is_cancelled_before_it_began_never_begins() -> None:
    resource = Resource()
    portal = Portal(resource.open, resource.close)
    opening = portal.open()
    gate = threading.Event()
    portal.post(waiting_for(gate))
    call = Call(portal, lambda: resource.note("never"))
    portal.submit(call)
    assert call.abort()
    assert call.abort()  # twice is no fault
    gate.set()
    opening.wait()
    portal.run(lambda: resource.note("after"))
    with pytest.raises(CallCancelled) as caught:
        call.take()
    assert not caught.value.maybe_done
    closed(portal)
    assert resource.events == ["open", "after", "close"]


def test_a_blocking_call_on_its_own_thread_is_refused_instead_of_waiting_for_ever() -> None:
    resource = Resource()
    portal = opened(resource)

    async def nested() -> str:
        return portal.run(lambda: resource.note("never"))

    with pytest.raises(LocalProtocolError, match="would wait for itself"):
        portal.run(nested)
    closed(portal)


def test_work_sees_the_context_of_who_gave_it() -> None:
    trace: contextvars.ContextVar[str] = contextvars.ContextVar("trace", default="none")
    portal = opened(Resource())

    async def look() -> str:
        return trace.get()

    assert portal.run(look) == "none"
    trace.set("mine")
    assert portal.run(look) == "mine"
    assert contextvars.Context().run(lambda: portal.run(look)) == "none"
    closed(portal)


async def test_work_given_by_a_task_of_another_library_runs_on_asyncio_all_the_same() -> None:
    import anyio

    portal = opened(Resource())

    async def sleep() -> str:
        import sniffio

        await anyio.sleep(0)
        return sniffio.current_async_library()

    assert portal.run(sleep) == "asyncio"
    closed(portal)


def test_waiting_for_a_call_ends_with_its_time() -> None:
    portal = opened(Resource())
    gate = threading.Event()
    portal.post(waiting_for(gate))
    call: Call[Any] = Call(portal, Resource().open)
    portal.submit(call)
    assert not call.wait(0)
    assert not call.wait(-1)
    assert not call.wait(0.01)
    gate.set()
    assert call.wait(10)
    closed(portal)
