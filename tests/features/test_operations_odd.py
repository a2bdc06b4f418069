"""Tasks of 2025-11-25: progress and cancelling, lists, and what is answered oddly."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallLost,
    CallTimedOut,
    LocalProtocolError,
    Manager,
    RemoteProtocolError,
    ReplyError,
    Timeouts,
)
from tests.features.helpers import journal, puppet, refusal, result, say
from tests.features.taskers import count, tasker, until_asked

# -- progress --------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["invoke_tool", "start_tool"])
async def test_progress_is_told_as_long_as_the_task_runs(verb: str) -> None:
    told: list[float] = []
    async with tasker("handshake") as server:

        def progress(done: float, total: float | None, message: str | None) -> None:
            told.append(done)

        await server.list_tools()
        if verb == "invoke_tool":
            last = await server.invoke_tool("report", {"n": 3}, on_progress=progress)
        else:
            started = await server.start_tool("report", {"n": 3}, on_progress=progress)
            last = await started.result()
        assert (last.text, told) == ("3 steps done", [1, 2, 3])


async def test_progress_starts_the_time_of_the_call_anew() -> None:
    told: list[float] = []
    async with tasker("handshake") as server:
        await server.list_tools()
        # Thirty steps of 50 ms each, and no second without one.
        done = await server.invoke_tool(
            "report", {"n": 30}, timeout=1.0, on_progress=lambda done, *_: told.append(done)
        )
        assert (done.text, told) == ("30 steps done", list(range(1, 31)))


async def test_progress_does_not_make_a_call_endless() -> None:
    timeouts = Timeouts(eof=1.0, term=0.5, call=5.0, call_max=0.3)
    async with tasker("handshake", timeouts=timeouts) as server:
        await server.list_tools()
        with pytest.raises(CallTimedOut):
            await server.invoke_tool(
                "report", {"n": 60}, timeout=0.2, on_progress=lambda *facts: None
            )


async def test_progress_after_the_end_is_told_to_nobody() -> None:
    heard: list[float] = []
    done = result(taskId="t", status="completed")
    text = result(content=[{"type": "text", "text": "done"}])
    async with Manager({"p": odd_tasker(done, tasks_result=[text])}) as manager:
        server = manager["p"]
        started = await server.start_tool("sin", on_progress=lambda one, *_: heard.append(one))
        [call] = [
            one for one in await journal(server, "tools/call") if one["params"]["name"] == "sin"
        ]
        token = call["params"]["_meta"]["progressToken"]
        assert token == call["id"]
        await say(server, "notifications/progress", {"progressToken": token, "progress": 1})
        assert (await started.result()).text == "done"
        await say(server, "notifications/progress", {"progressToken": token, "progress": 2})
        assert heard == [1]


# -- cancelling ------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["cancelled", "timed out"])
async def test_a_call_that_is_left_before_its_task_is_made_is_cancelled_as_a_task(
    end: str,
) -> None:
    async with tasker("handshake") as server:
        await server.list_tools()
        if end == "cancelled":
            with anyio.move_on_after(0.1) as scope:
                await server.invoke_tool("late", {"seconds": 1.2})
            assert scope.cancelled_caught
        else:
            with pytest.raises(CallTimedOut, match="that a task was made"):
                await server.invoke_tool("late", {"seconds": 1.2}, timeout=0.1)
        await until_asked(server, "tasks/cancel")
        # Never by the notice for requests (CAN-08).
        assert await count(server, "notifications/cancelled") == 0
        [operation] = await server.list_operations()
        assert operation.status == "cancelled"


async def test_a_call_that_is_left_before_its_task_is_made_outlives_no_server() -> None:
    async with tasker("handshake") as server:
        await server.list_tools()
        with anyio.move_on_after(0.05):
            await server.invoke_tool("late", {"seconds": 30})
        with pytest.raises(CallLost):
            await server.call_tool("exit")
        assert (await server.invoke_tool("plain", {"text": "well"})).text == "well"


async def test_a_server_that_cancels_no_tasks_is_not_asked_to() -> None:
    async with tasker("handshake", "--lacks", "cancel") as server:
        started = await server.start_tool("never")
        with pytest.raises(LocalProtocolError, match="does not offer to cancel tasks"):
            await started.cancel()
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("never", timeout=0.1)
        assert await count(server, "tasks/cancel") == 0


# -- lists -----------------------------------------------------------------------------------


async def test_the_tasks_of_a_server_are_listed_over_all_pages() -> None:
    async with tasker("handshake", "--page", 2) as server:
        started = [await server.start_tool("never") for _ in range(5)]
        listed = await server.list_operations()
        assert [one.id for one in listed] == [one.id for one in started]
        assert {one.status for one in listed} == {"working"}
        assert await count(server, "tasks/list") == 3
        await listed[0].cancel()
        assert started[0].status == "cancelled", "the two are one"


async def test_a_server_that_lists_no_tasks_is_not_asked_to() -> None:
    async with tasker("handshake", "--lacks", "list") as server:
        with pytest.raises(LocalProtocolError, match='"s" does not list its tasks'):
            await server.list_operations()
        assert await count(server, "tasks/list") == 0


async def test_a_list_without_an_end_ends_and_odd_items_are_left_out(
    caplog: pytest.LogCaptureFixture,
) -> None:
    tasks = {"requests": {"tools": {"call": {}}}, "list": {}}
    items = [{"taskId": "a", "status": "working"}, {"taskId": "b"}, 3, None]
    answers = {"tasks/list": [result(tasks=items, nextCursor="again")]}
    async with Manager({"p": puppet(answers, capabilities={"tasks": tasks})}) as manager:
        with caplog.at_level(logging.WARNING, "mcpclient"):
            listed = await manager["p"].list_operations()
        assert [one.id for one in listed] == ["a"]
        assert "a task was left out" in caplog.text
        assert "does not end" in caplog.text


# -- rubbish ---------------------------------------------------------------------------------


def odd_tasker(*gets: dict[str, Any], **answers: list[Any]) -> Any:
    """Return the spec of a puppet whose tool makes a task, with these answers to tasks/get."""
    capabilities = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    tool = {"name": "sin", "execution": {"taskSupport": "required"}, "inputSchema": {}}
    made = {"taskId": "t", "status": "working", "pollInterval": 1}
    script = {
        "tools/list": [result(tools=[tool])],
        "tools/call": [result(task=made)],
        "tasks/get": list(gets),
        **{method.replace("_", "/"): one for method, one in answers.items()},
    }
    return puppet(script, capabilities=capabilities)


async def test_a_status_that_cannot_be_read_is_asked_for_again_a_few_times() -> None:
    good = result(taskId="t", status="completed")
    bad = (result(taskId="t", status="odd"), result(taskId="u", status="working"), refusal(-32603))
    text = result(content=[{"type": "text", "text": "at last"}])
    async with Manager({"p": odd_tasker(*bad, good, tasks_result=[text])}) as manager:
        assert (await (await manager["p"].start_tool("sin")).result()).text == "at last"


@pytest.mark.parametrize(
    ("answer", "error", "times"),
    [
        (result(taskId="t", status="odd"), RemoteProtocolError, 4),
        (result(taskId="u", status="working"), RemoteProtocolError, 4),
        (refusal(-32603), ReplyError, 4),
        (refusal(-32601), ReplyError, 1),
    ],
)
async def test_one_that_answers_nothing_else_is_given_up(
    answer: dict[str, Any], error: type[Exception], times: int
) -> None:
    async with Manager({"p": odd_tasker(answer)}) as manager:
        started = await manager["p"].start_tool("sin")
        with pytest.raises(error):
            await started.result()
        assert await count(manager["p"], "tasks/get") == times
        with pytest.raises(error):
            await started.refresh()


async def test_a_request_for_the_result_that_fails_is_told_from_a_task_that_failed() -> None:
    asks = result(taskId="t", status="input_required", pollInterval=1)
    done = result(taskId="t", status="completed")
    text = result(content=[{"type": "text", "text": "at last"}])
    for code in (-32603, -32602):
        one = odd_tasker(asks, asks, done, tasks_result=[refusal(code, "busy"), text])
        async with Manager({"p": one}) as manager:
            assert (await (await manager["p"].start_tool("sin")).result()).text == "at last"
    gone = odd_tasker(done, tasks_result=[refusal(-32602, "expired")])
    async with Manager({"p": gone}) as manager:
        with pytest.raises(CallLost, match="expired"):
            await (await manager["p"].start_tool("sin")).result()
    for status in ("completed", "input_required"):
        known = result(taskId="t", status=status, pollInterval=1)
        busy = odd_tasker(known, tasks_result=[refusal(-32603, "busy")])
        async with Manager({"p": busy}) as manager:
            with pytest.raises(ReplyError, match="busy"):
                await (await manager["p"].start_tool("sin")).result()
            assert await count(manager["p"], "tasks/result") == 4
    cancelled = result(taskId="t", status="cancelled", statusMessage="by another")
    left = odd_tasker(asks, cancelled, tasks_result=[refusal(-32603, "no result")])
    async with Manager({"p": left}) as manager:
        with pytest.raises(CallLost, match=r"was cancelled \(by another\)"):
            await (await manager["p"].start_tool("sin")).result()
