"""Tools that run as tasks, the same for their callers in both eras."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    CallTimedOut,
    InputRefused,
    Manager,
    Operation,
    ReplyError,
    Timeouts,
    ToolError,
)
from tests.conftest import eventually, spec, tasks
from tests.features.helpers import journal
from tests.features.taskers import ERAS, SOON, People, count, tasker, until_asked

# -- unseen ----------------------------------------------------------------------------------


@ERAS
async def test_a_tool_that_runs_as_a_task_is_one_await(era: str) -> None:
    async with tasker(era) as server:
        result = await server.invoke_tool(SOON[era], {"text": "done"})
        assert result.text == "done"
        assert not result.is_error
        assert (await server.call_tool(SOON[era], {"text": "again"})).text == "again"
        assert await server.request("tools/call", {"name": SOON[era], "arguments": {}})


@ERAS
async def test_what_a_task_asks_is_answered_on_the_way(era: str) -> None:
    people = People()
    async with tasker(era, on_elicit=people) as server:
        result = await server.invoke_tool("ask")
        if era == "handshake":
            assert (result.text, people.asked) == ("hello Ada", ["Who are you?"])
        else:
            assert result.text == "Ada likes tea"
            assert people.asked == ["Who are you?", "What do you like, Ada?"]


@ERAS
async def test_a_task_whose_tool_fails_is_a_tool_error(era: str) -> None:
    async with tasker(era) as server:
        started = await server.start_tool("fail")
        with pytest.raises(ToolError) as caught:
            await started.result()
        assert str(caught.value) == "it failed"
        assert caught.value.result.is_error
        assert (caught.value.tool, caught.value.server) == ("fail", "s")
        # The two eras call it by different names (LTSK-10, TSK-19).
        assert started.status == ("failed" if era == "handshake" else "completed")
        with pytest.raises(ToolError, match="it failed"):
            await server.invoke_tool("fail")
        assert (await server.call_tool("fail")).is_error


@ERAS
async def test_a_task_that_breaks_is_an_error_of_the_server(era: str) -> None:
    async with tasker(era) as server:
        started = await server.start_tool("break")
        for _ in range(2):
            with pytest.raises(ReplyError) as caught:
                await started.result()
            assert (caught.value.code, caught.value.message) == (-32050, "it broke")
            assert caught.value.data == {"why": "a fixture"}
        assert started.status == "failed"
        assert started.message == "it broke"


@ERAS
async def test_a_time_out_of_the_call_cancels_its_task(era: str) -> None:
    async with tasker(era) as server:
        if era == "handshake":
            await server.list_tools()
        with pytest.raises(CallTimedOut) as caught:
            await server.invoke_tool("never", timeout=0.3)
        assert "did not end within 300 ms; it was given up" in str(caught.value)
        assert caught.value.maybe_done
        [cancel] = await journal(server, "tasks/cancel")
        [made] = [one for one in await journal(server, "tools/call") if _names(one, "never")]
        assert cancel["params"]["taskId"]
        # The request itself had ended: it is never cancelled as one (CAN-08, TSK-16).
        cancelled = [one["params"]["requestId"] for one in await _cancels(server)]
        assert made["id"] not in cancelled


def _names(message: dict[str, Any], tool: str) -> bool:
    return bool(message["params"]["name"] == tool)


async def _cancels(server: Any) -> list[dict[str, Any]]:
    return await journal(server, "notifications/cancelled")


@ERAS
async def test_cancelling_the_caller_cancels_the_task(era: str) -> None:
    async with tasker(era) as server:
        with anyio.move_on_after(5) as scope:
            async with anyio.create_task_group() as group:
                group.start_soon(server.invoke_tool, "never")
                await until_asked(server, "tasks/get")
                group.cancel_scope.cancel()
        assert not scope.cancelled_caught
        await until_asked(server, "tasks/cancel")
        assert await count(server, "tasks/cancel") == 1


@ERAS
async def test_nobody_to_answer_a_task_refuses_it_and_cancels_it(era: str) -> None:
    async with tasker(era) as server:
        if era == "stateless":
            with pytest.raises(InputRefused) as caught:
                await server.invoke_tool("ask")
            assert caught.value.asks == ("elicitation/create",)
            assert list(caught.value.requests) == ["name"]
            await until_asked(server, "tasks/cancel")
        else:
            # The server asks all the same, is told no, and makes the best of it.
            assert (await server.invoke_tool("ask")).text == "hello nobody"


# -- seen ------------------------------------------------------------------------------------


@ERAS
async def test_an_operation_tells_what_the_server_told(era: str) -> None:
    async with tasker(era, "--poll", 50) as server:
        started = await server.start_tool("never", ttl=60)
        assert isinstance(started, Operation)
        assert started.id
        assert (started.server, started.tool) == ("s", "never")
        assert (started.status, started.message, started.ended) == ("working", None, False)
        assert (started.ttl, started.poll_interval) == (60.0, 0.05)
        assert started.created_at is not None
        assert started.created_at.endswith("Z")
        assert started.id in str(started.raw)
        assert repr(started) == f"<Operation {started.id!r} of 's': working>"
        await started.cancel()


@ERAS
async def test_a_task_can_be_asked_about_as_soon_as_it_is_there(era: str) -> None:
    async with tasker(era, "--poll", 60_000) as server:
        started = await server.start_tool(SOON[era], {"seconds": 0})
        # Nobody waits, so nobody has asked yet; asking needs no delay (TSK-06).
        assert await count(server, "tasks/get") == 0
        while (await started.refresh()).status == "working":
            await anyio.sleep(0.01)
        assert started.status == "completed"
        asked = await count(server, "tasks/get")
        assert await started.refresh() is started
        assert await count(server, "tasks/get") == asked, "what has ended stays so"
        assert started.raw["status"] == "completed"


@ERAS
async def test_an_operation_can_be_looped_over(era: str) -> None:
    people = People()
    async with tasker(era, on_elicit=people) as server:
        started = await server.start_tool("ask")
        seen = [status async for status in started]
        assert seen[0] == "working"
        assert "input_required" in seen
        assert seen[-1] == "completed"
        # Once over, the last status is all there is.
        assert [status async for status in started] == ["completed"]
        assert (await started.result()).text.split()[-1] in ("Ada", "tea")


@ERAS
async def test_a_result_can_be_had_twice_and_is_asked_for_once(era: str) -> None:
    async with tasker(era) as server:
        started = await server.start_tool(SOON[era], {"text": "one"})
        first = await started.result()
        asked = await count(server, "tasks/get"), await count(server, "tasks/result")
        assert await started.result() == first
        assert (await count(server, "tasks/get"), await count(server, "tasks/result")) == asked


@ERAS
async def test_all_who_wait_share_one_who_asks(era: str) -> None:
    people = People()
    async with tasker(era, on_elicit=people) as server:
        started = await server.start_tool("ask")
        assert started.id is not None
        other = server.operation(started.id)
        texts: list[str] = []

        async def wait(one: Operation) -> None:
            texts.append((await one.result()).text)

        async with anyio.create_task_group() as group:
            for one in (started, started, other, server.operation(started.id)):
                group.start_soon(wait, one)
        assert len(texts) == 4
        assert len(set(texts)) == 1
        assert len(people.asked) == (1 if era == "handshake" else 2), "nobody is asked twice"


@ERAS
async def test_who_waits_for_a_result_may_leave_and_the_task_goes_on(era: str) -> None:
    async with tasker(era) as server:
        started = await server.start_tool(SOON[era], {"seconds": 1.4, "text": "late"})
        with pytest.raises(CallTimedOut) as caught:
            await started.result(timeout=0.05)
        assert "did not end within 50 ms; it goes on" in str(caught.value)
        with anyio.move_on_after(0.05) as scope:
            await started.result()
        assert scope.cancelled_caught
        assert (await started.result()).text == "late"
        assert await count(server, "tasks/cancel") == 0


@ERAS
async def test_the_job_ends_when_nobody_waits_any_more(era: str) -> None:
    async with tasker(era) as server:
        started = await server.start_tool("never")
        with pytest.raises(CallTimedOut):
            await started.result(timeout=0.05)
        await eventually(lambda: not any("task of" in name for name in tasks()))
        asked = await count(server, "tasks/get")
        await started.refresh()
        assert await count(server, "tasks/get") == asked + 1, "and nobody else asks"


@ERAS
async def test_a_person_takes_nobody_s_time(era: str) -> None:
    people = People()
    people.hold = anyio.Event()
    async with tasker(era, on_elicit=people) as server:
        results: list[str] = []

        async def invoke() -> None:
            results.append((await server.invoke_tool("ask", timeout=1.0)).text)

        async with anyio.create_task_group() as group:
            group.start_soon(invoke)
            await eventually(lambda: people.asked)
            await anyio.sleep(1.3)  # longer than the call may take
            assert results == []
            people.hold.set()
        assert len(results) == 1


@ERAS
async def test_a_cancelled_task_is_a_cancelled_call(era: str) -> None:
    async with tasker(era) as server:
        started = await server.start_tool("never")
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                with pytest.raises(CallCancelled) as caught:
                    await started.result()
                assert f"the task {started.id!r} was cancelled" in str(caught.value)
                assert caught.value.maybe_done

            group.start_soon(wait)
            await until_asked(server, "tasks/get")
            await started.cancel()
        assert started.status == "cancelled"
        await started.cancel()
        assert await count(server, "tasks/cancel") == 1, "what has ended is not cancelled again"
        assert await _cancels(server) == []


@ERAS
async def test_a_task_that_had_ended_before_it_was_cancelled_is_no_fault(era: str) -> None:
    async with tasker(era) as server:
        started = await server.start_tool(SOON[era], {"text": "first", "seconds": 0})
        await anyio.sleep(0.05)
        await started.cancel()  # refused in the one era (LTSK-09), acknowledged in the other
        assert (await started.result()).text == "first"


# -- beside ----------------------------------------------------------------------------------


@ERAS
async def test_the_status_of_a_task_is_logged(era: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "mcpclient")
    async with tasker(era) as server:
        started = await server.start_tool(SOON[era])
        await started.result()
        said = [one.getMessage() for one in caplog.records if f"{started.id}" in one.getMessage()]
    assert said == [f"s = task {started.id!r}: working", f"s = task {started.id!r}: completed"]


async def test_tasks_need_no_more_than_a_call_where_there_are_none() -> None:
    async with Manager({"s": spec("good_handshake", timeouts=Timeouts(eof=1.0))}) as manager:
        server = manager["s"]
        assert (await server.invoke_tool("echo", {"text": "a"})).text == "a"
        # No coroutine of its own stands before the request.
        call: Any = server._caller.request("tools/call", {}, 1.0)
        try:
            assert call.__qualname__ == "Connection.request"
        finally:
            call.close()
