"""The endpoint inside a gateway, over real HTTP: line by line of what it owes (docs/gateway.md)."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import logging
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

import msgspec
import pytest
import uvicorn

from mcpclient.serverkit import Frame, Response, Server, Tool, ToolFailure
from tests.conftest import ROOT, SERVERS, SHARED

TABLE = ROOT / "docs" / "gateway.md"
SEEDS = SHARED / "seeds" / "http-endpoint.md"
TOKEN = {"authorization": "Bearer letmein"}
MIB = 1024 * 1024


def fixture() -> ModuleType:
    """Return the fixture server as a module."""
    found = importlib.util.spec_from_file_location("gateway", SERVERS / "gateway.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # msgspec looks the types of a class up there
    found.loader.exec_module(module)
    return module


gateway: Any = fixture()


class Reply(msgspec.Struct):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, which must be JSON and say so."""
        assert self.headers["content-type"] == "application/json; charset=utf-8"
        return json.loads(self.body)

    @property
    def error(self) -> tuple[int, int, Any]:
        """The status, and the code and the id of the error."""
        found = self.json
        assert set(found) == {"jsonrpc", "id", "error"}
        return self.status, found["error"]["code"], found["id"]


class Gateway:
    """A gateway that listens, and what tools ran in it."""

    def __init__(self, port: int, ran: list[Any], inbox: Any) -> None:
        self.port = port
        self.ran = ran
        self.inbox = inbox

    def ask(
        self,
        body: bytes | str | dict[str, Any] = b"",
        method: str = "POST",
        headers: Mapping[str, str] = TOKEN,
        path: str = "/mcp",
    ) -> Reply:
        """Send a request, and return what came back."""
        data = body if isinstance(body, bytes) else body if isinstance(body, str) else None
        raw = data if data is not None else msgspec.json.encode(body)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.closing(connection):
            connection.request(method, path, raw, dict(headers))
            found = connection.getresponse()
            told = {name.lower(): value for name, value in found.getheaders()}
            return Reply(found.status, told, found.read())

    def say(self, method: str, params: Any = None, **more: Any) -> Any:
        """Send a request, and return the answer."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method, **more}
        if params is not None:
            message["params"] = params
        reply = self.ask(message)
        assert reply.status == 200
        return reply.json

    def tool(self, name: str, **more: Any) -> Any:
        """Call a tool, and return the answer."""
        return self.say("tools/call", {"name": name, **more})


def tools(inbox: Any, ran: list[Any]) -> Server:
    """Return the gateway's tools and some more."""
    server: Server = gateway.make_server(inbox)

    @server.tool(annotations={"title": "A", "readOnlyHint": True, "x-own": {"kept": [1, None]}})
    async def annotated() -> str:
        return "ok"

    @server.tool(name="zero")
    async def zero() -> None: ...

    class Anything(Tool):
        """Takes anything, and tells what."""

        name = "anything"
        input_schema: ClassVar[Any] = {"type": "object"}

        async def run(self, args: Any, frame: Frame) -> Any:
            ran.append(args)
            return {"got": args, "subject": frame.subject}

    server.add(Anything)

    @server.tool
    async def refuses() -> None:
        raise ToolFailure("not today")

    @server.tool
    async def breaks() -> None:
        raise ZeroDivisionError("division by nothing")

    @server.tool
    async def exits() -> None:
        raise SystemError("as bad as it gets")

    @server.tool
    async def says_so() -> Response:
        return Response().error("said by itself")

    return server


@pytest.fixture(scope="module")
def listening() -> Iterator[Gateway]:
    """A gateway on a port, in a thread."""
    ran: list[Any] = []
    inbox = gateway.Inbox()
    app = gateway.make_app({"letmein": "ann", "bobs": "bob"}, inbox, tools(inbox, ran))
    with socket.create_server(("127.0.0.1", 0)) as sock:
        config = uvicorn.Config(app, loop="asyncio", log_level="critical", access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, args=([sock],), name="gateway")
        thread.start()
        end = time.monotonic() + 20
        while not server.started:
            assert time.monotonic() < end
            time.sleep(0.01)
        yield Gateway(sock.getsockname()[1], ran, inbox)
        server.should_exit = True
        thread.join(20)
    assert not thread.is_alive()


