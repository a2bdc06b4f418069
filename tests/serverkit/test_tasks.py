"""Tools that run as tasks: of 2025-11-25, and of the extension."""

from __future__ import annotations

import re
from typing import Any

import anyio
import pytest

from mcpclient.serverkit import (
    Frame,
    KitLimits,
    Peer,
    RpcError,
    Schema,
    Server,
    TaskOptions,
    Tool,
    ToolFailure,
    asks,
)
from tests.conftest import eventually
from tests.serverkit.talking import ERAS, HANDSHAKE, STATELESS, TASKS, Talk, content, opening

RELATED = "io.modelcontextprotocol/related-task"


class Name(Schema):
    """A form."""

    name: str


class Prepared(Tool):
    """Asks before there is a task."""

    task_support = "required"

    async def prepare(self, args: Any, frame: Frame) -> str:
        return str((await frame.elicit("Name?", Name, key="n")).content.name)

    async def run(self, args: Any, frame: Frame) -> str:
        return f"prepared {frame.prepared}"


def server(**options: Any) -> Server:
    """Return a server whose tools run as tasks."""
    options.setdefault("tasks", TaskOptions(list=True, poll=0.01))
    server = Server("a", "1", components=[Prepared], **options)

    @server.tool(task_support="optional")
    async def may(text: str = "done", fail: str = "") -> str:
        if fail == "tool":
            raise ToolFailure("it failed")
        if fail == "protocol":
            raise RpcError(-32050, "broken", {"a": 1})
        return text

    @server.tool(task_support="required")
    async def must() -> str:
        return "had to"

    @server.tool
    async def never() -> str:
        return "at once"

    @server.tool(task_support="optional")
    async def waits(frame: Frame) -> str:
        frame.progress(1, 2)
        frame.log("info", "waiting")
        await anyio.sleep(3600)
        return "never"

    @server.tool(task_support="optional")
    async def asking(frame: Frame) -> str:
        found = await frame.ask_all(a=asks.elicit("A?", Name), b=asks.elicit("B?", Name))
        return f"{found['a'].content.name} {found['b'].content.name}"

    return server


def accepted(*_: Any) -> dict[str, Any]:
    """Answer a form."""
    return {"action": "accept", "content": {"name": "Ada"}}


async def begun(talk: Talk, name: str, **arguments: Any) -> dict[str, Any]:
    """Begin a task and return what is told of it."""
    params: dict[str, Any] = {"name": name, "arguments": arguments}
    if talk.version == HANDSHAKE:
        found = (await talk.result("tools/call", {**params, "task": {}}))["task"]
    else:
        found = await talk.result("tools/call", params)
        assert found["resultType"] == "task"
    assert isinstance(found, dict)
    return found


async def becomes(talk: Talk, id: str, *statuses: str) -> dict[str, Any]:
    """Ask for a task until it has one of some statuses."""
    with anyio.fail_after(10):
        while True:
            found = await talk.result("tasks/get", {"taskId": id})
            if found["status"] in statuses:
                return found
            await anyio.sleep(0.005)


# -- the policy ----------------------------------------------------------------------------


async def test_the_client_says_which_call_becomes_a_task_as_far_as_the_tool_allows() -> None:
    async with Talk(server()) as talk:
        for name, task, code in (
            ("never", {}, -32601),
            ("must", None, -32601),
        ):
            given = {"task": task} if task is not None else {}
            error = await talk.error("tools/call", {"name": name, **given})
            assert error["code"] == code
        assert content(await talk.call("may")) == ["done"]
        assert content(await talk.call("never")) == ["at once"]
        assert (await begun(talk, "may"))["status"] == "working"
        assert (await begun(talk, "must"))["status"] == "working"


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18"])
async def test_before_2025_11_25_there_are_no_tasks(version: str) -> None:
    async with Talk(server(), version) as talk:
        assert content(await talk.result("tools/call", {"name": "may", "task": {}})) == ["done"]
        assert (await talk.error("tools/call", {"name": "must"}))["code"] == -32601


