"""The kit's fixture servers, driven by the client: in memory and over stdio, in both eras."""

from __future__ import annotations

import importlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcpclient import Manager, ReplyError, ToolError
from mcpclient.manager.server import Server as Client
from mcpclient.serverkit import Peer, Server
from mcpclient.testing import connect, in_memory
from tests.conftest import SERVERS, spec
from tests.serverkit.talking import STATELESS, TASKS, Talk, content

if str(SERVERS) not in sys.path:
    sys.path.append(str(SERVERS))

ERAS = ("handshake", "stateless")
WAYS = ("memory", "stdio")


def made(name: str) -> Server:
    """Return a fixture server, in this process."""
    server = importlib.import_module(name).make_server()
    assert isinstance(server, Server)
    return server


def answer_form(server: Any, params: Any) -> dict[str, Any]:
    """Fill a form in: a name in each text, true in each flag, and the first of each choice."""
    if params.get("mode") == "url":
        return {"action": "accept"}
    found: dict[str, Any] = {}
    for name, field in params["requestedSchema"]["properties"].items():
        if field["type"] == "boolean":
            found[name] = True
        elif field["type"] == "string" and not {"enum", "oneOf", "format"} & set(field):
            found[name] = "Ada"
    return {"action": "accept", "content": found}


def answer_model(server: Any, params: Any) -> dict[str, Any]:
    """Say the prompt again."""
    said = params["messages"][0]["content"]["text"]
    return {"role": "assistant", "content": {"type": "text", "text": f"<{said}>"}, "model": "m"}


@asynccontextmanager
async def driven(name: str, way: str, era: str, **options: Any) -> AsyncIterator[Client]:
    """Run a fixture server and give the client's handle of it."""
    answers: dict[str, Any] = {
        "roots": ["/work"],
        "on_elicit": answer_form,
        "on_sample": answer_model,
        "extensions": {TASKS: {}},
        **options,
    }
    if way == "memory":
        server = made(name)
        async with connect(server, era=era, **answers) as client:
            yield client
        server.close()
    else:
        async with connect(spec(name, era=era), **answers) as client:
            yield client


@pytest.fixture(params=ERAS)
def era(request: pytest.FixtureRequest) -> str:
    """Each era."""
    return str(request.param)


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """Each way to the server."""
    return str(request.param)


@pytest.mark.parametrize("name", ["components", "prompts", "everything"])
def test_every_schema_of_a_fixture_server_can_be_made(name: str) -> None:
    made(name).check()


# -- everything ----------------------------------------------------------------------------


async def test_everything_is_driven_by_the_client(way: str, era: str) -> None:
    async with driven("everything", way, era) as client:
        assert client.era == era
        assert client.info["name"] == "everything"
        assert client.instructions == "A fixture server; all its tools are harmless."
        names = [tool.name for tool in await client.list_tools()]
        assert names == sorted(names)
        assert len(names) == 48

        assert (await client.invoke_tool("echo", {"text": "häß"})).text == "häß"
        assert (await client.invoke_tool("add", {"a": 1, "b": 2})).structured == {"sum": 3}
        with pytest.raises(ToolError, match="it failed\nit failed, and here is why"):
            await client.invoke_tool("fail")
        with pytest.raises(ToolError, match="a crash"):
            await client.invoke_tool("crash")
        with pytest.raises(ToolError, match=r"arguments\.a: Expected `float`, got `str`"):
            await client.invoke_tool("add", {"a": "x", "b": 1})
        with pytest.raises(ReplyError, match="Tool not found: nope"):
            await client.invoke_tool("nope")
        kinds = await client.invoke_tool("kinds")
        assert [block["type"] for block in kinds.raw["content"]] == [
            *("text", "image", "audio", "resource_link", "resource", "resource")
        ]

        told: list[Any] = []
        result = await client.invoke_tool(
            "slow", {"seconds": 0.2}, on_progress=lambda *one: told.append(one)
        )
        assert result.text == "waited 0.2"
        assert told == [(0, 2, "step 0 of 2"), (1, 2, "step 1 of 2")]


