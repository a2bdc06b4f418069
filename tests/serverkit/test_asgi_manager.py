"""Our own manager drives the kit over HTTP, in both eras."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest

from mcpclient import AccessRefused, Manager, ReplyError, Server, ServerSpec, ToolError
from tests.conftest import QUICK
from tests.serverkit.test_asgi_life import everything

ERAS = {"handshake": "2025-11-25", "stateless": "2026-07-28"}


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The fixture server over HTTP."""
    with everything() as (_, host, port):
        yield f"http://{host}:{port}/mcp"


def at(url: str, era: str, **options: Any) -> ServerSpec:
    """Return the spec of the server, of one era."""
    return ServerSpec(url=url, era=era, restart=QUICK, **options)


@pytest.mark.parametrize("era", ERAS)
async def test_the_manager_finds_all_that_the_kit_has_over_http(url: str, era: str) -> None:
    async with Manager({"kit": at(url, era)}) as manager:
        kit = manager["kit"]
        assert len(await kit.list_tools()) > 40
        assert (kit.era, kit.protocol_version) == (era, ERAS[era])
        assert (await kit.invoke_tool("echo", {"text": "grüße \u2028"})).text == "grüße \u2028"
        told: list[tuple[float, float | None, str | None]] = []
        slow = await kit.invoke_tool(
            "slow", {"seconds": 0.3}, on_progress=lambda *args: told.append(args)
        )
        assert slow.text == "waited 0.3"
        assert told == [(n, 3, f"step {n} of 3") for n in range(3)]
        with pytest.raises(ToolError) as caught:
            await kit.invoke_tool("fail", {"text": "why"})
        assert "it failed" in str(caught.value)
        with pytest.raises(ReplyError) as refused:
            await kit.invoke_tool("no_such_tool")
        assert refused.value.code == -32602
        read = await kit.read_resource("everything://bytes")
        assert read.contents[0].decode() == bytes(range(256))
        assert await kit.get_prompt("test_simple_prompt")


@pytest.mark.parametrize("era", ERAS)
async def test_the_kit_asks_the_manager_over_http(url: str, era: str) -> None:
    def sample(server: str, params: Any) -> dict[str, Any]:
        content = {"type": "text", "text": "Paris"}
        return {"role": "assistant", "model": "m", "content": content}

    def elicit(server: str, params: Any) -> dict[str, Any]:
        content = {"username": "ann", "email": "ann@example.com"}
        return {"action": "accept", "content": content}

    async with Manager(
        {"kit": at(url, era)}, roots=["file:///data/a"], on_sample=sample, on_elicit=elicit
    ) as manager:
        kit = manager["kit"]
        sampled = await kit.invoke_tool("test_sampling", {"prompt": "?"})
        assert sampled.text == "LLM response: Paris"
        elicited = await kit.invoke_tool("test_elicitation", {"message": "?"})
        assert '"username": "ann"' in elicited.text
        assert (await kit.invoke_tool("list_roots")).text == '["file:///data/a"]'


@pytest.mark.parametrize("era", ERAS)
async def test_the_manager_hears_what_changes_over_http(url: str, era: str) -> None:
    async with Manager({"kit": at(url, era)}) as manager:
        kit = manager["kit"]
        async with kit.subscribe("everything://counter") as updates:
            await kit.invoke_tool("update", {"uri": "everything://counter"})
            with anyio.fail_after(20):
                async for _ in updates:
                    break


async def test_arguments_go_by_headers_that_the_kit_holds_against_the_body(url: str) -> None:
    async with Manager({"kit": at(url, "stateless")}) as manager:
        kit = manager["kit"]
        await kit.list_tools()
        for region in ("eu 1", "Zürich", "", "=?base64?x?="):
            arguments = {"region": region, "limit": 7, "dry": True}
            found = await kit.invoke_tool("test_custom_headers", arguments)
            assert found.structured == arguments


async def test_the_manager_comes_back_for_an_answer_whose_stream_was_closed(url: str) -> None:
    async with Manager({"kit": at(url, "handshake")}) as manager:
        found = await manager["kit"].invoke_tool("test_reconnection", timeout=30)
        assert found.text == "you came back"


@pytest.mark.parametrize("era", ERAS)
async def test_who_gives_a_call_up_over_http_can_go_on(url: str, era: str) -> None:
    async with Manager({"kit": at(url, era)}) as manager:
        kit = manager["kit"]
        await kit.wait_ready()
        with anyio.move_on_after(0.3):
            await kit.invoke_tool("slow", {"seconds": 600}, timeout=900)
        assert (await kit.invoke_tool("echo", {"text": "on"})).text == "on"


async def test_a_session_that_is_gone_is_opened_anew(url: str) -> None:
    async def session(server: Server) -> Any:
        return (await server.invoke_tool("who")).structured["session"]

    async with Manager({"kit": at(url, "handshake")}) as manager:
        kit = manager["kit"]
        first = await session(kit)
        assert await session(kit) == first
        where = urlsplit(url)
        connection = http.client.HTTPConnection(where.netloc, timeout=20)
        connection.request("DELETE", where.path, headers={"mcp-session-id": first})
        assert connection.getresponse().status == 204
        connection.close()
        assert await session(kit) != first


async def test_the_manager_shows_the_kit_its_token() -> None:
    with everything("--token", "letmein") as (_, host, port):
        url = f"http://{host}:{port}/mcp"
        token = {"authorization": "Bearer letmein"}
        specs = {"in": at(url, "auto", headers=token), "out": at(url, "auto")}
        async with Manager(specs) as manager:
            who = (await manager["in"].invoke_tool("who")).structured
            assert who["subject"] == "ann"
            with pytest.raises(AccessRefused) as caught:
                await manager["out"].invoke_tool("who")
            assert caught.value.status == 401
            [challenge] = caught.value.challenges
            assert challenge.params["resource_metadata"].startswith(f"http://{host}:{port}/.well-")
