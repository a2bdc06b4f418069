"""The era without a handshake: requests say who asks, and results say of what kind they are."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mcpclient.ground.errors import InputRefused, RemoteProtocolError
from mcpclient.protocol.eras import Identity
from mcpclient.protocol.eras.stateless import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    SERVER_KEY,
    VERSION_KEY,
    Stateless,
)
from tests.protocol import quick

VERSION = "2026-07-28"
ERA = Stateless(VERSION, Identity("mgr", "0.1"))
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "mgr", "version": "0.1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def raw(value: Any) -> Raw:
    """Return a value as a server would write it."""
    return Raw(json.dumps(value).encode())


def test_the_keys_are_those_of_the_specification() -> None:
    assert {VERSION_KEY, CLIENT_KEY, CAPABILITIES_KEY} == set(META)
    assert SERVER_KEY == "io.modelcontextprotocol/serverInfo"


def test_the_server_may_not_ask() -> None:
    assert (ERA.name, ERA.version) == ("stateless", VERSION)
    assert ERA.server_may_ask is False


def test_every_request_says_who_asks_and_in_which_version() -> None:
    assert ERA.stamp(None, None) == {"_meta": META}
    assert ERA.stamp({}, None) == {"_meta": META}
    assert ERA.stamp({"cursor": ""}, None) == {"cursor": "", "_meta": META}
    assert ERA.stamp({"_meta": None}, None) == {"_meta": META}


def test_progress_is_asked_for_with_a_token() -> None:
    assert ERA.stamp({"name": "a"}, 7) == {"name": "a", "_meta": {**META, "progressToken": 7}}
    assert ERA.stamp(None, None) == {"_meta": META}


def test_the_callers_own_meta_is_kept_but_cannot_lie_about_us() -> None:
    params = {
        "name": "a",
        "_meta": {"traceparent": "00-1", "progressToken": "p7", VERSION_KEY: "2099-01-01"},
    }
    before = json.dumps(params)
    assert ERA.stamp(params, None) == {
        "name": "a",
        "_meta": {**META, "traceparent": "00-1", "progressToken": "p7"},
    }
    assert ERA.stamp(params, 3)["_meta"]["progressToken"] == 3
    assert json.dumps(params) == before


@pytest.mark.parametrize("result", [{}, {"content": []}, {"resultType": "complete", "content": []}])
def test_a_result_is_complete_if_it_says_so_or_says_nothing(result: Any) -> None:
    wire = raw(result)
    for method in ("tools/call", "tools/list", "any/thing"):
        assert ERA.read(method, wire) is wire


@pytest.mark.parametrize("kind", ["task", "Complete", "", 5, None, ["complete"], {"a": 1}])
def test_another_kind_of_result_is_the_servers_fault(kind: Any) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        ERA.read("tools/call", raw({"resultType": kind, "content": []}))
    assert str(caught.value) == (f"the result of tools/call is of the unknown kind {str(kind)!r}")


def test_the_kind_is_read_before_the_rest_is_looked_at() -> None:
    assert ERA.read("tools/call", raw({"content": 5, "inputRequests": 5}))
    with pytest.raises(RemoteProtocolError) as caught:
        ERA.read("tools/list", raw({"resultType": "x\x1b[2J", "tools": 5}))
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "resources/read"])
def test_a_server_that_wants_input_is_told_apart(method: str) -> None:
    wire = raw(
        {
            "resultType": "input_required",
            "inputRequests": {
                "a": {"method": "elicitation/create", "params": {}},
                "b": {"method": "roots/list"},
            },
        }
    )
    with pytest.raises(InputRefused) as caught:
        ERA.read(method, wire)
    assert caught.value.method == method
    assert caught.value.asks == ("elicitation/create", "roots/list")


def test_a_round_for_the_sake_of_its_state_asks_for_nothing() -> None:
    with pytest.raises(InputRefused) as caught:
        ERA.read("tools/call", raw({"resultType": "input_required", "requestState": "s"}))
    assert caught.value.asks == ()


@pytest.mark.parametrize("method", ["tools/list", "server/discover", "completion/complete"])
def test_only_three_methods_may_want_input(method: str) -> None:
    wire = raw({"resultType": "input_required", "inputRequests": {"a": {"method": "x"}}})
    with pytest.raises(RemoteProtocolError) as caught:
        ERA.read(method, wire)
    assert str(caught.value) == (f"the result of {method} is of the unknown kind 'input_required'")


@pytest.mark.parametrize("data", [b"null", b"[]", b"5", b'"text"'])
def test_a_result_that_is_no_object_is_the_servers_fault(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        ERA.read("tools/list", Raw(data))
    assert str(caught.value).startswith("the result has an unexpected shape: ")


@pytest.mark.parametrize(
    ("ttl", "seconds"),
    [
        (60_000, 60.0),
        (1, 0.001),
        (1500.5, 1.5005),
        (0, 0.0),
        (-5, 0.0),
        (None, 0.0),
        ("60000", 0.0),
        (True, 0.0),
        ([60_000], 0.0),
    ],
)
def test_a_result_stays_fresh_for_as_long_as_it_says(ttl: Any, seconds: float) -> None:
    assert ERA.lifetime(raw({"ttlMs": ttl})) == seconds
    assert ERA.lifetime(raw({})) == 0.0


def test_for_ever_is_a_finite_time() -> None:
    lifetime = ERA.lifetime(Raw(b'{"ttlMs":' + b"9" * 400 + b"}"))
    assert lifetime is not None
    assert math.isfinite(lifetime)
    assert lifetime > 86_400 * 365 * 100


def test_a_cancellation_names_the_request_and_the_reason() -> None:
    assert ERA.cancel(7, "user stop") == {"requestId": 7, "reason": "user stop"}


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=5)
    | st.sampled_from(["complete", "input_required"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["resultType", "inputRequests", "requestState", "method", "ttlMs"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=8,
)


@quick
@given(
    JSON | st.fixed_dictionaries({"resultType": st.just("input_required"), "inputRequests": JSON})
)
def test_any_json_is_a_result_or_wants_input_or_is_the_servers_fault(value: Any) -> None:
    wire = raw(value)
    try:
        assert ERA.read("tools/call", wire) is wire
        assert (ERA.lifetime(wire) or 0.0) >= 0.0
    except InputRefused:
        assert value["resultType"] == "input_required"
    except RemoteProtocolError:
        assert not isinstance(value, dict) or value.get("resultType", "complete") != "complete"
