"""The stdio rules over a socket: lines in, frames out, and the end of the stream is the end."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import AsyncIterator, Callable

import anyio
import pytest

from mcpclient import Limits, Timeouts, loops
from mcpclient.ground.exits import Exit
from mcpclient.transports.streams import CLOSED, HUNG_UP, StreamTransport
from tests.conftest import eventually
from tests.transports.conftest import PATIENT
from tests.transports.sinks import Recorder, line

KINDS = ("unix", "tcp")
Link = tuple[StreamTransport, Recorder, socket.socket]
Join = Callable[..., Link]


def pair(kind: str) -> tuple[socket.socket, socket.socket]:
    """Return two ends of a stream: ours, which does not block, and the server's."""
    if kind == "unix":
        near, far = socket.socketpair()
    else:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            near = socket.create_connection(listener.getsockname())
            far, _ = listener.accept()
    near.setblocking(False)
    far.settimeout(20)
    return near, far


@pytest.fixture(params=KINDS)
async def join(request: pytest.FixtureRequest) -> AsyncIterator[Join]:
    """Make transports, started, with the sink that listens and the server's end of the stream."""
    made: list[Link] = []

    def make(
        timeouts: Timeouts = PATIENT,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        listen: bool = True,
    ) -> Link:
        near, far = pair(request.param)
        transport = StreamTransport(near, loop=loops.current(), timeouts=timeouts, limits=limits)
        sink = Recorder()
        if listen:
            transport.start(sink)
        made.append((transport, sink, far))
        return made[-1]

    yield make
    for transport, _, far in made:
        transport.kill()
        far.close()


def reset(far: socket.socket) -> None:
    """Close a TCP socket as a machine does that knows nothing of the connection any more."""
    far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    far.close()


def drain(far: socket.socket) -> bytes:
    """Read what there is, to the end of the stream."""
    found = b""
    while chunk := far.recv(65536):
        found += chunk
    return found


def echo(far: socket.socket, size: int) -> None:
    """Send back so many bytes."""
    while size:
        chunk = far.recv(65536)
        far.sendall(chunk)
        size -= len(chunk)


# -- frames --------------------------------------------------------------------------------


async def test_frames_go_there_and_back_in_order(join: Join) -> None:
    transport, sink, far = join()
    for number in range(200):
        (transport.send if number % 3 else transport.send_soon)(line(f"frame {number}"))
    await anyio.to_thread.run_sync(echo, far, sum(len(f"frame {n}\n") for n in range(200)))
    await sink.frames_are(200)
    assert sink.frames == [b"frame %d" % number for number in range(200)]
    far.close()
    assert await sink.gone_with() == (HUNG_UP, "")
    assert str(HUNG_UP) == "the server closed the connection"


async def test_a_large_frame_goes_there_and_back_whole(join: Join) -> None:
    transport, sink, far = join()
    data = bytes(range(32, 127)) * 60_000  # far more than both buffers hold
    transport.send(line(data))
    transport.send(line("small"))

    await anyio.to_thread.run_sync(echo, far, len(data) + len("\nsmall\n"))
    await sink.frames_are(2)
    assert sink.frames == [data, b"small"]


async def test_nothing_is_delivered_before_the_start(join: Join) -> None:
    transport, sink, far = join(listen=False)
    far.sendall(b"early\n")
    far.shutdown(socket.SHUT_WR)
    await anyio.sleep(0.05)
    assert sink.order == []
    transport.start(sink)
    assert await sink.gone_with() == (HUNG_UP, "")
    assert sink.frames == [b"early"]


async def test_it_has_no_process_and_no_stderr(join: Join) -> None:
    transport, _, _ = join()
    assert transport.pid is None
    assert transport.stderr_tail() == ""


async def test_a_line_that_is_cut_anywhere_is_one_line(join: Join) -> None:
    _, sink, far = join()
    data = '{"text":"né\u2028"}'.encode()
    for place in range(1, len(data) + 1):
        far.sendall(data[:place])
        await anyio.lowlevel.checkpoint()
        far.sendall(data[place:] + b"\n")
        await sink.frames_are(place)
    assert sink.frames == [data] * len(data)
    assert sink.rests == sink.oversizes == []


async def test_a_line_over_the_limit_is_skipped_and_the_next_one_read(join: Join) -> None:
    _, sink, far = join(limits=Limits(frame=100_000))
    flood = b'{"id":7,' + b"x" * 300_000 + b"\nafter\n"
    await anyio.to_thread.run_sync(far.sendall, flood)
    await sink.frames_are(1)
    (spill,) = sink.oversizes
    assert spill.length == 300_008
    assert spill.head.startswith(b'{"id":7,xxx')
    assert sink.order == ["oversize", "frame"]


