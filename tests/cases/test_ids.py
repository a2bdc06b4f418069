"""The kind ids of the field reports: which answer belongs to which call, and which to none."""

from __future__ import annotations

import json
import logging
import os
import signal
import time
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallTimedOut,
    LocalProtocolError,
    Manager,
    Server,
    ServerDied,
    Timeouts,
)
from tests.cases import ONE_LIFE, case, hasty, inline, refused
from tests.conftest import eventually, spec


async def journal(server: Server) -> list[dict[str, Any]]:
    """Return what a good server received so far."""
    found = json.loads((await server.invoke_tool("journal", {})).text)
    assert isinstance(found, list)
    return found


def quiet(caplog: pytest.LogCaptureFixture) -> bool:
    """Return whether nothing was logged that somebody should look at."""
    return [r.getMessage() for r in caplog.records if r.levelno >= logging.WARNING] == []


@case("B32")
@pytest.mark.parametrize(
    ("name", "id", "stray"), [("id_zero", "0", 1), ("id_null_string", '"null"', 0)]
)
async def test_an_answer_to_an_id_that_was_never_asked_is_told_in_the_time_out(
    manager: Manager, name: str, id: str, stray: int
) -> None:
    server = await manager.add("astray", spec(name))
    await server.start()
    pid = server.pid
    with pytest.raises(CallTimedOut) as caught:
        await server.invoke_tool("sin", {}, timeout=1.5)
    assert caught.value.maybe_done
    assert f'"id":{id},"result"' in str(caught.value)
    status = server.status()
    assert (status.noise, status.stray, status.late) == (1, stray, 0)
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert server.pid == pid


@case("B32")
@pytest.mark.parametrize(("name", "id"), [("id_zero", "0"), ("id_null_string", '"null"')])
async def test_a_server_that_answers_everything_so_fails_to_open_and_the_id_is_told(
    manager: Manager, name: str, id: str
) -> None:
    one = spec(name, "always", timeouts=hasty(probe=0.1, open=2.0), restart=ONE_LIFE)
    server = await manager.add("astray", one)
    assert f'"id":{id},' in str(await refused(server))


@case("B34")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("id_as_text", []),
        ("id_as_text", ["float"]),
        ("id_as_text", ["always"]),
        ("id_as_text", ["float", "always"]),
        ("id_float", []),
        ("id_float", ["exponent"]),
    ],
)
async def test_an_id_in_another_dress_means_the_same_number(
    manager: Manager, name: str, arguments: list[str]
) -> None:
    server = await manager.add("dressed", spec(name, *arguments))
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert (await server.invoke_tool("sin", {})).text == "sin"
    status = server.status()
    assert (status.noise, status.stray, status.late) == (0, 0, 0)


@case("B34")
async def test_true_is_not_the_id_one(manager: Manager) -> None:
    # The first request has the id 1; a stray answer with the id true comes before its own.
    server = await manager.add("true", spec("id_true", era="2025-06-18"))
    await server.start()
    assert server.protocol_version == "2025-06-18"
    assert server.info == {"name": "sinner", "version": "1"}
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert server.status().noise == 2


