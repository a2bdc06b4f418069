"""The HTTP endpoint, each message by itself: the stateless era, and what is the same in both."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Callable
from typing import Annotated, Any

import anyio
import anyio.lowlevel
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Meta

from mcpclient.ground.errors import ConfigError
from mcpclient.serverkit import Frame, HttpLimits, Server, asgi
from tests.conftest import eventually
from tests.serverkit.talking import PREFIX, STATELESS
from tests.serverkit.web import BOTH, EVENTS, META, Exchange, Web

QUICK = HttpLimits(quick=0.0)
# Longer than any test waits: what is not there by then does not come.
PATIENT = HttpLimits(quick=60.0)


class Runs:
    """What the tools of a server went through."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.cancelled = anyio.Event()
        self.go = anyio.Event()


def made(runs: Runs | None = None, **options: Any) -> Server:
    """Return a server with a few tools."""
    server = Server("web", "1", **options)
    runs = runs or Runs()

    @server.tool
    async def echo(text: str = "hi") -> str:
        return text

    @server.tool
    async def steps(frame: Frame, count: int = 2) -> str:
        for step in range(count):
            frame.progress(step, count)
        return "done"

    @server.tool
    async def wait() -> str:
        runs.begun.set()
        try:
            await runs.go.wait()
        except BaseException:
            runs.cancelled.set()
            raise
        return "waited"

    @server.tool
    async def seen(frame: Frame) -> dict[str, Any]:
        return {
            "headers": dict(frame.headers),
            "remote": frame.remote,
            "subject": frame.subject,
            "scopes": sorted(frame.scopes) if frame.scopes is not None else None,
        }

    @server.tool
    async def query(
        region: Annotated[str | None, Meta(extra_json_schema={"type": "string"})] = None,
    ) -> str:
        return str(region)

    @server.tool(
        input_schema={
            "type": "object",
            "properties": {
                "region": {"type": "string", "x-mcp-header": "Region"},
                "page": {
                    "type": "object",
                    "properties": {"limit": {"type": "integer", "x-mcp-header": "Limit"}},
                },
                "dry": {"type": "boolean", "x-mcp-header": "Dry"},
                "sql": {"type": "string"},
            },
        }
    )
    async def search(arguments: dict[str, Any]) -> str:
        return "found"

    return server


async def error_of(one: Exchange) -> tuple[int, int, str]:
    """Return the status, the code and the message of a refusal."""
    await one.ended()
    error = one.json()["error"]
    return one.status, error["code"], error["message"]


# -- how answers go out --------------------------------------------------------------------


async def test_an_answer_that_comes_soon_and_alone_is_json() -> None:
    async with Web(asgi(made(), limits=PATIENT)) as web:
        one = await web.tool("echo", {"text": "hello"}, id="a-1").ended()
        assert (one.status, one.done) == (200, True)
        assert one.headers["content-type"] == "application/json"
        answer = await one.answer("tools/call")
        assert answer["id"] == "a-1"
        assert answer["result"]["content"] == [{"type": "text", "text": "hello"}]


async def test_an_answer_after_progress_is_a_stream_that_ends_with_it() -> None:
    async with Web(asgi(made(), limits=PATIENT)) as web:
        one = await web.tool("steps", meta={"progressToken": "p"}).ended()
        assert (one.status, one.done) == (200, True)
        assert one.headers["content-type"] == EVENTS
        assert one.headers["cache-control"] == "no-cache, no-store"
        assert "mcp-session-id" not in one.headers
        for step in (0, 1):
            event = await one.event()
            assert list(event) == ["data"]  # streams of this era cannot be resumed
            told = json.loads(event["data"])
            assert told["params"] == {"progressToken": "p", "progress": step, "total": 2}
        assert (await one.answer("tools/call"))["result"]["content"][0]["text"] == "done"
        assert one.body.count(b"\n\n") == 3


async def test_an_answer_that_takes_long_becomes_a_stream_with_signs_of_life() -> None:
    runs = Runs()
    limits = HttpLimits(quick=0.0, pulse=0.02)
    async with Web(asgi(made(runs), limits=limits)) as web:
        one = await web.tool("wait").began()
        assert (one.status, one.headers["content-type"]) == (200, EVENTS)
        for _ in range(2):
            assert await one.event() == {"": "keep-alive"}
        runs.go.set()
        assert (await one.answer("tools/call"))["result"]["content"][0]["text"] == "waited"
        assert (await one.ended()).done


