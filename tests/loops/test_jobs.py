"""Jobs: tasks that belong to no caller, whose faults are told and hurt nobody."""

from __future__ import annotations

import logging

import anyio
import pytest

from mcpclient import loops
from tests.conftest import eventually, tasks


async def test_a_job_runs_under_its_name() -> None:
    gate = anyio.Event()
    ended: list[str] = []

    async def run() -> None:
        await gate.wait()
        ended.append("ended")

    loops.current().job(run, "example")
    await eventually(lambda: "mcpclient example" in tasks())
    gate.set()
    await eventually(lambda: ended)
    await eventually(lambda: not tasks())


async def test_a_job_s_exception_is_logged_and_ends_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = loops.current()
    gate = anyio.Event()
    ended: list[str] = []

    async def bad() -> None:
        await anyio.lowlevel.checkpoint()
        raise ValueError("the job went wrong")

    async def good() -> None:
        await gate.wait()
        ended.append("good")

    loop.job(good, "good one")
    loop.job(bad, "bad one")
    await eventually(lambda: caplog.records)
    gate.set()
    await eventually(lambda: ended == ["good"])
    (record,) = caplog.records
    assert record.name == "mcpclient"
    assert record.levelno == logging.ERROR
    assert record.getMessage() == "! mcpclient bad one ended by a fault of its own"
    assert record.exc_info is not None
    assert isinstance(record.exc_info[1], ValueError)


async def test_a_cancelled_job_ends_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    begun = anyio.Event()
    ended: list[str] = []

    async def run() -> None:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("ended")

    job = loops.current().job(run, "cancelled")
    await begun.wait()
    job.cancel()
    await eventually(lambda: ended)
    job.cancel()  # twice, and after its end
    await eventually(lambda: not tasks())
    assert ended == ["ended"]
    assert not caplog.records


async def test_a_job_that_is_cancelled_before_it_ran_does_not_pass_its_first_wait() -> None:
    passed: list[str] = []

    async def run() -> None:
        await anyio.lowlevel.checkpoint()
        passed.append("first wait")

    loops.current().job(run, "too late").cancel()
    await eventually(lambda: not tasks())
    assert passed == []


async def test_a_job_outlives_the_scope_and_the_task_that_began_it() -> None:
    loop = loops.current()
    gate = anyio.Event()
    ended: list[str] = []

    async def run() -> None:
        await gate.wait()
        ended.append("ended")

    async def begin() -> None:
        loop.job(run, "heir")

    async with anyio.create_task_group() as group:
        group.start_soon(begin)
        await eventually(tasks)
        group.cancel_scope.cancel()
    for _ in range(3):
        await anyio.lowlevel.checkpoint()
    assert ended == []
    gate.set()
    await eventually(lambda: ended == ["ended"])


async def test_a_job_may_begin_another() -> None:
    loop = loops.current()
    order: list[str] = []

    async def second() -> None:
        order.append("second")

    async def first() -> None:
        order.append("first")
        loop.job(second, "second")

    loop.job(first, "first")
    await eventually(lambda: len(order) == 2)
    assert order == ["first", "second"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_job_ends_at_the_latest_with_its_loop(backend: str) -> None:
    ended: list[str] = []

    async def run() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("ended")

    async def main() -> None:
        loops.current().job(run, "endless")
        await eventually(tasks)
        await anyio.wait_all_tasks_blocked()

    anyio.run(main, backend=backend)
    assert ended == ["ended"]


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_timers_and_watches_that_were_left_do_not_hold_the_loop(backend: str) -> None:
    import os

    reader, writer = os.pipe()
    called: list[str] = []

    async def main() -> None:
        loop = loops.current()
        loop.later(300, lambda: called.append("timer"))
        loop.readable(reader, lambda: called.append("watch"))
        await anyio.wait_all_tasks_blocked()

    anyio.run(main, backend=backend)
    os.close(reader)
    os.close(writer)
    assert called == []


async def test_a_checkpoint_lets_the_others_run() -> None:
    loop = loops.current()
    order: list[str] = []

    async def other() -> None:
        order.append("other")

    async with anyio.create_task_group() as group:
        group.start_soon(other)
        while not order:
            await loop.checkpoint()
    assert order == ["other"]


async def test_a_checkpoint_is_where_a_cancellation_arrives() -> None:
    passed: list[str] = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        await loops.current().checkpoint()
        passed.append("checkpoint")
    assert scope.cancelled_caught
    assert passed == []