async def test_everything_asks_and_the_client_answers(way: str, era: str) -> None:
    expected = {
        "test_sampling": "LLM response: <p>",
        "test_elicitation": 'User response: action=accept, content={"username": "Ada", '
        '"email": "Ada"}',
        "test_elicitation_sep1330_enums": "Elicitation completed: action=accept, content={}",
        "visit_page": "the person said accept",
        "list_roots": '["file:///work"]',
        "test_input_required_result_elicitation": "Hello, Ada!",
        "test_input_required_result_sampling": "<What is the capital of France?>",
        "test_input_required_result_list_roots": "Roots: file:///work",
        "test_input_required_result_request_state": "state-ok",
        "test_input_required_result_multiple_inputs": "<Generate a greeting> Ada, 1 roots",
        "test_input_required_result_multi_round": "Ada likes Ada",
        "test_input_required_result_capabilities": "answered: model, person, roots",
    }
    async with driven("everything", way, era) as client:
        for tool, text in expected.items():
            arguments = {"prompt": "p", "message": "m"}
            assert (await client.invoke_tool(tool, arguments)).text == text
        prompt = await client.get_prompt("test_input_required_result_prompt")
        assert prompt.text == "Use this context: Ada"


async def test_everything_wants_a_page_visited_first() -> None:
    async with Talk(made("everything")) as talk:
        error = await talk.error("tools/call", {"name": "link_account"})
        assert error["code"] == -32042
        [page] = error["data"]["elicitations"]
        assert (page["mode"], page["elicitationId"]) == ("url", "link-1")
        assert await talk.text("link_account") == "linked"
        assert talk.notices("notifications/elicitation/complete") == [{"elicitationId": "link-1"}]
    accept = {"action": "accept"}
    async with Talk(made("everything"), STATELESS, answers=lambda *_: accept) as talk:
        assert await talk.text("link_account") == "the person said accept"


async def test_everything_runs_tasks(way: str, era: str) -> None:
    async with driven("everything", way, era) as client:
        for tool, arguments, text in (
            ("slow_compute", {"seconds": 0.1, "label": "x"}, "computed x in 0.1 s"),
            ("confirm_delete", {}, "some.txt would be gone"),
            ("multi_input", {}, "Ada Ada"),
            ("test_tool_with_task", {}, "done for Ada"),
        ):
            assert (await client.invoke_tool(tool, arguments)).text == text
        with pytest.raises(ReplyError, match="the job broke"):
            await (await client.start_tool("protocol_error_job")).result()
        operation = await client.start_tool("slow_compute", {"seconds": 3600})
        await operation.cancel()
        assert (await client.invoke_tool("greet", {"name": "Ada"})).text == "Hello, Ada!"


async def test_everything_has_resources_that_change(way: str, era: str) -> None:
    async with driven("everything", way, era) as client:
        assert (await client.read_resource("everything://motd")).text == "Everything in its place."
        [part] = (await client.read_resource("everything://bytes")).contents
        assert part.decode() == bytes(range(256))
        assert (await client.read_resource("everything://greeting/A%20B")).text == "Hello, A B!"
        async with client.subscribe("everything://counter") as updates:
            first = (await client.read_resource("everything://counter")).text
            await client.invoke_tool("update")
            update = await anext(aiter(updates))
            assert update["uri"] == "everything://counter"
            assert (await client.read_resource("everything://counter")).text == str(int(first) + 1)
        with pytest.raises(ReplyError, match="Resource not found: no://where"):
            await client.read_resource("no://where")
        found = await client.complete("test_prompt_with_arguments", "arg1", "pa")
        assert found.values == ["paris", "park", "party"]