async def test_without_streams_there_is_nothing_but_the_answer() -> None:
    async with Web(asgi(made(), answers="json", limits=QUICK)) as web:
        plain = {"accept": "application/json"}
        one = await web.tool("steps", meta={"progressToken": 1}, headers=plain).ended()
        assert one.json()["result"]["content"][0]["text"] == "done"


async def test_without_streams_a_subscription_still_has_one() -> None:
    async with Web(asgi(made(), answers="json", limits=QUICK)) as web:
        one = web.call("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        assert (await one.message())["method"] == "notifications/subscriptions/acknowledged"


async def test_with_streams_alone_an_error_still_has_its_status() -> None:
    async with Web(asgi(made(), answers="sse", limits=PATIENT)) as web:
        one = await web.tool("echo").ended()
        assert one.headers["content-type"] == EVENTS
        assert "result" in await one.message()
        assert await error_of(web.call("no/such")) == (404, -32601, "Method not found: no/such")


def test_what_cannot_be_meant_is_refused_when_it_is_made() -> None:
    server = made()
    for options, told in [
        ({"answers": "xml"}, "answers: must be one of auto, json, sse, not 'xml'"),
        ({"profile": "proxy"}, "profile: must be one of spec, gateway, not 'proxy'"),
        ({"path": "mcp"}, "path: must begin with a slash, unlike 'mcp'"),
        (
            {"allowed_origins": ["example.com"]},
            'allowed_origins: an origin is a scheme and a host, such as "https://example.com"',
        ),
    ]:
        with pytest.raises(ConfigError) as caught:
            asgi(server, **options)
        assert str(caught.value) == told


# -- statuses ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "status", "code", "says"),
    [
        ({"meta": {f"{PREFIX}protocolVersion": None}}, 400, -32602, "protocolVersion"),
        ({"meta": {f"{PREFIX}clientCapabilities": 1}}, 400, -32602, "clientCapabilities"),
        (
            {
                "meta": {f"{PREFIX}protocolVersion": "2099-01-01"},
                "headers": {"mcp-protocol-version": "2099-01-01"},
            },
            400,
            -32022,
            "Unsupported protocol version",
        ),
        ({"method": "no/such"}, 404, -32601, "Method not found: no/such"),
        ({"method": "initialize"}, 404, -32601, "Method not found: initialize"),
        ({"method": "ping"}, 404, -32601, "Method not found: ping"),
    ],
)
async def test_errors_of_the_stateless_era_have_their_statuses(
    change: dict[str, Any], status: int, code: int, says: str
) -> None:
    async with Web(asgi(made())) as web:
        found = await error_of(web.call(**{"method": "tools/list", **change}))
        assert found[:2] == (status, code)
        assert says in found[2]


async def test_an_unknown_tool_is_an_error_with_status_200() -> None:
    async with Web(asgi(made())) as web:
        assert await error_of(web.tool("none")) == (200, -32602, "Tool not found: none")


async def test_a_version_that_nobody_knows_is_told_those_that_there_are() -> None:
    async with Web(asgi(made())) as web:
        body = msgspec.json.encode({"jsonrpc": "2.0", "id": 7, "method": "tools/list"})
        one = await web.request(
            body=body,
            headers={
                "content-type": "application/json",
                "accept": BOTH,
                "mcp-protocol-version": "2099-01-01",
            },
        )
        assert one.status == 400
        answer = one.json()
        assert (answer["id"], answer["error"]["code"]) == (7, -32022)
        assert answer["error"]["data"]["requested"] == "2099-01-01"
        assert STATELESS in answer["error"]["data"]["supported"]


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_the_stateless_era_has_nothing_but_post(method: str) -> None:
    async with Web(asgi(made())) as web:
        one = await web.request(method, headers={"mcp-protocol-version": STATELESS})
        assert (one.status, one.headers["allow"]) == (405, "POST")


async def test_a_server_of_the_stateless_era_alone_has_nothing_but_post() -> None:
    async with Web(asgi(made(versions=[STATELESS]))) as web:
        one = await web.request("GET", headers={"accept": EVENTS, "mcp-session-id": "x"})
        assert (one.status, one.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("method", ["PUT", "PATCH", "HEAD", "OPTIONS", "BREW"])
async def test_other_verbs_are_told_those_that_there_are(method: str) -> None:
    async with Web(asgi(made())) as web:
        one = await web.request(method)
        assert (one.status, one.headers["allow"]) == (405, "POST, GET, DELETE")


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        (BOTH, 200),
        ("text/event-stream;q=0.5,application/json", 200),
        ("*/*", 200),
        ("application/*, text/*", 200),
        ("Application/JSON, Text/Event-Stream", 200),
        (None, 200),
        ("application/json", 406),
        ("text/event-stream", 406),
        ("text/html", 406),
        ("application/json, text/event-stream;q=0", 406),
        ("", 406),
    ],
)
async def test_a_client_must_accept_both_kinds_of_answers(accept: str | None, status: int) -> None:
    async with Web(asgi(made())) as web:
        one = await web.tool("echo", headers={"accept": accept}).ended()
        assert one.status == status
        if status == 406:
            assert "application/json and text/event-stream" in one.json()["error"]["message"]


