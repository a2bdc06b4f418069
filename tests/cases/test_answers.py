"""Odd answers and messages beyond the reports: each costs its own call at most, and says why."""

from __future__ import annotations

import json
import logging

import anyio
import pytest

from mcpclient import (
    Limits,
    Manager,
    McpClientError,
    RemoteProtocolError,
    ReplyError,
    Server,
)
from tests.cases import inline
from tests.conftest import eventually, spec


async def broken(server: Server) -> str:
    """Call the tool that sins, and return the text of the error that it is at once."""
    with pytest.raises(RemoteProtocolError) as caught, anyio.fail_after(10):
        await server.invoke_tool("sin", {}, timeout=60)
    return str(caught.value)


async def goes_on(server: Server) -> bool:
    """Return whether a server still answers in its first life."""
    answer = await server.invoke_tool("echo", {"text": "on"})
    return answer.text == "on" and server.generation == 1


async def test_an_answer_with_neither_result_nor_error_fails_its_call(manager: Manager) -> None:
    server = await manager.add("empty", spec("id_missing_result"))
    text = await broken(server)
    assert text == 'tools/call on "empty": the answer has neither a result nor an error'
    assert await goes_on(server)


@pytest.mark.parametrize("depth", [20_000, 100_000])
async def test_an_answer_nested_too_deeply_fails_its_call(manager: Manager, depth: int) -> None:
    server = await manager.add("deep", spec("deep_nesting", depth))
    text = await broken(server)
    assert text.startswith('tools/call on "deep": JSON that is nested too deeply, or broken')
    assert len(text) < 1000
    assert await goes_on(server)


@pytest.mark.parametrize("depth", [600, 1000, 2000])
async def test_an_answer_nested_deeply_is_delivered_or_fails_its_call(
    manager: Manager, depth: int
) -> None:
    server = await manager.add("deep", spec("deep_nesting", depth))
    outcome = "delivered"
    try:
        with anyio.fail_after(10):
            result = await server.invoke_tool("sin", {}, timeout=60)
            nested = result.structured["x"]
    except RemoteProtocolError:
        outcome = "failed"
    else:
        assert result.text == "deep"
        for _ in range(depth - 1):
            [nested] = nested
        assert nested == []
    # What Python can hold is known to be about a thousand; not where exactly.
    assert outcome == "delivered" or depth > 600
    assert await goes_on(server)


async def test_a_null_error_beside_a_result_means_nothing(manager: Manager) -> None:
    server = await manager.add("both", spec("error_null"))
    assert (await server.invoke_tool("sin", {})).text == "sin"
    assert await goes_on(server)
    assert server.status().noise == 0


async def test_of_a_result_and_an_error_the_error_counts(manager: Manager) -> None:
    server = await manager.add("both", spec("both"))
    with pytest.raises(ReplyError) as caught:
        await server.invoke_tool("sin", {})
    assert (caught.value.code, caught.value.message) == (-32603, "not fine")
    assert (caught.value.method, caught.value.server) == ("tools/call", "both")
    assert str(caught.value) == '[-32603] not fine (tools/call on "both")'
    assert await goes_on(server)


@pytest.mark.parametrize("how", ["wrong", "missing"])
async def test_answers_of_another_json_rpc_are_read_all_the_same(
    manager: Manager, how: str
) -> None:
    server = await manager.add("old", spec("wrong_jsonrpc", how))
    assert await goes_on(server)
    with pytest.raises(ReplyError) as caught:
        await server.request("no/such/method")
    assert caught.value.code == -32601
    assert server.status().noise == 0


async def test_answers_in_arrays_are_taken_apart(manager: Manager) -> None:
    changed: list[object] = []
    manager.on_notification("notifications/tools/list_changed", lambda *told: changed.append(told))
    server = await manager.add("batch", spec("batch"))
    await server.start()
    assert server.protocol_version == "2025-03-26"
    answers: dict[str, str] = {}

    async def call(tool: str, text: str) -> None:
        answers[text] = (await server.invoke_tool(tool, {"text": text})).text

    async with anyio.create_task_group() as group:
        for text in "abcde":
            group.start_soon(call, "echo", text)
        group.start_soon(call, "sin", "s")
    assert answers == {**{text: text for text in "abcde"}, "s": "in an array"}
    await eventually(lambda: changed == [(server, {})])
    assert await goes_on(server)
    status = server.status()
    assert (status.noise, status.stray) == (0, 0)


async def test_one_odd_member_of_an_array_costs_no_other(manager: Manager) -> None:
    code = r"""
import _wire
for message in _wire.messages():
    if _wire.called(message) == "sin":
        parts = [b'7', b'"text"', b'[]', b'{"id":true,"result":{}}', b'{}',
                 b'{"jsonrpc":"2.0","id":null,"method":"ping"}', b'{"x":"\ud83d"}',
                 _wire.line(_wire.text(message["id"], "amid"))[:-1], b'null']
        _wire.write(b"[" + b",".join(parts) + b"]\n[]\n")
    else:
        _wire.reply(message)
"""
    server = await manager.add("mixed", inline(code))
    assert (await server.invoke_tool("sin", {})).text == "amid"
    assert await goes_on(server)
    # Eight of the nine, and the empty array.
    assert server.status().noise == 9