@pytest.fixture
def web(listening: Gateway) -> Gateway:
    """The gateway, with nothing done yet."""
    listening.ran.clear()
    listening.inbox.mails.clear()
    return listening


# -- 1 to 7: what a message is -------------------------------------------------------------


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "BREW"])
def test_any_verb_but_post_is_refused_and_told_post(web: Gateway, method: str) -> None:
    reply = web.ask(b"{}", method)
    assert reply.error == (405, -32600, None)
    assert reply.headers["allow"] == "POST"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" \r\n",
        b"garbage",
        b'{"jsonrpc":"2.0","id":1',
        b'{"jsonrpc":"2.0","id":1,"method":"\xff"}',
        b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
        b"[]",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}{"jsonrpc":"2.0","id":2,"method":"ping"}',
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n{"jsonrpc":"2.0","id":2,"method":"ping"}',
        b"[" * 5000,
        b'{"a":' * 5000,
    ],
)
def test_what_is_not_one_message_is_a_parse_error(web: Gateway, body: bytes) -> None:
    reply = web.ask(body)
    assert reply.error == (400, -32700, None)
    assert b'"id":null' in reply.body


def test_a_message_that_is_cut_anywhere_is_a_parse_error(web: Gateway) -> None:
    whole = b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"zero"}}'
    for cut in range(len(whole)):
        assert web.ask(whole[:cut]).error == (400, -32700, None), cut


@pytest.mark.parametrize(
    ("version", "id", "echoed"),
    [
        ('"1.0"', "7", 7),
        ('"2"', '"a"', "a"),
        ("2.0", "7", 7),
        ("null", "7", 7),
        (None, "7", 7),
        ('"1.0"', "null", None),
        ('"1.0"', None, None),
        ('"1.0"', "{}", None),
        ('"1.0"', "true", None),
    ],
)
def test_another_jsonrpc_is_an_invalid_request_with_its_id(
    web: Gateway, version: str | None, id: str | None, echoed: Any
) -> None:
    members = [f'"jsonrpc":{version}'] if version else []
    members += [f'"id":{id}'] if id else []
    reply = web.ask("{" + ",".join([*members, '"method":"ping"']) + "}")
    assert reply.error == (400, -32600, echoed)


def test_a_body_of_1048576_bytes_is_answered(web: Gateway) -> None:
    message = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    reply = web.ask(message + b" " * (MIB - len(message)))
    assert (reply.status, reply.json["result"]) == (200, {})


@pytest.mark.parametrize("chunked", ["no", "yes"])
def test_one_byte_more_is_a_parse_error_and_closes_the_connection(
    web: Gateway, chunked: str
) -> None:
    message = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
    body = message + b" " * (MIB + 1 - len(message))
    head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer letmein\r\n"
    with socket.create_connection(("127.0.0.1", web.port), timeout=20) as sock:
        if chunked == "yes":
            head += b"Transfer-Encoding: chunked\r\n\r\n"
            sock.sendall(head + b"%x\r\n" % len(body) + body + b"\r\n0\r\n\r\n")
        else:
            sock.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        answer = b""
        while chunk := sock.recv(65536):  # until it is closed
            answer += chunk
    told, _, found = answer.partition(b"\r\n\r\n")
    assert told.startswith(b"HTTP/1.1 400 ")
    assert b"connection: close" in told.lower()
    error = json.loads(found)
    assert (error["error"]["code"], error["id"]) == (-32700, None)


@pytest.mark.parametrize(
    "id", ['"a"', '""', '"1"', "1", "0", "-1", "1e2", "1.0", "123456789012345678901234567890"]
)
def test_the_id_comes_back_as_it_was_written(web: Gateway, id: str) -> None:
    for method in ("ping", "no/such"):
        body = f'{{"jsonrpc":"2.0","id":{id},"method":"{method}"}}'
        reply = web.ask(body)
        assert reply.status == 200
        assert f'"id":{id},'.encode() in reply.body


@pytest.mark.parametrize("id", ['"id":null,', ""])
@pytest.mark.parametrize("method", ["ping", "tools/list", "no/such", "initialize", "x"])
def test_a_message_without_an_id_is_never_answered(web: Gateway, id: str, method: str) -> None:
    reply = web.ask(f'{{"jsonrpc":"2.0",{id}"method":"{method}"}}')
    assert (reply.status, reply.body) == (202, b"")


