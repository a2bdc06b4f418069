"""The kind process of the field reports, where the matrix alone does not show it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from mcpclient import (
    Manager,
    RestartPolicy,
    RestartsExhausted,
    Server,
    ServerSpec,
    ServerUnavailable,
)
from tests.cases import case, inline
from tests.conftest import QUICK, ROOT, SERVERS, alive, descriptors, eventually, spec
from tests.faults.matrix import IMPATIENT, sinner

# Notes in the file of its first argument how it was ended: by the end of stdin, or by SIGTERM.
POLITE = """
import os, signal, sys
import _wire

def note(word):
    with open(sys.argv[1], "a") as file:
        file.write(word + " ")

signal.signal(signal.SIGTERM, lambda *_: (note("term"), os._exit(0)))
for message in _wire.messages():
    _wire.reply(message)
_wire.write(b"x" * int(sys.argv[2]) + b"\\n")
note("eof")
"""


def polite(path: Path, last_bytes: int = 0) -> ServerSpec:
    argv = ["-c", POLITE, str(path), str(last_bytes)]
    return ServerSpec(sys.executable, argv, env={"PYTHONPATH": str(SERVERS)})


async def told(server: Server, tool: str, **arguments: object) -> object:
    return json.loads((await server.invoke_tool(tool, arguments)).text)


# -- the end -------------------------------------------------------------------------------


@case("B71", "B73")
async def test_a_cancelled_close_ends_all_the_same_and_takes_the_grandchild_with_it() -> None:
    # Its leader ignores the end of stdin, so that there is time to cancel.
    code = """
import os, time
import _wire
pid = os.posix_spawnp("sleep", ["sleep", "60"], os.environ)
for message in _wire.messages():
    if _wire.called(message):
        _wire.send(_wire.text(message["id"], str(pid)))
    else:
        _wire.reply(message)
