"""Following a resource, as a user does it: entering, updates, leaving, and every way it may end."""

from __future__ import annotations

import anyio
import pytest

from mcpclient import Limits, Manager, ReplyError, ServerDied, ServerUnavailable, UseAfterClose
from tests.conftest import eventually, spec
from tests.features.followers import (
    BOTH,
    UPDATED,
    A,
    B,
    Followers,
    agreeing,
    heard,
    journal_length,
    touch,
    until,
    wanted,
)
from tests.features.helpers import hold, journal, say

# -- updates -------------------------------------------------------------------------------


async def test_updates_of_what_is_followed_and_of_what_is_below_it_arrive(
    manager: Manager,
) -> None:
    server = await manager.add("s", agreeing())
    async with server.subscribe("test://dir") as updates, server.subscribe("other://b/") as other:
        for uri in ("test://dir2", "test://di", "test://", "TEST://dir", "other://b", "other://bc"):
            await say(server, UPDATED, {"uri": uri})
        uris = ["test://dir", "test://dir/", "test://dir/a", "test://dir/a/b"]
        for uri in (*uris, "other://b/c"):
            await say(server, UPDATED, {"uri": uri})
        assert [(await heard(updates))["uri"] for _ in uris] == uris
        assert (await heard(other))["uri"] == "other://b/c"
        with anyio.move_on_after(0.02):
            pytest.fail(f"heard {await heard(updates)}")


@BOTH
async def test_updates_that_say_the_same_and_are_not_taken_are_one(
    manager: Manager, name: str
) -> None:
    server = await manager.add("s", spec(name))
    async with server.subscribe(A) as updates:
        await touch(server, A, n=100)
        assert (await heard(updates))["uri"] == A
        with anyio.move_on_after(0.02):
            pytest.fail(f"heard {await heard(updates)}")
        await touch(server, A)
        assert (await heard(updates))["uri"] == A


async def test_what_nobody_takes_is_bounded_and_the_newest_is_kept(manager: Manager) -> None:
    server = await manager.add("s", agreeing(limits=Limits(inbox=3)))
    async with server.subscribe(A) as updates:
        for number in range(10):
            await say(server, UPDATED, {"uri": f"{A}/{number}"})
        assert [(await heard(updates))["uri"] for _ in range(3)] == [f"{A}/{n}" for n in (7, 8, 9)]


@BOTH
async def test_the_cache_is_emptied_before_the_update_is_told(manager: Manager, name: str) -> None:
    server = await manager.add("s", spec(name))
    async with server.subscribe("test://counter") as updates:
        assert (await server.read_resource("test://counter")).text == "1"
        await touch(server, "test://counter")
        async for _ in updates:
            assert (await server.read_resource("test://counter")).text == "2"
            break


async def test_an_update_of_rubbish_is_no_update(manager: Manager) -> None:
    server = await manager.add("s", agreeing())
    async with server.subscribe(A) as updates:
        for odd in ({}, {"uri": 5}, {"uri": None}, {"uri": [A]}, [A], "text", 5):
            await say(server, UPDATED, odd)
        await say(server, UPDATED, {"uri": A, "title": "x"})
        assert await heard(updates) == {"uri": A, "title": "x"}


# -- several -------------------------------------------------------------------------------


@BOTH
async def test_who_follows_the_same_shares_it_and_leaves_alone(manager: Manager, name: str) -> None:
    server = await manager.add("s", spec(name))
    async with anyio.create_task_group() as group:
        followers = Followers(group, server)
        first, second, other = await followers.enter(A, A, B)
        await until(lambda: wanted(server), [A, B])
        await touch(server, A)
        await eventually(lambda: followers.heard == {first: [A], second: [A], other: []})
        await followers.leave(first)
        await touch(server, A)
        await eventually(lambda: followers.heard == {first: [A], second: [A, A], other: []})
        await followers.leave(second)
        await until(lambda: wanted(server), [B])
        await followers.leave(other)
        await until(lambda: wanted(server), [])
    assert followers.ended == {first: "cancelled", second: "cancelled", other: "cancelled"}


