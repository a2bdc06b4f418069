"""What is asked again when a server died of it: only what harms nobody, once, and if wanted."""

from __future__ import annotations

import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import CallTimedOut, Manager, RestartPolicy, Server, ServerDied
from tests.cases import hasty, inline
from tests.conftest import QUICK, eventually, spec
from tests.faults.matrix import IMPATIENT

Ask = Callable[[Server], Awaitable[Any]]


def asked(path: Path) -> list[str]:
    """Return all requests that any life of the server received."""
    return path.read_text().splitlines()


async def dying(manager: Manager, path: Path, **options: Any) -> Server:
    """Add a server that dies of the first of each request; its tools were listed before."""
    path.write_text("tools/list\n")
    return await manager.add("dying", spec("counts", path, **{"resend": "safe", **options}))


@pytest.mark.parametrize(
    ("ask", "line"),
    [
        (lambda server: server.read_resource("test://a"), "resources/read test://a"),
        (lambda server: server.get_prompt("plain"), "prompts/get plain"),
        (lambda server: server.invoke_tool("read"), "tools/call read"),
        (lambda server: server.invoke_tool("again"), "tools/call again"),
        (lambda server: server.call_tool("again"), "tools/call again"),
    ],
    ids=["read", "prompt", "read-only tool", "idempotent tool", "the same, called"],
)
async def test_what_harms_nobody_is_asked_again(
    manager: Manager, tmp_path: Path, ask: Ask, line: str
) -> None:
    path = tmp_path / "asked"
    server = await dying(manager, path)
    await ask(server)
    assert [one for one in asked(path) if one == line] == [line, line]
    assert (server.generation, [str(one.exit) for one in server.incidents]) == (2, ["exit code 9"])


async def test_a_list_is_asked_again(manager: Manager, tmp_path: Path) -> None:
    path = tmp_path / "asked"
    server = await manager.add("dying", spec("counts", path, resend="safe"))
    assert len(await server.list_tools()) == 5
    assert asked(path) == ["tools/list", "tools/list"]


async def test_a_tool_that_may_change_something_is_not_called_again(
    manager: Manager, tmp_path: Path
) -> None:
    path = tmp_path / "asked"
    server = await dying(manager, path)
    with pytest.raises(ServerDied) as caught:
        await server.invoke_tool("write")
    assert caught.value.maybe_done
    assert (caught.value.method, caught.value.exit.code) == ("tools/call", 9)
    assert asked(path).count("tools/call write") == 1


async def test_a_tool_that_nobody_knows_is_not_called_again(
    manager: Manager, tmp_path: Path
) -> None:
    path = tmp_path / "asked"
    server = await dying(manager, path)
    code = path.read_text()
    with pytest.raises(ServerDied):
        # The server dies of it before it says that it has no such tool.
        await server.invoke_tool("unknown")
    assert code + "tools/call unknown\ntools/list\n" == path.read_text()


@pytest.mark.parametrize("resend", ["never", None])
async def test_nothing_is_asked_again_unless_it_is_wanted(
    manager: Manager, tmp_path: Path, resend: str | None
) -> None:
    path = tmp_path / "asked"
    options = {} if resend is None else {"resend": resend}
    server = await manager.add("dying", spec("counts", path, **options))
    for ask in (
        lambda: server.list_tools(),
        lambda: server.read_resource("test://a"),
        lambda: server.invoke_tool("read"),
    ):
        with pytest.raises(ServerDied):
            await ask()
    assert asked(path) == ["tools/list", "resources/read test://a", "tools/call read"]


async def test_a_raw_request_is_never_asked_again(manager: Manager, tmp_path: Path) -> None:
    path = tmp_path / "asked"
    server = await dying(manager, path)
    with pytest.raises(ServerDied):
        await server.request("resources/read", {"uri": "test://a"})
    assert asked(path).count("resources/read test://a") == 1


async def test_it_is_asked_once_more_and_no_more(manager: Manager) -> None:
    server = await manager.add("dying", spec("dies_in_call", 5, resend="safe"))
    code = """
import os
import _wire
for message in _wire.messages():
    if message.get("method") == "resources/read":
        os._exit(5)
    _wire.reply(message)
"""
    server = await manager.add("again", inline(code, resend="safe", restart=QUICK))
    with pytest.raises(ServerDied) as caught:
        await server.read_resource("test://a")
    assert caught.value.exit.code == 5
    assert len(server.incidents) == 2


async def test_what_was_never_sent_is_sent_whatever_it_is(manager: Manager) -> None:
    one = spec("good_handshake", resend="safe", timeouts=IMPATIENT)
    server = await manager.add("stuck", one)
    await server.start()
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)  # it reads no more, and the pipe holds 64 KiB
    ended: list[str] = []

    async def call(text: str) -> None:
        try:
            ended.append((await server.invoke_tool("echo", {"text": text})).text)
        except ServerDied as problem:
            ended.append(f"maybe done: {problem.maybe_done}")

    async with anyio.create_task_group() as group:
        group.start_soon(call, "x" * 1_000_000)
        await eventually(lambda: server.status().in_flight == 1)
        group.start_soon(call, "small")
        await eventually(lambda: server.status().in_flight == 2)
        os.kill(pid, signal.SIGKILL)
    # The first had begun to reach it, and echo does not say that it may be called twice.
    assert sorted(ended) == ["maybe done: True", "small"]


async def test_both_attempts_share_the_time_of_the_call(manager: Manager, tmp_path: Path) -> None:
    policy = RestartPolicy(first=60, cap=60, jitter=0)
    server = await dying(manager, tmp_path / "asked", restart=policy)
    await server.start()
    with pytest.raises(CallTimedOut) as caught:
        await server.read_resource("test://a", timeout=0.3)
    assert not caught.value.maybe_done
    assert "the server was not up within" in str(caught.value)
    assert server.state == "waiting"


@pytest.mark.parametrize("how", ["no new life", "it dies of the list"])
async def test_if_nobody_can_say_whether_it_harms_the_first_error_stands(
    manager: Manager, tmp_path: Path, how: str
) -> None:
    path = tmp_path / "asked"
    policy = RestartPolicy(when="never") if how == "no new life" else QUICK
    server = await dying(manager, path, restart=policy, timeouts=hasty())
    if how == "it dies of the list":
        path.write_text("")
    with pytest.raises(ServerDied) as caught:
        await server.invoke_tool("read")
    # Not that the list failed, but that the call may have been carried out.
    assert (caught.value.method, caught.value.maybe_done) == ("tools/call", True)
    assert asked(path).count("tools/call read") == 1