@case("B35")
async def test_a_result_with_id_null_is_noise_and_stalls_nothing(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("null", spec("null_id_result"))
    with caplog.at_level(logging.WARNING, "mcpclient"):
        for number in range(3):
            assert (await server.invoke_tool("echo", {"text": f"{number}"})).text == f"{number}"
    assert server.status().noise == 5
    assert "an answer that names no request of ours" in caplog.records[0].getMessage()


@case("B37")
async def test_a_request_with_id_null_is_neither_answered_nor_a_notification(
    manager: Manager,
) -> None:
    changed: list[object] = []
    manager.on_notification("notifications/tools/list_changed", lambda *told: changed.append(told))
    manager.on_notification("ping", lambda *told: changed.append(told))
    server = await manager.add("null", spec("null_id_request"))
    assert (await server.invoke_tool("sin", {})).text == "asked without an id"
    assert json.loads((await server.invoke_tool("answers", {})).text) == []
    status = server.status()
    assert (status.noise, status.asks) == (2, 0)
    await server.stop()
    assert changed == []


@case("B38")
async def test_a_request_of_the_server_under_the_id_of_a_call_does_not_answer_it(
    manager: Manager,
) -> None:
    server = await manager.add("same", spec("same_id_ask"))
    answers: dict[str, str] = {}

    async def call(text: str) -> None:
        answers[text] = (await server.invoke_tool("echo", {"text": text})).text

    await server.start()
    async with anyio.create_task_group() as group:
        for text in "abc":
            group.start_soon(call, text)
    assert answers == {"a": "a", "b": "b", "c": "c"}
    asked = json.loads((await server.invoke_tool("asked", {})).text)
    assert sorted(answer["id"] for answer in asked) == [3, 4, 5]
    assert {answer["error"]["code"] for answer in asked} == {-32601}
    status = server.status()
    assert (status.asks, status.stray, status.noise) == (3, 0, 0)


@case("B40")
async def test_a_late_error_to_a_cancelled_call_is_dropped_silently(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("late", spec("late_error", 0.05))
    await server.start()
    pid = server.pid
    with caplog.at_level(logging.INFO, "mcpclient"):
        async with anyio.create_task_group() as group:
            group.start_soon(server.invoke_tool, "sin", {})
            await eventually(lambda: server.status().in_flight == 1)
            group.cancel_scope.cancel()
        assert server.status().in_flight == 0
        await eventually(lambda: server.status().late == 1)
        assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert quiet(caplog)
    status = server.status()
    assert (status.late, status.stray, status.noise) == (1, 0, 0)
    assert server.pid == pid


@case("B41")
async def test_an_answer_after_the_time_out_is_dropped_silently(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("late", spec("late_answer"))
    await server.start()
    pid = server.pid
    with caplog.at_level(logging.INFO, "mcpclient"):
        with pytest.raises(CallTimedOut) as caught:
            await server.invoke_tool("sin", {"seconds": 1.2}, timeout=0.1)
        assert str(caught.value).startswith('tools/call on "late": no answer within 100 ms;')
        assert (caught.value.method, caught.value.server) == ("tools/call", "late")
        assert (await server.invoke_tool("echo", {"text": "fast"})).text == "fast"
        await eventually(lambda: server.status().late == 1)
        assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert quiet(caplog)
    status = server.status()
    assert (status.late, status.stray, status.noise) == (1, 0, 0)
    assert (server.pid, server.generation) == (pid, 1)


@case("B43", "B50")
async def test_callers_share_one_server_and_the_ids_are_the_connections_own(
    manager: Manager,
) -> None:
    server = await manager.add("shared", spec("good_handshake"))
    await server.start()
    answers: dict[int, str] = {}

    async def caller(number: int) -> None:
        # What a caller calls its request travels as a param and means nothing.
        arguments = {"text": f"for {number}", "id": 0}
        params = {"name": "echo", "arguments": arguments, "id": 0}
        result = await server.request("tools/call", params)
        answers[number] = result["content"][0]["text"]

    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(caller, number)
    assert answers == {number: f"for {number}" for number in range(40)}
    ids = [message["id"] for message in await journal(server) if "id" in message]
    # The probe is 1, initialize 2, then the calls in the order they were made, the journal last.
    assert ids == [*range(1, 44)]


@case("B50", "B43")
async def test_no_id_is_used_twice_whatever_became_of_the_first_call(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake"))
    await server.start()
    for number in range(3):
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("slow", {"seconds": 30}, timeout=0.03)
        async with anyio.create_task_group() as group:
            group.start_soon(server.invoke_tool, "slow", {"seconds": 30})
            await eventually(lambda: server.status().in_flight == 1)
            group.cancel_scope.cancel()
        with pytest.raises(LocalProtocolError):
            await server.invoke_tool("echo", {"text": object()})
        assert (await server.invoke_tool("echo", {"text": f"{number}"})).text == f"{number}"
    messages = await journal(server)
    ids = [message["id"] for message in messages if "id" in message]
    assert ids == sorted(set(ids))
    cancelled = [m["params"]["requestId"] for m in messages if "cancelled" in m.get("method", "")]
    assert cancelled == [3, 4, 6, 7, 9, 10]


@case("B50")
async def test_callers_in_a_restart_never_get_each_others_answers(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake"))
    await server.start()
    first = server.pid
    assert first is not None
    outcomes: list[str] = []

    async def caller(number: int) -> None:
        left = 10
        while left:
            text = f"{number}.{len(outcomes)}"
            try:
                answer = (await server.invoke_tool("echo", {"text": text})).text
            except ServerDied:
                outcomes.append("died")
            else:
                outcomes.append("right" if answer == text else f"{text} got {answer}")
                left -= server.generation == 2
            if len(outcomes) >= 100 and server.pid == first:
                os.kill(first, signal.SIGKILL)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(caller, number)
    assert set(outcomes) <= {"right", "died"}
    assert server.generation == 2
    # A new conversation counts anew, by itself.
    ids = [message["id"] for message in await journal(server) if "id" in message]
    assert ids == [*range(1, len(ids) + 1)]
    status = server.status()
    assert (status.stray, status.late, status.noise) == (0, 0, 0)


@case("B44")
async def test_a_bounded_number_of_abandoned_ids_is_remembered(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("flood", spec("retired_flood"))
    await server.start()
    pid = server.pid

    async def abandoned() -> None:
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("sin", {}, timeout=0.3)

    async with anyio.create_task_group() as group:
        for _ in range(1200):
            group.start_soon(abandoned)
    with caplog.at_level(logging.WARNING, "mcpclient"):
        sent = int((await server.invoke_tool("flood", {"unknown": 100})).text)
    status = server.status()
    # Limits.retired is 1000; of the older ones nothing is known but that they were ours once,
    # so they are no noise.
    assert status.late == 1000
    assert status.stray == sent - 1000 >= 100
    assert status.noise == 100
    assert len(caplog.records) == 10
    assert "an answer to id 1000000, which was never asked" in caplog.records[0].getMessage()
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert server.pid == pid


@case("B46")
async def test_an_error_with_id_null_is_told_in_the_time_out_of_the_call_that_waits(
    manager: Manager,
) -> None:
    server = await manager.add("null", spec("null_id_error"))
    await server.start()
    pid = server.pid
    begun = time.monotonic()
    with pytest.raises(CallTimedOut) as caught:
        await server.invoke_tool("sin", {}, timeout=1.5)
    assert time.monotonic() - begun >= 1.49
    assert "the tool failed" in str(caught.value)
    assert "an error that names no request of ours" in str(caught.value)
    assert server.status().noise == 1
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert server.pid == pid


@case("B46")
async def test_an_error_with_id_null_fails_no_call_that_it_does_not_name(manager: Manager) -> None:
    code = """
import _wire
for message in _wire.messages():
    if _wire.called(message) == "sin":
        _wire.send(_wire.error(None, -32700, "could not read that"))
    _wire.reply(message)
"""
    server = await manager.add("null", inline(code))
    assert (await server.invoke_tool("sin", {})).text == "sin"
    assert server.status().noise == 1


@case("B47")
async def test_our_ids_are_small_enough_for_32_bits(manager: Manager) -> None:
    server = await manager.add("small", spec("id_truncated"))
    for number in range(50):
        assert (await server.invoke_tool("echo", {"text": f"{number}"})).text == f"{number}"
    status = server.status()
    assert (status.stray, status.noise) == (0, 0)


@case("B49")
async def test_a_call_is_filed_before_the_fastest_answer_can_come(manager: Manager) -> None:
    fast = Timeouts(call=5.0, eof=1.0, term=0.5)
    server = await manager.add("fast", spec("answer_at_once", timeouts=fast))
    await server.start()
    texts: list[str] = []

    async def call() -> None:
        texts.append((await server.invoke_tool("echo", {"text": "x"})).text)

    for _ in range(200):
        await call()
    for _ in range(3):
        async with anyio.create_task_group() as group:
            for _ in range(100):
                group.start_soon(call)
    assert texts == ["at once"] * 500
    status = server.status()
    assert (status.stray, status.late, status.noise) == (0, 0, 0)
