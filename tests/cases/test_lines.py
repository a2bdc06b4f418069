"""The kind framing of the field reports, on: lines too long, answers on several lines, cut ones."""

from __future__ import annotations

import anyio
import pytest

from mcpclient import (
    CallTimedOut,
    Limits,
    Manager,
    McpClientError,
    OpeningFailed,
    RemoteProtocolError,
)
from tests.cases import ONE_LIFE, case, hasty, inline, refused
from tests.conftest import eventually, spec


@case("B18")
async def test_a_long_line_is_just_a_line(manager: Manager) -> None:
    server = await manager.add("long", spec("huge_line", 200 * 1024, "initialize"))
    await server.start()
    assert server.instructions == "x" * 200 * 1024
    assert (await server.invoke_tool("sin", {"size": 3_000_000})).text == "x" * 3_000_000
    assert server.status().oversize == 0


@case("B18")
async def test_an_opening_over_the_limit_fails_and_names_the_limit(manager: Manager) -> None:
    one = spec("huge_line", 200 * 1024, "initialize", limits=Limits(frame=100_000))
    server = await manager.add("long", one)
    failure = await refused(server)
    assert isinstance(failure, OpeningFailed)
    assert failure.final
    assert "the limit is 100.0 kB (Limits.frame)" in str(failure)
    assert server.generation == 1


@case("B19")
async def test_an_answer_over_the_limit_fails_its_call_alone_and_names_the_limit(
    manager: Manager,
) -> None:
    one = spec("huge_line", 300_000, "tools/list", limits=Limits(frame=100_000))
    server = await manager.add("long", one)
    await server.start()
    pid = server.pid
    with pytest.raises(
        RemoteProtocolError, match=r"tools/list on \"long\": .*300\.\d kB"
    ) as caught:
        await server.list_tools()
    assert "the limit is 100.0 kB (Limits.frame)" in str(caught.value)
    answers: dict[int, str] = {}

    async def call(number: int, tool: str) -> None:
        try:
            answers[number] = (await server.invoke_tool(tool, {"text": f"{number}"})).text
        except McpClientError as problem:
            answers[number] = type(problem).__name__

    async with anyio.create_task_group() as group:
        for number in range(7):
            group.start_soon(call, number, "sin" if number == 3 else "echo")
    others = {number: f"{number}" for number in range(7) if number != 3}
    assert answers == {**others, 3: "RemoteProtocolError"}
    assert server.status().oversize == 2
    assert server.pid == pid


@case("B19")
async def test_a_line_over_the_limit_without_an_end_holds_no_memory_and_fails_the_waiting_call(
    manager: Manager,
) -> None:
    code = """
import _wire
for message in _wire.messages():
    if _wire.called(message) == "sin":
        _wire.write(b'{"')
        for _ in range(200):
            _wire.write(b"x" * 10_000)
        _wire.write(b"\\n")
    else:
        _wire.reply(message)
"""
    server = await manager.add("spills", inline(code, limits=Limits(frame=100_000)))
    with pytest.raises(RemoteProtocolError) as caught, anyio.fail_after(20):
        await server.invoke_tool("sin", {}, timeout=60)
    assert "a message of 2.0 MB; the limit is 100.0 kB (Limits.frame)" in str(caught.value)
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert server.status().oversize == 1


@case("B19")
async def test_noise_over_the_limit_fails_no_call(manager: Manager) -> None:
    code = """
import _wire
for message in _wire.messages():
    if _wire.called(message) == "sin":
        _wire.write(b"x" * 200_000 + b"\\n")
    _wire.reply(message)
"""
    server = await manager.add("logs", inline(code, limits=Limits(frame=100_000)))
    assert (await server.invoke_tool("sin", {})).text == "sin"
    assert server.status().oversize == 1


@case("B19")
async def test_a_notification_over_the_limit_fails_no_call(manager: Manager) -> None:
    code = """
import _wire
for message in _wire.messages():
    if _wire.called(message) == "sin":
        _wire.send(_wire.notification("notifications/message", {"data": "x" * 200_000}))
    _wire.reply(message)
"""
    server = await manager.add("logs", inline(code, limits=Limits(frame=100_000)))
    assert (await server.invoke_tool("sin", {})).text == "sin"
    assert server.status().oversize == 1
    assert server.status().stray == 0


@case("B21")
async def test_an_answer_over_many_lines_is_noise_and_the_time_out_says_so(
    manager: Manager,
) -> None:
    server = await manager.add("pretty", spec("pretty"))
    await server.start()
    pid = server.pid
    with pytest.raises(CallTimedOut, match="multi-line JSON: each message must stand on one line"):
        await server.invoke_tool("sin", {}, timeout=1.5)
    assert server.status().noise == 12
    assert (await server.invoke_tool("echo", {"text": "compact"})).text == "compact"
    assert server.pid == pid


@case("B21")
async def test_an_opening_over_many_lines_fails_and_says_so(manager: Manager) -> None:
    one = spec("pretty", "initialize", timeouts=hasty(open=2.0), restart=ONE_LIFE)
    server = await manager.add("pretty", one)
    assert "multi-line JSON: each message must stand on one line" in str(await refused(server))


@case("B22")
async def test_an_answer_cut_by_a_raw_newline_fails_its_call_at_once(manager: Manager) -> None:
    # The report expects a time-out; since the first half tells the id, we need not wait for it.
    server = await manager.add("cut", spec("raw_newline"))
    await server.start()
    pid = server.pid
    with pytest.raises(RemoteProtocolError) as caught, anyio.fail_after(10):
        await server.invoke_tool("sin", {}, timeout=60)
    text = str(caught.value)
    assert text.startswith('tools/call on "cut": broken JSON')
    assert '"text":"a' in text
    await eventually(lambda: server.status().noise == 1)
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert server.pid == pid
