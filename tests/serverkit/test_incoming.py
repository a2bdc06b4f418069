"""What a line says, read strictly: whatever it is, there is one sensible answer, or none."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from mcpclient.serverkit import Server
from mcpclient.serverkit.incoming import (
    Batch,
    Fault,
    Notification,
    Request,
    Response,
    read,
)
from tests.serverkit.talking import HANDSHAKE, Talk, opening


def only(line: bytes, **options: Any) -> Any:
    """Return the one item of a line."""
    [item] = read(line, **options)
    return item


def refused(line: bytes, **options: Any) -> dict[str, Any]:
    """Return the answer to a line that cannot be taken."""
    item = only(line, **options)
    assert isinstance(item, Fault)
    found = json.loads(item.reply.frame)
    assert set(found) == {"jsonrpc", "id", "error"}
    assert item.reply.code == found["error"]["code"]
    return {"id": found["id"], **found["error"]}


# -- what is a message ---------------------------------------------------------------------


def test_a_request_a_notification_and_answers_are_told_apart() -> None:
    request = only(b'{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"n","_meta":{"x":1}}}')
    assert isinstance(request, Request)
    assert (request.id, request.method, request.meta) == (b"1", "a", {"x": 1})
    notification = only(b'{"jsonrpc":"2.0","method":"a"}')
    assert isinstance(notification, Notification)
    assert notification.params.whole() == {}
    response = only(b'{"jsonrpc":"2.0","id":7,"result":{"a":1},"error":null}')
    assert isinstance(response, Response)
    assert (response.id, bytes(response.result), bytes(response.error)) == (7, b'{"a":1}', b"")
    response = only(b'{"jsonrpc":"2.0","id":"x","error":{"code":1,"message":"no"}}')
    assert isinstance(response, Response)
    assert response.id is None


@pytest.mark.parametrize(
    "id",
    [
        b"1",
        b"0",
        b"-5",
        b"1.5",
        b"1e2",
        b"123456789012345678901234567890",
        b'"a"',
        b'""',
        b'"\\u00e4"',
    ],
)
async def test_an_id_goes_back_as_it_was_written(id: bytes) -> None:
    server = Server("a", "1")
    line = b'{"jsonrpc": "2.0", "method": "ping", "id": %s }' % id
    reply = await server.handle(line)
    assert reply == b'{"jsonrpc":"2.0","id":%s,"result":{}}\n' % id


@pytest.mark.parametrize("id", [b"null", b"true", b"[]", b"{}", b"[1]"])
def test_a_request_whose_id_is_none_is_refused_and_not_taken_for_a_notification(id: bytes) -> None:
    found = refused(b'{"jsonrpc":"2.0","id":%s,"method":"ping"}' % id)
    assert found == {
        "id": None,
        "code": -32600,
        "message": "Invalid request: id must be text or a number",
    }


@pytest.mark.parametrize("line", [b"", b" ", b"\r\n", b"\t", b"\xef\xbb\xbf", b"\xef\xbb\xbf \r\n"])
def test_a_blank_line_is_nothing(line: bytes) -> None:
    assert read(line) == []


@pytest.mark.parametrize("dress", [b"%s\r\n", b"  %s ", b"\xef\xbb\xbf%s\n", b"%s\r"])
def test_the_dress_of_a_line_is_taken_off(dress: bytes) -> None:
    item = only(dress % b'{"jsonrpc":"2.0","id":1,"method":"ping"}')
    assert isinstance(item, Request)


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"nonsense", -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"}{}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', -32700),
        (b"[" * 5000, -32700),
        (b'{"a":' * 5000, -32700),
        (b"5", -32600),
        (b'"text"', -32600),
        (b"null", -32600),
        (b"{}", -32600),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":2.0,"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":null}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":"x"}', -32602),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":5}}', -32602),
    ],
)
def test_what_is_no_message_is_answered_by_what_is_wrong(line: bytes, code: int) -> None:
    assert refused(line)["code"] == code


@pytest.mark.parametrize(
    ("line", "id"),
    [
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 1),
        (b'{"jsonrpc":"1.0","id":"a","method":"ping"}', "a"),
        (b'{"jsonrpc":"1.0","method":"ping"}', None),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', 1),
        (b'{"jsonrpc":"2.0","id":1,"method":5}', 1),
    ],
)
def test_a_refusal_names_the_request_if_it_can(line: bytes, id: Any) -> None:
    assert refused(line)["id"] == id


def test_a_notification_with_bad_params_is_never_answered() -> None:
    item = only(b'{"jsonrpc":"2.0","method":"a","params":[1]}')
    assert isinstance(item, Notification)
    assert item.params.whole() == {}


@pytest.mark.parametrize("params", [b"null", b"{}"])
def test_params_of_null_are_none(params: bytes) -> None:
    item = only(b'{"jsonrpc":"2.0","id":1,"method":"ping","params":%s}' % params)
    assert isinstance(item, Request)
    assert item.params.whole() == {}


@pytest.mark.parametrize(
    ("method", "params", "name"),
    [
        ("tools/call", {"name": "a"}, "a"),
        ("prompts/get", {"name": "a"}, "a"),
        ("resources/read", {"uri": "x:"}, "x:"),
        ("tasks/get", {"taskId": "t"}, "t"),
        ("tasks/update", {"taskId": "t"}, "t"),
        ("tasks/cancel", {"taskId": "t"}, "t"),
        ("tools/call", {"name": 5}, None),
        ("tools/list", {"name": "a"}, None),
    ],
)
def test_a_request_says_what_a_proxy_may_route_by(method: str, params: Any, name: Any) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    item = only(json.dumps(message).encode())
    assert item.name == name


# -- several at once -----------------------------------------------------------------------

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
NO = {"jsonrpc": "2.0", "id": 2, "method": "no"}
NOTICE = {"jsonrpc": "2.0", "method": "notifications/initialized"}


async def test_arrays_are_answered_in_2025_03_26_and_only_there() -> None:
    async with Talk(Server("a", "1"), "2025-03-26") as talk:
        line = json.dumps([PING, NOTICE, {**PING, "id": "b"}, 5, NO]).encode()
        found = await talk.line(line)
        assert [(one["id"], one.get("error", {}).get("code")) for one in found] == [
            (1, None),
            ("b", None),
            (None, -32600),
            (2, -32601),
        ]
        assert await talk.line(json.dumps([NOTICE, NOTICE]).encode()) is None
        assert (await talk.line(b"[]"))["error"]["code"] == -32600
        init = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": opening()}
        [found] = await talk.line(json.dumps([init]).encode())
        assert found["error"]["message"] == "initialize must stand alone"
    for version in ("2024-11-05", "2025-06-18", HANDSHAKE):
        async with Talk(Server("a", "1"), version) as talk:
            found = await talk.line(json.dumps([PING]).encode())
            assert (found["id"], found["error"]["code"]) == (None, -32600)


async def test_a_request_of_an_array_can_be_cancelled_in_the_same_array() -> None:
    import anyio

    server = Server("a", "1")

    @server.tool
    async def forever() -> None:
        await anyio.sleep_forever()

    call = {"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {"name": "forever"}}
    cancel = {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 5},
    }
    async with Talk(server, "2025-03-26") as talk:
        with anyio.fail_after(10):
            found = await talk.line(json.dumps([call, PING, cancel]).encode())
    assert [one["id"] for one in found] == [1]


# -- anything at all -----------------------------------------------------------------------

WHOLE = (
    b'{"jsonrpc":"2.0","id":"\xc3\xa4\\u0031","method":"tools/call","params":'
    b'{"name":"a","arguments":{"x":[1,2.5,null,true,"\\ud83d\\ude00"]},"_meta":{"progressToken":0}}}'
)


def test_a_message_that_is_cut_at_any_byte_is_a_parse_error_and_no_more() -> None:
    assert isinstance(only(WHOLE), Request)
    for cut in range(1, len(WHOLE)):
        found = refused(WHOLE[:cut])
        assert (found["id"], found["code"]) == (None, -32700), WHOLE[:cut]


def test_rubbish_is_refused_and_never_raises() -> None:
    chance = random.Random(5)
    alphabet = b'{}[]",:0123456789eE+-.\\/untrfalsjonrpcidmethoparsg \xff\xc3\xa4\x00\xed\xa0\x80'
    for _ in range(3000):
        line = bytes(chance.choices(alphabet, k=chance.randrange(60)))
        for batches in (False, True):
            for item in read(line, batches=batches):
                assert isinstance(item, Request | Notification | Response | Fault | Batch)


async def test_a_mutilated_message_gets_an_answer_that_is_json_or_none() -> None:
    chance = random.Random(6)
    async with Talk(Server("a", "1", capabilities=["tools"])) as talk:
        for _ in range(2000):
            line = bytearray(WHOLE)
            for _ in range(chance.randrange(1, 5)):
                line[chance.randrange(len(line))] = chance.randrange(256)
            for item in talk.session.receive(bytes(line)):
                reply = await talk.session.answer(item)
                if reply is not None:
                    found = json.loads(reply.frame)
                    assert found["jsonrpc"] == "2.0"
                    assert "error" in found


@pytest.mark.parametrize(
    "arguments",
    [b'{"x":"\\ud800"}', b'{"x":1e999}', b"[" * 3000, b'{"x":' * 3000, b'{"x"}'],
)
async def test_arguments_that_cannot_be_read_cost_their_call_only(arguments: bytes) -> None:
    server = Server("a", "1")

    @server.tool
    async def take(x: str = "") -> str:
        return x

    async with Talk(server) as talk:
        line = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"take","arguments":'
        found = await talk.line(line + arguments + b"}}")
        assert "error" in found or found["result"]["isError"] is True
        assert await talk.text("take", x="a") == "a"


async def test_a_result_that_is_no_json_is_the_servers_fault() -> None:
    server = Server("a", "1")

    @server.tool
    async def nan() -> Any:
        return {"x": float("nan"), "y": None}

    @server.tool
    async def thing() -> Any:
        return object()

    @server.tool
    async def lone() -> str:
        return "\ud800 and more \U0001f600"

    async with Talk(server) as talk:
        error = await talk.error("tools/call", {"name": "nan"})
        assert error == {
            "code": -32603,
            "message": "Internal error: the result holds what JSON cannot say",
        }
        found = await talk.call("thing")
        assert found["isError"] is True
        assert await talk.text("lone") == "\ufffd and more \U0001f600"


async def test_a_message_may_be_a_mapping_and_its_answer_is_one_too() -> None:
    server = Server("a", "1")
    assert await server.handle(PING) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert await server.handle(NOTICE) is None
    assert await server.handle(b"\n") is None
    assert await server.handle({"a": 1}) == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32600, "message": 'Invalid request: jsonrpc must be "2.0"'},
    }