async def test_a_stateless_server_that_asks_is_never_answered(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("asks", spec("asks_stateless"))
    with caplog.at_level(logging.WARNING, "mcpclient"):
        assert await goes_on(server)
        assert json.loads((await server.invoke_tool("answered", {})).text) == []
    status = server.status()
    assert (status.asks, status.ignored) == (2, 2)
    told = [record.getMessage() for record in caplog.records]
    assert told == [
        "asks#1 ! a request from the server, which this era forbids: ping",
        "asks#1 ! a request from the server, which this era forbids: roots/list",
    ]


async def test_a_handshake_server_that_asks_is_answered_at_once(manager: Manager) -> None:
    server = await manager.add("asks", spec("asks_roots"))
    # This one is answered only when its ping was.
    told = await server.invoke_tool("sin", {})
    assert json.loads(told.text) == {"jsonrpc": "2.0", "id": "ask-1", "result": {}}
    for method in ("roots/list", "sampling/createMessage", "elicitation/create", "no/such"):
        told = await server.invoke_tool("ask", {"method": method, "params": {}})
        reply = json.loads(told.text)
        assert set(reply) == {"jsonrpc", "id", "error"}
        assert reply["error"] == {
            "code": -32601,
            "message": f"{method} is not supported by this client",
        }
    answers = json.loads((await server.invoke_tool("answers", {})).text)
    assert answers[0]["id"] == "roots"
    assert answers[0]["error"]["code"] == -32601
    assert [answer["id"] for answer in answers[1:]] == [f"ask-{n}" for n in range(1, 6)]
    status = server.status()
    assert (status.asks, status.ignored) == (6, 0)


@pytest.mark.odd_frames("of the ids that the server uses one is a fraction")
@pytest.mark.parametrize("version", ['"2.0"', "2.0", "null", "[]"])
async def test_the_id_of_a_servers_request_is_given_back_as_it_came(
    manager: Manager, version: str
) -> None:
    code = f"""
import _wire
waiting = None
for line in _wire.lines():
    message = _wire.json.loads(line)
    if _wire.called(message) == "sin":
        waiting = message["id"]
        id = _wire.arguments(message)["id"]
        _wire.write(b'{{"jsonrpc":{version},"id":%s,"method":"ping"}}\\n' % id.encode())
    elif "method" not in message:
        _wire.send(_wire.text(waiting, line.decode()))
    else:
        _wire.reply(message)
"""
    server = await manager.add("asks", inline(code))
    for id in ("7", '"7"', '"seven"', "7.5", "-1", "0", '""', '"\\u2028 ü"'):
        told = json.loads((await server.invoke_tool("sin", {"id": id}, timeout=10)).text)
        assert told == {"jsonrpc": "2.0", "id": json.loads(id), "result": {}}


async def test_an_error_of_any_shape_is_still_a_refusal(manager: Manager) -> None:
    code = r"""
import _wire
shapes = [b'"no"', b'7', b'{}', b'[]', b'true', b'{"code":"-32601","message":7,"data":{"a":1}}',
          b'{"code":-32000.0,"message":"half \ud83d gone"}', b'{"code":1e99,"message":"bad \x92"}']
for message in _wire.messages():
    if _wire.called(message) == "sin":
        number = _wire.arguments(message)["n"]
        _wire.write(b'{"jsonrpc":"2.0","id":%d,"error":%s}\n' % (message["id"], shapes[number]))
    else:
        _wire.reply(message)
"""
    server = await manager.add("odd", inline(code))
    errors = []
    for number in range(8):
        with pytest.raises(ReplyError) as caught:
            await server.invoke_tool("sin", {"n": number}, timeout=10)
        errors.append(caught.value)
        assert str(caught.value).endswith('(tools/call on "odd")')
        assert type(caught.value.code) is int
    assert errors[0].message == '"no"'
    assert errors[5].data == {"a": 1}
    assert (errors[6].code, errors[6].message) == (-32000, "half \ufffd gone")
    assert errors[7].message == "bad \ufffd"
    assert await goes_on(server)


async def test_rubbish_of_all_kinds_costs_neither_the_session_nor_the_call(
    manager: Manager,
) -> None:
    code = r"""
import os, random, _wire
chance = random.Random(7)
frame = _wire.line(_wire.text(99, "somebody else's"))
for message in _wire.messages():
    if _wire.called(message) == "sin":
        for _ in range(300):
            match chance.randrange(4):
                case 0:  # bytes
                    line = chance.randbytes(chance.randrange(80))
                case 1:  # a cut frame
                    line = frame[: chance.randrange(len(frame))]
                case 2:  # a frame with a wrong byte
                    place = chance.randrange(len(frame) - 1)
                    line = frame[:place] + chance.randbytes(1) + frame[place + 1 :]
                case _:  # the signs of JSON
                    line = bytes(chance.choices(b'{}[]",:0-\\ue1tfn \x1b]', k=40))
            # The id 3 is the call that waits; no rubbish may name it.
            _wire.write(line.replace(b"\n", b" ").replace(b"9", b"8") + b"\n")
    _wire.reply(message)
"""
    server = await manager.add("mad", inline(code, limits=Limits(noise=500)))
    assert (await server.invoke_tool("sin", {})).text == "sin"
    assert await goes_on(server)
    assert server.status().noise > 200


async def test_a_broken_answer_among_many_calls_fails_only_its_own(manager: Manager) -> None:
    for name in ("raw_newline", "nan", "id_missing_result", "deep_nesting"):
        server = await manager.add(name, spec(name))
        outcomes: dict[int, str] = {}

        async def call(
            number: int, server: Server = server, outcomes: dict[int, str] = outcomes
        ) -> None:
            tool = "sin" if number == 4 else "echo"
            try:
                outcomes[number] = (await server.invoke_tool(tool, {"text": f"{number}"})).text
            except McpClientError as problem:
                outcomes[number] = type(problem).__name__

        await server.start()
        async with anyio.create_task_group() as group:
            for number in range(9):
                group.start_soon(call, number)
        right = {number: f"{number}" for number in range(9)}
        assert outcomes == {**right, 4: "RemoteProtocolError"}, name
        assert server.generation == 1