async def test_with_the_extension_the_server_decides_for_clients_that_can() -> None:
    kit = server()
    async with Talk(kit, STATELESS, tasks=True) as talk:
        assert (await begun(talk, "may"))["status"] == "working"
        # What the other era's clients say means nothing.
        found = await talk.result("tools/call", {"name": "never", "task": {"ttl": 5}})
        assert content(found) == ["at once"]
    async with Talk(kit, STATELESS) as talk:
        assert content(await talk.call("may")) == ["done"]
        error = await talk.error("tools/call", {"name": "must"})
        assert (error["code"], error["data"]) == (
            -32021,
            {"requiredCapabilities": {"extensions": {TASKS: {}}}},
        )
        for method in ("tasks/get", "tasks/update", "tasks/cancel"):
            params = {"taskId": "x", "inputResponses": {}}
            assert (await talk.error(method, params))["code"] == -32021


async def test_tasks_are_declared_if_a_tool_may_be_one() -> None:
    state = Server("a", "1").open().state
    assert "tasks" not in Server("a", "1").capabilities(state)
    found = server().capabilities(state)["tasks"]
    assert found == {"requests": {"tools": {"call": {}}}, "list": {}, "cancel": {}}
    usual = server(tasks=TaskOptions()).capabilities(state)["tasks"]
    assert usual == {"requests": {"tools": {"call": {}}}, "cancel": {}}
    async with Talk(server(), STATELESS) as talk:
        declared = (await talk.result("server/discover"))["capabilities"]
        assert declared["extensions"] == {TASKS: {}}
        assert "tasks" not in declared
    async with Talk(server(), "2025-06-18") as talk:
        again = Talk(talk.server, "2025-06-18")
        declared = (await again.result("initialize", opening("2025-06-18")))["capabilities"]
        assert "tasks" not in declared


# -- how it is, and what came of it --------------------------------------------------------


@pytest.mark.parametrize("version", ERAS)
async def test_a_task_is_told_with_its_times(version: str) -> None:
    async with Talk(server(), version, tasks=True) as talk:
        task = await begun(talk, "waits")
        assert len(task["taskId"]) >= 20
        for moment in ("createdAt", "lastUpdatedAt"):
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", task[moment])
        ttl, poll = ("ttl", "pollInterval") if version == HANDSHAKE else ("ttlMs", "pollIntervalMs")
        assert (task[ttl], task[poll]) == (300_000, 10)
        assert (await talk.result("tasks/get", {"taskId": task["taskId"]}))["status"] == "working"
        talk.server.close()


@pytest.mark.parametrize(
    ("wish", "kept"),
    [(60_000, 60_000), (1, 1000), (10**12, 3_600_000), ("x", 300_000), (None, 300_000)],
)
async def test_the_time_to_live_is_from_a_second_to_an_hour(wish: Any, kept: int) -> None:
    async with Talk(server()) as talk:
        params = {"name": "may", "task": {"ttl": wish} if wish is not None else {}}
        line = talk.server.handle(
            {"jsonrpc": "2.0", "id": 50, "method": "tools/call", "params": params}, talk.session
        )
        found = await line
        assert found is not None
        assert found["result"]["task"]["ttl"] == kept
        talk.server.close()


async def test_the_result_of_2025_11_25_is_waited_for_and_names_its_task() -> None:
    async with Talk(server()) as talk:
        id = (await begun(talk, "may", text="words"))["taskId"]
        found = await talk.result("tasks/result", {"taskId": id})
        assert found == {
            "content": [{"type": "text", "text": "words"}],
            "_meta": {RELATED: {"taskId": id}},
        }
        assert (await talk.result("tasks/get", {"taskId": id}))["status"] == "completed"


