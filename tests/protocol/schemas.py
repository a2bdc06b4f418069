"""The published schemas of every protocol version, to hold frames against. Fetches nothing."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.protocols import Validator
from referencing import Registry

from tests.conftest import SHARED

SPEC = SHARED / "spec"

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
def allowed(version: str, union: str) -> frozenset[str]:
    """Return the names of the definitions that a union such as ClientRequest allows."""
    found = definitions(version)[union]
    if "anyOf" not in found:  # a union of one is written out
        return frozenset({by_method(version)[found["properties"]["method"]["const"]]})
    return frozenset(one["$ref"].rpartition("/")[2] for one in found["anyOf"])


def check_sent(version: str, message: dict[str, Any]) -> str:
    """Check a message of the client and return what it is: a method, ``answer`` or ``refusal``."""
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
        return "answer"
    assert isinstance(method, str)
    assert set(message) <= {"jsonrpc", "id", "method", "params"}
    name = by_method(version)[method]
    request = "id" in message
    check(version, "JSONRPCRequest" if request else "JSONRPCNotification", message)
    check(version, name, message)
    assert name in allowed(version, "ClientRequest" if request else "ClientNotification")
    return method
