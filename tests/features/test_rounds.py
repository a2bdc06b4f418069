"""Results that ask for another round, as the stateless era has them: one await to the caller."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpclient import InputRefused, Limits, Manager, RemoteProtocolError, Server
from tests.conftest import spec
from tests.features.rounds import ASK, ELICIT, SAID, SAMPLE, asking, nobody, rounds, step, told

# -- what a round brings -------------------------------------------------------------------


async def test_all_that_is_asked_is_answered_by_its_key_in_one_round() -> None:
    form = {"type": "object", "properties": {"name": {"type": "string"}}}
    requests = {
        "who": {"method": ELICIT, "params": {"message": "?", "requestedSchema": form}},
        "page": {"method": ELICIT, "params": {"mode": "url", "url": "https://x.example/"}},
        "": ASK,
        "wo\u2028 \x1b": {"method": "roots/list"},
        "__proto__": {"method": "roots/list", "params": None},
    }
    roots = {"roots": [{"uri": "file:///w"}]}
    async with asking() as server:
        assert await rounds(server, step(requests, requestState="s")) == [
            {},
            {
                "inputResponses": {
                    "who": {"action": "accept", "content": {"name": "Ada"}},
                    "page": {"action": "accept"},
                    "": SAID,
                    "wo\u2028 \x1b": roots,
                    "__proto__": roots,
                },
                "requestState": "s",
            },
        ]


async def test_each_round_has_what_the_last_one_asked_and_nothing_older() -> None:
    async with asking() as server:
        brought = await rounds(
            server,
            step({"a": ASK}, requestState="1"),
            step({"b": ASK}),
            step(requestState="3"),
            step({}, requestState="4"),
            step({"c": ASK}, requestState=""),
        )
    assert brought == [
        {},
        {"inputResponses": {"a": SAID}, "requestState": "1"},
        {"inputResponses": {"b": SAID}},
        {"requestState": "3"},
        {"requestState": "4"},
        {"inputResponses": {"c": SAID}, "requestState": ""},
    ]


async def test_the_call_itself_is_repeated_unchanged_with_a_new_token() -> None:
    async with asking() as server:
        arguments = {"steps": [step({"a": ASK})], "more": [None, 1.5, "ü"]}
        heard: list[Any] = []
        await server.invoke_tool(
            "rounds", arguments, on_progress=lambda *facts: heard.append(facts)
        )
        first, second = [m for m in await told(server, "journal") if m["method"] == "tools/call"][
            :2
        ]
    meta, again = first["params"].pop("_meta"), second["params"].pop("_meta")
    assert first["params"] == {"name": "rounds", "arguments": arguments}
    assert second["params"] == {**first["params"], "inputResponses": {"a": SAID}}
    assert (meta.pop("progressToken"), again.pop("progressToken")) == (first["id"], second["id"])
    assert meta == again


async def test_no_other_request_has_a_part_in_the_rounds_of_a_call() -> None:
    async with asking() as server, anyio.create_task_group() as group:
        found: dict[str, Any] = {}

        async def call(key: str) -> None:
            found[key] = await rounds(server, step({key: ASK}, requestState=key), key=key)

        for key in ("a", "b", "c"):
            group.start_soon(call, key)
    for key in ("a", "b", "c"):
        assert found[key] == [{}, {"inputResponses": {key: SAID}, "requestState": key}]


# -- the state -----------------------------------------------------------------------------

TEXTS = [
    '"plain"',
    '""',
    '"\\u00fc\\/\\ud83d\\ude00\\u2028 \\"\\\\ "',
    json.dumps("x" * 1_000_000),
]
OTHERS = [
    "0",
    "-1.50e+2",
    "12345678901234567890123456789012345678901234567890",
    "false",
    "[ 1,  null ]",
    '{ "b": 1.0, "a": [ ], "b": 2 }',
]


@pytest.mark.parametrize("state", TEXTS, ids=lambda state: state[:20])
async def test_the_state_is_given_back_to_the_byte(state: str) -> None:
    async with asking() as server:
        raw = f'{{"resultType": "input_required", "requestState": {state}}}'
        await server.invoke_tool("rounds", {"steps": [raw]})
        lines = await told(server, "lines")
    [line] = [one for one in lines if '"requestState":' in one]
    assert line.count(f'"requestState":{state}') == 1


@pytest.mark.odd_frames("the server's state is no text, and is the server's to judge")
@pytest.mark.parametrize("state", OTHERS, ids=lambda state: state[:20])
async def test_a_state_that_is_no_text_is_given_back_to_the_byte(state: str) -> None:
    await test_the_state_is_given_back_to_the_byte(state)


async def test_a_state_in_other_letters_is_the_same_text() -> None:
    # Not escaped by the server, but our lines are ASCII whatever they hold.
    async with asking() as server:
        raw = '{"resultType":"input_required","requestState":"ü\u2028\U0001f600"}'
        assert (await rounds(server, raw))[1] == {"requestState": "ü\u2028\U0001f600"}


async def test_a_state_that_is_null_is_none() -> None:
    async with asking() as server:
        assert await rounds(server, step({"a": ASK}, requestState=None)) == [
            {},
            {"inputResponses": {"a": SAID}},
        ]


@pytest.mark.parametrize("half", ["\\ud83d", "\\ude00\\ud83d x", "ok \\uDFFF"])
@pytest.mark.parametrize("place", ["first", "last"])
async def test_a_state_that_could_only_be_given_back_altered_ends_the_call(
    half: str, place: str
) -> None:
    state = f'"requestState": "{half}"'
    kind = '"resultType":"input_required"'
    members = [state, kind] if place == "first" else [kind, state]
    async with asking() as server:
        with pytest.raises(
            RemoteProtocolError, match="no Unicode text, so it cannot be given back"
        ):
            await rounds(server, f"{{{','.join(members)}}}")
        assert len([m for m in await told(server, "journal") if m["method"] == "tools/call"]) == 2


async def test_half_a_character_beside_the_state_is_replaced_and_the_state_is_kept() -> None:
    form = '{"method":"elicitation/create","params":{"message":"\\ud83d"}}'
    raw = (
        '{"resultType":"input_required","requestState":"ok \\ud83d\\ude00",'
        f'"inputRequests":{{"a\\ud83d":{form}}}}}'
    )
    asked: list[Any] = []

    def elicit(server: Server, params: Any) -> Any:
        asked.append(params)
        return {"action": "decline"}

    async with asking(on_elicit=elicit) as server:
        _, brought = await rounds(server, raw)
    assert asked == [{"message": "\ufffd"}]
    assert brought == {
        "inputResponses": {"a\ufffd": {"action": "decline"}},
        "requestState": "ok \U0001f600",
    }


async def test_half_a_character_of_a_person_goes_beside_a_state_that_is_kept() -> None:
    def elicit(server: Server, params: Any) -> Any:
        return {"action": "accept", "content": {"name": "\ud83d"}}

    raw = (
        '{"resultType":"input_required","requestState":"\\u00fc",'
        '"inputRequests":{"a":{"method":"elicitation/create","params":{"message":"?"}}}}'
    )
    async with asking(on_elicit=elicit) as server:
        await server.invoke_tool("rounds", {"steps": [raw]})
        lines = await told(server, "lines")
    [line] = [one for one in lines if '"requestState":' in one]
    assert '"\\ud83d"' in line
    assert json.loads(line)["params"]["requestState"] == "ü"


# -- what cannot be answered ---------------------------------------------------------------

ODD: list[Any] = [
    step(),
    step({}),
    step(requestState=None),
    step([], requestState="s"),
    step("text", requestState="s"),
    step(5),
    step({"a": "text"}),
    step({"a": None}),
    step({"a": [ASK]}),
    step([ASK]),
]


@pytest.mark.parametrize("odd", ODD, ids=str)
async def test_a_round_in_no_shape_to_be_answered_is_the_servers_fault(odd: Any) -> None:
    async with asking(nobody, nobody) as server:
        with pytest.raises(RemoteProtocolError, match=r"the result of tools/call (asks|wants)"):
            await rounds(server, odd)


@pytest.mark.parametrize(
    "method",
    ["ping", "tools/list", "sampling/createmessage", "", "x\x1b[2J", None, 5, ["roots/list"]],
)
async def test_what_nobody_answers_ends_the_call_before_anybody_is_asked(method: Any) -> None:
    requests = {"known": ASK, "odd": {"method": method, "params": {}}}
    async with asking(nobody, nobody) as server:
        with pytest.raises(InputRefused) as caught:
            await rounds(server, step(requests, requestState="kept"))
        problem = caught.value
        assert problem.asks == (SAMPLE, str(method))
        assert problem.requests == requests
        assert (problem.method, problem.server, problem.reason) == ("tools/call", "s", "")
        assert str(problem).endswith("; nothing here answers that")
        assert str(problem).isprintable()
        calls = [m for m in await told(server, "journal") if m["method"] == "tools/call"]
        assert len(calls) == 2  # no second round


async def test_a_request_without_a_method_is_what_nobody_answers() -> None:
    async with asking(nobody, nobody) as server:
        with pytest.raises(InputRefused) as caught:
            await rounds(server, step({"a": {}}))
        assert caught.value.asks == ("None",)


async def test_nobody_is_asked_for_the_sake_of_a_round_that_was_never_offered() -> None:
    tools = {"method": SAMPLE, "params": {"messages": [], "tools": []}}
    page = {"method": ELICIT, "params": {"mode": "url", "url": "javascript:x"}}
    fine = {"method": ELICIT, "params": {"message": "?"}}
    async with asking(nobody, nobody) as server:
        for odd, words in ((tools, "sampling with tools is not supported"), (page, "only https")):
            with pytest.raises(InputRefused, match=words):
                await rounds(server, step({"fine": fine, "odd": odd}), key=words)


async def test_without_any_handler_the_error_has_all_that_is_needed_to_go_on() -> None:
    async with Manager({"s": spec("asks_stateless_rounds")}) as manager:
        server = manager["s"]
        params = {"name": "ask", "arguments": {"method": SAMPLE, "params": {"x": 1}}}
        with pytest.raises(InputRefused) as caught:
            await server.request("tools/call", params)
        assert caught.value.requests == {"one": {"method": SAMPLE, "params": {"x": 1}}}
        assert bytes(caught.value.state) == b'"state of ask"'
        answered = {"inputResponses": {"one": SAID}, "requestState": caught.value.state}
        result = await server.request("tools/call", {**params, **answered})
        assert json.loads(result["content"][0]["text"]) == SAID


async def test_who_begins_by_hand_may_leave_the_rest_to_the_handlers() -> None:
    # The second round has no state; that of the first must not come back (MRTR-05).
    async with asking() as server:
        arguments = {"steps": [step({"a": ASK})]}
        by_hand = {"inputResponses": {"x": {"action": "decline"}}, "requestState": "old"}
        result = await server.request(
            "tools/call", {"name": "rounds", "arguments": arguments, **by_hand}
        )
        first, second = json.loads(result["content"][0]["text"])
    assert {key: first[key] for key in by_hand} == by_hand
    assert second["inputResponses"] == {"a": SAID}
    assert "requestState" not in second


# -- without end ---------------------------------------------------------------------------


@pytest.mark.parametrize("requests", [None, {"a": ASK}], ids=["a state", "an input"])
async def test_a_call_that_asks_for_ever_is_ended(requests: Any) -> None:
    asked = 0

    def count(server: Server, params: Any) -> Any:
        nonlocal asked
        asked += 1
        return SAID

    async with asking(count, limits=Limits(rounds=3)) as server:
        with pytest.raises(InputRefused, match="it asks for more than 3 rounds"):
            await server.invoke_tool("forever", {"requests": requests})
        calls = [m for m in await told(server, "journal") if m["method"] == "tools/call"]
        assert len(calls) == 4 + 1
    assert asked == (3 if requests else 0)


async def test_ten_rounds_are_no_fault() -> None:
    async with asking() as server:
        assert len(await rounds(server, *[step({"a": ASK})] * 10)) == 11
