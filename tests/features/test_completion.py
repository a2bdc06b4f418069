"""Completion: what is asked in which version, and what odd servers answer."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallTimedOut,
    Completion,
    LocalProtocolError,
    Manager,
    RemoteProtocolError,
    ReplyError,
    Server,
)
from mcpclient.protocol.methods import COMPLETE
from tests.conftest import spec
from tests.features.helpers import hold, journal, puppet, refusal, release, result
from tests.protocol.schemas import check_sent, needs_spec

GREET = {"type": "ref/prompt", "name": "greet"}
ITEM = {"type": "ref/resource", "uri": "test://item/{name}"}
NAMES = ["Ada", "Alan", "Barbara", "Grace"]
DECLARED: dict[str, Any] = {"tools": {}, "completions": {}}
# Whether the arguments that are chosen already may be told.
CONTEXT = {
    "2024-11-05": False,
    "2025-03-26": False,
    "2025-06-18": True,
    "2025-11-25": True,
    "2026-07-28": True,
}


async def good(manager: Manager, era: str) -> Server:
    """Return a good server of an era or a version."""
    name = "good_stateless" if era in ("stateless", "2026-07-28") else "good_handshake"
    return await manager.add("s", spec(name, era=era))


async def asked(server: Server) -> list[dict[str, Any]]:
    """Return the params of the completions that a server was asked for, without ``_meta``."""
    found = [dict(one["params"]) for one in await journal(server, COMPLETE)]
    for params in found:
        params.pop("_meta", None)
    return found


# -- what is asked -------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_a_prompt_is_completed_whichever_way_it_is_named(manager: Manager, era: str) -> None:
    server = await good(manager, era)
    listed = next(one for one in await server.list_prompts() if one.name == "greet")
    for ref in (listed, "greet", GREET, {**GREET, "title": "Greet", "x": [1]}):
        found = await server.complete(ref, "name", "A")
        assert found.values == ["Ada", "Alan"]
        assert (found.total, found.has_more) == (2, False)
        assert found.raw["completion"] == {"values": ["Ada", "Alan"], "total": 2, "hasMore": False}
    assert await asked(server) == [{"ref": GREET, "argument": {"name": "name", "value": "A"}}] * 4


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_a_template_is_completed_whichever_way_it_is_named(
    manager: Manager, era: str
) -> None:
    server = await good(manager, era)
    [listed] = await server.list_resource_templates()
    for ref in (listed, "test://item/{name}", ITEM):
        assert (await server.complete(ref, "name", "")).values == ["one", "two", "three"]
    assert await asked(server) == [{"ref": ITEM, "argument": {"name": "name", "value": ""}}] * 3


async def test_text_is_a_uri_if_it_looks_like_one_and_else_a_prompts_name(
    manager: Manager,
) -> None:
    script = {COMPLETE: [result(completion={"values": []})]}
    server = await manager.add("s", puppet(script, capabilities=DECLARED))
    prompts, uris = ["plain words", "", "a:b"], ["item:{name}", "{+uri}", "file:///a.txt"]
    for text in [*prompts, *uris]:
        await server.complete(text, "name", "")
    assert [params["ref"] for params in await asked(server)] == [
        *({"type": "ref/prompt", "name": name} for name in prompts),
        *({"type": "ref/resource", "uri": uri} for uri in uris),
    ]


@pytest.mark.parametrize(("version", "told"), CONTEXT.items())
async def test_chosen_arguments_are_told_only_where_the_version_knows_them(
    manager: Manager, version: str, told: bool
) -> None:
    server = await good(manager, version)
    assert server.protocol_version is None
    found = await server.complete("greet", "name", "G", context={"language": "en"})
    assert found.values == ["Grace"]
    assert server.protocol_version == version
    await server.complete("greet", "name", "G", context={})
    bare = {"ref": GREET, "argument": {"name": "name", "value": "G"}}
    full = {**bare, "context": {"arguments": {"language": "en"}}}
    assert await asked(server) == [full if told else bare, bare]


@needs_spec
@pytest.mark.parametrize("version", CONTEXT)
async def test_what_is_asked_is_as_the_schema_of_the_version_says(
    manager: Manager, version: str
) -> None:
    server = await good(manager, version)
    [template] = await server.list_resource_templates()
    await server.complete(template, "name", "o", context={"other": "x"})
    await server.complete("greet", "name", "")
    sent = [check_sent(version, {"jsonrpc": "2.0", **one}) for one in await journal(server)]
    assert sent.count(COMPLETE) == 2


@pytest.mark.parametrize(
    ("ref", "argument", "value", "context", "problem"),
    [
        (3, "name", "", None, "what is completed must be a prompt, a resource template"),
        (None, "name", "", None, "what is completed must be a prompt"),
        ({}, "name", "", None, "what is completed must be a prompt"),
        ({"type": "ref/tool", "name": "a"}, "name", "", None, "what is completed must be"),
        ({"type": ["ref/prompt"], "name": "a"}, "name", "", None, "what is completed must be"),
        ({"type": "ref/prompt", "uri": "a"}, "name", "", None, "what is completed must be"),
        ({"type": "ref/resource", "uri": 3}, "name", "", None, "what is completed must be"),
        ("greet", 3, "", None, "the argument's name must be text, not int; write it as a string"),
        ("greet", "name", None, None, "the value must be text, not NoneType; write it as a string"),
        ("greet", "name", "", {"n": 1}, "'n' in the context must be text, not int; write it as"),
        ("greet", "name", "", {1: "n"}, "a name in the context must be text, not int; write it"),
    ],
)
async def test_what_cannot_be_meant_is_refused_before_a_server_is_started(
    manager: Manager, ref: Any, argument: Any, value: Any, context: Any, problem: str
) -> None:
    server = await manager.add("s", spec("good_handshake"))
    with pytest.raises(LocalProtocolError) as caught:
        await server.complete(ref, argument, value, context=context)
    assert str(caught.value).startswith(problem)
    assert server.state == "idle"


# -- whether anything is asked -------------------------------------------------------------


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_a_server_that_does_not_declare_completions_is_not_asked(
    manager: Manager, era: str
) -> None:
    script = {COMPLETE: [result(completion={"values": ["never asked"]})]}
    server = await manager.add("s", puppet(script, era=era, capabilities={"tools": {}}))
    found = await server.complete("greet", "name", "A")
    assert (found.values, found.total, found.has_more) == ([], None, False)
    assert found == Completion()
    assert found.raw == {"completion": {"values": []}}
    assert await asked(server) == []


@pytest.mark.parametrize("era", ["handshake", "stateless"])
@pytest.mark.parametrize("capabilities", [{}, None])
async def test_a_server_that_declares_nothing_at_all_is_asked(
    manager: Manager, era: str, capabilities: Any
) -> None:
    script = {COMPLETE: [result(completion={"values": ["yes"]})]}
    server = await manager.add("s", puppet(script, era=era, capabilities=capabilities))
    assert (await server.complete("greet", "name", "")).values == ["yes"]


async def test_in_the_oldest_version_there_is_nothing_to_declare(manager: Manager) -> None:
    server = await good(manager, "2024-11-05")
    assert (await server.complete("greet", "name", "B")).values == ["Barbara"]
    assert "completions" not in server.capabilities
    assert server.capabilities


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
async def test_a_server_without_the_method_completes_nothing(
    manager: Manager, version: str
) -> None:
    opening = result(protocolVersion=version, capabilities=DECLARED, serverInfo={})
    script = {"initialize": [opening], COMPLETE: [refusal(-32601, "Method not found")]}
    server = await manager.add("s", puppet(script))
    assert await server.complete("greet", "name", "A") == Completion()
    assert server.protocol_version == version
    assert len(await asked(server)) == 1


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_any_other_refusal_is_raised(manager: Manager, era: str) -> None:
    server = await good(manager, era)
    with pytest.raises(ReplyError) as caught:
        await server.complete("plain", "name", "A")
    assert (caught.value.code, caught.value.method) == (-32602, COMPLETE)
    assert "nothing to complete there" in str(caught.value)


# -- odd answers ---------------------------------------------------------------------------

MANY = [f"value {number}" for number in range(250)]


@pytest.mark.parametrize(
    ("answer", "values", "total", "has_more"),
    [
        ({}, [], None, False),
        ({"completion": None}, [], None, False),
        ({"completion": []}, [], None, False),
        ({"completion": {}}, [], None, False),
        ({"completion": {"values": None, "total": 7, "hasMore": True}}, [], 7, True),
        ({"completion": {"values": "text"}}, [], None, False),
        ({"completion": {"values": ["a", 1, None, ["b"], {}, ""]}}, ["a", ""], None, False),
        ({"completion": {"values": MANY, "total": 300, "hasMore": True}}, MANY, 300, True),
        ({"completion": {"values": ["a"], "total": 0}}, ["a"], 0, False),
        ({"completion": {"values": ["a"], "total": 2.0, "hasMore": 1}}, ["a"], 2, False),
        ({"completion": {"values": ["a"], "total": 2.5, "hasMore": "yes"}}, ["a"], None, False),
        ({"completion": {"values": ["a"], "total": True, "hasMore": None}}, ["a"], None, False),
        ({"completion": {"values": ["a"], "total": -1}}, ["a"], None, False),
        ({"completion": {"values": ["a"], "total": "9"}, "more": 1}, ["a"], None, False),
    ],
)
def test_what_is_missing_or_odd_in_an_answer_costs_nothing_else(
    answer: Any, values: list[str], total: int | None, has_more: bool
) -> None:
    found = Completion(json.dumps(answer).encode())
    assert found.values == values
    assert (found.total, found.has_more) == (total, has_more)
    assert type(found.total) in (int, type(None))
    assert found.raw == answer


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_odd_answers_arrive_as_what_is_left_of_them(manager: Manager, era: str) -> None:
    odd = [{}, {"completion": {"values": [*MANY, 3], "hasMore": True}}]
    script = {COMPLETE: [{"result": answer} for answer in [*odd, [], "text", None]]}
    server = await manager.add("s", puppet(script, era=era, capabilities=DECLARED))
    found = await server.complete("greet", "name", "")
    assert (found.values, found.total, found.has_more) == ([], None, False)
    found = await server.complete("greet", "name", "")
    assert (found.values, found.total, found.has_more) == (MANY, None, True)
    for _ in range(3):
        # What is no object at all is the server's fault.
        with pytest.raises(RemoteProtocolError, match="has an unexpected shape"):
            await server.complete("greet", "name", "")


def test_a_completion_says_what_it_is() -> None:
    assert repr(Completion()) == "Completion([], total=None)"
    told = Completion(b'{"completion":{"values":["a"],"total":3,"hasMore":true}}')
    assert repr(told) == "Completion(['a'], total=3, has_more=True)"


# -- like every verb -----------------------------------------------------------------------


async def test_a_completion_times_out_and_the_server_is_told(manager: Manager) -> None:
    server = await manager.add("s", puppet(capabilities=DECLARED))
    await hold(server, COMPLETE)
    with pytest.raises(CallTimedOut) as caught:
        await server.complete("greet", "name", "A", timeout=0.05)
    assert caught.value.method == COMPLETE
    [request] = await journal(server, COMPLETE)
    [cancel] = await journal(server, "notifications/cancelled")
    assert cancel["params"]["requestId"] == request["id"]
    await release(server, COMPLETE, **result(completion={"values": ["too late"]}))


async def test_it_is_asked_once_more_if_the_server_died_and_that_is_wanted(
    manager: Manager,
) -> None:
    script = {COMPLETE: [result(completion={"values": ["a"]})]}
    server = await manager.add("s", puppet(script, capabilities=DECLARED, resend="safe"))
    await hold(server, COMPLETE)
    found: list[Completion] = []

    async def ask() -> None:
        found.append(await server.complete("greet", "name", ""))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        while not await asked(server):
            pass
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)
    assert [one.values for one in found] == [["a"]]
    assert server.generation == 2
