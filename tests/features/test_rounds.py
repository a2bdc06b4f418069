"""Results that ask for another round, as the stateless era has them: one await to the caller."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallTimedOut,
    InputRefused,
    Limits,
    LocalProtocolError,
    Manager,
    Refuse,
    RemoteProtocolError,
    ReplyError,
    Server,
    ServerDied,
    Timeouts,
)
from tests.conftest import eventually, spec
from tests.features.helpers import journal, puppet, refusal

SAMPLE, ELICIT = "sampling/createMessage", "elicitation/create"
SAID = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
ADA = {"action": "accept", "content": {"name": "Ada", "size": 3}}
ASK = {"method": SAMPLE, "params": {"messages": [], "maxTokens": 1}}


def sample(server: Server, params: Any) -> Any:
    return SAID


def ada(server: Server, params: Any) -> Any:
    return {"action": "accept", "content": {"name": "Ada"}}


def nobody(server: Server, params: Any) -> Any:
    pytest.fail("asked all the same")


@asynccontextmanager
async def asking(
    on_sample: Callable[..., Any] | None = sample,
    on_elicit: Callable[..., Any] | None = ada,
    **options: Any,
) -> AsyncIterator[Server]:
    """Open a manager of one server that asks by rounds."""
    servers = {"s": spec("asks_stateless_rounds", **options)}
    roots = ["file:///w"]
    async with Manager(servers, roots=roots, on_sample=on_sample, on_elicit=on_elicit) as manager:
        yield manager["s"]


async def told(server: Server, tool: str, **arguments: Any) -> Any:
    return json.loads((await server.invoke_tool(tool, arguments)).text)


async def rounds(server: Server, *steps: Any, **more: Any) -> list[dict[str, Any]]:
    """Let rounds be answered with these steps; return what each of them brought, ids left out."""
    brought = await told(server, "rounds", steps=steps, **more)
    ids = [one.pop("id") for one in brought]
    assert ids == sorted(set(ids))  # each round has a new one (MRTR-06)
    return brought  # type: ignore[no-any-return]


def step(requests: Any = None, **more: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"resultType": "input_required", **more}
    return found if requests is None else {**found, "inputRequests": requests}


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

STATES = [
    '"plain"',
    '""',
    '"\\u00fc\\/\\ud83d\\ude00\\u2028 \\"\\\\ "',
    json.dumps("x" * 1_000_000),
    "0",
    "-1.50e+2",
    "12345678901234567890123456789012345678901234567890",
    "false",
    "[ 1,  null ]",
    '{ "b": 1.0, "a": [ ], "b": 2 }',
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state[:20])
async def test_the_state_is_given_back_to_the_byte(state: str) -> None:
    async with asking() as server:
        raw = f'{{"resultType": "input_required", "requestState": {state}}}'
        await server.invoke_tool("rounds", {"steps": [raw]})
        lines = await told(server, "lines")
    [line] = [one for one in lines if '"requestState":' in one]
    assert line.count(f'"requestState":{state}') == 1


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
        answered = {"inputResponses": {"one": {"by": "hand"}}, "requestState": caught.value.state}
        result = await server.request("tools/call", {**params, **answered})
        assert json.loads(result["content"][0]["text"]) == {"by": "hand"}


async def test_who_begins_by_hand_may_leave_the_rest_to_the_handlers() -> None:
    # The second round has no state; that of the first must not come back (MRTR-05).
    async with asking() as server:
        arguments = {"steps": [step({"a": ASK})]}
        by_hand = {"inputResponses": {"x": 1}, "requestState": "old"}
        result = await server.request(
            "tools/call", {"name": "rounds", "arguments": arguments, **by_hand}
        )
        first, second = json.loads(result["content"][0]["text"])
    assert (first["inputResponses"], first["requestState"]) == ({"x": 1}, "old")
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


# -- handlers ------------------------------------------------------------------------------


async def test_a_handler_that_refuses_ends_the_call_in_its_words() -> None:
    def refuse(server: Server, params: Any) -> Any:
        raise Refuse("not for you")

    async with asking(refuse) as server:
        with pytest.raises(InputRefused) as caught:
            await rounds(server, step({"a": ASK}))
        assert caught.value.reason == "not for you"
        assert str(caught.value) == (
            'tools/call on "s": the server asks for sampling/createMessage; not for you'
        )


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_who_declines_is_told_of_and_the_call_goes_on(action: str) -> None:
    async with asking(on_elicit=lambda server, params: {"action": action}) as server:
        assert (await server.read_resource("test://asking/a")).text == json.dumps(
            {"action": action}
        )


async def test_a_handler_that_raises_ends_the_call_and_says_what_it_raised() -> None:
    def fail(server: Server, params: Any) -> Any:
        raise ZeroDivisionError("a secret of the host")

    async with asking(fail) as server:
        with pytest.raises(InputRefused, match="the handler raised ZeroDivisionError") as caught:
            await rounds(server, step({"a": ASK}))
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert "secret" not in str(caught.value)


async def test_an_error_of_another_server_is_no_error_of_this_one() -> None:
    async def elsewhere(server: Server, params: Any) -> Any:
        raise ServerDied(exit=None, method="x", server="other")  # type: ignore[arg-type]

    async with asking(elsewhere, resend="safe") as server:
        with pytest.raises(InputRefused, match="the handler raised ServerDied"):
            await rounds(server, step({"a": ASK}))
        calls = [m for m in await told(server, "journal") if m["method"] == "tools/call"]
        assert len(calls) == 1 + 1  # nor is the call made once more


async def test_a_handler_that_takes_too_long_is_stopped_and_ends_the_call() -> None:
    stopped: list[bool] = []

    async def wait(server: Server, params: Any) -> Any:
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(True)

    async with asking(wait, timeouts=Timeouts(eof=1, term=0.5, ask=0.05)) as server:
        with pytest.raises(InputRefused, match="nobody answered in time"):
            await rounds(server, step({"a": ASK, "b": ASK}))
    assert stopped == [True]


@pytest.mark.parametrize(
    "rubbish", [None, 5, object(), {"role": "x"}, {**SAID, "x": {1, object()}}]
)
async def test_what_a_handler_must_not_return_ends_the_call(rubbish: Any) -> None:
    async with asking(lambda server, params: rubbish) as server:
        with pytest.raises(InputRefused):
            await rounds(server, step({"a": ASK}))
        assert await rounds(server, step(requestState="s"), key="2") == [{}, {"requestState": "s"}]


async def test_an_answer_that_is_no_json_is_not_sent() -> None:
    async with asking(lambda server, params: {**SAID, "x": float("nan")}) as server:
        with pytest.raises(LocalProtocolError, match="NaN"):
            await rounds(server, step({"a": ASK}))


async def test_a_handler_may_call_the_server_that_waits_for_it() -> None:
    deep: list[int] = []

    async def deeper(server: Server, params: Any) -> Any:
        deep.append(len(deep))
        if len(deep) < 4:
            await told(server, "ask", **ASK)
        return SAID

    async with asking(deeper) as server:
        assert await told(server, "ask", **ASK) == SAID
    assert deep == [0, 1, 2, 3]


# -- time, cancellation, death -------------------------------------------------------------


class Person:
    """Somebody who answers when told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.stopped = 0
        self.answer = anyio.Event()

    async def __call__(self, server: Server, params: Any) -> Any:
        self.asked += 1
        try:
            await self.answer.wait()
        except BaseException:
            self.stopped += 1
            raise
        return {"action": "accept", "content": {"name": "Ada"}}