@pytest.mark.parametrize("id", ['"id":null,', ""])
def test_a_call_without_an_id_does_not_run_the_tool(web: Gateway, id: str) -> None:
    call = f'{{"jsonrpc":"2.0",{id}"method":"tools/call","params":{{"name":"anything"}}}}'
    reply = web.ask(call)
    assert (reply.status, reply.body, web.ran) == (202, b"", [])
    assert "result" in web.tool("anything")
    assert web.ran == [{}]


@pytest.mark.parametrize("method", ["notifications/initialized", "initialized"])
@pytest.mark.parametrize("id", ["", '"id":1,'])
def test_initialized_by_either_name_is_accepted(web: Gateway, method: str, id: str) -> None:
    reply = web.ask(f'{{"jsonrpc":"2.0",{id}"method":"{method}"}}')
    assert (reply.status, reply.body) == (202, b"")


# -- 8 to 12: what is told -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "version"),
    [
        ({"protocolVersion": "2025-11-25"}, "2025-11-25"),
        ({"protocolVersion": "2026-07-28"}, "2026-07-28"),
        ({"protocolVersion": "1999-12-31"}, "1999-12-31"),
        ({"protocolVersion": "whatever"}, "whatever"),
        ({"protocolVersion": 20251125}, "2024-11-05"),
        ({"protocolVersion": None}, "2024-11-05"),
        ({}, "2024-11-05"),
        (None, "2024-11-05"),
    ],
)
def test_an_opening_agrees_to_whatever_version(
    web: Gateway, params: dict[str, Any] | None, version: str
) -> None:
    result = web.say("initialize", params)["result"]
    assert result["protocolVersion"] == version
    assert result["serverInfo"] == {"name": "gateway", "version": "1.0.0"}


def test_the_capabilities_are_tools_that_do_not_change(web: Gateway) -> None:
    for _ in range(2):
        found = web.say("initialize", {"protocolVersion": "2025-11-25"})["result"]
        assert found["capabilities"] == {"tools": {"listChanged": False}}


def test_a_ping_is_answered_and_there_is_no_gate_before_the_opening(web: Gateway) -> None:
    assert web.say("ping") == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert "result" in web.say("tools/list")
    assert "result" in web.tool("zero")


def test_tools_are_listed_by_name_and_the_same_each_time(web: Gateway) -> None:
    first = web.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).body
    assert web.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).body == first
    result = json.loads(first)["result"]
    names = [tool["name"] for tool in result["tools"]]
    assert names == sorted(names)
    assert names[:3] == ["annotated", "anything", "breaks"]
    assert set(result) == {"tools"}  # no cursor


async def test_no_tools_are_an_empty_list() -> None:
    server = Server("empty", "1")
    session = server.open(profile="gateway")
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    assert (await server.handle(message, session)) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"tools": []},
    }


def test_annotations_are_told_as_they_are_and_only_if_there_are_some(web: Gateway) -> None:
    found = {tool["name"]: tool for tool in web.say("tools/list")["result"]["tools"]}
    assert found["annotated"]["annotations"] == {
        "title": "A",
        "readOnlyHint": True,
        "x-own": {"kept": [1, None]},
    }
    assert "annotations" not in found["zero"]
    assert set(found["send_mail"]["inputSchema"]["properties"]) == {"to", "subject", "body"}


# -- 13 to 18: calls -----------------------------------------------------------------------


@pytest.mark.parametrize("more", [{}, {"arguments": None}, {"arguments": {}}])
def test_no_arguments_reach_the_tool_as_an_empty_object(web: Gateway, more: dict[str, Any]) -> None:
    assert web.tool("anything", **more)["result"]["structuredContent"]["got"] == {}
    assert web.ran == [{}]


@pytest.mark.parametrize("arguments", [[], [1], "x", 1, True])
def test_arguments_that_are_no_object_are_invalid(web: Gateway, arguments: Any) -> None:
    error = web.tool("anything", arguments=arguments)["error"]
    assert (error["code"], web.ran) == (-32602, [])


