"""Functions called by the loop: soon, later, and when a descriptor can be read or written."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import AsyncIterator, Iterator

import anyio
import pytest

from mcpclient import loops
from tests.conftest import eventually


class Pipe:
    """A pipe, both ends non-blocking."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)

    def fill(self) -> None:
        try:
            while True:
                os.write(self.writer, b"x" * 65536)
        except BlockingIOError:
            pass

    def drain(self) -> bytes:
        found = b""
        try:
            while chunk := os.read(self.reader, 65536):
                found += chunk
        except BlockingIOError:
            pass
        return found

    def close(self) -> None:
        for fd in (self.reader, self.writer):
            os.close(fd)


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.close()


@pytest.fixture
async def faults_are_logged(anyio_backend: str) -> AsyncIterator[None]:
    """Let asyncio log what a callback raises, as it does outside of tests."""
    if anyio_backend == "trio":
        yield
        return
    loop = asyncio.get_running_loop()
    before = loop.get_exception_handler()
    loop.set_exception_handler(None)
    yield
    loop.set_exception_handler(before)


async def turns(count: int = 5) -> None:
    """Let the loop turn, long enough for what could be called to be called."""
    for _ in range(count):
        await anyio.sleep(0.001)


# -- soon ----------------------------------------------------------------------------------


async def test_soon_is_later_than_now_and_in_order() -> None:
    loop = loops.current()
    order: list[int] = []
    for number in range(10):
        loop.soon(lambda number=number: order.append(number))  # type: ignore[misc]
    assert order == []
    await eventually(lambda: len(order) == 10)
    assert order == list(range(10))


async def test_what_is_asked_for_in_a_callback_comes_after_what_is_ready() -> None:
    loop = loops.current()
    order: list[str] = []

    def first() -> None:
        order.append("first")
        loop.soon(lambda: order.append("third"))

    loop.soon(first)
    loop.soon(lambda: order.append("second"))
    await eventually(lambda: len(order) == 3)
    assert order == ["first", "second", "third"]


@pytest.mark.usefixtures("faults_are_logged")
async def test_a_callback_that_raises_does_not_end_the_loop(
    caplog: pytest.LogCaptureFixture,
) -> None:
    loop = loops.current()
    called: list[str] = []

    def bad() -> None:
        raise ValueError("a bad callback")

    loop.soon(bad)
    loop.soon(lambda: called.append("soon"))
    loop.later(0.001, bad)
    loop.later(0.002, lambda: called.append("later"))
    await eventually(lambda: called == ["soon", "later"])

    def errors() -> list[logging.LogRecord]:
        return [record for record in caplog.records if record.levelno == logging.ERROR]

    # Timers that are due together may be called in any order.
    told = await eventually(lambda: len(errors()) == 2 and errors())
    assert all(record.exc_info and "a bad callback" in str(record.exc_info[1]) for record in told)


# -- later ---------------------------------------------------------------------------------


async def test_later_calls_once_the_shorter_delay_first() -> None:
    loop = loops.current()
    order: list[str] = []
    loop.later(0.6, lambda: order.append("long"))
    loop.later(0.01, lambda: order.append("short"))
    await eventually(lambda: "long" in order)
    await turns()
    assert order == ["short", "long"]


async def test_later_waits_as_long_as_was_said() -> None:
    loop = loops.current()
    called: list[float] = []
    begun = anyio.current_time()
    loop.later(0.05, lambda: called.append(anyio.current_time()))
    await eventually(lambda: called)
    # asyncio's timers may be a clock tick early.
    assert called[0] - begun >= 0.045


async def test_a_cancelled_timer_never_calls() -> None:
    loop = loops.current()
    called: list[str] = []
    before = loop.later(0.01, lambda: called.append("cancelled at once"))
    before.cancel()
    during = loop.later(0.02, lambda: called.append("cancelled in time"))

    def cancel() -> None:
        during.cancel()

    loop.later(0.005, cancel)
    loop.later(0.03, lambda: called.append("kept"))
    await eventually(lambda: "kept" in called)
    assert called == ["kept"]


async def test_cancelling_a_timer_twice_or_after_its_call_is_no_fault() -> None:
    loop = loops.current()
    called: list[str] = []
    timer = loop.later(0.001, lambda: called.append("called"))
    await eventually(lambda: called)
    timer.cancel()
    timer.cancel()
    await turns()
    assert called == ["called"]


# -- readable ------------------------------------------------------------------------------


async def test_readable_calls_for_each_chunk(pipe: Pipe) -> None:
    loop = loops.current()
    chunks: list[bytes] = []
    watch = loop.readable(pipe.reader, lambda: chunks.append(os.read(pipe.reader, 100)))
    await turns()
    assert chunks == [], "there is nothing to read yet"
    for number in range(3):
        os.write(pipe.writer, b"chunk %d" % number)
        await eventually(lambda: len(chunks) > number)  # noqa: B023 - awaited here
    assert chunks == [b"chunk 0", b"chunk 1", b"chunk 2"]
    watch.cancel()


async def test_what_was_not_read_is_told_of_again(pipe: Pipe) -> None:
    loop = loops.current()
    read: list[bytes] = []
    watch = loop.readable(pipe.reader, lambda: read.append(os.read(pipe.reader, 2)))
    os.write(pipe.writer, b"aabbcc")
    await eventually(lambda: len(read) == 3)
    assert read == [b"aa", b"bb", b"cc"]
    watch.cancel()


async def test_the_end_of_the_input_is_readable(pipe: Pipe) -> None:
    loop = loops.current()
    read: list[bytes] = []

    def take() -> None:
        read.append(os.read(pipe.reader, 100))
        watch.cancel()

    watch = loop.readable(pipe.reader, take)
    spare = os.dup(pipe.reader)  # so that the fixture has a pair to close
    os.close(pipe.writer)
    await eventually(lambda: read == [b""])
    pipe.writer = spare