async def test_a_failed_task_of_2025_11_25_says_so_and_gives_its_outcome() -> None:
    async with Talk(server()) as talk:
        id = (await begun(talk, "may", fail="tool"))["taskId"]
        found = await talk.result("tasks/result", {"taskId": id})
        assert (found["isError"], content(found)) == (True, ["it failed"])
        assert (await talk.result("tasks/get", {"taskId": id}))["status"] == "failed"
        id = (await begun(talk, "may", fail="protocol"))["taskId"]
        error = await talk.error("tasks/result", {"taskId": id})
        assert error == {"code": -32050, "message": "broken", "data": {"a": 1}}


async def test_the_outcome_of_the_extension_comes_with_the_status() -> None:
    async with Talk(server(), STATELESS, tasks=True) as talk:
        done = await becomes(talk, (await begun(talk, "may"))["taskId"], "completed")
        assert content(done["result"]) == ["done"]
        assert "_meta" not in done["result"]
        # What the tool itself says went wrong is an outcome like others.
        done = await becomes(talk, (await begun(talk, "may", fail="tool"))["taskId"], "completed")
        assert done["result"]["isError"] is True
        done = await becomes(talk, (await begun(talk, "may", fail="protocol"))["taskId"], "failed")
        assert done["error"] == {"code": -32050, "message": "broken", "data": {"a": 1}}
        assert "result" not in done
        assert "requestState" not in done


async def test_a_tool_that_breaks_in_a_task_is_its_result() -> None:
    kit = server()

    @kit.tool(task_support="required")
    async def breaks() -> None:
        raise KeyError("gone")

    async with Talk(kit, STATELESS, tasks=True) as talk:
        done = await becomes(talk, (await begun(talk, "breaks"))["taskId"], "completed")
        assert (done["result"]["isError"], content(done["result"])) == (True, ["'gone'"])


@pytest.mark.parametrize("version", ERAS)
async def test_a_task_is_cancelled_by_its_own_method(version: str) -> None:
    async with Talk(server(), version, tasks=True) as talk:
        id = (await begun(talk, "waits"))["taskId"]
        found = await talk.result("tasks/cancel", {"taskId": id})
        # An acknowledgement, in the extension.
        assert ("status" in found) is (version == HANDSHAKE)
        told = await becomes(talk, id, "cancelled")
        assert told["statusMessage"] == "the client cancelled it"
        if version == HANDSHAKE:
            error = await talk.error("tasks/cancel", {"taskId": id})
            assert error == {"code": -32602, "message": "the task is over: cancelled"}
            error = await talk.error("tasks/result", {"taskId": id})
            assert error["code"] == -32602
        else:
            assert "status" not in await talk.result("tasks/cancel", {"taskId": id})


async def test_cancelling_can_be_left_undeclared() -> None:
    async with Talk(server(tasks=TaskOptions(cancel=False))) as talk:
        id = (await begun(talk, "waits"))["taskId"]
        assert (await talk.error("tasks/cancel", {"taskId": id}))["code"] == -32601
        assert (await talk.error("tasks/list"))["code"] == -32601
        talk.server.close()


@pytest.mark.parametrize("version", ERAS)
async def test_an_unknown_task_is_invalid_params(version: str) -> None:
    async with Talk(server(), version, tasks=True) as talk:
        for method in ("tasks/get", "tasks/cancel"):
            error = await talk.error(method, {"taskId": "nope"})
            assert error["code"] == -32602
            assert (await talk.error(method))["code"] == -32602


async def test_tasks_are_listed_in_pages_and_only_ones_own() -> None:
    kit = server(page_size=2)
    async with Talk(kit) as talk, Talk(kit) as other:
        ids = [(await begun(talk, "may"))["taskId"] for _ in range(3)]
        one = await talk.result("tasks/list")
        two = await talk.result("tasks/list", {"cursor": one["nextCursor"]})
        assert [task["taskId"] for task in one["tasks"] + two["tasks"]] == sorted(ids)
        assert "nextCursor" not in two
        assert (await other.result("tasks/list"))["tasks"] == []
        assert (await other.error("tasks/get", {"taskId": ids[0]}))["code"] == -32602


