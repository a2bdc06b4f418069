"""What a server writes is read, all of it and all the time; what it never reads hurts nobody."""

from __future__ import annotations

import os
import signal

import anyio
import pytest

from mcpclient import Limits, Timeouts
from mcpclient.ground.exits import Exit
from tests.conftest import eventually
from tests.transports.conftest import Launch, shell
from tests.transports.sinks import line


async def test_frames_go_there_and_back_in_order(launch: Launch) -> None:
    transport, sink = await launch(shell("exec cat"))
    for number in range(200):
        (transport.send if number % 3 else transport.send_soon)(line(f"frame {number}"))
    await sink.frames_are(200)
    assert sink.frames == [b"frame %d" % number for number in range(200)]
    assert transport.waiting == 0


async def test_a_large_frame_goes_there_and_back_whole(launch: Launch) -> None:
    transport, sink = await launch(shell("exec cat"))
    data = bytes(range(32, 127)) * 30_000  # far more than both pipes hold
    transport.send(line(data))
    transport.send(line("small"))
    await sink.frames_are(2)
    assert sink.frames == [data, b"small"]


async def test_nothing_is_delivered_before_the_start(launch: Launch) -> None:
    transport, sink = await launch(shell("echo early; exec cat"), listen=False)
    await anyio.sleep(0.02)
    assert sink.order == []
    transport.start(sink)
    assert await sink.frames_are(1) == [b"early"]


async def test_a_server_that_ended_before_the_start_is_still_heard(launch: Launch) -> None:
    transport, sink = await launch(shell("echo early; exit 6"), listen=False)
    await eventually(lambda: os.waitid(os.P_PID, transport.pid, _LOOK))
    transport.start(sink)
    assert await sink.gone_with() == (Exit(code=6), "")
    assert sink.frames == [b"early"]


_LOOK = os.WEXITED | os.WNOHANG | os.WNOWAIT


# -- the last words ------------------------------------------------------------------------


@pytest.mark.usefixtures("either_way")
async def test_what_was_written_just_before_the_end_counts(launch: Launch) -> None:
    script = "echo answer; echo last words >&2; exit 1"
    for _ in range(5):
        transport, sink = await launch(shell(script))
        assert await sink.gone_with() == (Exit(code=1), "")
        assert sink.order == ["frame", "gone"]
        assert sink.frames == [b"answer"]
        assert transport.stderr_tail() == "last words\n"


async def test_a_full_pipe_of_last_words_counts(launch: Launch) -> None:
    script = 'i=0; while [ $i -lt 600 ]; do echo "$i xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx'
    script += 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"; i=$((i+1)); done; kill -KILL $$'
    _, sink = await launch(shell(script))
    assert await sink.gone_with() == (Exit(signal=signal.SIGKILL), "")
    assert [int(frame.split()[0]) for frame in sink.frames] == list(range(600))
    assert sink.order[-1] == "gone"


async def test_a_last_line_without_its_end_is_told_as_such(launch: Launch) -> None:
    _, sink = await launch(shell("printf 'whole\\nunfinished'"))
    await sink.gone_with()
    assert (sink.frames, sink.rests) == ([b"whole"], [b"unfinished"])
    assert sink.order == ["frame", "rest", "gone"]


async def test_the_words_of_a_server_that_is_closed_count_too(launch: Launch) -> None:
    transport, sink = await launch(shell("cat >/dev/null; echo goodbye; echo why >&2"))
    assert await transport.close() == Exit(code=0)
    assert sink.frames == [b"goodbye"]
    assert transport.stderr_tail() == "why\n"


# -- floods --------------------------------------------------------------------------------


async def test_a_flood_on_stderr_without_a_newline_is_drained_and_its_tail_kept(
    launch: Launch,
) -> None:
    limits = Limits(stderr=4096)
    script = "head -c 1048576 /dev/zero | tr '\\0' x >&2; printf end >&2; echo done; exec cat"
    transport, sink = await launch(shell(script), limits=limits)
    assert await sink.frames_are(1) == [b"done"], "a full stderr blocks a server for ever"
    await eventually(lambda: transport.stderr_tail().endswith("end"))
    tail = transport.stderr_tail()
    assert tail == "x" * (4096 - 3) + "end"
    assert len(transport._stderr) <= 2 * 4096 + 65536, "what is kept has a limit"


