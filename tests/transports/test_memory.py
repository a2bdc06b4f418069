"""The memory pair cuts bytes into frames as a pipe does, and ends as a process does."""

from __future__ import annotations

import random

import pytest

from mcpclient import loops
from mcpclient.ground.exits import Exit
from mcpclient.transports.memory import pair
from tests.conftest import eventually
from tests.transports.sinks import Recorder, line


async def test_frames_cross_in_order_both_ways() -> None:
    one, other = pair(loops.current())
    ours, theirs = Recorder(), Recorder()
    one.start(ours)
    other.start(theirs)
    for number in range(20):
        one.send(line(b"to them %d" % number))
        other.send_soon(line(b"to us %d" % number))
    await eventually(lambda: len(ours.frames) == len(theirs.frames) == 20)
    assert theirs.frames == [b"to them %d" % number for number in range(20)]
    assert ours.frames == [b"to us %d" % number for number in range(20)]
    await one.close()


async def test_nothing_is_delivered_before_the_start_and_all_of_it_after() -> None:
    loop = loops.current()
    one, other = pair(loop)
    ours = Recorder()
    other.send(line(b"early"))
    await loop.checkpoint()
    assert ours.frames == []
    one.start(ours)
    assert ours.frames == [], "not within the call: the owner may not be ready yet"
    await eventually(lambda: ours.frames == [b"early"])
    await one.close()


TEXT = b'{"a":1}\n\r\n{"b":"\xe2\x80\xa8"}\r\n\nplain\n'
LINES = [b'{"a":1}', b"\r", b'{"b":"\xe2\x80\xa8"}\r', b"", b"plain"]


async def test_a_stream_cut_at_any_byte_gives_the_same_frames() -> None:
    loop = loops.current()
    for place in range(len(TEXT) + 1):
        one, other = pair(loop)
        ours = Recorder()
        one.start(ours)
        one.feed(TEXT[:place])
        await loop.checkpoint()
        one.feed(TEXT[place:])
        await eventually(lambda: len(ours.frames) >= len(LINES))  # noqa: B023 - awaited here
        assert ours.frames == LINES, f"cut at {place}"
        await other.close()


async def test_a_stream_in_single_bytes_gives_the_same_frames() -> None:
    one, _ = pair(loops.current())
    ours = Recorder()
    one.start(ours)
    for byte in TEXT:
        one.feed(bytes([byte]))
    await eventually(lambda: len(ours.frames) == len(LINES))
    assert ours.frames == LINES
    await one.close()


async def test_rubbish_is_frames_between_newlines_and_nothing_else() -> None:
    chance = random.Random(7)
    loop = loops.current()
    data = bytes(chance.choice(b'\x00\n\r\xff{}"\x1bx') for _ in range(5000)) + b"\n"
    one, _ = pair(loop, limit=64)
    ours = Recorder()
    one.start(ours)
    place = 0
    while place < len(data):
        length = chance.randrange(1, 90)
        one.feed(data[place : place + length])
        place += length
    expected = data.split(b"\n")[:-1]
    await eventually(lambda: len(ours.frames) + len(ours.oversizes) == len(expected))
    assert ours.frames == [one for one in expected if len(one) <= 64]
    assert [o.length for o in ours.oversizes] == [len(x) for x in expected if len(x) > 64]
    await one.close()


async def test_a_frame_over_the_limit_is_told_of_and_the_next_one_is_read() -> None:
    one, other = pair(loops.current(), limit=100)
    ours = Recorder()
    one.start(ours)
    other.send(line(b"x" * 100))
    other.send(line(b"y" * 101))
    other.send(line(b"after"))
    await eventually(lambda: len(ours.frames) == 2)
    assert ours.frames == [b"x" * 100, b"after"]
    (spill,) = ours.oversizes
    assert (spill.length, spill.head, spill.tail) == (101, b"y" * 101, b"y" * 101)
    await one.close()


async def test_a_crash_is_told_to_both_ends_after_what_was_written_before() -> None:
    one, other = pair(loops.current())
    ours, theirs = Recorder(), Recorder()
    one.start(ours)
    other.start(theirs)
    other.send(line(b"last words"))
    one.crash(Exit(signal=9))
    assert ours.frames == [b"last words"]
    assert ours.gones == theirs.gones == [(Exit(signal=9), "")]
    one.send(line(b"too late"))
    other.feed(b"too late\n")
    one.crash(Exit(code=1))
    await loops.current().checkpoint()
    assert theirs.frames == []
    assert ours.gones == theirs.gones == [(Exit(signal=9), "")], "an end is told once"


@pytest.mark.parametrize("way", ["close", "kill"])
async def test_closing_one_end_ends_the_other(way: str) -> None:
    one, other = pair(loops.current())
    ours, theirs = Recorder(), Recorder()
    one.start(ours)
    other.start(theirs)
    if way == "close":
        assert await one.close() == Exit(code=0)
    else:
        one.kill()
    assert ours.gones == theirs.gones == [(Exit(code=0), "")]


async def test_what_was_sent_cannot_be_withdrawn() -> None:
    one, _ = pair(loops.current())
    sent, unsent = line(b"sent"), line(b"unsent")
    one.send(sent)
    assert sent.written
    assert not one.withdraw(sent)
    assert one.withdraw(unsent)
    assert (one.pid, one.waiting, one.stderr_tail()) == (None, 0, "")
    await one.close()
