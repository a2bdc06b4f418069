"""A reader that does not read is told of in time, one that is gone once; and the end is orderly."""

from __future__ import annotations

import anyio
import pytest

from tests.conftest import eventually
from tests.transports.pipes import ROOM, Pipe
from tests.transports.sinks import line

# -- a reader that does not read -----------------------------------------------------------


async def test_a_stall_is_told_once_in_each_span_of_patience(pipe: Pipe) -> None:
    patience = 0.03
    outbox = pipe.open(patience)
    outbox.send(line("x" * (2 * ROOM)))
    outbox.send(line("more"))
    await eventually(lambda: len(pipe.stalls) >= 4)
    for number, waited in enumerate(pipe.stalls, start=1):
        assert waited >= 0.95 * number * patience, pipe.stalls
    assert outbox.waiting > 0, "what to do about it is for others to say"
    assert pipe.problems == []


async def test_no_stall_is_told_where_nothing_waits_or_all_moves(pipe: Pipe) -> None:
    patience = 0.15
    outbox = pipe.open(patience)
    outbox.send(line("small"))
    assert pipe.read() == b"small\n"
    outbox.send(line("x" * (2 * ROOM)))
    await pipe.read_to(2 * ROOM + 1)
    await anyio.sleep(2 * patience)
    assert pipe.stalls == []


async def test_after_some_bytes_moved_the_stall_is_counted_anew(pipe: Pipe) -> None:
    outbox = pipe.open(0.05)
    outbox.send(line("x" * (4 * ROOM)))
    await eventually(lambda: pipe.stalls and pipe.stalls[-1] >= 0.3)
    before = outbox.waiting
    pipe.read(ROOM)
    await eventually(lambda: outbox.waiting < before)
    told = len(pipe.stalls)
    await eventually(lambda: len(pipe.stalls) > told)
    assert 0.04 <= pipe.stalls[told] < 0.3


async def test_a_stall_that_makes_its_owner_withdraw_all_is_over(pipe: Pipe) -> None:
    late = line("late")
    outbox = pipe.open(0.02)
    pipe.outbox.send(line("x" * (ROOM - 1)))
    outbox.send(late)
    await eventually(lambda: pipe.stalls)
    assert outbox.withdraw(late)
    pipe.read()
    outbox.send(line("next"))
    assert await pipe.read_to(5) == b"next\n"


# -- a reader that is gone -----------------------------------------------------------------


@pytest.mark.parametrize("how", ["send", "send_soon"])
async def test_a_broken_pipe_is_told_once(pipe: Pipe, how: str) -> None:
    outbox = pipe.open()
    pipe.hang_up()
    lost = line("lost")
    getattr(outbox, how)(lost)
    await eventually(lambda: pipe.problems)
    assert not lost.written
    assert outbox.waiting == 0
    for _ in range(20):
        outbox.send(line("after"))
        outbox.send_soon(line("after"))
    await anyio.sleep(0.002)
    (problem,) = pipe.problems
    assert isinstance(problem, BrokenPipeError)
    assert outbox.waiting == 0, "nothing is kept for a reader that is gone"


async def test_a_pipe_that_breaks_while_frames_wait_is_told_once(pipe: Pipe) -> None:
    outbox = pipe.open(0.05)
    outbox.send(line("x" * (2 * ROOM)))
    outbox.send(line("more"))
    pipe.hang_up()
    await eventually(lambda: pipe.problems)
    await anyio.sleep(0.12)
    assert len(pipe.problems) == 1
    assert pipe.stalls == [], "what is broken does not stall any more"
    assert outbox.waiting == 0


# -- the end -------------------------------------------------------------------------------


async def test_finish_is_done_at_once_if_nothing_waits(pipe: Pipe) -> None:
    outbox = pipe.open()
    done: list[str] = []
    outbox.finish(lambda: done.append("drained"))
    assert done == ["drained"]


async def test_finish_waits_until_all_is_written(pipe: Pipe) -> None:
    outbox = pipe.open()
    done: list[str] = []
    big = line("x" * (3 * ROOM))
    outbox.send(big)
    outbox.send_soon(line("last"))
    outbox.finish(lambda: done.append("drained"))
    await anyio.sleep(0.002)
    assert done == []
    data = await pipe.read_to(len(big.frame) + 5)
    await eventually(lambda: done)
    assert data == big.frame + b"last\n"
    assert done == ["drained"]


async def test_finish_writes_what_was_to_go_out_this_turn(pipe: Pipe) -> None:
    outbox = pipe.open()
    done: list[bytes] = []
    outbox.send_soon(line("last"))
    outbox.finish(lambda: done.append(pipe.read()))
    assert done == [b"last\n"]


async def test_after_finish_no_frame_is_taken(pipe: Pipe) -> None:
    outbox = pipe.open()
    outbox.send(line("x" * (2 * ROOM)))
    done: list[str] = []
    outbox.finish(lambda: done.append("drained"))
    waiting = outbox.waiting
    late = [line("late"), line("later")]
    outbox.send(late[0])
    outbox.send_soon(late[1])
    assert outbox.waiting == waiting
    data = await pipe.read_to(2 * ROOM + 1)
    await eventually(lambda: done)
    outbox.send(late[0])
    outbox.send_soon(late[1])
    await anyio.sleep(0.002)
    assert data == b"x" * (2 * ROOM) + b"\n"
    assert pipe.read() == b""
    assert not any(item.written for item in late)


async def test_finish_is_not_told_when_the_pipe_breaks_first(pipe: Pipe) -> None:
    outbox = pipe.open()
    done: list[str] = []
    outbox.send(line("x" * (2 * ROOM)))
    outbox.finish(lambda: done.append("drained"))
    pipe.hang_up()
    await eventually(lambda: pipe.problems)
    assert done == []


async def test_after_stop_nothing_is_written(pipe: Pipe) -> None:
    outbox = pipe.open(0.02)
    outbox.send(line("x" * (2 * ROOM)))
    outbox.send_soon(line("queued"))
    outbox.stop()
    outbox.stop()
    assert outbox.waiting == 0
    outbox.send(line("late"))
    outbox.send_soon(line("later"))
    in_pipe = pipe.read()
    await anyio.sleep(0.05)
    assert in_pipe == b"x" * ROOM
    assert pipe.read() == b""
    assert outbox.waiting == 0
    assert (pipe.stalls, pipe.problems) == ([], [])


async def test_stop_in_the_turn_of_a_send_writes_nothing(pipe: Pipe) -> None:
    outbox = pipe.open()
    item = line("queued")
    outbox.send_soon(item)
    outbox.stop()
    await anyio.sleep(0.002)
    assert pipe.read() == b""
    assert not item.written
