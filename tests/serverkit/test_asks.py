"""One piece of tool code that asks: requests in the one era, rounds in the other."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import anyio
import pytest
from msgspec import Meta

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.serverkit import (
    AskFailed,
    AskRefused,
    AskTimedOut,
    Frame,
    Schema,
    Server,
    asks,
)
from mcpclient.serverkit.forms import Form
from tests.conftest import eventually
from tests.serverkit.talking import ERAS, HANDSHAKE, STATELESS, Talk, content


class Person(Schema):
    """Who somebody is."""

    name: str
    age: Annotated[int, Meta(ge=0, title="Age")] = 30
    mood: Literal["good", "bad"] = "good"


FORM = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "age": {"type": "integer", "minimum": 0, "title": "Age", "default": 30},
        "mood": {"type": "string", "enum": ["bad", "good"], "default": "good"},
    },
    "required": ["name"],
}


CAREFUL = b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"careful"}}'


def server(**options: Any) -> Server:
    """Return a server whose tools ask."""
    server = Server("a", "1", **options)

    @server.tool
    async def person(frame: Frame) -> dict[str, Any]:
        answer = await frame.elicit("Who are you?", Person)
        found = answer.content
        return {
            "action": answer.action,
            "name": found.name if found else None,
            "age": found.age if found else None,
            "raw": answer.raw,
        }

    @server.tool
    async def model(frame: Frame) -> str:
        answer = await frame.sample(
            "Say hi.",
            max_tokens=50,
            system="Be brief.",
            hints=["small", "large"],
            cost=0.5,
            speed=1,
            temperature=0.1,
            stop=["."],
        )
        return f"{answer.role}/{answer.model}/{answer.stop_reason}: {answer.text}"

    @server.tool
    async def roots(frame: Frame) -> list[str]:
        return [f"{root.name}={root.uri}" for root in await frame.roots()]

    @server.tool
    async def page(frame: Frame) -> str:
        return (await frame.elicit_url("Agree?", "https://example.com/x")).action

    @server.tool
    async def three(frame: Frame) -> list[str]:
        found = await frame.ask_all(
            who=asks.elicit("Who?", Person), where=asks.roots(), what=asks.sample("What?")
        )
        return [found["who"].content.name, found["where"][0].uri, found["what"].text]

    @server.tool
    async def chain(frame: Frame) -> str:
        first = await frame.elicit("First?", Person)
        second = await frame.elicit(f"After {first.content.name}?", Person)
        return f"{first.content.name}, {second.content.name}"

    @server.tool
    async def careful(frame: Frame) -> str:
        try:
            return (await frame.sample("Hi")).text
        except AskFailed as problem:
            return f"{type(problem).__name__}: {problem}"

    return server


def answer(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Answer as a good client would."""
    if method == "sampling/createMessage":
        content = {"type": "text", "text": "hi"}
        return {"role": "assistant", "content": content, "model": "m", "stopReason": "endTurn"}
    if method == "roots/list":
        return {"roots": [{"uri": "file:///w", "name": "work"}]}
    if params.get("mode") == "url":
        return {"action": "accept"}
    return {"action": "accept", "content": {"name": params["message"], "age": 7}}


# -- the same code in both eras ------------------------------------------------------------


@pytest.mark.parametrize("version", ERAS)
async def test_a_person_is_asked_by_a_form_and_the_answer_has_its_type(version: str) -> None:
    async with Talk(server(), version, answers=answer) as talk:
        found = await talk.call("person")
        assert found["structuredContent"] == {
            "action": "accept",
            "name": "Who are you?",
            "age": 7,
            "raw": {"name": "Who are you?", "age": 7},
        }
        [asked] = talk.asked
        assert asked["method"] == "elicitation/create"
        expected = {"mode": "form", "message": "Who are you?", "requestedSchema": FORM}
        assert asked["params"] == expected


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_may_decline_or_cancel(version: str, action: str) -> None:
    async with Talk(server(), version, answers=lambda *_: {"action": action}) as talk:
        found = (await talk.call("person"))["structuredContent"]
        assert found == {"action": action, "name": None, "age": None, "raw": {}}


