"""What the server asks of us: answered or refused where its era allows it, else only counted."""

from __future__ import annotations

import json
import logging
from typing import Any

import anyio
import pytest

from mcpclient.protocol.eras import Terms
from tests.conftest import eventually
from tests.connection.peer import conversation, unopened


def replies(received: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [message for message in received if "method" not in message]


@pytest.mark.parametrize("id", [0, 1, 17, "seven", "1", -3], ids=repr)
async def test_a_ping_is_answered_with_its_id_as_it_came(id: Any) -> None:
    async with conversation() as (connection, peer, ears):
        peer.say(id=id, method="ping")
        await eventually(lambda: peer.received)
        assert peer.received == [{"jsonrpc": "2.0", "id": id, "result": {}}]
        assert type(peer.received[0]["id"]) is type(id)
        assert connection.counts.asks == 1
        assert connection.counts.ignored == 0
        assert ears.asks == [], "the owner is not asked for what needs nobody"


async def test_a_ping_is_answered_while_calls_are_under_way() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        group.start_soon(connection.request, "slow", None, 30)
        (slow,) = await peer.get("slow")
        for number in range(5):
            peer.say(id=f"p{number}", method="ping")
        await eventually(lambda: len(replies(peer.received)) == 5)
        assert [reply["id"] for reply in replies(peer.received)] == [f"p{n}" for n in range(5)]
        peer.answer(slow)


@pytest.mark.parametrize("method", ["roots/list", "sampling/createMessage", "elicit\x1b[2Jation/x"])
async def test_what_nobody_answers_is_refused(method: str) -> None:
    async with conversation() as (connection, peer, ears):
        peer.say(id="q", method=method, params={"a": 1})
        await eventually(lambda: peer.received)
        (reply,) = peer.received
        assert reply["id"] == "q"
        assert reply["error"]["code"] == -32601
        assert reply["error"]["message"].endswith(" is not supported by this client")
        assert "\x1b" not in reply["error"]["message"]
        assert [ask.method for ask in ears.asks] == [method]
        assert connection.counts.asks == 1


async def test_what_the_owner_answers_is_left_to_it() -> None:
    async with conversation() as (connection, peer, ears):
        ears.answers_asks = True
        peer.say(id=5, method="roots/list")
        await eventually(lambda: ears.asks)
        await peer.quiet()
        assert peer.received == []
        connection.send(connection.session.answer(ears.asks[0], {"roots": []}))
        await eventually(lambda: peer.received)
        assert peer.received == [{"jsonrpc": "2.0", "id": 5, "result": {"roots": []}}]


@pytest.mark.parametrize("method", ["ping", "roots/list", "anything"])
async def test_a_stateless_server_that_asks_gets_nothing_but_is_counted(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with conversation("stateless") as (connection, peer, ears):
        peer.say(id=1, method=method)
        peer.say(id="2", method=method)
        await eventually(lambda: connection.counts.asks == 2)
        await peer.quiet()
        assert peer.received == []
        assert connection.counts.ignored == 2
        assert ears.asks == []
        told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        assert told == [f"peer#1 ! a request from the server, which this era forbids: {method}"] * 2


async def test_an_ask_with_the_id_of_a_call_does_not_answer_the_call() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        kept: list[Any] = []

        async def call() -> None:
            kept.append(
                json.loads(bytes(await connection.request("tools/call", {"name": "a"}, 30)))
            )

        group.start_soon(call)
        (request,) = await peer.get("tools/call")
        peer.say(id=request["id"], method="roots/list")
        await eventually(lambda: replies(peer.received))
        assert replies(peer.received)[0]["id"] == request["id"]
        assert kept == []
        peer.answer(request, x=1)
        await eventually(lambda: kept == [{"x": 1}])


async def test_an_ask_with_id_null_is_noise_and_not_answered() -> None:
    async with conversation() as (connection, peer, _):
        peer.say(id=None, method="ping")
        await eventually(lambda: connection.noise.count == 1)
        await peer.quiet()
        assert peer.received == []
        assert connection.counts.asks == 0


# -- what the server takes back ------------------------------------------------------------


async def test_a_cancellation_of_the_server_goes_to_the_owner() -> None:
    async with conversation() as (_, peer, ears):
        peer.say(method="notifications/cancelled", params={"requestId": "q", "reason": "x"})
        peer.say(method="notifications/cancelled", params={"requestId": 5})
        await eventually(lambda: len(ears.unasks) == 2)
        assert ears.unasks == ["q", 5]
        assert ears.notices == []


async def test_a_cancellation_that_is_malformed_or_means_a_call_of_ours_is_ignored() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        kept: list[Any] = []

        async def call() -> None:
            kept.append(
                json.loads(bytes(await connection.request("tools/call", {"name": "a"}, 30)))
            )

        group.start_soon(call)
        (request,) = await peer.get("tools/call")
        peer.say(method="notifications/cancelled", params={"requestId": request["id"]})
        peer.say(method="notifications/cancelled", params=[1])
        peer.say(method="notifications/cancelled", params="x")
        peer.say(method="notifications/cancelled")
        peer.answer(request, x=1)
        await eventually(lambda: kept)
        assert kept == [{"x": 1}]
        assert not connection.over


# -- before the era is known ---------------------------------------------------------------


async def test_asks_during_the_probe_wait_until_the_era_is_known() -> None:
    connection, peer, _ = unopened()
    connection.opening(*connection.session.probe("2026-07-28"), lambda outcome: None)
    peer.say(id=1, method="ping")
    peer.say(id=2, method="roots/list")
    await eventually(lambda: connection.counts.asks == 2)
    await peer.quiet()
    assert replies(peer.received) == [], "a stateless server must not be answered"
    connection.session.initialize("2025-11-25")
    connection.session.agree_handshake(Terms(version="2025-11-25"))
    connection.incoming.answer_held()
    connection.incoming.answer_held()
    await eventually(lambda: len(replies(peer.received)) == 2)
    first, second = replies(peer.received)
    assert first == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert (second["id"], second["error"]["code"]) == (2, -32601)
    assert connection.counts.ignored == 0
    await connection.close()


async def test_asks_during_the_probe_of_a_stateless_server_are_never_answered() -> None:
    connection, peer, _ = unopened()
    connection.opening(*connection.session.probe("2026-07-28"), lambda outcome: None)
    for number in range(40):
        peer.say(id=number, method="ping")
    await eventually(lambda: connection.counts.asks == 40)
    connection.session.agree_stateless(Terms(version="2026-07-28"))
    connection.incoming.answer_held()
    await peer.quiet()
    assert replies(peer.received) == []
    assert connection.counts.ignored == 16, "no more than so many are held"
    await connection.close()


async def test_a_ping_between_initialize_and_its_answer_is_answered_at_once() -> None:
    connection, peer, _ = unopened()
    connection.opening(*connection.session.initialize("2025-11-25"), lambda outcome: None)
    peer.say(id=9, method="ping")
    await eventually(lambda: replies(peer.received))
    assert replies(peer.received) == [{"jsonrpc": "2.0", "id": 9, "result": {}}]
    await connection.close()
