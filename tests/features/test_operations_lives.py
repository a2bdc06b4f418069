"""Operations beyond one life: stored ids, restarts of the server, stops, and the manager's end."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    CallLost,
    LocalProtocolError,
    Manager,
    ServerDied,
    ServerUnavailable,
    UseAfterClose,
)
from tests.conftest import eventually, spec, tasks
from tests.features.helpers import hold
from tests.features.taskers import (
    ERAS,
    ON,
    SOON,
    TASKERS,
    odd_tasker,
    tasker,
    told,
    until_asked,
)

# -- ids -------------------------------------------------------------------------------------


@ERAS
async def test_a_stored_id_is_picked_up_by_another_host(era: str, tmp_path: Path) -> None:
    store = str(tmp_path / "tasks")
    async with tasker(era, "--store", store) as server:
        started = await server.start_tool(SOON[era], {"seconds": 60})
        id = started.id
        assert id is not None
    async with Manager({"s": spec(TASKERS[era], "--store", store)}, extensions=ON) as manager:
        picked = manager["s"].operation(id)
        # Nothing is known of it yet, and nothing was sent.
        assert (picked.status, picked.raw, picked.tool) == ("working", {}, "")
        assert manager["s"].state == "idle"
        assert (await picked.result()).text == "finished by another life"
        assert picked.status == "completed"


@ERAS
async def test_an_operation_goes_on_in_the_next_life_of_the_server(
    era: str, tmp_path: Path
) -> None:
    async with tasker(era, "--store", tmp_path / "tasks") as server:
        started = await server.start_tool(SOON[era], {"seconds": 60})
        async with anyio.create_task_group() as group:

            async def die() -> None:
                await until_asked(server, "tasks/get")
                with pytest.raises(ServerDied):
                    await server.call_tool("exit", {"code": 3})

            group.start_soon(die)
            assert (await started.result()).text == "finished by another life"
        assert server.generation == 2


async def test_a_server_that_dies_when_it_is_asked_is_asked_again_in_its_next_life() -> None:
    done = told("completed", result={"content": [{"type": "text", "text": "well"}]})
    async with Manager({"p": odd_tasker(done)}, extensions=ON) as manager:
        server = manager["p"]
        started = await server.start_tool("sin")
        await hold(server, "tasks/get")
        async with anyio.create_task_group() as group:

            async def die() -> None:
                await until_asked(server, "tasks/get")
                with pytest.raises(ServerDied):
                    await server.call_tool("exit", {"code": 3})

            group.start_soon(die)
            assert (await started.result()).text == "well"
        assert server.generation == 2


@ERAS
async def test_a_task_that_the_next_life_does_not_know_is_lost(era: str) -> None:
    async with tasker(era) as server:
        started = await server.start_tool("never")
        with pytest.raises(CallLost):
            await server.call_tool("exit", {"code": 3})
        with pytest.raises(CallLost) as caught:
            await started.result()
        assert type(caught.value) is CallLost
        assert f"the server does not know the task {started.id!r}" in str(caught.value)
        assert "ask not found" in str(caught.value)
        assert caught.value.method == "tasks/get"
        assert caught.value.maybe_done


@ERAS
async def test_an_id_that_the_server_does_not_know_is_lost(era: str) -> None:
    async with tasker(era) as server:
        unknown = server.operation("no-such-task")
        for ask in (unknown.refresh, unknown.result, unknown.cancel):
            with pytest.raises(CallLost, match="does not know the task 'no-such-task'"):
                await ask()
        with pytest.raises(CallLost):
            async for _ in unknown:
                pass
        with pytest.raises(LocalProtocolError):
            server.operation("")


# -- the end of the server -------------------------------------------------------------------


@ERAS
async def test_a_stop_of_the_server_ends_the_waiting(era: str) -> None:
    async with tasker(era, "--poll", 60_000) as server:
        started = await server.start_tool("never")
        caught: list[Exception] = []

        async def wait() -> None:
            with pytest.raises((CallCancelled, ServerUnavailable)) as info, anyio.fail_after(5):
                await started.result()
            caught.append(info.value)

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await eventually(lambda: any("task of" in name for name in tasks()))
            await server.stop()
        assert len(caught) == 1


@ERAS
async def test_the_end_of_the_manager_ends_the_waiting(era: str) -> None:
    async with anyio.create_task_group() as group, tasker(era, "--poll", 60_000) as server:
        started = await server.start_tool("never")

        async def wait() -> None:
            with pytest.raises(UseAfterClose, match="was removed"), anyio.fail_after(5):
                await started.result()

        group.start_soon(wait)
        await eventually(lambda: any("task of" in name for name in tasks()))
