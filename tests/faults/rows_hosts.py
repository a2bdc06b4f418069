"""Rows of the matrix: what the host and its handlers do to a server that is well."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import anyio

from mcpclient import (
    CallCancelled,
    LocalProtocolError,
    RestartPolicy,
    ServerUnavailable,
)
from tests.conftest import alive, eventually
from tests.faults.matrix import Act, Fault, Scene, call, counted, echoes, sinner

UPDATED = "notifications/resources/updated"


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
]
