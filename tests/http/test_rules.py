"""The rules of HTTP as plain values: headers, marks, statuses, challenges, URLs."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.protocol.envelope import Outgoing
from mcpclient.protocol.httprules import (
    Challenge,
    challenges,
    checked,
    encoded,
    is_evidence,
    media_type,
    message_headers,
    redirects,
    retry_after,
    session_headers,
    session_id,
)
from mcpclient.protocol.mirror import Mirror, marks
from mcpclient.transports.urls import http_url, shown

NEW, OLD = "2026-07-28", "2025-11-25"


def headers(method: str, params: Any = None, version: str = NEW, session: str | None = None) -> Any:
    return dict(message_headers(Outgoing(b"", method, params, version), session))


# -- headers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "query", "uri": "x"}, b"query"),
        ("prompts/get", {"name": "Zürich"}, b"=?base64?WsO8cmljaA==?="),
        ("resources/read", {"uri": "file:///a b"}, b"file:///a b"),
        ("tasks/get", {"taskId": "t-1"}, b"t-1"),
        ("tasks/update", {"taskId": "t-1"}, b"t-1"),
        ("tasks/cancel", {"taskId": "t-1"}, b"t-1"),
        ("tools/list", {"name": "query"}, None),
        ("subscriptions/listen", {"uri": "x"}, None),
        ("tools/call", None, None),
        ("tools/call", {"name": 5}, None),
    ],
)
def test_a_stateless_message_is_named_in_its_headers(method: str, params: Any, name: Any) -> None:
    found = headers(method, params, session="s")
    assert found.pop(b"mcp-name", None) == name
    assert found == {b"mcp-protocol-version": NEW.encode(), b"mcp-method": method.encode()}


def test_in_the_handshake_era_the_session_is_named_and_the_version_where_it_exists() -> None:
    assert headers("initialize", {}, OLD) == {}
    assert headers("tools/call", {"name": "x"}, OLD, "s") == {
        b"mcp-session-id": b"s",
        b"mcp-protocol-version": OLD.encode(),
    }
    assert headers("tools/list", None, "2025-06-18") == {b"mcp-protocol-version": b"2025-06-18"}
    assert headers("tools/list", None, "2025-03-26", "s") == {b"mcp-session-id": b"s"}
    assert session_headers("", None) == []


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("eu-1", b"eu-1"),
        ("eu 1", b"eu 1"),
        ("", b""),
        ("Zürich", b"=?base64?WsO8cmljaA==?="),
        (" eu ", b"=?base64?IGV1IA==?="),
        ("a\nb", b"=?base64?YQpi?="),
        ("\tq", b"=?base64?CXE=?="),
        ("=?base64?x?=", b"=?base64?PT9iYXNlNjQ/eD89?="),
        ("=?base64?x", b"=?base64?x"),
        ("\x7f", b"=?base64?fw==?="),
        ("\ud83d", b"=?base64?Pw==?="),
    ],
)
def test_a_value_that_is_not_plain_is_in_base64_with_its_marks(value: str, sent: bytes) -> None:
    assert encoded(value) == sent


@pytest.mark.parametrize("value", [None, "", "a b", "a\x00", "ü", "x" * 5000])
def test_what_is_no_sessions_id_is_none(value: str | None) -> None:
    assert session_id(value) is None


def test_a_media_type_is_read_without_parameters_and_case() -> None:
    assert media_type("Text/Event-Stream; charset=utf-8") == "text/event-stream"
    assert media_type(None) == ""


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("a b", "x", "'a b' cannot be the name of a header"),
        ("", "x", "'' cannot be the name"),
        ("Host", "x", "Host is set by the transport itself"),
        ("mcp-param-x", "x", "mcp-param-x is set by the transport"),
        ("X-Key", "secret\n", "headers.X-Key must be printable ASCII"),
        ("X-Key", "sécret", "headers.X-Key must be printable ASCII"),
        ("X-Key", 5, "headers.X-Key must be text, not int"),
    ],
)
def test_a_header_that_may_not_be_sent_is_refused_without_its_value(
    name: str, value: Any, said: str
) -> None:
    with pytest.raises(ValueError) as caught:
        checked(name, value)
    assert said in str(caught.value)
    assert "cret" not in str(caught.value)


# -- statuses ------------------------------------------------------------------------------


def test_only_a_refusal_that_says_nothing_of_the_moment_tells_of_an_era() -> None:
    told = [status for status in range(200, 600) if is_evidence(status)]
    for status in (401, 403, 407, 408, 413, 421, 425, 429, 431, 200, 302, 500, 503):
        assert status not in told
    for status in (400, 404, 405, 406, 410, 415, 422):
        assert status in told


def test_a_post_is_repeated_only_where_it_stays_one() -> None:
    followed = (301, 302, 303, 307, 308)
    assert [status for status in range(300, 400) if redirects(status, post=True)] == [307, 308]
    assert [one for one in range(300, 400) if redirects(one, post=False)] == list(followed)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        (" 120 ", 120.0),
        ("999999999", 3600.0),
        ("Thu, 01 Jan 1970 00:01:40 GMT", 40.0),
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0.0),
        ("Thu, 01 Jan 2099 00:00:00 GMT", 3600.0),
        (None, None),
        ("", None),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("٣", None),
        ("9" * 100, None),
    ],
)
def test_when_to_ask_again_is_a_number_or_a_date_and_at_most_an_hour(
    value: str | None, seconds: float | None
) -> None:
    assert retry_after(value, 60.0) == seconds


# -- challenges ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "found"),
    [
        ("Bearer", [("Bearer", {})]),
        (
            'Bearer realm="a, b", error="x\\"y", scope=a',
            [("Bearer", {"realm": "a, b", "error": 'x"y', "scope": "a"})],
        ),
        (
            'Basic, Bearer Resource_Metadata="https://x/y"',
            [("Basic", {}), ("Bearer", {"resource_metadata": "https://x/y"})],
        ),
        ("Negotiate abc==, Bearer a=b", [("Negotiate", {"": "abc=="}), ("Bearer", {"a": "b"})]),
        (
            'Basic realm="x", Digest nonce=1 , qop="auth"',
            [("Basic", {"realm": "x"}), ("Digest", {"nonce": "1", "qop": "auth"})],
        ),
        ('Bearer scope="a" , scope="b"', [("Bearer", {"scope": "a"})]),
        ("", []),
        ('=,,,"', []),
        ('Bearer realm="unended', [("Bearer", {})]),
    ],
)
def test_a_challenge_is_read_as_far_as_it_can_be(
    value: str, found: list[tuple[str, dict[str, str]]]
) -> None:
    assert challenges([value]) == tuple(Challenge(*one) for one in found)


def test_rubbish_gives_challenges_or_nothing_and_soon() -> None:
    chance = random.Random(3)
    pieces = ["Bearer", " ", ",", "=", '"', "\\", "a", "x=y", "\t", "é"]
    for _ in range(500):
        found = challenges(["".join(chance.choices(pieces, k=60))])
        assert all(isinstance(one, Challenge) and str(one) for one in found)
    assert len(challenges(["a," * 5000])) == 16
    assert challenges([" " * 100_000]) == ()


# -- arguments in headers ------------------------------------------------------------------


def tool(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


REGION = {"type": "string", "x-mcp-header": "Region"}


def test_marks_are_found_at_the_paths_of_properties() -> None:
    schema = tool(
        region=REGION,
        page=tool(
            limit={"type": "integer", "x-mcp-header": "Limit"},
            properties=REGION | {"x-mcp-header": "Odd"},
        ),
        dry={"type": ["boolean", "null"], "x-mcp-header": "Dry"},
        sql={"type": "string"},
    )
    assert marks(schema) == {
        "Region": ("region",),
        "Limit": ("page", "limit"),
        "Odd": ("page", "properties"),
        "Dry": ("dry",),
    }


def test_a_property_that_is_called_like_the_mark_is_none() -> None:
    assert marks(tool(**{"x-mcp-header": {"type": "string"}})) == {}
    assert marks(tool(a={"type": "object", "default": {"x-mcp-header": "A"}})) == {}
    assert marks({"type": "object"}) == {}
    assert marks(True) == {}


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (tool(a={"type": "string", "x-mcp-header": ""}), "no name of a header: ''"),
        (tool(a={"type": "string", "x-mcp-header": "My Region"}), "no name of a header"),
        (tool(a={"type": "string", "x-mcp-header": "A:B"}), "no name of a header"),
        (tool(a={"type": "string", "x-mcp-header": "Région"}), "no name of a header"),
        (tool(a={"type": "string", "x-mcp-header": "a\r\nb"}), "no name of a header"),
        (tool(a={"type": "string", "x-mcp-header": 5}), "no name of a header: 5"),
        (tool(a=REGION, b=REGION | {"x-mcp-header": "REGION"}), "stands twice"),
        (tool(a={"type": "number", "x-mcp-header": "A"}), "on the type 'number'"),
        (tool(a={"type": "object", "x-mcp-header": "A"}), "on the type 'object'"),
        (tool(a={"type": "array", "x-mcp-header": "A"}), "on the type 'array'"),
        (tool(a={"type": "null", "x-mcp-header": "A"}), "on the type 'null'"),
        (tool(a={"x-mcp-header": "A"}), "on the type None"),
        (tool(a={"type": ["string", "integer"], "x-mcp-header": "A"}), "an object or array"),
        ({"type": "object", "x-mcp-header": "A"}, "at no plain property"),
        (tool(a={"type": "array", "items": REGION}), "at no plain property"),
        (tool(a={"anyOf": [REGION]}), "at no plain property"),
        ({"type": "object", "$defs": {"a": REGION}}, "at no plain property"),
        ({"type": "object", "if": tool(a=REGION)}, "at no plain property"),
        ({"type": "object", "oneOf": [tool(a=REGION)]}, "at no plain property"),
        ({"type": "object", "additionalProperties": REGION}, "at no plain property"),
    ],
)
def test_a_mark_in_a_wrong_place_or_of_a_wrong_kind_is_told(schema: Any, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        marks(schema)
    assert why in str(caught.value)
    assert Mirror().learn("t", schema) == str(caught.value)


def mirrored(arguments: Any, **properties: Any) -> list[tuple[bytes, bytes]]:
    mirror = Mirror()
    assert mirror.learn("t", tool(**properties)) is None
    return mirror.headers({"name": "t", "arguments": arguments})


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        ("eu-1", b"eu-1"),
        ("", b""),
        ("Zürich", b"=?base64?WsO8cmljaA==?="),
        (True, b"true"),
        (False, b"false"),
        (42, b"42"),
        (-7, b"-7"),
        (42.0, b"42"),
        (2**53 - 1, b"9007199254740991"),
    ],
)
def test_an_argument_is_repeated_as_text(value: Any, sent: bytes) -> None:
    assert mirrored({"region": value, "other": 1}, region=REGION) == [(b"mcp-param-Region", sent)]


@pytest.mark.parametrize("arguments", [{}, {"region": None}, None, [], {"region": [1]}])
def test_an_argument_that_is_not_there_has_no_header(arguments: Any) -> None:
    assert mirrored(arguments, region=REGION) == []


@pytest.mark.parametrize("value", [2**53, -(2**53), 1e300])
def test_an_integer_out_of_the_safe_range_is_refused_here(value: Any) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        mirrored({"n": value}, n={"type": "integer", "x-mcp-header": "N"})
    assert "Mcp-Param-N must be within" in str(caught.value)


def test_a_mark_called_method_touches_no_other_header() -> None:
    method = {"type": "string", "x-mcp-header": "Method"}
    assert mirrored({"m": "x"}, m=method) == [(b"mcp-param-Method", b"x")]


def test_what_was_learnt_last_counts() -> None:
    mirror = Mirror()
    mirror.learn("t", tool(a=REGION))
    mirror.learn("t", tool(b=REGION))
    assert mirror.headers({"name": "t", "arguments": {"a": "1", "b": "2"}}) == [
        (b"mcp-param-Region", b"2")
    ]
    mirror.learn("t", tool(b={"type": "string"}))
    assert mirror.headers({"name": "t", "arguments": {"b": "2"}}) == []
    assert mirror.headers({"name": "unknown", "arguments": {"b": "2"}}) == []
    assert mirror.headers(None) == []


# -- URLs ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "origin", "target"),
    [
        ("http://host", "http://host", "/"),
        ("http://host/", "http://host", "/"),
        ("HTTP://Host:80/A", "http://host", "/A"),
        ("https://host:8443/mcp?a=b%20c&d=é#x", "https://host:8443", "/mcp?a=b%20c&d=%C3%A9"),
        ("http://[::1]:8000/mcp/", "http://[::1]:8000", "/mcp/"),
        ("http://bücher.example/ü", "http://xn--bcher-kva.example", "/%C3%BC"),
    ],
)
def test_a_url_is_taken_to_the_letter(text: str, origin: str, target: str) -> None:
    found = http_url(text)
    assert found is not None
    assert (found.origin, found.target) == (origin, target)


@pytest.mark.parametrize(
    "text",
    ["http://", "http:///mcp", "http://host:x/", "http://host:0/", "http://a b/", "http://h/\n",
     "https://user:hunter2@/", "http://[::1", "http://ho_st^/", "http://host:99999/"],
)  # fmt: skip
def test_a_url_that_names_nothing_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(ValueError) as caught:
        http_url(text)
    assert "://host:8000/mcp" in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_another_scheme_is_none() -> None:
    assert http_url("unix:///a") is None
    assert http_url("ftp://host/") is None


def test_nothing_secret_of_a_url_is_shown() -> None:
    secret = "https://me:hunter2@host/s/kd83jf93jf93jf93jf93/mcp?key=hunter2"
    found = http_url(secret)
    assert found is not None
    assert found.login == "Basic bWU6aHVudGVyMg=="
    assert str(found) == shown(secret) == "https://host/s/…/mcp?…"
    assert shown("nonsense") == shown("http://:hunter2") == "…"
    assert shown("tcp://127.0.0.1:9") == "tcp://127.0.0.1:9"
    assert shown("unix:///run/x.sock?hunter2") == "unix:///run/x.sock"
    assert shown("tcp://me:hunter2@host:9") == "…"


def test_a_redirect_is_joined_and_keeps_the_login_within_the_origin() -> None:
    base = http_url("http://me:x@host/a/mcp")
    assert base is not None
    within = base.joined("/a/mcp/")
    assert within is not None
    assert (within.target, within.login) == ("/a/mcp/", base.login)
    other = base.joined("http://elsewhere/mcp")
    assert other is not None
    assert (other.origin, other.login) == ("http://elsewhere", "")
    assert base.joined("mailto:x") is None
    assert base.joined("http://host:bad/") is None
