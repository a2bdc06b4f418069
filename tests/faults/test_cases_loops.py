"""The kind event-loop of the field reports: what hosts do to loops, and to their own stderr."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys

import pytest

from mcpclient import CallTimedOut, Manager
from tests.cases import case
from tests.conftest import QUICK, ROOT, SERVERS, alive, eventually, spec
from tests.faults.matrix import IMPATIENT


class NoFile(io.StringIO):
    """A stderr as notebooks have it: text may be written to it, but it has no descriptor."""

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno")


@case("B251")
async def test_a_host_whose_stderr_has_no_descriptor_runs_servers(
    manager: Manager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", NoFile())
    monkeypatch.setattr(sys, "stdout", NoFile())
    server = await manager.add("one", spec("good_handshake"))
    await server.invoke_tool("stderr", {"n": 32})
    assert server.stderr_tail() == "0123456789abcde\n" * 2
    assert (sys.stderr.getvalue(), sys.stdout.getvalue()) == ("", "")  # type: ignore[attr-defined]


@case("B252")
def test_the_library_leaves_loops_and_their_policies_as_they_are() -> None:
    # In a process of its own: nothing else has touched asyncio there.
    code = """
import asyncio, sys
from asyncio import events, runners, tasks

def shape():
    classes = (asyncio.SelectorEventLoop, asyncio.Task, asyncio.Future)
    return (
        [sorted((name, id(value)) for name, value in vars(one).items()) for one in classes],
        [id(asyncio.run), id(events._get_running_loop), id(events.get_event_loop), id(tasks.sleep)],
        type(events.get_event_loop_policy()),
    )

before = shape()
from mcpclient import Manager

async def main():
    async with Manager({"one": sys.argv[1:]}) as manager:
        print((await manager["one"].invoke_tool("echo", {"text": "hello"})).text)

asyncio.run(main())
assert shape() == before
"""
    server = [sys.executable, str(SERVERS / "good_handshake.py")]
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, *server],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr, ran.stdout) == (0, "", "hello\n")


@case("B252")
def test_a_loop_of_another_class_does_as_well() -> None:
    class Own(asyncio.SelectorEventLoop):
        pass

    async def main() -> str:
        async with Manager({"one": spec("good_handshake")}) as manager:
            assert type(asyncio.get_running_loop()) is Own
            return (await manager["one"].invoke_tool("echo", {"text": "hello"})).text

    with asyncio.Runner(loop_factory=Own) as runner:
        assert runner.run(main()) == "hello"


@case("B257")
async def test_a_server_whose_stdin_is_eaten_is_restarted_if_pings_are_wanted(
    manager: Manager,
) -> None:
    one = spec("steals_stdin", ping=0.1, ping_misses=2, timeouts=IMPATIENT, restart=QUICK)
    server = await manager.add("robbed", one)
    await server.start()
    first = server.pid
    assert first is not None
    with pytest.raises(CallTimedOut):
        await server.invoke_tool("sin", timeout=0.2)
    await eventually(lambda: server.generation == 2)
    assert server.incidents[0].problem == "it answered no ping for 200 ms"
    assert (await server.invoke_tool("echo", {"text": "mine again"})).text == "mine again"
    assert not alive(first)


@case("B257")
async def test_a_server_whose_stdin_is_eaten_costs_time_outs_until_it_is_restarted(
    manager: Manager,
) -> None:
    server = await manager.add("robbed", spec("steals_stdin", timeouts=IMPATIENT))
    await server.start()
    for _ in range(2):
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("sin", timeout=0.1)
    await server.restart()
    assert (await server.invoke_tool("echo", {"text": "mine again"})).text == "mine again"
