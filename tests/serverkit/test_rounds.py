"""Rounds of the stateless era: what travels with the client, and what a worker takes back."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpclient.serverkit import Frame, KitLimits, Peer, Schema, Server, asks
from tests.serverkit.talking import STATELESS, Talk, content


class Name(Schema):
    """A form."""

    name: str


class Clock:
    """A clock that one may turn."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def server(runs: list[str] | None = None, **options: Any) -> Server:
    """Return a server whose tools ask; ``runs`` notes each run."""
    server = Server("a", "1", **options)
    noted = runs if runs is not None else []

    @server.tool
    async def two(frame: Frame, what: str = "x") -> str:
        noted.append("begun")
        drawn = await frame.once("drawn", lambda: f"drawn {len(noted)}")
        first = await frame.elicit("First?", Name, key="first")
        noted.append(f"first is {first.content.name}")
        second = await frame.elicit("Second?", Name, key="second")
        return f"{drawn}: {first.content.name}, {second.content.name}, {what}"

    @server.tool
    async def group(frame: Frame) -> str:
        found: dict[str, Any] = {}

        async def one(key: str) -> None:
            found[key] = (await frame.elicit(f"{key}?", Name, key=key)).content.name

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one, "a")
            tasks.start_soon(one, "b")
        return f"{found['a']} {found['b']}"

    @server.tool
    async def guarded(frame: Frame) -> str:
        try:
            return str((await frame.elicit("Name?", Name, key="n")).content.name)
        except Exception as problem:  # what ends a run for another round is no Exception
            return f"swallowed {problem!r}"

    @server.resource("x://asks")
    async def asking(frame: Frame) -> str:
        return str((await frame.elicit("Name?", Name)).content.name)

    @server.tool
    async def endless(frame: Frame) -> str:
        for number in range(100):
            await frame.ask(asks.elicit("Again?", Name), key=f"k{number}")
        return "never"

    return server


def accepted(name: str) -> dict[str, Any]:
    """Return an answer."""
    return {"action": "accept", "content": {"name": name}}


def other_first(text: str) -> str:
    """Return a text whose first character is another one."""
    return ("B" if text[0] == "A" else "A") + text[1:]


async def test_the_handler_runs_anew_in_each_round_with_what_was_answered() -> None:
    runs: list[str] = []
    async with Talk(server(runs), STATELESS) as talk:
        params: dict[str, Any] = {"name": "two", "arguments": {"what": "y"}}
        one = await talk.result("tools/call", params)
        assert list(one["inputRequests"]) == ["first"]
        params |= {"inputResponses": {"first": accepted("A")}, "requestState": one["requestState"]}
        two = await talk.result("tools/call", params)
        assert list(two["inputRequests"]) == ["second"]
        assert two["requestState"] != one["requestState"]
        params |= {"inputResponses": {"second": accepted("B")}, "requestState": two["requestState"]}
        three = await talk.result("tools/call", params)
        # What was made once is the same in every run.
        assert content(three) == ["drawn 1: A, B, y"]
        assert runs == ["begun", "begun", "first is A", "begun", "first is A"]


async def test_any_worker_that_knows_the_secret_can_go_on() -> None:
    secret = b"k" * 32
    first = Talk(server(secret=secret), STATELESS)
    params: dict[str, Any] = {"name": "two"}
    one = await first.result("tools/call", params)
    params |= {"inputResponses": {"first": accepted("A")}, "requestState": one["requestState"]}
    other = Talk(server(secret=secret), STATELESS)
    assert list((await other.result("tools/call", params))["inputRequests"]) == ["second"]
    stranger = Talk(server(), STATELESS)
    error = await stranger.error("tools/call", params)
    assert error == {
        "code": -32602,
        "message": "Invalid params: requestState is not one that was given for this request",
    }


@pytest.mark.parametrize(
    "change",
    [
        lambda params: params | {"requestState": params["requestState"] + "-TAMPERED"},
        lambda params: params | {"requestState": params["requestState"][:-2]},
        lambda params: params | {"requestState": other_first(params["requestState"])},
        lambda params: params | {"requestState": ""},
        lambda params: params | {"requestState": "!"},
        lambda params: params | {"requestState": "A" * 400_000},
        lambda params: params | {"requestState": 5},
        lambda params: params | {"requestState": "é"},
        lambda params: params | {"arguments": {"what": "other"}},
        lambda params: params | {"name": "group"},
        lambda params: params | {"inputResponses": []},
        lambda params: params | {"inputResponses": None},
        lambda params: params | {"inputResponses": {"first": 5}},
    ],
)
async def test_what_was_tampered_with_or_is_of_another_request_is_refused(change: Any) -> None:
    async with Talk(server(), STATELESS) as talk:
        params: dict[str, Any] = {"name": "two", "arguments": {}}
        one = await talk.result("tools/call", params)
        params |= {"inputResponses": {"first": accepted("A")}, "requestState": one["requestState"]}
        error = await talk.error("tools/call", change(params))
        assert error["code"] == -32602
        assert error["message"].startswith("Invalid params: ")
        # And the honest one is still good.
        assert "inputRequests" in await talk.result("tools/call", params)