@pytest.mark.parametrize("version", ERAS)
async def test_a_model_is_asked_with_preferences_prompt_and_limit(version: str) -> None:
    async with Talk(server(), version, answers=answer) as talk:
        assert await talk.text("model") == "assistant/m/endTurn: hi"
        [asked] = talk.asked
        assert asked["params"] == {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Say hi."}}],
            "maxTokens": 50,
            "systemPrompt": "Be brief.",
            "modelPreferences": {
                "hints": [{"name": "small"}, {"name": "large"}],
                "costPriority": 0.5,
                "speedPriority": 1,
            },
            "temperature": 0.1,
            "stopSequences": ["."],
        }


@pytest.mark.parametrize("version", ERAS)
async def test_roots_and_pages_are_asked_for(version: str) -> None:
    async with Talk(server(), version, answers=answer) as talk:
        assert content(await talk.call("roots")) == ['["work=file:///w"]']
        assert await talk.text("page") == "accept"
        params = talk.asked[1]["params"]
        # The name of a page is of the handshake era.
        assert ("elicitationId" in params) is (version == HANDSHAKE)
        assert (params["mode"], params["url"]) == ("url", "https://example.com/x")


@pytest.mark.parametrize("version", ERAS)
async def test_several_things_are_asked_at_once(version: str) -> None:
    async with Talk(server(), version, answers=answer) as talk:
        assert content(await talk.call("three")) == ['["Who?","file:///w","hi"]']
        assert len(talk.asked) == 3


@pytest.mark.parametrize("version", ERAS)
async def test_things_are_asked_one_after_the_other(version: str) -> None:
    async with Talk(server(), version, answers=answer) as talk:
        assert await talk.text("chain") == "First?, After First??"
        assert [one["params"]["message"] for one in talk.asked] == ["First?", "After First??"]


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("tool", "can", "needs"),
    [
        ("person", {}, {"elicitation": {"form": {}}}),
        ("person", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        ("page", {"elicitation": {}}, {"elicitation": {"url": {}}}),
        ("model", {"elicitation": {}}, {"sampling": {}}),
        ("roots", {"sampling": {}}, {"roots": {}}),
    ],
)
async def test_what_the_client_did_not_declare_is_an_error_at_once(
    version: str, tool: str, can: dict[str, Any], needs: dict[str, Any]
) -> None:
    async with Talk(server(), version, can=can, answers=answer) as talk:
        if version == STATELESS:
            error = await talk.error("tools/call", {"name": tool})
            assert error["code"] == -32021
            assert error["data"] == {"requiredCapabilities": needs}
        else:
            found = await talk.call(tool)
            assert found["isError"] is True
            assert content(found)[0].startswith("the client does not declare ")
        assert talk.asked == []


async def test_who_declares_elicitation_and_no_mode_means_forms() -> None:
    async with Talk(server(), can={"elicitation": {}}, answers=answer) as talk:
        assert (await talk.call("person"))["structuredContent"]["action"] == "accept"


async def test_older_versions_are_asked_in_their_own_words() -> None:
    async with Talk(server(), "2025-06-18", answers=answer) as talk:
        await talk.call("person")
        assert set(talk.asked[0]["params"]) == {"message", "requestedSchema"}


# -- answers that are none -----------------------------------------------------------------


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"action": "accept"}, "it was accepted without a content"),
        ({"action": "accept", "content": {"age": 1}}, "the field 'name' is missing"),
        ({"action": "accept", "content": {"name": 1}}, "the field 'name' must be text"),
        (
            {"action": "accept", "content": {"name": "a", "age": -1}},
            "the field 'age' must be at least 0",
        ),
        (
            {"action": "accept", "content": {"name": "a", "mood": "ugly"}},
            "the field 'mood' must be one of 'bad', 'good'",
        ),
        ({"action": "maybe"}, "the answer has no action"),
        ({}, "the answer has no action"),
    ],
)
async def test_an_answer_that_does_not_fit_is_a_failure_of_the_tool(
    version: str, given: dict[str, Any], problem: str
) -> None:
    async with Talk(server(), version, answers=lambda *_: given) as talk:
        found = await talk.call("person")
        assert found["isError"] is True
        assert content(found) == [f"elicitation/create: {problem}"]


