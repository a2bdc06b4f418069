"""Chaos for a few seconds, and what many crashes and many servers leave behind: nothing."""

from __future__ import annotations

import os
import signal
import threading

import anyio
import pytest

from mcpclient import Manager, RestartPolicy, ServerDied, ServerSpec, Timeouts
from tests.chaos.engine import Chaos, Plan, memory
from tests.conftest import alive, children, descriptors, eventually, spec, threads

# Lives as short as a shell can make them, with all that a life has: pipes, an opening, calls.
FAST = """
while read -r line; do
    case $line in
    *discover*) id=${line#*'"id":'}; id=${id%%[,\\}]*}
        echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"no"}}' ;;
    *'"initialize"'*) id=${line#*'"id":'}; id=${id%%[,\\}]*}
        echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-11-25",\
"capabilities":{},"serverInfo":{"name":"fast","version":"1"}}}' ;;
    *die*) echo "no more" >&2; exit 5 ;;
    esac
done
"""


async def test_a_few_seconds_of_chaos_leave_nothing_amiss() -> None:
    plan = Plan(seed=20, seconds=3.0, slack=5.0)
    figures = await Chaos(plan).run()
    assert figures.faults == []
    assert figures.begun == figures.ended.total() > 500
    assert figures.ended["answered"] > 200
    assert figures.incidents > 0


async def test_three_hundred_crashes_leave_no_trace() -> None:
    policy = RestartPolicy(first=0.0, cap=0.0, jitter=0, burst=1000, within=0)
    one = ServerSpec("/bin/sh", ["-c", FAST], restart=policy, timeouts=Timeouts(eof=1, term=1))
    others = threading.active_count()
    async with Manager({"crashing": one, "witness": spec("good_handshake")}) as manager:
        server, witness = manager["crashing"], manager["witness"]
        await witness.start()
        for number in range(1, 301):
            with pytest.raises(ServerDied) as caught:
                await server.request("die", timeout=20)
            assert (caught.value.exit.code, caught.value.stderr_tail) == (5, "no more\n")
            if number == 60:
                await server.wait_ready()
                before, resident = shape(), memory()
        await server.wait_ready()
        # Not one child, descriptor or thread of ours more than after the first ones.
        await eventually(lambda: shape() == before)
        assert threading.active_count() <= others + 4  # those that start processes
        assert memory() - resident < 1000
        assert (server.generation, len(server.incidents)) == (301, 300)
        assert server.status().calls == 300
        assert (await witness.invoke_tool("echo", {"text": "what?"})).text == "what?"
        assert (witness.generation, witness.incidents) == (1, [])


def shape() -> tuple[int, int, set[str]]:
    """Return what may not grow: children, descriptors, threads of ours."""
    return len(children()), len(descriptors()), threads()


async def test_a_hundred_servers_start_and_stop_together() -> None:
    servers = {f"server {n}": spec("good_handshake") for n in range(100)}
    async with Manager(servers) as manager:
        found: dict[str, str] = {}

        async def ask(name: str) -> None:
            found[name] = (await manager[name].invoke_tool("echo", {"text": name}, timeout=60)).text

        async with anyio.create_task_group() as group:
            for name in manager:
                group.start_soon(ask, name)
        assert found == {name: name for name in servers}
        pids = {name: manager[name].pid for name in manager}
        assert len(set(pids.values())) == 100
        assert {one.state for one in manager.status().servers} == {"up"}
        # Some of them die in the middle of it all, and are only those that do.
        for n in range(0, 100, 10):
            os.kill(pids[f"server {n}"] or 0, signal.SIGKILL)
        await manager["server 5"].invoke_tool("echo", {"text": "on"})
    assert not [pid for pid in pids.values() if pid and alive(pid)]
