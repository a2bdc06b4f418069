"""The kind cancel of the field reports: who gives up what, and what the server is told of it."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
from typing import Any

import anyio
import pytest

from mcpclient import CallTimedOut, Manager, Server
from tests.cases import case, hasty, inline
from tests.conftest import ROOT, SERVERS, alive, eventually, spec

# Answers the opening and `journal`, and nothing else.
MUTE = """
import json
import _wire
seen = []
for message in _wire.messages():
    seen.append(message)
    if message.get("method") == "initialize":
        capabilities = {"tools": {}, "resources": {}, "prompts": {}}
        _wire.send(_wire.initialize_result(message["id"], capabilities=capabilities))
    elif message.get("method") == "server/discover":
        _wire.reply(message)
    elif _wire.called(message) == "journal":
        _wire.send(_wire.text(message["id"], json.dumps(seen)))
"""

# `sin {n, every}` tells its progress n times, and then answers.
SLOW = """
import time
import _wire
for message in _wire.messages():
    if _wire.called(message) == "sin":
        token = _wire.params(message)["_meta"]["progressToken"]
        for done in range(_wire.arguments(message)["n"]):
            time.sleep(_wire.arguments(message)["every"])
            params = {"progressToken": token, "progress": done}
            _wire.send(_wire.notification("notifications/progress", params))
    _wire.reply(message)
