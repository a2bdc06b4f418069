"""Notifications, log levels and subscriptions, the same in every version."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpclient import LocalProtocolError
from tests.behaviour.bench import Bench
from tests.conftest import eventually

MESSAGE = "notifications/message"
UPDATED = "notifications/resources/updated"


async def test_notifications_are_told_in_order_to_every_handler(bench: Bench) -> None:
    server = await bench.open()
    told: list[Any] = []
    slow: list[Any] = []

    async def slowly(server: Any, params: Any) -> None:
        await anyio.lowlevel.checkpoint()
        slow.append(params["data"])

    bench.manager.on_notification(MESSAGE, lambda server, params: told.append(params["data"]))
    bench.manager.on_notification(MESSAGE, slowly)
    await server.set_log_level("debug")
    assert (await server.invoke_tool("log", {"level": "info", "n": 50})).text == "50"
    await eventually(lambda: len(slow) == 50)
    assert told == slow == list(range(50))


async def test_a_handler_that_was_removed_is_told_no_more(bench: Bench) -> None:
    server = await bench.open(dispatch="manual")
    told: list[Any] = []
    token = bench.manager.on_notification(MESSAGE, lambda server, params: told.append(params))
    await server.set_log_level("debug")
    await server.invoke_tool("log", {"level": "info", "n": 2})
    assert told == []  # nothing is delivered before the host takes it
    assert bench.manager.tick(max_items=1).left == 1
    assert told == [{"level": "info", "data": 0}]
    bench.manager.off_notification(token)
    assert bench.manager.tick().left == 0
    await server.invoke_tool("log", {"level": "info", "n": 2})
    bench.manager.tick()
    assert len(told) == 1


async def test_a_log_level_holds_from_then_on(bench: Bench) -> None:
    server = await bench.open()
    told: list[str] = []
    bench.manager.on_notification(MESSAGE, lambda server, params: told.append(params["level"]))
    # Without a level: what the server likes, or silence.
    assert (await server.invoke_tool("log", {"level": "debug"})).text == "0"
    assert (await server.invoke_tool("log", {"level": "error"})).text == (
        "0" if bench.stateless else "1"
    )
    await server.set_log_level("warning")
    assert (await server.invoke_tool("log", {"level": "notice"})).text == "0"
    assert (await server.invoke_tool("log", {"level": "warning"})).text == "1"
    await server.set_log_level("debug")
    assert (await server.invoke_tool("log", {"level": "debug"})).text == "1"
    with pytest.raises(LocalProtocolError, match="a level is one of debug, info"):
        await server.set_log_level("loud")
    key = "io.modelcontextprotocol/logLevel"
    if bench.stateless:
        levels = [m["params"]["_meta"].get(key) for m in bench.life.of("tools/call")]
        assert levels == [None, None, "warning", "warning", "debug"]
    else:
        levels = [m["params"]["level"] for m in bench.life.of("logging/setLevel")]
        assert levels == ["warning", "debug"]
        assert not any(key.encode() in frame for frame in bench.life.sent[1:])
    await eventually(lambda: told[-2:] == ["warning", "debug"])


async def test_a_subscription_is_agreed_used_and_given_back(bench: Bench) -> None:
    server = await bench.open()
    handled: list[Any] = []
    bench.manager.on_notification(UPDATED, lambda server, params: handled.append(params["uri"]))
    async with server.subscribe("test://a") as one:
        async with server.subscribe("test://b") as two, server.subscribe("test://a") as again:
            await server.invoke_tool("touch", {"uri": "test://b"})
            await server.invoke_tool("touch", {"uri": "test://a"})
            assert (await anext(two))["uri"] == "test://b"
            assert (await anext(one))["uri"] == "test://a"
            assert (await anext(again))["uri"] == "test://a"
        # One of those who follow it left; the other still does.
        await eventually(lambda: given_back(bench) == 1)
        assert (await server.invoke_tool("touch", {"uri": "test://b"})).text == "0"
        assert (await server.invoke_tool("touch", {"uri": "test://a"})).text == "1"
        assert (await anext(one))["uri"] == "test://a"
    await eventually(lambda: given_back(bench) == 2)
    assert (await server.invoke_tool("touch", {"uri": "test://a"})).text == "0"
    await eventually(lambda: handled == ["test://b", "test://a", "test://a"])
    if bench.stateless:
        wanted = [one["params"]["notifications"] for one in bench.life.of("subscriptions/listen")]
        both = {"resourceSubscriptions": ["test://a", "test://b"]}
        assert wanted == [{"resourceSubscriptions": ["test://a"]}, both, wanted[0]]
        assert bench.life.agreed() == 3
        # The new one first, then the old one is ended.
        assert [m for m in bench.life.methods if m != "tools/call"][1:] == [
            "subscriptions/listen",
            "subscriptions/listen",
            "notifications/cancelled",
            "subscriptions/listen",
            "notifications/cancelled",
            "notifications/cancelled",
        ]


def given_back(bench: Bench) -> int:
    """Return how many times the client wanted less than before, and the server was told so."""
    if not bench.stateless:
        return len(bench.life.of("resources/unsubscribe"))
    # Of three streams the first gave way to one that wants more.
    return max(0, len(bench.life.of("notifications/cancelled")) - 1)


@pytest.mark.parametrize("version", ["2026-07-28"])
async def test_a_stream_that_the_server_ends_is_asked_for_again(version: str, bench: Bench) -> None:
    server = await bench.open()
    async with server.subscribe("test://a") as updates:
        await server.invoke_tool("close")  # by a cancellation and a result, which end it once
        await eventually(lambda: bench.life.agreed() == 2)
        first, second = bench.life.of("subscriptions/listen")
        assert first["id"] != second["id"]
        assert first["params"]["notifications"] == second["params"]["notifications"]
        await server.invoke_tool("touch", {"uri": "test://a"})
        assert (await anext(updates))["uri"] == "test://a"
    assert server.status().noise == 0
    assert server.status().stray == 0
