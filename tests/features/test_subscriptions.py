"""Streams of notices in the stateless era, and servers that end, refuse, or never begin them."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallTimedOut,
    LocalProtocolError,
    Manager,
    RemoteProtocolError,
    ReplyError,
    Timeouts,
)
from tests.conftest import eventually
from tests.features.helpers import journal, refusal, release, result, say
from tests.features.streams import AGREED, KEY, LISTEN, TOOLS_CHANGED, A, B, add, heard

# -- what is an agreement ------------------------------------------------------------------


async def test_only_an_agreement_with_the_very_id_begins_a_subscription(manager: Manager) -> None:
    streams = await add(manager)
    await streams.begin()
    async with anyio.create_task_group() as group:
        await streams.follow(group, A, 1)
        [one] = await streams.asked(1)
        told = {"resourceSubscriptions": [A]}
        for id in (str(one["id"]), one["id"] + 1, one["id"] + 0.5, True, None, [one["id"]]):
            await say(streams.server, AGREED, {"_meta": {KEY: id}, "notifications": told})
        for odd in ({"notifications": told}, {"_meta": 5}, [1], "x"):
            await say(streams.server, AGREED, odd)
        assert streams.entered == {}
        await streams.agree(1, A)
        await eventually(lambda: streams.entered)
        group.cancel_scope.cancel()


@pytest.mark.parametrize(
    "told",
    [{}, {"notifications": None}, {"notifications": [A]}]
    + [
        {"notifications": {"resourceSubscriptions": odd}} for odd in (None, 5, "x", {A: 1}, [5], [])
    ],
    ids=str,
)
async def test_an_agreement_to_nothing_is_none(manager: Manager, told: Any) -> None:
    streams = await add(manager)
    await streams.begin()
    async with anyio.create_task_group() as group:
        await streams.follow(group, A, 1)
        [one] = await streams.asked(1)
        await say(streams.server, AGREED, {"_meta": {KEY: one["id"]}, **told})
        await eventually(lambda: streams.entered)
    assert isinstance(streams.entered[A], LocalProtocolError)
    assert str(streams.entered[A]) == (
        'the server "s" offers no subscription to this; read it again when needed'
    )


async def test_what_is_left_out_of_an_agreement_is_refused_and_the_rest_goes_on(
    manager: Manager,
) -> None:
    streams = await add(manager)
    await streams.begin()
    async with anyio.create_task_group() as group:
        await streams.follow(group, A, 1)
        first = await streams.agree(1, A)
        await streams.follow(group, B, 2)
        assert (await streams.asked(2))[-1]["resourceSubscriptions"] == [A, B]
        second = await streams.agree(2, A)
        await eventually(lambda: B in streams.entered)
        assert isinstance(streams.entered[B], LocalProtocolError)
        # The one who was refused has left, so less is wanted.
        assert (await streams.asked(3))[-1]["resourceSubscriptions"] == [A]
        third = await streams.agree(3, A)
        await streams.update(A, third)
        assert (await heard(streams.entered[A]))["uri"] == A
        assert await streams.cancels() == [first, second]
        group.cancel_scope.cancel()


async def test_a_stream_that_is_never_agreed_to_is_given_up_and_asked_for_again(
    manager: Manager,
) -> None:
    streams = await add(manager, timeouts=Timeouts(eof=1, term=0.5, call=1.2))
    server = streams.server
    await server.start(timeout=30)
    await streams.begin()
    async with anyio.create_task_group() as group:
        await streams.follow(group, A, 2, timeout=3.0)
        await eventually(lambda: streams.entered)
    problem = streams.entered[A]
    assert isinstance(problem, CallTimedOut)
    assert (problem.method, problem.server) == (LISTEN, "s")
    assert str(problem).startswith(
        'subscriptions/listen on "s": the server did not agree to the subscription in time'
    )
    asked = [one["id"] for one in await journal(server, LISTEN)]
    assert 2 <= len(asked) <= 3
    await streams.given_up(asked)
    late = {"_meta": {KEY: asked[0]}, "notifications": {"resourceSubscriptions": [A]}}
    await say(server, AGREED, late)  # means nothing any more
    assert server.status().noise == 0


# -- refusals ------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [-32601, -32602, -32603])
async def test_a_refusal_is_raised_each_time_and_leaves_nothing_behind(
    manager: Manager, code: int
) -> None:
    streams = await add(manager, {LISTEN: [refusal(code, "no streams")]})
    for count in (1, 2, 3):  # each time the server is asked
        with pytest.raises(ReplyError) as caught:
            async with streams.server.subscribe(A):
                pytest.fail("it was refused")
        assert (caught.value.code, caught.value.method) == (code, LISTEN)
        assert len(await streams.asked(count)) == count
    assert await streams.cancels() == []


@pytest.mark.parametrize(
    "answer", [{"result": []}, result(resultType="alien"), result(resultType=5)]
)
async def test_an_odd_answer_in_place_of_an_agreement_is_a_refusal(
    manager: Manager, answer: Any
) -> None:
    streams = await add(manager, {LISTEN: [answer]})
    with pytest.raises(RemoteProtocolError):
        async with streams.server.subscribe(A):
            pytest.fail("it was refused")


async def test_two_who_enter_at_once_are_both_refused(manager: Manager) -> None:
    streams = await add(manager)
    await streams.begin()
    async with anyio.create_task_group() as group:
        await streams.follow(group, A, 1)
        await streams.follow(group, A, 0)
        await streams.follow(group, B, 0)
        await release(streams.server, LISTEN, **refusal(-32000))
        await eventually(lambda: len(streams.entered) == 2)
    assert {type(one) for one in streams.entered.values()} == {ReplyError}


async def test_a_refusal_of_more_leaves_what_was_agreed_to_as_it_is(manager: Manager) -> None:
    streams = await add(manager)
    await streams.begin()
    async with anyio.create_task_group() as group:
        await streams.follow(group, A, 1)
        first = await streams.agree(1, A)
        await streams.begin()  # the one that is agreed to is not held any more
        await streams.follow(group, B, 2)
        await release(streams.server, LISTEN, **refusal(-32602, "no such resource"))
        await streams.begin()
        await eventually(lambda: B in streams.entered)
        assert isinstance(streams.entered[B], ReplyError)
        await streams.update(A, first)
        assert (await heard(streams.entered[A]))["uri"] == A
        assert first not in await streams.cancels()
        # Without the one who was refused it is what it was.
        third = await streams.agree(3, A)
        await streams.update(A, third)
        assert (await heard(streams.entered[A]))["uri"] == A
        assert await streams.cancels() == [first]
        group.cancel_scope.cancel()


# -- lists ---------------------------------------------------------------------------------


async def test_lists_are_listened_to_while_somebody_handles_their_changes(manager: Manager) -> None:
    streams = await add(manager)
    server = streams.server
    await streams.begin()
    assert await journal(server, LISTEN) == []
    tokens = [manager.on_notification(TOOLS_CHANGED, lambda *facts: None) for _ in range(2)]
    # Not declared, so not asked for.
    manager.on_notification("notifications/prompts/list_changed", lambda *facts: None)
    [one] = await streams.asked(1)
    assert one == {"id": one["id"], "toolsListChanged": True}
    await streams.agree(1, toolsListChanged=True)
    async with anyio.create_task_group() as group:
        await streams.follow(group, A, 2)
        both = (await streams.asked(2))[-1]
        assert both == {**both, "toolsListChanged": True, "resourceSubscriptions": [A]}
        await streams.agree(2, A, toolsListChanged=True)
        await eventually(lambda: A in streams.entered)
        for token in tokens:
            manager.off_notification(token)
        third = (await streams.asked(3))[-1]
        assert third == {"id": third["id"], "resourceSubscriptions": [A]}
        await streams.agree(3, A)
        group.cancel_scope.cancel()
    # With the last one gone there is no stream any more.
    ids = [one["id"] for one in await streams.asked(3)]
    await streams.given_up(ids)
    assert server.status().in_flight == 0


async def test_a_list_that_the_server_does_not_agree_to_tell_of_costs_nothing(
    manager: Manager,
) -> None:
    streams = await add(manager)
    manager.on_notification(TOOLS_CHANGED, lambda *facts: None)
    await streams.begin()
    await streams.agree(1)
    assert len(await streams.asked(1)) == 1
    assert streams.server.status().in_flight == 0
    assert json.loads((await streams.server.call_tool("journal")).text)


@pytest.mark.parametrize("code", [-32601, -32603])
async def test_a_server_without_streams_serves_all_the_same(manager: Manager, code: int) -> None:
    streams = await add(manager, {LISTEN: [refusal(code)]})
    manager.on_notification(TOOLS_CHANGED, lambda *facts: None)
    await streams.server.start()
    await streams.asked(1)
    await streams.server.list_tools()
    assert len(await streams.asked(1)) == 1  # and it is not asked again and again
