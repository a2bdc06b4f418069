"""The wire examples of the client checklist are read as they are meant, and written as they stand.

All but those of HTTP (4.8); those of the extension for tasks (4.6) stand in ``test_tasks.py``.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

import anyio
import pytest
from msgspec import Raw

from mcpclient import Manager
from mcpclient.connection.progress import Told
from mcpclient.connection.progress import heard as heard_progress
from mcpclient.features import rounds
from mcpclient.features.asks import Asks
from mcpclient.protocol import payload
from mcpclient.protocol.content import TextContent
from mcpclient.protocol.eras import Identity, Listen, Terms, Wanted, handshake, probe
from mcpclient.protocol.eras.tasks import CoreTasks
from mcpclient.protocol.events import Answer, Ask, Event, Notice, Refusal
from mcpclient.protocol.session import Session
from mcpclient.protocol.types import Tool, ToolResult, page
from tests.conftest import eventually
from tests.features.helpers import release, say
from tests.features.streams import TOOLS_CHANGED, add
from tests.features.streams import heard as next_update
from tests.protocol.schemas import SPEC, check, needs_spec

pytestmark = needs_spec

WHO = Identity("mgr", "0.1", frozenset({"roots", "elicitation"}))
MODERN, OLD = "2026-07-28", "2025-11-25"
SECTIONS = ("4.1", "4.2", "4.3", "4.4", "4.5", "4.7", "4.9")

_BLOCK = re.compile(
    r"<!-- v=(?P<version>\S+) def=(?P<name>\S+)(?: path=(?P<path>\S+))? -->\n"
    r"```json\n(?P<text>.*?)\n```",
    re.DOTALL,
)


class Example(NamedTuple):
    """One block of the checklist."""

    section: str
    version: str
    name: str
    path: str | None
    value: Any

    @property
    def line(self) -> bytes:
        """The message as it goes over the wire."""
        return json.dumps(self.value).encode()


def examples() -> list[Example]:
    """Return the examples of the sections that concern us."""
    if not SPEC.is_dir():
        return []
    found = []
    parts = re.split(r"^### (\d\.\d+) .*$", (SPEC / "client-checklist.md").read_text(), flags=re.M)
    for section, text in zip(parts[1::2], parts[2::2], strict=True):
        if section in SECTIONS:
            text = text.split("\n## ")[0]
            for block in _BLOCK.finditer(text):
                value = json.loads(block["text"])
                found.append(
                    Example(section, block["version"], block["name"], block["path"], value)
                )
    return found


EXAMPLES = examples()


def named(name: str, section: str | None = None) -> list[Example]:
    """Return the examples of one definition, in order."""
    return [one for one in EXAMPLES if one.name == name and section in (None, one.section)]


def session(version: str, *, used: int = 0) -> Session:
    """Return an open session that gave ``used`` ids."""
    one = Session(WHO)
    if version == MODERN:
        one.probe(version)
        one.agree_stateless(Terms(version=version))
    else:
        one.initialize(version)
        one.agree_handshake(Terms(version=version))
    for _ in range(used - 1):  # the opening gave one
        one.request("x", None)
    return one


def written(frame: bytes) -> Any:
    """Return what a frame says."""
    return json.loads(frame)


def heard(example: Example) -> list[Event]:
    """Return what an example says to a session, which would have asked for it."""
    return list(session(example.version).receive(example.line))


def test_the_checklist_still_has_the_examples() -> None:
    counts = {section: sum(one.section == section for one in EXAMPLES) for section in SECTIONS}
    assert counts == {
        "4.1": 4,
        "4.2": 2,
        "4.3": 4,
        "4.4": 3,
        "4.5": 6,
        "4.7": 2,
        "4.9": 13,
    }
    # With those of tasks and the one tool of HTTP these are all that the page has.
    text = (SPEC / "client-checklist.md").read_text()
    assert len(_BLOCK.findall(text)) == text.count("```json\n") == len(EXAMPLES) + 10 + 1


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda one: f"{one.section}-{one.name}")
def test_each_example_is_heard_for_what_it_is(example: Example) -> None:
    value = example.value
    check(example.version, example.name, value[example.path] if example.path else value)
    events = heard(example)
    for message, event in zip(value if isinstance(value, list) else [value], events, strict=True):
        number = message.get("id")
        if "method" in message:
            expected: type[Event] = Notice if number is None else Ask
            assert isinstance(event, Notice | Ask)
            assert event.method == message["method"]
            assert payload.value(event.params) == message.get("params")
            if isinstance(event, Ask):
                assert event.id == number
        elif isinstance(number, str):
            continue  # an answer to a request of ours would have a number
        elif "error" in message:
            expected = Refusal
            assert isinstance(event, Refusal)
            error = message["error"]
            assert (event.id, event.code, event.message) == (
                number,
                error["code"],
                error["message"],
            )
            assert payload.value(event.data) == error.get("data")
        else:
            expected = Answer
            assert isinstance(event, Answer)
            assert (event.id, payload.value(event.result)) == (number, message["result"])
        assert type(event) is expected


# -- 4.1: a request and its answer ---------------------------------------------------------


def test_a_modern_request_is_written_as_given() -> None:
    [example] = named("CallToolRequest", "4.1")
    meta = example.value["params"]["_meta"]
    # We do not speak the extension, offer roots besides, and name ourselves as asked.
    capabilities = meta["io.modelcontextprotocol/clientCapabilities"]
    del capabilities["extensions"]
    one = session(MODERN, used=6)
    id, item = one.request(
        "tools/call",
        {
            "name": "add",
            "arguments": {"a": 1, "b": 2},
            "_meta": {"progressToken": "p7", "traceparent": meta["traceparent"]},
        },
    )
    found = written(item.frame)
    assert found["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"].pop("roots") == {}
    assert (id, found) == (7, example.value)
    cancelled = [one for one in EXAMPLES if one.name == "CancelledNotification"]
    assert written(one.cancel(7, "user stop").frame) == cancelled[0].value


def test_a_modern_result_is_read_as_given() -> None:
    [example] = named("CallToolResultResponse", "4.1")
    [event] = heard(example)
    assert isinstance(event, Answer)
    one = session(MODERN)
    result = ToolResult(one.era.read("tools/call", event.result))
    assert (result.structured, result.text, result.is_error) == (3, "3", False)
    assert result.content == [TextContent("3")]
    assert result.meta == {"io.modelcontextprotocol/serverInfo": {"name": "calc", "version": "2.0"}}


def test_progress_is_read_as_given() -> None:
    [example] = named("ProgressNotification")
    [event] = heard(example)
    assert isinstance(event, Notice)
    told = heard_progress(event.params)
    assert told == Told("p7", 0.5, 1, "half")
    assert told.id is None  # our tokens are numbers: this one is none of ours


# -- 4.2 and 4.3: the probe ----------------------------------------------------------------


def as_answer(example: Example) -> Event:
    """Return what an example says if it answers our request 1 instead of "d1"."""
    line = json.dumps({**example.value, "id": 1}).encode()
    [event] = session(example.version).receive(line)
    return event


def test_the_probe_is_written_as_given() -> None:
    [example] = named("DiscoverRequest")
    one = Session(Identity("mgr", "0.1"))
    _, item = one.probe(MODERN)
    assert {**written(item.frame), "id": "d1"} == example.value


def test_the_answer_to_the_probe_gives_the_terms() -> None:
    [example] = named("DiscoverResultResponse")
    event = as_answer(example)
    assert isinstance(event, Answer)
    assert probe.judge(event, again=False) == probe.Speak(
        Terms(
            version=MODERN,
            capabilities=example.value["result"]["capabilities"],
            info={"name": "calc", "version": "2.0"},
            instructions="Use add for sums.",
        )
    )
    assert session(MODERN).era.lifetime(event.result) == 60.0


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("UnsupportedProtocolVersionError", probe.ProbeAgain(MODERN)),
        ("MissingRequiredClientCapabilityError", probe.ProbeAgain(MODERN)),
        ("HeaderMismatchError", probe.ProbeAgain(MODERN)),
        ("JSONRPCErrorResponse", probe.Shake(OLD)),
    ],
)
def test_each_refusal_of_the_probe_has_its_verdict(name: str, verdict: probe.Verdict) -> None:
    [example] = named(name, "4.3")
    event = as_answer(example)
    assert isinstance(event, Refusal)
    assert probe.judge(event, again=False) == verdict


# -- 4.4: rounds ---------------------------------------------------------------------------


async def test_a_round_is_answered_as_given() -> None:
    first, _ = named("InputRequiredResult", "4.4")
    [retry] = named("CallToolRequest", "4.4")
    one = session(MODERN, used=9)
    sent: list[Any] = []

    async def send(params: Any) -> Raw:
        sent.append(written(one.request("tools/call", params)[1].frame))
        result = first.value["result"] if len(sent) == 1 else {}
        return one.era.read("tools/call", Raw(json.dumps(result).encode()))

    def elicit(server: Any, params: Any) -> dict[str, Any]:
        return {"action": "accept", "content": {"n": "Ada"} if params["mode"] == "form" else None}

    asks = Asks(roots=["file:///w"], on_elicit=elicit)
    await rounds.answered(send, {"name": "book", "arguments": {"day": "mon"}}, asks, None, 10)
    assert [message["id"] for message in sent] == [10, 11]
    assert sent[1] == retry.value


async def test_a_round_that_only_has_a_state_gives_it_back_and_nothing_else() -> None:
    _, second = named("InputRequiredResult", "4.4")
    one = session(MODERN)
    sent: list[Any] = []

    async def send(params: Any) -> Raw:
        sent.append(written(one.request("tools/call", params)[1].frame)["params"])
        result = second.value["result"] if len(sent) == 1 else {}
        return one.era.read("tools/call", Raw(json.dumps(result).encode()))

    await rounds.answered(send, {"name": "book"}, Asks(), None, 10)
    del sent[1]["_meta"]
    assert sent[1] == {"name": "book", "requestState": second.value["result"]["requestState"]}


# -- 4.5: subscriptions --------------------------------------------------------------------


def test_a_stream_is_asked_for_and_given_up_as_given() -> None:
    [listen] = named("SubscriptionsListenRequest", "4.5")
    [ended] = named("CancelledNotification", "4.5")
    one = session(MODERN, used=19)
    changes = {"listChanged": True}
    plan = one.era.subscribing(
        Wanted(),
        Wanted(frozenset({"file:///w/a"}), frozenset({"tools", "prompts"})),
        {"tools": changes, "prompts": changes, "resources": {"subscribe": True}},
    )
    assert isinstance(plan, Listen)
    id, item = one.request("subscriptions/listen", plan.params)
    found = written(item.frame)
    assert id == listen.value["id"]
    assert found["params"]["notifications"] == listen.value["params"]["notifications"]
    given_up = written(one.cancel(id, "no longer wanted").frame)
    del given_up["params"]["reason"]
    assert given_up == ended.value


def about(name: str, id: int) -> Any:
    """Return what an example says of the stream 20, as said of another one."""
    example = next(one for one in named(name, "4.5"))
    text, count = re.subn(r": 20\b", f": {id}", json.dumps(example.value))
    assert count
    return json.loads(text)


@pytest.mark.parametrize("end", ["SubscriptionsListenResultResponse", "CancelledNotification"])
async def test_a_stream_tells_and_ends_as_given(manager: Manager, end: str) -> None:
    streams = await add(manager)
    server, uri, told = streams.server, "file:///w/a", list[Any]()
    await streams.begin()
    manager.on_notification(TOOLS_CHANGED, lambda server, params: told.append(params))
    await streams.agree(1, toolsListChanged=True)
    async with anyio.create_task_group() as group:
        await streams.follow(group, uri, 2)
        id = (await streams.asked(2))[-1]["id"]
        agreed = about("SubscriptionsAcknowledgedNotification", id)
        await say(server, agreed["method"], agreed["params"])
        await eventually(lambda: uri in streams.entered)
        changed = about("ToolListChangedNotification", id)
        await say(server, changed["method"], changed["params"])
        await eventually(lambda: told == [changed["params"]])
        updated = about("ResourceUpdatedNotification", id)
        await say(server, updated["method"], updated["params"])
        assert await next_update(streams.entered[uri]) == updated["params"]
        ended = about(end, id)
        if "method" in ended:
            await say(server, ended["method"], ended["params"])
        else:
            await release(server, "subscriptions/listen", result=ended["result"])
            await streams.begin()
        # It is over, and no fault of anybody: the server is asked for another.
        again = (await streams.asked(3))[-1]
        assert again["resourceSubscriptions"] == [uri]
        assert server.status().stray == server.status().noise == 0
        group.cancel_scope.cancel()


# -- 4.7: pages ----------------------------------------------------------------------------


def test_an_empty_cursor_is_read_and_sent_back_as_given() -> None:
    [example] = named("ListToolsResultResponse")
    [event] = heard(example)
    assert isinstance(event, Answer)
    one = session(MODERN, used=40)
    found = page(one.era.read("tools/list", event.result), Tool)
    assert [(tool.name, tool.input_schema) for tool in found.items] == [("add", {"type": "object"})]
    assert found.next_cursor == ""
    assert one.era.lifetime(event.result) == 300.0
    id, item = one.request("tools/list", {"cursor": found.next_cursor})
    message = written(item.frame)
    meta = message["params"]["_meta"]
    assert meta.pop("io.modelcontextprotocol/clientInfo") == {"name": "mgr", "version": "0.1"}
    assert meta["io.modelcontextprotocol/clientCapabilities"]
    meta["io.modelcontextprotocol/clientCapabilities"] = {}
    [request] = named("ListToolsRequest")
    assert (id, message) == (41, request.value)


# -- 4.9: the handshake --------------------------------------------------------------------


def test_the_handshake_is_written_as_given() -> None:
    [example] = named("InitializeRequest")
    one = Session(WHO)
    _, item = one.initialize(OLD)
    assert written(item.frame) == example.value
    [confirmation] = named("InitializedNotification")
    assert written(one.agree_handshake(Terms(version=OLD)).frame) == confirmation.value


def test_an_older_version_that_the_server_wants_is_taken() -> None:
    [example] = named("InitializeResult")
    [event] = heard(example)
    assert isinstance(event, Answer)
    assert handshake.judge(event, OLD, insist=False) == handshake.Agreed(
        Terms(
            version="2025-06-18",
            capabilities={"tools": {"listChanged": True}, "logging": {}},
            info={"name": "old", "version": "1"},
            instructions="hi",
        )
    )


def test_answers_to_the_server_are_written_as_given() -> None:
    one = session(OLD)
    [ping] = named("PingRequest")
    [ask] = heard(ping)
    assert isinstance(ask, Ask)
    [elicit] = named("ElicitRequest")
    [wish] = heard(elicit)
    assert isinstance(wish, Ask)
    answers = named("JSONRPCResultResponse", "4.9")
    assert written(one.answer(ask, {}).frame) == answers[0].value
    assert written(one.answer(wish, {"action": "decline"}).frame) == answers[1].value
    [refusal] = named("JSONRPCErrorResponse", "4.9")
    sampling = Ask("s3", "sampling/createMessage", Raw(b"{}"))
    frame = one.refuse(sampling, -32601, "sampling not supported").frame
    assert written(frame) == refusal.value


def test_a_batch_is_heard_member_by_member() -> None:
    [example] = named("JSONRPCBatchResponse")
    first, second = heard(example)
    assert isinstance(first, Answer)
    assert isinstance(second, Refusal)
    assert (first.id, second.id, second.code) == (3, 4, -32601)


def test_the_pages_to_visit_are_read_as_given() -> None:
    [example] = named("URLElicitationRequiredError")
    [event] = heard(example)
    assert isinstance(event, Refusal)
    [page] = example.value["error"]["data"]["elicitations"]
    wanted = session(OLD).era.wanted(event.code, payload.told(event.data))
    assert wanted == {"e1": {"method": "elicitation/create", "params": page}}


def test_a_legacy_task_is_asked_for_and_fetched_as_given() -> None:
    tasks = CoreTasks({"requests": {"tools": {"call": {}}}})
    [call] = named("CallToolRequest", "4.9")
    one = session(OLD, used=5)
    _, item = one.request("tools/call", tasks.augmented({"name": "slow", "arguments": {}}, 60.0))
    assert written(item.frame) == call.value
    [example] = named("CreateTaskResult")
    [event] = heard(example)
    assert isinstance(event, Answer)
    made = tasks.made(one.era.read("tools/call", event.result))
    assert made is not None
    assert (made.id, made.status, made.ttl, made.poll) == ("k1", "working", 60.0, 0.5)
    assert made.created_at == "2026-01-01T00:00:00Z"
    [fetch] = named("GetTaskPayloadRequest")
    one = session(OLD, used=7)
    assert written(one.request("tasks/result", {"taskId": made.id})[1].frame) == fetch.value