@pytest.mark.parametrize(
    ("type", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("Application/JSON", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        (None, 415),
    ],
)
async def test_a_body_must_say_that_it_is_json(type: str | None, status: int) -> None:
    async with Web(asgi(made())) as web:
        one = await web.tool("echo", headers={"content-type": type}).ended()
        assert one.status == status


async def test_a_notification_is_accepted_without_a_body() -> None:
    async with Web(asgi(made())) as web:
        body = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
        headers = {
            "content-type": "application/json",
            "accept": BOTH,
            "mcp-protocol-version": STATELESS,
            "mcp-method": "notifications/cancelled",
        }
        one = await web.request(body=body, headers=headers)
        assert (one.status, one.body, one.headers) == (202, b"", {"content-length": "0"})


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b'{"jsonrpc":"2.0","id":1,"result":{}}', -32600),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
    ],
)
async def test_what_is_no_request_is_a_bad_request(body: bytes, code: int) -> None:
    async with Web(asgi(made())) as web:
        headers = {
            "content-type": "application/json",
            "accept": BOTH,
            "mcp-protocol-version": STATELESS,
        }
        assert (await error_of(web.begin(body=body, headers=headers)))[:2] == (400, code)


# -- bodies --------------------------------------------------------------------------------

WHOLE = msgspec.json.encode(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "echo", "arguments": {"text": "é"}, "_meta": META},
    }
)
HEADERS = {
    "content-type": "application/json",
    "accept": BOTH,
    "mcp-protocol-version": STATELESS,
    "mcp-method": "tools/call",
    "mcp-name": "echo",
}


async def test_a_body_that_is_cut_anywhere_is_refused_and_one_in_pieces_is_not() -> None:
    async with Web(asgi(made())) as web:
        for cut in range(len(WHOLE)):
            one = await web.request(body=WHOLE[:cut], headers=HEADERS)
            assert (one.status, one.json()["error"]["code"]) == (400, -32700), cut
            one = await web.request(body=[WHOLE[:cut], WHOLE[cut:]], headers=HEADERS)
            assert one.json()["result"]["content"][0]["text"] == "é", cut


@settings(max_examples=150, deadline=None)
@given(
    body=st.binary(max_size=60) | st.text(max_size=60).map(str.encode),
    headers=st.dictionaries(
        st.sampled_from(
            ["accept", "mcp-session-id", "last-event-id", "mcp-protocol-version", "mcp-name"]
        ),
        st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=20),
        max_size=3,
    ),
    method=st.sampled_from(["POST", "GET", "DELETE"]),
)
def test_rubbish_is_refused_and_nothing_breaks(
    body: bytes, headers: dict[str, str], method: str
) -> None:
    async def run() -> None:
        async with Web(asgi(made())) as web:
            given = {"content-type": "application/json", "accept": BOTH, **headers}
            one = await web.request(method, body=body, headers=given)
            assert 400 <= one.status < 500 or (one.status, one.body) == (202, b""), one.body

    anyio.run(run)


async def test_a_body_may_be_as_long_as_the_limit_and_not_a_byte_longer() -> None:
    async with Web(asgi(made(), max_body=len(WHOLE))) as web:
        assert (await web.request(body=WHOLE, headers=HEADERS)).status == 200
        one = await web.request(body=[WHOLE, b" "], headers=HEADERS)
        assert (one.status, one.headers["connection"]) == (413, "close")
        assert one.json()["error"]["message"] == (
            f"Content too large: the body may have {len(WHOLE)} bytes"
        )


async def test_of_a_body_without_end_no_more_is_read_than_twice_the_limit() -> None:
    async with Web(asgi(made(), max_body=100)) as web:
        one = web.begin(body=[b" " * 60] * 50, headers=HEADERS)
        assert (await one.ended()).status == 413
        assert one.asked == 4