async def test_a_cancelled_watch_never_calls_though_there_is_something_to_read(pipe: Pipe) -> None:
    loop = loops.current()
    called: list[str] = []
    watch = loop.readable(pipe.reader, lambda: called.append("called"))
    await turns(2)
    os.write(pipe.writer, b"ready")
    watch.cancel()
    watch.cancel()
    await turns()
    assert called == []
    assert pipe.drain() == b"ready"


async def test_a_watch_that_is_cancelled_before_it_began_never_calls(pipe: Pipe) -> None:
    os.write(pipe.writer, b"ready")
    called: list[str] = []
    loops.current().readable(pipe.reader, lambda: called.append("called")).cancel()
    await turns()
    assert called == []


async def test_a_watch_that_cancels_itself_is_called_once(pipe: Pipe) -> None:
    loop = loops.current()
    called: list[str] = []

    def once() -> None:
        called.append("called")  # and leaves the bytes where they are
        watch.cancel()

    watch = loop.readable(pipe.reader, once)
    os.write(pipe.writer, b"ready")
    await eventually(lambda: called)
    await turns()
    assert called == ["called"]


@pytest.mark.usefixtures("faults_are_logged")
async def test_a_callback_that_raises_keeps_its_watch(
    pipe: Pipe, caplog: pytest.LogCaptureFixture
) -> None:
    loop = loops.current()
    read: list[bytes] = []

    def take() -> None:
        read.append(os.read(pipe.reader, 100))
        if len(read) == 1:
            raise RuntimeError("only once")

    watch = loop.readable(pipe.reader, take)
    os.write(pipe.writer, b"one")
    await eventually(lambda: len(read) == 1)
    os.write(pipe.writer, b"two")
    await eventually(lambda: len(read) == 2)
    watch.cancel()
    assert read == [b"one", b"two"]
    told = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert len(told) == 1
    assert told[0].exc_info is not None
    assert str(told[0].exc_info[1]) == "only once"


@pytest.mark.parametrize("settled", [True, False], ids=["begun", "not begun"])
async def test_a_descriptor_may_be_closed_at_once_and_its_number_reused(settled: bool) -> None:
    loop = loops.current()
    old, new = Pipe(), Pipe()
    number = old.reader
    told: list[str] = []
    first = loop.readable(number, lambda: told.append("old"))
    if settled:
        await turns(2)
    first.cancel()
    os.close(number)
    os.dup2(new.reader, number)  # another file under the same number, in the same turn
    os.set_blocking(number, False)

    def take() -> None:
        told.append(os.read(number, 100).decode())

    second = loop.readable(number, take)
    os.write(new.writer, b"new")
    await eventually(lambda: told)
    await turns()
    assert told == ["new"]
    first.cancel()  # the old watch does not own the number any more
    os.write(new.writer, b"more")
    await eventually(lambda: len(told) == 2)
    assert told == ["new", "more"]
    second.cancel()
    old.close()
    new.close()


async def test_both_ends_of_one_pipe_are_watched_apart(pipe: Pipe) -> None:
    loop = loops.current()
    told: list[str] = []

    def writable() -> None:
        told.append("writable")
        writing.cancel()

    reading = loop.readable(pipe.reader, lambda: told.append("readable"))
    writing = loop.writable(pipe.writer, writable)
    await eventually(lambda: told)
    await turns()
    assert told == ["writable"], "an empty pipe can be written and not read"
    reading.cancel()


async def test_one_socket_is_watched_both_ways_and_either_watch_ends_alone() -> None:
    loop = loops.current()
    near, far = socket.socketpair()
    told: list[str] = []
    for end in (near, far):
        end.setblocking(False)

    def write() -> None:
        told.append("room")
        writing.cancel()

    reading = loop.readable(near.fileno(), lambda: told.append(near.recv(100).decode()))
    writing = loop.writable(near.fileno(), write)
    await eventually(lambda: told == ["room"])
    far.send(b"heard")
    await eventually(lambda: told == ["room", "heard"])
    with contextlib.suppress(BlockingIOError):
        while near.send(b"x" * 65536):
            pass
    writing = loop.writable(near.fileno(), write)
    await turns()
    reading.cancel()
    await turns()
    assert told == ["room", "heard"], "it is full"
    with contextlib.suppress(BlockingIOError):
        while far.recv(65536):
            pass
    await eventually(lambda: told == ["room", "heard", "room"])
    near.close()
    far.close()


# -- writable ------------------------------------------------------------------------------


async def test_writable_waits_until_there_is_room(pipe: Pipe) -> None:
    loop = loops.current()
    pipe.fill()
    told: list[str] = []

    def room() -> None:
        told.append("room")
        watch.cancel()

    watch = loop.writable(pipe.writer, room)
    await turns()
    assert told == [], "the pipe is full"
    pipe.drain()
    await eventually(lambda: told)
    assert told == ["room"]


async def test_a_reader_that_is_gone_is_told_of_as_writable(pipe: Pipe) -> None:
    loop = loops.current()
    pipe.fill()
    problems: list[OSError] = []

    def attempt() -> None:
        try:
            os.write(pipe.writer, b"x")
        except OSError as problem:
            problems.append(problem)
            watch.cancel()

    watch = loop.writable(pipe.writer, attempt)
    spare = os.dup(pipe.writer)
    os.close(pipe.reader)
    await eventually(lambda: problems)
    assert isinstance(problems[0], BrokenPipeError)
    pipe.reader = spare
