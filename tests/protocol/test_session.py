"""A conversation: its states as the table draws them, its ids, and the frames it makes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.protocol.eras import Identity, Terms
from mcpclient.protocol.events import Answer, Ask, Noise, Notice
from mcpclient.protocol.session import Session
from mcpclient.protocol.states import SESSION

MODERN, OLD = "2026-07-28", "2025-06-18"
WHO = Identity("tests", "1.0")

# A way into each state, and each event as the call that causes it.
INTO: dict[str, list[Callable[[Session], Any]]] = {
    "fresh": [],
    "probing": [lambda one: one.probe(MODERN)],
    "initializing": [lambda one: one.initialize(OLD)],
    "open": [
        lambda one: one.initialize(OLD),
        lambda one: one.agree_handshake(Terms(version=OLD)),
    ],
    "closed": [lambda one: one.close()],
}
CAUSES: dict[str, list[Callable[[Session], Any]]] = {
    "probe": [lambda one: one.probe(MODERN)],
    "initialize": [lambda one: one.initialize("2025-11-25")],
    "agree": [
        lambda one: one.agree_stateless(Terms(version=MODERN)),
        lambda one: one.agree_handshake(Terms(version=OLD)),
    ],
    "close": [lambda one: one.close()],
}


def session(state: str = "open") -> Session:
    """Return a session in this state."""
    made = Session(WHO)
    for step in INTO[state]:
        step(made)
    assert made.state == state
    return made


def facts(one: Session) -> tuple[Any, ...]:
    """Return all that a session knows."""
    return (one.state, one.era, one.terms, one._next_id)


def frame(line: bytes) -> dict[str, Any]:
    """Return a frame's message."""
    assert line.endswith(b"\n")
    found = json.loads(line)
    assert isinstance(found, dict)
    return found


# -- states --------------------------------------------------------------------------------


def test_every_state_and_every_event_of_the_table_is_tried_here() -> None:
    assert set(INTO) == set(SESSION.moves)
    assert set(CAUSES) == {event for moves in SESSION.moves.values() for event in moves}
    assert Session(WHO).state == SESSION.start == "fresh"


@pytest.mark.parametrize("state", INTO)
@pytest.mark.parametrize("event", CAUSES)
def test_a_move_leads_where_the_table_says_or_changes_nothing_and_says_a_sentence(
    state: str, event: str
) -> None:
    for cause in CAUSES[event]:
        one = session(state)
        before = facts(one)
        if SESSION.allows(state, event):
            cause(one)
            assert one.state == SESSION.moves[state][event]
        elif event == "close":
            cause(one)  # closing twice is no fault
            assert facts(one) == before
        else:
            with pytest.raises(LocalProtocolError) as caught:
                cause(one)
            assert str(caught.value).startswith(
                f"session: {event!r} is not possible in state {state!r} (possible: "
            )
            assert facts(one) == before


@pytest.mark.parametrize("state", [state for state in INTO if state != "open"])
def test_requests_are_sent_only_in_an_open_conversation(state: str) -> None:
    one = session(state)
    before = facts(one)
    with pytest.raises(LocalProtocolError) as caught:
        one.request("tools/list", None)
    assert str(caught.value) == f"session: 'tools/list' cannot be sent in state {state!r}"
    assert facts(one) == before


def test_silence_to_the_probe_may_be_followed_by_initialize_and_a_late_verdict() -> None:
    one = Session(WHO)
    first, _ = one.probe(MODERN)
    second, _ = one.initialize(OLD)
    third, _ = one.probe(MODERN)
    assert (first, second, third) == (1, 2, 3)
    one.agree_stateless(Terms(version=MODERN))
    assert (one.state, one.era.name) == ("open", "stateless")


# -- opening -------------------------------------------------------------------------------


