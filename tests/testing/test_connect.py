"""A server of the kit, or anything else, with an open client: in memory, on both loops."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpclient import CallCancelled, Manager, OpeningFailed
from mcpclient.serverkit import Server
from mcpclient.testing import Recorder, Script, connect, in_memory
from tests.conftest import eventually, spec


def kit() -> Server:
    """Return a small server."""
    server = Server("kit", "1.0")

    @server.tool
    def add(a: int, b: int) -> str:
        """Adds."""
        return str(a + b)

    @server.tool
    async def wait(seconds: float) -> str:
        """Waits."""
        await anyio.sleep(seconds)
        return "waited"

    return server


@pytest.mark.parametrize("era", ["auto", "handshake", "stateless"])
async def test_a_kit_server_is_driven_in_memory_in_both_eras(era: str) -> None:
    async with connect(kit(), era=era) as client:
        assert client.era == ("handshake" if era == "handshake" else "stateless")
        assert client.info["name"] == "kit"
        assert [tool.name for tool in await client.list_tools()] == ["add", "wait"]
        assert (await client.invoke_tool("add", {"a": 1, "b": 2})).text == "3"


async def test_calls_run_at_the_same_time_and_one_can_be_cancelled() -> None:
    async with connect(kit()) as client, anyio.create_task_group() as group:
        group.start_soon(client.invoke_tool, "wait", {"seconds": 1000})
        await eventually(lambda: client.status().in_flight)
        assert (await client.invoke_tool("add", {"a": 1, "b": 2})).text == "3"
        group.cancel_scope.cancel()


async def test_a_kit_server_outlives_its_clients_and_may_have_many() -> None:
    server = kit()
    async with Manager({"x": in_memory(server), "y": in_memory(server)}) as manager:
        for name in "xy":
            assert (await manager[name].invoke_tool("add", {"a": 1, "b": 1})).text == "2"
        await manager["x"].restart()
        assert (await manager["x"].invoke_tool("add", {"a": 1, "b": 1})).text == "2"


async def test_a_call_that_runs_when_the_client_leaves_ends(caplog: Any) -> None:
    async with connect(kit()) as client, anyio.create_task_group() as group:

        async def call() -> None:
            with pytest.raises(CallCancelled):
                await client.invoke_tool("wait", {"seconds": 1000})

        group.start_soon(call)
        await eventually(lambda: client.status().in_flight)
        await client.stop()
    assert "fault" not in caplog.text  # of ours


async def test_a_kit_server_can_be_recorded() -> None:
    recorder = Recorder()
    async with connect(recorder.spec(kit())) as client:
        await client.invoke_tool("add", {"a": 1, "b": 2})
    assert recorder.received()[-1]["result"]["content"][0]["text"] == "3"


async def test_whatever_a_manager_takes_can_be_connected_to() -> None:
    made = spec("good_handshake")
    for source in (made, [*made.argv], {"command": made.command, "args": list(made.args)}):
        async with connect(source, name="good", era="handshake") as client:
            assert client.name == "good"
            assert (await client.invoke_tool("echo", {"text": "a"})).text == "a"


async def test_a_server_that_does_not_come_up_is_told_at_once_or_left_to_the_first_call() -> None:
    script = Script()
    script.on("initialize").times(2).error(-32000, "closed on Sundays")
    with pytest.raises(OpeningFailed, match="closed on Sundays"):
        async with connect(script, era="handshake"):
            pytest.fail("it is not up")
    async with connect(script, era="handshake", wait=False) as client:
        with pytest.raises(OpeningFailed, match="closed on Sundays"):
            await client.list_tools()
    script.check()


async def test_options_of_the_manager_reach_it() -> None:
    script = Script()
    script.on("tools/call", name="a").ask("roots/list").text("a")
    async with connect(script, roots=["file:///a"], idle_stop=100) as client:
        await client.invoke_tool("a")
        assert client.spec.idle_stop == 100
    assert script.answers == [{"roots": [{"uri": "file:///a"}]}]


async def test_an_option_that_is_nobodys_is_a_type_error() -> None:
    with pytest.raises(TypeError, match="idle_stops"):
        async with connect(Script(), idle_stops=100):
            pytest.fail("it is not open")