async def test_a_short_stderr_is_kept_whole_and_damaged_text_is_shown(launch: Launch) -> None:
    transport, _ = await launch(shell("printf 'caf\\303\\251 \\377 \\303' >&2; exec cat"))
    await eventually(lambda: len(transport.stderr_tail()) >= 8)
    assert transport.stderr_tail() == "café \ufffd \ufffd"


async def test_both_outputs_are_read_at_once(launch: Launch) -> None:
    script = (
        "for i in 1 2 3 4 5; do head -c 100000 /dev/zero | tr '\\0' e >&2; "
        "head -c 100000 /dev/zero | tr '\\0' o; echo; done; exit 0"
    )
    transport, sink = await launch(shell(script))
    assert await sink.gone_with() == (Exit(code=0), "")
    assert sink.frames == [b"o" * 100_000] * 5
    assert transport.stderr_tail() == "e" * 65536


async def test_a_flood_on_stdout_is_cut_into_frames_within_the_limit(launch: Launch) -> None:
    script = "head -c 300000 /dev/zero | tr '\\0' x; echo; echo after; exec cat"
    _, sink = await launch(shell(script), limits=Limits(frame=100_000))
    assert await sink.frames_are(1) == [b"after"]
    (spill,) = sink.oversizes
    assert spill.length == 300_000
    assert sink.order == ["oversize", "frame"]


async def test_both_sides_may_flood_at_once(launch: Launch) -> None:
    transport, sink = await launch(shell("exec cat"))
    for number in range(2000):
        transport.send_soon(line(f"{number} " + "x" * 1000))
    await sink.frames_are(2000)
    assert [int(frame.split()[0]) for frame in sink.frames] == list(range(2000))


async def test_a_server_that_does_not_read_is_told_of_and_its_frames_can_be_withdrawn(
    launch: Launch,
) -> None:
    transport, sink = await launch(
        shell("echo ready; exec sleep 300"), timeouts=Timeouts(write=0.05, eof=0.05)
    )
    await sink.frames_are(1)
    big, small = line("x" * 300_000), line("small")
    transport.send(big)
    transport.send_soon(small)
    await eventually(lambda: len(sink.stalls) >= 2)
    assert sink.stalls[0] >= 0.04
    assert (big.written, small.written) == (True, False)
    before = transport.waiting
    assert not transport.withdraw(big)
    assert transport.withdraw(small)
    assert transport.waiting == before - len(small.frame)
    assert sink.gones == [], "what to do about it is for others to say"


# -- deaf and mute -------------------------------------------------------------------------


async def test_a_server_that_closed_its_stdout_but_lives_is_ended(launch: Launch) -> None:
    _, sink = await launch(
        shell("echo ready; exec >&-; exec sleep 300"), timeouts=Timeouts(eof=0.05)
    )
    assert await sink.gone_with() == (Exit(signal=signal.SIGKILL), "the server closed its stdout")
    assert sink.frames == [b"ready"]


async def test_a_server_that_closed_its_stdout_may_still_end_by_itself(launch: Launch) -> None:
    _, sink = await launch(shell("exec >&-; sleep 0.05; exit 9"))
    assert await sink.gone_with() == (Exit(code=9), "")


async def test_a_server_that_closed_its_stdin_but_lives_is_ended_at_the_next_frame(
    launch: Launch,
) -> None:
    transport, sink = await launch(
        shell("exec <&-; echo ready; exec sleep 300"), timeouts=Timeouts(eof=0.05)
    )
    await sink.frames_are(1)
    await anyio.sleep(0.1)
    assert sink.gones == [], "nobody minds before something is to be sent"
    item = line("anyone there?")
    transport.send(item)
    assert await sink.gone_with() == (
        Exit(signal=signal.SIGKILL),
        "the server closed its stdin (Broken pipe)",
    )
    assert not item.written