async def test_who_asks_before_sending_too_much_sends_nothing() -> None:
    async with Web(asgi(made(), max_body=100)) as web:
        headers = {**HEADERS, "content-length": "1000", "expect": "100-continue"}
        one = await web.request(body=[b"x" * 1000], headers=headers)
        assert (one.status, one.asked) == (413, 0)


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with Web(asgi(made(), limits=HttpLimits(reading=0.05))) as web:
        one = await web.request(body=WHOLE[:20], headers=HEADERS, endless=True)
        assert (one.status, one.headers["connection"]) == (408, "close")


async def test_a_client_that_leaves_before_its_body_is_there_gets_nothing() -> None:
    async with Web(asgi(made())) as web:
        one = web.begin(body=WHOLE[:20], headers=HEADERS, endless=True)
        await one.until(lambda: one.asked == 2)
        one.leave()
        assert ((await one.ended()).status, one.body) == (0, b"")


# -- headers and body ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({"mcp-protocol-version": None}, "the header MCP-Protocol-Version is missing"),
        (
            {"mcp-protocol-version": "2025-11-25"},
            "the header MCP-Protocol-Version says '2025-11-25', the body '2026-07-28'",
        ),
        ({"mcp-method": None}, "the header Mcp-Method is missing"),
        ({"mcp-method": "tools/list"}, "the header Mcp-Method says 'tools/list', the body"),
        ({"mcp-method": "TOOLS/CALL"}, "the header Mcp-Method says 'TOOLS/CALL', the body"),
        ({"mcp-name": None}, "the header Mcp-Name is missing"),
        ({"mcp-name": "steps"}, "the header Mcp-Name says 'steps', the body 'echo'"),
        ({"mcp-name": "ECHO"}, "the header Mcp-Name says 'ECHO', the body 'echo'"),
        ({"mcp-name": "=?base64?ZWNobw?="}, "the header Mcp-Name is in Base64 that cannot be"),
        ({"mcp-name": "=?base64?/w==?="}, "the header Mcp-Name is in Base64 that cannot be"),
    ],
)
async def test_headers_that_say_something_else_than_the_body_are_refused(
    headers: dict[str, str | None], says: str
) -> None:
    async with Web(asgi(made())) as web:
        status, code, message = await error_of(web.tool("echo", headers=headers))
        assert (status, code) == (400, -32020)
        assert message.startswith(says)


@pytest.mark.parametrize("name", ["echo", "  echo  ", "=?base64?ZWNobw==?="])
async def test_a_name_in_a_header_may_be_in_base64_and_have_blanks_around(name: str) -> None:
    async with Web(asgi(made())) as web:
        assert (await web.tool("echo", headers={"mcp-name": name}).ended()).status == 200


async def test_what_is_read_is_named_by_its_uri() -> None:
    server = made()

    @server.resource("page://grüße")
    async def page() -> str:
        return "hello"

    async with Web(asgi(server)) as web:
        said = f"=?base64?{base64.b64encode('page://grüße'.encode()).decode()}?="
        one = web.call("resources/read", {"uri": "page://grüße"}, headers={"mcp-name": said})
        answer = await one.answer("resources/read")
        assert answer["result"]["contents"][0]["text"] == "hello"


@pytest.mark.parametrize(
    ("arguments", "headers", "says"),
    [
        ({}, {}, ""),
        ({"sql": "x"}, {}, ""),
        ({"region": None}, {}, ""),
        ({"region": "eu 1"}, {"Region": "eu 1"}, ""),
        ({"region": ""}, {"Region": ""}, ""),
        ({"region": "Zürich"}, {"Region": "=?base64?WsO8cmljaA==?="}, ""),
        ({"region": "=?base64?x?="}, {"Region": "=?base64?PT9iYXNlNjQ/eD89?="}, ""),
        ({"region": "=?base64?x"}, {"Region": "=?base64?x"}, ""),
        ({"page": {"limit": -7}}, {"Limit": "-7"}, ""),
        ({"page": {"limit": 42.0}}, {"Limit": "42"}, ""),
        ({"dry": True}, {"Dry": "true"}, ""),
        ({"region": "eu"}, {}, "the header Mcp-Param-Region is missing"),
        ({"region": "eu"}, {"Region": "us"}, "the header Mcp-Param-Region says 'us', the body"),
        ({}, {"Region": "eu"}, "the header Mcp-Param-Region repeats what the body does not"),
        ({"region": "eu"}, {"Region": "=?base64?ZXU?="}, "the header Mcp-Param-Region is in Base"),
        ({"page": {"limit": 10}}, {"Limit": "11"}, "the header Mcp-Param-Limit says '11', the"),
        ({"page": {"limit": 2**53}}, {"Limit": str(2**53)}, "the argument for the header Mcp-"),
        ({"dry": True}, {"Dry": "True"}, "the header Mcp-Param-Dry says 'True', the body 'true'"),
    ],
)
async def test_arguments_that_headers_repeat_are_held_against_them(
    arguments: dict[str, Any], headers: dict[str, str], says: str
) -> None:
    async with Web(asgi(made())) as web:
        sent = {f"mcp-param-{name}": value for name, value in headers.items()}
        one = await web.tool("search", arguments, headers=sent).ended()
        if not says:
            assert one.json()["result"]["content"][0]["text"] == "found"
        else:
            status, code, message = await error_of(one)
            assert (status, code) == (400, -32020)
            assert message.startswith(says)


