"""What holds every frame against the schemas sees all that is sent, and finds what is wrong."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from msgspec import Raw

from mcpclient import CallTimedOut, Manager, ReplyError, ServerSpec
from mcpclient.protocol.envelope import Outgoing
from mcpclient.protocol.eras.handshake import Handshake
from mcpclient.protocol.eras.stateless import CAPABILITIES_KEY, VERSION_KEY, Stateless
from mcpclient.protocol.events import Ask
from mcpclient.protocol.versions import HANDSHAKE, STATELESS
from tests.behaviour import server as peer
from tests.conftest import ROOT, eventually
from tests.connection.peer import conversation
from tests.features.taskers import People, tasker, until_asked
from tests.frames import Frames, shape, words
from tests.protocol.schemas import ANSWERS, check_sent, definitions, needs_spec, schema

pytestmark = needs_spec

PEER = Path(peer.__file__)
MODERN, OLD = STATELESS[-1], HANDSHAKE[-1]
TEXT = {"role": "user", "content": {"type": "text", "text": "hi"}}
SAMPLE = {"messages": [TEXT], "maxTokens": 1}
SAID = {**TEXT, "role": "assistant", "model": "m"}
FORM = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}


def caught(frames: Frames) -> list[str]:
    """Return what was found so far, in short."""
    return [f"{one.what} in {one.version}: {one.complaint}" for one in frames.odd]


# -- it sees all ---------------------------------------------------------------------------


@pytest.mark.parametrize("version", [*HANDSHAKE, *STATELESS])
async def test_whatever_a_connection_sends_is_seen(version: str, frames: Frames) -> None:
    stateless = version == MODERN
    argv = ["-I", "-S", str(PEER), version]
    manager = Manager(
        {"peer": ServerSpec(sys.executable, argv, ping=0.1, ping_misses=1000)},
        roots=["file:///w"],
        on_sample=lambda server, params: SAID,
        on_elicit=lambda server, params: {"action": "accept"},
    )

    async def ask(method: str, params: Any) -> None:
        await server.invoke_tool("ask", {"method": method, "params": params})

    async with manager:
        server = manager["peer"]
        await server.list_tools()
        await server.set_log_level("error")
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("hold", {"key": "a"}, timeout=0.5)
        with pytest.raises(ReplyError):
            await server.request("vendor.example/thing")
        await ask("roots/list", {})
        await ask("sampling/createMessage", SAMPLE)
        if version >= "2025-06-18":
            await ask("elicitation/create", FORM)
        async with server.subscribe("test://a"):
            pass
        if not stateless:
            await ask("no/such", {})
            await server.invoke_tool("ping")
            await server.notify("notifications/roots/list_changed")
            await eventually(lambda: frames.seen[version, "ping", ""])
        received = json.loads((await server.invoke_tool("journal")).text)
        sent = frames.seen.copy()
    seen = {facts[1:] for facts in frames.seen if facts[0] == version}
    common = {"tools/list", "tools/call", "vendor.example/thing", "notifications/cancelled"}
    assert {(method, "") for method in common} <= seen
    assert (MODERN, "server/discover", "") in frames.seen
    if stateless:
        assert ("subscriptions/listen", "") in seen
        assert not {kind for kind, _ in seen} & {"answer", "refusal", "ping", "initialize"}
    else:
        methods = {"initialize", "notifications/initialized", "resources/subscribe", "ping"}
        methods |= {"resources/unsubscribe", "notifications/roots/list_changed"}
        methods |= {"logging/setLevel", "refusal"}
        assert {(method, "") for method in methods - {"initialize"}} <= seen
        assert any(kind == "initialize" for _, kind, _ in frames.seen)
        asked = set(ANSWERS) - ({"elicitation/create"} if version < "2025-06-18" else set())
        assert {(kind, method) for kind, method in seen if kind == "answer"} == {
            ("answer", method) for method in asked
        }
    # Not one too few: nothing reached the server but what was seen.
    kinds = Counter(
        one.get("method") or ("answer" if "result" in one else "refusal") for one in received
    )
    assert kinds <= Counter(kind for _, kind, _ in sent.elements())
    assert frames.odd == []


async def test_what_is_sent_of_tasks_is_seen(frames: Frames) -> None:
    async with tasker("stateless", "--poll", 1000, on_elicit=People()) as server:
        await server.invoke_tool("ask")
        await (await server.start_tool("never")).cancel()
    methods = {"tasks/get", "tasks/update", "tasks/cancel", "subscriptions/listen"}
    assert {(MODERN, method, "") for method in methods} <= set(frames.seen)
    async with tasker("handshake") as server:
        await server.invoke_tool("must", {"text": "a"})
        await until_asked(server, "tasks/result")
    assert frames.seen[OLD, "tasks/result", ""] == 1
    assert frames.odd == []


def is_sending(one: ast.Attribute) -> bool:
    """Return whether this is ``….transport.send`` or its like."""
    return one.attr in ("send", "send_soon") and "transport" in ast.unparse(one.value)[-10:]


def test_nothing_is_sent_but_where_it_is_seen() -> None:
    # Of the whole package, its transports aside, which hand on what they were given.
    found = set()
    for path in sorted((ROOT / "mcpclient").rglob("*.py")):
        if not {"transports", "serverkit"} & set(path.parts):
            for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
                    sends = (one for one in ast.walk(function) if isinstance(one, ast.Attribute))
                    if any(is_sending(one) for one in sends):
                        found.add(f"{path.stem}.{function.name}")
    assert found == {"connection.send", "connection._file"}


# -- it finds what is wrong ----------------------------------------------------------------


def unstamped(self: Stateless, params: Any, token: Any) -> Any:
    return params


def half_stamped(self: Stateless, params: Any, token: Any) -> Any:
    found = STAMP(self, params, token)
    del found["_meta"][CAPABILITIES_KEY]
    return found


def misstamped(self: Stateless, params: Any, token: Any) -> Any:
    found = STAMP(self, params, token)
    return {**found, "_meta": {**found["_meta"], VERSION_KEY: OLD}}


STAMP = Stateless.stamp


@pytest.mark.odd_frames("the era stamps wrongly")
@pytest.mark.parametrize(
    ("stamp", "complaint"),
    [
        (unstamped, "None is not of type 'object'"),
        (half_stamped, f"'{CAPABILITIES_KEY}' is a required property"),
        (misstamped, f"names version {OLD}"),
    ],
    ids=["none", "half", "of another version"],
)
async def test_a_wrong_stamp_is_found(
    stamp: Any, complaint: str, frames: Frames, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with conversation("stateless") as (connection, _, _):
        connection.begin("tools/list", None, 30, watch=lambda outcome: None)
        assert frames.odd == []
        monkeypatch.setattr(Stateless, "stamp", stamp)
        connection.begin("tools/list", None, 30, watch=lambda outcome: None)
    [found] = caught(frames)
    assert found.startswith("tools/list in 2026-07-28: ")
    assert found.endswith(complaint)


@pytest.mark.odd_frames("the era cancels wrongly")
async def test_a_wrong_cancellation_is_found(
    frames: Frames, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Handshake, "cancel", lambda self, id, reason: {"requestId": None})
    async with conversation() as (connection, _, _):
        connection.abandon(connection.begin("tools/list", None, 30), "for a test")
    assert caught(frames) == [
        "notifications/cancelled in 2025-11-25: "
        "params.requestId: None is not of type 'string', 'integer'"
    ]


@pytest.mark.odd_frames("the answers do not fit what was asked")
async def test_a_wrong_answer_is_found_by_what_was_asked(frames: Frames) -> None:
    async with conversation() as (connection, _, _):
        for method, result in (
            ("roots/list", {"roots": [{"uri": "file:///w"}]}),
            ("roots/list", {"roots": [{"name": "w"}]}),
            ("sampling/createMessage", {"action": "decline"}),
            ("elicitation/create", {"action": "accept", "content": {"a": None}}),
            ("ping", []),
        ):
            ask = Ask("q", method, Raw(b"{}"))
            connection.send(connection.session.answer(ask, result))
        connection.send(connection.session.refuse(Ask(1.5, "ping", Raw(b"{}")), 1, "no"))
    found = caught(frames)
    assert [one.partition(" ")[0] for one in found] == [
        "roots/list",
        "sampling/createMessage",
        "elicitation/create",
        "ping",
        "refusal",
    ]
    assert "'uri' is a required property" in found[0]
    assert "None is not" in found[2]


@pytest.mark.odd_frames("the methods are of other versions")
async def test_a_method_of_another_version_is_found(frames: Frames) -> None:
    for era, method, params in (
        ("stateless", "resources/subscribe", {"uri": "test://a"}),
        ("stateless", "ping", None),
        ("handshake", "server/discover", None),
        ("handshake", "tasks/update", {"taskId": "t"}),
        ("handshake", "sampling/createMessage", SAMPLE),
        ("stateless", "tasks/get", {"taskId": "t"}),
    ):
        async with conversation(era) as (connection, _, _):
            connection.begin(method, params, 30, watch=lambda outcome: None)
    assert caught(frames) == [
        "resources/subscribe in 2026-07-28: 2026-07-28 has no resources/subscribe",
        "ping in 2026-07-28: 2026-07-28 has no ping",
        "server/discover in 2025-11-25: 2025-11-25 has no server/discover",
        "tasks/update in 2025-11-25: 2025-11-25 has no tasks/update",
        "sampling/createMessage in 2025-11-25: "
        "no client of 2025-11-25 sends sampling/createMessage",
    ]


@pytest.mark.odd_frames("the frames are none")
@pytest.mark.parametrize(
    ("item", "complaint"),
    [
        (Outgoing(b'{"jsonrpc":"2.0",\n"method":"x"}\n', "x"), "x in : is not one line of ASCII"),
        (Outgoing(b'{"jsonrpc":"2.0","method":"x"}', "x"), "x in : is not one line of ASCII"),
        (Outgoing('{"method":"ü"}\n'.encode(), "x"), "x in : is not one line of ASCII"),
        (
            Outgoing(b'{"jsonrpc":"2.0","method":"x"}\n', "y", version=OLD),
            "x in 2025-11-25: is sent for 'y'",
        ),
        (Outgoing(b"{\n", "x", version=OLD), "x in 2025-11-25: cannot be looked at: JSONDecode"),
        (
            Outgoing(b'{"jsonrpc":"2.0","method":"x","id":1,"more":1}\n', "x", version=OLD),
            "x in 2025-11-25: has members that none should have",
        ),
    ],
    ids=["two lines", "no end", "not ASCII", "another method", "no JSON", "more members"],
)
def test_what_is_no_frame_is_found(item: Outgoing, complaint: str, frames: Frames) -> None:
    frames.sent(item)
    [found] = caught(frames)
    assert found.startswith(complaint)


OUTCOMES = """
import pytest
from tests.connection.peer import conversation

