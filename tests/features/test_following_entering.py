"""Entering a subscription: agreed to, refused, timed out, cancelled, and used as it must not be."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpclient import CallTimedOut, LocalProtocolError, Manager, ReplyError
from tests.conftest import eventually
from tests.features.followers import (
    UPDATED,
    A,
    B,
    Followers,
    agreeing,
    heard,
    journal_length,
    until,
)
from tests.features.helpers import hold, journal, refusal, release, result, say

# -- entering ------------------------------------------------------------------------------


async def test_a_server_that_offers_no_subscription_is_not_asked(manager: Manager) -> None:
    for number, declared in enumerate(({"resources": {}}, {"resources": None}, {})):
        server = await manager.add(f"s{number}", agreeing(capabilities=declared))
        with pytest.raises(LocalProtocolError, match="offers no subscription to this; read it"):
            async with server.subscribe(A):
                pytest.fail("it was not offered")
        assert await journal(server, "resources/subscribe") == []
        assert await journal(server, "resources/unsubscribe") == []


async def test_each_attempt_asks_anew_and_a_refusal_is_not_taken_back(manager: Manager) -> None:
    script = {"resources/subscribe": [refusal(-32602, "no such"), refusal(-32602), result()]}
    server = await manager.add("s", agreeing(script))
    for _ in range(2):
        with pytest.raises(ReplyError) as caught:
            async with server.subscribe(A):
                pytest.fail("it was refused")
        assert (caught.value.code, caught.value.method) == (-32602, "resources/subscribe")
    async with server.subscribe(A) as updates:
        await say(server, UPDATED, {"uri": A})
        assert (await heard(updates))["uri"] == A
        assert await journal(server, "resources/unsubscribe") == []
    await until(lambda: journal_length(server, "resources/unsubscribe"), 1)
    assert len(await journal(server, "resources/subscribe")) == 3


async def test_who_enters_while_another_is_being_refused_is_refused_as_well(
    manager: Manager,
) -> None:
    server = await manager.add("s", agreeing())
    await hold(server, "resources/subscribe")
    async with anyio.create_task_group() as group:
        followers = Followers(group, server)
        followers.begin(A)
        await until(lambda: journal_length(server, "resources/subscribe"), 1)
        followers.begin(A)
        await anyio.wait_all_tasks_blocked()
        await release(server, "resources/subscribe", **refusal(-32602))
        await eventually(lambda: len(followers.ended) == 2)
    assert [type(one) for one in followers.ended.values()] == [ReplyError, ReplyError]
    assert followers.inside == {}


async def test_one_refusal_costs_the_others_nothing(manager: Manager) -> None:
    script = {"resources/subscribe": [refusal(-32602), result()]}
    server = await manager.add("s", agreeing(script))
    async with anyio.create_task_group() as group:
        followers = Followers(group, server)
        refused, fine = followers.begin(A), followers.begin(B)
        await eventually(lambda: refused in followers.ended and fine in followers.inside)
        assert isinstance(followers.ended[refused], ReplyError)
        await say(server, UPDATED, {"uri": B})
        await eventually(lambda: followers.heard[fine] == [B])
        # What was never agreed to is not taken back.
        await followers.leave(fine)
        await until(lambda: journal_length(server, "resources/unsubscribe"), 1)
    [taken] = await journal(server, "resources/unsubscribe")
    assert taken["params"] == {"uri": B}


async def test_a_server_that_does_not_answer_in_time_is_left(manager: Manager) -> None:
    server = await manager.add("s", agreeing())
    await hold(server, "resources/subscribe")
    with pytest.raises(CallTimedOut, match="did not agree to the subscription in time"):
        async with server.subscribe(A, timeout=0.05):
            pytest.fail("it was not agreed to")
    # What comes of it in the end is taken back.
    await release(server, "resources/subscribe", result={})
    await until(lambda: journal_length(server, "resources/unsubscribe"), 1)


async def test_who_is_cancelled_while_he_enters_is_not_subscribed(manager: Manager) -> None:
    server = await manager.add("s", agreeing())
    await hold(server, "resources/subscribe")
    async with anyio.create_task_group() as group:
        followers = Followers(group, server)
        number = followers.begin(A)
        await until(lambda: journal_length(server, "resources/subscribe"), 1)
        await followers.leave(number)
        await release(server, "resources/subscribe", result={})
        await until(lambda: journal_length(server, "resources/unsubscribe"), 1)
    assert followers.ended == {number: "cancelled"}


async def test_a_refused_leave_is_nobodys_concern(manager: Manager) -> None:
    script = {"resources/unsubscribe": [refusal(-32603)]}
    server = await manager.add("s", agreeing(script))
    for count in (1, 2):
        async with server.subscribe(A):
            pass
        await until(lambda c=count: journal_length(server, "resources/unsubscribe"), count)
    async with server.subscribe(A):
        pass


@pytest.mark.parametrize("uri", [None, 5, b"test://a", ["test://a"]], ids=repr)
async def test_a_uri_that_is_no_text_is_refused_at_once(manager: Manager, uri: Any) -> None:
    server = await manager.add("s", agreeing())
    with pytest.raises(LocalProtocolError, match="a URI is text, not "):
        server.subscribe(uri)
    assert server.state == "idle"


async def test_a_uri_of_any_text_is_sent_as_it_is(manager: Manager) -> None:
    server = await manager.add("s", agreeing())
    for uri in ("", "no uri", "ü\u2028\x00", "x" * 100_000):
        async with server.subscribe(uri) as updates:
            await say(server, UPDATED, {"uri": uri})
            assert (await heard(updates))["uri"] == uri


async def test_a_subscription_is_used_within_its_context_and_once(manager: Manager) -> None:
    server = await manager.add("s", agreeing())
    updates = server.subscribe(A)
    with pytest.raises(LocalProtocolError, match="use a subscription with `async with`"):
        await heard(updates)
    async with updates as same:
        assert same is updates
        with pytest.raises(LocalProtocolError, match="entered once"):
            async with updates:
                pytest.fail("it was entered already")
        await say(server, UPDATED, {"uri": A})
        assert (await heard(updates))["uri"] == A
    assert [one async for one in updates] == []
    with pytest.raises(LocalProtocolError, match="a subscription is entered once; make another"):
        async with updates:
            pytest.fail("it was entered already")