# -- the client leaves ---------------------------------------------------------------------


@pytest.mark.parametrize("limits", [QUICK, PATIENT])
async def test_who_leaves_cancels_the_tool(limits: HttpLimits) -> None:
    runs = Runs()
    async with Web(asgi(made(runs), limits=limits)) as web:
        one = web.tool("wait")
        await runs.begun.wait()
        one.leave()
        await one.ended()
        assert runs.cancelled.is_set()
        assert not one.done


async def test_who_leaves_a_subscription_is_told_nothing_more() -> None:
    server = made()
    async with Web(asgi(server)) as web:
        one = web.call("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        assert (await one.message())["method"] == "notifications/subscriptions/acknowledged"
        assert len(server.listeners) == 1
        one.leave()
        await one.ended()
        assert server.listeners == set()


async def test_a_subscription_lives_on_comments_until_the_server_ends_it_with_a_result() -> None:
    server = made()
    app = asgi(server, limits=HttpLimits(pulse=0.02))
    async with Web(app) as web:
        one = web.call(
            "subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id="s-1"
        )
        acknowledged = await one.message()
        assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}
        assert await one.event() == {"": "keep-alive"}

        @server.tool
        async def fresh() -> None: ...

        assert (await one.message())["method"] == "notifications/tools/list_changed"
        await app.close()
        answer = await one.answer("subscriptions/listen")
        assert answer["id"] == "s-1"
        assert (await one.ended()).done


# -- clients that do not read --------------------------------------------------------------


def telling(server: Server, count: int) -> Callable[[], None]:
    """Return what changes a list so many times."""

    def run() -> None:
        for _ in range(count):
            server.resource_updated("page://one")

    return run


async def test_a_client_that_does_not_read_loses_notices_and_not_the_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with Web(asgi(made(), limits=HttpLimits(outbox=2000))) as web:
        arguments = {"count": 1000}
        one = web.tool("steps", arguments, meta={"progressToken": 1}, slow=True)
        await one.began()
        await eventually(lambda: "a client does not read" in caplog.text)
        one.read_on()
        assert (await one.answer("tools/call"))["result"]["content"][0]["text"] == "done"
        assert (await one.ended()).body.count(b"\n\n") < 40


