"""The editor client we surpass, continued: how a server is stopped, and what calls do.

What it does with caches, tools, prompts and notifications in detail stands in `features/`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    LocalProtocolError,
    Manager,
    ReplyError,
    RestartPolicy,
    Server,
    ServerUnavailable,
    Timeouts,
    ToolError,
)
from tests.conftest import QUICK, alive, eventually, spec

ECHO = {"text": "hi"}
QUICK_STOP = Timeouts(eof=0.15, term=0.15)


def records(path: Path) -> list[Any]:
    """Return the JSON lines that the fake wrote into a file."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


async def echoes(server: Server) -> bool:
    return (await server.invoke_tool("echo", ECHO)).text == "hi"


# -- the stop ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "ended"),
    [
        ("fake", ["normal"], "exit code 0"),
        ("fake", ["crash-on-shutdown"], "exit code 0"),  # no such message is ever sent
        ("fake", ["ignore-eof"], "killed by SIGTERM"),
        ("ignores_eof_and_term", [], "killed by SIGKILL"),
    ],
)
async def test_a_stop_closes_stdin_then_sends_sigterm_then_sigkill_and_no_message(
    manager: Manager,
    name: str,
    arguments: list[str],
    ended: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "mcpclient")
    server = await manager.add("s", spec(name, *arguments, timeouts=QUICK_STOP))
    await server.start()
    pid = server.pid
    await server.stop()
    assert pid is not None
    assert not alive(pid)
    assert f"s#1 x {ended}" in caplog.messages
    assert (server.state, server.pid, server.incidents) == ("idle", None, [])
    with pytest.raises(ServerUnavailable) as caught:
        await server.list_tools()
    assert str(caught.value) == 'server "s": it was stopped; call start() first'
    await server.start()
    assert server.generation == 2


async def test_what_was_sent_before_a_stop_still_arrives(manager: Manager, tmp_path: Path) -> None:
    path = tmp_path / "cancels"
    server = await manager.add("fake", spec("fake", env={"FAKE_CANCELS": str(path)}))
    await server.start()
    for number in range(200):  # more than a pipe holds
        await server.notify("notifications/cancelled", {"requestId": number, "x": "x" * 2000})
    await server.stop()
    assert [one["requestId"] for one in records(path)] == list(range(200))


@pytest.mark.parametrize("state", ["idle", "starting", "opening", "up", "waiting", "failed"])
async def test_a_stop_wins_in_every_state(manager: Manager, state: str) -> None:
    slow = RestartPolicy(first=60, cap=60, burst=0 if state == "failed" else 5)
    name, arguments = {
        "opening": ("silent", []),
        "waiting": ("exit_3", []),
        "failed": ("exit_3", []),
    }.get(state, ("fake", []))
    options: dict[str, Any] = {"restart": slow, "timeouts": QUICK_STOP, "era": "handshake"}
    server = await manager.add("s", spec(name, *arguments, **options))
    if state != "idle":
        server.begin()
    if state != "starting":  # which it is at once, and not for long
        await eventually(lambda: server.state == state)
    assert server.state == state
    waits = state in ("opening", "waiting")
    refusals: list[str] = []

    async def call() -> None:
        with pytest.raises(ServerUnavailable) as caught:
            await server.invoke_tool("echo", ECHO)
        refusals.append(str(caught.value))

    async with anyio.create_task_group() as group:
        if waits:
            group.start_soon(call)
            await anyio.wait_all_tasks_blocked()
        await server.stop()
        assert (server.state, server.pid) == ("idle", None)
    assert refusals == ['server "s": it was stopped; call start() first'] * waits
    generation = server.generation
    await server.stop()
    assert (server.state, server.generation) == ("idle", generation)


async def test_a_call_in_flight_at_a_stop_is_cancelled_by_this_side(manager: Manager) -> None:
    server = await manager.add("fake", spec("fake", "slow"))
    await server.start()
    problems: list[CallCancelled] = []

    async def call() -> None:
        with pytest.raises(CallCancelled) as caught:
            await server.invoke_tool("echo", ECHO)
        problems.append(caught.value)

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await eventually(lambda: manager.status().servers[0].in_flight)
        await server.stop()
    [problem] = problems
    assert (problem.method, problem.server, problem.maybe_done) == ("tools/call", "fake", True)


# -- the wire ------------------------------------------------------------------------------


async def test_garbage_on_stdout_is_skipped_and_counted(manager: Manager) -> None:
    server = await manager.add("fake", spec("fake", "garbage"))
    for _ in range(3):
        assert await echoes(server)
    assert len(await server.list_tools()) == 15
    # One line at the start and one before every answer, those of the opening included.
    assert manager.status().servers[0].noise == 1 + 2 + 4


async def test_requests_of_the_server_are_answered(manager: Manager) -> None:
    server = await manager.add("s", spec("asks_roots"))
    await server.call_tool("sin")  # it pings
    await eventually(lambda: manager.status().servers[0].asks == 2)
    answers = json.loads((await server.call_tool("answers")).text)
    by_kind = {("result" if "result" in one else "error"): one for one in answers}
    assert by_kind["result"]["result"] == {}
    assert by_kind["error"]["error"]["code"] == -32601


async def test_an_error_of_null_beside_a_result_is_no_error(manager: Manager) -> None:
    server = await manager.add("s", spec("error_null"))
    assert await echoes(server)