time.sleep(60)
"""
    manager = Manager({"tree": inline(code, timeouts=IMPATIENT)})
    await manager.open()
    grandchild = int((await manager["tree"].invoke_tool("sin")).text)
    pid = manager["tree"].pid
    assert pid is not None
    with anyio.fail_after(10):
        with anyio.move_on_after(0.05) as scope:
            await manager.close()
    assert scope.cancel_called
    # close() came back only when it was done.
    assert not alive(pid)
    await eventually(lambda: not alive(grandchild))


@case("B77")
async def test_a_server_that_leaves_at_the_end_of_its_stdin_gets_no_signal(
    manager: Manager, tmp_path: Path
) -> None:
    server = await manager.add("polite", polite(tmp_path / "ends"))
    await server.start()
    await server.stop()
    assert (tmp_path / "ends").read_text() == "eof "
    assert server.incidents == []


@case("B74")
async def test_a_server_that_writes_more_than_a_pipe_holds_before_it_ends_is_read_to_the_end(
    manager: Manager, tmp_path: Path
) -> None:
    server = await manager.add("last", polite(tmp_path / "ends", 400_000))
    await server.start()
    await server.stop()
    # Unread it would have been stuck there until SIGTERM.
    assert (tmp_path / "ends").read_text() == "eof "


@case("B121")
async def test_a_server_sees_the_end_of_its_stdin_while_others_that_came_later_live_on(
    manager: Manager, tmp_path: Path
) -> None:
    first = await manager.add("first", polite(tmp_path / "ends"))
    await first.start()
    second = await manager.add("second", spec("good_handshake"))
    await second.start()
    await first.stop()
    assert (tmp_path / "ends").read_text() == "eof "
    assert second.state == "up"


@case("B121", "B122")
async def test_no_server_inherits_anything_but_its_own_three_pipes() -> None:
    # Started together, from several threads at a time, with descriptors around that others made.
    servers = {str(n): spec("tells", start="eager") for n in range(8)}
    with (SERVERS / "README.md").open(), contextlib.closing(os.fdopen(os.dup(0))):
        async with Manager(servers) as manager:
            seen = []
            for name in manager:
                found = await told(manager[name], "fds")
                assert isinstance(found, dict)
                assert sorted(found) == ["0", "1", "2"]
                seen += found.values()
    assert len(set(seen)) == 3 * 8, "no pipe is shared"


@case("B101")
async def test_servers_that_were_stopped_leave_no_descriptor_behind(manager: Manager) -> None:
    server = await manager.add("again", spec("good_handshake"))
    await server.restart()
    before = len(descriptors())
    for _ in range(10):
        await server.restart()
    assert len(descriptors()) == before
    assert server.generation == 11


@case("B124")
async def test_a_close_is_clean_with_messages_that_nobody_took() -> None:
    async with Manager({"loud": sinner("odd_notices")}, dispatch="manual") as manager:
        manager.on_notification("notifications/test", lambda server, params: None)
        await manager["loud"].invoke_tool("sin", {"n": 2000})
        pid = manager["loud"].pid
        assert pid is not None
        assert len(manager["loud"].inbox) == 1000
        assert manager["loud"].status().dropped == 1000
    assert not alive(pid)


# -- deaths --------------------------------------------------------------------------------


@case("B89")
async def test_a_notification_to_a_server_that_closed_its_stdin_harms_nobody(
    manager: Manager,
) -> None:
    server = await manager.add("deaf", sinner("stdin_closed"))
    await server.invoke_tool("sin")
    await server.notify("notifications/anything", {})
    await server.notify("notifications/anything", {})
    await eventually(lambda: server.incidents)
    assert server.incidents[0].problem == "the server closed its stdin (Broken pipe)"
    assert (await server.invoke_tool("echo", {"text": "again"})).text == "again"
    assert server.generation == 2


@case("B92", "B97")
async def test_after_a_restart_everything_is_asked_anew(manager: Manager) -> None:
    server = await manager.add("one", spec("good_handshake"))
    assert (await server.read_resource("test://counter")).text == "1"
    assert (await server.read_resource("test://other")).text == "2"
    os.kill(server.pid or 0, signal.SIGKILL)
    # Called at once, whether its death was noticed or not: one new life answers.
    tools = [tool.name for tool in await listed_in_a_new_life(server)]
    assert "echo" in tools
    assert server.capabilities["resources"] == {"subscribe": True, "listChanged": True}
    # From the new process, not from the cache.
    assert (await server.read_resource("test://counter")).text == "1"
    status = server.status()
    assert (status.generation, status.restarts, status.state) == (2, 1, "up")


async def listed_in_a_new_life(server: Server) -> list[object]:
    with anyio.fail_after(10):
        while server.generation == 1 and server.state == "up":
            await anyio.sleep(0)
        return list(await server.list_tools())


@case("B94")
async def test_a_server_that_went_mute_between_two_calls_is_replaced(manager: Manager) -> None:
    code = """
