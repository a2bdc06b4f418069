"""Tasks of the extension: the server decides, and tells all of it with the status."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    CallLost,
    LocalProtocolError,
    Manager,
    OutputInvalid,
    RemoteProtocolError,
    ReplyError,
)
from tests.conftest import eventually, spec
from tests.features.helpers import journal, puppet, refusal, result
from tests.features.taskers import (
    MADE,
    ON,
    TASKS,
    People,
    count,
    odd_tasker,
    tasker,
    told,
    until_asked,
)
from tests.protocol.schemas import check, check_sent, needs_spec
from tests.protocol.test_schemas import copied, sent

MODERN = "2026-07-28"
# -- who decides -----------------------------------------------------------------------------


async def test_every_request_says_that_tasks_may_come() -> None:
    people = People()
    async with tasker("stateless", "--poll", 1000, on_elicit=people) as server:
        await server.invoke_tool("ask")
        started = await server.start_tool("never")
        await started.cancel()
        seen = set()
        for message in await journal(server):
            if "id" in message:
                seen.add(message["method"])
                meta = message["params"]["_meta"]
                assert meta["io.modelcontextprotocol/clientCapabilities"]["extensions"] == ON
                # Nothing in the call itself asks for a task (TSK-01, TSK-28).
                assert "task" not in message["params"]
        assert seen >= {
            "server/discover",
            "tools/call",
            "tasks/get",
            "tasks/update",
            "tasks/cancel",
            "subscriptions/listen",
        }


async def test_a_server_may_answer_at_once_all_the_same() -> None:
    async with tasker("stateless") as server:
        assert (await server.invoke_tool("at_once", {"text": "a"})).text == "a"
        started = await server.start_tool("at_once", {"text": "b"})
        assert (started.id, started.status, started.ended) == (None, "completed", True)
        assert (await started.result()).text == "b"
        with pytest.raises(ReplyError, match="Unknown tool"):
            await server.start_tool("nothing")


async def test_tasks_are_off_unless_the_host_turns_them_on() -> None:
    async with tasker("stateless", extensions=None) as server:
        # The server knows, and answers in the ordinary way.
        assert (await server.invoke_tool("soon", {"text": "a"})).text == "a"
        with pytest.raises(LocalProtocolError) as caught:
            await server.start_tool("soon")
        assert 'Manager(extensions={"io.modelcontextprotocol/tasks": {}})' in str(caught.value)
        with pytest.raises(LocalProtocolError, match="tasks are off"):
            await server.operation("t").result()
        assert await count(server, "tools/call") == 2, "the journal's own, and the one above"


async def test_a_task_that_nobody_turned_on_is_an_invalid_answer() -> None:
    one = puppet({"tools/call": [result(**MADE)]}, era="stateless")
    async with Manager({"p": one}) as manager:
        for call in (manager["p"].invoke_tool, manager["p"].call_tool):
            with pytest.raises(RemoteProtocolError, match="unknown kind 'task'"):
                await call("sin")
        with pytest.raises(RemoteProtocolError, match="unknown kind 'task'"):
            await manager["p"].request("tools/call", {"name": "sin"})


async def test_a_task_of_another_method_is_an_invalid_answer() -> None:
    made = result(**MADE)
    answers = {"resources/read": [made], "prompts/get": [made], "prompts/list": [made]}
    capabilities = {"resources": {}, "prompts": {}, "extensions": {TASKS: {}}}
    one = puppet(answers, era="stateless", capabilities=capabilities)
    async with Manager({"p": one}, extensions=ON) as manager:
        server = manager["p"]
        for call in (
            server.read_resource("test://a"),
            server.get_prompt("plain"),
            server.list_prompts(),
            server.request("prompts/get", {"name": "plain"}),
        ):
            with pytest.raises(RemoteProtocolError, match="unknown kind 'task'"):
                await call


async def test_a_server_that_does_not_declare_it_may_use_it_but_is_not_asked_to() -> None:
    async with tasker("stateless", "--undeclared") as server:
        assert server.extensions == {}
        assert (await server.invoke_tool("soon", {"text": "a"})).text == "a"
        with pytest.raises(LocalProtocolError, match="does not declare the extension"):
            await server.start_tool("soon")


async def test_rounds_may_come_before_the_task() -> None:
    people = People()
    async with tasker("stateless", on_elicit=people) as server:
        assert (await server.invoke_tool("rounds")).text == "Ada"
        started = await server.start_tool("rounds")
        assert (await started.result()).text == "Ada"
        assert len(people.asked) == 2
        assert await count(server, "tasks/update") == 0


# -- the status ------------------------------------------------------------------------------


async def test_results_about_tasks_may_be_called_tasks_too() -> None:
    async with tasker("stateless", "--odd", on_elicit=People()) as server:
        assert (await server.invoke_tool("ask")).text == "Ada likes tea"


async def test_news_are_asked_for_where_the_server_wants_to_be_asked_seldom() -> None:
    async with tasker("stateless", "--poll", 60_000) as server:
        with anyio.fail_after(5):
            result = await server.invoke_tool("soon", {"text": "a", "seconds": 0.3})
        assert result.text == "a"
        [listen] = await journal(server, "subscriptions/listen")
        [asked, *_] = await journal(server, "tasks/get")
        assert listen["params"]["notifications"] == {"taskIds": [asked["params"]["taskId"]]}
        # When nobody wants any, the stream is ended.
        await until_asked(server, "notifications/cancelled")
        [cancel] = await journal(server, "notifications/cancelled")
        assert cancel["params"]["requestId"] == listen["id"]


async def test_where_news_are_not_granted_the_server_is_asked() -> None:
    async with tasker("stateless", "--poll", 1000, "--deaf") as server:
        assert (await server.invoke_tool("soon", {"text": "a"})).text == "a"
        assert await count(server, "subscriptions/listen") == 1
        assert await count(server, "tasks/get") == 1


async def test_the_latest_interval_counts() -> None:
    one = odd_tasker(
        told("working", pollIntervalMs=2000),
        told("completed", result={"content": []}),
    )
    async with Manager({"p": one}, extensions=ON) as manager:
        started = await manager["p"].start_tool("sin")
        assert started.poll_interval == 0.001
        changes = 0

        async def wait() -> None:
            nonlocal changes
            await started.result()
            changes += 1

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await eventually(lambda: started.poll_interval == 2.0)
            assert await count(manager["p"], "tasks/get") == 1
            await anyio.sleep(0.1)  # many times the first interval
            assert await count(manager["p"], "tasks/get") == 1
            assert changes == 0
        assert await count(manager["p"], "tasks/get") == 2


async def test_a_task_that_ends_otherwise_after_a_cancel_ends_so() -> None:
    one = odd_tasker(
        told("working"),
        told("completed", result={"content": [{"type": "text", "text": "too late"}]}),
        tasks_cancel=[result()],
    )
    async with Manager({"p": one}, extensions=ON) as manager:
        started = await manager["p"].start_tool("sin")
        await started.cancel()
        assert started.status == "working", "an acknowledgement is no more"
        assert (await started.result()).text == "too late"


async def test_a_task_that_is_forgotten_once_it_is_cancelled_was_cancelled() -> None:
    one = odd_tasker(refusal(-32602, "no such task"), tasks_cancel=[result()])
    async with Manager({"p": one}, extensions=ON) as manager:
        started = await manager["p"].start_tool("sin")
        await started.cancel()
        with pytest.raises(CallCancelled, match="the task 't' was cancelled"):
            await started.result()
        assert started.ended


@pytest.mark.parametrize("status", ["completed", "failed", "input_required"])
async def test_a_task_that_begins_with_another_status_is_asked_about(status: str) -> None:
    done = told("completed", result={"content": [{"type": "text", "text": "well"}]})
    async with Manager({"p": odd_tasker(done, made={"status": status})}, extensions=ON) as manager:
        started = await manager["p"].start_tool("sin")
        assert (started.status, started.ended) == (status, False)
        assert (await started.result()).text == "well"


@pytest.mark.parametrize(
    "answer",
    [
        told("failed", error={"code": -32050, "message": "broke"}),
        told("cancelled"),
        refusal(-32602, "expired"),
    ],
)
async def test_what_has_ended_or_is_unknown_is_not_cancelled(answer: dict[str, Any]) -> None:
    async with Manager({"p": odd_tasker(answer)}, extensions=ON) as manager:
        with pytest.raises((ReplyError, CallLost)):
            await manager["p"].invoke_tool("sin")
        assert await count(manager["p"], "tasks/cancel") == 0


async def test_a_missing_capability_is_not_waited_out() -> None:
    async with Manager({"p": odd_tasker(refusal(-32021))}, extensions=ON) as manager:
        with pytest.raises(ReplyError) as caught:
            await (await manager["p"].start_tool("sin")).result()
        assert caught.value.code == -32021
        assert await count(manager["p"], "tasks/get") == 1


async def test_the_result_of_a_task_is_checked_as_any_other() -> None:
    schema = {"type": "object", "required": ["sum"]}
    tool = {"name": "sin", "inputSchema": {"type": "object"}, "outputSchema": schema}
    bad = told("completed", result={"content": [], "structuredContent": {}})
    script = {
        "tools/list": [result(tools=[tool], ttlMs=0, cacheScope="private")],
        "tools/call": [result(**{**MADE, "pollIntervalMs": 1})],
        "tasks/get": [bad],
    }
    capabilities = {"tools": {}, "extensions": {TASKS: {}}}
    one = puppet(script, era="stateless", capabilities=capabilities, validate="strict")
    async with Manager({"p": one}, extensions=ON) as manager:
        started = await manager["p"].start_tool("sin")
        for wait in (started.result, lambda: manager["p"].invoke_tool("sin")):
            with pytest.raises(OutputInvalid, match="sum"):
                await wait()


# -- the frames ------------------------------------------------------------------------------


@needs_spec
async def test_all_that_is_sent_about_tasks_is_as_the_schema_says(tmp_path: Path) -> None:
    about = {
        "tasks/get": "GetTaskRequest",
        "tasks/update": "UpdateTaskRequest",
        "tasks/cancel": "CancelTaskRequest",
    }
    one = copied(tmp_path / "sent", spec("tasks_stateless", "--poll", 1000))
    async with Manager({"s": one}, on_elicit=People(), extensions=ON) as manager:
        await manager["s"].invoke_tool("ask")
        await (await manager["s"].start_tool("never")).cancel()
    seen = set()
    for message in sent(tmp_path / "sent"):
        method = message["method"]
        seen.add(method)
        if method in about:
            check("ext-tasks", about[method], message)
            check(MODERN, "JSONRPCRequest", message)
            check(MODERN, "RequestParams", message["params"])
        else:
            check_sent(MODERN, message)
        if method == "subscriptions/listen":
            check("ext-tasks", "TaskSubscriptionNotifications", message["params"]["notifications"])
    assert seen >= {*about, "tools/call", "subscriptions/listen", "notifications/cancelled"}