async def test_a_task_is_its_subjects_whatever_the_session() -> None:
    kit = server()
    ada, bob = Peer(subject="ada"), Peer(subject="bob")
    async with Talk(kit, peer=ada) as one, Talk(kit, peer=ada) as two, Talk(kit, peer=bob) as three:
        id = (await begun(one, "may"))["taskId"]
        assert (await two.result("tasks/get", {"taskId": id}))["taskId"] == id
        assert (await three.error("tasks/get", {"taskId": id}))["code"] == -32602


async def test_tasks_are_bounded() -> None:
    async with Talk(server(limits=KitLimits(tasks=1))) as talk:
        await begun(talk, "waits")
        error = await talk.error("tools/call", {"name": "waits", "task": {}})
        assert error == {"code": -32000, "message": "more than 1 tasks at once"}


async def test_a_task_ends_with_its_time_to_live() -> None:
    async with Talk(server()) as talk:
        params = {"name": "waits", "task": {"ttl": 1}}
        id = (await talk.result("tools/call", params))["task"]["taskId"]
        with anyio.fail_after(10):
            error = await talk.error("tasks/result", {"taskId": id})
        assert error["message"] == "the task has no result: its time to live is over"


async def test_a_task_is_kept_as_long_as_its_time_to_live_and_no_longer() -> None:
    now = [1_000_000.0]
    async with Talk(server(clock=lambda: now[0]), tasks=True) as talk:
        id = (await begun(talk, "may"))["taskId"]
        await talk.result("tasks/result", {"taskId": id})
        now[0] += 300
        assert (await talk.result("tasks/get", {"taskId": id}))["status"] == "completed"
        now[0] += 1
        assert (await talk.error("tasks/get", {"taskId": id}))["code"] == -32602


async def test_a_session_that_ends_takes_its_tasks_along() -> None:
    kit = server()
    async with Talk(kit) as talk:
        await begun(talk, "waits")
        [task] = kit.task_table
    assert (task.status, task.message) == ("cancelled", "the session is over")
    assert list(kit.task_table) == []


# -- notices -------------------------------------------------------------------------------


async def test_each_status_is_told_to_the_session() -> None:
    async with Talk(server()) as talk:
        id = (await begun(talk, "may"))["taskId"]
        await talk.result("tasks/result", {"taskId": id})
        told = talk.notices("notifications/tasks/status")
        assert [(one["taskId"], one["status"]) for one in told] == [(id, "completed")]


async def test_each_status_is_told_to_who_listens_to_the_task() -> None:
    kit = server()
    async with Talk(kit, STATELESS, tasks=True) as talk:
        task = await begun(talk, "asking")
        wanted = {"notifications": {"taskIds": [task["taskId"], "of somebody else"]}}
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: talk.request("subscriptions/listen", wanted))
            await eventually(lambda: talk.sent)
            acknowledged = talk.sent[0]["params"]["notifications"]
            assert acknowledged == {"taskIds": [task["taskId"]]}
            answers = {"a": accepted(), "b": accepted()}
            params = {"taskId": task["taskId"], "inputResponses": answers}
            await talk.result("tasks/update", params)
            await eventually(lambda: talk.notices("notifications/tasks")[-1:])
            await becomes(talk, task["taskId"], "completed")
            kit.close()
        last = talk.notices("notifications/tasks")[-1]
        assert (last["status"], content(last["result"])) == ("completed", ["Ada Ada"])


async def test_a_task_of_2025_11_25_tells_its_progress_and_one_of_the_extension_nothing() -> None:
    told = {"progressToken": 5, "progress": 1, "total": 2}
    for version, progress in ((HANDSHAKE, [told]), (STATELESS, [])):
        async with Talk(server(), version, tasks=True) as talk:
            params: dict[str, Any] = {"name": "waits", "task": {}}
            level = {"io.modelcontextprotocol/logLevel": "debug"} if version == STATELESS else {}
            await talk.result("tools/call", params, meta={"progressToken": 5, **level})
            await anyio.wait_all_tasks_blocked()
            assert talk.notices("notifications/progress") == progress
            assert bool(talk.notices("notifications/message")) is (version == HANDSHAKE)
            talk.server.close()


