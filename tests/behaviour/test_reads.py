"""Lists over pages, reads and their cache, prompts and completion, the same in every version."""

from __future__ import annotations

import anyio
import pytest

from mcpclient import ReplyError, Server
from tests.behaviour.bench import Bench
from tests.behaviour.server import TOOLS
from tests.conftest import eventually

TOOLS_CHANGED = "notifications/tools/list_changed"


async def release(server: Server, key: str = "held") -> None:
    assert (await server.invoke_tool("release", {"keys": [key]})).text == "released 1"


async def test_a_list_is_all_its_pages(bench: Bench) -> None:
    server = await bench.open()
    tools = await server.list_tools()
    assert [tool.name for tool in tools] == TOOLS
    # The schema is kept as it came, with keywords that nobody knows.
    assert tools[0].input_schema == {"type": "object", "x-kept": {"a": [1]}}
    add = tools[TOOLS.index("add")]
    assert (add.output_schema is not None) == bench.since("2025-06-18")
    assert add.label == ("Sum" if bench.since("2025-06-18") else "add")
    cursors = [(one.get("params") or {}).get("cursor") for one in bench.life.of("tools/list")]
    second = "" if bench.stateless else "page 2"  # "" is a cursor like any other
    assert cursors == [None, second, *(f"page {n}" for n in range(3, (len(TOOLS) + 1) // 2 + 1))]
    assert "cursor" not in (bench.life.of("tools/list")[0].get("params") or {})
    assert [one.uri for one in await server.list_resources()] == [
        "test://a",
        "test://b",
        "test://c",
    ]
    [template] = await server.list_resource_templates()
    assert template.expand(name="x y") == "test://item/x%20y"
    assert [one.name for one in await server.list_prompts()] == ["greet", "plain", "asking"]


async def test_a_read_is_kept_until_a_notice_says_that_it_changed(bench: Bench) -> None:
    server = await bench.open()
    async with server.subscribe("test://a") as updates:
        assert (await server.read_resource("test://a")).text == "read 1"
        assert (await server.read_resource("test://a")).text == "read 1"
        assert (await server.read_resource("test://b")).text == "read 1"
        assert bench.manager.cache.stats().hits == 1
        assert (await server.invoke_tool("touch", {"uri": "test://a"})).text == "1"
        # The cache first, then who follows.
        assert (await anext(updates))["uri"] == "test://a"
        assert (await server.read_resource("test://a")).text == "read 2"
        assert (await server.read_resource("test://b")).text == "read 1"
        # Who follows nothing of it hears nothing.
        assert (await server.invoke_tool("touch", {"uri": "test://b"})).text == "0"
    assert len(bench.life.of("resources/read")) == 3


async def test_reads_at_the_same_time_share_one_request(bench: Bench) -> None:
    server = await bench.open()
    await server.start()
    texts: list[str] = []

    async def read() -> None:
        texts.append((await server.read_resource("test://held")).text)

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(read)
        await eventually(lambda: bench.manager.cache.stats().joins == 2)
        await release(server)
    assert texts == ["read 1"] * 3
    assert len(bench.life.of("resources/read")) == 1
    assert (await server.read_resource("test://held")).text == "read 1"  # and it was kept


async def test_a_shared_read_is_cancelled_only_when_nobody_wants_it(bench: Bench) -> None:
    server = await bench.open()
    await server.start()
    scopes: list[anyio.CancelScope] = []

    async def read() -> None:
        with anyio.CancelScope() as scope:
            scopes.append(scope)
            await server.read_resource("test://held")

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        group.start_soon(read)
        await eventually(lambda: bench.manager.cache.stats().joins == 1)
        scopes[0].cancel()
        await server.invoke_tool("echo", {"text": "meanwhile"})
        assert bench.life.of("notifications/cancelled") == []
        scopes[1].cancel()
    [cancel] = bench.life.of("notifications/cancelled")
    assert cancel["params"]["requestId"] == bench.life.of("resources/read")[0]["id"]


async def test_the_cache_can_be_passed_by_and_emptied(bench: Bench) -> None:
    server = await bench.open()
    texts = [(await server.read_resource("test://a")).text]
    texts.append((await server.read_resource("test://a", cache="bypass")).text)
    texts.append((await server.read_resource("test://a")).text)
    texts.append((await server.read_resource("test://a", cache="refresh")).text)
    texts.append((await server.read_resource("test://a")).text)
    server.invalidate_resource("test://a")
    texts.append((await server.read_resource("test://a")).text)
    assert texts == ["read 1", "read 2", "read 1", "read 3", "read 3", "read 4"]


async def test_a_list_that_is_kept_is_asked_for_again_after_a_notice(bench: Bench) -> None:
    server = await bench.open(cache_ttl=60)
    told: list[str] = []
    bench.manager.on_notification(TOOLS_CHANGED, lambda server, params: told.append(server.name))
    assert len(await server.list_tools()) == len(TOOLS)
    asked = len(bench.life.of("tools/list"))
    assert len(await server.list_tools()) == len(TOOLS)
    assert len(bench.life.of("tools/list")) == asked
    if bench.stateless:  # there only who asked for it hears of changes
        await eventually(lambda: bench.life.agreed())
        [listen] = bench.life.of("subscriptions/listen")
        assert listen["params"]["notifications"] == {"toolsListChanged": True}
    assert (await server.invoke_tool("grow")).text == ("1" if bench.stateless else "3")
    if not bench.piped:
        await eventually(lambda: told)
    assert (await server.list_tools())[-1].name == "more 0"
    assert len(bench.life.of("tools/list")) > asked
    await eventually(lambda: told == ["peer"])


async def test_a_prompt_is_filled_in_by_the_server(bench: Bench) -> None:
    server = await bench.open()
    prompt = await server.get_prompt("greet", {"name": "Ada"})
    assert prompt.text == "Greet Ada."
    assert [message.role for message in prompt.messages] == ["user"]
    assert (await server.get_prompt("plain")).text == "Be plain."
    with pytest.raises(ReplyError) as caught:
        await server.get_prompt("greet")
    assert (caught.value.code, caught.value.message) == (-32602, "name is missing")


async def test_completion_is_given_the_arguments_that_are_chosen_where_it_can_be(
    bench: Bench,
) -> None:
    server = await bench.open()
    found = await server.complete("greet", "name", "par", context={"country": "fr"})
    context = bench.since("2025-06-18")
    assert found.values == ["paris", "park", "party", *(["country=fr"] if context else [])]
    assert found.total == len(found.values)
    assert not found.has_more
    [asked] = bench.life.of("completion/complete")
    assert asked["params"]["ref"] == {"type": "ref/prompt", "name": "greet"}
    assert ("context" in asked["params"]) == context
    [template] = await server.list_resource_templates()
    assert (await server.complete(template, "name", "ro")).values == ["rome"]
