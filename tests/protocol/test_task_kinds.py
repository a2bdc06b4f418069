"""Which servers have tasks, which results are some, and which messages belong to one."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.protocol.eras import Identity, NoTasks, OtherResult, Wanted
from mcpclient.protocol.eras.handshake import Handshake
from mcpclient.protocol.eras.stateless import Stateless
from mcpclient.protocol.eras.tasks import CoreTasks, ExtensionTasks
from mcpclient.protocol.extensions import TASKS, checked
from mcpclient.protocol.methods import MAY_BE_TASKS

MODERN, OLD = "2026-07-28", "2025-11-25"
WHO = Identity("mgr", "0.1", extensions=checked({TASKS: {}}))
ERA = Stateless(MODERN, WHO)
EXTENSION = ExtensionTasks(declared=True)


def raw(value: Any) -> Raw:
    """Return a value as it comes over the wire."""
    return Raw(json.dumps(value).encode())


def task(**members: Any) -> dict[str, Any]:
    """Return a task that both eras can read."""
    stamps = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:01Z"}
    return {"taskId": "t", "status": "working", **stamps, "ttl": None, "ttlMs": None, **members}


# -- who has tasks ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("declared", "cancels", "lists"),
    [
        ({"requests": {"tools": {"call": {}}}}, False, False),
        ({"requests": {"tools": {"call": {}}}, "cancel": {}, "list": {}}, True, True),
        ({"requests": {"tools": {"call": {}}}, "cancel": None, "list": False}, False, False),
    ],
)
def test_a_legacy_server_has_what_it_declares(declared: Any, cancels: bool, lists: bool) -> None:
    rules = Handshake(OLD).tasks({"tasks": declared})
    assert isinstance(rules, CoreTasks)
    assert (rules.cancels, rules.lists, rules.directed) == (cancels, lists, True)


@pytest.mark.parametrize(
    "declared",
    [
        None,
        {},
        True,
        [],
        {"requests": None},
        {"requests": {"tools": None}},
        {"requests": {"tools": {}}},
        {"requests": {"tools": {"call": None}}},
        {"requests": {"sampling": {"createMessage": {}}}},
    ],
)
def test_a_legacy_server_that_does_not_declare_tasks_for_tools_has_none(declared: Any) -> None:
    assert isinstance(Handshake(OLD).tasks({"tasks": declared}), NoTasks)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_an_older_version_has_no_tasks_whatever_is_declared(version: str) -> None:
    rules = Handshake(version).tasks({"tasks": {"requests": {"tools": {"call": {}}}}})
    assert isinstance(rules, NoTasks)


def test_neither_kind_is_taken_for_the_other() -> None:
    both = {
        "tasks": {"requests": {"tools": {"call": {}}}},
        "extensions": {TASKS: {}},
    }
    assert isinstance(Handshake(OLD).tasks(both), CoreTasks)
    assert isinstance(ERA.tasks(both), ExtensionTasks)
    assert isinstance(Handshake(OLD).tasks({"extensions": {TASKS: {}}}), NoTasks)
    without = Stateless(MODERN, Identity("mgr", "0.1")).tasks(both)
    assert isinstance(without, NoTasks)
    assert "Manager(extensions=" in without.barred
    undeclared = ERA.tasks({"tasks": both["tasks"]})
    assert isinstance(undeclared, ExtensionTasks)
    assert undeclared.barred


def test_the_extension_says_nothing_in_the_call_itself() -> None:
    params = {"name": "slow", "arguments": {}}
    assert EXTENSION.augmented(params, 60.0) == params


def test_news_of_tasks_are_asked_for_beside_the_others() -> None:
    era = ERA
    wanted = Wanted(frozenset({"file:///a"}), frozenset(), frozenset({"t-9", "t-8"}))
    plan = era.subscribing(Wanted(), wanted, {})
    assert plan.params == {
        "notifications": {"resourceSubscriptions": ["file:///a"], "taskIds": ["t-8", "t-9"]}
    }
    assert era.subscribing(wanted, Wanted(), {}).params is None
    legacy = Handshake(OLD).subscribing(Wanted(), Wanted(tasks=frozenset({"k1"})), {})
    assert (legacy.requests, legacy.refused) == ([], [])


# -- which results are tasks -----------------------------------------------------------------


def test_only_a_tool_call_may_become_a_task() -> None:
    assert {"tools/call"} == MAY_BE_TASKS
    era = ERA
    made = raw({"resultType": "task", **task()})
    with pytest.raises(OtherResult) as caught:
        era.read("tools/call", made)
    assert (caught.value.kind, caught.value.result) == ("task", made)
    for method in ("resources/read", "prompts/get", "tools/list", "x/y"):
        with pytest.raises(RemoteProtocolError, match="unknown kind 'task'") as refused:
            era.read(method, made)
        assert not isinstance(refused.value, OtherResult)


def test_what_is_asked_about_a_task_may_call_itself_one() -> None:
    era = ERA
    told = raw({"resultType": "task", **task()})
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        assert era.read(method, told) is told


def test_without_the_extension_a_task_is_an_unknown_kind() -> None:
    era = Stateless(MODERN, Identity("mgr", "0.1"))
    for method in ("tools/call", "tasks/get"):
        with pytest.raises(RemoteProtocolError, match="unknown kind 'task'"):
            era.read(method, raw({"resultType": "task", **task()}))


def test_a_legacy_result_is_never_read_as_a_kind() -> None:
    told = raw({"resultType": "task", **task()})
    assert Handshake(OLD).read("tools/call", told) is told


def test_an_answer_belongs_to_the_task_that_its_request_belongs_to() -> None:
    key = "io.modelcontextprotocol/related-task"
    params = {"message": "?", "_meta": {key: {"taskId": "k1"}, "progressToken": 1}}
    era = Handshake(OLD)
    assert era.replying(params, {"action": "decline"}) == {
        "action": "decline",
        "_meta": {key: {"taskId": "k1"}},
    }
    kept = era.replying(params, {"action": "decline", "_meta": {"com.example/a": 1}})
    assert kept["_meta"] == {"com.example/a": 1, key: {"taskId": "k1"}}
    for odd in (None, {}, {"_meta": None}, {"_meta": {"progressToken": 1}}):
        assert era.replying(odd, {"action": "decline"}) == {"action": "decline"}
