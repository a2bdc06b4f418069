"""What each line that arrives means to a conversation: one event or several, never an exception."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from mcpclient.protocol.eras import Identity, Terms
from mcpclient.protocol.events import Answer, Ask, Broken, Event, Noise, Notice, Refusal
from mcpclient.protocol.session import Session
from tests.protocol import quick


def session() -> Session:
    """Return an open session that issued one request."""
    made = Session(Identity("tests", "1.0"))
    made.initialize("2025-06-18")
    made.agree_handshake(Terms(version="2025-06-18"))
    return made


def seen(event: Event) -> tuple[Any, ...]:
    """Return an event as a tuple, its payload as bytes."""
    members = (getattr(event, name) for name in event.__struct_fields__)
    return (
        type(event),
        *(bytes(member) if isinstance(member, Raw) else member for member in members),
    )


def heard(line: bytes) -> list[tuple[Any, ...]]:
    """Return what a line says."""
    return [seen(event) for event in session().receive(line)]


EVENTS: list[tuple[bytes, tuple[Any, ...]]] = [
    (b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}', (Answer, 1, b'{"a":1}')),
    (b'{"id":"1","result":null,"more":1}\r', (Answer, 1, b"null")),
    (b'{"jsonrpc":"1.0","id":1.0,"result":[]}', (Answer, 1, b"[]")),
    (b'{"jsonrpc":2.0,"id":"1.0","result":0}', (Answer, 1, b"0")),
    (b'{"jsonrpc":"2.0","id":1,"result":{},"error":null}', (Answer, 1, b"{}")),
    (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no","data":[1]}}',
        (Refusal, 1, -32601, "no", b"[1]"),
    ),
    (
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":5,"message":"both"}}',
        (Refusal, 1, 5, "both", b""),
    ),
    (b'{"jsonrpc":"2.0","id":1,"error":{}}', (Refusal, 1, 0, "", b"")),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":-5.0,"message":5}}', (Refusal, 1, -5, "", b"")),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":true,"message":null}}', (Refusal, 1, 0, "", b"")),
    (b'{"jsonrpc":"2.0","id":1,"error":"gone"}', (Refusal, 1, 0, '"gone"', b"")),
    (b'{"jsonrpc":"2.0","id":1,"error":[]}', (Refusal, 1, 0, "[]", b"")),
    (
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"it\x92s"}}',
        (Refusal, 1, 1, "it�s", b""),
    ),
    (
        b'{"jsonrpc":"2.0","id":1}',
        (Broken, 1, "the answer has neither a result nor an error"),
    ),
    (
        b'{"jsonrpc":"2.0","id":1,"error":null}',
        (Broken, 1, "the answer has neither a result nor an error"),
    ),
    (
        b'{"jsonrpc":"2.0","id":1,"result":{"a":',
        (Broken, 1, 'broken JSON: {"jsonrpc":"2.0","id":1,"result":{"a":'),
    ),
    (
        b'{"jsonrpc":"2.0","id":1,"result":NaN}',
        (
            Broken,
            1,
            'NaN or Infinity, which is not JSON: {"jsonrpc":"2.0","id":1,"result":NaN}',
        ),
    ),
    (b'{"jsonrpc":"2.0","method":"a/b"}', (Notice, "a/b", b"")),
    (b'{"method":"window/logMessage","params":[1]}', (Notice, "window/logMessage", b"[1]")),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', (Ask, 1, "ping", b"")),
    (b'{"jsonrpc":"2.0","id":"s1","method":"ping","params":{}}', (Ask, "s1", "ping", b"{}")),
    # What has a method is no answer, whatever else it has.
    (b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', (Ask, 1, "ping", b"")),
    (b'{"jsonrpc":"2.0","method":"x","error":{"code":1}}', (Notice, "x", b"")),
]

NOISE: list[tuple[bytes, str]] = [
    (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', "a request whose id is null or of no legal"),
    (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', "a request whose id is null or of no legal"),
    (b'{"jsonrpc":"2.0","id":null,"result":{}}', "an answer that names no request of ours"),
    (b'{"jsonrpc":"2.0","result":{}}', "an answer that names no request of ours"),
    (b'{"jsonrpc":"2.0","id":true,"result":{}}', "an answer that names no request of ours"),
    (b'{"jsonrpc":"2.0","id":"null","result":{}}', "an answer that names no request of ours"),
    (b'{"jsonrpc":"2.0","error":{"code":-32601}}', "an error that names no request of ours"),
    (b'{"jsonrpc":"2.0","id":null,"error":{"code":1}}', "an error that names no request of ours"),
    (b"{}", "JSON that is no message"),
    (b'{"level":"info","msg":"ready"}', "JSON that is no message"),
    (b'{"id":7,"name":"a log record"}', "JSON that is no message"),
    (b'{"jsonrpc":"2.0"}', "JSON that is no message"),
    (b"{", "multi-line JSON"),
    (b'  "jsonrpc": "2.0",', ""),
    (b"Content-Length: 45\r", "LSP framing"),
    (b"[INFO] ready", ""),
    (b"[]", "an empty array"),
]


@pytest.mark.parametrize(("line", "event"), EVENTS)
def test_a_line_is_one_event(line: bytes, event: tuple[Any, ...]) -> None:
    assert heard(line) == [event]


@pytest.mark.parametrize(("line", "hint"), NOISE)
def test_what_concerns_nobody_is_noise_with_a_hint(line: bytes, hint: str) -> None:
    [event] = session().receive(line)
    assert isinstance(event, Noise)
    assert event.hint.startswith(hint)
    assert bool(event.hint) == bool(hint)
    assert event.line
    assert event.line in line


@pytest.mark.parametrize("line", [b"", b"\r", b"   ", b"\xef\xbb\xbf"])
def test_a_blank_line_says_nothing(line: bytes) -> None:
    assert list(session().receive(line)) == []


def test_an_array_is_heard_member_by_member() -> None:
    lines = [line.strip() for line, _ in EVENTS[:6]]
    assert heard(b"[" + b",".join(lines) + b"]") == [event for _, event in EVENTS[:6]]
    [first, second] = session().receive(b'[5,{"jsonrpc":"2.0","method":"a"}]')
    assert first == Noise(b"5", "")
    assert isinstance(second, Notice)


def test_what_arrives_changes_nothing_that_the_conversation_knows() -> None:
    one = session()
    before = (one.state, one.era, one.terms, one.issued(1), one.issued(2))
    for line, _ in [*EVENTS, *NOISE]:
        one.receive(line)
    assert (one.state, one.era, one.terms, one.issued(1), one.issued(2)) == before


# -- rubbish -------------------------------------------------------------------------------

MEMBERS = ["jsonrpc", "id", "method", "params", "result", "error"]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(alphabet=st.characters(exclude_categories=()), max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*MEMBERS, "code", "message", "data"]),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)
MESSAGES = st.dictionaries(st.sampled_from(MEMBERS), JSON, max_size=6)


@quick
@given(
    st.binary(max_size=60)
    | (MESSAGES | JSON).map(lambda value: json.dumps(value).encode())
    | MESSAGES.map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")),
    st.integers(0, 80),
    st.integers(0, 80),
)
def test_rubbish_is_events_and_never_an_exception(line: bytes, one: int, other: int) -> None:
    cut = line[:one] + line[other:]
    for event in session().receive(cut):
        match event:
            case Answer(id=id) | Refusal(id=id) | Broken(id=id):
                assert type(id) is int
            case Ask(id=id, method=method):
                assert type(id) in (int, str, float)
                assert isinstance(method, str)
                assert json.loads(session().refuse(event, -32601, method).frame)["id"] == id
            case Notice(method=method):
                assert isinstance(method, str)
            case Noise(hint=hint):
                assert isinstance(hint, str)


@pytest.mark.parametrize("depth", [*range(150, 1010, 40), 5000, 100_000])
@pytest.mark.parametrize("place", ["result", "error", "params", "id", "method", "jsonrpc", ""])
def test_depth_is_an_event_and_never_an_exception(depth: int, place: str) -> None:
    for left, right in ((b"[", b"]"), (b'{"id":', b"}")):
        deep = left * depth + b"1" + right * depth
        line = b'{"jsonrpc":"2.0","id":3,"%b":%b}' % (place.encode(), deep) if place else deep
        assert all(isinstance(event, Event) for event in session().receive(line))
