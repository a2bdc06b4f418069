"""Rows of the matrix: what the host, its user or the machine does to a server that is well."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import anyio

from mcpclient import (
    CallCancelled,
    CallTimedOut,
    LocalProtocolError,
    Manager,
    RestartPolicy,
    RestartsExhausted,
    ServerUnavailable,
)
from tests.conftest import alive, eventually
from tests.faults.matrix import Act, Fault, Scene, call, counted, echoes, opening, sinner

UPDATED = "notifications/resources/updated"
# Retried, but not for long.
TWICE = RestartPolicy(first=0.01, cap=0.05, jitter=0.0, burst=1)


# -- handlers ------------------------------------------------------------------------------


def handled(handler: Callable[[Any, Any], Any]) -> Act:
    """Have one notice handled while another call is answered, and wait until it is."""

    async def act(scene: Scene) -> str:
        done: list[None] = []

        async def handle(server: Any, params: Any) -> None:
            try:
                answer = handler(server, params)
                if answer is not None:
                    await answer
            finally:
                done.append(None)

        scene.manager.on_notification(UPDATED, handle)
        await scene.call("notify")
        text = await scene.call("echo", text="meanwhile")
        await eventually(lambda: done)
        return text

    return act


def raises(_server: Any, _params: Any) -> None:
    raise ValueError("the user's own fault")


async def calls_back(server: Any, _params: Any) -> None:
    await server.list_tools()
    assert (await server.invoke_tool("echo", {"text": "again"})).text == "again"


async def blocked_loop(scene: Scene) -> int:
    """Do not read for a while what a server writes that is more than a pipe holds."""
    size = 1_000_000
    await scene.server.start()
    found = 0

    async def ask() -> None:
        nonlocal found
        found = len(await scene.call(size=size))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await scene.in_flight()
        time.sleep(0.2)
    return found


async def progress_raises(scene: Scene) -> str:
    def on_progress(*_facts: Any) -> None:
        raise ValueError("the user's own fault")

    result = await scene.server.invoke_tool("progress", {"n": 3}, on_progress=on_progress)
    return result.text


# -- stops and cancellations ---------------------------------------------------------------


async def gives_up(scene: Scene) -> list[Any]:
    """Cancel a call; the server is told, once, and of that call."""
    await scene.server.start()
    with anyio.move_on_after(0.1) as scope:
        await scene.call("slow", seconds=60)
    assert scope.cancelled_caught
    journal = json.loads(await scene.call("journal"))
    (slow,) = (one["id"] for one in journal if (one.get("params") or {}).get("name") == "slow")
    told = [one["params"] for one in journal if one["method"] == "notifications/cancelled"]
    return [one["requestId"] == slow for one in told]


def stops_in_a_call(how: Callable[[Scene], Any]) -> Act:
    async def act(scene: Scene) -> None:
        problem: CallCancelled | None = None

        async def ask() -> None:
            nonlocal problem
            try:
                await scene.call("slow", seconds=60)
            except CallCancelled as caught:
                problem = caught

        pid = await scene.pid()
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            await scene.in_flight()
            await how(scene)
            assert not alive(pid)
        assert problem is not None
        raise problem

    return act


def stops_at(state: str) -> Act:
    """Stop a server in a state, with somebody who waits for it."""

    async def act(scene: Scene) -> None:
        problem: ServerUnavailable | None = None

        async def ask() -> None:
            nonlocal problem
            try:
                await scene.call("echo", text="hello")
            except ServerUnavailable as caught:
                problem = caught

        server = scene.server
        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            with anyio.fail_after(10):
                while server.state != state:  # without a pause: it may be a short one
                    await anyio.sleep(0)
            pid = server.pid
            await server.stop()
        assert (server.state, server.pid) == ("idle", None)
        assert pid is None or not alive(pid)
        assert problem is not None
        raise problem

    return act


async def leaves_before_it_is_up(scene: Scene) -> None:
    """Cancel the one who starts the server: it starts all the same."""
    async with anyio.create_task_group() as group:
        group.start_soon(scene.server.start)
        await eventually(lambda: scene.server.state == "opening")
        group.cancel_scope.cancel()


# -- the machine ---------------------------------------------------------------------------


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


HOSTS = [
    # -- handlers
    Fault(
        name="a handler of the host is slow",
        server=sinner("good_handshake"),
        act=handled(lambda _server, _params: anyio.sleep(0.2)),
        gives="meanwhile",
    ),
    Fault(
        name="a handler of the host raises",
        server=sinner("good_handshake"),
        act=handled(raises),
        gives="meanwhile",
        also=echoes,
    ),
    Fault(
        name="a handler of the host calls the same server",
        server=sinner("good_handshake"),
        act=handled(calls_back),
        gives="meanwhile",
        cases=("B198", "B200"),
    ),
    Fault(
        name="a progress handler of the host raises",
        server=sinner("good_handshake"),
        act=progress_raises,
        gives="3 steps done",
        also=echoes,
    ),
    Fault(
        name="the host blocks its loop while the server writes",
        server=sinner("huge_line", 1000, "nowhere"),
        act=blocked_loop,
        gives=1_000_000,
        cases=("B258",),
    ),
    Fault(
        name="the host sends what is no JSON",
        server=sinner("good_handshake"),
        act=call("echo", text=object()),
        error=LocalProtocolError,
        also=echoes,
    ),
    # -- stops and cancellations
    Fault(
        name="the host gives a call up",
        server=sinner("good_handshake"),
        act=gives_up,
        gives=[True],
        also=counted(in_flight=0),
        cases=("B136", "B139"),
    ),
    Fault(
        name="the host gives its wait for the start up",
        server=sinner("slow_open", "0.1"),
        act=leaves_before_it_is_up,
        also=echoes,
    ),
    Fault(
        name="the host stops it in a call",
        server=sinner("good_handshake"),
        act=stops_in_a_call(lambda scene: scene.server.stop()),
        error=CallCancelled,
        says=("the server was stopped", "the server may have carried it out"),
        after="idle",
    ),
    Fault(
        name="the host removes it in a call",
        server=sinner("good_handshake"),
        act=stops_in_a_call(lambda scene: scene.manager.remove("sinner")),
        error=CallCancelled,
        says=("the server was stopped",),
        after="idle",
    ),
    Fault(
        name="the host stops it before there is a process",
        server=sinner("good_handshake"),
        act=stops_at("starting"),
        error=ServerUnavailable,
        says=("it was stopped; call start() first",),
        after="idle",
    ),
    Fault(
        name="the host stops it while it opens",
        server=sinner("slow_open", "60"),
        act=stops_at("opening"),
        error=ServerUnavailable,
        says=("it was stopped; call start() first",),
        after="idle",
        cases=("B103",),
    ),
    Fault(
        name="the host stops it between two lives",
        server=sinner("exit_3", restart=RestartPolicy(first=60, cap=60, jitter=0)),
        act=stops_at("waiting"),
        error=ServerUnavailable,
        says=("it was stopped; call start() first",),
        after="idle",
        incident="exit code 3",
    ),
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
