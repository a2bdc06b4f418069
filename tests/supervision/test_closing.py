"""The end of a manager, orderly or not, from whatever task: no process is left."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import anyio
import pytest

from mcpclient import CallCancelled, Manager, Timeouts, UseAfterClose
from tests.conftest import ROOT, SERVERS, alive, children, eventually, spec
from tests.supervision.helpers import echo, gated, gone, in_state, pid_of

BACKENDS = ["asyncio", "trio"]


def stubborn() -> dict[str, object]:
    """Servers that need all of the ladder, and one that does not."""
    timeouts = Timeouts(eof=0.2, term=0.2)
    return {
        "good": spec("good_handshake", timeouts=timeouts),
        "eof": spec("ignores_eof", timeouts=timeouts),
        "term": spec("ignores_eof_and_term", timeouts=timeouts),
        "tree": spec("grandchild", timeouts=timeouts),
    }


async def all_up(manager: Manager) -> list[int]:
    """Start all servers at the same time; return the pids of all processes."""
    async with anyio.create_task_group() as group:
        for name in manager:
            group.start_soon(manager[name].start)
    pids = [pid_of(manager[name]) for name in manager]
    if "tree" in manager:
        pids.append(int((await manager["tree"].invoke_tool("pid")).text))
    return pids


# -- orderly -------------------------------------------------------------------------------


async def test_closing_ends_all_servers_at_the_same_time() -> None:
    timeouts = Timeouts(eof=0.5, term=10.0)
    servers = {f"s{number}": spec("ignores_eof", timeouts=timeouts) for number in range(8)}
    manager = Manager(servers)
    await manager.open()
    pids = await all_up(manager)
    handles = [manager[name] for name in manager]
    begun = time.monotonic()
    await manager.close()
    # One after the other it would take eight times the patience.
    assert 0.5 <= time.monotonic() - begun < 3.0
    assert [handle.state for handle in handles] == ["idle"] * 8
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)


async def test_closing_is_done_when_everything_is_gone() -> None:
    before = children()
    manager = Manager(stubborn())
    await manager.open()
    pids = await all_up(manager)
    await manager.close()
    assert not any(alive(pid) for pid in pids)
    assert children() == before, "the guard of the servers is gone too"
    await manager.close()


async def test_a_closed_manager_and_its_servers_are_of_no_more_use() -> None:
    manager = Manager({"good": spec("good_handshake")})
    with pytest.raises(UseAfterClose, match="the manager is not open"):
        manager["good"]
    await manager.open()
    server = manager["good"]
    await server.start()
    await manager.close()
    for call in (echo(server), server.start(), server.wait_ready()):
        with pytest.raises(UseAfterClose) as caught:
            await call
        assert str(caught.value) == 'the server "good" was removed, or its manager closed'
    with pytest.raises(UseAfterClose, match="the manager is closed"):
        manager["good"]
    with pytest.raises(UseAfterClose, match="make a new one"):
        await manager.open()


async def test_calls_in_flight_and_calls_that_wait_are_told(tmp_path: Path) -> None:
    manager = Manager({"up": spec("good_handshake"), "slow": gated(tmp_path / "never")})
    await manager.open()
    up, slow = manager["up"], manager["slow"]
    await up.start()
    told: list[type[Exception]] = []

    async def call(server: object, tool: str) -> None:
        try:
            await server.invoke_tool(tool, {"seconds": 60, "text": "x"})  # type: ignore[attr-defined]
        except Exception as problem:
            told.append(type(problem))

    async with anyio.create_task_group() as group:
        group.start_soon(call, up, "slow")
        group.start_soon(call, slow, "echo")
        await eventually(lambda: manager.status().servers[0].in_flight == 1)
        await in_state(slow, "opening")
        await manager.close()
    assert sorted(told, key=str) == sorted([CallCancelled, UseAfterClose], key=str)


async def test_a_removed_server_is_gone_and_the_others_stay(manager: Manager) -> None:
    first = await manager.add("first", spec("good_handshake"))
    second = await manager.add("second", spec("good_handshake"))
    await first.start()
    await second.start()
    pid = pid_of(first)
    await manager.remove("first")
    await gone(pid)
    with pytest.raises(UseAfterClose):
        await echo(first)
    assert "first" not in manager
    assert await echo(second) == "hello"
    assert second.generation == 1


# -- from another task ---------------------------------------------------------------------


async def test_it_may_be_opened_in_one_task_and_closed_in_another() -> None:
    manager = Manager({"good": spec("good_handshake")})
    pids: list[int] = []

    async def opener() -> None:
        await manager.open()
        await manager["good"].start()
        pids.append(pid_of(manager["good"]))

    async def user() -> None:
        assert await echo(manager["good"]) == "hello"

    for step in (opener, user, manager.close):
        async with anyio.create_task_group() as group:
            group.start_soon(step)
    await gone(*pids)


async def test_the_scope_of_the_task_that_opened_it_may_be_cancelled() -> None:
    manager = Manager({"good": spec("good_handshake")})

    opened = anyio.Event()

    async def opener() -> None:
        await manager.open()
        await manager["good"].start()
        opened.set()
        await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(opener)
        await opened.wait()
        pid = pid_of(manager["good"])
        group.cancel_scope.cancel()
    assert alive(pid), "a server belongs to no task"
    assert await echo(manager["good"]) == "hello"
    await manager.close()
    await gone(pid)


# -- cancelled in the middle ---------------------------------------------------------------


async def test_a_cancelled_close_leaves_nothing() -> None:
    manager = Manager(stubborn())
    await manager.open()
    pids = await all_up(manager)
    with anyio.CancelScope() as scope:
        scope.cancel()
        await manager.close()
        await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert not any(alive(pid) for pid in pids)


async def test_a_deadline_in_the_middle_of_a_close_leaves_nothing() -> None:
    pids: list[int] = []
    with anyio.move_on_after(60) as scope:
        async with Manager(stubborn()) as manager:
            pids += await all_up(manager)
            scope.deadline = anyio.current_time() + 0.1  # the ladder takes longer
        await anyio.lowlevel.checkpoint()
    assert scope.cancelled_caught
    assert not any(alive(pid) for pid in pids)


async def test_a_body_that_is_cancelled_or_raises_leaves_nothing() -> None:
    pids: list[int] = []
    with anyio.CancelScope() as scope:
        async with Manager(stubborn()) as manager:
            pids += await all_up(manager)
            scope.cancel()
            await anyio.sleep_forever()
    with pytest.raises(ValueError, match="the body"):
        async with Manager(stubborn()) as manager:
            pids += await all_up(manager)
            raise ValueError("the body")
    assert not any(alive(pid) for pid in pids)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_natively_cancelled_close_leaves_nothing() -> None:
    manager = Manager(stubborn())
    await manager.open()
    pids = await all_up(manager)
    task = asyncio.create_task(manager.close())
    for _ in range(3):
        await asyncio.sleep(0.02)
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not any(alive(pid) for pid in pids)
    assert task.cancelled()


# -- a loop that ends without a close ------------------------------------------------------

SCRIPT = """
    import sys
    import anyio
    from mcpclient import Manager, RestartPolicy, ServerSpec, Timeouts

    def server(name, *args):
        return ServerSpec(
            sys.executable,
            [f"{servers}/{{name}}.py", *args],
            timeouts=Timeouts(eof=0.3, term=0.3, open=60),
            restart=RestartPolicy(first=60, cap=60, jitter=0),
        )

    async def main():
        manager = Manager({{
            "good": server("good_handshake"),
            "stateless": server("good_stateless"),
            "stubborn": server("ignores_eof_and_term"),
            "tree": server("grandchild"),
            "opening": server("slow_open", "30"),
        }})
        await manager.open()
        for name in ("good", "stateless", "stubborn", "tree"):
            await manager[name].start()
        manager["opening"].begin()
        while manager["opening"].state != "opening":
            await anyio.sleep(0.01)
        print(*(manager[name].pid for name in manager))
        print((await manager["tree"].invoke_tool("pid")).text, flush=True)
        {end}

    anyio.run(main, backend={backend!r})
    print("done", flush=True)
