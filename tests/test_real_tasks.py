"""A server that we did not write runs tools as tasks: ``everything``, of version 2025-11-25.

Its research takes four stages of a second each, so all of it is done at the same time.
"""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpclient import CallCancelled, CallLost, LocalProtocolError, Manager, Server, Timeouts
from tests.conftest import QUICK, real_servers

COMMAND = real_servers().get("everything")
TOOL = "simulate-research-query"

pytestmark = pytest.mark.skipif(
    COMMAND is None, reason="the everything server is not set up (it needs Node.js; `make setup`)"
)


def everything() -> dict[str, Any]:
    """Return the server's entry. It does not always end at EOF, so the ladder is quick."""
    assert COMMAND is not None
    timeouts = Timeouts(eof=0.2, term=2.0)
    return {"command": COMMAND[0], "args": COMMAND[1:], "timeouts": timeouts, "restart": QUICK}


async def test_research_runs_as_a_task_seen_or_unseen_asks_and_can_be_cancelled() -> None:
    asked: list[str] = []

    def elicit(server: Server, params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params["message"])
        return {"action": "accept", "content": {"interpretation": "snake"}}

    async with Manager({"e": everything()}, on_elicit=elicit) as manager:
        server = manager["e"]

        async def unseen() -> None:
            # Nobody listed the tools: it is refused, looked up, and called as a task.
            result = await server.invoke_tool(TOOL, {"topic": "bees"}, timeout=30)
            assert result.text.startswith("# Research Report: bees")

        async def asking() -> None:
            arguments = {"topic": "python", "ambiguous": True}
            result = await server.invoke_tool(TOOL, arguments, timeout=30)
            assert result.text.startswith("# Research Report: python (snake)")

        async def seen() -> None:
            started = await server.start_tool(TOOL, {"topic": "ants"}, ttl=60)
            assert started.id is not None
            assert started.status == "working"
            assert (started.ttl, started.poll_interval) == (300.0, 1.0)
            again = server.operation(started.id)
            statuses = [status async for status in again]
            assert statuses[0] == "working"
            assert statuses[-1] == "completed"
            assert len(statuses) >= 3, "the message changes with each stage"
            result = await started.result()
            assert result.text.startswith("# Research Report: ants")
            assert await again.result() == result
            assert started.id in {one.id for one in await server.list_operations()}

        async def left() -> None:
            started = await server.start_tool(TOOL, {"topic": "wasps"})
            await started.cancel()
            assert started.status == "cancelled"
            with pytest.raises(CallCancelled, match="Client cancelled task execution"):
                await started.result()

        async with anyio.create_task_group() as group:
            for one in (unseen, asking, seen, left):
                group.start_soon(one)
        assert len(asked) == 1


async def test_what_it_does_not_run_as_a_task_and_does_not_know() -> None:
    async with Manager({"e": everything()}) as manager:
        server = manager["e"]
        with pytest.raises(LocalProtocolError, match="does not run as a task"):
            await server.start_tool("echo", {"message": "a"})
        with pytest.raises(CallLost, match="does not know the task 'nothing'"):
            await server.operation("nothing").result()
        assert (await server.invoke_tool("echo", {"message": "a"})).text == "Echo: a"
