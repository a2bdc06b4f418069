"""A server on a socket is used like any other, and what it does to lines hurts no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    CallLost,
    CallTimedOut,
    Limits,
    Manager,
    McpClientError,
)
from tests.conftest import eventually
from tests.lives.conftest import Serve
from tests.lives.streams import KINDS, at, echoed
from tests.relays import Relay


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "era"), [("good_handshake", "handshake"), ("good_stateless", "stateless")]
)
async def test_calls_reads_lists_and_prompts_work(
    serve: Serve, kind: str, name: str, era: str
) -> None:
    server = await serve(name, "--pages", "2", kind=kind)
    assert (await server.invoke_tool("add", {"a": 2, "b": 3})).structured == {"sum": 5}
    assert (server.state, server.era, server.pid, server.generation) == ("up", era, None, 1)
    assert len(await server.list_tools()) > 5
    assert (await server.read_resource("test://a")).text == "this is a"
    assert "Ada" in str((await server.get_prompt("greet", {"name": "Ada"})).raw)
    async with anyio.create_task_group() as group:
        for number in range(50):
            group.start_soon(echoed, server, f"{number} é\u2028 " + "x" * (number * 1000))
    status = server.status()
    assert (status.in_flight, status.noise, status.stray, status.pid) == (0, 0, 0, None)
    assert (server.incidents, server.stderr_tail()) == ([], "")


@pytest.mark.parametrize("name", ["good_handshake", "good_stateless"])
async def test_progress_and_notifications_arrive(relay: Callable[..., Relay], name: str) -> None:
    heard: list[Any] = []
    told: list[float] = []
    async with Manager({"one": at(relay("tcp", name).url)}) as manager:
        server = manager["one"]
        manager.on_notification(
            "notifications/resources/updated", lambda _, params: heard.append(params["uri"])
        )
        await server.invoke_tool(
            "progress", {"n": 3}, on_progress=lambda progress, *_: told.append(progress)
        )
        async with server.subscribe("test://counter") as updates:
            await server.invoke_tool("notify", {"uri": "test://counter"})
            with anyio.fail_after(10):
                await anext(updates)
        await eventually(lambda: heard == ["test://counter"])
    assert len(told) == 3


@pytest.mark.parametrize("name", ["good_handshake", "good_stateless"])
async def test_a_call_that_is_cancelled_or_too_late_is_cancelled_there_too(
    serve: Serve, name: str
) -> None:
    server = await serve(name)
    await server.start()
    with anyio.move_on_after(0.2) as scope:
        await server.invoke_tool("slow", {"seconds": 60})
    assert scope.cancelled_caught
    with pytest.raises(CallTimedOut) as caught:
        await server.invoke_tool("slow", {"seconds": 60}, timeout=0.2)
    assert caught.value.maybe_done
    journal = (await server.invoke_tool("journal")).text
    assert journal.count("notifications/cancelled") == 2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name",
    ["byte_by_byte", "two_in_one", "blank_lines", "crlf", "bom", "log_lines", "line_separators"],
)
async def test_what_servers_do_to_lines_hurts_no_more_than_on_stdio(
    serve: Serve, kind: str, name: str
) -> None:
    server = await serve(name, kind=kind)
    await server.invoke_tool("sin", {})
    await echoed(server, "honest")
    assert server.incidents == []


async def test_a_message_over_the_limit_costs_its_own_call_alone(serve: Serve) -> None:
    server = await serve("huge_line", "100", "nowhere", limits=Limits(frame=100_000), kind="tcp")
    with pytest.raises(McpClientError, match=r"the limit is .* \(Limits\.frame\)"):
        await server.invoke_tool("sin", {"size": 300_000})
    await echoed(server, "after it")
    assert (server.generation, server.incidents) == (1, [])


@pytest.mark.parametrize("kind", KINDS)
async def test_a_large_message_arrives_whole(serve: Serve, kind: str) -> None:
    server = await serve("huge_line", "100", "nowhere", kind=kind)
    assert len((await server.invoke_tool("sin", {"size": 5_000_000})).text) == 5_000_000


@pytest.mark.parametrize("kind", KINDS)
async def test_what_a_server_does_not_read_was_never_sent(serve: Serve, kind: str) -> None:
    server = await serve("stops_reading", kind=kind)
    await server.start()
    problems: list[CallLost] = []

    async def call() -> None:
        with pytest.raises(CallLost) as caught:
            await server.invoke_tool("echo", {"text": "x" * 4_000_000}, timeout=60)
        problems.append(caught.value)

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(call)
        # What the system holds for the server, and the one that was begun, wait on.
        await eventually(lambda: len(problems) >= 3)
        for problem in problems:
            assert type(problem) is CallLost
            assert not problem.maybe_done
            assert "the server has not read its input for" in str(problem)
        assert server.state == "up"
        await server.stop()
    stopped = [problem for problem in problems if type(problem) is CallCancelled]
    assert stopped
    assert all(problem.maybe_done for problem in stopped)
