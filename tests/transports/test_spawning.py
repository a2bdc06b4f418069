"""A start that is given up leaves no process, and no start leaves a descriptor to anybody else."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading

import anyio
import pytest

from mcpclient import Limits, loops
from mcpclient.ground.exits import Exit
from mcpclient.transports import process as process_module
from mcpclient.transports import stdio
from mcpclient.transports.process import Child, Command
from tests.conftest import children, descriptors, eventually
from tests.transports.conftest import PATIENT, Launch, shell
from tests.transports.sinks import line

# -- descriptors ---------------------------------------------------------------------------


async def test_fifty_starts_and_stops_leave_every_descriptor_closed(
    launch: Launch, either_way: str
) -> None:
    transport, _ = await launch(shell("exec cat"))
    await transport.close()
    before = descriptors()
    # Without a pidfd each of them waits for the next look.
    for number in range(50 if either_way == "pidfd" else 15):
        transport, sink = await launch(("/bin/cat",))
        if number % 3 == 0:
            transport.send(line("hello"))
            await sink.frames_are(1)
        if number % 3 == 1:
            transport.kill()
        else:
            await transport.close()
    assert descriptors().keys() == before.keys()


async def test_no_descriptor_of_ours_is_inherited_by_another_program(launch: Launch) -> None:
    before = descriptors()
    await launch(shell("exec cat"))
    ours = {fd: name for fd, name in descriptors().items() if before.get(fd) != name}
    assert len([name for name in ours.values() if name.startswith("pipe:")]) >= 3
    # A careless program of the host's, which passes on all that can be passed on.
    listed = subprocess.run(
        ["ls", "-l", "/proc/self/fd"], close_fds=False, capture_output=True, text=True, check=True
    )
    pipes = [name for name in ours.values() if name.startswith(("pipe:", "anon_inode:[pidfd"))]
    assert not [name for name in pipes if name in listed.stdout]


async def test_a_server_sees_its_eof_while_another_one_lives(launch: Launch) -> None:
    first, first_sink = await launch(shell("exec cat"))
    second, second_sink = await launch(shell("exec cat"))
    assert await first.close() == Exit(code=0)
    second.send(line("still here"))
    assert await second_sink.frames_are(1) == [b"still here"]
    assert first_sink.gones
    assert not second_sink.gones


# -- a start that is given up --------------------------------------------------------------


class Gate:
    """Holds the thread that starts a process, just before or after it did."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, when: str) -> None:
        self.reached, self.open = threading.Event(), threading.Event()
        self.pids: list[int] = []
        gate = self

        class Slow(Child):
            def __init__(self, *args: object, **options: object) -> None:
                if when == "before":
                    gate.wait()
                super().__init__(*args, **options)  # type: ignore[arg-type]
                gate.pids.append(self.pid)
                if when == "after":
                    gate.wait()

        monkeypatch.setattr(process_module, "Child", Slow)

    def wait(self) -> None:
        self.reached.set()
        assert self.open.wait(10)


async def start(limiter: anyio.CapacityLimiter) -> stdio.StdioTransport:
    return await stdio.spawn(
        Command(("/bin/cat",)),
        loop=loops.current(),
        limiter=limiter,
        timeouts=PATIENT,
        limits=Limits(),
        kill_tree=True,
    )


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_natively_cancelled_start_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    gate = Gate(monkeypatch, when)
    before = children()
    task = asyncio.create_task(start(anyio.CapacityLimiter(1)))
    await eventually(gate.reached.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    gate.open.set()
    await eventually(lambda: gate.pids and not os.path.exists(f"/proc/{gate.pids[0]}"))
    await eventually(lambda: children() == before)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_start_whose_scope_is_cancelled_gives_a_transport_or_no_process(
    monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    gate = Gate(monkeypatch, when)
    before = children()
    got: list[stdio.StdioTransport] = []

    async def run() -> None:
        with scope:
            got.append(await start(anyio.CapacityLimiter(1)))

    scope = anyio.CancelScope()
    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await eventually(gate.reached.is_set)
        scope.cancel()
        gate.open.set()
    for transport in got:
        transport.kill()
    await eventually(lambda: children() == before)


async def test_a_start_that_is_cancelled_in_the_queue_starts_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate = Gate(monkeypatch, "after")
    limiter = anyio.CapacityLimiter(1)
    got: list[stdio.StdioTransport] = []

    async def run(scope: anyio.CancelScope) -> None:
        with scope:
            got.append(await start(limiter))

    first, second = anyio.CancelScope(), anyio.CancelScope()
    async with anyio.create_task_group() as group:
        group.start_soon(run, first)
        await eventually(gate.reached.is_set)
        group.start_soon(run, second)
        await anyio.wait_all_tasks_blocked()
        second.cancel()
        gate.open.set()
    assert second.cancelled_caught
    assert len(gate.pids) == len(got) == 1
    got[0].kill()


async def test_many_starts_share_the_threads_they_are_given() -> None:
    limiter = anyio.CapacityLimiter(2)
    got: list[stdio.StdioTransport] = []

    async def run() -> None:
        got.append(await start(limiter))

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(run)
    assert len({transport.pid for transport in got}) == 10
    for transport in got:
        transport.kill()