async def test_a_subscriber_that_does_not_read_loses_the_subscription(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = made()
    async with Web(asgi(server, limits=HttpLimits(outbox=2000))) as web:
        wanted = {"resourceSubscriptions": ["page://one"]}

        @server.resource("page://one")
        async def page() -> str:
            return ""

        one = web.call("subscriptions/listen", {"notifications": wanted}, slow=True)
        await one.began()
        telling(server, 1000)()
        assert "the subscription ends" in caplog.text
        one.read_on()
        await one.ended()
        assert one.body.count(b"\n\n") < 40
        await eventually(lambda: server.listeners == set())


async def test_a_client_that_takes_nothing_at_all_is_left_alone() -> None:
    async with Web(asgi(made(), limits=HttpLimits(writing=0.05))) as web:
        one = await web.tool("echo", slow=True).ended()
        assert not one.done


# -- where from ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "options", "lets_in"),
    [
        ({}, {}, True),
        ({"origin": "http://localhost:3000"}, {}, True),
        ({"origin": "http://127.0.0.1"}, {}, True),
        ({"origin": "https://[::1]:9"}, {}, True),
        ({"host": "localhost:8000"}, {}, True),
        ({"host": "[::1]:8000"}, {}, True),
        ({"host": "[::ffff:127.0.0.1]:8000"}, {}, True),
        ({"host": "LOCALHOST"}, {}, True),
        ({"origin": "http://evil.example"}, {}, False),
        ({"origin": "http://localhost.evil.example"}, {}, False),
        ({"origin": "http://127.0.0.1.evil.example"}, {}, False),
        ({"origin": "null"}, {}, False),
        ({"origin": "file://localhost"}, {}, False),
        ({"origin": "http://["}, {}, False),
        ({"host": "evil.example:8000"}, {}, False),
        ({"host": "evil.example", "origin": "http://evil.example"}, {}, False),
        ({"origin": "https://a.example"}, {"allowed_origins": ["https://A.example/"]}, True),
        ({"origin": "http://a.example"}, {"allowed_origins": ["https://a.example"]}, False),
        ({"origin": "http://localhost"}, {"allowed_origins": ["https://a.example"]}, False),
        ({"origin": "http://evil.example"}, {"allowed_origins": ["*"]}, True),
        ({"host": "a.example:80"}, {"allowed_hosts": ["a.example"]}, True),
        ({"host": "a.example:81"}, {"allowed_hosts": ["a.example:80"]}, False),
        ({"host": "evil.example"}, {"allowed_hosts": ["*"]}, True),
    ],
)
async def test_browsers_may_only_come_from_where_they_are_allowed_to(
    headers: dict[str, str], options: dict[str, Any], lets_in: bool
) -> None:
    async with Web(asgi(made(), **options)) as web:
        one = await web.tool("echo", headers=headers).ended()
        if lets_in:
            assert one.status == 200
        else:
            assert one.status == 403
            assert one.json()["error"]["message"].startswith("Forbidden: the ")


async def test_a_server_that_the_world_may_reach_has_whatever_name_the_world_gives_it() -> None:
    async with Web(asgi(made()), server=("203.0.113.1", 80)) as web:
        assert (await web.tool("echo", headers={"host": "mcp.example"}).ended()).status == 200
        found = {"host": "mcp.example", "origin": "http://evil.example"}
        assert (await web.tool("echo", headers=found).ended()).status == 403
    async with Web(asgi(made()), server=("/run/mcp.sock", None)) as web:
        assert (await web.tool("echo", headers={"host": "mcp.example"}).ended()).status == 200


# -- where to ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "root", "at", "status"),
    [
        ("/mcp", "", "/mcp", 200),
        ("/mcp/", "", "/mcp", 200),
        ("/api/mcp", "/api", "/mcp", 200),
        ("/mcp", "/api", "/mcp", 200),
        ("/apimcp", "/api", "/mcp", 404),
        ("/", "", "/", 200),
        ("", "", "/", 200),
        ("/api/", "/api", "/", 200),
        ("/mcp/x", "", "/mcp", 404),
        ("/", "", "/mcp", 404),
        ("//mcp", "", "/mcp", 404),
    ],
)
async def test_the_endpoint_is_at_its_path_below_the_mount(
    path: str, root: str, at: str, status: int
) -> None:
    async with Web(asgi(made(), path=at)) as web:
        one = await web.tool("echo", path=path, root_path=root).ended()
        assert one.status == status
        if status == 404:
            assert one.json()["error"]["message"] == "Not found: the endpoint is /mcp"


async def test_a_tool_sees_headers_and_address_and_no_secrets() -> None:
    async with Web(asgi(made())) as web:
        headers: dict[str, str | None] = {
            "X-Trace": "t-1",
            "Authorization": "Bearer secret",
            "Cookie": "secret",
        }
        one = await web.tool("seen", headers=headers).ended()
        seen = one.json()["result"]["structuredContent"]
        assert seen["headers"]["x-trace"] == "t-1"
        assert seen["headers"]["mcp-name"] == "seen"
        assert "secret" not in str(seen)
        assert (seen["remote"], seen["subject"], seen["scopes"]) == ("127.0.0.1", None, None)


async def test_headers_of_the_same_name_are_joined_so_that_none_hides_the_other() -> None:
    async with Web(asgi(made())) as web:
        one = await web.request(body=WHOLE, headers={**HEADERS, "Mcp-Name": "steps"})
        status, code, message = await error_of(one)
        assert (status, code) == (400, -32020)
        assert message.startswith("the header Mcp-Name says 'echo, steps', the body 'echo'")


async def test_the_log_says_nothing_of_a_client_that_leaves(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    runs = Runs()
    async with Web(asgi(made(runs))) as web:
        one = web.tool("wait")
        await runs.begun.wait()
        one.leave()
        await one.ended()
    assert caplog.records == []