@pytest.mark.parametrize("arguments", [[], ["missing"]])
async def test_a_wrong_jsonrpc_member_is_read_all_the_same(
    manager: Manager, arguments: list[str]
) -> None:
    server = await manager.add("s", spec("wrong_jsonrpc", *arguments))
    assert await echoes(server)


async def test_ids_begin_anew_with_each_life_and_never_come_twice_in_one(
    manager: Manager,
) -> None:
    server = await manager.add("good", spec("good_handshake"))
    for _ in (1, 2):
        for _ in range(5):
            await server.list_tools()
        journal = json.loads((await server.call_tool("journal")).text)
        ids = [one["id"] for one in journal if "id" in one]
        assert ids == list(range(1, len(ids) + 1))
        await server.restart()


async def test_a_refusal_has_code_message_and_data(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake"))
    with pytest.raises(ReplyError) as caught:
        await server.request("no/such/method", {"x": 1})
    problem = caught.value
    assert (problem.code, problem.message) == (-32601, "Method not found")
    assert problem.data == {"method": "no/such/method"}
    assert str(problem) == '[-32601] Method not found (no/such/method on "good")'


# -- reads, tools, prompts -----------------------------------------------------------------


async def test_ten_reads_at_once_are_one_and_a_later_one_is_a_hit(manager: Manager) -> None:
    server = await manager.add("fake", spec("fake", "slow"))
    texts: list[str] = []

    async def read() -> None:
        texts.append((await server.read_resource("any:uri at all")).text)

    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(read)
    await read()
    assert texts == ["1"] * 11
    stats = manager.cache.stats()
    assert (stats.misses, stats.joins, stats.hits) == (1, 9, 1)
    await server.invoke_tool("trigger_update", {"uri": "any:uri at all"})
    await read()
    assert texts[-1] == "2"


@pytest.mark.parametrize("verb", ["read_resource", "invoke_tool"])
async def test_the_last_cancel_reaches_the_server_and_the_late_answer_is_dropped(
    manager: Manager, tmp_path: Path, verb: str
) -> None:
    path = tmp_path / "cancels"
    server = await manager.add("fake", spec("fake", "slow", env={"FAKE_CANCELS": str(path)}))
    await server.start()
    async with anyio.create_task_group() as group:
        if verb == "read_resource":
            for _ in range(3):
                group.start_soon(server.read_resource, "fake://x")
        else:
            group.start_soon(server.invoke_tool, "echo", ECHO)
        await eventually(lambda: manager.status().servers[0].in_flight == 1)
        group.cancel_scope.cancel()
    await eventually(lambda: records(path))
    [told] = records(path)
    assert set(told) == {"requestId", "reason"}
    assert type(told["requestId"]) is int
    await eventually(lambda: manager.status().servers[0].late == 1)  # it answers all the same
    status = manager.status().servers[0]
    assert (status.stray, status.noise, status.in_flight) == (0, 0, 0)
    assert (await server.read_resource("fake://x")).text == (
        "2" if verb == "read_resource" else "1"
    )


async def test_tools_fail_and_succeed_in_the_words_editors_know(manager: Manager) -> None:
    server = await manager.add("fake", spec("fake"))
    failures: dict[tuple[str, Any], str] = {
        ("fail", None): "it failed",
        ("multipart_fail", None): "first part\n[non-text content omitted]\nlast part",
        ("typed_int", 1.5): "typed_int got 1.5",
        ("typed_int", True): "typed_int got true",
        ("typed_number", "1"): 'typed_number got "1"',
        ("typed_bool", 1): "typed_bool got 1",
    }
    for (name, value), message in failures.items():
        with pytest.raises(ToolError) as caught:
            await server.invoke_tool(name, {} if value is None else {"value": value})
        assert caught.value.message == message
    for name, value in (("typed_int", 7), ("typed_number", 0.5), ("typed_bool", False)):
        assert (await server.invoke_tool(name, {"value": value})).text == json.dumps(value)
    assert (await server.invoke_tool("nullary")).text == "{}"
    with pytest.raises(ReplyError) as refused:
        await server.invoke_tool("nonsense")
    assert (refused.value.code, refused.value.message) == (-32602, "Unknown tool: nonsense")


async def test_prompts_get_their_arguments_as_an_object(manager: Manager, tmp_path: Path) -> None:
    path = tmp_path / "prompts"
    server = await manager.add("fake", spec("fake", env={"FAKE_PROMPTS": str(path)}))
    assert (await server.get_prompt("plain")).text == "prompt plain {}"
    assert (await server.get_prompt("greet", {"name": "Ada"})).text == (
        'prompt greet {"name": "Ada"}'
    )
    with pytest.raises(ReplyError) as caught:
        await server.get_prompt("greet")
    assert (caught.value.code, caught.value.message) == (
        -32602,
        "Missing required argument: name",
    )
    with pytest.raises(LocalProtocolError):
        await server.get_prompt("greet", {"name": 5})  # type: ignore[dict-item]
    assert records(path) == [
        {"name": "plain", "arguments": {}},
        {"name": "greet", "arguments": {"name": "Ada"}},
        {"name": "greet", "arguments": {}},
    ]


async def test_a_server_may_be_used_from_many_tasks_at_once(manager: Manager) -> None:
    server = await manager.add("fake", spec("fake", restart=QUICK))
    found: dict[int, str] = {}

    async def call(number: int) -> None:
        found[number] = (await server.invoke_tool("echo", {"text": str(number)})).text

    async with anyio.create_task_group() as group:
        for number in range(300):
            group.start_soon(call, number)
    assert found == {number: str(number) for number in range(300)}