"""


def run_script(backend: str, end: str) -> tuple[list[int], str, str]:
    """Run a host that forgets to close; return the pids it told, and all it said."""
    script = SCRIPT.format(servers=SERVERS, end=end, backend=backend)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    lines = done.stdout.split("\n")
    return [int(word) for line in lines[:2] for word in line.split()], done.stdout, done.stderr


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_host_that_forgets_to_close_leaves_no_process_and_says_nothing(backend: str) -> None:
    pids, said, complained = run_script(backend, "pass")
    assert len(pids) == 6
    assert said.endswith("done\n")
    assert complained == ""
    assert not any(Path(f"/proc/{pid}").exists() and alive(pid) for pid in pids)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_host_that_raises_leaves_no_process(backend: str) -> None:
    pids, said, complained = run_script(backend, "raise ValueError('the host')")
    assert len(pids) == 6
    assert "done" not in said
    assert complained.strip().splitlines()[-1] == "ValueError: the host"
    assert not any(Path(f"/proc/{pid}").exists() and alive(pid) for pid in pids)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_host_that_begins_to_close_and_gives_up_leaves_no_process(backend: str) -> None:
    end = "[manager[name].halt() for name in manager]"
    pids, said, complained = run_script(backend, end)
    assert said.endswith("done\n")
    assert complained == ""
    assert not any(Path(f"/proc/{pid}").exists() and alive(pid) for pid in pids)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_loop_that_ends_with_a_server_leaves_no_zombie_to_the_host(backend: str) -> None:
    pids: list[int] = []

    async def main() -> None:
        manager = Manager({"up": spec("good_handshake"), "opening": spec("slow_open", 30)})
        await manager.open()
        await manager["up"].start()
        manager["opening"].begin()
        await in_state(manager["opening"], "opening")
        pids.extend(pid_of(manager[name]) for name in manager)

    begun = time.monotonic()
    anyio.run(main, backend=backend)
    # No more than the ladder of the one that opens: a second and a half.
    assert time.monotonic() - begun < 5.0
    gc.collect()  # the guard of its servers goes with the manager
    assert len(pids) == 2
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
