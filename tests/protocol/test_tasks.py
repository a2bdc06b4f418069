"""What a task is on either wire, and what is to be done next about it.

The wire examples of section 4.6 of the client checklist, and those of 4.9 that concern tasks.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.protocol import payload
from mcpclient.protocol.eras import Identity, Terms
from mcpclient.protocol.eras.tasks import (
    Again,
    Cancelled,
    CoreTasks,
    Done,
    ExtensionTasks,
    Failed,
    Fetch,
    Reply,
    Tasks,
)
from mcpclient.protocol.extensions import TASKS, checked
from mcpclient.protocol.session import Session
from tests.protocol.schemas import SPEC, check, needs_spec

MODERN, OLD = "2026-07-28", "2025-11-25"
WHO = Identity("mgr", "0.1", extensions=checked({TASKS: {}}))
EXTENSION = ExtensionTasks(declared=True)
CORE = CoreTasks({"cancel": {}, "list": {}, "requests": {"tools": {"call": {}}}})
KINDS = pytest.mark.parametrize("rules", [CORE, EXTENSION], ids=["core", "extension"])

_BLOCK = re.compile(r"<!-- v=tasks def=(\S+)(?: path=(\S+))? -->\n```json\n(.*?)\n```", re.DOTALL)


def examples() -> list[tuple[str, str | None, dict[str, Any]]]:
    """Return name, path and message of each example of the extension."""
    if not SPEC.is_dir():
        return []
    text = (SPEC / "client-checklist.md").read_text()
    return [(name, path or None, json.loads(body)) for name, path, body in _BLOCK.findall(text)]


EXAMPLES = examples()


def example(name: str, number: int = 0) -> dict[str, Any]:
    """Return one example message."""
    return [message for known, _, message in EXAMPLES if known == name][number]


def raw(value: Any) -> Raw:
    """Return a value as it comes over the wire."""
    return Raw(json.dumps(value).encode())


def task(**members: Any) -> dict[str, Any]:
    """Return a task that both eras can read."""
    stamps = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:01Z"}
    return {"taskId": "t", "status": "working", **stamps, "ttl": None, "ttlMs": None, **members}


def opened(identity: Identity = WHO, *, used: int = 0, **capabilities: Any) -> Session:
    """Return an open modern session that gave so many ids."""
    session = Session(identity)
    session.probe(MODERN)
    session.agree_stateless(Terms(version=MODERN, capabilities=capabilities))
    while used and not session.issued(used):
        session.request("x", None)
    return session


# -- the examples ----------------------------------------------------------------------------


@needs_spec
def test_the_checklist_still_has_the_examples() -> None:
    assert [name for name, _, _ in EXAMPLES] == [
        "CreateTaskResult",
        "GetTaskRequest",
        "GetTaskResult",
        "UpdateTaskRequest",
        "UpdateTaskResult",
        "GetTaskResult",
        "GetTaskResult",
        "CancelTaskRequest",
        "CancelTaskResult",
        "TaskStatusNotification",
    ]
    for name, path, message in EXAMPLES:
        check("ext-tasks", name, message[path] if path else message)


@needs_spec
@pytest.mark.parametrize("name", ["GetTaskRequest", "UpdateTaskRequest", "CancelTaskRequest"])
def test_each_request_about_a_task_is_written_as_the_example(name: str) -> None:
    wanted = example(name)
    offers = frozenset({"elicitation"} if name == "UpdateTaskRequest" else ())
    session = opened(Identity("mgr", "0.1", offers, checked({TASKS: {}})), used=wanted["id"] - 1)
    params = {key: value for key, value in wanted["params"].items() if key != "_meta"}
    _, item = session.request(wanted["method"], params)
    sent = json.loads(item.frame)
    meta = sent["params"]["_meta"]
    # We name ourselves, and say of elicitation which kinds.
    assert meta.pop("io.modelcontextprotocol/clientInfo") == {"name": "mgr", "version": "0.1"}
    if offers:
        meta["io.modelcontextprotocol/clientCapabilities"]["elicitation"] = {}
    assert sent == wanted
    check("ext-tasks", name, sent)


@needs_spec
def test_the_examples_of_tasks_are_read_as_they_are_meant() -> None:
    made = EXTENSION.made(raw(example("CreateTaskResult")["result"]))
    assert made is not None
    assert (made.id, made.status, made.created_at) == ("t-9", "working", "2026-08-01T10:00:00Z")
    assert (made.ttl, made.poll) == (None, 2.0)
    asks, done, failed = (
        EXTENSION.told(raw(example("GetTaskResult", n)["result"])) for n in range(3)
    )
    step = EXTENSION.step(asks)
    assert isinstance(step, Reply)
    assert list(step.requests) == ["ok"]
    assert step.requests["ok"]["method"] == "elicitation/create"
    ended = EXTENSION.step(done)
    assert isinstance(ended, Done)
    assert payload.value(ended.result) == {
        "content": [{"type": "text", "text": "done"}],
        "isError": False,
    }
    assert EXTENSION.step(failed) == Failed(-32603, "boom", None)
    assert failed.ttl == 60.0
    told = EXTENSION.told(raw(example("TaskStatusNotification")["params"]))
    assert EXTENSION.step(told) == Again()
    for name, method in (
        ("UpdateTaskResult", "tasks/update"),
        ("CancelTaskResult", "tasks/cancel"),
    ):
        acknowledged = raw(example(name)["result"])
        assert opened().era.read(method, acknowledged) == acknowledged
        assert EXTENSION.cancelled(acknowledged) is None  # it tells of no task


@needs_spec
def test_the_example_of_a_legacy_task_is_read_and_written() -> None:
    params = CORE.augmented({"name": "slow", "arguments": {}}, 60.0)
    assert params == {"name": "slow", "arguments": {}, "task": {"ttl": 60000}}
    request = {"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": params}
    check(OLD, "CallToolRequest", request)
    assert CORE.augmented({"name": "slow"}, None) == {"name": "slow", "task": {}}
    made = CORE.made(
        raw({"task": {"taskId": "k1", "status": "working", "ttl": 60000, "pollInterval": 500}})
    )
    assert made is not None
    assert (made.id, made.status, made.ttl, made.poll) == ("k1", "working", 60.0, 0.5)


# -- the steps -------------------------------------------------------------------------------


def test_a_legacy_task_that_asks_or_has_ended_is_fetched() -> None:
    steps = {
        status: CORE.step(CORE.told(raw(task(status=status))))
        for status in ("working", "input_required", "completed", "failed", "cancelled")
    }
    assert steps == {
        "working": Again(),
        "input_required": Fetch(),
        "completed": Fetch(),
        "failed": Fetch(),
        "cancelled": Cancelled(),
    }


def test_what_a_legacy_task_ended_as_is_told_by_its_result() -> None:
    asks = CORE.told(raw(task(status="input_required")))
    assert CORE.fetched(asks, raw({"content": []})).status == "completed"
    assert CORE.fetched(asks, raw({"content": [], "isError": True})).status == "failed"
    failed = CORE.told(raw(task(status="failed")))
    assert CORE.fetched(failed, raw({"content": []})).status == "failed"


def test_a_task_of_the_extension_brings_all_of_it_along() -> None:
    result = {"content": [], "isError": True}
    assert EXTENSION.step(EXTENSION.told(raw(task()))) == Again()
    done = EXTENSION.step(EXTENSION.told(raw(task(status="completed", result=result))))
    assert isinstance(done, Done)
    assert payload.value(done.result) == result
    assert EXTENSION.step(EXTENSION.told(raw(task(status="cancelled")))) == Cancelled()
    error = {"code": -32050, "message": "no", "data": [1]}
    failed = EXTENSION.told(raw(task(status="failed", error=error)))
    assert EXTENSION.step(failed) == Failed(-32050, "no", [1])


@pytest.mark.parametrize(
    ("error", "wanted"),
    [
        (None, Failed(0, "so it goes", None)),
        ({"code": "x", "message": 3}, Failed(0, "so it goes", None)),
        ({"code": True}, Failed(0, "so it goes", None)),
    ],
)
def test_a_failure_without_a_proper_error_is_a_failure(error: Any, wanted: Failed) -> None:
    told = task(status="failed", statusMessage="so it goes")
    if error is not None:
        told["error"] = error
    assert EXTENSION.step(EXTENSION.told(raw(told))) == wanted


@pytest.mark.parametrize(
    "members",
    [
        {"status": "completed"},
        {"status": "input_required"},
        {"status": "input_required", "inputRequests": ["a"]},
        {"status": "input_required", "inputRequests": {"a": 1}},
    ],
)
def test_a_status_without_what_belongs_to_it_is_refused(members: dict[str, Any]) -> None:
    told = EXTENSION.told(raw(task(**members)))
    with pytest.raises(RemoteProtocolError, match="the task 't'"):
        EXTENSION.step(told)


def test_an_acknowledgement_says_nothing_of_the_status() -> None:
    assert EXTENSION.cancelled(raw({"resultType": "complete"})) is None
    told = CORE.cancelled(raw(task(status="cancelled")))
    assert told is not None
    assert told.status == "cancelled"


def test_an_ordinary_result_makes_no_legacy_task() -> None:
    assert CORE.made(raw({"content": []})) is None


def test_what_stands_around_a_legacy_task_is_kept() -> None:
    whole = {"task": task(), "_meta": {"io.modelcontextprotocol/model-immediate-response": "ok"}}
    made = CORE.made(raw(whole))
    assert made is not None
    assert payload.value(made.data) == whole


# -- rubbish ---------------------------------------------------------------------------------


@KINDS
@pytest.mark.parametrize(
    "value",
    [
        None,
        [],
        "t",
        {},
        {"taskId": 1, "status": "working"},
        {"taskId": "", "status": "working"},
        {"taskId": "t"},
        {"taskId": "t", "status": None},
        {"taskId": "t", "status": "done"},
    ],
)
def test_what_is_no_task_is_refused(rules: Tasks, value: Any) -> None:
    with pytest.raises(RemoteProtocolError):
        rules.told(raw(value))


@KINDS
@pytest.mark.parametrize("odd", [None, "5", True, -1, [], {}, 1e400, 10**400])
def test_odd_numbers_and_texts_cost_no_task(rules: Tasks, odd: Any) -> None:
    odd = 10**15 if odd == 1e400 else odd
    told = rules.told(
        raw(
            task(
                ttl=odd,
                ttlMs=odd,
                pollInterval=odd,
                pollIntervalMs=odd,
                statusMessage=3,
                createdAt=None,
            )
        )
    )
    assert (told.message, told.created_at) == (None, None)
    if isinstance(odd, int) and not isinstance(odd, bool) and odd > 0:
        assert told.ttl == told.poll == 10**12  # for ever, and no overflow
    else:
        assert told.ttl is None
        assert told.poll is None


@KINDS
def test_a_task_cut_at_any_byte_is_refused(rules: Tasks) -> None:
    whole = json.dumps(task(status="completed", result={"content": []}, statusMessage="ü"))
    data = whole.encode()
    for end in range(1, len(data)):
        with pytest.raises(RemoteProtocolError):
            rules.told(Raw(data[:end]))
    assert rules.told(Raw(data)).status == "completed"


@KINDS
@given(data=st.binary(min_size=1, max_size=60) | st.from_regex(rb'\{"taskId":"t",.*\}'))
def test_rubbish_gives_a_task_or_a_refusal(rules: Tasks, data: bytes) -> None:
    for read in (rules.told, rules.made, rules.cancelled):
        try:
            found = read(Raw(data))
            if found is not None:
                rules.step(found)
        except RemoteProtocolError:
            pass