async def test_everything_tells_of_lists_that_change(way: str, era: str) -> None:
    server = made("everything")
    entry = in_memory(server, era=era) if way == "memory" else spec("everything", era=era)
    changed: list[str] = []
    async with Manager({"everything": entry}) as manager:
        client = manager["everything"]
        method = "notifications/tools/list_changed"
        manager.on_notification(method, lambda server, params: changed.append(server.name))
        before = {tool.name for tool in await client.list_tools()}
        # Listening begins some time after the handler is there; what was before is not told.
        with anyio.fail_after(20):
            while not changed:
                await client.invoke_tool("test_trigger_tool_change")
                await anyio.sleep(0.01)
        await client.invoke_tool("test_trigger_prompt_change")
        after = {prompt.name for prompt in await client.list_prompts()}
    assert "test_dynamic_tool" not in before
    assert "test_dynamic_prompt" in after
    assert set(changed) == {"everything"}


async def test_everything_comes_in_pages(era: str) -> None:
    async with connect(spec("everything", "--page", 5, era=era)) as client:
        assert len(await client.list_tools()) == 48
        page = await client.request("tools/list", {})
        assert len(page["tools"]) == 5


# -- prompts -------------------------------------------------------------------------------


async def test_prompts_of_both_generations_are_driven_by_the_client(way: str, era: str) -> None:
    async with driven("prompts", way, era) as client:
        listed = {prompt.name: prompt for prompt in await client.list_prompts()}
        assert sorted(listed) == ["code_review", "counted", "history", "refusing", "summary"]
        review = listed["code_review"]
        assert (review.title, review.description) == (
            "Code review",
            "Generate a code review prompt.",
        )
        assert review.arguments is not None
        assert [(one.name, one.required) for one in review.arguments] == [
            ("language", True),
            ("code", True),
            ("focus_areas", False),
        ]
        first = await client.get_prompt("summary", {"text": "words"})
        assert first.text == "Sum this up in 50 words: words"
        again = await client.get_prompt("counted", {"times": "3"})
        assert again.text == "again again again"
        with pytest.raises(ReplyError, match="this prompt is not for you"):
            await client.get_prompt("refusing")


async def test_the_code_review_prompt_has_general_quality_by_default(way: str, era: str) -> None:
    async with driven("prompts", way, era) as client:
        given = {"language": "python", "code": "x = 1"}
        found = await client.get_prompt("code_review", given)
        assert found.description == "Review of python code"
        assert [message.role for message in found.messages] == ["user", "assistant", "user"]
        assert found.text == (
            "Review this python code with a focus on general quality.\n"
            "Show me the code.\n"
            "```python\nx = 1\n```"
        )
        found = await client.get_prompt("code_review", {**given, "focus_areas": "speed"})
        assert found.text.startswith("Review this python code with a focus on speed.")


async def test_the_last_prompt_is_remembered_where_there_is_a_session(way: str, era: str) -> None:
    async with driven("prompts", way, era) as client:
        await client.get_prompt("summary", {"text": "words"})
        found = await client.get_prompt("history")
        last = "summary" if era == "handshake" else "none"
        assert found.text.endswith(f"The last prompt was: {last}.")


async def test_a_missing_argument_is_refused_by_the_server() -> None:
    async with Talk(made("prompts")) as talk:
        params = {"name": "code_review", "arguments": {"language": "c"}}
        error = await talk.error("prompts/get", params)
        assert error["code"] == -32602


# -- components ----------------------------------------------------------------------------


async def test_components_are_driven_by_the_client(way: str, era: str) -> None:
    async with driven("components", way, era) as client:
        tools = {tool.name: tool for tool in await client.list_tools()}
        assert tools["weather_report"].title == "The weather"
        assert tools["renamed"].description == "A description by hand."
        found = await client.invoke_tool("weather_report", {"city": "Rome"})
        assert found.structured == {"city": "Rome", "celsius": 21.5}
        for kind, text in (
            ("text", "plain words"),
            ("number", "1.5"),
            ("boolean", "true"),
            ("mapping", '{"a":1}'),
            ("list", "[1,2]"),
            ("nothing", ""),
        ):
            assert (await client.invoke_tool("value", {"kind": kind})).text == text
        with pytest.raises(ToolError, match="no such kind: colour"):
            await client.invoke_tool("value", {"kind": "colour"})
        with pytest.raises(
            ToolError, match="the server's fault: structuredContent: Object missing"
        ):
            await client.invoke_tool("liar")
        typed = await client.invoke_tool("typed", {"text": "a", "number": 2, "more": 1})
        assert typed.structured == {
            "text": "a",
            "number": 2.0,
            "whole": 1,
            "percent": 50,
            "flag": False,
        }
        with pytest.raises(ToolError, match=r"arguments\.percent: Expected `int` <= 100"):
            await client.invoke_tool("typed", {"text": "a", "number": 2, "percent": 101})
        with pytest.raises(ToolError, match="first\nsecond"):
            await client.invoke_tool("break_down", {"how": "fail"})
        with pytest.raises(ReplyError, match="refused"):
            await client.invoke_tool("break_down", {"how": "refuse"})
        with pytest.raises(ToolError, match="broke by crash"):
            await client.invoke_tool("break_down")


