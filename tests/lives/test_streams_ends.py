"""Servers on sockets end, go away and come back, or are ended, as processes are."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    CallTimedOut,
    Manager,
    McpClientError,
    OpeningFailed,
    RestartPolicy,
    RestartsExhausted,
    ServerDied,
    ServerUnavailable,
    Timeouts,
)
from tests.conftest import QUICK, descriptors, eventually
from tests.lives.conftest import Serve
from tests.lives.streams import GONE, KINDS, at, echoed
from tests.relays import Listener, Relay

# -- the end of a life ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
async def test_the_death_of_a_server_ends_its_calls_and_another_life_begins(
    serve: Serve, kind: str
) -> None:
    server = await serve("dies_in_call", kind=kind)
    with pytest.raises(ServerDied) as caught:
        await server.invoke_tool("sin", {})
    problem = caught.value
    assert problem.maybe_done
    assert (problem.exit.code, problem.exit.signal, problem.stderr_tail) == (None, None, "")
    assert str(problem) == (
        f'tools/call on "dies_in_call": {GONE}; the server may have carried it out'
    )
    await echoed(server, "as ever")
    assert (server.generation, server.state) == (2, "up")
    (incident,) = server.incidents
    assert (incident.phase, str(incident.exit), incident.problem) == ("up", GONE, "")
    assert str(incident).endswith(f" up: {GONE}")


async def test_half_an_answer_is_none(serve: Serve) -> None:
    server = await serve("half_a_line")
    with pytest.raises(ServerDied, match=GONE):
        await server.invoke_tool("sin", {})
    assert "the end of it is missing" in server.incidents[0].noise


async def test_an_answer_just_before_the_end_counts(serve: Serve) -> None:
    server = await serve("answers_and_exits", kind="tcp")
    await server.invoke_tool("sin", {})
    await eventually(lambda: server.incidents)
    # Whether the process behind it ended well nobody tells us, so it is dialled again.
    await eventually(lambda: (server.generation, server.state) == (2, "up"))


async def test_a_server_that_dies_of_the_probe_is_dialled_once_more_without(serve: Serve) -> None:
    server = await serve("dies_on_probe")
    await server.start()
    assert (server.era, server.generation, server.incidents) == ("handshake", 1, [])


async def test_a_server_that_dies_again_and_again_may_be_given_up(serve: Serve) -> None:
    policy = RestartPolicy(burst=2, first=0.001, cap=0.005)
    server = await serve("exit_3", restart=policy)
    with pytest.raises(RestartsExhausted) as caught:
        await server.start()
    assert len(caught.value.incidents) == 3
    assert "the server ended while it was opened (the " in str(caught.value)
    assert "it ended 3 times in a row" in str(caught.value)


async def test_what_is_safe_is_asked_again(relay: Callable[..., Relay], tmp_path: Any) -> None:
    url = relay("unix", "counts", tmp_path / "notes").url
    async with Manager({"one": at(url, resend="safe")}) as manager:
        assert (await manager["one"].read_resource("test://a")).text == "read"
        assert manager["one"].generation == 2


@pytest.mark.parametrize("kind", KINDS)
async def test_a_server_that_goes_away_is_waited_for_and_comes_back(
    relay: Callable[..., Relay], kind: str
) -> None:
    first = relay(kind, "good_stateless")
    address = first.url.rpartition(":")[2].removeprefix("//")
    states: list[str] = []
    async with Manager({"one": at(first.url)}) as manager:
        server = manager["one"]
        manager.on_state(lambda _, state: states.append(state))
        await server.start()
        first.kill()
        await eventually(lambda: len(server.incidents) >= 3)
        last = server.incidents[-1]
        assert (last.phase, last.exit) == ("starting", None)
        assert last.problem.startswith("nobody listens ")
        assert last.problem.endswith('start the server, or correct "url"')
        with pytest.raises(CallTimedOut) as caught:
            await server.invoke_tool("echo", {"text": "?"}, timeout=0.3)
        assert not caught.value.maybe_done
        assert "start the server" in str(caught.value)
        with pytest.raises(ServerUnavailable):
            await server.no_wait.invoke_tool("echo", {"text": "?"})
        relay(kind, "good_stateless", address=address)
        await echoed(server, "back again")
        assert server.state == "up"
        await server.stop()
        await eventually(lambda: states[-1] == "idle")
    assert states[:4] == ["starting", "opening", "up", "waiting"]


async def test_a_server_that_comes_late_is_found(
    listen: Callable[..., Listener], relay: Callable[..., Relay]
) -> None:
    listener = listen("unix")
    listener.close()
    os.unlink(listener.path)
    async with Manager({"one": at(listener.url, start="eager")}) as manager:
        server = manager["one"]
        await eventually(lambda: server.incidents)
        relay("unix", "good_handshake", address=listener.path)
        await server.wait_ready()
        assert server.generation > 1


async def test_what_can_never_be_dialled_is_not_tried_again() -> None:
    async with Manager({"one": at("unix:///" + "x" * 200)}) as manager:
        with pytest.raises(OpeningFailed, match="too long for a socket") as caught:
            await manager["one"].start()
        assert caught.value.server == "one"
        assert manager["one"].state == "failed"
        assert len(manager["one"].incidents) == 1


async def test_a_server_that_takes_no_connection_is_not_waited_for_without_end(
    listen: Callable[..., Listener],
) -> None:
    listener = listen("unix", backlog=0)
    with socket.socket(socket.AF_UNIX) as other:
        other.connect(listener.path)
        spec = at(listener.url, timeouts=Timeouts(open=0.2), restart=RestartPolicy(when="never"))
        async with Manager({"one": spec}) as manager:
            with pytest.raises(RestartsExhausted) as caught:
                await manager["one"].start(timeout=20)
    assert f"it was not reached within 200 ms (Timeouts.open; it is at {listener.url})" in str(
        caught.value
    )


# -- we end it -----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
async def test_a_stop_hangs_up_politely_and_a_start_dials_again(serve: Serve, kind: str) -> None:
    server = await serve("good_handshake", kind=kind, timeouts=Timeouts(eof=60))
    await server.start()
    lost: list[McpClientError] = []

    async def call() -> None:
        with pytest.raises(CallCancelled, match="the server was stopped") as caught:
            await server.invoke_tool("slow", {"seconds": 60}, timeout=60)
        lost.append(caught.value)

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await eventually(lambda: server.status().in_flight)
        await server.stop()  # it hangs up by itself, else this took a minute
    assert len(lost) == 1
    assert (server.state, server.incidents) == ("idle", [])
    with pytest.raises(ServerUnavailable, match="it was stopped"):
        await server.invoke_tool("echo", {"text": "?"})
    await server.restart()
    await echoed(server, "again")
    assert server.generation == 2


@pytest.mark.parametrize("name", ["ignores_eof", "ignores_eof_and_term", "spins"])
async def test_a_server_that_does_not_hang_up_is_left_after_the_time_for_it(
    serve: Serve, name: str
) -> None:
    server = await serve(name, timeouts=Timeouts(eof=0.1))
    await echoed(server, "up")
    with anyio.fail_after(20):
        await server.stop()
    assert (server.state, server.incidents) == ("idle", [])


async def test_a_hung_server_is_given_up_by_its_pings(serve: Serve) -> None:
    server = await serve("hangs", ping=0.1, ping_misses=2, restart=QUICK)
    await server.invoke_tool("sin", {})
    await eventually(lambda: server.incidents)
    assert server.incidents[0].problem == "it answered no ping for 200 ms"
    await eventually(lambda: (server.generation, server.state) == (2, "up"))


async def test_a_server_that_nobody_uses_is_hung_up_on_until_the_next_call(serve: Serve) -> None:
    server = await serve("good_stateless", idle_stop=0.1)
    await server.start()
    await eventually(lambda: server.state == "idle")
    await echoed(server, "awake")
    assert (server.generation, server.incidents) == (2, [])


async def test_a_stop_wins_while_it_is_dialled(listen: Callable[..., Listener]) -> None:
    listener = listen("unix", backlog=0)
    with socket.socket(socket.AF_UNIX) as other:
        other.connect(listener.path)
        async with Manager({"one": at(listener.url, start="eager")}) as manager:
            server = manager["one"]
            await eventually(lambda: server.state == "starting")
            await server.stop()
            assert (server.state, server.incidents) == ("idle", [])


async def test_another_url_is_another_life_of_the_same_server(relay: Callable[..., Relay]) -> None:
    first, second = relay("unix", "good_handshake").url, relay("tcp", "good_stateless").url
    async with Manager({"one": at(first)}) as manager:
        server = manager["one"]
        await server.start()
        report = await manager.reload({"one": {"url": second}})
        assert report.changed == ["one"]
        await echoed(server, "moved")
        assert (server.era, server.generation, server.incidents) == ("stateless", 2, [])


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_loop_that_ends_without_a_close_leaves_nothing_open(
    relay: Callable[..., Relay], backend: str
) -> None:
    url = relay("unix", "good_handshake").url

    async def main() -> None:
        manager = Manager({"one": at(url)})
        await manager.open()
        await echoed(manager["one"], "up")

    before = set(descriptors())
    anyio.run(main, backend=backend)
    assert set(descriptors()) <= before


async def test_messages_are_written_down_as_of_any_server(
    relay: Callable[..., Relay], tmp_path: Any
) -> None:
    spec = at(relay("tcp", "good_stateless").url, wire_log=str(tmp_path / "log"))
    async with Manager({"one": spec}) as manager:
        await echoed(manager["one"], "noted")
    log = (tmp_path / "log").read_text()
    assert log.count('"noted"') == 2
    assert f" x {GONE}" in log
