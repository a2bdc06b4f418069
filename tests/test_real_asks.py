"""Servers that we did not write ask, stream and log: one of either era, by the same calls.

``everything`` speaks 2025-11-25; ``sdk_stateless.py`` of the fixtures runs on the official SDK and
speaks 2026-07-28. Their tools have the same names and arguments.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import InputRefused, Manager, Refuse, ReplyError, Server, ServerSpec, Timeouts
from tests.conftest import QUICK, SERVERS, eventually, real_servers
from tests.features.followers import heard

COMMANDS = real_servers()
RESOURCE = "demo://resource/dynamic/text/1"
MESSAGE = "notifications/message"
TOOLS_CHANGED = "notifications/tools/list_changed"


def specs() -> dict[str, ServerSpec]:
    """Return the servers that are set up; both, where there is Node.js."""
    found = {}
    if "everything" in COMMANDS:
        found["everything"] = COMMANDS["everything"]
    if "time" in COMMANDS:  # whose environment has the SDK
        found["sdk"] = [COMMANDS["time"][0], str(SERVERS / "sdk_stateless.py")]
    if not found:
        pytest.skip("no real server is set up: run `make setup`")
    # One of them does not always end at EOF.
    options: dict[str, Any] = {"timeouts": Timeouts(eof=0.5, term=2.0), "restart": QUICK}
    return {name: ServerSpec(argv[0], argv[1:], **options) for name, argv in found.items()}


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[Manager]:
    async with Manager(specs(), **options) as manager:
        yield manager


async def with_each(manager: Manager, check: Callable[[Server], Awaitable[None]]) -> None:
    """Check all servers at the same time."""
    async with anyio.create_task_group() as group:
        for name in manager:
            group.start_soon(check, manager[name])


def told(text: str) -> Any:
    """Return the JSON in which these servers repeat what they were answered."""
    return json.loads(text[text.index("{") :])


class Host:
    """Answers what is asked, and keeps it, for each server by itself."""

    def __init__(self) -> None:
        self.asked: dict[str, list[Any]] = {"everything": [], "sdk": []}
        self.person: dict[str, Any] = {}
        self.refuses = False

    async def sample(self, server: Server, params: Any) -> Any:
        if self.refuses:
            raise Refuse("not for you")
        self.asked[server.name].append(params)
        text = f"said to {params['messages'][0]['content']['text']!r}"
        return {
            "role": "assistant",
            "content": {"type": "text", "text": text},
            "model": "a model",
            "stopReason": "endTurn",
        }

    def elicit(self, server: Server, params: Any) -> Any:
        self.asked[server.name].append(params)
        return self.person[server.name]


# -- asks ----------------------------------------------------------------------------------


async def check_roots(server: Server, root: Path) -> None:
    assert root.as_uri() in (await server.invoke_tool("get-roots-list")).text


async def check_a_model(server: Server, host: Host) -> None:
    sampled = await server.invoke_tool("trigger-sampling-request", {"prompt": "say hi"})
    [asked] = host.asked[server.name]
    said = told(sampled.text)
    assert said["content"]["text"] == f"said to {asked['messages'][0]['content']['text']!r}"
    assert "say hi" in said["content"]["text"]
    assert (said["model"], said["role"]) == ("a model", "assistant")
    assert (asked["maxTokens"], asked["temperature"]) == (100, 0.7)


async def check_a_form(server: Server, host: Host) -> None:
    host.person[server.name] = {"action": "accept", "content": {"name": "Ada"}}
    elicited = await server.invoke_tool("trigger-elicitation-request")
    form = host.asked[server.name][-1]["requestedSchema"]
    answer = told(elicited.text[elicited.text.index("Raw result: ") :])
    defaults = {
        key: field["default"] for key, field in form["properties"].items() if "default" in field
    }
    assert {"firstLine", "integer", "number"} <= set(defaults)
    assert form["required"] == ["name"]
    # All that was left out and has a default, and nothing else (ELI-13).
    assert answer == {"action": "accept", "content": {"name": "Ada", **defaults}}
    for action in ("decline", "cancel"):
        host.person[server.name] = {"action": action, "content": {"name": "never sent"}}
        elicited = await server.invoke_tool("trigger-elicitation-request")
        assert told(elicited.text[elicited.text.index("Raw result: ") :]) == {"action": action}


async def check_a_page(server: Server, host: Host) -> None:
    host.person[server.name] = {"action": "accept", "content": {"secret": "never sent"}}
    page = {"url": "https://x.example/login?a=b#c"}
    visited = await server.invoke_tool("trigger-url-elicitation", page)
    asked = host.asked[server.name][-1]
    assert (asked["mode"], asked["url"]) == ("url", page["url"])
    assert told(visited.text[visited.text.index("Raw result: ") :]) == {"action": "accept"}


async def test_roots_a_model_and_a_person_answer_in_one_await_each(tmp_path: Path) -> None:
    host = Host()

    async def check(server: Server) -> None:
        await check_roots(server, tmp_path)
        await check_a_model(server, host)
        await check_a_form(server, host)
        await check_a_page(server, host)
        if server.name == "sdk":
            await check_a_read_and_a_prompt(server, host)
        else:
            await check_a_page_to_visit_first(server, host)

    handlers: dict[str, Any] = {"on_sample": host.sample, "on_elicit": host.elicit}
    async with running(roots=[tmp_path], **handlers) as manager:
        await with_each(manager, check)
        host.refuses = True
        await with_each(manager, check_a_refusal)
        for status in manager.status().servers:
            assert (status.noise, status.stray, status.ignored) == (0, 0, 0)
            assert (status.asks > 0) is (status.era == "handshake")


async def check_a_read_and_a_prompt(server: Server, host: Host) -> None:
    accepts = {"action": "accept", "content": {"colour": "red"}}
    host.person[server.name] = accepts
    asked = len(host.asked[server.name])
    for count in (1, 2):  # it is not kept
        assert told((await server.read_resource("demo://asking/colour")).text) == accepts
        assert len(host.asked[server.name]) == asked + count
    assert told((await server.get_prompt("asking")).text) == accepts
    assert host.asked[server.name][-1]["message"] == "Which colour?"
    host.person[server.name] = {"action": "accept", "content": {"colour": "blue"}}
    with pytest.raises(InputRefused, match="the answer does not fit the form"):
        await server.get_prompt("asking")


async def check_a_page_to_visit_first(server: Server, host: Host) -> None:
    host.person[server.name] = {"action": "accept"}
    arguments = {"url": "https://x.example/", "errorPath": True}
    visited = await server.invoke_tool("trigger-url-elicitation", arguments)
    # First by the error -32042, then, as the call goes through, by a request.
    assert [one["url"] for one in host.asked[server.name][-2:]] == [
        "https://modelcontextprotocol.io",
        "https://x.example/",
    ]
    assert "User completed the URL elicitation flow" in visited.text
    host.person[server.name] = {"action": "decline"}
    with pytest.raises(ReplyError) as caught:
        await server.invoke_tool("trigger-url-elicitation", arguments)
    assert caught.value.code == -32042


async def check_a_refusal(server: Server) -> None:
    """It fails the call and nothing else."""
    prompt = {"prompt": "x"}
    if server.era == "stateless":
        with pytest.raises(InputRefused, match="not for you"):
            await server.call_tool("trigger-sampling-request", prompt)
    else:
        failed = await server.call_tool("trigger-sampling-request", prompt)
        assert failed.is_error
        assert failed.text == "MCP error -1: not for you"
    assert len(await server.list_tools()) > 7


# -- without handlers, and what it tells ---------------------------------------------------


async def check_what_is_not_offered(server: Server) -> None:
    if server.name == "everything":  # it does not even list the tools that would ask
        tools = {tool.name for tool in await server.list_tools()}
        assert "trigger-sampling-request" not in tools
        return
    with pytest.raises(ReplyError) as caught:
        await server.invoke_tool("trigger-sampling-request", {"prompt": "x"})
    assert caught.value.code == -32021
    assert caught.value.data == {"requiredCapabilities": {"sampling": {}}}


async def check_progress(server: Server) -> None:
    got: list[Any] = []
    done = await server.invoke_tool(
        "trigger-long-running-operation",
        {"duration": 0.2, "steps": 4},
        on_progress=lambda *facts: got.append(facts),
    )
    assert got == [(step, 4, None) for step in (1, 2, 3, 4)]
    assert done.text.startswith("Long running operation completed.")


async def check_log_levels(server: Server, got: list[Any]) -> None:
    await server.set_log_level("critical")
    if server.name == "everything":
        # One of a random level at once, and then every five seconds; so only once.
        await server.invoke_tool("toggle-simulated-logging")
        await server.invoke_tool("toggle-simulated-logging")
        assert all(one["level"] in ("critical", "alert", "emergency") for one in got)
        await server.set_log_level("info")
        got.clear()
        await server.request("resources/subscribe", {"uri": RESOURCE})
        await eventually(lambda: got)
        assert got[0]["level"] == "info"
        assert f"Received Subscribe Resource request for URI: {RESOURCE}" in got[0]["data"]
    else:
        await server.invoke_tool("toggle-simulated-logging")
        await eventually(lambda: len(got) == 3)
        assert [one["level"] for one in got] == ["critical", "alert", "emergency"]
        await server.set_log_level(None)
        await server.invoke_tool("toggle-simulated-logging")
        assert len(got) == 3


async def check_kept_lists(server: Server, changed: list[str]) -> None:
    names = [tool.name for tool in await server.list_tools()]
    assert [tool.name for tool in await server.list_tools()] == names
    await server.invoke_tool("add-tool", {"name": "one-more"})
    await eventually(lambda: "sdk" in changed)
    assert [tool.name for tool in await server.list_tools()] == [*names, "one-more"]
    assert (await server.invoke_tool("one-more")).text == "one-more"
    for _ in range(2):
        assert [prompt.name for prompt in await server.list_prompts()] == ["asking"]


async def test_progress_log_levels_kept_lists_and_what_is_not_offered() -> None:
    got: dict[str, list[Any]] = {"everything": [], "sdk": []}
    changed: list[str] = []

    async def check(server: Server) -> None:
        await check_what_is_not_offered(server)
        await check_progress(server)
        await check_log_levels(server, got[server.name])
        if server.name == "sdk":
            await check_kept_lists(server, changed)

    async with running() as manager:
        manager.on_notification(MESSAGE, lambda server, params: got[server.name].append(params))
        manager.on_notification(TOOLS_CHANGED, lambda server, params: changed.append(server.name))
        await with_each(manager, check)
        # A list is kept for as long as the server says; only one of them says anything.
        assert manager.cache.stats().hits == (2 if "sdk" in manager else 0)


# -- streams -------------------------------------------------------------------------------


async def test_updates_of_what_is_followed_arrive_over_a_kill_and_empty_the_cache() -> None:
    async def check(server: Server) -> None:
        async with server.subscribe(RESOURCE) as updates:
            for life in (1, 2):
                first = await server.read_resource(RESOURCE)
                assert await server.read_resource(RESOURCE) == first
                await server.invoke_tool("toggle-subscriber-updates")
                assert (await heard(updates))["uri"] == RESOURCE
                await server.read_resource(RESOURCE)  # asked for again
                assert server.pid is not None
                if life == 1:
                    os.kill(server.pid, signal.SIGKILL)
                    # Once more, since nobody knows what was missed.
                    assert await heard(updates) == {"uri": RESOURCE}
                    assert server.generation == 2

    async with running() as manager:
        await with_each(manager, check)
        stats = manager.cache.stats()
        assert (stats.hits, stats.misses) == (2 * len(manager), 4 * len(manager))
        assert [one.noise for one in manager.status().servers] == [0] * len(manager)