async def test_a_refusal_can_be_caught_and_has_the_clients_words() -> None:
    def refuse(*_: Any) -> dict[str, Any]:
        return {"code": -1, "message": "the person said no", "data": 5}

    async with Talk(server(), answers=refuse) as talk:
        text = await talk.text("careful")
        assert text == (
            "AskRefused: sampling/createMessage: the client refused: [-1] the person said no"
        )
    assert (AskRefused("m", -1, "no", 5).code, AskRefused("m", -1, "no", 5).data) == (-1, 5)


async def test_a_client_that_does_not_answer_in_time_is_told_to_stop() -> None:
    kit = server(ask_timeout=0.05)
    async with Talk(kit) as talk:
        assert await talk.text("careful") == (
            "AskTimedOut: sampling/createMessage: no answer within 50 ms"
        )
        asked, cancelled = talk.sent
        assert cancelled["method"] == "notifications/cancelled"
        assert cancelled["params"] == {"requestId": asked["id"], "reason": "timed out"}
        # What comes late is for nobody.
        late = b'{"jsonrpc":"2.0","id":%d,"result":{}}' % asked["id"]
        assert await talk.line(late) is None
        assert issubclass(AskTimedOut, AskFailed)


async def test_a_question_ends_with_the_conversation() -> None:
    talk = await Talk(server()).__aenter__()
    async with anyio.create_task_group() as group:
        group.start_soon(talk.line, CAREFUL)
        await eventually(lambda: talk.sent)
        talk.session.close()
    assert len(talk.sent) == 1


async def test_cancelling_the_call_takes_the_question_back() -> None:
    talk = await Talk(server()).__aenter__()
    async with anyio.create_task_group() as group:
        group.start_soon(talk.line, CAREFUL)
        await eventually(lambda: talk.sent)
        group.cancel_scope.cancel()
    assert [one["method"] for one in talk.sent] == [
        "sampling/createMessage",
        "notifications/cancelled",
    ]


async def test_an_answer_to_nothing_is_ignored() -> None:
    async with Talk(server()) as talk:
        for line in (
            b'{"jsonrpc":"2.0","id":99,"result":{}}',
            b'{"jsonrpc":"2.0","id":"1","result":{}}',
            b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
        ):
            assert await talk.line(line) is None


async def test_outside_of_a_request_the_stateless_era_has_nobody_to_ask() -> None:
    kit = server()

    @kit.prompt
    async def fine(frame: Frame) -> str:
        return str(await frame.roots())

    @kit.completion("prompts", "fine")
    async def suggest(frame: Frame) -> list[str]:
        await frame.roots()
        return []

    async with Talk(kit, STATELESS) as talk:
        ref = {"type": "ref/prompt", "name": "fine"}
        params = {"ref": ref, "argument": {"name": "a", "value": ""}}
        error = await talk.error("completion/complete", params)
        assert error["code"] == -32603
        assert "only tools, prompts and reads can ask" in error["message"]


# -- what cannot be asked ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: asks.sample([]), "sampling needs messages"),
        (lambda: asks.sample([{"role": "system", "content": {}}]), "sampling needs messages"),
        (lambda: asks.sample("a", max_tokens=0), "max_tokens must be at least 1, not 0"),
        (lambda: asks.sample("a", cost=2), "cost must be from 0 to 1, not 2"),
        (lambda: asks.elicit_url("a", "http://example.com"), "a page must be https"),
        (lambda: asks.elicit_url("a", "javascript:alert(1)"), "a page must be https"),
        (lambda: asks.elicit_url("a", "file:///etc/passwd"), "a page must be https"),
        (lambda: asks.elicit("a", {"type": "string"}), "a form is an object"),
    ],
)
def test_what_no_client_could_answer_is_refused_before_anything_is_sent(
    make: Any, problem: str
) -> None:
    with pytest.raises(LocalProtocolError, match=problem):
        make()