async def test_waiting_for_a_person_is_no_part_of_the_calls_time() -> None:
    person = Person()
    found: list[Any] = []
    async with asking(on_elicit=person) as server, anyio.create_task_group() as group:
        await server.start()

        async def get() -> None:
            found.append((await server.get_prompt("asking", timeout=0.2)).text)

        group.start_soon(get)
        await eventually(lambda: person.asked)
        await anyio.sleep(0.35)
        assert found == []
        assert server.status().in_flight == 0  # the request that asks has ended
        person.answer.set()
    assert json.loads(found[0]) == ADA


async def test_a_call_that_is_cancelled_while_a_person_is_asked_stops_asking() -> None:
    person = Person()
    async with asking(on_elicit=person) as server, anyio.create_task_group() as group:
        group.start_soon(server.get_prompt, "asking")
        await eventually(lambda: person.asked)
        group.cancel_scope.cancel()
    assert person.stopped == 1
    async with asking() as server:
        assert json.loads((await server.get_prompt("asking")).text) == ADA


async def test_a_round_that_is_answered_while_the_server_restarts_goes_to_its_next_life() -> None:
    person = Person()
    found: list[Any] = []
    async with asking(on_elicit=person) as server, anyio.create_task_group() as group:

        async def get() -> None:
            found.append((await server.get_prompt("asking")).text)

        group.start_soon(get)
        await eventually(lambda: person.asked)
        await server.restart()
        person.answer.set()
    assert json.loads(found[0]) == ADA
    assert server.generation == 2


