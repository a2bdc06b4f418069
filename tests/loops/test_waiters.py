"""A waiter hands one value to one task, whichever of the two comes first, on both loops."""

from __future__ import annotations

import asyncio

import anyio
import pytest

from mcpclient import loops
from mcpclient.ground.errors import LocalProtocolError

only_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])


async def test_a_value_given_before_the_wait_is_returned_at_once() -> None:
    waiter = loops.current().waiter()
    assert not waiter.done()
    waiter.set_result("early")
    assert waiter.done()
    assert await waiter == "early"


async def test_a_value_given_during_the_wait_wakes_the_task() -> None:
    loop = loops.current()
    waiter = loop.waiter()
    loop.soon(lambda: waiter.set_result({"any": "value"}))
    assert await waiter == {"any": "value"}
    assert waiter.done()


async def test_none_is_a_value_too() -> None:
    loop = loops.current()
    waiter = loop.waiter()
    loop.soon(lambda: waiter.set_result(None))
    assert await waiter is None
    assert waiter.done()


async def test_each_waiter_gets_its_own_value() -> None:
    loop = loops.current()
    waiters = [loop.waiter() for _ in range(20)]
    got: dict[int, object] = {}

    async def wait(number: int) -> None:
        got[number] = await waiters[number]

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(wait, number)
        await anyio.wait_all_tasks_blocked()
        for number in reversed(range(20)):
            waiters[number].set_result(number * number)
    assert got == {number: number * number for number in range(20)}


async def test_a_cancelled_waiter_is_used_up() -> None:
    loop = loops.current()
    waiter = loop.waiter()
    with anyio.CancelScope() as scope:
        loop.soon(scope.cancel)
        await waiter
    assert scope.cancelled_caught
    assert waiter.done(), "whoever settles it must see that nobody waits any more"


async def test_a_waiter_that_is_settled_in_the_turn_of_a_cancel_ends_once() -> None:
    loop = loops.current()
    waiter = loop.waiter()
    ended: list[object] = []

    def both() -> None:
        waiter.set_result("value")
        scope.cancel()

    async def wait() -> None:
        try:
            ended.append(await waiter)
        except anyio.get_cancelled_exc_class():
            ended.append("cancelled")
            raise

    with anyio.CancelScope() as scope:
        loop.soon(both)
        await wait()
    assert ended in (["value"], ["cancelled"])
    assert waiter.done()


@only_asyncio
async def test_a_natively_cancelled_waiter_is_used_up() -> None:
    waiter = loops.current().waiter()

    async def wait() -> object:
        return await waiter

    task = asyncio.create_task(wait())
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert waiter.done()


# -- outlast -------------------------------------------------------------------------------


async def test_outlast_returns_when_the_value_is_there() -> None:
    loop = loops.current()
    waiter = loop.waiter()
    loop.soon(lambda: waiter.set_result(None))
    await loop.outlast(waiter)
    assert waiter.done()
    await loop.outlast(waiter)  # and at once if it is there already


async def test_a_cancelled_caller_still_waits_and_is_cancelled_after() -> None:
    loop = loops.current()
    waiter = loop.waiter()
    steps: list[str] = []

    async def wait() -> None:
        with scope:
            try:
                await loop.outlast(waiter)
                steps.append("outlasted")
                await anyio.lowlevel.checkpoint()
                steps.append("not cancelled")
            finally:
                steps.append("ended")

    scope = anyio.CancelScope()
    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        scope.cancel()
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert steps == [], "the cancellation cut the wait short"
        waiter.set_result(None)
    assert steps in (["ended"], ["outlasted", "ended"])
    assert scope.cancelled_caught


async def test_a_caller_that_is_cancelled_already_waits_too() -> None:
    loop = loops.current()
    waiter = loop.waiter()
    order: list[str] = []

    def settle() -> None:
        order.append("settled")
        waiter.set_result(None)

    with anyio.CancelScope() as scope:
        scope.cancel()
        loop.later(0.01, settle)
        try:
            await loop.outlast(waiter)
        finally:
            order.append("returned")
        await anyio.lowlevel.checkpoint()
    assert order == ["settled", "returned"]
    assert scope.cancelled_caught


@only_asyncio
async def test_native_cancels_do_not_shorten_outlast_and_are_not_lost() -> None:
    loop = loops.current()
    waiter = loop.waiter()
    task = asyncio.create_task(loop.outlast(waiter))
    await anyio.wait_all_tasks_blocked()
    for _ in range(3):
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not task.done()
    assert not waiter.done(), "the waiter is the others' too"
    waiter.set_result(None)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


# -- which loop ----------------------------------------------------------------------------


async def test_the_running_loop_is_found(anyio_backend: str) -> None:
    expected = {"asyncio": "AsyncioLoop", "trio": "TrioLoop"}[anyio_backend]
    assert type(loops.current()).__name__ == expected


def test_outside_of_any_loop_there_is_none() -> None:
    with pytest.raises(LocalProtocolError) as caught:
        loops.current()
    assert str(caught.value) == ("no event loop runs here: use this inside asyncio.run or trio.run")


async def test_a_thread_beside_the_loop_has_none() -> None:
    def look() -> str:
        with pytest.raises(LocalProtocolError) as caught:
            loops.current()
        return str(caught.value)

    assert "no event loop runs here" in await anyio.to_thread.run_sync(look)
