"""The published schemas of every protocol version, to hold frames against. Fetches nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.protocols import Validator
from referencing import Registry

from mcpclient.protocol.versions import HANDSHAKE, STATELESS
from tests.conftest import SHARED

SPEC = SHARED / "spec"
# The extension's schema, which goes with the stateless version.
TASKS = "ext-tasks"
# What answers a request of the server.
ANSWERS = {
    "ping": "EmptyResult",
    "roots/list": "ListRootsResult",
    "sampling/createMessage": "CreateMessageResult",
    "elicitation/create": "ElicitResult",
}

needs_spec = pytest.mark.skipif(
    not SPEC.is_dir(), reason="the specification's schemas do not stand beside the checkout"
)


@cache
def schema(version: str) -> dict[str, Any]:
    """Return the schema of a version."""
    found = json.loads((SPEC / f"schema-{version}.json").read_text())
    assert isinstance(found, dict)
    return found


def definitions(version: str) -> dict[str, Any]:
    """Return the definitions of a version's schema by name."""
    whole = schema(version)
    found = whole.get("$defs") or whole["definitions"]
    assert isinstance(found, dict)
    return found


@cache
def validator(version: str, definition: str) -> Validator:
    """Return what checks a value against one definition."""
    whole = schema(version)
    place = "$defs" if "$defs" in whole else "definitions"
    kind = Draft202012Validator if "2020-12" in whole["$schema"] else Draft7Validator
    # An empty registry: a reference to the network is an error and never a download.
    return kind({**whole, "$ref": f"#/{place}/{definition}"}, registry=Registry())


def check(version: str, definition: str, value: Any) -> None:
    """Raise jsonschema's ValidationError if a value is not as a definition says."""
    validator(version, definition).validate(value)


@cache
def by_method(version: str) -> dict[str, str]:
    """Return the definition of each method's message."""
    return {
        one["properties"]["method"]["const"]: name
        for name, one in definitions(version).items()
        if "const" in one.get("properties", {}).get("method", {}) and name != "ClientNotification"
    }


@cache
def of_tasks() -> dict[str, str]:
    """Return the definition of each message of the client that the extension adds, by method."""
    return {
        one["allOf"][1]["properties"]["method"]["const"]: name
        for name, one in definitions(TASKS).items()
        if name.endswith("TaskRequest")
    }


@cache
def elsewhere(version: str) -> frozenset[str]:
    """Return the methods that only other versions have."""
    every = {method for one in (*HANDSHAKE, *STATELESS) for method in by_method(one)}
    return frozenset((every | set(of_tasks())) - set(by_method(version)))


@cache
def allowed(version: str, union: str) -> frozenset[str]:
    """Return the names of the definitions that a union such as ClientRequest allows."""
    found = definitions(version)[union]
    if "anyOf" not in found:  # a union of one is written out
        return frozenset({by_method(version)[found["properties"]["method"]["const"]]})
    return frozenset(one["$ref"].rpartition("/")[2] for one in found["anyOf"])


def check_sent(version: str, message: Mapping[str, Any], asked: str = "") -> str:
    """Check a message of the client and return what it is: a method, ``answer`` or ``refusal``.

    A method that no version has, as a host may call one, is checked as far as any request is.

    Args:
        version: The version that is spoken.
        message: The message.
        asked: The method that an answer answers, if it is known.
    """
    method = message.get("method")
    known = definitions(version)
    if method is None:
        if "error" in message:
            assert set(message) == {"jsonrpc", "id", "error"}
            plain = "JSONRPCError" if "JSONRPCError" in known else "JSONRPCErrorResponse"
            check(version, plain, message)
            return "refusal"
        assert set(message) == {"jsonrpc", "id", "result"}
        check(version, "JSONRPCResponse", message)
        if asked in ANSWERS:
            assert ANSWERS[asked] in known, f"{version} has no {asked}"
            result = message["result"]
            whole = asked == "elicitation/create"
            check(version, ANSWERS[asked], _without_fractions(result) if whole else result)
        return "answer"
    assert isinstance(method, str)
    assert set(message) <= {"jsonrpc", "id", "method", "params"}
    request = "id" in message
    check(version, "JSONRPCRequest" if request else "JSONRPCNotification", message)
    if request and version in STATELESS:
        check(version, "RequestParams", message.get("params"))
        message = _with_whole_answers(message)
    name = by_method(version).get(method)
    if name is not None:
        check(version, name, message)
        union = "ClientRequest" if request else "ClientNotification"
        assert name in allowed(version, union), f"no client of {version} sends {method}"
    elif request and version in STATELESS and method in of_tasks():
        check(TASKS, of_tasks()[method], message)
    else:
        assert method not in elsewhere(version), f"{version} has no {method}"
    return method


def _with_whole_answers(message: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a request without fractions in what its ``inputResponses`` say of forms."""
    responses = message["params"].get("inputResponses")
    if not isinstance(responses, dict):
        return message
    whole = {
        key: _without_fractions(one) if isinstance(one, dict) and "action" in one else one
        for key, one in responses.items()
    }
    return {**message, "params": {**message["params"], "inputResponses": whole}}


def _without_fractions(result: Any) -> Any:
    """Return an ElicitResult with whole numbers for others in its content, one level deep.

    A form may ask for a ``number`` and propose 95.5, in the schemas' own NumberSchema; what they
    say of ElicitResult has no place for it, in any version: ``integer`` is the only number there.
    """
    content = result.get("content") if isinstance(result, dict) else None
    if not isinstance(content, dict):
        return result
    whole = {key: int(one) if isinstance(one, float) else one for key, one in content.items()}
    return {**result, "content": whole}
