"""Frames into a real pipe: at once, together, and in order when it is full; some are taken back."""

from __future__ import annotations

import fcntl
import os
import random

import anyio
import pytest

from mcpclient.protocol.envelope import Outgoing
from tests.transports.pipes import ROOM, Pipe
from tests.transports.sinks import line


@pytest.fixture
def writes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all writes, as they are done."""
    sizes: list[int] = []
    real = os.write

    def write(fd: int, data: bytes) -> int:
        count = real(fd, data)
        sizes.append(count)
        return count

    monkeypatch.setattr(os, "write", write)
    return sizes


# -- when a frame goes out -----------------------------------------------------------------


async def test_a_frame_goes_out_at_once_if_nothing_waits(pipe: Pipe) -> None:
    outbox = pipe.open()
    one = line("one")
    outbox.send(one)
    assert one.written
    assert outbox.waiting == 0
    assert pipe.read() == b"one\n"


async def test_frames_of_one_turn_go_out_in_one_write(pipe: Pipe, writes: list[int]) -> None:
    outbox = pipe.open()
    items = [line(f"frame {number}") for number in range(5)]
    for item in items:
        outbox.send_soon(item)
    assert outbox.waiting == sum(len(item.frame) for item in items)
    assert pipe.read() == b"", "not before the turn ends"
    assert not any(item.written for item in items)
    data = await pipe.read_to(outbox.waiting)
    assert data == b"".join(item.frame for item in items)
    assert writes == [len(data)]
    assert all(item.written for item in items)
    assert outbox.waiting == 0


async def test_sixteen_frames_do_not_wait_for_the_turn(pipe: Pipe, writes: list[int]) -> None:
    outbox = pipe.open()
    items = [line(f"{number:02}") for number in range(20)]
    for item in items[:15]:
        outbox.send_soon(item)
    assert writes == []
    outbox.send_soon(items[15])
    assert writes == [16 * 3]
    for item in items[16:]:
        outbox.send_soon(item)
    data = await pipe.read_to(20 * 3)
    assert data == b"".join(item.frame for item in items)
    assert writes == [16 * 3, 4 * 3]


async def test_a_frame_sent_at_once_does_not_overtake_those_that_wait(pipe: Pipe) -> None:
    outbox = pipe.open()
    outbox.send_soon(line("first"))
    outbox.send(line("second"))
    outbox.send_soon(line("third"))
    assert await pipe.read_to(19) == b"first\nsecond\nthird\n"
    outbox.send(line("fourth"))
    assert pipe.read() == b"fourth\n"


# -- a full pipe ---------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
async def test_a_full_pipe_gets_every_byte_in_order(pipe: Pipe, seed: int) -> None:
    chance = random.Random(seed)
    outbox = pipe.open()
    items = [
        line(bytes([97 + number % 26]) * chance.choice([0, 1, 10, ROOM - 1, ROOM, 3 * ROOM]))
        for number in range(30)
    ]
    expected = b"".join(item.frame for item in items)
    read = bytearray()
    for item in items:
        chance.choice([outbox.send, outbox.send_soon])(item)
        if chance.random() < 0.3:
            read += pipe.read(chance.randrange(1, 2 * ROOM))
        if chance.random() < 0.2:
            await anyio.sleep(0)
    read += await pipe.read_to(len(expected) - len(read), most=chance.randrange(2000, 2 * ROOM))
    assert bytes(read) == expected
    assert outbox.waiting == 0
    assert all(item.written for item in items)
    assert pipe.problems == []
    after = line("after")
    outbox.send(after)
    assert after.written, "an empty pipe takes frames at once again"


async def test_what_waits_is_counted_in_bytes(pipe: Pipe) -> None:
    outbox = pipe.open()
    big = line("x" * (3 * ROOM))
    outbox.send(big)
    assert big.written, "some of it is in the pipe"
    assert outbox.waiting == len(big.frame) - ROOM
    small = line("small")
    outbox.send(small)
    outbox.send_soon(small)
    assert outbox.waiting == len(big.frame) - ROOM + 2 * len(small.frame)
    await pipe.read_to(len(big.frame) + 2 * len(small.frame))
    assert outbox.waiting == 0


async def test_a_frame_that_meets_a_full_pipe_is_not_written(pipe: Pipe) -> None:
    outbox = pipe.open()
    outbox.send(line("x" * (ROOM - 1)))
    late = line("late")
    outbox.send(late)
    assert not late.written
    assert outbox.waiting == len(late.frame)
    assert (await pipe.read_to(ROOM + 5))[ROOM:] == b"late\n"
    assert late.written


async def test_many_frames_that_wait_are_written_in_large_parts(
    pipe: Pipe, writes: list[int]
) -> None:
    fcntl.fcntl(pipe.writer, fcntl.F_SETPIPE_SZ, 65536)
    outbox = pipe.open()
    items = [Outgoing(b"%07d\n" % number) for number in range(50_000)]
    for item in items:
        outbox.send_soon(item)
    data = await pipe.read_to(400_000)
    assert data == b"".join(item.frame for item in items)
    late = writes[writes.index(max(writes)) :]
    assert sum(late) / len(late) > 4096, "a write for each frame would cost more than the frame"


# -- withdrawing ---------------------------------------------------------------------------


async def test_a_frame_of_which_nothing_was_written_can_be_taken_back(pipe: Pipe) -> None:
    outbox = pipe.open()
    kept, back, last = line("kept"), line("back"), line("last")
    for item in (kept, back, last):
        outbox.send_soon(item)
    assert outbox.withdraw(back)
    assert outbox.waiting == len(kept.frame) + len(last.frame)
    assert await pipe.read_to(10) == b"kept\nlast\n"
    assert not back.written
    assert outbox.withdraw(back), "twice is no fault"
    assert outbox.waiting == 0


async def test_a_frame_that_was_written_cannot_be_taken_back(pipe: Pipe) -> None:
    outbox = pipe.open()
    gone = line("gone")
    outbox.send(gone)
    assert not outbox.withdraw(gone)
    assert pipe.read() == b"gone\n"


async def test_a_frame_of_which_a_part_was_written_cannot_be_taken_back(pipe: Pipe) -> None:
    outbox = pipe.open()
    big, next_one = line("x" * (2 * ROOM)), line("next")
    outbox.send(big)
    outbox.send(next_one)
    waiting = outbox.waiting
    assert not outbox.withdraw(big)
    assert outbox.waiting == waiting
    assert outbox.withdraw(next_one)
    assert await pipe.read_to(len(big.frame)) == big.frame
    await anyio.sleep(0)
    assert pipe.read() == b""
    assert outbox.waiting == 0


async def test_of_equal_frames_the_one_that_was_meant_is_taken_back(pipe: Pipe) -> None:
    outbox = pipe.open()
    twins = [line("twin") for _ in range(3)]
    for twin in twins:
        outbox.send_soon(twin)
    assert outbox.withdraw(twins[1])
    assert await pipe.read_to(10) == b"twin\ntwin\n"
    assert [twin.written for twin in twins] == [True, False, True]


async def test_a_pipe_whose_queue_was_all_withdrawn_works_on(pipe: Pipe) -> None:
    outbox = pipe.open()
    outbox.send(line("x" * (ROOM - 1)))
    late = line("late")
    outbox.send(late)
    assert outbox.withdraw(late)
    assert outbox.waiting == 0
    assert len(pipe.read()) == ROOM
    outbox.send(line("after"))
    assert await pipe.read_to(6) == b"after\n"
