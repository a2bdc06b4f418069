"""A turned clock makes time-outs, pauses and lifetimes end at once, on both loops, in threads."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator

import anyio
import pytest

import mcpclient.blocking
from mcpclient import CallTimedOut, Manager, RestartPolicy, ServerSpec, Timeouts
from mcpclient.testing import Clock, Script, connect, in_memory
from tests.conftest import eventually, spec


@pytest.fixture
def clock() -> Iterator[Clock]:
    with Clock() as made:
        yield made


async def test_a_call_times_out_when_its_time_was_turned_and_not_before(clock: Clock) -> None:
    script = Script()
    script.on("tools/call", name="slow").silence()
    async with connect(script) as server, anyio.create_task_group() as group:
        ended: list[CallTimedOut] = []

        async def call() -> None:
            with pytest.raises(CallTimedOut) as raised:
                await server.invoke_tool("slow", timeout=3600)
            ended.append(raised.value)

        group.start_soon(call)
        await eventually(lambda: script.received("tools/call"))
        await clock.advance(3000)
        assert not ended
        await clock.until(lambda: ended, step=100)
        assert 3500 < clock.turned < 3900
        assert ended[0].maybe_done


async def test_a_call_in_the_foreground_times_out_while_the_clock_is_turning(clock: Clock) -> None:
    script = Script()
    script.on("tools/call", name="slow").silence()
    async with connect(script) as server:
        with clock.turning(step=30), pytest.raises(CallTimedOut):
            await server.invoke_tool("slow")  # a minute, by default


async def test_a_scripted_wait_is_turned_too(clock: Clock) -> None:
    script = Script()
    script.on("tools/call", name="slow").wait(50).text("slow")
    async with connect(script) as server:
        with clock.turning():
            assert (await server.invoke_tool("slow")).text == "slow"
    assert clock.turned > 40  # and the rest went by itself


async def test_pauses_between_lives_pass(clock: Clock) -> None:
    script = Script()
    script.start().times(3).die(1)
    policy = RestartPolicy(first=30, cap=500, jitter=0, burst=10, within=10_000)
    made = in_memory(script, restart=policy, start="eager", era="handshake")
    async with Manager({"s": made}) as manager:
        server = manager["s"]
        await clock.until(lambda: server.state == "up", step=5)
        assert server.generation == 4
        assert clock.turned > 200  # 30 + 60 + 120, less what went by itself


async def test_an_idle_server_is_stopped(clock: Clock) -> None:
    async with connect(Script(), idle_stop=3600) as server:
        await clock.until(lambda: server.state == "idle", step=600, within=7200)


async def test_what_is_cached_grows_old(clock: Clock) -> None:
    script = Script()
    script.on("resources/read", uri="a://b").contents("old")
    script.on("resources/read", uri="a://b").contents("new")
    async with connect(script, cache_ttl=600) as server:
        assert (await server.read_resource("a://b")).text == "old"
        await clock.advance(500)
        assert (await server.read_resource("a://b")).text == "old"
        await clock.advance(101)
        assert (await server.read_resource("a://b")).text == "new"


async def test_a_server_in_another_process_is_waited_for_in_real_time(clock: Clock) -> None:
    made = spec("good_handshake", idle_stop=3600, timeouts=Timeouts(open=600))
    async with connect(made) as server:
        assert (await server.invoke_tool("echo", {"text": "here"})).text == "here"
        await clock.until(lambda: server.state != "up", step=900, within=50_000)
        await eventually(lambda: server.state == "idle")  # its end takes its own time


async def test_the_users_own_sleeps_are_turned(clock: Clock) -> None:
    async with anyio.create_task_group() as group:
        woken: list[float] = []

        async def sleep() -> None:
            begun = anyio.current_time()
            await anyio.sleep(100)
            woken.append(anyio.current_time() - begun)

        group.start_soon(sleep)
        await clock.advance(0)
        await clock.advance(99)
        assert not woken
        await clock.advance(1)
    assert 99 < woken[0] < 200


async def test_what_never_comes_true_fails_by_turned_time(clock: Clock) -> None:
    with pytest.raises(AssertionError, match="did not come true within 100 s of turned time"):
        await clock.until(lambda: False, within=100, step=10)
    assert clock.turned == pytest.approx(100)


def test_a_blocking_manager_in_its_own_thread_is_woken() -> None:
    script = Script()
    with Clock() as clock:
        made = in_memory(script, idle_stop=3600)
        with mcpclient.blocking.Manager({"s": made}) as manager:
            server = manager["s"]
            server.start()
            end = time.perf_counter() + 20
            while server.state != "idle":
                assert time.perf_counter() < end
                clock.turn(900)
                time.sleep(0.01)


def test_it_is_never_turned_back() -> None:
    with Clock() as clock:
        before = time.monotonic()
        clock.turn(1000)
        turned = time.monotonic()
        assert 999 < turned - before < 1100
    assert time.monotonic() >= turned
    with Clock() as clock, pytest.raises(ValueError, match="turned forward"):
        clock.turn(-1)
    with Clock() as clock:
        assert clock.turned == 0


def test_a_clock_that_was_not_turned_leaves_nothing() -> None:
    code = (
        "import time\n"
        "before = time.monotonic\n"
        "from mcpclient.testing import Clock\n"
        "with Clock():\n"
        "    assert time.monotonic is not before\n"
        "assert time.monotonic is before\n"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], timeout=60, check=True)


def test_a_loop_with_a_clock_of_its_own_is_refused_by_name() -> None:
    class Other(asyncio.SelectorEventLoop):
        def time(self) -> float:
            return 7.0

    async def turn() -> None:
        with Clock() as clock, pytest.raises(RuntimeError, match="a clock of its own"):
            clock.turn(1)
        assert clock.turned == 0

    with asyncio.Runner(loop_factory=Other) as runner:
        runner.run(turn())


def test_trios_mock_clock_is_refused_by_name() -> None:
    import trio
    import trio.testing

    async def turn() -> None:
        with Clock() as clock, pytest.raises(RuntimeError, match="trio runs by a MockClock"):
            clock.turn(1)

    trio.run(turn, clock=trio.testing.MockClock())


def test_a_spec_in_memory_is_a_spec_like_any_other() -> None:
    made = in_memory(Script(), idle_stop=5)
    assert isinstance(made, ServerSpec)
    assert made.idle_stop == 5
    assert made.type == "stdio"
