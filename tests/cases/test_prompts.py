"""Arguments of prompts: text, the required ones there, and an empty one as good as any."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from mcpclient import LocalProtocolError, Manager, ReplyError, Server
from tests.cases import case
from tests.conftest import spec
from tests.features.helpers import journal, puppet, result

BOTH = pytest.mark.parametrize("era", ["handshake", "stateless"])
REVIEW = {
    "name": "review",
    "arguments": [
        {"name": "repository", "required": True},
        {"name": "note", "required": False},
        {"name": "more"},
    ],
}


@asynccontextmanager
async def prompts(era: str, *pages: Any, ttl: float | None = 60) -> AsyncIterator[Server]:
    """Open a server whose lists are kept for a minute, and list its prompts."""
    listed = [result(prompts=[], nextCursor="2"), result(prompts=list(pages) or [REVIEW])]
    for one in listed:
        one["result"].update(ttlMs=0 if ttl is None else ttl * 1000)
    script = {"prompts/list": listed, "prompts/get": [result(messages=[])]}
    async with Manager({"s": puppet(script, era=era)}, cache_ttl=ttl) as manager:
        await manager["s"].list_prompts()
        yield manager["s"]


@case("B194")
@BOTH
@pytest.mark.parametrize("value", [5, 1.5, True, None, ["a"], {"a": 1}, b"a"], ids=repr)
async def test_an_argument_that_is_no_text_is_refused_here(era: str, value: Any) -> None:
    async with prompts(era) as server:
        with pytest.raises(LocalProtocolError) as caught:
            await server.get_prompt("review", {"repository": "r", "n": value})
        assert str(caught.value) == (
            f"the argument 'n' of the prompt 'review' must be text, not {type(value).__name__}; "
            f"write it as a string"
        )
        assert await journal(server, "prompts/get") == []


@case("B196")
@BOTH
@pytest.mark.parametrize("arguments", [None, {}, {"note": "x", "more": "y"}], ids=str)
async def test_a_required_argument_that_is_missing_is_named_and_nothing_sent(
    era: str, arguments: Any
) -> None:
    async with prompts(era) as server:
        with pytest.raises(LocalProtocolError) as caught:
            await server.get_prompt("review", arguments)
        assert str(caught.value) == (
            "the prompt 'review' requires the argument 'repository'; nothing was sent"
        )
        assert await journal(server, "prompts/get") == []
        # For the check nothing is asked, and nothing counted.
        assert len(await journal(server, "prompts/list")) == 2


@case("B196")
@BOTH
async def test_what_is_not_known_to_be_required_is_left_to_the_server(era: str) -> None:
    async with prompts(era) as server:
        await server.get_prompt("review", {"repository": "r"})
        await server.get_prompt("another", {})
        await server.notify("puppet/say", {"method": "notifications/prompts/list_changed"})
        await server.call_tool("echo", {"text": "after it"})
        await server.get_prompt("review", {})  # the list is old, so nothing is known
        sent = [one["params"]["arguments"] for one in await journal(server, "prompts/get")]
        assert sent == [{"repository": "r"}, {}, {}]
        assert len(await journal(server, "prompts/list")) == 2


@case("B196")
@BOTH
async def test_a_list_that_is_not_kept_is_not_fetched_to_check(era: str) -> None:
    async with prompts(era, ttl=None) as server:
        await server.get_prompt("review", {})
        assert len(await journal(server, "prompts/list")) == 2


@case("B196")
async def test_a_lawful_servers_required_argument_is_missed_before_it_is_sent(
    manager: Manager,
) -> None:
    server = await manager.add("s", spec("good_stateless"))
    with pytest.raises(ReplyError):  # nothing is known yet
        await server.get_prompt("greet")
    await server.list_prompts()
    with pytest.raises(LocalProtocolError, match="the prompt 'greet' requires the argument 'name'"):
        await server.get_prompt("greet")
    assert (await server.get_prompt("greet", {"name": "Ada"})).text == "Greet Ada."


@case("B197")
@BOTH
async def test_an_empty_text_is_a_value_like_any_other(era: str) -> None:
    async with prompts(era) as server:
        await server.get_prompt("review", {"repository": "", "note": ""})
        [sent] = await journal(server, "prompts/get")
        assert sent["params"]["arguments"] == {"repository": "", "note": ""}