async def test_a_line_over_the_limit_that_never_ends_is_told_at_the_end(join: Join) -> None:
    _, sink, far = join(limits=Limits(frame=1000))
    far.sendall(b"x" * 5000)
    far.close()
    assert await sink.gone_with() == (HUNG_UP, "")
    assert sink.order == ["oversize", "gone"]
    assert sink.oversizes[0].length == 5000


async def test_both_sides_may_flood_at_once(join: Join) -> None:
    transport, sink, far = join()
    for number in range(2000):
        transport.send_soon(line(f"{number} " + "x" * 1000))
    told = b"".join(b"%d %s\n" % (number, b"y" * 1000) for number in range(2000))

    def flood() -> None:
        far.sendall(told)
        far.shutdown(socket.SHUT_WR)

    await anyio.to_thread.run_sync(flood)
    await sink.gone_with()
    assert [int(frame.split()[0]) for frame in sink.frames] == list(range(2000))


async def test_a_server_that_does_not_read_is_told_of_and_its_frames_can_be_withdrawn(
    join: Join,
) -> None:
    transport, sink, far = join(timeouts=Timeouts(write=0.05, eof=0.05))
    big, small = line("x" * 8_000_000), line("small")
    transport.send(big)
    transport.send_soon(small)
    await eventually(lambda: len(sink.stalls) >= 2)
    assert (big.written, small.written) == (True, False)
    before = transport.waiting
    assert not transport.withdraw(big)
    assert transport.withdraw(small)
    assert transport.waiting == before - len(small.frame)
    assert sink.gones == [], "what to do about it is for others to say"
    # One that never reads does not read the end of its input either.
    assert await transport.close() == CLOSED
    assert sink.gones == [(CLOSED, "")]
    assert len(drain_what_came(far)) < len(big.frame)


def drain_what_came(far: socket.socket) -> bytes:
    """Read to the end of the stream, also if that is a reset."""
    found = b""
    try:
        while chunk := far.recv(65536):
            found += chunk
    except ConnectionResetError:
        pass
    return found


# -- the server ends it --------------------------------------------------------------------


async def test_what_was_sent_just_before_the_end_counts(join: Join) -> None:
    for _ in range(5):
        _, sink, far = join()
        far.sendall(b"answer\n" * 1000 + b"half a li")
        far.close()
        assert await sink.gone_with() == (HUNG_UP, "")
        assert sink.frames == [b"answer"] * 1000
        assert sink.rests == [b"half a li"]
        assert sink.order[-2:] == ["rest", "gone"]


async def test_a_server_that_ends_with_our_words_unread_is_still_heard(join: Join) -> None:
    transport, sink, far = join()
    transport.send(line("a request"))
    far.sendall(b"last words\nand mo")
    far.close()  # with something unread: a reset follows what it said
    exit, reason = await sink.gone_with()
    assert (exit.clean, exit.code, exit.signal, reason) == (False, None, None, "")
    assert str(exit) in (
        "the connection broke (Connection reset by peer)",
        "the server closed the connection",
    )
    if exit == HUNG_UP or sink.frames:
        assert (sink.frames, sink.rests) == ([b"last words"], [b"and mo"])


async def test_a_reset_is_told_as_such() -> None:
    near, far = pair("tcp")
    transport = StreamTransport(near, loop=loops.current(), timeouts=PATIENT, limits=Limits())
    sink = Recorder()
    transport.start(sink)
    reset(far)
    exit, reason = await sink.gone_with()
    assert (str(exit), reason) == ("the connection broke (Connection reset by peer)", "")


async def test_a_server_that_says_it_is_done_but_reads_on_is_done(join: Join) -> None:
    transport, sink, far = join()
    far.shutdown(socket.SHUT_WR)
    assert await sink.gone_with() == (HUNG_UP, "")
    item = line("anyone there?")
    transport.send(item)
    transport.send_soon(item)
    assert not item.written
    assert far.recv(100) == b""


async def test_a_server_that_takes_nothing_any_more_is_given_up() -> None:
    near, far = pair("unix")
    timeouts = Timeouts(eof=0.05)
    transport = StreamTransport(near, loop=loops.current(), timeouts=timeouts, limits=Limits())
    sink = Recorder()
    transport.start(sink)
    far.sendall(b"I do not listen\n")
    far.shutdown(socket.SHUT_RD)
    item = line("anyone there?")
    transport.send(item)
    assert await sink.gone_with() == (CLOSED, "the server takes nothing any more (Broken pipe)")
    assert not item.written
    assert sink.frames == [b"I do not listen"]
    far.close()


