"""What servers ask: as requests in the one era, as rounds in the other, one await to the caller."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import InputRefused, Server
from mcpclient.features.asks import Refuse
from tests.behaviour.bench import Bench
from tests.behaviour.server import STATE
from tests.conftest import eventually

FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 2},
        "size": {"type": "integer", "default": 3},
    },
    "required": ["name"],
}
ELICIT = {"message": "Who?", "requestedSchema": FORM}
SAMPLE: dict[str, Any] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "Say hi"}}],
    "maxTokens": 10,
    "modelPreferences": {"hints": [{"name": "first"}, {"name": "second"}]},
}
SAID = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}

has_elicitation = pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2026-07-28"])
has_modes = pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
may_ask = pytest.mark.parametrize(
    "version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
)


async def ask(server: Server, method: str, params: dict[str, Any] | None = None) -> Any:
    """Let the server ask, and return what it says it was answered."""
    answer = await server.invoke_tool("ask", {"method": method, "params": params or {}})
    return json.loads(answer.text)


async def refused(bench: Bench, server: Server, method: str, params: Any = None) -> Any:
    """Let the server ask and be refused; return the code (None in rounds) and the words."""
    if bench.stateless:
        with pytest.raises(InputRefused) as caught:
            await ask(server, method, params)
        assert caught.value.asks == (method,)
        assert len(bench.life.of("tools/call")) == 1  # no second round
        return None, str(caught.value)
    error = (await ask(server, method, params))["error"]
    return error["code"], error["message"]


def offered(bench: Bench) -> list[dict[str, Any]]:
    """Return what the client offered, each time it said so."""
    if bench.stateless:
        key = "io.modelcontextprotocol/clientCapabilities"
        return [m["params"]["_meta"][key] for m in bench.life.messages if "id" in m]
    return [m["params"]["capabilities"] for m in bench.life.of("initialize")]


async def test_roots_are_told_to_a_server_that_asks(bench: Bench, tmp_path: Path) -> None:
    server = await bench.open(roots=[tmp_path, "file:///elsewhere"])
    mine = {"uri": tmp_path.as_uri(), "name": tmp_path.name}
    assert await ask(server, "roots/list") == {
        "result": {"roots": [mine, {"uri": "file:///elsewhere"}]}
    }
    told = {"roots": {} if bench.stateless else {"listChanged": True}}
    assert offered(bench) == [told] * len(offered(bench))
    if bench.stateless:
        first, second = bench.life.of("tools/call")
        assert first["id"] != second["id"]
        assert second["params"]["requestState"] == STATE  # to the byte
        assert set(second["params"]["inputResponses"]) == {"one"}
        assert second["params"]["arguments"] == first["params"]["arguments"]
    else:
        assert bench.life.methods.count("answer") == 1


async def test_a_prompt_and_a_read_may_ask_too(bench: Bench) -> None:
    server = await bench.open(roots=["file:///w"])
    reply = {"result": {"roots": [{"uri": "file:///w"}]}}
    assert json.loads((await server.get_prompt("asking")).text) == reply
    assert json.loads((await server.read_resource("test://asking")).text) == reply
    if bench.stateless:  # what a second round gave is never kept
        await server.read_resource("test://asking")
        assert len(bench.life.of("resources/read")) == 4
        assert "inputResponses" not in bench.life.of("resources/read")[2]["params"]


async def test_a_model_is_asked_for_a_server(bench: Bench) -> None:
    asked: list[Any] = []

    async def sample(server: Server, params: Any) -> Any:
        asked.append((server.name, params))
        return SAID

    server = await bench.open(on_sample=sample)
    assert await ask(server, "sampling/createMessage", SAMPLE) == {"result": SAID}
    assert asked == [("peer", SAMPLE)]
    assert offered(bench)[-1] == {"sampling": {}}


@has_modes
async def test_a_model_with_tools_is_not_offered_and_not_asked(version: str, bench: Bench) -> None:
    server = await bench.open(on_sample=lambda server, params: pytest.fail("asked all the same"))
    params = {**SAMPLE, "tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    code, words = await refused(bench, server, "sampling/createMessage", params)
    assert code == (None if bench.stateless else -32602)
    assert "sampling with tools is not supported by this client" in words


@has_elicitation
async def test_a_form_is_filled_with_its_defaults_and_checked(version: str, bench: Bench) -> None:
    answers: list[Any] = [
        {"action": "accept", "content": {"name": "Ada"}},
        {"action": "decline"},
        {"action": "cancel", "content": {"name": "dropped"}},
    ]
    asked: list[Any] = []

    def elicit(server: Server, params: Any) -> Any:
        asked.append(params)
        return answers.pop(0)

    server = await bench.open(on_elicit=elicit)
    assert await ask(server, "elicitation/create", ELICIT) == {
        "result": {"action": "accept", "content": {"name": "Ada", "size": 3}}
    }
    for action in ("decline", "cancel"):
        assert await ask(server, "elicitation/create", ELICIT) == {"result": {"action": action}}
    assert asked == [ELICIT] * 3
    # In the words of the version that is offered, which is the newest of its era.
    assert offered(bench)[-1] == {"elicitation": {"form": {}, "url": {}}}


@has_elicitation
async def test_an_answer_that_does_not_fit_the_form_is_not_sent(version: str, bench: Bench) -> None:
    server = await bench.open(
        on_elicit=lambda server, params: {"action": "accept", "content": {"name": "A"}}
    )
    code, words = await refused(bench, server, "elicitation/create", ELICIT)
    assert code == (None if bench.stateless else -32603)
    assert "the answer does not fit the form" in words
    assert "name" in words


@has_modes
async def test_consent_to_a_link_has_no_content(version: str, bench: Bench) -> None:
    asked: list[Any] = []

    def elicit(server: Server, params: Any) -> Any:
        asked.append(params)
        return {"action": "accept", "content": {"secret": "never sent"}}

    server = await bench.open(on_elicit=elicit)
    params = {"mode": "url", "message": "Log in", "url": "https://x.example/login"}
    if not bench.stateless:
        params["elicitationId"] = "e1"
    answer = await ask(server, "elicitation/create", params)
    assert answer == {"result": {"action": "accept"}}
    assert asked == [params]


async def test_what_has_no_handler_is_not_offered_and_refused(bench: Bench) -> None:
    server = await bench.open()
    code, words = await refused(bench, server, "roots/list")
    assert code == (None if bench.stateless else -32601)
    assert ("nothing here answers that" if bench.stateless else "not supported") in words
    assert offered(bench) == [{}] * len(offered(bench))


async def test_a_refusal_by_the_user_is_told_or_ends_the_call(bench: Bench) -> None:
    def sample(server: Server, params: Any) -> Any:
        raise Refuse("not for you")

    server = await bench.open(on_sample=sample)
    code, words = await refused(bench, server, "sampling/createMessage", SAMPLE)
    assert code == (None if bench.stateless else -1)
    assert "not for you" in words
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"


async def test_a_handler_may_call_the_server_that_asks(bench: Bench) -> None:
    async def sample(server: Server, params: Any) -> Any:
        text = (await server.invoke_tool("echo", {"text": "from within"})).text
        return {**SAID, "content": {"type": "text", "text": text}}

    server = await bench.open(on_sample=sample)
    reply = await ask(server, "sampling/createMessage", SAMPLE)
    assert reply["result"]["content"]["text"] == "from within"


@pytest.mark.parametrize("medium", ["memory"])
async def test_a_person_may_take_longer_than_the_call_has(medium: str, bench: Bench) -> None:
    answer = anyio.Event()
    asked = anyio.Event()

    async def sample(server: Server, params: Any) -> Any:
        asked.set()
        await answer.wait()
        return SAID

    server = await bench.open(on_sample=sample)
    await server.start()
    texts: list[str] = []

    # A process may be slow to ask.
    timeout = 0.1 if medium == "memory" else 1.0

    async def call() -> None:
        params = {"method": "sampling/createMessage", "params": SAMPLE}
        texts.append((await server.invoke_tool("ask", params, timeout=timeout)).text)

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await asked.wait()
        await anyio.sleep(timeout + 0.25)  # and a turn of the clock that ends it
        assert texts == []
        answer.set()
    assert json.loads(texts[0]) == {"result": SAID}


@may_ask
async def test_what_a_server_takes_back_is_stopped_and_not_answered(
    version: str, bench: Bench
) -> None:
    asked = anyio.Event()
    ended: list[str] = []

    async def sample(server: Server, params: Any) -> Any:
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("stopped")

    server = await bench.open(on_sample=sample)
    async with anyio.create_task_group() as group:

        async def call() -> None:
            params = {"method": "sampling/createMessage", "params": SAMPLE}
            assert (await server.invoke_tool("ask", params)).text == "withdrawn"

        group.start_soon(call)
        await asked.wait()
        await server.invoke_tool("withdraw")
        await eventually(lambda: ended == ["stopped"])
    await server.invoke_tool("withdraw")
    assert {"answer", "refusal"}.isdisjoint(bench.life.methods)


@may_ask
async def test_a_change_of_roots_is_told_and_asked_for_anew(version: str, bench: Bench) -> None:
    roots = ["file:///one"]
    server = await bench.open(roots=lambda server: roots)
    assert (await ask(server, "roots/list"))["result"] == {"roots": [{"uri": "file:///one"}]}
    roots = ["file:///two"]
    await server.notify("notifications/roots/list_changed")
    assert (await ask(server, "roots/list"))["result"] == {"roots": [{"uri": "file:///two"}]}
    assert len(bench.life.of("notifications/roots/list_changed")) == 1


async def test_a_servers_ping_is_answered_where_it_may_ask_and_never_elsewhere(
    bench: Bench,
) -> None:
    bench.lawful = not bench.stateless
    server = await bench.open()
    text = (await server.invoke_tool("ping")).text
    if not bench.stateless:
        assert json.loads(text) == {"result": {}}
        [answer] = [one for one in bench.life.messages if "method" not in one]
        assert answer == {"jsonrpc": "2.0", "id": "ping-1", "result": {}}
        return
    assert text == "asked"
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    received = json.loads((await server.invoke_tool("journal")).text)
    assert all("method" in message for message in received)
    assert server.status().ignored == 1