@pytest.mark.parametrize(
    "params", [None, {}, {"arguments": {}}, {"name": ""}, {"name": None}, {"name": 1}, [], "x"]
)
def test_without_a_name_a_call_is_invalid_with_status_200(web: Gateway, params: Any) -> None:
    answer = web.say("tools/call", params)
    assert (answer["error"]["code"], answer["id"]) == (-32602, 1)


def test_an_unknown_tool_is_told_those_that_there_are(web: Gateway) -> None:
    error = web.tool("rm")["error"]
    assert error["code"] == -32602
    assert error["message"] == (
        "Tool not found: rm (available: annotated, anything, breaks, exits, read_inbox, "
        "refuses, says_so, send_mail, zero)"
    )


@pytest.mark.parametrize(
    ("tool", "text"),
    [("refuses", "not today"), ("breaks", "division by nothing"), ("says_so", "said by itself")],
)
def test_a_failing_tool_is_a_result_that_names_it(
    web: Gateway, tool: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    result = web.tool(tool)["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"] == f"{tool}: {text}"
    assert tool in caplog.text
    assert text in caplog.text


def test_what_the_gateway_refuses_a_tool_refuses_too(web: Gateway) -> None:
    arguments = {"to": " ", "subject": "s", "body": "b"}
    result = web.tool("send_mail", arguments=arguments)["result"]
    assert result["isError"] is True
    assert result["content"][0]["text"] == "send_mail: a mail needs somebody to go to"
    plain = web.ask(arguments, path="/mail")
    assert (plain.status, json.loads(plain.body)["error"]) == (
        400,
        "a mail needs somebody to go to",
    )


def test_a_success_does_not_speak_of_errors(web: Gateway) -> None:
    for tool in ("zero", "annotated", "read_inbox"):
        assert "isError" not in web.tool(tool)["result"]


@pytest.mark.parametrize(
    "method", ["no/such", "resources/list", "prompts/list", "logging/setLevel", "server/discover"]
)
def test_an_unknown_method_is_not_found_with_status_200(web: Gateway, method: str) -> None:
    assert web.say(method)["error"]["code"] == -32601


# -- 19: auth ------------------------------------------------------------------------------


def test_whom_the_gateway_lets_in_the_tool_sees(web: Gateway) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "anything"}}
    for token, user in [("letmein", "ann"), ("bobs", "bob")]:
        reply = web.ask(message, headers={"authorization": f"Bearer {token}"})
        assert reply.json["result"]["structuredContent"]["subject"] == user


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"authorization": "Bearer"},
        {"authorization": "Bearer wrong"},
        {"authorization": "Bearer letmein2"},
        {"authorization": "Basic letmein"},
        {"x-authorization": "Bearer letmein"},
        {"mcpclient.identity": "ann", "x-user": "ann"},
    ],
)
def test_without_a_token_nothing_runs_by_any_way(web: Gateway, headers: dict[str, str]) -> None:
    call = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "anything", "_meta": {"authorization": "Bearer letmein"}},
    }
    paths = ["/mcp", "/mcp/", "//mcp", "/mcp?token=letmein", "/mcp/../mcp", "/%6dcp", "/", "/none"]
    for path in paths:
        for method in ("POST", "PUT", "GET", "OPTIONS"):
            reply = web.ask(call, method, headers, path)
            assert reply.status == 401, (method, path)
            assert reply.headers["www-authenticate"] == 'Bearer realm="gateway"'
    assert web.ran == []


def test_tools_and_routes_are_one_code_path_and_one_auth(web: Gateway) -> None:
    mail = {"to": "ann", "subject": "hello", "body": "by a tool"}
    assert web.tool("send_mail", arguments=mail)["result"]["content"][0]["text"] == (
        "sent; ann has 1 mails"
    )
    sent = web.ask({**mail, "body": "by a route"}, path="/mail")
    assert (sent.status, json.loads(sent.body)) == (201, {"count": 2})
    expected = [
        {"sender": "ann", "subject": "hello", "body": "by a tool"},
        {"sender": "ann", "subject": "hello", "body": "by a route"},
    ]
    assert json.loads(web.ask(method="GET", path="/inbox").body) == expected
    [block] = web.tool("read_inbox")["result"]["content"]
    assert json.loads(block["text"]) == expected
    bob = {"authorization": "Bearer bobs"}
    assert json.loads(web.ask(method="GET", path="/inbox", headers=bob).body) == []


