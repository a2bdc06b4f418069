"""Every frame that a server gets from us is as the published schema of its version says.

The frames are what real conversations sent, copied on the way from the client to the server.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec import structs

from mcpclient import CallTimedOut, Manager, ServerSpec
from mcpclient.protocol.eras import Identity, Terms
from mcpclient.protocol.session import Session
from mcpclient.protocol.versions import HANDSHAKE, STATELESS
from tests.conftest import spec
from tests.protocol.schemas import by_method, check, check_sent, definitions, needs_spec

pytestmark = needs_spec

MODERN = STATELESS[-1]
# What a verb may be asked to call, in both eras.
VERBS = {
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
}


def copied(path: Path, one: ServerSpec) -> ServerSpec:
    """Return a spec of the same server whose stdin is copied into a file."""
    script = 'tee "$0" | "$@"'
    return structs.replace(one, command="/bin/sh", args=["-c", script, str(path), *one.argv])


def sent(path: Path) -> list[dict[str, Any]]:
    """Return the messages in such a file, each of which must be one line of ASCII."""
    data = path.read_bytes()
    assert data.isascii()
    assert data.endswith(b"\n")
    lines = data.decode("ascii").splitlines()
    assert len(lines) == data.count(b"\n")
    return [json.loads(line) for line in lines]


def silent(progress: float, total: float | None, message: str | None) -> None:
    """Take progress and do nothing."""


async def every_verb(manager: Manager, name: str) -> None:
    """Ask a server for all that it can be asked for."""
    server = manager[name]
    assert (await server.invoke_tool("echo", {"text": "a\u2028b\ud83d"})).text.startswith("a")
    await server.call_tool("progress", {"n": 2}, on_progress=silent)
    await server.call_tool("fail", None)
    for listing in (
        server.list_tools,
        server.list_resources,
        server.list_resource_templates,
        server.list_prompts,
    ):
        assert await listing()
    await server.read_resource("test://a")
    await server.read_resource("test://b", on_progress=silent)
    await server.get_prompt("greet", {"name": "ü"})
    await server.get_prompt("plain")
    await server.request("tools/list")
    await server.request("tools/list", {}, on_progress=silent)
    await server.request("resources/list", {"_meta": {"vendor.example/key": 1}})
    with pytest.raises(CallTimedOut):
        await server.invoke_tool("slow", {"seconds": 30}, timeout=0.05)


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_a_server_of_the_handshake_era_gets_what_its_version_allows(
    version: str, tmp_path: Path
) -> None:
    path = tmp_path / "sent"
    one = copied(path, spec("good_handshake", "--pages", 1, era=version))
    async with Manager({"good": one}, client_name="tests \u2028") as manager:
        await every_verb(manager, "good")
        assert manager["good"].protocol_version == version
    messages = sent(path)
    methods = [check_sent(version, message) for message in messages]
    assert methods[:2] == ["initialize", "notifications/initialized"]
    assert messages[0]["params"]["protocolVersion"] == version
    assert methods[-1] == "notifications/cancelled"
    assert set(methods) >= VERBS
    assert [one["id"] for one in messages if "id" in one] == list(
        range(1, len(messages) - methods.count("notifications/cancelled"))
    )
    assert not any("params" in one and one["params"] is None for one in messages)
    assert {"cursor"} <= {key for one in messages for key in one.get("params", {})}


async def test_a_stateless_server_gets_who_asks_with_every_request(tmp_path: Path) -> None:
    path = tmp_path / "sent"
    one = copied(path, spec("good_stateless", "--pages", 1))
    async with Manager({"good": one}, client_name="tests \u2028") as manager:
        await every_verb(manager, "good")
    messages = sent(path)
    methods = [check_sent(MODERN, message) for message in messages]
    assert methods[0] == "server/discover"
    assert methods[-1] == "notifications/cancelled"
    assert set(methods) >= VERBS
    for message in messages[:-1]:
        meta = message["params"]["_meta"]
        assert meta["io.modelcontextprotocol/protocolVersion"] == MODERN
        assert meta["io.modelcontextprotocol/clientInfo"]["name"] == "tests \u2028"
        assert isinstance(meta["io.modelcontextprotocol/clientCapabilities"], dict)
    tokens = [m["params"]["_meta"].get("progressToken") for m in messages[:-1]]
    assert [token for token in tokens if token is not None] == [
        m["id"] for m in messages[:-1] if "progressToken" in m["params"]["_meta"]
    ]
    assert sum(token is not None for token in tokens) == 3


async def test_the_probe_is_stateless_and_what_follows_is_not(tmp_path: Path) -> None:
    path = tmp_path / "sent"
    async with Manager({"good": copied(path, spec("good_handshake"))}) as manager:
        await manager["good"].invoke_tool("echo", {"text": "hi"})
    probe, *rest = sent(path)
    assert check_sent(MODERN, probe) == "server/discover"
    assert [check_sent(HANDSHAKE[-1], message) for message in rest] == [
        "initialize",
        "notifications/initialized",
        "tools/call",
    ]
    assert "_meta" not in rest[-1]["params"]
    assert [one.get("id") for one in (probe, *rest)] == [1, 2, None, 3]


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_what_a_server_asks_is_answered_or_refused_as_its_version_says(
    version: str, tmp_path: Path
) -> None:
    path = tmp_path / "sent"
    one = copied(path, spec("asks_roots", era=version))
    async with Manager({"asks": one}) as manager:
        server = manager["asks"]
        await server.invoke_tool("sin")
        for method in ("sampling/createMessage", "no/such \u2028 thing"):
            reply = json.loads((await server.invoke_tool("ask", {"method": method})).text)
            assert reply["error"]["code"] == -32601
    answers = [message for message in sent(path) if "method" not in message]
    assert [check_sent(version, message) for message in answers] == [
        "refusal",  # roots/list, since there are none
        "answer",  # ping
        "refusal",
        "refusal",
    ]
    check(version, "EmptyResult", answers[1]["result"])
    assert [message["id"] for message in answers] == ["roots", "ask-1", "ask-2", "ask-3"]


OFFERS = frozenset({"roots", "sampling", "elicitation"})


@pytest.mark.parametrize("version", HANDSHAKE)
def test_what_we_offer_is_said_in_the_words_of_the_version(version: str) -> None:
    for offers in (OFFERS, OFFERS - {"elicitation"}, frozenset[str]()):
        _, item = Session(Identity("tests", "1", offers)).initialize(version)
        message = json.loads(item.frame)
        assert check_sent(version, message) == "initialize"
        capabilities = message["params"]["capabilities"]
        check(version, "ClientCapabilities", capabilities)
        # No version is told of what only a later one knows.
        assert set(capabilities) <= set(definitions(version)["ClientCapabilities"]["properties"])
        assert ("roots" in capabilities) == ("roots" in offers)


def test_what_we_offer_is_said_with_every_stateless_request() -> None:
    one = Session(Identity("tests", "1", OFFERS))
    _, item = one.probe(MODERN)
    assert check_sent(MODERN, json.loads(item.frame)) == "server/discover"
    one.agree_stateless(Terms(version=MODERN))
    _, item = one.request("tools/list", None)
    message = json.loads(item.frame)
    assert check_sent(MODERN, message) == "tools/list"
    offered = message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert set(offered) == OFFERS


async def test_a_stateless_server_that_asks_gets_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "sent"
    async with Manager({"asks": copied(path, spec("asks_stateless"))}) as manager:
        server = manager["asks"]
        await server.invoke_tool("echo", {"text": "hi"})
        assert server.status().ignored == 2  # it asked in vain, twice
        assert (await server.invoke_tool("answered")).text == "[]"
    assert [check_sent(MODERN, message) for message in sent(path)] == [
        "server/discover",
        "tools/call",
        "tools/call",
    ]


# -- the means themselves ------------------------------------------------------------------

SOUND: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "a",
        "arguments": {},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    },
}


def without(*path: str) -> dict[str, Any]:
    """Return the sound message without one member."""
    message = json.loads(json.dumps(SOUND))
    inner = message
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return dict(message)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda: without("jsonrpc"),
        lambda: without("params"),
        lambda: without("params", "_meta"),
        lambda: without("params", "_meta", "io.modelcontextprotocol/clientCapabilities"),
        lambda: without("params", "name"),
        lambda: {**SOUND, "id": None},
        lambda: {**SOUND, "params": None},
    ],
)
def test_an_unsound_frame_would_be_found(spoil: Callable[[], dict[str, Any]]) -> None:
    assert check_sent(MODERN, SOUND) == "tools/call"
    with pytest.raises(jsonschema.ValidationError):
        check_sent(MODERN, spoil())


@pytest.mark.parametrize("version", [*HANDSHAKE, *STATELESS])
def test_the_schemas_know_the_methods_that_the_verbs_send(version: str) -> None:
    assert set(by_method(version)) >= VERBS
    assert ("initialize" in by_method(version)) == (version in HANDSHAKE)
    assert ("DiscoverResult" in definitions(version)) == (version in STATELESS)
