"""What servers ask: answered at once, beside everything else, and never left without a word."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpclient import CallCancelled, InputRefused, LocalProtocolError, Manager, Server, Timeouts
from tests.cases import case
from tests.conftest import eventually, spec
from tests.features.helpers import puppet

ROOTS, ELICIT = "roots/list", "elicitation/create"
FORM = {"message": "Who?", "requestedSchema": {"properties": {"name": {"type": "string"}}}}


async def ask(server: Server, method: str, params: Any = None) -> dict[str, Any]:
    """Let the server ask within a call, and return what the client replied."""
    [reply] = json.loads(
        (await server.invoke_tool("ask", {"method": method, "params": params})).text
    )
    assert isinstance(reply, dict)
    return reply


@case("B214")
async def test_a_ping_is_answered_at_once_and_while_a_call_is_pending(manager: Manager) -> None:
    server = await manager.add("s", spec("asks_handshake"))
    reply = await ask(server, "ping")  # the call waits for its answer
    assert reply == {"jsonrpc": "2.0", "id": "ask-1", "result": {}}
    for id in (1, 0, "1"):
        [reply] = json.loads((await server.invoke_tool("ask", {"method": "ping", "id": id})).text)
        assert (reply["id"], reply["result"]) == (id, {})


@case("B216")
async def test_roots_are_given_at_once_if_there_are_any() -> None:
    roots = ["file:///w"]
    async with (
        Manager({"s": spec("asks_handshake")}, roots=roots) as manager,
        anyio.create_task_group(),
    ):
        with anyio.fail_after(10):
            reply = await ask(manager["s"], ROOTS)
        assert reply["result"] == {"roots": [{"uri": "file:///w"}]}
        [opening] = [
            message
            for message in json.loads((await manager["s"].invoke_tool("journal")).text)
            if message.get("method") == "initialize"
        ]
        assert opening["params"]["capabilities"] == {"roots": {"listChanged": True}}


@case("B216", "B219")
@pytest.mark.parametrize("method", [ROOTS, "sampling/createMessage", ELICIT])
async def test_what_nothing_answers_is_not_declared_and_refused_at_once(
    manager: Manager, method: str
) -> None:
    server = await manager.add("s", spec("asks_handshake"))
    with anyio.fail_after(10):
        reply = await ask(server, method)
    assert reply["error"] == {
        "code": -32601,
        "message": f"{method} is not supported by this client",
    }
    [opening] = [
        message
        for message in json.loads((await server.invoke_tool("journal")).text)
        if message.get("method") == "initialize"
    ]
    assert opening["params"]["capabilities"] == {}


@case("B217")
async def test_a_person_is_asked_while_the_tool_runs_and_the_tool_gets_the_answer() -> None:
    asked = anyio.Event()
    answer = anyio.Event()

    async def elicit(server: Server, params: Any) -> Any:
        asked.set()
        await answer.wait()
        # Other calls are served meanwhile, and the handler may make some.
        assert (await server.read_resource("test://a")).text == "1"
        return {"action": "accept", "content": {"name": "Ada"}}

    replies: list[Any] = []
    async with Manager({"s": spec("asks_handshake")}, on_elicit=elicit) as manager:
        server = manager["s"]

        async def call() -> None:
            replies.append(await ask(server, ELICIT, FORM))

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await asked.wait()
            assert json.loads((await server.invoke_tool("replies")).text) == []
            assert replies == []
            answer.set()
    assert replies[0]["result"] == {"action": "accept", "content": {"name": "Ada"}}


@case("B217")
async def test_a_person_who_does_not_answer_costs_the_server_no_eternity() -> None:
    async def elicit(server: Server, params: Any) -> Any:
        await anyio.sleep_forever()

    impatient = spec("asks_handshake", timeouts=Timeouts(eof=1, term=0.5, ask=0.05))
    async with Manager({"s": impatient}, on_elicit=elicit) as manager:
        with anyio.fail_after(10):
            reply = await ask(manager["s"], ELICIT, FORM)
    assert reply["error"] == {"code": -32603, "message": "the client did not answer in time"}


@case("B219")
@pytest.mark.parametrize("verb", ["invoke_tool", "call_tool", "read_resource", "get_prompt"])
async def test_a_result_that_asks_what_nothing_answers_is_an_error_at_once(
    manager: Manager, verb: str
) -> None:
    needed = {
        "resultType": "input_required",
        "inputRequests": {"who": {"method": ELICIT, "params": FORM}},
        "requestState": "s",
    }
    methods = ("tools/call", "resources/read", "prompts/get")
    script = {method: [{"result": needed}] for method in methods}
    server = await manager.add("s", puppet(script, era="stateless"))
    name = "test://a" if verb == "read_resource" else "sin"
    with anyio.fail_after(10), pytest.raises(InputRefused) as caught:
        await getattr(server, verb)(name)
    assert caught.value.asks == (ELICIT,)
    assert caught.value.requests == needed["inputRequests"]
    assert "the server asks for elicitation/create; nothing here answers that" in str(caught.value)
    # And it was never told that something would.
    received = json.loads((await server.call_tool("journal")).text)
    key = "io.modelcontextprotocol/clientCapabilities"
    assert all(m["params"]["_meta"][key] == {} for m in received if "id" in m)


@case("B220")
@pytest.mark.parametrize("answer", ["raises", "is no JSON", "is refused"])
async def test_a_failure_on_the_way_to_the_answer_is_an_answer(answer: str) -> None:
    def sample(server: Server, params: Any) -> Any:
        if answer == "raises":
            raise OSError("the line to the model is down")
        if answer == "is refused":
            raise LocalProtocolError("the model is not for you")
        return {"role": "assistant", "content": {"x": float("inf")}, "model": "m"}

    async with Manager({"s": spec("asks_handshake")}, on_sample=sample) as manager:
        server = manager["s"]
        with anyio.fail_after(10):
            [reply] = json.loads(
                (
                    await server.invoke_tool("ask", {"method": "sampling/createMessage", "id": 7})
                ).text
            )
        assert set(reply) == {"jsonrpc", "id", "error"}
        assert (reply["id"], reply["error"]["code"]) == (7, -32603)
        assert reply["error"]["message"]
        assert "the line to the model" not in reply["error"]["message"]
        assert (await ask(server, "ping"))["result"] == {}


@case("B220")
async def test_a_request_that_is_answered_when_the_server_is_gone_troubles_nobody() -> None:
    asked: list[Any] = []
    answer = anyio.Event()

    async def sample(server: Server, params: Any) -> Any:
        asked.append(server.generation)
        with anyio.CancelScope(shield=True):
            await answer.wait()
        return {"role": "assistant", "content": {"type": "text", "text": ""}, "model": "m"}

    async with Manager({"s": spec("asks_handshake")}, on_sample=sample) as manager:
        server = manager["s"]

        async def call() -> None:
            with pytest.raises(CallCancelled):
                await ask(server, "sampling/createMessage")

        async with anyio.create_task_group() as group:
            group.start_soon(call)
            await eventually(lambda: asked == [1])
            await server.restart()
            answer.set()
        assert (await ask(server, "ping"))["result"] == {}
        [reply] = json.loads((await server.invoke_tool("replies")).text)
        assert reply["result"] == {}
