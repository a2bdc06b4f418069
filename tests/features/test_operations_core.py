"""Tasks of 2025-11-25: the client says which call becomes one, and fetches what came of it."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import (
    LocalProtocolError,
    Manager,
    ReplyError,
    Server,
)
from tests.conftest import eventually, spec
from tests.features.helpers import hold, journal, puppet, refusal, release, result, say
from tests.features.taskers import ON, TASKS, People, count, tasker, until_asked
from tests.protocol.schemas import check_sent, needs_spec
from tests.protocol.test_schemas import copied, sent

OLD = "2025-11-25"
RELATED = "io.modelcontextprotocol/related-task"
OLDER = pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])


async def calls(server: Server) -> list[dict[str, Any]]:
    """Return the params of the tool calls but for those of the journal."""
    found = [one["params"] for one in await journal(server, "tools/call")]
    return [params for params in found if params["name"] != "journal"]


# -- when a call is a task -------------------------------------------------------------------


async def test_a_tool_that_must_be_a_task_is_called_as_one_once_that_is_known() -> None:
    async with tasker("handshake") as server:
        assert (await server.invoke_tool("must", {"text": "a"})).text == "a"
        assert (await server.invoke_tool("must", {"text": "b"})).text == "b"
        made = [("task" in params, params["arguments"]["text"]) for params in await calls(server)]
        # Refused, looked up, called as a task; from then on it is known (LTSK-03).
        assert made == [(False, "a"), (True, "a"), (True, "b")]
        assert await count(server, "tools/list") == 1


async def test_a_list_of_the_tools_tells_which_must_be_tasks() -> None:
    async with tasker("handshake") as server:
        listed = {tool.name: tool.task_support for tool in await server.list_tools()}
        assert (listed["must"], listed["may"]) == ("required", "optional")
        assert (listed["must_not"], listed["plain"]) == ("forbidden", "forbidden")
        await server.invoke_tool("must", {"text": "a"})
        await server.invoke_tool("may", {"text": "b"})
        assert [("task" in params) for params in await calls(server)] == [True, False]


@pytest.mark.parametrize("code", [-32600, 0])
async def test_a_server_may_refuse_by_another_code_or_by_a_result(code: int) -> None:
    async with tasker("handshake", "--refuse", code) as server:
        assert (await server.call_tool("must", {"text": "a"})).text == "a"
        assert (await server.invoke_tool("must", {"text": "b"})).text == "b"
        assert ["task" in params for params in await calls(server)] == [False, True, True]


@pytest.mark.parametrize("code", [-32601, 0])
async def test_calls_at_the_same_time_all_find_out_that_they_must_be_tasks(code: int) -> None:
    async with tasker("handshake", "--refuse", code) as server:
        texts: list[str] = []

        async def invoke(text: str) -> None:
            texts.append((await server.invoke_tool("must", {"text": text})).text)

        async with anyio.create_task_group() as group:
            for text in "abcdef":
                group.start_soon(invoke, text)
        assert sorted(texts) == list("abcdef")


async def test_a_result_that_only_looks_like_a_refusal_is_a_result() -> None:
    content = [{"type": "text", "text": "MCP error -32601: not found"}]
    answers = {"tools/call": [result(content=content, isError=True)]}
    capabilities = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    async with Manager({"p": puppet(answers, capabilities=capabilities)}) as manager:
        assert (await manager["p"].call_tool("sin")).is_error
        assert await calls(manager["p"]) == [{"name": "sin", "arguments": {}}]
    async with Manager({"p": puppet(answers)}) as manager:
        assert (await manager["p"].call_tool("sin")).is_error
        assert await count(manager["p"], "tools/list") == 0, "it has no tasks at all"


async def test_any_other_refusal_is_the_answer() -> None:
    async with tasker("handshake", "--refuse", -32000) as server:
        with pytest.raises(ReplyError) as caught:
            await server.invoke_tool("must")
        assert caught.value.code == -32000
        assert await count(server, "tools/list") == 0
        with pytest.raises(ReplyError, match="Unknown tool"):
            await server.invoke_tool("nothing")
        assert all("task" not in params for params in await calls(server))


async def test_a_method_that_a_tool_does_not_find_is_no_reason_to_call_it_as_a_task() -> None:
    capabilities = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    answers = {"tools/call": [refusal(-32601, "not mine")]}
    async with Manager({"p": puppet(answers, capabilities=capabilities)}) as manager:
        with pytest.raises(ReplyError, match="not mine"):
            await manager["p"].invoke_tool("sin")
        assert await calls(manager["p"]) == [{"name": "sin", "arguments": {}}]


@pytest.mark.parametrize("lacks", ["tasks", "call"])
async def test_without_the_capability_no_call_is_ever_a_task(lacks: str) -> None:
    async with tasker("handshake", "--lacks", lacks) as server:
        await server.list_tools()
        for tool in ("must", "may", "plain"):
            with pytest.raises(LocalProtocolError) as caught:
                await server.start_tool(tool)
            assert 'the server "s" runs no tool as a task' in str(caught.value)
            assert "invoke_tool()" in str(caught.value)
        with pytest.raises(ReplyError, match="must be called as a task"):
            await server.invoke_tool("must")
        assert all("task" not in params for params in await calls(server))


@OLDER
async def test_an_older_version_has_no_tasks(version: str) -> None:
    async with tasker("handshake", "--version", version) as server:
        assert server.protocol_version == version
        with pytest.raises(LocalProtocolError, match="runs no tool as a task"):
            await server.start_tool("must")
        assert (await server.invoke_tool("plain", {"text": "a"})).text == "a"
        with pytest.raises(LocalProtocolError, match='no tasks with the server "s"'):
            await server.operation("x").refresh()
        with pytest.raises(LocalProtocolError, match="does not list"):
            await server.list_operations()


@pytest.mark.parametrize("tool", ["must_not", "plain", "nothing"])
async def test_a_tool_that_does_not_run_as_a_task_is_not_started_as_one(tool: str) -> None:
    async with tasker("handshake") as server:
        with pytest.raises(LocalProtocolError) as caught:
            await server.start_tool(tool)
        assert f'the tool {tool!r} of "s" does not run as a task' in str(caught.value)
        assert await calls(server) == []


async def test_a_tool_that_may_be_a_task_is_one_if_it_is_started() -> None:
    async with tasker("handshake") as server:
        started = await server.start_tool("may", {"text": "a"}, ttl=2.5)
        assert (await started.result()).text == "a"
        assert [params["task"] for params in await calls(server)] == [{"ttl": 2500}]
        assert started.ttl == 2.5


async def test_the_tools_are_asked_for_anew_in_each_life_and_after_each_change() -> None:
    capabilities = {"tools": {"listChanged": True}, "tasks": {"requests": {"tools": {"call": {}}}}}
    required = {"name": "sin", "execution": {"taskSupport": "required"}, "inputSchema": {}}
    forbidden = {"name": "sin", "inputSchema": {}}
    made = {"taskId": "t", "status": "completed"}
    answers = {
        "tools/list": [result(tools=[required]), result(tools=[forbidden])],
        "tools/call": [result(task=made), result(content=[])],
        "tasks/result": [result(content=[])],
    }
    async with Manager({"p": puppet(answers, capabilities=capabilities)}) as manager:
        server = manager["p"]
        await server.list_tools()
        await server.invoke_tool("sin")
        await say(server, "notifications/tools/list_changed")
        await server.invoke_tool("sin")  # unknown now, so it is called plainly
        made_as = [params for params in await calls(server) if params["name"] == "sin"]
        assert ["task" in params for params in made_as] == [True, False]


async def test_a_list_that_was_old_before_it_came_tells_nothing() -> None:
    capabilities = {"tools": {"listChanged": True}, "tasks": {"requests": {"tools": {"call": {}}}}}
    required = {"name": "sin", "execution": {"taskSupport": "required"}, "inputSchema": {}}
    answers = {"tools/list": [result(tools=[required])], "tools/call": [result(content=[])]}
    async with Manager({"p": puppet(answers, capabilities=capabilities)}) as manager:
        server = manager["p"]
        await server.wait_ready()
        await hold(server, "tools/list")
        async with anyio.create_task_group() as group:
            group.start_soon(server.list_tools)
            await until_asked(server, "tools/list")
            await say(server, "notifications/tools/list_changed")
            await release(server, "tools/list")
        await server.invoke_tool("sin")
        made_as = [params for params in await calls(server) if params["name"] == "sin"]
        assert made_as == [{"name": "sin", "arguments": {}}]


async def test_who_says_task_himself_is_left_alone() -> None:
    async with tasker("handshake") as server:
        await server.list_tools()
        params = {"name": "must", "arguments": {}, "task": {}}
        raw = await server.request("tools/call", params)
        assert raw["task"]["status"] == "working"
        assert len(await calls(server)) == 1


async def test_an_ordinary_answer_to_a_call_as_a_task_is_the_result() -> None:
    capabilities = {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}}
    tool = {"name": "sin", "execution": {"taskSupport": "optional"}, "inputSchema": {}}
    answers = {
        "tools/list": [result(tools=[tool])],
        "tools/call": [result(content=[{"type": "text", "text": "at once"}])],
    }
    async with Manager({"p": puppet(answers, capabilities=capabilities)}) as manager:
        started = await manager["p"].start_tool("sin")
        assert (started.id, started.status, started.ended) == (None, "completed", True)
        assert (started.raw, started.ttl, started.message) == ({}, None, None)
        assert (await started.result()).text == "at once"
        await started.cancel()
        await started.refresh()
        assert [status async for status in started] == []


# -- what is asked ---------------------------------------------------------------------------


async def test_a_task_that_asks_is_asked_for_its_result_and_the_answer_belongs_to_it() -> None:
    people = People()
    async with tasker("handshake", on_elicit=people) as server:
        started = await server.start_tool("ask")
        assert (await started.result()).text == "hello Ada"
        # Asked for while the task still ran, once; that carried the question (LTSK-06).
        assert await count(server, "tasks/result") == 1
        [answer] = [one["result"] for one in await journal(server) if "result" in one]
        assert answer["content"] == {"name": "Ada"}
        assert answer["_meta"] == {RELATED: {"taskId": started.id}}  # LTSK-08
        for message in await journal(server):
            if str(message.get("method")).startswith("tasks/"):
                assert message["params"] == {"taskId": started.id}


async def test_a_request_with_a_task_member_is_answered_as_any_other() -> None:
    people = People()
    async with Manager({"s": spec("asks_roots")}, roots=["/tmp"], on_elicit=people) as manager:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}}
        params = {"message": "?", "requestedSchema": schema, "task": {"ttl": 1000}}
        ask = {"method": "elicitation/create", "params": params}
        reply = json.loads((await manager["s"].invoke_tool("ask", ask)).text)
        # We declare no tasks of our own (LTSK-11), so the member means nothing (LTSK-12).
        assert reply["result"] == {"action": "accept", "content": {"name": "Ada"}}


async def test_we_offer_no_tasks_ourselves(tmp_path: Path) -> None:
    one = spec("tasks_handshake", era="handshake")
    async with Manager({"s": copied(tmp_path / "sent", one)}, extensions=ON) as manager:
        await manager["s"].wait_ready()
    # Neither tasks (LTSK-11) nor the extension (TSK-27).
    assert sent(tmp_path / "sent")[0]["params"]["capabilities"] == {}


async def test_a_host_that_wants_to_answer_by_itself_may(tmp_path: Path) -> None:
    async with tasker("handshake") as server:
        started = await server.start_tool("ask")
        while (await started.refresh()).status != "input_required":
            await anyio.sleep(0.01)
        assert started.message == "wants a name"
        assert await count(server, "tasks/result") == 0, "nobody waits for it"


# -- asking about it -------------------------------------------------------------------------


async def test_the_server_is_asked_as_often_as_it_likes() -> None:
    async with tasker("handshake", "--poll", 400) as server:
        await server.list_tools()
        begun = time.monotonic()
        await server.invoke_tool("must", {"text": "a", "seconds": 0.1})
        most = (time.monotonic() - begun) / 0.4
        assert 1 <= await count(server, "tasks/get") <= most
    async with tasker("handshake", "--poll", 30) as server:
        await server.list_tools()
        begun = time.monotonic()
        await server.invoke_tool("must", {"text": "a", "seconds": 1.0})
        most = (time.monotonic() - begun) / 0.03
        assert 2 <= await count(server, "tasks/get") <= most


async def test_one_that_does_not_say_how_often_is_asked_ever_more_slowly() -> None:
    async with tasker("handshake", "--poll", 0) as server:
        started = await server.start_tool("must", {"text": "a", "seconds": 0.5})
        assert started.poll_interval is None
        assert (await started.result()).text == "a"
        assert 2 <= await count(server, "tasks/get") <= 4


async def test_news_are_a_hint_to_ask_at_once_and_not_needed() -> None:
    async with tasker("handshake", "--poll", 60_000, "--notices") as server:
        told: list[Any] = []
        started = await server.start_tool("must", {"text": "a", "seconds": 0.1})
        with anyio.fail_after(5):
            assert (await started.result()).text == "a"
        assert await count(server, "tasks/get") == 1
        assert told == []


async def test_news_reach_who_handles_them_as_well() -> None:
    told: list[Any] = []
    async with Manager({"s": spec("tasks_handshake", "--notices")}) as manager:
        manager.on_notification("notifications/tasks/status", lambda server, it: told.append(it))
        started = await manager["s"].start_tool("must")
        await started.result()
        await eventually(lambda: told)
        assert (told[0]["taskId"], told[0]["status"]) == (started.id, "completed")


@pytest.mark.parametrize("odd", [{}, {"taskId": 1}, {"taskId": ["t"]}, {"taskId": "unknown"}])
async def test_odd_news_mean_nothing(odd: dict[str, Any]) -> None:
    async with Manager({"p": puppet()}) as manager:
        server = manager["p"]
        for method in ("notifications/tasks/status", "notifications/tasks"):
            await server.notify("puppet/say", {"method": method, "params": odd})
        assert (await server.call_tool("echo", {"text": "well"})).text == "well"


# -- the frames ------------------------------------------------------------------------------


@needs_spec
async def test_all_that_is_sent_about_tasks_is_as_the_schema_says(tmp_path: Path) -> None:
    one = copied(tmp_path / "sent", spec("tasks_handshake", era=OLD))
    async with Manager({"s": one}, on_elicit=People()) as manager:
        server = manager["s"]
        await server.invoke_tool("must", on_progress=lambda *facts: None)
        await server.invoke_tool("ask")
        started = await server.start_tool("never", ttl=10)
        await started.refresh()
        await started.cancel()
        await server.list_operations()
    methods = {check_sent(OLD, message) for message in sent(tmp_path / "sent")}
    assert methods >= {"tasks/get", "tasks/result", "tasks/cancel", "tasks/list", "answer"}
    assert TASKS not in (tmp_path / "sent").read_text()