async def test_resources_of_components_are_read_by_the_client(way: str, era: str) -> None:
    async with driven("components", way, era) as client:
        assert (await client.read_resource("data://config")).text == '{"debug":false}'
        assert (await client.read_resource("data://pixel")).contents[0].decode() == b"\x89PNG"
        assert len((await client.read_resource("data://both")).contents) == 2
        assert (await client.read_resource("notes://first")).text == "# One"
        assert (await client.read_resource("notes://sec%20ond")).text == "# Two"
        assert (await client.read_resource("notes://third")).text == "other notes of third"
        assert (await client.read_resource("file:///a/b")).text == "contents of a/b"
        with pytest.raises(ReplyError, match="Resource not found"):
            await client.read_resource("notes://nothing")
        found = await client.complete(
            {"type": "ref/resource", "uri": "notes://{name}"}, "name", "s"
        )
        assert (found.values, found.total) == (["sec ond"], 1)
        manual = await client.get_prompt("manual", {"component": "first"})
        assert [message.role for message in manual.messages] == ["user", "assistant"]
        assert await client.request("components/intercepted", {"a": 1}) is not None
        assert (await client.request("components/list"))["era"] == era


async def test_a_session_of_components_remembers_and_has_a_guest(way: str) -> None:
    async with driven("components", way, "handshake") as client:
        found = await client.invoke_tool("remember", {"key": "a", "value": "1"})
        assert found.structured["a"] == "1"
        found = await client.invoke_tool("remember", {"key": "b", "value": "2"})
        assert (found.structured["a"], found.structured["first"]) == ("1", "a")
        assert found.structured["greeted"] == "mcpclient"
        assert (await client.invoke_tool("invite")).text == "added: guest"
        assert (await client.invoke_tool("guest")).text == "a guest says hello"
        assert (await client.invoke_tool("invite", {"away": True})).text == "gone: True"
        with pytest.raises(ReplyError, match="Tool not found: guest"):
            await client.invoke_tool("guest")
        await client.invoke_tool("pages", {"size": 2})
        assert len(await client.list_tools(cache="bypass")) == 12
        saved = (await client.invoke_tool("snapshot")).structured
        assert (saved["page_size"], saved["version"]) == (2, "2025-11-25")


async def test_what_needs_a_scope_is_told_to_those_who_have_it() -> None:
    kit = made("components")
    async with Talk(kit) as talk:
        poor, rich = (
            Peer(scopes=frozenset()),
            Peer(subject="ada", scopes=frozenset({"secrets:read"})),
        )
        error = await talk.error("tools/call", {"name": "secret"}, peer=poor)
        assert error["code"] == -32010
        found = await talk.result("tools/call", {"name": "secret"}, peer=rich)
        assert content(found) == ["told to ada"]


async def test_an_event_of_the_application_reaches_the_sessions() -> None:
    async with Talk(made("components")) as talk:
        assert await talk.text("announce", event="rain") == "announced rain"
        assert talk.notices("notifications/message") == [
            {"level": "notice", "logger": "application", "data": {"event": "rain"}}
        ]
        assert await talk.session.call("hello") == {"asked": "hello", "greeted": "talk"}
