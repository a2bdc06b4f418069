"""Calls over a memory pair: each gets its own answer, or an error that says what to do."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    CallLost,
    InputRefused,
    Limits,
    LocalProtocolError,
    RemoteProtocolError,
    ReplyError,
    ServerDied,
    UseAfterClose,
)
from mcpclient.ground.exits import Exit
from tests.conftest import eventually
from tests.connection.peer import Outcomes, conversation, unopened, value

# -- answers -------------------------------------------------------------------------------


async def test_concurrent_calls_answered_out_of_order_get_their_own_answers() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        outcomes = Outcomes()
        for number in range(50):
            request = connection.request("tools/call", {"name": "echo", "n": number}, 10)
            group.start_soon(outcomes.keep, number, request)
        requests = await peer.get("tools/call", 50)
        assert len({request["id"] for request in requests}) == 50
        for request in reversed(requests):
            peer.answer(request, n=request["params"]["n"])
        await eventually(lambda: len(outcomes.of) == 50)
        assert outcomes.of == {number: {"n": number} for number in range(50)}


async def test_a_call_is_filed_before_the_peer_can_see_it() -> None:
    async with conversation() as (connection, peer, _):
        seen: list[int] = []
        transport = connection.transport
        send = transport.send

        def answer_at_once(item: Any) -> None:
            seen.append(len(connection.inflight))
            send(item)
            peer.answer(json.loads(item.frame), at="once")

        transport.send = transport.send_soon = answer_at_once  # type: ignore[method-assign]
        assert value(await connection.request("tools/list", None, 5)) == {"at": "once"}
        assert seen == [1]


async def test_params_are_sent_as_they_are_and_none_leaves_them_out() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        for params in (None, {}, {"name": "ü", "arguments": {}}):
            group.start_soon(Outcomes().keep, "x", connection.request("m/x", params, 5))
        requests = await peer.get("m/x", 3)
        shapes = [{k: v for k, v in r.items() if k != "id"} for r in requests]
        base = {"jsonrpc": "2.0", "method": "m/x"}
        assert sorted(shapes, key=lambda shape: len(str(shape))) == [
            base,
            {**base, "params": {}},
            {**base, "params": {"name": "ü", "arguments": {}}},
        ]
        for request in requests:
            peer.answer(request)


async def test_params_that_are_no_json_are_refused_and_nothing_is_sent() -> None:
    async with conversation() as (connection, peer, _):
        before = connection.inflight.filed
        with pytest.raises(LocalProtocolError, match="cannot be written as JSON"):
            await connection.request("tools/call", {"x": object()}, 5)
        await peer.quiet()
        assert peer.received == []
        assert connection.inflight.filed == before


async def test_the_server_s_refusal_is_raised_with_all_it_said() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        outcomes = Outcomes()
        group.start_soon(outcomes.keep, "call", connection.request("prompts/get", {"name": "a"}, 5))
        (request,) = await peer.get("prompts/get")
        peer.refuse(request, -32602, "no such prompt", data={"name": "x"})
        problem = await eventually(lambda: outcomes.of.get("call"))
        assert type(problem) is ReplyError
        assert (problem.code, problem.message, problem.data, problem.method, problem.server) == (
            -32602,
            "no such prompt",
            {"name": "x"},
            "prompts/get",
            "peer",
        )
        assert str(problem) == '[-32602] no such prompt (prompts/get on "peer")'


async def test_an_answer_without_result_or_error_is_the_server_s_fault() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        outcomes = Outcomes()
        group.start_soon(outcomes.keep, "call", connection.request("tools/list", None, 5))
        (request,) = await peer.get("tools/list")
        peer.write(b"a log line\n")
        peer.say(id=request["id"])
        problem = await eventually(lambda: outcomes.of.get("call"))
        assert type(problem) is RemoteProtocolError
        assert str(problem) == (
            'tools/list on "peer": the answer has neither a result nor an error '
            "(not a message of the protocol: 'a log line')"
        )


async def test_a_stateless_server_that_wants_another_round_is_refused() -> None:
    async with conversation("stateless") as (connection, peer, _):
        async with anyio.create_task_group() as group:
            outcomes = Outcomes()
            group.start_soon(
                outcomes.keep, "asks", connection.request("tools/call", {"name": "a"}, 5)
            )
            group.start_soon(outcomes.keep, "odd", connection.request("tools/list", {}, 5))
            (request,) = await peer.get("tools/call")
            ask = {"a": {"method": "elicitation/create", "params": {}}}
            peer.answer(request, resultType="input_required", inputRequests=ask)
            (request,) = await peer.get("tools/list")
            peer.answer(request, resultType="input_required")
        refused = outcomes.of["asks"]
        assert type(refused) is InputRefused
        assert (refused.method, refused.asks) == ("tools/call", ("elicitation/create",))
        assert type(outcomes.of["odd"]) is RemoteProtocolError
        assert "'input_required'" in str(outcomes.of["odd"])


# -- notifications -------------------------------------------------------------------------


async def test_notifications_go_to_the_owner_in_order() -> None:
    async with conversation() as (_, peer, ears):
        peer.say(method="notifications/a", params={"n": 1})
        peer.say(method="notifications/b")
        peer.say(method="notifications/a", params={"n": 2})
        await eventually(lambda: len(ears.notices) == 3)
        assert ears.notices == [
            ("notifications/a", {"n": 1}),
            ("notifications/b", None),
            ("notifications/a", {"n": 2}),
        ]


async def test_a_notification_of_ours_is_sent_and_not_answered() -> None:
    async with conversation() as (connection, peer, _):
        connection.notify("notifications/x", {"a": 1})
        connection.notify("notifications/y", None)
        await eventually(lambda: len(peer.received) == 2)
        assert peer.received == [
            {"jsonrpc": "2.0", "method": "notifications/x", "params": {"a": 1}},
            {"jsonrpc": "2.0", "method": "notifications/y"},
        ]
        assert len(connection.inflight) == 0


# -- the end -------------------------------------------------------------------------------


async def test_calls_in_flight_when_the_server_dies_are_told_how() -> None:
    async with conversation() as (connection, peer, _):
        told: list[str] = []
        connection.on_over = lambda: told.append(f"{len(connection.inflight)} in flight")
        async with anyio.create_task_group() as group:
            outcomes = Outcomes()
            for name in ("one", "two"):
                group.start_soon(outcomes.keep, name, connection.request(name, None, 5))
            await peer.get("two")
            await peer.get("one")
            peer.die(Exit(code=7))
        for name in ("one", "two"):
            problem = outcomes.of[name]
            assert type(problem) is ServerDied
            assert (problem.exit, problem.maybe_done) == (Exit(code=7), True)
            assert (problem.method, problem.server) == (name, "peer")
            assert "the server died (exit code 7)" in str(problem)
        assert told == ["2 in flight"], "the owner is told before any caller is"
        assert connection.over
        assert connection.exit == Exit(code=7)
        assert connection.ended.is_set()


async def test_an_answer_written_before_the_death_counts() -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        outcomes = Outcomes()
        group.start_soon(outcomes.keep, "call", connection.request("tools/list", None, 5))
        (request,) = await peer.get("tools/list")
        peer.answer(request, last="words")
        peer.die()
        await eventually(lambda: outcomes.of)
        assert outcomes.of == {"call": {"last": "words"}}


async def test_calls_in_flight_when_we_close_are_cancelled() -> None:
    outcomes = Outcomes()
    async with anyio.create_task_group() as group, conversation() as (connection, peer, _):
        group.start_soon(outcomes.keep, "call", connection.request("tools/list", None, 5))
        await peer.get("tools/list")
    problem = outcomes.of["call"]
    assert type(problem) is CallCancelled
    assert problem.maybe_done
    assert str(problem) == (
        'tools/list on "peer": the server was stopped; the server may have carried it out'
    )
    assert peer.cancels == []


@pytest.mark.parametrize("way", ["request", "notify"])
async def test_a_closed_connection_takes_no_more(way: str) -> None:
    async with conversation() as (connection, peer, _):
        peer.die()
        with pytest.raises(UseAfterClose) as caught:
            if way == "request":
                await connection.request("tools/list", None, 5)
            else:
                connection.notify("notifications/x", None)
        assert str(caught.value) == 'the connection to "peer" is closed'


async def test_before_the_opening_no_call_can_be_made() -> None:
    connection, peer, _ = unopened()
    with pytest.raises(LocalProtocolError, match="'tools/list' cannot be sent in state 'fresh'"):
        await connection.request("tools/list", None, 5)
    await peer.quiet()
    assert peer.received == []
    await connection.close()


async def test_a_full_outbox_refuses_calls_that_were_never_sent() -> None:
    async with conversation(limits=Limits(outbox=100)) as (connection, peer, _):
        connection.transport.waiting = 101  # type: ignore[misc]
        with pytest.raises(CallLost) as caught:
            await connection.request("tools/list", None, 5)
        problem = caught.value
        assert type(problem) is CallLost
        assert (problem.method, problem.server, problem.maybe_done) == ("tools/list", "peer", False)
        assert "101 B wait for the server to read its input (Limits.outbox)" in str(problem)
        connection.transport.waiting = 100  # type: ignore[misc]
        connection.begin("tools/list", None, 5)
        await peer.get("tools/list")