async def test_the_state_is_good_for_who_it_was_given_to() -> None:
    async with Talk(server(), STATELESS) as talk:
        params: dict[str, Any] = {"name": "two"}
        ada, bob = Peer(subject="ada"), Peer(subject="bob")
        one = await talk.result("tools/call", params, peer=ada)
        params |= {"inputResponses": {"first": accepted("A")}, "requestState": one["requestState"]}
        assert (await talk.error("tools/call", params, peer=bob))["code"] == -32602
        assert "inputRequests" in await talk.result("tools/call", params, peer=ada)


async def test_the_state_expires() -> None:
    clock = Clock()
    async with Talk(server(clock=clock, limits=KitLimits(state_ttl=60)), STATELESS) as talk:
        params: dict[str, Any] = {"name": "two"}
        one = await talk.result("tools/call", params)
        params |= {"inputResponses": {"first": accepted("A")}, "requestState": one["requestState"]}
        clock.now += 60
        assert "inputRequests" in await talk.result("tools/call", params)
        clock.now += 1
        error = await talk.error("tools/call", params)
        assert error["message"] == "Invalid params: requestState has expired; begin anew"


async def test_rounds_are_bounded() -> None:
    kit = server(limits=KitLimits(rounds=3))
    async with Talk(kit, STATELESS, answers=lambda *_: accepted("x")) as talk:
        params: dict[str, Any] = {"name": "endless"}
        for number in range(3):
            found = await talk.result("tools/call", params)
            params["requestState"] = found["requestState"]
            params["inputResponses"] = {f"k{number}": accepted("x")}
        error = await talk.error("tools/call", params)
        assert error == {
            "code": -32602,
            "message": "the request was repeated more than 3 times",
        }


async def test_what_is_remembered_is_bounded() -> None:
    async with Talk(server(limits=KitLimits(state=1000)), STATELESS) as talk:
        params: dict[str, Any] = {"name": "two"}
        found = await talk.result("tools/call", params)
        params["requestState"] = found["requestState"]
        params["inputResponses"] = {"first": accepted("x" * 2000)}
        error = await talk.error("tools/call", params)
        assert error["code"] == -32603
        assert error["message"].endswith("is over 1000 bytes (KitLimits.state)")


async def test_an_answer_that_is_missing_is_asked_for_again_and_one_too_many_is_dropped() -> None:
    async with Talk(server(), STATELESS) as talk:
        params: dict[str, Any] = {"name": "guarded", "inputResponses": {"wrong": accepted("A")}}
        found = await talk.result("tools/call", params)
        assert list(found["inputRequests"]) == ["n"]
        params["inputResponses"] = {"n": accepted("A"), "more": {"action": "accept"}}
        # Even without the state: there was nothing in it yet.
        assert content(await talk.result("tools/call", params)) == ["A"]


async def test_what_ends_a_run_is_not_swallowed_by_an_except() -> None:
    async with Talk(server(), STATELESS, answers=lambda *_: accepted("A")) as talk:
        assert await talk.text("guarded") == "A"


async def test_questions_of_a_task_group_are_one_round() -> None:
    async with Talk(server(), STATELESS, answers=lambda *_: accepted("A")) as talk:
        assert await talk.text("group") == "A A"


async def test_a_task_group_that_asks_and_fails_is_answered_with_an_error() -> None:
    kit = Server("a", "1")

    @kit.tool
    async def both(frame: Frame) -> str:
        async def fail() -> None:
            raise ValueError("secret")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail)
            tasks.start_soon(frame.elicit, "Name?", Name)
        return "never"

    async with Talk(kit, STATELESS) as talk:
        error = await talk.error("tools/call", {"name": "both"})
        assert error["code"] == -32603
        assert "secret" not in error["message"]


async def test_a_resource_may_ask_and_its_answer_may_not_be_kept_as_a_question() -> None:
    async with Talk(server(), STATELESS, answers=lambda *_: accepted("A")) as talk:
        found = await talk.result("resources/read", {"uri": "x://asks"})
        assert found["resultType"] == "input_required"
        assert "ttlMs" not in found
        found = await talk.rounds("resources/read", {"uri": "x://asks"})
        assert found["contents"][0]["text"] == "A"


async def test_in_the_handshake_era_the_handler_runs_once() -> None:
    runs: list[str] = []
    async with Talk(server(runs), answers=lambda *_: accepted("A")) as talk:
        assert await talk.text("two") == "drawn 1: A, A, x"
        assert runs == ["begun", "first is A"]