@BOTH
async def test_a_hundred_resources_are_followed_each_for_itself(
    manager: Manager, name: str
) -> None:
    server = await manager.add("s", spec(name))
    uris = [f"test://n/{number:02}" for number in range(100)]
    async with anyio.create_task_group() as group:
        followers = Followers(group, server)
        await followers.enter(*uris)
        await until(lambda: wanted(server), uris)
        if name == "good_stateless":
            # They are asked for together, not a hundred times anew.
            assert len(await journal(server, "subscriptions/listen")) <= 5
        for uri in uris[::7]:
            await touch(server, uri)
        await eventually(lambda: sum(map(len, followers.heard.values())) == len(uris[::7]))
        assert [heard for heard in followers.heard.values() if heard] == [[u] for u in uris[::7]]
        group.cancel_scope.cancel()
    await until(lambda: wanted(server), [])


@BOTH
async def test_coming_and_going_at_once_leaves_what_was_wanted_last(
    manager: Manager, name: str
) -> None:
    server = await manager.add("s", spec(name))
    await server.start()
    async with anyio.create_task_group() as group:
        followers = Followers(group, server)
        for _ in range(5):
            for number in (followers.begin(A), followers.begin(B)):
                followers.scopes[number].cancel()
            await anyio.lowlevel.checkpoint()
        [last] = await followers.enter(A)
        await until(lambda: wanted(server), [A])
        await touch(server, A)
        await eventually(lambda: followers.heard[last] == [A])
        group.cancel_scope.cancel()
    assert set(followers.ended.values()) == {"cancelled"}


async def test_two_may_take_updates_of_one_subscription(manager: Manager) -> None:
    server = await manager.add("s", agreeing())
    got: list[str] = []
    async with server.subscribe(A) as updates, anyio.create_task_group() as group:

        async def take() -> None:
            got.append((await heard(updates))["uri"])

        group.start_soon(take)
        group.start_soon(take)
        await anyio.wait_all_tasks_blocked()
        await say(server, UPDATED, {"uri": f"{A}/1"})
        await say(server, UPDATED, {"uri": f"{A}/2"})
    assert sorted(got) == [f"{A}/1", f"{A}/2"]


# -- the server's lives --------------------------------------------------------------------


@BOTH
async def test_a_subscription_lives_on_over_a_restart_with_one_more_update(
    manager: Manager, name: str
) -> None:
    server = await manager.add("s", spec(name))
    async with anyio.create_task_group() as group:
        followers = Followers(group, server)
        one, other = await followers.enter(A, B)
        for life in (2, 3):
            if life == 2:
                await server.restart()
            else:
                with pytest.raises(ServerDied):
                    await server.call_tool("exit", {"code": 1})
            # Nobody knows what was missed meanwhile; and it is told only once it is agreed again.
            told = {one: [A] * (life - 1), other: [B] * (life - 1)}
            await eventually(lambda told=told: followers.heard == told)
            assert server.generation == life
            assert await wanted(server) == [A, B]
        await touch(server, A)
        await eventually(lambda: followers.heard[one] == [A] * 3)
        assert followers.heard[other] == [B] * 2
        group.cancel_scope.cancel()


@BOTH
async def test_who_enters_while_the_server_dies_enters_its_next_life(
    manager: Manager, name: str
) -> None:
    era = "handshake" if name == "good_handshake" else "stateless"
    method = "resources/subscribe" if era == "handshake" else "subscriptions/listen"
    server = await manager.add("s", agreeing(era=era))
    await hold(server, method)
    async with anyio.create_task_group() as group:
        followers = Followers(group, server)
        number = followers.begin(A)
        await until(lambda: journal_length(server, method), 1)
        with pytest.raises(ServerDied):
            await server.call_tool("exit", {"code": 1})
        await until(lambda: journal_length(server, method), 1)
        if era == "handshake":  # this life agrees; the stateless one has no streams at all
            await eventually(lambda: number in followers.inside)
        else:
            await eventually(lambda: number in followers.ended)
            assert isinstance(followers.ended[number], ReplyError)
        group.cancel_scope.cancel()


