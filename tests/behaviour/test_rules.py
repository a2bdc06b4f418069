"""Smaller rules of the conversation: what is never answered, and with which code what is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from mcpclient import Manager, ReplyError
from mcpclient.protocol.versions import HANDSHAKE
from tests.behaviour.bench import Bench
from tests.behaviour.server import STATELESS, Message, Refusal, Server, texts
from tests.behaviour.test_asks import ELICIT, ask

pytestmark = pytest.mark.parametrize("medium", ["memory"])
newest = pytest.mark.parametrize("version", HANDSHAKE[-1:])


@pytest.mark.parametrize(
    "method",
    ["notifications/vendor/thing", "notifications/elicitation/complete", "no/such", "ping"],
)
async def test_a_notification_is_never_answered_whatever_it_says(method: str, bench: Bench) -> None:
    bench.lawful = False
    server = await bench.open(on_elicit=lambda server, params: None)
    params = {"elicitationId": "never heard of", "requestId": "nor of this"}
    await server.invoke_tool("say", {"method": method, "params": params})
    await server.invoke_tool("echo", {"text": "after it"})
    assert {"answer", "refusal"}.isdisjoint(bench.life.methods)
    assert server.status().noise == 0


@newest
async def test_a_mode_that_was_not_offered_is_refused_as_invalid(
    version: str, bench: Bench
) -> None:
    bench.lawful = False
    server = await bench.open(on_elicit=lambda server, params: pytest.fail("asked all the same"))
    reply = await ask(server, "elicitation/create", {**ELICIT, "mode": "telepathy"})
    assert reply["error"]["code"] == -32602
    assert "mode" in reply["error"]["message"]


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_a_handler_that_fails_is_told_as_an_internal_error(
    version: str, bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    def roots(server: Any) -> Any:
        raise OSError("secret words")

    server = await bench.open(roots=roots)
    error = (await ask(server, "roots/list"))["error"]
    assert error["code"] == -32603
    assert "secret" not in error["message"]
    assert "the handler of roots/list raised" in caplog.text


@newest
def test_a_root_is_a_file_and_nothing_else(version: str, medium: str) -> None:
    for wrong in ("https://x.example/", "file:///a/../b", "file:///a/%2e%2e/b"):
        with pytest.raises(ValueError, match="a root"):
            Manager(roots=[wrong])


async def test_members_and_capabilities_that_nobody_knows_are_let_through(bench: Bench) -> None:
    class Later(Server):
        @property
        def capabilities(self) -> Message:
            return {**super().capabilities, "telepathy": {"range": 3}, "experimental": {"x": {}}}

        def tool_echo(self, message: Message, text: str) -> Message:
            return {**texts(text), "later": [1], "_meta": {"com.example/k": 1}}

    bench.peer = Later
    server = await bench.open()
    result = await server.invoke_tool("echo", {"text": "hi"})
    assert result.text == "hi"
    assert result.raw["later"] == [1]
    assert result.meta == {"com.example/k": 1}
    assert server.capabilities["telepathy"] == {"range": 3}


async def test_a_result_says_nothing_of_the_kind_or_says_complete(bench: Bench) -> None:
    class Odd(Server):
        def result(self, message: Message, body: Message, *, kept: bool = False) -> Message:
            found = super().result(message, body, kept=kept)
            if self.stateless:
                del found["result"]["resultType"]
            elif message["method"] == "tools/call":
                found["result"]["resultType"] = "input_required"  # means nothing in this era
            return found

    bench.lawful = False
    bench.peer = Odd
    server = await bench.open()
    assert (await server.invoke_tool("echo", {"text": "hi"})).text == "hi"


async def test_pages_of_any_size_make_the_same_list(bench: Bench) -> None:
    class Uneven(Server):
        def list_prompts(self, message: Message, params: Message) -> list[Any]:
            pages: list[Any] = [["a"], [], ["b", "c", "d"], ["e"]]
            cursors = [None, "x" * 3000, json.dumps({"n": 1.0}), "\u00fc \u2028"]
            number = cursors.index(params.get("cursor"))
            body: Message = {"prompts": [{"name": name} for name in pages[number]]}
            if number < 3:
                body["nextCursor"] = cursors[number + 1]
            return [self.result(message, body, kept=True)]

    bench.peer = Uneven
    server = await bench.open()
    assert [one.name for one in await server.list_prompts()] == list("abcde")


class PagesFirst(Server):
    """Refuses a call until a person has agreed to open a page; and once more if told so."""

    refusals = 1

    def call_tool(self, message: Message, params: Message) -> list[Any]:
        if params["name"] != "echo" or self.refusals == 0:
            return super().call_tool(message, params)
        self.refusals -= 1
        page = {
            "mode": "url",
            "elicitationId": "e1",
            "url": "https://x.example/connect",
            "message": "Connect",
        }
        raise Refusal(-32042, "connect first", {"elicitations": [page]})


@pytest.mark.parametrize("version", [*HANDSHAKE, STATELESS])
async def test_a_page_that_must_be_opened_first_is_offered_where_the_version_has_it(
    version: str, bench: Bench
) -> None:
    asked: list[Any] = []

    def elicit(server: Any, params: Any) -> Any:
        asked.append(params)
        return {"action": "accept"}

    bench.peer = PagesFirst
    server = await bench.open(on_elicit=elicit)
    if version != "2025-11-25":  # elsewhere the code means nothing
        with pytest.raises(ReplyError) as caught:
            await server.invoke_tool("echo", {"text": "hi"})
        assert caught.value.code == -32042
        assert asked == []
        return
    assert (await server.invoke_tool("echo", {"text": "hi"})).text == "hi"
    assert [one["url"] for one in asked] == ["https://x.example/connect"]
    first, second = bench.life.of("tools/call")
    assert first["params"] == second["params"]
    assert first["id"] != second["id"]


@newest
@pytest.mark.parametrize("why", ["declined", "again", "nobody"])
async def test_a_page_that_is_not_opened_leaves_the_refusal_to_the_caller(
    version: str, why: str, bench: Bench
) -> None:
    asked: list[str] = []

    def elicit(server: Any, params: Any) -> Any:
        asked.append(params["elicitationId"])
        return {"action": "decline" if why == "declined" else "accept"}

    class Insisting(PagesFirst):
        refusals = 9

    bench.peer = Insisting
    server = await bench.open(on_elicit=None if why == "nobody" else elicit)
    with pytest.raises(ReplyError) as caught:
        await server.invoke_tool("echo", {"text": "hi"})
    assert caught.value.code == -32042
    assert caught.value.data["elicitations"][0]["elicitationId"] == "e1"
    # Consent is asked for once: that the page was done with is not known here.
    assert asked == ([] if why == "nobody" else ["e1"])
    assert len(bench.life.of("tools/call")) == (2 if why == "again" else 1)