def test_a_probe_speaks_the_stateless_era_at_once() -> None:
    one = Session(WHO)
    id, item = one.probe(MODERN)
    assert (one.era.name, one.era.version, one.terms) == ("stateless", MODERN, None)
    assert (item.method, item.version, item.written) == ("server/discover", MODERN, False)
    assert frame(item.frame) == {
        "jsonrpc": "2.0",
        "id": id,
        "method": "server/discover",
        "params": {
            "_meta": {
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1.0"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
        },
    }


def test_initialize_offers_one_version_and_says_who_we_are() -> None:
    one = Session(WHO)
    id, item = one.initialize(OLD)
    assert (one.era.name, one.era.version) == ("handshake", OLD)
    assert frame(item.frame) == {
        "jsonrpc": "2.0",
        "id": id,
        "method": "initialize",
        "params": {
            "protocolVersion": OLD,
            "capabilities": {},
            "clientInfo": {"name": "tests", "version": "1.0"},
        },
    }


def test_agreeing_on_a_handshake_confirms_it_once_and_speaks_the_agreed_version() -> None:
    one = session("initializing")
    terms = Terms(version="2024-11-05", capabilities={"tools": {}})
    item = one.agree_handshake(terms)
    assert item.frame == b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
    assert (item.method, item.version) == ("notifications/initialized", "2024-11-05")
    assert (one.state, one.era.name, one.era.version) == ("open", "handshake", "2024-11-05")
    assert one.terms is terms


def test_agreeing_on_a_stateless_conversation_sends_nothing() -> None:
    one = session("probing")
    terms = Terms(version=MODERN)
    assert one.agree_stateless(terms) is None  # type: ignore[func-returns-value]  # that is it
    assert (one.state, one.era.name, one.terms) == ("open", "stateless", terms)


# -- sending -------------------------------------------------------------------------------


def test_ids_are_counted_from_one_over_the_whole_conversation_and_never_used_twice() -> None:
    one = Session(WHO)
    ids = [one.probe(MODERN)[0], one.initialize(OLD)[0]]
    one.agree_handshake(Terms(version=OLD))
    for _ in range(200):
        id, item = one.request("ping", None)
        assert frame(item.frame)["id"] == id
        one.cancel(id, "no more")
        one.receive(b'{"jsonrpc":"2.0","id":%d,"result":{}}' % id)
        ids.append(id)
    assert ids == list(range(1, 203))


def test_a_request_that_cannot_be_written_uses_up_no_id() -> None:
    one = session()
    before = facts(one)
    with pytest.raises(LocalProtocolError):
        one.request("tools/call", {"x": float("nan")})
    assert facts(one) == before
    assert one.request("ping", None)[0] == before[3]


def test_only_ids_that_were_given_were_issued() -> None:
    one = session()
    last, _ = one.request("ping", None)
    assert [id for id in range(-3, last + 3) if one.issued(id)] == list(range(1, last + 1))
    assert not one.issued(2**70)


def test_a_request_carries_method_params_and_version_beside_its_frame() -> None:
    one = session()
    params = {"name": "add", "arguments": {"a": 1}}
    id, item = one.request("tools/call", params)
    assert (item.method, item.params, item.version) == ("tools/call", params, OLD)
    assert frame(item.frame) == {
        "jsonrpc": "2.0",
        "id": id,
        "method": "tools/call",
        "params": params,
    }
    assert params == {"name": "add", "arguments": {"a": 1}}


def test_the_token_of_progress_is_the_id_of_the_request() -> None:
    one = session()
    params = {"name": "add", "_meta": {"traceparent": "00-1"}}
    id, item = one.request("tools/call", params, progress=True)
    assert frame(item.frame)["params"] == {
        "name": "add",
        "_meta": {"traceparent": "00-1", "progressToken": id},
    }
    assert params == {"name": "add", "_meta": {"traceparent": "00-1"}}
    other, item = one.request("tools/list", None, progress=True)
    assert frame(item.frame)["params"] == {"_meta": {"progressToken": other}}


def test_a_cancellation_names_the_request() -> None:
    item = session().cancel(7, "user stop")
    assert frame(item.frame) == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 7, "reason": "user stop"},
    }


@pytest.mark.parametrize("id", [5, "s1", 2.5])
def test_a_servers_request_is_answered_or_refused_under_its_own_id(id: Any) -> None:
    one = session()
    [ask] = one.receive(json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping"}).encode())
    assert isinstance(ask, Ask)
    assert frame(one.answer(ask, {}).frame) == {"jsonrpc": "2.0", "id": id, "result": {}}
    assert frame(one.refuse(ask, -32601, "no").frame) == {
        "jsonrpc": "2.0",
        "id": id,
        "error": {"code": -32601, "message": "no"},
    }


@pytest.mark.parametrize("state", INTO)
def test_lines_are_heard_in_every_state_and_change_none(state: str) -> None:
    one = session(state)
    before = facts(one)
    heard = [
        *one.receive(b'{"jsonrpc":"2.0","id":1,"result":{}}'),
        *one.receive(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'),
        *one.receive(b'{"jsonrpc":"2.0","method":"notifications/message"}'),
        *one.receive(b"noise"),
    ]
    assert [type(event) for event in heard] == [Answer, Ask, Notice, Noise]
    assert facts(one) == before