# -- questions -----------------------------------------------------------------------------


async def test_a_task_of_2025_11_25_asks_those_who_wait_for_its_result() -> None:
    async with Talk(server(), answers=accepted) as talk:
        id = (await begun(talk, "asking"))["taskId"]
        assert (await becomes(talk, id, "input_required"))["status"] == "input_required"
        assert talk.asked == []
        found = await talk.result("tasks/result", {"taskId": id})
        assert content(found) == ["Ada Ada"]
        assert [one["params"]["_meta"] for one in talk.asked] == [{RELATED: {"taskId": id}}] * 2
        told = [one["status"] for one in talk.notices("notifications/tasks/status")]
        assert told == ["input_required", "working", "completed"]


async def test_several_questions_of_a_task_wait_for_the_same_client() -> None:
    kit = server()

    @kit.tool(task_support="required")
    async def group(frame: Frame) -> str:
        found: list[str] = []

        async def one(key: str) -> None:
            found.append((await frame.elicit(f"{key}?", Name, key=key)).content.name)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "a")
            tasks.start_soon(one, "b")
        return " ".join(found)

    async with Talk(kit, answers=accepted) as talk:
        id = (await begun(talk, "group"))["taskId"]
        await becomes(talk, id, "input_required")
        with anyio.fail_after(10):
            assert content(await talk.result("tasks/result", {"taskId": id})) == ["Ada Ada"]


async def test_a_task_of_the_extension_says_what_it_asks_and_takes_answers_one_by_one() -> None:
    async with Talk(server(), STATELESS, tasks=True) as talk:
        id = (await begun(talk, "asking"))["taskId"]
        asked = await becomes(talk, id, "input_required")
        assert sorted(asked["inputRequests"]) == ["a", "b"]
        assert asked["inputRequests"]["a"]["method"] == "elicitation/create"
        update = {"taskId": id, "inputResponses": {"a": accepted(), "unknown": accepted()}}
        assert set(await talk.result("tasks/update", update)) == {"resultType", "_meta"}
        asked = await talk.result("tasks/get", {"taskId": id})
        assert (asked["status"], sorted(asked["inputRequests"])) == ("input_required", ["b"])
        await talk.result("tasks/update", {"taskId": id, "inputResponses": {"b": accepted()}})
        done = await becomes(talk, id, "completed")
        assert content(done["result"]) == ["Ada Ada"]
        assert (await talk.error("tasks/update", {"taskId": id}))["code"] == -32602


async def test_what_a_tool_prepares_is_asked_before_there_is_a_task() -> None:
    async with Talk(server(), STATELESS, tasks=True, answers=accepted) as talk:
        one = await talk.result("tools/call", {"name": "prepared"})
        assert one["resultType"] == "input_required"
        assert "taskId" not in one
        task = await talk.rounds("tools/call", {"name": "prepared"})
        assert task["resultType"] == "task"
        assert "requestState" not in task
        done = await becomes(talk, task["taskId"], "completed")
        assert content(done["result"]) == ["prepared Ada"]
    async with Talk(server(), answers=accepted) as talk:
        id = (await begun(talk, "prepared"))["taskId"]
        assert content(await talk.result("tasks/result", {"taskId": id})) == ["prepared Ada"]


async def test_a_client_that_cannot_be_asked_fails_the_task() -> None:
    async with Talk(server(), STATELESS, can={"sampling": {}}, tasks=True) as talk:
        done = await becomes(talk, (await begun(talk, "asking"))["taskId"], "failed")
        assert done["error"]["code"] == -32021
