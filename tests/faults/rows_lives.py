"""Rows of the matrix: servers that end when they should not, or do not when they should."""

from __future__ import annotations

import os
import signal
import time

import anyio

from mcpclient import (
    RestartPolicy,
    RestartsExhausted,
    ServerDied,
)
from tests.conftest import alive, eventually
from tests.faults.matrix import (
    Fault,
    Scene,
    call,
    echoes,
    killed,
    sinner,
    stopping,
)

ONCE = RestartPolicy(when="never")


async def killed_again_and_again(scene: Scene) -> None:
    for life in range(1, 7):
        await scene.server.wait_ready()
        assert scene.server.status().restarts == life - 1
        os.kill(await scene.pid(), signal.SIGKILL)
        await eventually(lambda life=life: len(scene.server.incidents) == life)
    await scene.call("echo", text="once more")


async def killed_after_its_answer(scene: Scene) -> str:
    """The answer is in the pipe, the process dead, and only then does the host get to read."""
    pid = await scene.pid()
    mark = scene.tmp_path / "answered"
    text = ""

    async def ask() -> None:
        nonlocal text
        text = await scene.call(seconds=0.1, mark=str(mark))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await scene.in_flight()
        # Nothing else runs on the loop from here on: what the server writes stays in the pipe.
        while not mark.exists():
            time.sleep(0.005)
        os.kill(pid, signal.SIGKILL)
        while alive(pid):
            time.sleep(0.005)
    return text


async def leader_dies(scene: Scene) -> None:
    """The server exits by itself and leaves a grandchild that holds its pipes."""
    grandchild = int(await scene.call("pid"))
    scene.notes["grandchild"] = grandchild
    assert alive(grandchild)
    await scene.call("exit")


async def leader_is_killed(scene: Scene) -> None:
    scene.notes["grandchild"] = int(await scene.call("pid"))
    await killed()(scene)


async def grandchild_is_gone(scene: Scene) -> None:
    await eventually(lambda: not alive(scene.notes["grandchild"]))


async def grandchild_lives(scene: Scene) -> None:
    # It left the group on purpose, as daemons do; ending it is up to the test.
    pid = scene.notes["grandchild"]
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: not alive(pid))


async def stopping_with_grandchild(scene: Scene) -> None:
    grandchild = int(await scene.call("pid"))
    await stopping(scene)
    await eventually(lambda: not alive(grandchild))


async def stopped_by_a_signal_and_then_by_us(scene: Scene) -> None:
    os.kill(await scene.pid(), signal.SIGSTOP)
    await stopping(scene)


async def cancelled(scene: Scene) -> str:
    """Give one call up, of which the server dies; another one is in flight."""
    other: list[object] = []
    await scene.server.start()

    async def ask() -> None:
        try:
            await scene.call("sin")
        except ServerDied as problem:
            other.append(problem.exit.code)

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await scene.in_flight()
        with anyio.move_on_after(0.05):
            await scene.call("sin")
    assert other == [1]
    return await scene.call("echo", text="alive")


async def deaf(scene: Scene) -> None:
    assert await scene.call("sin") == "deaf now"
    await scene.call("echo", text="do you hear me?")


