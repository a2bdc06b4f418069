"""One job for all who wait, run anew for who comes late, and ended when nobody waits."""

from __future__ import annotations

import anyio
import pytest

from mcpclient import McpClientError, ReplyError, loops
from mcpclient.features.vigil import Vigil
from tests.conftest import eventually, tasks


class Job:
    """A job that waits to be told what it found."""

    def __init__(self) -> None:
        self.runs = 0
        self.ended = 0
        self.go = anyio.Event()
        self.vigil = Vigil(loops.current(), self.run, "the job")

    async def run(self) -> None:
        self.runs += 1
        try:
            await self.go.wait()
        finally:
            self.ended += 1


async def test_all_who_wait_share_one_job_and_one_end() -> None:
    job = Job()
    woken: list[int] = []

    async def wait(number: int) -> None:
        await job.vigil.wait()
        woken.append(number)

    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(wait, number)
        await eventually(lambda: job.runs)
        assert (job.runs, woken) == (1, [])
        job.go.set()
    assert sorted(woken) == [0, 1, 2]
    assert (job.runs, job.ended) == (1, 1)


async def test_news_wake_all_and_the_job_goes_on() -> None:
    job = Job()
    for _ in range(3):
        async with anyio.create_task_group() as group:
            group.start_soon(job.vigil.wait)
            await anyio.wait_all_tasks_blocked()
            job.vigil.wake()
    assert (job.runs, job.ended) == (1, 0)
    job.vigil.end()
    await eventually(lambda: job.ended == 1)


async def test_bad_news_are_raised_by_each_as_one_of_its_own() -> None:
    job = Job()
    problem = ReplyError(-1, "bad")
    caught: list[McpClientError] = []

    async def wait() -> None:
        with pytest.raises(ReplyError) as info:
            await job.vigil.wait()
        caught.append(info.value)

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        job.vigil.wake(problem)
    assert [str(one) for one in caught] == [str(problem)] * 2
    assert caught[0] is not caught[1]
    job.vigil.end()


async def test_a_wait_may_be_bounded() -> None:
    job = Job()
    await job.vigil.wait(0.02)
    with anyio.move_on_after(0.02) as scope:
        await job.vigil.wait()
    assert scope.cancelled_caught
    job.vigil.end()


async def test_who_comes_back_soon_finds_the_job_as_it_was() -> None:
    job = Job()
    await job.vigil.wait(0.02)
    await job.vigil.wait(0.02)
    assert (job.runs, job.ended) == (1, 0)
    job.vigil.end()


async def test_the_job_ends_when_nobody_came_back() -> None:
    job = Job()
    await job.vigil.wait(0.02)
    await eventually(lambda: job.ended == 1, within=5)
    assert not tasks()
    await job.vigil.wait(0.02)
    assert job.runs == 2, "it is run anew for the next one"
    job.vigil.end()


async def test_an_end_before_it_ran_at_all_has_it_run_anew_for_who_waits() -> None:
    job = Job()

    async def wait() -> None:
        while not job.runs:
            await job.vigil.wait()

    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        # The waiter's first step asks for the job, whose own first step may be to come.
        while job.vigil._job is None:
            await loops.current().checkpoint()
        job.vigil.end()
        await eventually(lambda: job.runs)
        job.go.set()