async def test_who_follows_hears_that_the_next_life_does_not_agree(manager: Manager) -> None:
    server = await manager.add("s", agreeing(era="stateless"))
    await hold(server, "subscriptions/listen")
    async with anyio.create_task_group() as group:
        followers = Followers(group, server)
        number = followers.begin(A)
        await until(lambda: journal_length(server, "subscriptions/listen"), 1)
        [listen] = await journal(server, "subscriptions/listen")
        await say(
            server,
            "notifications/subscriptions/acknowledged",
            {
                "_meta": {"io.modelcontextprotocol/subscriptionId": listen["id"]},
                "notifications": {"resourceSubscriptions": [A]},
            },
        )
        await eventually(lambda: number in followers.inside)
        await server.restart()  # in this life every listen is refused
        await eventually(lambda: number in followers.ended)
    problem = followers.ended[number]
    assert isinstance(problem, ReplyError)
    assert (problem.code, problem.method) == (-32601, "subscriptions/listen")
    assert followers.heard[number] == []


@BOTH
async def test_a_stop_ends_no_subscription_and_the_next_start_goes_on(
    manager: Manager, name: str
) -> None:
    server = await manager.add("s", spec(name))
    async with anyio.create_task_group() as group:
        followers = Followers(group, server)
        [number] = await followers.enter(A)
        await server.stop()
        assert followers.ended == {}
        await server.start()
        await eventually(lambda: followers.heard[number] == [A])
        await touch(server, A)
        await eventually(lambda: followers.heard[number] == [A, A])
        group.cancel_scope.cancel()


async def test_who_enters_when_the_server_is_stopped_is_told_so(manager: Manager) -> None:
    server = await manager.add("s", agreeing())
    await hold(server, "resources/subscribe")
    async with anyio.create_task_group() as group:
        followers = Followers(group, server)
        number = followers.begin(A, timeout=None)
        await until(lambda: journal_length(server, "resources/subscribe"), 1)
        await server.stop()
        await eventually(lambda: number in followers.ended)
    assert isinstance(followers.ended[number], ServerUnavailable)
    assert "it was stopped; call start() first" in str(followers.ended[number])


@BOTH
@pytest.mark.parametrize("end", ["remove", "close"])
async def test_the_iteration_ends_with_the_server(name: str, end: str) -> None:
    async with Manager({"s": spec(name)}) as manager, anyio.create_task_group() as group:
        followers = Followers(group, manager["s"])
        number, other = await followers.enter(A, B)
        await touch(manager["s"], A)
        await eventually(lambda: followers.heard[number] == [A])
        await (manager.remove("s") if end == "remove" else manager.close())
        await eventually(lambda: len(followers.ended) == 2)
    assert followers.ended == {number: "ended", other: "ended"}
    assert followers.heard == {number: [A], other: []}


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_who_enters_when_the_manager_is_closed_is_told_so(era: str) -> None:
    method = "resources/subscribe" if era == "handshake" else "subscriptions/listen"
    async with Manager({"s": agreeing(era=era)}) as manager, anyio.create_task_group() as group:
        server = manager["s"]
        await hold(server, method)
        followers = Followers(group, server)
        number = followers.begin(A)
        await until(lambda: journal_length(server, method), 1)
        await manager.close()
        await eventually(lambda: number in followers.ended)
        later = followers.begin(A)
        await eventually(lambda: later in followers.ended)
    assert [type(one) for one in followers.ended.values()] == [UseAfterClose, UseAfterClose]


async def test_without_waiting_a_server_that_is_not_up_is_not_followed(manager: Manager) -> None:
    server = await manager.add("s", agreeing())
    with pytest.raises(ServerUnavailable, match="it is not up but idle"):
        async with server.no_wait.subscribe(A):
            pytest.fail("it was not up")
    assert server.state == "idle"
    await server.start()
    async with server.no_wait.subscribe(A) as updates:
        await say(server, UPDATED, {"uri": A})
        assert (await heard(updates))["uri"] == A
