"""Odd lines: their dress is taken off, what stays unreadable is described, and nothing raises."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.protocol import oddlines
from mcpclient.protocol.envelope import Envelope
from mcpclient.protocol.oddlines import Unreadable, repaired, salvage
from tests.protocol import quick

FRAME = b'{"jsonrpc":"2.0","id":1,"result":{"a":"b"}}'


def one(line: bytes) -> Envelope | Unreadable:
    """Return the only thing that a line holds."""
    [found] = oddlines.read(line)
    return found


def message(line: bytes) -> Envelope:
    """Return the only message that a line holds."""
    found = one(line)
    assert isinstance(found, Envelope), found
    return found


def unreadable(line: bytes) -> Unreadable:
    """Return the description of a line that is no message."""
    found = one(line)
    assert isinstance(found, Unreadable), found
    return found


# -- dress ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dress",
    [
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbf\xef\xbb\xbf",
        b"\x1b]0;proj: ready\x07",
        b"\x1b]0;proj: ready\x1b\\",
        b"\x1b[0m",
        b"\x1b[1;33;44m",
        b"\x1b[?25l\x1b[2K",
        b"\x00\x01\x07\x08\x0b\x0c\x1f\x7f",
        b" \t\r",
        b"\xef\xbb\xbf \x1b]2;a;b\x07\x1b[0m\x07 \xef\xbb\xbf\x0f",
    ],
)
def test_what_a_terminal_would_eat_is_taken_off_the_front(dress: bytes) -> None:
    found = message(dress + FRAME + b"\r")
    assert (found.id, bytes(found.result)) == (1, b'{"a":"b"}')
    assert oddlines.read(dress) == []


def test_a_byte_order_mark_inside_a_text_stays() -> None:
    found = message(b'\xef\xbb\xbf{"id":1,"result":"\xef\xbb\xbfx"}')
    assert bytes(found.result) == b'"\xef\xbb\xbfx"'


@pytest.mark.parametrize("line", [b"", b" ", b"   \r", b"\t", b"\x00", b"\xef\xbb\xbf\r"])
def test_a_blank_line_holds_nothing(line: bytes) -> None:
    assert oddlines.read(line) == []


@pytest.mark.parametrize(
    "line",
    [
        b"docs service ready",
        b"level=info msg=mem.init budget_mb=1",
        b"+ set -x",
        b"[INFO] connected",
        b"\x1b[33m[2026-01-01] [INFO] connected\x1b[0m",
        b"\x1b]0;a title that never ends",
        b"\xff\xfe\xfd",
        b"null",
        b"42",
        b'"text"',
        b"true",
        b"}",
    ],
)
def test_a_log_line_is_no_message_and_answers_nothing(line: bytes) -> None:
    found = unreadable(line)
    assert (found.hint, found.id) == ("", None)
    assert found.line
    assert line.endswith(found.line)


# -- arrays --------------------------------------------------------------------------------


def test_an_array_holds_its_messages_in_order() -> None:
    line = (
        b' [{"jsonrpc":"2.0","id":3,"result":{}}, {"jsonrpc":"2.0","method":"notifications/x"},'
        b'{"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"no"}}, 5, {"id":true}]'
    )
    third, notice, fourth, number, odd = oddlines.read(line)
    assert isinstance(third, Envelope)
    assert third.id == 3
    assert isinstance(notice, Envelope)
    assert notice.method == "notifications/x"
    assert isinstance(fourth, Envelope)
    assert bytes(fourth.error) == b'{"code":-32601,"message":"no"}'
    assert number == Unreadable(b"5")
    assert isinstance(odd, Envelope)
    assert odd.id is None


def test_an_empty_array_and_an_array_in_an_array_are_no_messages() -> None:
    assert unreadable(b"[]") == Unreadable(b"[]", "an empty array")
    assert isinstance(unreadable(b"[[" + FRAME + b"]]"), Unreadable)


def test_a_broken_member_costs_only_itself() -> None:
    good, odd = oddlines.read(b"[" + FRAME + b',{"jsonrpc":2,"id":9,"result":{"x":1}}]')
    assert isinstance(good, Envelope)
    assert isinstance(odd, Envelope)
    assert (good.id, odd.id) == (1, 9)


# -- members of odd types ------------------------------------------------------------------


def test_a_wrong_jsonrpc_member_costs_nothing() -> None:
    found = message(b'{"jsonrpc":2.0,"id":5,"method":"ping","params":{"a":1}}')
    assert (found.jsonrpc, found.id, found.method) == ("2.0", 5, "ping")
    assert bytes(found.params) == b'{"a":1}'


@pytest.mark.parametrize(
    ("text", "id"),
    [(b"5", 5), (b'"5"', "5"), (b'"s\\u00fc"', "sü"), (b"5.5", 5.5), (b"null", None)],
)
def test_an_id_beside_an_odd_member_keeps_its_type(text: bytes, id: Any) -> None:
    found = message(b'{"jsonrpc":2,"id":' + text + b',"method":"roots/list"}')
    assert found.id == id
    assert type(found.id) is type(id)


def test_without_an_id_there_is_none() -> None:
    assert message(b'{"jsonrpc":2,"method":"notifications/x"}').id is UNSET


@pytest.mark.parametrize("id", [b"true", b"false", b"[1]", b'{"a":1}', b"1e999"])
def test_an_id_of_no_legal_type_is_no_id(id: bytes) -> None:
    assert message(b'{"jsonrpc":"2.0","id":' + id + b',"result":{}}').id is None


def test_a_method_that_is_no_text_makes_no_message() -> None:
    assert unreadable(b'{"jsonrpc":"2.0","id":1,"method":5}').id is None
    assert message(b'{"jsonrpc":2,"id":1,"method":null,"result":1}').method is None


# -- text that is not Unicode --------------------------------------------------------------


@pytest.mark.parametrize("bad", [b"\x92", b"\xff\xfe", b"\xed\xa0\xbd", b"\xc3", b"\xf0\x9f\x98"])
def test_bytes_that_are_no_utf_8_cost_only_themselves(bad: bytes) -> None:
    found = message(b'{"jsonrpc":"2.0","id":1,"method":"it' + bad + b's","params":{}}')
    assert found.id == 1
    assert found.method is not None
    assert found.method.startswith("it�")
    assert found.method.endswith("s")


@pytest.mark.parametrize("half", [b"\\ud83d", b"\\uDE00", b"\\ud83d\\ud83d", b"\\ude00\\ud83d"])
def test_half_a_surrogate_pair_costs_only_itself_wherever_it_stands(half: bytes) -> None:
    shown = "�" * (len(half) // 6)
    found = message(b'{"jsonrpc":"2.0","id":1,"result":{"t":"a' + half + b'b","n":1}}')
    assert found.id == 1
    assert json.loads(bytes(found.result)) == {"t": f"a{shown}b", "n": 1}
    assert message(b'{"jsonrpc":"2.0","method":"a' + half + b'"}').method == f"a{shown}"
    assert message(b'{"jsonrpc":"2.0","id":"' + half + b'","method":"a"}').id == shown
    first, second = oddlines.read(b'[{"id":1,"result":"' + half + b'"},' + FRAME + b"]")
    assert isinstance(first, Envelope)
    assert isinstance(second, Envelope)
    assert (first.id, second.id) == (1, 1)


def test_a_repaired_payload_is_json_with_replacements() -> None:
    assert repaired(b'{"a":"it\x92s"}') == '{"a":"it�s"}'.encode()
    assert repaired(b'{"a":"\\ud83d","\\ude00":1}') == '{"a":"�","�":1}'.encode()
    assert repaired(b'"\\ud83dA\\ude00B\\ud83d"') == '"�A�B�"'.encode()
    assert repaired(b'"\\ud83d\\ude00 \xf0\x9f\x98\x80"') == '"😀 😀"'.encode()
    assert repaired(b'[1915883588174806058,1.5,true,null,"\xff"]') == (
        '[1915883588174806058,1.5,true,null,"�"]'.encode()
    )


@pytest.mark.parametrize("data", [b"", b"{", b"NaN", b'{"a":Infinity}', b"[-Infinity]", b"\xff"])
def test_what_is_no_json_cannot_be_repaired(data: bytes) -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        repaired(data)
    assert str(caught.value).startswith("the server's JSON cannot be read: ")


# -- hints and salvage ---------------------------------------------------------------------


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
def test_nan_is_named_and_fails_the_call_it_answers(number: bytes) -> None:
    found = unreadable(b'{"jsonrpc":"2.0","id":4,"result":{"x":[1, ' + number + b"]}}")
    assert (found.hint, found.id) == ("NaN or Infinity, which is not JSON", 4)


@pytest.mark.parametrize("deep", [b"[" * 100_000 + b"]" * 100_000, b'{"a":' * 50_000 + b"1"])
def test_deep_nesting_is_named_and_fails_the_call_it_answers(deep: bytes) -> None:
    found = unreadable(b'{"jsonrpc":"2.0","id":4,"result":' + deep + b"}")
    assert (found.hint, found.id) == ("JSON that is nested too deeply, or broken", 4)


def test_lsp_framing_is_named() -> None:
    for line in (b"Content-Length: 45\r", b"content-length: 45"):
        assert unreadable(line).hint.startswith("LSP framing: ")


@pytest.mark.parametrize("line", [b"{", b"{\r", b"[", b" [ "])
def test_json_over_many_lines_is_named_at_its_first_line(line: bytes) -> None:
    assert unreadable(line).hint == "multi-line JSON: each message must stand on one line"


def test_a_cut_at_every_byte_gives_a_message_or_the_id_it_answers() -> None:
    line = b'{"jsonrpc":"2.0","id":12,"result":{"t":"a\xe2\x80\xa8\\n","n":[1,{"id":7}]}}'
    known = line.index(b':{"t"')
    for cut in range(1, len(line)):
        found = unreadable(line[:cut])
        assert found.id == (12 if cut >= known else None), line[:cut]
        rest = unreadable(line[cut:])
        assert rest.id is None, line[cut:]


@pytest.mark.parametrize(
    ("head", "tail", "id"),
    [
        (b'{"jsonrpc":"2.0","id":12,"result":{', b"", 12),
        (b'{"jsonrpc":"2.0","id":12,"error":{', b"", 12),
        (b'{ "id" : 12 , "jsonrpc" : "2.0" , "result" : [', b"", 12),
        (b'{"id":12,"result":"', b"", 12),
        (b'{"jsonrpc":"2.0","result":{', b'}],"id":12}', 12),
        (b'{"result":"', b'","id": 12, "jsonrpc":"2.0"}\r', 12),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","id":12,"result":{', b"", 12),
        (b'\x1b]0;t\x07{"result":{', b'},"id":12}', 12),
        # Not an answer, or not surely one:
        (b'{"jsonrpc":"2.0","id":12,"method":"ping","params":{', b'},"id":13}', None),
        (b'{"jsonrpc":"2.0","method":"x","params":{"a":{', b'"id":12}', None),
        (b'{"method":"x","id":12,"result":{', b"", None),
        (b'{"jsonrpc":"2.0","id":"12","result":{', b"", None),
        (b'{"jsonrpc":"2.0","id":1.5,"result":{', b"", None),
        (b'{"jsonrpc":"2.0","id":null,"result":{', b"", None),
        (b'{"jsonrpc":"2.0","result":{"a":[', b'{"id":12}]}}', None),
        (b'{"jsonrpc":"2.0","id":12345678901234567890,"result":{', b"", None),
        (b'log {"jsonrpc":"2.0","id":12,"result":{', b"", None),
        (b"", b'"id":12}', None),
        (b"", b"", None),
    ],
)
def test_the_id_of_a_broken_answer_is_salvaged_from_its_ends(
    head: bytes, tail: bytes, id: int | None
) -> None:
    assert salvage(head, tail) == id


@quick
@given(st.integers(1, 10**6), st.binary(max_size=40), st.booleans())
def test_nothing_is_ever_salvaged_from_a_request(id: int, rest: bytes, first: bool) -> None:
    ask = b'"id":%d,"method":"roots/list",' if first else b'"method":"roots/list","id":%d,'
    line = b'{"jsonrpc":"2.0",' + ask % id + b'"params":' + rest
    assert salvage(line, line) is None


# -- rubbish -------------------------------------------------------------------------------

PIECES = st.lists(
    st.sampled_from(
        [
            *(bytes([byte]) for byte in b'{}[]:,"\\ \t\r\x00\x1b\x07'),
            b"\xef\xbb\xbf",
            b"\xff",
            b"\xed\xa0\x80",
            b"\\ud83d",
            b'"jsonrpc":"2.0"',
            b'"id":1',
            b'"id":true',
            b'"method":"x"',
            b'"result":{}',
            b'"error":',
            b"null",
            b"NaN",
            b"1e999",
            b"\x1b]0;",
            b"\x1b[0m",
            FRAME,
        ]
    ),
    max_size=12,
).map(b"".join)


@quick
@given(st.binary(max_size=60) | PIECES)
def test_rubbish_gives_messages_or_descriptions_and_never_an_exception(line: bytes) -> None:
    for found in oddlines.read(line):
        match found:
            case Envelope(method=method, id=id):
                assert method is None or isinstance(method, str)
                assert id is UNSET or id is None or type(id) in (int, float, str)
            case Unreadable(line=part, id=salvaged):
                assert part in line or part.decode("utf-8", "replace") in line.decode(
                    "utf-8", "replace"
                )
                assert salvaged is None or salvaged >= 0


@quick
@given(st.binary(max_size=60) | PIECES)
def test_a_repair_of_rubbish_is_json_or_the_servers_fault(data: bytes) -> None:
    try:
        text = repaired(data)
    except RemoteProtocolError:
        return
    json.loads(text.decode("utf-8"))
