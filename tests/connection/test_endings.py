"""Time-outs and cancels: the caller is told at once, the server once; a late answer is dropped."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcpclient import CallLost, CallTimedOut, Limits, ServerDied, Timeouts, loops
from mcpclient.connection.connection import Connection
from mcpclient.connection.dialing import Dialer
from mcpclient.connection.inflight import Call
from mcpclient.transports import stdio
from mcpclient.transports.process import Command
from tests.conftest import eventually
from tests.connection.peer import IDENTITY, Ears, Peer, conversation
from tests.transports.conftest import fixture_server

only_asyncio = pytest.mark.parametrize("anyio_backend", ["asyncio"])


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING]


# -- time-outs -----------------------------------------------------------------------------


async def test_a_time_out_is_told_to_the_caller_and_once_to_the_server(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with conversation() as (connection, peer, _):
        peer.write(b"odd words\n")
        await peer.quiet()
        begun = time.monotonic()
        with pytest.raises(CallTimedOut) as caught:
            await connection.request("tools/call", {"name": "slow"}, 0.05)
        assert time.monotonic() - begun >= 0.05
        problem = caught.value
        assert isinstance(problem, TimeoutError)
        assert (problem.method, problem.server, problem.maybe_done) == ("tools/call", "peer", True)
        assert str(problem) == (
            'tools/call on "peer": no answer within 50 ms (not a message of the protocol: '
            "'odd words'); the server may have carried it out"
        )
        (request,) = peer.of("tools/call")
        (cancel,) = await peer.get("notifications/cancelled")
        assert cancel == {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": request["id"], "reason": "timed out"},
        }
        caplog.clear()
        peer.answer(request, too="late")
        peer.answer(request, too="late")
        await peer.quiet()
        assert peer.cancels == [request["id"]]
        assert (connection.inflight.late, connection.inflight.stray) == (1, 1)
        assert connection.noise.count == 1
        assert warnings(caplog) == [], "a late answer is dropped without a word"
        assert len(connection.inflight) == 0


@pytest.mark.parametrize("method", ["tools/call", "resources/read", "prompts/get", "any/thing"])
async def test_every_method_is_timed_out_alike(method: str) -> None:
    async with conversation() as (connection, peer, _):
        with pytest.raises(CallTimedOut):
            await connection.request(method, {"name": "a", "uri": "test://a"}, 0.02)
        (request,) = peer.of(method)
        await peer.get("notifications/cancelled")
        assert peer.cancels == [request["id"]]


async def test_each_call_has_its_own_time_out() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        ended: list[str] = []

        async def call(name: str, timeout: float | None) -> None:
            try:
                await connection.request(name, None, timeout)
                ended.append(f"{name} answered")
            except CallTimedOut:
                ended.append(f"{name} timed out")

        # The longest first: a later, nearer deadline must be seen all the same.
        for name, timeout in (("never", None), ("long", 30.0), ("mid", 1.2), ("short", 0.05)):
            group.start_soon(call, name, timeout)
            await anyio.wait_all_tasks_blocked()
        await eventually(lambda: len(ended) == 2)
        assert ended == ["short timed out", "mid timed out"]
        (never,), (long,) = peer.of("never"), peer.of("long")
        peer.answer(never)
        peer.answer(long)
        await eventually(lambda: len(ended) == 4)
        assert set(ended[2:]) == {"never answered", "long answered"}


async def test_calls_made_after_a_sweep_are_timed_out_too() -> None:
    async with conversation() as (connection, peer, _):
        for _ in range(3):
            with pytest.raises(CallTimedOut):
                await connection.request("tools/list", None, 0.02)
        await peer.get("notifications/cancelled", 3)
        assert peer.cancels == [request["id"] for request in peer.of("tools/list")]


async def test_a_stateless_server_is_told_of_a_time_out_in_the_same_way() -> None:
    async with conversation("stateless") as (connection, peer, _):
        with pytest.raises(CallTimedOut):
            await connection.request("tools/call", {"name": "slow"}, 0.02)
        (request,) = peer.of("tools/call")
        (cancel,) = await peer.get("notifications/cancelled")
        assert cancel["params"]["requestId"] == request["id"]


async def test_an_answer_just_in_time_wins() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        ended: list[Any] = []

        async def call() -> None:
            try:
                ended.append(await connection.request("tools/list", None, 0.05))
            except CallTimedOut as problem:
                ended.append(problem)

        group.start_soon(call)
        (request,) = await peer.get("tools/list")
        # The loop is held until the deadline is over; the answer waits in the same turn.
        peer.answer(request, x=1)
        time.sleep(0.08)
        await eventually(lambda: ended)
        await peer.quiet()
        assert len(ended) == 1
        assert (len(peer.cancels) == 1) == isinstance(ended[0], CallTimedOut)


# -- cancellation --------------------------------------------------------------------------


async def started(connection: Connection, peer: Peer) -> tuple[anyio.CancelScope, list[str], Any]:
    """Begin a call in a task of its own; return the scope around it and what became of it."""
    scope = anyio.CancelScope()
    ended: list[str] = []

    async def run() -> None:
        with scope:
            try:
                await connection.request("tools/call", {"name": "slow"}, 30)
                ended.append("answered")
            except anyio.get_cancelled_exc_class():
                ended.append("cancelled")
                raise

    return scope, ended, run


async def test_a_cancelled_caller_cancels_the_call_once(caplog: pytest.LogCaptureFixture) -> None:
    async with conversation() as (connection, peer, _):
        scope, ended, run = await started(connection, peer)
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            (request,) = await peer.get("tools/call")
            scope.cancel()
        assert ended == ["cancelled"]
        assert len(connection.inflight) == 0, "the place is free at once"
        (cancel,) = await peer.get("notifications/cancelled")
        assert cancel["params"] == {
            "requestId": request["id"],
            "reason": "the caller was cancelled",
        }
        peer.answer(request, too="late")
        peer.refuse(request, -32800, "cancelled")
        await peer.quiet()
        assert peer.cancels == [request["id"]]
        assert connection.inflight.late == 1
        assert warnings(caplog) == []


async def test_a_cancellation_hurts_no_other_call() -> None:
    async with conversation() as (connection, peer, _):
        scopes = []
        async with anyio.create_task_group() as group:
            for _ in range(10):
                scope, ended, run = await started(connection, peer)
                scopes.append((scope, ended))
                group.start_soon(run)
            requests = await peer.get("tools/call", 10)
            for scope, _ended in scopes[::2]:
                scope.cancel()
            await peer.get("notifications/cancelled", 5)
            for request in requests:
                peer.answer(request)
        assert [ended for _scope, ended in scopes[::2]] == [["cancelled"]] * 5
        assert [ended for _scope, ended in scopes[1::2]] == [["answered"]] * 5
        assert connection.inflight.late == 5


async def test_a_call_that_was_answered_is_not_cancelled_any_more() -> None:
    async with conversation() as (connection, peer, _):
        scope, ended, run = await started(connection, peer)
        async with anyio.create_task_group() as group:
            group.start_soon(run)
            (request,) = await peer.get("tools/call")
            peer.answer(request)
            # Both in one turn: the answer is taken first, then the cancellation comes.
            loops.current().soon(scope.cancel)
        assert ended in (["answered"], ["cancelled"])
        await peer.quiet()
        assert peer.cancels == []
        assert connection.inflight.late == 0


async def test_abandoning_twice_tells_the_server_once() -> None:
    async with conversation() as (connection, peer, _):
        told: list[Any] = []
        call = connection.begin("tools/list", None, 30, watch=told.append)
        await peer.get("tools/list")
        connection.abandon(call, "first", "outcome")
        connection.abandon(call, "second", "another")
        await peer.quiet()
        assert told == ["outcome"]
        assert [message["params"]["reason"] for message in peer.of("notifications/cancelled")] == [
            "first"
        ]


async def test_after_the_death_no_cancel_is_sent() -> None:
    async with conversation() as (connection, peer, _):
        scope, ended, run = await started(connection, peer)
        problems: list[BaseException] = []

        async def guarded() -> None:
            try:
                await run()
            except ServerDied as problem:
                problems.append(problem)

        async with anyio.create_task_group() as group:
            group.start_soon(guarded)
            await peer.get("tools/call")
            peer.die()
            scope.cancel()
        assert len(problems) + len(ended) == 1
        assert peer.cancels == []


@only_asyncio
async def test_a_natively_cancelled_task_cancels_its_call() -> None:
    async with conversation() as (connection, peer, _):
        task = asyncio.create_task(connection.request("tools/call", {"name": "a"}, 30))
        (request,) = await peer.get("tools/call")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert task.cancelled()
        await peer.get("notifications/cancelled")
        assert peer.cancels == [request["id"]]
        assert len(connection.inflight) == 0


@only_asyncio
async def test_wait_for_raises_its_own_time_out_and_leaves_no_cancel_behind() -> None:
    async with conversation() as (connection, peer, _):
        task = asyncio.current_task()
        assert task is not None
        for _ in range(3):
            with pytest.raises(TimeoutError) as caught:
                await asyncio.wait_for(connection.request("tools/call", {"name": "a"}, 30), 0.02)
            assert type(caught.value) is TimeoutError
            assert task.cancelling() == 0
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.02):
                    await connection.request("tools/call", {"name": "a"}, 30)
            assert task.cancelling() == 0
        await peer.get("notifications/cancelled", 6)
        assert peer.cancels == [request["id"] for request in peer.of("tools/call")]


@only_asyncio
async def test_our_own_time_out_leaves_no_cancel_behind() -> None:
    async with conversation() as (connection, _, _ears):
        task = asyncio.current_task()
        assert task is not None
        with pytest.raises(CallTimedOut):
            await connection.request("tools/call", {"name": "a"}, 0.02)
        assert task.cancelling() == 0
        await asyncio.sleep(0)  # a stray cancellation would arrive here


# -- a server that does not read -----------------------------------------------------------


@asynccontextmanager
async def deaf(timeouts: Timeouts) -> AsyncIterator[Connection]:
    """The connection to a real server that never reads after the opening."""
    loop = loops.current()
    limiter = anyio.CapacityLimiter(1)

    async def connect() -> stdio.StdioTransport:
        return await stdio.spawn(
            Command(fixture_server("stops_reading")),
            loop=loop,
            limiter=limiter,
            timeouts=timeouts,
            limits=Limits(),
            kill_tree=True,
        )

    dialer = Dialer(
        "deaf",
        connect,
        loop=loop,
        identity=IDENTITY,
        era="handshake",
        timeouts=timeouts,
        limits=Limits(),
    )
    connection = await dialer.dial(1, Ears(), lambda pid: None)
    try:
        # Not before it has read the last of the opening: a read takes what else is there along.
        await eventually(lambda: "deaf" in connection.transport.stderr_tail())
        yield connection
        await connection.close()
        connection.inflight.check()
    finally:
        connection.kill()


def fill(connection: Connection) -> Call:
    """Make a call of which only a part fits into the pipe."""
    call = connection.begin("tools/call", {"name": "a", "text": "x" * 400_000}, None)
    assert call.state == "sent"
    assert connection.transport.waiting > 0
    return call


async def test_cancelling_a_call_that_was_never_written_sends_nothing() -> None:
    async with deaf(Timeouts(eof=0.05, term=5.0)) as connection:
        big = fill(connection)
        waiting = connection.transport.waiting
        with anyio.CancelScope() as scope:
            loops.current().soon(scope.cancel)
            await connection.request("tools/call", {"name": "queued"}, 30)
        assert scope.cancelled_caught
        assert connection.transport.waiting == waiting, "taken back, and no cancel is queued"
        with pytest.raises(CallTimedOut) as caught:
            await connection.request("tools/call", {"name": "queued"}, 0.05)
        assert caught.value.maybe_done is False
        assert str(caught.value).endswith("the request was never sent, so it is safe to repeat")
        assert connection.transport.waiting == waiting
        connection.abandon(big, "half of it is written")
        assert connection.transport.waiting > waiting, "of this one the server may know"


async def test_a_stall_ends_what_was_never_written_and_nothing_else() -> None:
    outcomes: list[Any] = []
    async with deaf(Timeouts(write=0.1, eof=0.05, term=5.0)) as connection:
        big = fill(connection)
        big.watch = outcomes.append
        with pytest.raises(CallLost) as caught:
            await connection.request("tools/call", {"name": "queued"}, 30)
        problem = caught.value
        assert type(problem) is CallLost
        assert problem.maybe_done is False
        assert "the server has not read its input for " in str(problem)
        assert big.state == "sent"
    assert [type(outcome).__name__ for outcome in outcomes] == ["CallCancelled"]
    assert outcomes[0].maybe_done
