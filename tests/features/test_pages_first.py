"""Refusals that a person can mend, or nobody: -32042 of the one era, -32021 of the other."""

from __future__ import annotations

from typing import Any

import pytest

from mcpclient import Manager, ReplyError, Server
from tests.conftest import spec
from tests.features.helpers import journal, puppet, refusal
from tests.features.rounds import nobody, sample, told


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