import os, threading, time
import _wire
for message in _wire.messages():
    _wire.reply(message)
    if _wire.called(message) == "sin":
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
"""
    server = await manager.add("mute", inline(code, timeouts=IMPATIENT, restart=QUICK))
    assert (await server.invoke_tool("sin")).text == "sin"
    await eventually(lambda: server.generation == 2)
    assert server.incidents[0].problem == "the server closed its stdout"
    assert (await server.invoke_tool("echo", {"text": "new"})).text == "new"


@case("B98")
@pytest.mark.parametrize("burst", [0, 1, 3])
async def test_so_many_restarts_are_tried_as_were_asked_for(manager: Manager, burst: int) -> None:
    states: list[str] = []
    manager.on_state(lambda server, state: states.append(state))
    policy = RestartPolicy(burst=burst, first=0.001, cap=0.001, jitter=0)
    server = await manager.add("hopeless", spec("exit_3", restart=policy))
    with pytest.raises(RestartsExhausted) as caught:
        await server.start()
    assert len(caught.value.incidents) == burst + 1
    assert (server.generation, server.status().restarts) == (burst + 1, burst)
    await eventually(lambda: states and states[-1] == "failed")
    assert states.count("waiting") == burst
    assert states.count("starting") == burst + 1


@case("B98")
def test_the_number_of_restarts_that_is_left_out_is_five() -> None:
    assert RestartPolicy().burst == 5


# -- what a server is started with ---------------------------------------------------------


@case("B82")
async def test_a_server_leads_a_session_of_its_own_so_that_no_terminal_signals_it(
    manager: Manager,
) -> None:
    server = await manager.add("apart", spec("tells"))
    pid, group, session = await told(server, "group")  # type: ignore[misc]
    assert pid == group == session == server.pid
    assert group != os.getpgrp()


@case("B109")
async def test_a_variable_is_added_to_those_of_the_host(manager: Manager) -> None:
    server = await manager.add("told", spec("tells", env={"K": "v"}))
    assert await told(server, "env", name="K") == "v"
    assert await told(server, "env", name="PATH") == os.environ["PATH"]


@case("B109")
async def test_a_server_that_inherits_nothing_gets_only_what_it_is_given(
    manager: Manager,
) -> None:
    server = await manager.add("apart", spec("tells", env={"K": "v"}, inherit_env=False))
    assert await told(server, "env", name="K") == "v"
    assert await told(server, "env", name="PATH") is None


@case("B127")
def test_text_of_any_language_passes_a_host_without_a_locale() -> None:
    code = """
import anyio, sys
from mcpclient import Manager
async def main():
    async with Manager({"one": sys.argv[1:]}) as manager:
        one = manager["one"]
        await one.invoke_tool("stderr", {"n": 300_000})
        said = await one.invoke_tool("echo", {"text": "\\u65e5\\u672c \\u2014 \\xfc"})
        print(ascii(said.text))
anyio.run(main)
"""
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, sys.executable, SERVERS / "good_handshake.py"],
        env={**env, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout == "'\\u65e5\\u672c \\u2014 \\xfc'\n"


# -- many ----------------------------------------------------------------------------------


@case("B86")
async def test_three_hundred_calls_at_once_that_fill_both_pipes_are_all_answered(
    manager: Manager,
) -> None:
    server = await manager.add("busy", spec("good_handshake"))
    await server.start()
    texts = {n: f"{n}:" + "x" * 20_000 for n in range(300)}
    found: dict[int, str] = {}

    async def ask(n: int) -> None:
        found[n] = (await server.invoke_tool("echo", {"text": texts[n]})).text

    async with anyio.create_task_group() as group:
        for n in texts:
            group.start_soon(ask, n)
    assert found == texts


@case("B118")
async def test_one_server_that_cannot_be_had_costs_the_others_nothing() -> None:
    servers = {
        "good": spec("good_handshake", start="eager"),
        "missing": ServerSpec("no-such-server", start="eager"),
        "other": spec("good_stateless", start="eager"),
    }
    async with Manager(servers) as manager:
        tools: dict[str, int] = {}
        problems: dict[str, str] = {}
        for name in manager:
            try:
                tools[name] = len(await manager[name].list_tools())
            except ServerUnavailable as problem:
                problems[name] = str(problem)
        assert tools == {"good": 10, "other": 10}
        assert list(problems) == ["missing"]
        assert "'no-such-server' was not found on PATH" in problems["missing"]


@case("B119")
async def test_servers_are_opened_at_the_same_time(tmp_path: Path) -> None:
    # Each waits until all five have begun: one after the other they would never open.
    code = """
import os, sys, time
import _wire
open(os.path.join(sys.argv[1], str(os.getpid())), "w").close()
while len(os.listdir(sys.argv[1])) < 5:
    time.sleep(0.01)
for message in _wire.messages():
    _wire.reply(message)
"""
    argv = ["-c", code, str(tmp_path)]
    one = ServerSpec(sys.executable, argv, env={"PYTHONPATH": str(SERVERS)}, start="eager")
    async with Manager({str(n): one for n in range(5)}) as manager:
        for name in manager:
            await manager[name].wait_ready(timeout=10)
        assert [manager[name].state for name in manager] == ["up"] * 5
