"""Pings tell a hung server from one that is busy, rude, or of an era that has none."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import pytest

from mcpclient.connection.connection import Connection
from mcpclient.connection.pulse import Pulse
from mcpclient.ground.exits import Exit
from tests.conftest import eventually
from tests.connection.peer import Peer, conversation

INTERVAL = 0.02


@asynccontextmanager
async def pulse(era: str = "handshake", misses: int = 2) -> AsyncIterator[tuple[Connection, Peer]]:
    async with conversation(era) as (connection, peer, _):
        beating = Pulse(connection, INTERVAL, misses)
        beating.start()
        try:
            yield connection, peer
        finally:
            beating.stop()


async def test_an_idle_server_is_pinged_again_and_again() -> None:
    async with pulse() as (connection, peer):
        peer.respond = peer.answer
        await peer.get("ping", 4)
        assert not connection.over
        assert connection.calls == 0, "no user made them"
        assert connection.inflight.filed >= 4


async def test_the_next_ping_waits_for_the_answer_to_the_last() -> None:
    async with pulse(misses=1000) as (connection, peer):
        await peer.get("ping")
        assert len(connection.inflight) == 1
        peer.answer(peer.of("ping")[0])
        await peer.get("ping", 2)


async def test_a_server_that_is_silent_so_many_times_is_ended() -> None:
    async with pulse(misses=3) as (connection, peer):
        await eventually(lambda: connection.over)
        assert len(peer.of("ping")) == 3
        assert connection.exit == Exit(signal=9)
        assert connection.reason == "it answered no ping for 60 ms"


@pytest.mark.parametrize("code", [-32601, -32600, -32000])
async def test_a_server_that_refuses_pings_is_alive(code: int) -> None:
    async with pulse(misses=1) as (connection, peer):
        peer.respond = lambda request: peer.refuse(request, code, "no")
        await peer.get("ping", 3)
        assert not connection.over


async def test_one_answer_forgives_the_silence_before_it() -> None:
    async with pulse(misses=2) as (connection, peer):
        silent = iter([True, False] * 100)  # each second one is answered
        peer.respond = lambda request: None if next(silent) else peer.answer(request)
        await peer.get("ping", 7)
        assert not connection.over


async def test_a_server_that_is_busy_with_a_call_is_not_asked() -> None:
    async with pulse(misses=1) as (connection, peer):
        outcomes: list[object] = []
        connection.begin("tools/call", {"name": "a"}, 60, watch=outcomes.append)
        await anyio.sleep(10 * INTERVAL)
        assert peer.of("ping") == []
        assert not connection.over
        peer.respond = peer.answer
        peer.answer(peer.of("tools/call")[0])
        await peer.get("ping")
        assert len(outcomes) == 1
        assert not connection.over


async def test_a_stateless_server_is_never_pinged() -> None:
    async with pulse("stateless", misses=1) as (connection, peer):
        await anyio.sleep(5 * INTERVAL)
        assert peer.received == []
        assert not connection.over


async def test_a_pulse_that_was_stopped_asks_no_more() -> None:
    async with conversation() as (connection, peer, _):
        beating = Pulse(connection, INTERVAL, 1)
        peer.respond = peer.answer
        beating.stop()
        beating.start()
        await peer.get("ping")
        await peer.quiet()
        beating.stop()
        count = len(peer.of("ping"))
        await anyio.sleep(3 * INTERVAL)
        assert len(peer.of("ping")) == count
        assert not connection.over


async def test_a_pulse_ends_with_its_connection() -> None:
    async with pulse(misses=5) as (connection, peer):
        await peer.get("ping")
        peer.die()
        assert connection.over
        await anyio.sleep(3 * INTERVAL)
        assert len(peer.of("ping")) == 1