async def test_a_server_that_takes_nothing_any_more_may_still_end_by_itself() -> None:
    near, far = pair("unix")
    transport = StreamTransport(near, loop=loops.current(), timeouts=PATIENT, limits=Limits())
    sink = Recorder()
    transport.start(sink)
    far.shutdown(socket.SHUT_RD)
    transport.send(line("anyone there?"))
    await anyio.sleep(0.01)
    far.sendall(b"goodbye\n")
    far.close()
    assert await sink.gone_with() == (HUNG_UP, "")
    assert sink.frames == [b"goodbye"]


# -- we end it -----------------------------------------------------------------------------


async def test_a_close_ends_the_servers_input_and_hears_what_it_says_to_that(join: Join) -> None:
    transport, sink, far = join()
    transport.send_soon(line("the last request"))
    found: list[bytes] = []

    def server() -> None:
        found.append(drain(far))
        far.sendall(b"the last answer\n")
        far.close()

    async with anyio.create_task_group() as group:
        group.start_soon(anyio.to_thread.run_sync, server)
        assert await transport.close() == HUNG_UP
    assert found == [b"the last request\n"], "what waits is written first"
    assert sink.frames == [b"the last answer"]
    assert sink.gones == [(HUNG_UP, "")]


async def test_a_server_that_does_not_hang_up_is_waited_for_no_longer_than_the_time_for_it(
    join: Join,
) -> None:
    transport, sink, far = join(timeouts=Timeouts(eof=0.1))
    assert await transport.close() == CLOSED
    assert sink.gones == [(CLOSED, "")]
    assert drain(far) == b""


async def test_a_close_that_is_cancelled_is_a_whole_close(join: Join) -> None:
    transport, sink, _ = join(timeouts=Timeouts(eof=0.1))
    with anyio.CancelScope() as scope:
        scope.cancel()
        await transport.close()
    assert sink.gones == [(CLOSED, "")]


async def test_it_may_be_closed_before_it_was_started_and_twice(join: Join) -> None:
    transport, sink, far = join(listen=False)
    assert await transport.close() == CLOSED
    assert await transport.close() == CLOSED
    assert sink.gones == []
    assert drain(far) == b""


async def test_a_close_after_the_end_says_how_it_ended(join: Join) -> None:
    transport, sink, far = join()
    far.close()
    await sink.gone_with()
    assert await transport.close() == HUNG_UP
    assert len(sink.gones) == 1


async def test_destroyed_it_is_gone_at_once_and_told_why(join: Join) -> None:
    transport, sink, far = join()
    transport.destroy("it answered no ping")
    transport.destroy("once is enough")
    assert sink.gones == [], "never on the stack of whoever destroys it"
    assert await sink.gone_with() == (CLOSED, "it answered no ping")
    assert drain(far) == b""


async def test_killed_it_is_gone_before_the_call_returns(join: Join) -> None:
    transport, sink, far = join()
    transport.send_soon(line("never written"))
    transport.kill()
    transport.kill()
    assert sink.gones == [(CLOSED, "")]
    assert drain(far) == b""


async def test_a_descriptor_that_is_closed_is_not_watched_any_more(join: Join) -> None:
    transport, sink, _ = join()
    number = transport._sock.fileno()
    read, write = os.pipe()
    transport.kill()
    os.dup2(read, number)  # the number is another file's now
    os.write(write, b"not for us\n")
    await anyio.sleep(0.05)
    assert sink.order == ["gone"]
    for fd in (read, write, number):
        os.close(fd)


# -- hostile -------------------------------------------------------------------------------

CONVERSATION = b'{"a":1}\n\n{"b":"\xc3\xa9"}\r\n[]\n'


async def test_a_stream_that_is_cut_at_any_byte_gives_the_lines_before_it(join: Join) -> None:
    for place in range(len(CONVERSATION) + 1):
        _, sink, far = join()
        far.sendall(CONVERSATION[:place])
        far.close()
        await sink.gone_with()
        whole, _, rest = CONVERSATION[:place].rpartition(b"\n")
        assert sink.frames == (whole.split(b"\n") if b"\n" in CONVERSATION[:place] else [])
        assert sink.rests == ([rest] if rest else [])
        assert len(sink.gones) == 1


def test_an_exit_of_words_is_an_exit_like_any_other() -> None:
    assert Exit(words="gone") != Exit()
    assert not HUNG_UP.clean
