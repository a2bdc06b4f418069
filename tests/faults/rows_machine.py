"""Rows of the matrix: what the machine, or the host as a process, does to a server that is well."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import threading
import time
from collections.abc import Iterator
from typing import Any

import anyio

from mcpclient import (
    CallTimedOut,
    Manager,
    RestartPolicy,
    RestartsExhausted,
)
from tests.conftest import alive, eventually
from tests.faults.matrix import Fault, Scene, call, echoes, opening, sinner

# Retried, but not for long.
TWICE = RestartPolicy(first=0.01, cap=0.05, jitter=0.0, burst=1)


async def suspended(scene: Scene) -> None:
    os.kill(await scene.pid(), signal.SIGSTOP)
    try:
        await scene.call("echo", timeout=0.2, text="anybody there?")
    finally:
        os.kill(await scene.pid(), signal.SIGCONT)
        await eventually(lambda: scene.server.status().late == 1)


@contextlib.contextmanager
def handling(number: int, handler: Any) -> Iterator[None]:
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


async def reaps_all_children(scene: Scene) -> None:
    def reap(_number: int, _frame: object) -> None:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass

    pid = await scene.pid()
    with handling(signal.SIGCHLD, reap):
        os.kill(pid, signal.SIGKILL)
        while os.path.exists(f"/proc/{pid}"):
            time.sleep(0.001)  # the host is quicker than the loop
        await eventually(lambda: scene.server.incidents)


async def ignores_its_children(scene: Scene) -> None:
    with handling(signal.SIGCHLD, signal.SIG_IGN):
        pid = await scene.pid()
        await scene.server.stop()
        assert not alive(pid)


async def has_no_directory(scene: Scene) -> str:
    before = os.getcwd()
    (scene.tmp_path / "gone").mkdir()
    os.chdir(scene.tmp_path / "gone")
    (scene.tmp_path / "gone").rmdir()
    try:
        found: str = json.loads(await scene.call("cwd"))
    finally:
        os.chdir(before)
    return found


async def has_no_descriptors(scene: Scene) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)  # the lowest that is free: those above it stay open
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        await opening(scene)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def starts_again(scene: Scene) -> None:
    await scene.server.start()
    await echoes(scene)


async def forks(scene: Scene) -> None:
    """Fork a child that lives on and holds whatever the host held."""
    await scene.server.start()
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        pid = scene.server.pid
        assert pid is not None
        await scene.server.stop()
        assert not alive(pid)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


async def asks_from_a_thread(scene: Scene) -> str:
    """A thread with a loop of its own has a manager of its own; ours does not notice."""
    text = ""
    found = sinner("good_handshake")

    async def other() -> None:
        nonlocal text
        async with Manager({"own": found}) as manager:
            text = (await manager["own"].invoke_tool("echo", {"text": "from a thread"})).text

    thread = threading.Thread(target=anyio.run, args=(other,))
    thread.start()
    await scene.call("echo", text="here")
    await eventually(lambda: not thread.is_alive())
    thread.join()
    return text


async def no_ping_came(scene: Scene) -> str:
    await scene.server.start()
    await anyio.sleep(0.15)  # five of them would have come
    journal = json.loads(await scene.call("journal"))
    return " ".join(one["method"] for one in journal)


async def refused_pings(scene: Scene) -> None:
    await scene.server.start()

    async def come() -> None:
        while int(await scene.call("pings")) < 7:  # more than may be missed
            await anyio.sleep(0.1)

    with anyio.fail_after(10):
        await come()


MACHINE = [
    # -- the machine
    Fault(
        name="it is suspended by SIGSTOP for a while",
        server=sinner("good_handshake"),
        act=suspended,
        error=CallTimedOut,
        says=("no answer within 200 ms",),
        also=echoes,
    ),
    Fault(
        name="the host reaps all children itself",
        server=sinner("good_handshake"),
        act=reaps_all_children,
        life=2,
        incident="exit status unknown",
        also=echoes,
        cases=("B112",),
    ),
    Fault(
        name="the host ignores SIGCHLD",
        server=sinner("good_handshake"),
        act=ignores_its_children,
        after="idle",
        cases=("B113",),
    ),
    Fault(
        name="the host's working directory was deleted",
        server=sinner("tells"),
        act=has_no_directory,
        gives=os.path.expanduser("~"),
        cases=("B107",),
    ),
    Fault(
        name="the host has no descriptors left",
        server=sinner("good_handshake", restart=TWICE),
        act=has_no_descriptors,
        error=RestartsExhausted,
        says=("Too many open files", "raise the limits of this user", "call start()"),
        after="failed",
        life=2,
        incident="Too many open files",
        deaths=2,
        also=starts_again,
    ),
    Fault(
        name="the host forks a child that lives on",
        server=sinner("good_handshake"),
        act=forks,
        after="idle",
    ),
    Fault(
        name="the host has another manager in another thread",
        server=sinner("good_handshake"),
        act=asks_from_a_thread,
        gives="from a thread",
    ),
    # -- pings
    Fault(
        name="it is busy with a call for longer than pings may take",
        server=sinner("busy", ping=0.1, ping_misses=2),
        act=call(seconds=0.6),
        gives="sin",
        also=echoes,
    ),
    Fault(
        name="it answers pings with an error",
        server=sinner("pings", "refuses", ping=0.05, ping_misses=5),
        act=refused_pings,
        cases=("B100",),
    ),
    Fault(
        name="pings are wanted, but its era has none",
        server=sinner("good_stateless", ping=0.03, ping_misses=1),
        act=no_ping_came,
        gives="server/discover tools/call",
    ),
]