odd = pytest.mark.odd_frames


async def send(params):
    async with conversation() as (connection, _, _):
        connection.begin("tools/call", params, 30, watch=lambda outcome: None)


async def test_lawful():
    await send({"name": "a"})


async def test_odd():
    await send({})


@odd("for a test")
async def test_excused():
    await send({})


@odd("for a test")
async def test_needlessly_excused():
    await send({"name": "a"})


@odd("")
async def test_excused_without_a_reason():
    await send({})


@odd("for a test")
async def test_excused_and_skipped():
    pytest.skip("for a reason")
"""


def test_a_test_that_sends_an_odd_frame_fails_and_so_does_a_needless_excuse(
    tmp_path: Path,
) -> None:
    (tmp_path / "test_outcomes.py").write_text(OUTCOMES)
    options = "-q -p tests.conftest -p no:cacheprovider -c pyproject.toml -k asyncio"
    command = [sys.executable, "-m", "pytest", *options.split(), str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    place = re.compile(r"^_+ ERROR at teardown of test_(\w+)\[asyncio\] _+\n(.*)$", re.MULTILINE)
    told = dict(place.findall(done.stdout))
    assert told == {
        "odd": "sent what its schema forbids:",
        "needlessly_excused": "sent no odd frame, and needs no excuse any more: for a test",
        "excused_without_a_reason": "odd_frames wants a reason",
    }, done.stdout + done.stderr
    assert "5 passed, 1 skipped" in done.stdout
    assert "tools/call in 2025-11-25: params: 'name' is a required property" in done.stdout
    assert r'"method":"tools/call","params":{}}\n' in done.stdout


# -- the means themselves ------------------------------------------------------------------


def test_a_shape_tells_what_a_schema_can_tell() -> None:
    alike: list[tuple[Any, Any]] = [
        ("ü", "long" * 100),
        (7, 2**70),
        (1.5, 1e9 + 0.5),
        ([1.5, "a", 1.5], ["b", 2.5]),
        ({"a": {"b": "c"}}, {"a": {"b": "d"}}),
    ]
    for one, other in alike:
        assert shape(one) == shape(other)
    different = ["a", "error", "accept", OLD, MODERN, 7, 1, 0, -1, 0.5, 1.5, True, None, [], [1]]
    different += [[["a"]], ["a"], {}, {"a": 1}, {"b": 1}, {"a": None}, {"a": {"b": 1}}]
    assert len({shape(one) for one in different}) == len(different)
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    assert shape(deep) == shape([deep])
    assert {"accept", "emergency", "2.0", "ref/prompt", *HANDSHAKE, *STATELESS} <= words()


def used(version: str, *names: str) -> dict[str, list[Any]]:
    """Return every keyword in some definitions and all that they refer to, with its values."""
    found: dict[str, list[Any]] = {}
    done, todo = set(names), [definitions(version)[name] for name in names]
    while todo:
        for keyword, value in todo.pop().items():
            found.setdefault(keyword, []).append(value)
            if keyword == "$ref" and (name := value.rpartition("/")[2]) not in done:
                done.add(name)
                todo.append(definitions(version)[name])
            elif keyword == "properties":
                todo += value.values()
            elif keyword in ("anyOf", "allOf"):
                todo += value
            elif keyword in ("items", "additionalProperties", "not") and isinstance(value, dict):
                todo.append(value)
    return found


@pytest.mark.parametrize("version", [*HANDSHAKE, *STATELESS, "ext-tasks"])
def test_no_schema_of_what_we_send_tells_more_than_a_shape(version: str) -> None:
    plain = ["JSONRPCRequest", "JSONRPCNotification", "JSONRPCResponse", "ClientRequest"]
    plain += ["ClientNotification", *ANSWERS.values()]
    if version == "ext-tasks":
        plain = ["GetTaskRequest", "UpdateTaskRequest", "CancelTaskRequest", "ElicitResult"]
    found = used(version, *(name for name in plain if name in definitions(version)))
    words_only = {"$ref", "type", "properties", "required", "items", "additionalProperties"}
    words_only |= {"anyOf", "allOf", "const", "enum", "minimum", "maximum", "$schema"}
    # These tell nothing apart: the last is not looked at unless asked to.
    assert set(found) <= words_only | {"description", "title", "default", "format"}
    assert set(found.get("minimum", [])) <= {0}
    assert set(found.get("maximum", [])) <= {1}
    texts = [*found.get("const", []), *(one for enum in found.get("enum", []) for one in enum)]
    assert set(texts) <= words()
    assert schema(version)


def test_the_only_leniency_is_for_a_number_in_a_form() -> None:
    def answer(content: Any) -> None:
        result = {"action": "accept", "content": content}
        check_sent(OLD, {"jsonrpc": "2.0", "id": 1, "result": result}, "elicitation/create")

    answer({"score": 95.5, "n": 1})
    for content in ({"score": None}, {"score": [95.5]}, {"score": {"a": 1.5}}):
        with pytest.raises(jsonschema.ValidationError):
            answer(content)
    meta = {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "a", "_meta": meta, "inputResponses": {"k": None}},
    }
    text = json.dumps(message)
    fine = {"action": "accept", "content": {"score": 95.5}}
    assert check_sent(MODERN, json.loads(text.replace("null", json.dumps(fine)))) == "tools/call"
    for odd in ({"content": {"score": 95.5}}, {**fine, "content": {"score": None}}, 1.5):
        with pytest.raises(jsonschema.ValidationError):
            check_sent(MODERN, json.loads(text.replace("null", json.dumps(odd))))