def test_a_model_that_may_use_tools_needs_a_client_that_can() -> None:
    assert asks.sample("a", tools=[{"name": "t"}]).needs == ("sampling", "tools")
    assert asks.sample("a").needs == ("sampling",)


class Nested(Schema):
    """No form: it holds another one."""

    person: Person


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        ({"type": "object"}, "must be a string, number, integer, boolean or a choice"),
        ({"type": "null"}, "must be a string, number, integer, boolean or a choice"),
        ({}, "must be a string, number, integer, boolean or a choice"),
        ("text", "must be a string, number, integer, boolean or a choice"),
        ({"type": "array"}, "a list must name what can be chosen"),
        ({"type": "array", "items": {"type": "string"}}, "a list must name what can be chosen"),
        ({"type": "string", "format": "hostname"}, "a format must be one of email, uri, date"),
        ({"type": "integer", "default": "1"}, "its default must be a number"),
        ({"type": "string", "enum": ["a"], "default": "b"}, "its default must be one of 'a'"),
    ],
)
def test_a_form_must_be_flat_and_of_known_fields(field: Any, problem: str) -> None:
    with pytest.raises(LocalProtocolError, match=problem):
        Form({"type": "object", "properties": {"x": field}})


def test_a_form_cannot_hold_another_one() -> None:
    with pytest.raises(LocalProtocolError, match="must be a string, number, integer, boolean"):
        Form(Nested)


@pytest.mark.parametrize(
    ("field", "good", "bad", "problem"),
    [
        ({"type": "string", "format": "email"}, "a@b.c", "a@", "must be an e-mail address"),
        ({"type": "string", "format": "uri"}, "x:y", "no uri", "must be a URI"),
        ({"type": "string", "format": "date"}, "2026-01-31", "2026-02-31", "must be a date"),
        (
            {"type": "string", "format": "date-time"},
            "2026-01-31T10:00:00Z",
            "yesterday",
            "must be a date-time",
        ),
        ({"type": "string", "minLength": 2}, "ab", "a", "must have at least 2 characters"),
        ({"type": "string", "maxLength": 2}, "ab", "abc", "must have at most 2 characters"),
        ({"type": "number", "maximum": 2}, 2, 2.5, "must be at most 2"),
        ({"type": "number"}, 2.5, True, "must be a number"),
        ({"type": "integer"}, 2.0, 2.5, "must be a whole number"),
        ({"type": "boolean"}, True, 1, "must be true or false"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, "a", "A", "must be one of"),
        (
            {"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1},
            ["b"],
            ["c"],
            "must hold only 'a', 'b'",
        ),
        (
            {"type": "array", "items": {"anyOf": [{"const": "a"}]}, "minItems": 1},
            ["a"],
            [],
            "must have at least 1 options",
        ),
        ({"type": "array", "items": {"enum": ["a"]}}, [], "a", "must be a list"),
    ],
)
def test_an_answer_is_checked_field_by_field(
    field: dict[str, Any], good: Any, bad: Any, problem: str
) -> None:
    form = Form({"type": "object", "properties": {"x": field}})
    assert form.read({"x": good, "more": 1}) == ({"x": good}, "")
    found, said = form.read({"x": bad})
    assert found is None
    assert said.startswith(f"the field 'x' {problem}")


@pytest.mark.parametrize("version", ERAS)
async def test_a_key_is_good_for_one_question(version: str) -> None:
    kit = server()

    @kit.tool
    async def twice(frame: Frame) -> str:
        await frame.elicit("a", Person, key="k")
        await frame.elicit("b", Person, key="k")
        return "never"

    async with Talk(kit, version, answers=answer) as talk:
        found = await talk.call("twice")
        assert content(found) == ["the key 'k' is used for two questions"]