async def test_a_server_that_dies_of_the_answer_ends_the_call() -> None:
    async with asking() as server:
        with pytest.raises(ServerDied) as caught:
            await server.invoke_tool("exit_after", {"code": 3})
        assert (caught.value.exit.code, caught.value.maybe_done) == (3, True)
        assert await told(server, "ask", **ASK) == SAID


async def test_each_round_has_the_time_out_of_the_call() -> None:
    script = {"tools/call": [{"result": step({"a": ASK})}]}
    async with Manager({"s": puppet(script, era="stateless")}, on_sample=sample) as manager:
        server = manager["s"]
        await server.start()

        async def silence(server: Server, params: Any) -> Any:
            await server.notify("puppet/hold", {"method": "tools/call"})
            return SAID

        manager._asks._handlers[SAMPLE] = silence
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("sin", timeout=0.1)


# -- reads and prompts ---------------------------------------------------------------------


async def test_reads_that_overlap_each_ask_for_their_own_and_nothing_is_kept() -> None:
    names = iter(["Ada", "Bob", "Cy"])

    async def elicit(server: Server, params: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        return {"action": "accept", "content": {"name": next(names), "size": 1}}

    servers = {"s": spec("asks_stateless_rounds")}
    texts: list[str] = []
    async with Manager(servers, on_elicit=elicit) as manager:
        server = manager["s"]

        async def read() -> None:
            text = (await server.read_resource("test://asking/a")).text
            texts.append(json.loads(text)["content"]["name"])

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            group.start_soon(read)
        await read()  # a minute was allowed, but not for what a person had a part in (MRTR-15)
        asked = [
            m["params"] for m in await told(server, "journal") if m["method"] == "resources/read"
        ]
        stats = manager.cache.stats()
    assert sorted(texts) == ["Ada", "Bob", "Cy"]
    # The first request was shared; it did not say whose answer it wanted.
    assert [sorted(one) for one in asked] == [
        ["_meta", "uri"],
        *[["_meta", "inputResponses", "requestState", "uri"]] * 2,
        ["_meta", "uri"],
        ["_meta", "inputResponses", "requestState", "uri"],
    ]
    assert {one.get("requestState") for one in asked} == {None, "state of test://asking/a"}
    assert (stats.entries, stats.hits, stats.joins) == (0, 0, 1)


@pytest.mark.parametrize("use", ["use", "refresh", "bypass"])
async def test_a_read_is_answered_however_the_cache_is_used(use: str) -> None:
    async with asking() as server:
        assert json.loads((await server.read_resource("test://asking/a", cache=use)).text) == ADA


async def test_a_read_that_nobody_answers_is_refused_to_each_reader_by_itself() -> None:
    problems: list[InputRefused] = []
    async with Manager({"s": spec("asks_stateless_rounds")}) as manager:

        async def read() -> None:
            with pytest.raises(InputRefused) as caught:
                await manager["s"].read_resource("test://asking/a")
            problems.append(caught.value)

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            group.start_soon(read)
    assert [one.asks for one in problems] == [(ELICIT,)] * 2
    assert problems[0] is not problems[1]


# -- the other era -------------------------------------------------------------------------


async def test_a_page_to_visit_first_is_shown_and_the_call_made_again() -> None:
    shown: list[Any] = []

    def elicit(server: Server, params: Any) -> Any:
        shown.append(params)
        return {"action": "accept"}

    async with Manager({"s": spec("asks_handshake")}, on_elicit=elicit) as manager:
        assert (await manager["s"].invoke_tool("login")).text == "granted"
        calls = [
            message["params"]
            for message in await told(manager["s"], "journal")
            if message.get("method") == "tools/call"
        ]
    assert calls[:2] == [{"name": "login", "arguments": {}}] * 2
    page = {"mode": "url", "elicitationId": "page-1", "url": "https://x.example/login"}
    assert shown == [{**page, "message": "Log in"}]


@pytest.mark.parametrize("answer", ["decline", "cancel", "raise", None])
async def test_without_consent_the_refusal_is_the_callers(answer: str | None) -> None:
    def elicit(server: Server, params: Any) -> Any:
        if answer == "raise":
            raise ZeroDivisionError
        return {"action": answer}

    servers = {"s": spec("asks_handshake")}
    async with Manager(servers, on_elicit=elicit if answer else None) as manager:
        with pytest.raises(ReplyError) as caught:
            await manager["s"].invoke_tool("login")
    problem = caught.value
    assert (problem.code, problem.message) == (-32042, "log in")
    assert problem.data["elicitations"][0]["url"] == "https://x.example/login"
    assert list(problem.wants) == ["page-1"]


PAGES: list[Any] = [
    {"elicitationId": "a", "url": "https://x.example/", "message": "?"},
    {"elicitationId": "b", "url": "https://y.example/", "message": "?"},
]


@pytest.mark.parametrize("method", ["tools/call", "resources/read", "prompts/get"])
async def test_one_page_is_shown_once_however_often_the_server_insists(method: str) -> None:
    shown: list[str] = []

    def elicit(server: Server, params: Any) -> Any:
        shown.append(params["elicitationId"])
        return {"action": "accept"}

    first, both = [refusal(-32042, data={"elicitations": PAGES[:n]}) for n in (1, 2)]
    script = {method: [first, both]}
    async with Manager({"s": puppet(script)}, on_elicit=elicit) as manager:
        server = manager["s"]
        verbs = {
            "tools/call": lambda: server.invoke_tool("sin"),
            "resources/read": lambda: server.read_resource("test://a"),
            "prompts/get": lambda: server.get_prompt("p"),
        }
        with pytest.raises(ReplyError):
            await verbs[method]()
        made = [m for m in await journal(server, method) if m["params"].get("name") != "journal"]
        assert len(made) == 3
    assert shown == ["a", "b"]


@pytest.mark.parametrize(
    "data", [None, [], "x", {}, {"elicitations": 5}, {"elicitations": [1, {}]}]
)
async def test_a_refusal_that_names_no_page_is_a_refusal(data: Any) -> None:
    script = {"tools/call": [refusal(-32042, data=data)]}
    async with Manager({"s": puppet(script)}, on_elicit=nobody) as manager:
        with pytest.raises(ReplyError) as caught:
            await manager["s"].invoke_tool("sin")
        assert (caught.value.code, caught.value.data, caught.value.wants) == (-32042, data, {})


async def test_a_stateless_server_has_no_such_refusal() -> None:
    script = {"tools/call": [refusal(-32042, data={"elicitations": PAGES})]}
    async with Manager({"s": puppet(script, era="stateless")}, on_elicit=nobody) as manager:
        with pytest.raises(ReplyError) as caught:
            await manager["s"].invoke_tool("sin")
        assert caught.value.wants == {}


async def test_a_capability_that_a_server_misses_is_told_to_the_caller_and_never_invented() -> None:
    data = {"requiredCapabilities": {"elicitation": {"url": {}}, "x": {}}}
    script = {"tools/call": [refusal(-32021, "need elicitation", data=data)]}
    async with Manager({"s": puppet(script, era="stateless")}, on_sample=sample) as manager:
        server = manager["s"]
        with pytest.raises(ReplyError) as caught:
            await server.invoke_tool("sin")
        assert (caught.value.code, caught.value.data) == (-32021, data)
        calls = [m["params"] for m in await journal(server, "tools/call")]
        assert [one["name"] for one in calls] == ["sin", "journal"]
        key = "io.modelcontextprotocol/clientCapabilities"
        assert [one["_meta"][key] for one in calls] == [{"sampling": {}}] * 2
