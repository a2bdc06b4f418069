"""How a server is ended: EOF, SIGTERM, SIGKILL, each in time, to its whole group, come what may."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from pathlib import Path

import anyio
import pytest
from anyio import CapacityLimiter

from mcpclient import Limits, Timeouts, loops
from mcpclient.ground.exits import Exit
from mcpclient.transports import stdio
from mcpclient.transports.process import Command
from mcpclient.transports.stdio import StdioTransport
from tests.conftest import alive, eventually
from tests.transports.conftest import Launch, fixture_server, shell
from tests.transports.sinks import Recorder, line

pytestmark = pytest.mark.usefixtures("either_way")

# The room that a busy machine may take beyond the patience that was asked for.
SLACK = 4.0


async def answers(transport: StdioTransport, sink: Recorder) -> None:
    """Wait until a fixture server runs, so that it has set up its sin."""
    count = len(sink.frames)
    transport.send(line('{"jsonrpc":"2.0","id":1,"method":"ping"}'))
    await sink.frames_are(count + 1)
    assert json.loads(sink.frames[count]) == {"jsonrpc": "2.0", "id": 1, "result": {}}


async def closed(transport: StdioTransport) -> tuple[Exit, float]:
    """Close a transport and return the exit and how long it took."""
    begun = time.monotonic()
    exit = await transport.close()
    return exit, time.monotonic() - begun


async def test_a_server_that_ends_on_eof_gets_no_signal(launch: Launch) -> None:
    transport, sink = await launch(fixture_server("good_handshake"))
    await answers(transport, sink)
    exit, _ = await closed(transport)
    assert exit == Exit(code=0)
    assert sink.gones == [(Exit(code=0), "")]
    assert not Path(f"/proc/{transport.pid}").exists(), "it is reaped"


async def test_a_server_that_ignores_eof_gets_sigterm(launch: Launch) -> None:
    transport, sink = await launch(
        fixture_server("ignores_eof"), timeouts=Timeouts(eof=0.1, term=60.0)
    )
    await answers(transport, sink)
    exit, took = await closed(transport)
    assert exit == Exit(signal=signal.SIGTERM)
    assert 0.1 <= took < 0.1 + SLACK
    assert sink.gones == [(exit, "")]


async def test_a_server_that_ignores_eof_and_sigterm_gets_sigkill(launch: Launch) -> None:
    transport, sink = await launch(
        fixture_server("ignores_eof_and_term"), timeouts=Timeouts(eof=0.1, term=0.1)
    )
    await answers(transport, sink)
    exit, took = await closed(transport)
    assert exit == Exit(signal=signal.SIGKILL)
    assert 0.2 <= took < 0.2 + SLACK
    assert sink.gones == [(exit, "")]


async def test_a_server_may_clean_up_at_sigterm(launch: Launch) -> None:
    script = 'trap "echo bye; exit 4" TERM; echo ready; while :; do sleep 0.01; done'
    transport, sink = await launch(shell(script), timeouts=Timeouts(eof=0.05, term=60.0))
    await sink.frames_are(1)
    assert await transport.close() == Exit(code=4)
    assert sink.frames == [b"ready", b"bye"]


async def test_a_server_that_stopped_reading_is_ended_all_the_same(launch: Launch) -> None:
    transport, sink = await launch(
        shell("echo ready; exec sleep 300"), timeouts=Timeouts(eof=0.1, term=60.0, write=60.0)
    )
    await sink.frames_are(1)
    transport.send(line("x" * 300_000))
    assert transport.waiting > 0
    exit, took = await closed(transport)
    assert exit == Exit(signal=signal.SIGTERM)
    assert 0.1 <= took < 0.1 + SLACK
    assert transport.waiting == 0


async def test_what_waits_is_written_before_the_end_of_the_input(launch: Launch) -> None:
    transport, sink = await launch(shell("wc -c"))
    transport.send(line("x" * 299_999))
    transport.send_soon(line("y" * 99))
    assert await transport.close() == Exit(code=0)
    assert sink.frames == [b"300100"]


async def test_a_stopped_server_cannot_refuse(launch: Launch) -> None:
    transport, sink = await launch(
        shell("echo ready; exec cat"), timeouts=Timeouts(eof=0.1, term=0.1)
    )
    await sink.frames_are(1)
    os.kill(transport.pid, signal.SIGSTOP)
    exit, took = await closed(transport)
    assert exit == Exit(signal=signal.SIGKILL)
    assert took < 0.2 + SLACK


# -- shielded ------------------------------------------------------------------------------


async def test_a_cancelled_close_goes_all_the_way(launch: Launch) -> None:
    transport, sink = await launch(
        fixture_server("ignores_eof_and_term"), timeouts=Timeouts(eof=0.1, term=0.1)
    )
    await answers(transport, sink)
    with anyio.CancelScope() as scope:
        scope.cancel()
        assert await transport.close() == Exit(signal=signal.SIGKILL)
        await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught, "the cancellation comes after"
    assert not Path(f"/proc/{transport.pid}").exists()


async def test_a_deadline_does_not_shorten_a_close(launch: Launch) -> None:
    transport, sink = await launch(
        fixture_server("ignores_eof"), timeouts=Timeouts(eof=0.2, term=60.0)
    )
    await answers(transport, sink)
    with anyio.move_on_after(0.02):
        await transport.close()
    assert sink.gones == [(Exit(signal=signal.SIGTERM), "")]


async def test_two_tasks_may_close_at_the_same_time(launch: Launch) -> None:
    transport, sink = await launch(
        fixture_server("ignores_eof"), timeouts=Timeouts(eof=0.1, term=60.0)
    )
    await answers(transport, sink)
    exits: list[Exit] = []

    async def close() -> None:
        exits.append(await transport.close())

    async with anyio.create_task_group() as group:
        group.start_soon(close)
        group.start_soon(close)
    assert exits == [Exit(signal=signal.SIGTERM)] * 2
    assert await transport.close() == Exit(signal=signal.SIGTERM), "and once more is no fault"
    assert len(sink.gones) == 1


async def test_a_transport_that_was_never_started_is_closed_and_reaped(launch: Launch) -> None:
    transport, _ = await launch(shell("exec cat"), listen=False, timeouts=Timeouts(eof=2.0))
    exit, took = await closed(transport)
    assert exit == Exit(code=0)
    assert took < 2.0
    assert not Path(f"/proc/{transport.pid}").exists()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_loop_that_ends_during_a_close_leaves_no_process(backend: str) -> None:
    exits: list[Exit] = []

    async def main() -> None:
        loop = loops.current()
        transport = await stdio.spawn(
            Command(fixture_server("ignores_eof")),
            loop=loop,
            limiter=CapacityLimiter(1),
            timeouts=Timeouts(eof=0.1, term=60.0),
            limits=Limits(),
            kill_tree=True,
        )
        sink = Recorder()
        transport.start(sink)
        await answers(transport, sink)

        async def close() -> None:
            try:
                await transport.close()
            finally:
                transport.kill()
                exits.append(sink.gones[0][0])

        loop.job(close, "close")
        await anyio.wait_all_tasks_blocked()

    anyio.run(main, backend=backend)
    # asyncio cancels what still runs for good; trio lets the shielded ladder go on.
    expected = {"asyncio": signal.SIGKILL, "trio": signal.SIGTERM}[backend]
    assert exits == [Exit(signal=expected)]


# -- at once -------------------------------------------------------------------------------


async def test_kill_returns_when_nothing_is_left(launch: Launch) -> None:
    transport, sink = await launch(
        shell("trap '' TERM; sleep 300 & echo $!; wait"), timeouts=Timeouts(eof=60, term=60)
    )
    grandchild = int((await sink.frames_are(1))[0])
    transport.kill()
    assert sink.gones == [(Exit(signal=signal.SIGKILL), "")]
    assert not Path(f"/proc/{transport.pid}").exists()
    await eventually(lambda: not alive(grandchild))
    transport.kill()
    assert await transport.close() == Exit(signal=signal.SIGKILL)
    assert len(sink.gones) == 1


async def test_kill_during_a_close_ends_the_close(launch: Launch) -> None:
    transport, sink = await launch(fixture_server("ignores_eof_and_term"))
    await answers(transport, sink)
    exits: list[Exit] = []

    async def close() -> None:
        exits.append(await transport.close())

    async with anyio.create_task_group() as group:
        group.start_soon(close)
        await anyio.wait_all_tasks_blocked()
        transport.kill()
    assert exits == [Exit(signal=signal.SIGKILL)]


async def test_destroy_is_told_with_its_reason(launch: Launch) -> None:
    transport, sink = await launch(shell("trap '' TERM; echo ready; exec cat"))
    await sink.frames_are(1)
    transport.destroy("it answered no ping")
    assert await sink.gone_with() == (Exit(signal=signal.SIGKILL), "it answered no ping")


# -- the group -----------------------------------------------------------------------------


async def test_a_grandchild_that_holds_stdout_delays_nothing_and_is_swept(launch: Launch) -> None:
    _, sink = await launch(shell("sleep 300 & echo $!; exit 3"))
    assert await sink.gone_with() == (Exit(code=3), "")
    grandchild = int(sink.frames[0])
    await eventually(lambda: not alive(grandchild))
    assert sink.order == ["frame", "gone"]


async def test_a_grandchild_is_ended_with_a_server_that_is_closed(launch: Launch) -> None:
    transport, sink = await launch(shell("sleep 300 & echo $!; cat; exit 0"))
    grandchild = int((await sink.frames_are(1))[0])
    assert await transport.close() == Exit(code=0)
    await eventually(lambda: not alive(grandchild))


async def test_a_grandchild_of_another_session_cannot_hold_us(launch: Launch) -> None:
    transport, sink = await launch(shell("setsid sh -c 'echo $$; exec sleep 300' & cat; exit 0"))
    grandchild = int((await sink.frames_are(1))[0])
    try:
        with anyio.fail_after(10):
            assert await transport.close() == Exit(code=0)
        assert alive(grandchild), "it left the group, so it is not ours to end"
        assert sink.gones == [(Exit(code=0), "")]
    finally:
        os.kill(grandchild, signal.SIGKILL)


async def test_the_tree_lives_on_where_that_was_asked_for(launch: Launch) -> None:
    transport, sink = await launch(shell("sleep 300 & echo $!; cat; exit 0"), kill_tree=False)
    grandchild = int((await sink.frames_are(1))[0])
    try:
        assert await transport.close() == Exit(code=0)
        assert alive(grandchild)
    finally:
        os.kill(grandchild, signal.SIGKILL)


# -- ends that nobody asked for ------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exit 0", Exit(code=0)),
        ("exit 77", Exit(code=77)),
        ("kill -SEGV $$", Exit(signal=signal.SIGSEGV)),
    ],
)
async def test_an_end_is_told_without_being_asked(
    launch: Launch, script: str, expected: Exit
) -> None:
    transport, sink = await launch(shell(script))
    assert await sink.gone_with() == (expected, "")
    assert await transport.close() == expected


async def test_a_server_killed_from_outside_is_told_of(launch: Launch) -> None:
    transport, sink = await launch(shell("exec cat"))
    os.kill(transport.pid, signal.SIGKILL)
    assert await sink.gone_with() == (Exit(signal=signal.SIGKILL), "")


async def test_a_host_that_reaps_its_children_itself_is_told_of_an_unknown_end(
    launch: Launch,
) -> None:
    transport, sink = await launch(shell("exec cat"))
    os.kill(transport.pid, signal.SIGKILL)
    os.waitpid(transport.pid, 0)
    assert await sink.gone_with() == (Exit(), "")
    assert await transport.close() == Exit()


async def test_a_host_that_ignores_the_end_of_children_can_still_close(launch: Launch) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        transport, sink = await launch(shell("echo ready; exec cat"))
        await sink.frames_are(1)
        with anyio.fail_after(10):
            assert await transport.close() == Exit()
    finally:
        signal.signal(signal.SIGCHLD, before)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_natively_cancelled_close_leaves_the_rest_to_kill(launch: Launch) -> None:
    transport, sink = await launch(fixture_server("ignores_eof"))
    await answers(transport, sink)
    task = asyncio.create_task(transport.close())
    await anyio.wait_all_tasks_blocked()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    transport.kill()
    assert sink.gones == [(Exit(signal=signal.SIGKILL), "")]