LIVES = [
    # -- deaths
    Fault(
        name="it exits with a code in a call",
        server=sinner("dies_in_call", 3),
        act=call(),
        error=ServerDied,
        says=(
            'tools/call on "sinner": the server died (exit code 3)',
            "(stderr: the database is gone)",
            "the server may have carried it out",
        ),
        life=2,
        incident="exit code 3 (stderr: the database is gone)",
        also=echoes,
        cases=("B91",),
    ),
    Fault(
        name="it crashes in a call",
        server=sinner("dies_in_call", "SIGSEGV"),
        act=call(),
        error=ServerDied,
        says=("the server died (killed by SIGSEGV)", "the database is gone"),
        life=2,
        incident="killed by SIGSEGV",
        also=echoes,
        cases=("B91",),
    ),
    Fault(
        name="it exits with 0 in a call",
        server=sinner("dies_in_call", 0),
        act=call(),
        error=ServerDied,
        says=("the server died (exit code 0)",),
        after="idle",
        incident="exit code 0",
    ),
    Fault(
        name="it answers and exits with 0",
        server=sinner("answers_and_exits"),
        act=call(),
        gives="sin",
        after="idle",
        incident="exit code 0",
    ),
    Fault(
        name="it answers and crashes",
        server=sinner("answers_and_exits", 5),
        act=call(),
        gives="sin",
        life=2,
        incident="exit code 5",
        also=echoes,
    ),
    Fault(
        name="it is killed between its answer and our reading it",
        server=sinner("busy"),
        act=killed_after_its_answer,
        gives="sin",
        life=2,
        incident="killed by SIGKILL",
    ),
    Fault(
        name="it dies in the middle of its answer",
        server=sinner("half_a_line", 4),
        act=call(),
        error=ServerDied,
        says=("the server died (exit code 4)", "may have carried it out"),
        life=2,
        incident="exit code 4",
        also=echoes,
    ),
    Fault(
        name="it is killed while idle",
        server=sinner("good_handshake"),
        act=killed(),
        life=2,
        incident="killed by SIGKILL",
        also=echoes,
        cases=("B95",),
    ),
    Fault(
        name="it crashes again and again",
        server=sinner("good_handshake"),
        act=killed_again_and_again,
        error=RestartsExhausted,
        says=("it ended 6 times in a row", "killed by SIGKILL", "call start() to try again"),
        after="failed",
        life=6,
        incident="life 6 ended after",
        deaths=6,
    ),
    Fault(
        name="it dies of a cancelled call",
        server=sinner("dies_on_cancel"),
        act=cancelled,
        gives="alive",
        life=2,
        incident="exit code 1",
        cases=("B145",),
    ),
    # -- deaf, mute, hung
    Fault(
        name="it closes its stdout",
        server=sinner("stdout_closed"),
        act=call(),
        error=ServerDied,
        says=("killed by SIGKILL", "the server closed its stdout"),
        life=2,
        incident="the server closed its stdout",
        also=echoes,
    ),
    Fault(
        name="it closes its stdin",
        server=sinner("stdin_closed"),
        act=lambda scene: deaf(scene),
        error=ServerDied,
        says=("killed by SIGKILL", "the server closed its stdin (Broken pipe)"),
        life=2,
        incident="the server closed its stdin (Broken pipe)",
        also=echoes,
    ),
    Fault(
        name="it hangs, and pings are wanted",
        server=sinner("hangs", ping=0.1, ping_misses=2),
        act=call(),
        gives="sin",
        life=2,
        incident="it answered no ping for 200 ms",
        also=echoes,
        cases=("B92",),
    ),
    # -- ends that it resists
    Fault(
        name="it ignores the end of its stdin",
        server=sinner("ignores_eof"),
        act=stopping,
        after="idle",
        cases=("B79",),
    ),
    Fault(
        name="it ignores the end of its stdin and SIGTERM",
        server=sinner("ignores_eof_and_term"),
        act=stopping,
        after="idle",
        cases=("B76",),
    ),
    Fault(
        name="it spins after the end of its stdin and ignores SIGTERM",
        server=sinner("spins"),
        act=stopping,
        after="idle",
        cases=("B80",),
    ),
    Fault(
        name="it was stopped by SIGSTOP and is to end",
        server=sinner("good_handshake"),
        act=stopped_by_a_signal_and_then_by_us,
        after="idle",
    ),
    Fault(
        name="it is stopped with a grandchild that holds its pipes",
        server=sinner("grandchild"),
        act=stopping_with_grandchild,
        after="idle",
        cases=("B71",),
    ),
    Fault(
        name="it exits and leaves a grandchild that holds its pipes",
        server=sinner("grandchild"),
        act=leader_dies,
        error=ServerDied,
        says=("exit code 0",),
        after="idle",
        incident="exit code 0",
        also=grandchild_is_gone,
        cases=("B116",),
    ),
    Fault(
        name="it is killed and leaves a grandchild in its group",
        server=sinner("grandchild"),
        act=leader_is_killed,
        life=2,
        incident="killed by SIGKILL",
        also=grandchild_is_gone,
        cases=("B73",),
    ),
    Fault(
        name="it is killed and leaves a daemon that holds its pipes",
        server=sinner("grandchild", "new-session", restart=ONCE),
        act=leader_is_killed,
        after="failed",
        incident="killed by SIGKILL",
        also=grandchild_lives,
    ),
]
