"""What counts when one waits for a task: not the time that this side takes, and progress earns."""

from __future__ import annotations

import time

import anyio

from mcpclient.features.leeway import Leeway
from tests.connection.peer import conversation


def left(leeway: Leeway, since: float, idle: float, limit: float | None) -> float | None:
    """Return what is left of a wait that began so many seconds ago."""
    return leeway.left(time.monotonic() - since, idle, limit)


def near(found: float | None, wanted: float) -> bool:
    """Return whether a span is as long as it must be, but for what the test itself takes."""
    assert found is not None
    return wanted - 1 < found <= wanted


def test_a_wait_ends_when_its_time_is_over() -> None:
    leeway = Leeway(600.0)
    assert left(leeway, 5, 0.0, None) is None
    assert near(left(leeway, 5, 0.0, 60), 55)
    assert near(left(leeway, 70, 0.0, 60), -10)


def test_progress_begins_it_anew_up_to_the_hard_end() -> None:
    leeway = Leeway(100.0)
    leeway.moved()
    assert near(left(leeway, 50, 0.0, 60), 50)  # 60 from now, but 100 in all
    assert near(left(leeway, 10, 0.0, 60), 60)
    assert near(left(leeway, 10, 0.0, 200), 190)  # what the caller says counts more
    endless = Leeway(None)
    endless.moved()
    assert near(left(endless, 1000, 0.0, 60), 60)


async def test_what_a_person_takes_is_added(anyio_backend: str) -> None:
    leeway = Leeway(600.0)
    assert leeway.idle() == 0.0
    with leeway.asking():
        await anyio.sleep(0.05)
        assert leeway.idle() >= 0.05, "also while it lasts"
    taken = leeway.idle()
    assert taken >= 0.05
    await anyio.sleep(0.02)
    assert leeway.idle() == taken
    extended, plain = left(leeway, 0, 0.0, 60), left(leeway, 0, taken, 60)
    assert extended is not None
    assert plain is not None
    assert extended > plain, "what was asked before the wait began is not added"


async def test_what_the_server_asks_by_requests_is_added_over_all_lives() -> None:
    leeway = Leeway(600.0)
    async with conversation() as (first, _, _), conversation() as (second, _, _):
        for connection in (first, second):
            connection.deadlines.hold()
            await anyio.sleep(0.03)
            connection.deadlines.release()
            assert connection.deadlines.held >= 0.03
        leeway.use(first)
        assert leeway.idle() == 0.0, "what was before is another's"
        first.deadlines.hold()
        await anyio.sleep(0.03)
        assert leeway.idle() >= 0.03
        first.deadlines.release()
        taken = leeway.idle()
        leeway.use(second)
        leeway.use(second)
        assert abs(leeway.idle() - taken) < 1e-6
        second.deadlines.hold()
        second.deadlines.hold()
        await anyio.sleep(0.03)
        second.deadlines.release()
        second.deadlines.release()
        assert taken + 0.03 <= leeway.idle() < taken + 1