"""


async def journal(server: Server) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((await server.invoke_tool("journal")).text)
    return found


# -- who may open and close what -----------------------------------------------------------


@case("B128")
async def test_a_manager_is_opened_in_one_task_and_closed_in_another() -> None:
    manager = Manager({"one": spec("good_handshake")})
    pids: list[int] = []

    async def begin() -> None:
        await manager.open()
        await manager["one"].start()
        pids.append(manager["one"].pid or 0)

    async with anyio.create_task_group() as group:
        group.start_soon(begin)
    assert alive(pids[0])
    async with anyio.create_task_group() as group:
        group.start_soon(manager.close)
    assert not alive(pids[0])


@case("B128")
async def test_the_task_that_started_a_server_may_be_cancelled_without_ending_it(
    manager: Manager,
) -> None:
    server = await manager.add("one", spec("good_handshake"))
    async with anyio.create_task_group() as group:

        async def begin() -> None:
            await server.start()
            await anyio.sleep_forever()

        group.start_soon(begin)
        await eventually(lambda: server.state == "up")
        group.cancel_scope.cancel()
    assert (await server.invoke_tool("echo", {"text": "still"})).text == "still"
    assert server.generation == 1


@case("B130")
async def test_ten_tasks_open_call_and_close_each_for_itself() -> None:
    found: list[str] = []

    async def one(number: int) -> None:
        async with Manager({"one": spec("good_handshake")}) as manager:
            text = (await manager["one"].invoke_tool("echo", {"text": str(number)})).text
            found.append(text)

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(one, number)
    assert sorted(found) == [str(number) for number in range(10)]


@case("B131")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_manager_that_was_dropped_is_not_cleaned_up_by_the_collector_but_by_the_end_of_the_loop(
    backend: str,
) -> None:
    pids: list[int] = []

    async def main() -> None:
        manager = Manager({"one": spec("good_handshake")})
        await manager.open()
        await manager["one"].start()
        pids.append(manager["one"].pid or 0)
        del manager
        for _ in range(3):
            gc.collect()
            await anyio.sleep(0)
        assert alive(pids[0])

    anyio.run(main, backend=backend)
    assert not alive(pids[0])
    gc.collect()  # the watchdog goes with the manager


# -- what the caller sees ------------------------------------------------------------------


@case("B134")
async def test_a_time_out_around_a_call_stays_a_time_out(
    manager: Manager, anyio_backend: str
) -> None:
    server = await manager.add("slow", spec("good_handshake"))
    await server.start()
    if anyio_backend == "asyncio":
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(server.invoke_tool("slow", {"seconds": 60}), 0.05)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
    with pytest.raises(TimeoutError), anyio.fail_after(0.05):
        await server.invoke_tool("slow", {"seconds": 60})
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert server.status().in_flight == 0


@case("B134")
async def test_a_time_out_of_a_call_is_a_time_out_too(manager: Manager) -> None:
    server = await manager.add("slow", spec("good_handshake"))
    await server.start()
    with pytest.raises(TimeoutError) as caught:
        await server.invoke_tool("slow", {"seconds": 60}, timeout=0.05)
    assert type(caught.value) is CallTimedOut
    assert (caught.value.method, caught.value.server) == ("tools/call", "slow")
    assert caught.value.maybe_done


# -- what the server is told ---------------------------------------------------------------


@case("B136", "B137")
async def test_whatever_times_out_is_cancelled_once_under_its_own_id(manager: Manager) -> None:
    server = await manager.add("mute", inline(MUTE))
    await server.start()
    for ask in (
        lambda: server.invoke_tool("sin", {}, timeout=0.05),
        lambda: server.read_resource("test://a", timeout=0.05),
        lambda: server.get_prompt("plain", timeout=0.05),
        lambda: server.list_tools(timeout=0.05),
        lambda: server.list_resource_templates(timeout=0.05),
        lambda: server.request("any/method", timeout=0.05),
    ):
        with pytest.raises(CallTimedOut):
            await ask()
    assert server.status().in_flight == 0
    seen = await journal(server)
    asked = [one["id"] for one in seen if "id" in one][2:-1]  # but the opening, and the journal
    told = [one["params"] for one in seen if one["method"] == "notifications/cancelled"]
    assert [one["requestId"] for one in told] == asked
    assert len(told) == 6
    # A read may have several callers; when the last of them has gone, nobody reads it.
    assert {one["reason"] for one in told} == {"timed out", "nobody reads it any more"}


@case("B136", "B137")
async def test_whatever_is_cancelled_by_its_caller_is_cancelled_at_the_server(
    manager: Manager,
) -> None:
    server = await manager.add("mute", inline(MUTE))
    await server.start()
    async with anyio.create_task_group() as group:
        group.start_soon(server.invoke_tool, "sin", {})
        group.start_soon(server.read_resource, "test://a")
        group.start_soon(server.get_prompt, "plain")
        await eventually(lambda: server.status().in_flight == 3)
        group.cancel_scope.cancel()
    assert server.status().in_flight == 0
    seen = await journal(server)
    asked = {one["id"] for one in seen if "id" in one and one["method"] != "tools/call"}
    asked |= {one["id"] for one in seen if (one.get("params") or {}).get("name") == "sin"}
    told = [one["params"]["requestId"] for one in seen if "cancelled" in one["method"]]
    assert len(told) == len(set(told)) == 3
    assert set(told) <= asked
    assert {
        one["id"] for one in seen if one["method"] in ("initialize", "server/discover")
    }.isdisjoint(told)


# -- progress ------------------------------------------------------------------------------


@case("B140")
async def test_progress_starts_the_time_of_a_call_anew(manager: Manager) -> None:
    server = await manager.add("slow", inline(SLOW))
    await server.start()
    seen: list[float] = []
    result = await server.invoke_tool(
        "sin",
        {"n": 8, "every": 0.1},
        timeout=0.6,
        on_progress=lambda done, total, message: seen.append(done),
    )
    # Longer than it might have been silent.
    assert result.text == "sin"
    assert seen == list(range(8))


@case("B140")
async def test_progress_does_not_save_a_call_from_its_last_deadline(manager: Manager) -> None:
    timeouts = hasty(call_max=0.5)
    server = await manager.add("slow", inline(SLOW, timeouts=timeouts))
    await server.start()
    with pytest.raises(CallTimedOut) as caught:
        await server.invoke_tool(
            "sin", {"n": 1000, "every": 0.05}, timeout=0.2, on_progress=lambda *facts: None
        )
    assert "no answer within 500 ms (progress or not)" in str(caught.value)


@case("B142")
async def test_no_token_of_ours_is_zero_and_one_of_theirs_that_is_harms_nobody(
    manager: Manager,
) -> None:
    server = await manager.add("odd", spec("odd_progress"))
    seen: list[float] = []
    on_progress = lambda done, total, message: seen.append(done)  # noqa: E731 - short
    await server.invoke_tool("sin", {"token": 0}, on_progress=on_progress)
    assert seen == []
    await server.invoke_tool("sin", {}, on_progress=on_progress)
    assert seen == [1, 2, 3]
    tokens = json.loads((await server.invoke_tool("tokens")).text)
    assert len(set(tokens)) == 2
    assert all(type(token) is int and token > 0 for token in tokens)


@case("B143")
@pytest.mark.parametrize("kind", [str, float, lambda token: [token], lambda token: True])
async def test_a_token_of_another_type_is_not_ours(manager: Manager, kind: Any) -> None:
    server = await manager.add("odd", spec("odd_progress"))
    await server.start()
    seen: list[float] = []
    for token in (3, 4):  # the ids of the two calls; one of them is right but for its type
        await server.invoke_tool(
            "sin",
            {"token": kind(token)},
            on_progress=lambda done, total, message: seen.append(done),
        )
    assert seen == []
    assert (server.state, server.status().noise) == ("up", 0)


# -- the end of the loop -------------------------------------------------------------------


@case("B146", "B148")
@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("closed", ["closed", "left"])
def test_the_end_of_a_loop_makes_no_noise(backend: str, closed: str) -> None:
    code = """
import sys
import anyio
from mcpclient import Manager
async def main():
    manager = Manager({"one": sys.argv[3:]})
    manager.on_state(lambda server, state: None)
    manager.on_incident(lambda server, incident: print("incident", incident))
    await manager.open()
    print((await manager["one"].invoke_tool("echo", {"text": "hello"})).text)
    print(manager["one"].pid)
    if sys.argv[2] == "closed":
        await manager.close()
anyio.run(main, backend=sys.argv[1])
"""
    server = [sys.executable, str(SERVERS / "good_handshake.py")]
    ran = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code, backend, closed, *server],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    # A stall of the machine is no noise of ours: the loop itself tells of it in this mode.
    noise = [line for line in ran.stderr.splitlines() if not line.startswith("Executing <")]
    assert (ran.returncode, noise) == (0, [])
    said, pid = ran.stdout.split()
    assert said == "hello"
    assert not alive(int(pid))