# -- 20 to 23 ------------------------------------------------------------------------------


async def test_a_name_that_is_registered_again_is_replaced() -> None:
    server = Server("twice", "1")

    @server.tool(name="one")
    async def first() -> str:
        return "first"

    @server.tool(name="one", annotations={"title": "Second"})
    async def second() -> str:
        return "second"

    session = server.open(profile="gateway")

    async def said(method: str, **params: Any) -> Any:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = await server.handle(message, session)
        assert answer is not None
        return answer["result"]

    [tool] = (await said("tools/list"))["tools"]
    assert tool["annotations"] == {"title": "Second"}
    assert (await said("tools/call", name="one"))["content"][0]["text"] == "second"


@pytest.mark.parametrize(
    ("method", "body"),
    [
        ("POST", '{"jsonrpc":"2.0","id":1,"method":"ping"}'),
        ("POST", '{"jsonrpc":"2.0","id":1,"method":"no/such"}'),
        ("POST", '{"jsonrpc":"1.0","id":1,"method":"ping"}'),
        ("POST", "garbage"),
        ("POST", " " * (MIB + 1)),
        ("GET", ""),
    ],
)
def test_all_that_is_answered_is_json_in_utf_8(web: Gateway, method: str, body: str) -> None:
    for accept in ("application/json", "text/html", "*/*"):
        reply = web.ask(body, method, {**TOKEN, "accept": accept, "content-type": "text/plain"})
        assert reply.json["jsonrpc"] == "2.0"


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        (b'{"jsonrpc":"2.0","id":1e2,"method":"ping"}', b'{"jsonrpc":"2.0","id":1e2,"result":{}}'),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None),
        (b'{"jsonrpc":"2.0","method":"initialized"}', None),
    ],
)
async def test_the_same_is_answered_without_http(message: bytes, answer: bytes | None) -> None:
    server = Server("pure", "1")
    found = await server.handle(message, server.open(profile="gateway"))
    assert (found.strip() if found is not None else None) == answer


@pytest.mark.parametrize("tool", ["breaks", "exits"])
def test_an_exception_that_no_tool_meant_never_kills_the_connection(
    web: Gateway, tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=20)
    with contextlib.closing(connection):
        for _ in range(3):  # by one connection
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}}
            connection.request("POST", "/mcp", msgspec.json.encode(call), TOKEN)
            reply = connection.getresponse()
            assert reply.status == 200
            assert json.loads(reply.read())["result"]["isError"] is True
        assert "result" in web.say("ping")


# -- the program, and the table ------------------------------------------------------------


def test_the_fixture_server_runs_by_hand() -> None:
    process = subprocess.Popen(
        [sys.executable, str(SERVERS / "gateway.py"), "--token", "t"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        port = int(url.rpartition(":")[2])
        web = Gateway(port, [], None)
        token = {"authorization": "Bearer t"}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_inbox"}}
        assert web.ask(call, headers=token).json["result"]["content"][0]["text"] == "[]"
        assert web.ask(call, headers=TOKEN).status == 401
        process.terminate()
        _, errors = process.communicate(timeout=20)
        assert errors == ""
    finally:
        process.kill()
        process.communicate()


def lines() -> dict[int, list[str]]:
    """Return the tests of each line of the table."""
    found = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].isdigit():
            found[int(cells[0])] = re.findall(r"`(test_\w+)`", cells[-1])
    return found


def test_each_line_of_the_table_names_its_tests_and_each_test_has_a_line() -> None:
    source = Path(__file__).read_text(encoding="utf-8")
    here = re.findall(r"^(?:async )?def (test_\w+)", source, re.MULTILINE)
    mine = here[: here.index("test_the_fixture_server_runs_by_hand")]
    named = [name for names in lines().values() for name in names]
    assert sorted(named) == sorted(mine)
    assert all(lines().values())


@pytest.mark.skipif(not SEEDS.exists(), reason="the list of what is owed does not stand beside it")
def test_the_table_has_the_lines_that_are_owed() -> None:
    text = SEEDS.read_text(encoding="utf-8")
    owed = [int(number) for number in re.findall(r"(?:^|\. )(\d+)\. ", text, re.MULTILINE)]
    assert owed == list(range(1, 24))
    assert list(lines()) == owed
