"""What a client owes to results that want another round, row by row, in the stateless era."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpclient import InputRefused, Limits, RemoteProtocolError, ReplyError
from tests.behaviour.bench import Bench
from tests.behaviour.server import STATELESS, Message, Refusal, Server, texts

pytestmark = [
    pytest.mark.parametrize("version", [STATELESS]),
    pytest.mark.parametrize("medium", ["memory"]),
]

ROOTS = {"method": "roots/list"}
FORM = {"message": "Name?", "requestedSchema": {"type": "object", "properties": {}}}
ELICIT = {"method": "elicitation/create", "params": FORM}


def asking(state: str | None = None, **requests: Message) -> Message:
    """Return a result that wants another round."""
    body: Message = {"resultType": "input_required"}
    if requests:
        body["inputRequests"] = requests
    return body if state is None else {**body, "requestState": state}


def scripted(bench: Bench, *results: Message) -> None:
    """Let the tool `go` give these results, one for each call, the last one again and again."""
    script = list(results)

    class Scripted(Server):
        def call_tool(self, message: Message, params: Message) -> list[Any]:
            if params["name"] != "go":
                return super().call_tool(message, params)
            body = script.pop(0) if len(script) > 1 else script[0]
            return [self.result(message, body)]

    bench.peer = Scripted


def sent(bench: Bench) -> list[Message]:
    """Return the params of the calls of `go`, without what stands in all of them."""
    found = []
    for one in bench.life.of("tools/call"):
        if one["params"].pop("name") == "go":
            one["params"].pop("_meta")
            found.append(one["params"])
    return found


async def test_all_that_is_asked_is_answered_by_its_key_and_the_call_made_again(
    bench: Bench,
) -> None:
    scripted(bench, asking("s", a=ROOTS, b=ELICIT), texts("done"))
    server = await bench.open(
        roots=["file:///w"], on_elicit=lambda server, params: {"action": "accept"}
    )
    told: list[Any] = []
    result = await server.invoke_tool(
        "go", {"x": [1, 2]}, on_progress=lambda *facts: told.append(facts)
    )
    assert result.text == "done"
    first, second = sent(bench)
    assert first == {"arguments": {"x": [1, 2]}}
    # Bare results, neither enveloped nor marked as one of a kind.
    assert second == {
        "arguments": {"x": [1, 2]},
        "requestState": "s",
        "inputResponses": {
            "a": {"roots": [{"uri": "file:///w"}]},
            "b": {"action": "accept", "content": {}},
        },
    }
    one, other = bench.life.of("tools/call")
    assert one["id"] != other["id"]
    assert other["params"]["_meta"]["progressToken"] == other["id"]


async def test_a_round_that_asks_nothing_only_gives_the_state_back(bench: Bench) -> None:
    scripted(bench, asking("wait"), texts("done"))
    server = await bench.open(roots=["file:///w"])
    assert (await server.invoke_tool("go")).text == "done"
    assert sent(bench) == [{"arguments": {}}, {"arguments": {}, "requestState": "wait"}]


async def test_each_round_gives_back_its_own_keys_and_state_and_no_older_ones(
    bench: Bench,
) -> None:
    scripted(bench, asking("one", a=ROOTS), asking(b=ROOTS), asking("three"), texts("done"))
    server = await bench.open(roots=[])
    await server.invoke_tool("go")
    reply: Message = {"roots": []}
    assert sent(bench) == [
        {"arguments": {}},
        {"arguments": {}, "inputResponses": {"a": reply}, "requestState": "one"},
        {"arguments": {}, "inputResponses": {"b": reply}},
        {"arguments": {}, "requestState": "three"},
    ]


async def test_no_other_call_carries_what_a_round_gives_back(bench: Bench) -> None:
    asked, go = anyio.Event(), anyio.Event()

    async def elicit(server: Any, params: Any) -> Any:
        asked.set()
        await go.wait()
        return {"action": "accept"}

    scripted(bench, asking("s", a=ELICIT), texts("other"), texts("done"))
    server = await bench.open(on_elicit=elicit)
    async with anyio.create_task_group() as group:
        group.start_soon(server.invoke_tool, "go")
        await asked.wait()
        assert (await server.invoke_tool("go")).text == "other"
        go.set()
    assert [sorted(params) for params in sent(bench)] == [
        ["arguments"],
        ["arguments"],
        ["arguments", "inputResponses", "requestState"],
    ]


async def test_rounds_without_end_are_ended(bench: Bench) -> None:
    scripted(bench, asking("again", a=ROOTS))
    server = await bench.open(roots=[], spec={"limits": Limits(rounds=3)})
    with pytest.raises(InputRefused, match="it asks for more than 3 rounds"):
        await server.invoke_tool("go")
    assert len(sent(bench)) == 4


@pytest.mark.parametrize(
    "odd",
    [
        {"method": "no/such"},
        {"method": "sampling/createMessage", "params": {}},  # which was not offered
        {"method": "elicitation/create", "params": {**FORM, "mode": "telepathy"}},
        {"params": {}},
    ],
)
async def test_what_must_not_be_asked_is_refused_and_nobody_is_bothered(
    odd: Message, bench: Bench
) -> None:
    bench.lawful = False
    scripted(bench, asking("s", a=ELICIT, b=odd))
    server = await bench.open(on_elicit=lambda server, params: pytest.fail("asked in vain"))
    with pytest.raises(InputRefused) as caught:
        await server.invoke_tool("go")
    assert caught.value.requests == {"a": ELICIT, "b": odd}
    assert json.loads(bytes(caught.value.state)) == "s"
    assert len(sent(bench)) == 1


async def test_a_round_for_no_reason_is_the_servers_fault(bench: Bench) -> None:
    scripted(bench, asking())
    server = await bench.open(roots=[])
    with pytest.raises(RemoteProtocolError, match="wants another round for no reason"):
        await server.invoke_tool("go")
    assert len(sent(bench)) == 1


async def test_a_list_may_not_ask(bench: Bench) -> None:
    class Rude(Server):
        def list_tools(self, message: Message, params: Message) -> list[Any]:
            return [self.result(message, asking("s", a=ROOTS))]

    bench.peer = Rude
    server = await bench.open(roots=[])
    with pytest.raises(RemoteProtocolError, match="of the unknown kind 'input_required'"):
        await server.list_tools()
    assert len(bench.life.of("tools/list")) == 1


async def test_a_capability_that_a_server_misses_is_told_and_not_made_up(bench: Bench) -> None:
    needs: Message = {"requiredCapabilities": {"sampling": {}}}

    class Needy(Server):
        def call_tool(self, message: Message, params: Message) -> list[Any]:
            raise Refusal(-32021, "Missing required client capability", needs)

    bench.peer = Needy
    server = await bench.open(roots=[])
    with pytest.raises(ReplyError) as caught:
        await server.invoke_tool("echo")
    assert (caught.value.code, caught.value.data) == (-32021, needs)
    assert len(bench.life.of("tools/call")) == 1
