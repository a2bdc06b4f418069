"""Servers that we did not write, over HTTP, do what they do over stdio, in either era and age.

``everything`` speaks Streamable HTTP of 2025-11-25, and the HTTP of 2024-11-05; the official SDK
behind uvicorn speaks 2026-07-28, and the handshake to who insists.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import CallCancelled, Manager, RestartPolicy, Server, ServerSpec
from tests import test_real_asks as asks
from tests.conftest import eventually
from tests.features.followers import heard
from tests.remote.programs import Program, everything, program, sdk
from tests.test_real_servers import check_everything

# By a name for the test: the server, its path, its era, and how it is told to speak.
ROUTES: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "streamable": ("everything", "/mcp", "handshake", {}),
    "sse": ("everything", "/sse", "handshake", {}),
    "sdk": ("sdk", "/mcp", "stateless", {}),
    "sdk-handshake": ("sdk", "/mcp", "handshake", {"era": "handshake"}),
}
PROMPT = RestartPolicy(burst=None, first=0.01, cap=0.05, jitter=0.0)
RESOURCE = "demo://resource/dynamic/text/1"
UPDATED = "notifications/resources/updated"


def command_of(route: str) -> list[str] | None:
    """Return what starts the server of a route, where it is set up."""
    if ROUTES[route][0] == "sdk":
        return sdk()
    return everything("sse" if route == "sse" else "streamableHttp")


@pytest.fixture(scope="module")
def programs() -> Iterator[dict[str, Program]]:
    """Give the programs by route."""
    with ExitStack() as stack:
        commands = {route: command_of(route) for route in ("streamable", "sse", "sdk")}
        found = {
            route: stack.enter_context(program(command))
            for route, command in commands.items()
            if command is not None
        }
        yield {route: found[key] for route in ROUTES if (key := route.partition("-")[0]) in found}


@pytest.fixture(params=ROUTES)
def route(request: pytest.FixtureRequest) -> str:
    """By which way a server is reached."""
    return str(request.param)


def spec_of(route: str, one: Program, **options: Any) -> ServerSpec:
    _, path, _, more = ROUTES[route]
    return ServerSpec(url=one.origin + path, restart=PROMPT, **{**more, **options})


@asynccontextmanager
async def reached(
    route: str, programs: dict[str, Program], **options: Any
) -> AsyncIterator[tuple[Manager, Server]]:
    name = ROUTES[route][0]
    if route not in programs:
        pytest.skip(f"the {name} server is not set up: run `make setup`")
    async with Manager({name: spec_of(route, programs[route])}, **options) as manager:
        yield manager, manager[name]
        assert manager[name].era == ROUTES[route][2]
        [status] = manager.status().servers
        assert (status.noise, status.stray, status.generation) == (0, 0, 1)


async def test_roots_a_model_and_a_person_answer_over_http(
    route: str, programs: dict[str, Program], tmp_path: Path
) -> None:
    host = asks.Host()
    handlers: dict[str, Any] = {"on_sample": host.sample, "on_elicit": host.elicit}
    async with reached(route, programs, roots=[tmp_path], **handlers) as (_, server):
        await asks.check_roots(server, tmp_path)
        await asks.check_a_model(server, host)
        await asks.check_a_form(server, host)
        if server.name == "sdk":
            if server.era == "stateless":
                await asks.check_a_page(server, host)
                await asks.check_a_read_and_a_prompt(server, host)
        else:
            await asks.check_a_page_to_visit_first(server, host)
        host.refuses = True
        if route != "sdk-handshake":
            await asks.check_a_refusal(server)


@pytest.mark.parametrize("route", ["streamable", "sse"])
async def test_calls_reads_and_prompts_of_everything(
    route: str, programs: dict[str, Program], tmp_path: Path
) -> None:
    async with reached(route, programs) as (_, server):
        await check_everything(server, tmp_path)
        assert len(await server.list_tools()) == 13
        assert len(await server.list_resource_templates()) == 2
        big = "x" * 1_000_000 + "\u2028ü"
        assert (await server.invoke_tool("echo", {"message": big})).text == f"Echo: {big}"


async def test_progress_log_levels_and_what_is_not_offered(
    route: str, programs: dict[str, Program]
) -> None:
    got: list[Any] = []
    async with reached(route, programs) as (manager, server):
        manager.on_notification(asks.MESSAGE, lambda server, params: got.append(params))
        if route != "sdk-handshake":
            await asks.check_what_is_not_offered(server)
            await asks.check_log_levels(server, got)
        await asks.check_progress(server)


# The SDK tells of updates only those who listen.
@pytest.mark.parametrize("route", ["streamable", "sse", "sdk"])
async def test_updates_arrive_and_empty_the_cache(route: str, programs: dict[str, Program]) -> None:
    async with reached(route, programs) as (_, server), server.subscribe(RESOURCE) as updates:
        first = await server.read_resource(RESOURCE)
        assert await server.read_resource(RESOURCE) == first
        await server.invoke_tool("toggle-subscriber-updates")
        assert (await heard(updates))["uri"] == RESOURCE
        await server.invoke_tool("toggle-subscriber-updates")
        again = await server.read_resource(RESOURCE)
        if server.name == "sdk":  # the other tells the time, in seconds
            assert again != first


async def test_a_list_that_changed_is_asked_for_again(programs: dict[str, Program]) -> None:
    changed: list[str] = []
    async with reached("sdk", programs) as (manager, server):
        manager.on_notification(asks.TOOLS_CHANGED, lambda server, params: changed.append("tools"))
        names = [tool.name for tool in await server.list_tools()]
        assert [tool.name for tool in await server.list_tools()] == names
        assert manager.cache.stats().hits == 1
        new = f"one-more-{len(names)}"
        await server.invoke_tool("add-tool", {"name": new})
        await eventually(lambda: changed)
        assert [tool.name for tool in await server.list_tools()] == [*names, new]
        assert (await server.invoke_tool(new)).text == new


@pytest.mark.parametrize("route", ["sdk", "sdk-handshake"])
async def test_a_call_that_is_cancelled_ends_at_the_server_too(
    route: str, programs: dict[str, Program]
) -> None:
    async with reached(route, programs) as (_, server):
        before = int((await server.invoke_tool("count-cancelled")).text)
        begun = anyio.Event()

        async def call() -> None:
            await server.invoke_tool(
                "trigger-long-running-operation",
                {"duration": 300, "steps": 3000},
                on_progress=lambda *facts: begun.set(),
            )

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await begun.wait()
            group.cancel_scope.cancel()
        with anyio.fail_after(20):
            while int((await server.invoke_tool("count-cancelled")).text) == before:
                await anyio.sleep(0.01)


async def test_two_hundred_calls_at_the_same_time(route: str, programs: dict[str, Program]) -> None:
    async with reached(route, programs) as (manager, server):
        texts: set[str] = set()

        async def call(number: int) -> None:
            if server.name == "sdk":
                uri = f"demo://resource/dynamic/text/{number}"
                texts.add((await server.read_resource(uri)).text.partition(":")[0])
            else:
                texts.add((await server.invoke_tool("echo", {"message": str(number)})).text)

        async with anyio.create_task_group() as group:
            for number in range(200):
                group.start_soon(call, number)
        words = "Resource" if server.name == "sdk" else "Echo:"
        assert texts == {f"{words} {number}" for number in range(200)}
        assert manager.status().servers[0].in_flight == 0


async def test_a_tool_runs_as_a_task_and_asks_on_its_way(programs: dict[str, Program]) -> None:
    asked: list[str] = []

    def elicit(server: Server, params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params["message"])
        return {"action": "accept", "content": {"interpretation": "snake"}}

    tool = "simulate-research-query"
    async with reached("streamable", programs, on_elicit=elicit) as (_, server):
        started = await server.start_tool(tool, {"topic": "ants"}, ttl=60)
        await started.cancel()
        with pytest.raises(CallCancelled):
            await started.result()
        arguments = {"topic": "python", "ambiguous": True}
        result = await server.invoke_tool(tool, arguments, timeout=60)
        assert result.text.startswith("# Research Report: python (snake)")
        assert len(asked) == 1


async def test_the_session_is_given_back_at_the_end(programs: dict[str, Program]) -> None:
    told = "Received session termination request"
    async with reached("streamable", programs) as (_, server):
        before = programs["streamable"].log().count(told)
        await server.wait_ready()
    await eventually(lambda: programs["streamable"].log().count(told) == before + 1)


@pytest.mark.parametrize("route", ["streamable", "sse", "sdk"])
async def test_a_server_that_is_killed_comes_back_and_no_caller_learns_another_way(
    route: str, programs: dict[str, Program]
) -> None:
    command = command_of(route)
    if command is None:
        pytest.skip("the server is not set up: run `make setup`")
    with program(command) as one:
        async with Manager({ROUTES[route][0]: spec_of(route, one)}) as manager:
            server = manager[ROUTES[route][0]]
            async with server.subscribe(RESOURCE) as updates:
                await server.invoke_tool("toggle-subscriber-updates")
                await server.read_resource(RESOURCE)
                one.kill()
                await eventually(lambda: server.state != "up")
                texts: list[str] = []

                async def read() -> None:
                    read = await server.read_resource(RESOURCE, cache="refresh", timeout=60)
                    texts.append(read.text)

                async with anyio.create_task_group() as group:
                    group.start_soon(read)
                    await eventually(lambda: len(server.incidents) > 1)
                    assert server.state in ("waiting", "starting", "opening")
                    one.again()
                [text] = texts
                assert text.startswith("Resource 1: ")
                # Nobody knows what was missed.
                with anyio.fail_after(20):
                    while await heard(updates) != {"uri": RESOURCE}:
                        pass
