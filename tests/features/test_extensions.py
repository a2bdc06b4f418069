"""Extensions: off unless opted in, told with every request, their results given as they come."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpclient import Extension, Manager, RemoteProtocolError
from mcpclient.protocol.extensions import TASKS, checked, kinds_of, settings_of
from tests.conftest import spec
from tests.features.helpers import journal, puppet, result
from tests.protocol.schemas import check_sent, needs_spec
from tests.protocol.test_schemas import copied, sent

MODERN = "2026-07-28"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
MINE = "com.example/mine"
ALIEN = {"resultType": "alien", "answer": [1, None], "content": [{"type": "text", "text": "no"}]}


def alien(**answers: Any) -> Any:
    """Return the spec of a stateless puppet whose tool answers by a kind of its own."""
    capabilities = {
        "tools": {},
        "resources": {},
        "prompts": {},
        "extensions": {MINE: {}, TASKS: {}},
    }
    script = {
        "tools/call": [result(**ALIEN)],
        **{method.replace("_", "/"): one for method, one in answers.items()},
    }
    return puppet(script, era="stateless", capabilities=capabilities)


# -- ids and settings ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "id",
    [
        "com.example/a",
        "com.example/a-b_c.d",
        "example/A1",
        "com.ex-ample.sub/1",
        "io.github.someone/x",
        "com.example.mcp/x",
        "x.y.modelcontextprotocol/x",
        TASKS,
    ],
)
def test_an_id_is_a_key_with_a_prefix(id: str) -> None:
    assert list(checked({id: {}})) == [id]


@pytest.mark.parametrize(
    "id",
    [
        "",
        "tasks",
        "/tasks",
        "com.example/",
        "com.example",
        "com.example/a/b",
        "com..example/a",
        ".com/a",
        "com./a",
        "1com/a",
        "com.1example/a",
        "com-/a",
        "-com/a",
        "com.example/-a",
        "com.example/a-",
        "com.example/a b",
        "com.example/ä",
        "com_x/a",
        "com.example/a\n",
        1,
        None,
    ],
)
def test_anything_else_is_none(id: Any) -> None:
    with pytest.raises(ValueError, match=r"an extension's id has a prefix"):
        Manager(extensions={id: {}})


@pytest.mark.parametrize(
    "id",
    [
        "io.modelcontextprotocol/other",
        "io.modelcontextprotocol/tasks-v2",
        "com.mcp/x",
        "com.mcp.tools/x",
        "mcp.example/x",
        "modelcontextprotocol/x",
        "dev.mcp/x",
    ],
)
def test_a_reserved_prefix_is_not_ours_to_use(id: str) -> None:
    with pytest.raises(ValueError, match="is reserved"):
        Manager(extensions={id: {}})


@pytest.mark.parametrize("settings", [None, 1, "x", [], [("a", 1)], True])
def test_settings_are_a_mapping(settings: Any) -> None:
    with pytest.raises(ValueError, match=f"the settings of {MINE} must be a mapping"):
        Manager(extensions={MINE: settings})


def test_settings_that_are_no_json_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match=f"the settings of {MINE} are no JSON"):
        Manager(extensions={MINE: {"a": object()}})


@pytest.mark.parametrize("kind", ["", "complete", "input_required", "task", 1])
def test_a_result_type_that_is_taken_cannot_be_added(kind: Any) -> None:
    with pytest.raises(ValueError, match="is no result type"):
        Manager(extensions={MINE: Extension(result_types=(kind,))})


def test_what_a_host_does_to_its_settings_afterwards_is_not_told() -> None:
    inner = {"list": [1]}
    mine = {"a": inner}
    found = checked({MINE: mine, TASKS: {}})
    inner["list"].append(2)
    mine["b"] = {}
    assert settings_of(found) == {MINE: {"a": {"list": [1]}}, TASKS: {}}


def test_the_kinds_are_those_of_the_extensions_that_are_on() -> None:
    assert kinds_of({}) == frozenset()
    assert kinds_of(checked({MINE: {}})) == frozenset()
    assert kinds_of(checked({TASKS: {}})) == {"task"}
    both = {TASKS: {}, MINE: Extension(result_types=("a", "b"))}
    assert kinds_of(checked(both)) == {"task", "a", "b"}


# -- what servers are told -------------------------------------------------------------------


async def test_nothing_is_told_of_unless_the_host_opted_in() -> None:
    async with Manager({"p": alien()}) as manager:
        await manager["p"].call_tool("echo", {"text": "a"})
        for message in await journal(manager["p"]):
            assert message["params"]["_meta"][CAPABILITIES] == {}


@pytest.mark.odd_frames("the schema's JSONValue has neither null nor fractions")
async def test_every_request_tells_of_all_extensions_and_their_settings() -> None:
    mine = Extension(settings={"depth": {"most": 3}}, result_types=("alien",))
    on = {MINE: mine, TASKS: {}, "com.example/other": {"list": [None, 1.5]}}
    async with Manager({"p": alien()}, extensions=on, roots=["/tmp"]) as manager:
        await manager["p"].call_tool("echo", {"text": "a"})
        await manager["p"].list_prompts()
        seen = set()
        for message in await journal(manager["p"]):
            seen.add(message["method"])
            assert message["params"]["_meta"][CAPABILITIES] == {
                "roots": {},
                "extensions": {
                    MINE: {"depth": {"most": 3}},
                    TASKS: {},
                    "com.example/other": {"list": [None, 1.5]},
                },
            }
        assert seen == {"server/discover", "tools/call", "prompts/list"}


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
async def test_the_handshake_era_is_never_told(version: str, tmp_path: Path) -> None:
    one = copied(tmp_path / "sent", spec("good_handshake", era=version))
    async with Manager({"s": one}, extensions={MINE: {"a": 1}, TASKS: {}}) as manager:
        assert (await manager["s"].invoke_tool("echo", {"text": "a"})).text == "a"
    assert "example" not in (tmp_path / "sent").read_text()
    assert sent(tmp_path / "sent")[0]["params"]["capabilities"] == {}


@needs_spec
async def test_what_is_told_is_as_the_schema_says(tmp_path: Path) -> None:
    one = copied(tmp_path / "sent", spec("good_stateless"))
    async with Manager({"s": one}, extensions={MINE: {"a": [1]}, TASKS: {}}) as manager:
        await manager["s"].invoke_tool("echo", {"text": "a"})
        await manager["s"].list_tools()
    messages = sent(tmp_path / "sent")
    assert [check_sent(MODERN, one) for one in messages] == [
        "server/discover",
        "tools/call",
        "tools/list",
    ]
    assert json.dumps({MINE: {"a": [1]}, TASKS: {}}) in json.dumps(messages[1])


# -- what servers tell -----------------------------------------------------------------------


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_what_a_server_declares_is_there_as_it_was_sent(era: str) -> None:
    declared = {MINE: {"a": [1, {"b": None}]}, "no-prefix": 3, TASKS: None, "x/y": {}}
    one = puppet(era=era, capabilities={"tools": {}, "extensions": declared})
    async with Manager({"p": one}) as manager:
        assert manager["p"].extensions == {}
        await manager["p"].start()
        assert manager["p"].extensions == declared
        assert (await manager["p"].call_tool("echo", {"text": "a"})).text == "a"


@pytest.mark.parametrize("declared", [None, [], "x", 1])
async def test_odd_declarations_are_none(declared: Any) -> None:
    one = puppet(era="stateless", capabilities={"tools": {}, "extensions": declared})
    async with Manager({"p": one}, extensions={TASKS: {}}) as manager:
        await manager["p"].start()
        assert manager["p"].extensions == {}
        assert (await manager["p"].call_tool("echo", {"text": "a"})).text == "a"


async def test_a_kind_of_result_that_is_on_reaches_the_host_as_it_came() -> None:
    on = {MINE: Extension(result_types=("alien",))}
    async with Manager({"p": alien()}, extensions=on) as manager:
        assert await manager["p"].request("tools/call", {"name": "sin"}) == ALIEN


async def test_it_comes_so_beside_tasks_and_rounds_too() -> None:
    on = {MINE: Extension(result_types=("alien",)), TASKS: {}}
    asks = result(resultType="input_required", inputRequests={"a": {"method": "roots/list"}})
    answers = {"tools_call": [asks, result(**ALIEN)]}
    async with Manager({"p": alien(**answers)}, extensions=on, roots=["/tmp"]) as manager:
        assert await manager["p"].request("tools/call", {"name": "sin"}) == ALIEN


async def test_a_verb_that_knows_what_it_gets_refuses_it() -> None:
    on = {MINE: Extension(result_types=("alien",)), TASKS: {}}
    answers = {
        "resources_read": [result(**ALIEN)],
        "prompts_get": [result(**ALIEN)],
        "prompts_list": [result(**ALIEN)],
    }
    async with Manager({"p": alien(**answers)}, extensions=on) as manager:
        server = manager["p"]
        for call in (
            server.invoke_tool("sin"),
            server.call_tool("sin"),
            server.start_tool("sin"),
            server.read_resource("test://a"),
            server.get_prompt("plain"),
            server.list_prompts(),
        ):
            with pytest.raises(RemoteProtocolError) as caught:
                await call
            assert "is of the kind 'alien', which an extension adds" in str(caught.value)
            assert "request() returns it as it is" in str(caught.value)


@pytest.mark.parametrize(
    "on", [{}, {MINE: {}}, {MINE: Extension(result_types=("other", "ALIEN"))}, {TASKS: {}}]
)
async def test_a_kind_that_is_not_on_makes_the_answer_invalid(on: Any) -> None:
    async with Manager({"p": alien()}, extensions=on) as manager:
        for call in (
            manager["p"].call_tool("sin"),
            manager["p"].request("tools/call", {"name": "sin"}),
        ):
            with pytest.raises(RemoteProtocolError, match="of the unknown kind 'alien'"):
                await call


@pytest.mark.parametrize("kind", [None, 1, ["alien"], {"alien": 1}, "", "Alien"])
async def test_odd_kinds_are_unknown_ones(kind: Any) -> None:
    on = {MINE: Extension(result_types=("alien",)), TASKS: {}}
    one = alien(tools_call=[result(**{**ALIEN, "resultType": kind})])
    async with Manager({"p": one}, extensions=on) as manager:
        with pytest.raises(RemoteProtocolError, match="of the unknown kind"):
            await manager["p"].call_tool("sin")


async def test_the_handshake_era_knows_no_kinds() -> None:
    on = {MINE: Extension(result_types=("alien",)), TASKS: {}}
    one = puppet({"tools/call": [result(**ALIEN)]})
    async with Manager({"p": one}, extensions=on) as manager:
        assert (await manager["p"].invoke_tool("sin")).text == "no"


async def test_notices_of_an_extension_are_heard_like_any_other() -> None:
    heard: list[Any] = []
    async with Manager({"p": alien()}, extensions={MINE: {}}, dispatch="manual") as manager:
        manager.on_notification(
            f"notifications/{MINE}", lambda server, params: heard.append(params)
        )
        server = manager["p"]
        say = {"method": f"notifications/{MINE}", "params": {"a": 1}}
        await server.notify("puppet/say", say)
        await server.call_tool("echo", {"text": "after it"})
        manager.tick()
        assert heard == [{"a": 1}]
