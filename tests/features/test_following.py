"""Following a resource, as a user does it: entering, updates, leaving, and every way it may end."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallTimedOut,
    Limits,
    LocalProtocolError,
    Manager,
    ReplyError,
    Server,
    ServerDied,
    ServerSpec,
    ServerUnavailable,
    Subscription,
    UseAfterClose,
)
from tests.conftest import eventually, spec
from tests.features.helpers import hold, journal, puppet, refusal, release, result, say

A, B = "test://a", "test://b"
UPDATED = "notifications/resources/updated"
BOTH = pytest.mark.parametrize("name", ["good_handshake", "good_stateless"])


def agreeing(answers: Any = None, **options: Any) -> ServerSpec:
    """Return the spec of a puppet that agrees to subscriptions, if the script says no other."""
    agreed = {"resources/subscribe": [result()], "resources/unsubscribe": [result()]}
    return puppet({**agreed, **(answers or {})}, **options)


async def touch(server: Server, uri: str, n: int = 1) -> None:
    """Let the server tell that a resource changed."""
    await server.invoke_tool("notify", {"n": n, "uri": uri})


async def wanted(server: Server) -> list[str]:
    """Return what the server is asked to tell of by now, in order."""
    found: list[str] = []
    for message in await journal(server):
        method, params = message.get("method"), message.get("params") or {}
        if method == "resources/subscribe":
            found.append(params["uri"])
        elif method == "resources/unsubscribe":
            found.remove(params["uri"])
        elif method == "subscriptions/listen":
            found = list(params["notifications"].get("resourceSubscriptions", []))
            last = message["id"]
        elif method == "notifications/cancelled" and params["requestId"] == last:
            found = []
    return sorted(found)


async def until(fact: Callable[[], Awaitable[Any]], value: Any) -> None:
    """Wait until what is asked for is so."""
    with anyio.fail_after(10):
        while await fact() != value:
            await anyio.sleep(0.005)


class Followers:
    """Some who follow resources, each in a task of its own."""

    def __init__(self, group: Any, server: Server) -> None:
        self.inside: dict[int, Subscription] = {}
        self.ended: dict[int, Any] = {}
        self.heard: dict[int, list[str]] = {}
        self.scopes: list[anyio.CancelScope] = []
        self._group = group
        self._server = server

    def begin(self, uri: str, **options: Any) -> int:
        number = len(self.scopes)
        self.scopes.append(anyio.CancelScope())
        self.heard[number] = []
        self._group.start_soon(self._run, number, uri, options)
        return number

    async def enter(self, *uris: str) -> list[int]:
        numbers = [self.begin(uri) for uri in uris]
        await eventually(lambda: all(number in self.inside for number in numbers))
        return numbers

    async def leave(self, number: int) -> None:
        self.scopes[number].cancel()
        await eventually(lambda: number in self.ended)

    async def _run(self, number: int, uri: str, options: Any) -> None:
        outcome: Any = "cancelled"
        with self.scopes[number]:
            try:
                async with self._server.subscribe(uri, **options) as updates:
                    self.inside[number] = updates
                    async for params in updates:
                        self.heard[number].append(params["uri"])
                outcome = "ended"
            except Exception as problem:
                outcome = problem
        self.ended[number] = outcome


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
        assert [(await anext(updates))["uri"] for _ in uris] == uris
        assert (await anext(other))["uri"] == "other://b/c"
        with anyio.move_on_after(0.02):
            pytest.fail(f"heard {await anext(updates)}")


@BOTH
async def test_updates_that_say_the_same_and_are_not_taken_are_one(
    manager: Manager, name: str
) -> None:
    server = await manager.add("s", spec(name))
    async with server.subscribe(A) as updates:
        await touch(server, A, n=100)
        assert (await anext(updates))["uri"] == A
        with anyio.move_on_after(0.02):
            pytest.fail(f"heard {await anext(updates)}")
        await touch(server, A)
        assert (await anext(updates))["uri"] == A


async def test_what_nobody_takes_is_bounded_and_the_newest_is_kept(manager: Manager) -> None:
    server = await manager.add("s", agreeing(limits=Limits(inbox=3)))
    async with server.subscribe(A) as updates:
        for number in range(10):
            await say(server, UPDATED, {"uri": f"{A}/{number}"})
        assert [(await anext(updates))["uri"] for _ in range(3)] == [f"{A}/{n}" for n in (7, 8, 9)]


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
        assert await anext(updates) == {"uri": A, "title": "x"}


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
            got.append((await anext(updates))["uri"])

        group.start_soon(take)
        group.start_soon(take)
        await anyio.wait_all_tasks_blocked()
        await say(server, UPDATED, {"uri": f"{A}/1"})
        await say(server, UPDATED, {"uri": f"{A}/2"})
    assert sorted(got) == [f"{A}/1", f"{A}/2"]


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
        assert (await anext(updates))["uri"] == A
        assert await journal(server, "resources/unsubscribe") == []
    await until(lambda: journal_length(server, "resources/unsubscribe"), 1)
    assert len(await journal(server, "resources/subscribe")) == 3


async def journal_length(server: Server, method: str) -> int:
    return len(await journal(server, method))


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
        group.cancel_scope.cancel()


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
            assert (await anext(updates))["uri"] == uri


async def test_a_subscription_is_used_within_its_context_and_once(manager: Manager) -> None:
    server = await manager.add("s", agreeing())
    updates = server.subscribe(A)
    with pytest.raises(LocalProtocolError, match="use a subscription with `async with`"):
        await anext(updates)
    async with updates as same:
        assert same is updates
        with pytest.raises(LocalProtocolError, match="entered once"):
            async with updates:
                pytest.fail("it was entered already")
        await say(server, UPDATED, {"uri": A})
        assert (await anext(updates))["uri"] == A
    assert [one async for one in updates] == []
    with pytest.raises(LocalProtocolError, match="a subscription is entered once; make another"):
        async with updates:
            pytest.fail("it was entered already")


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
        assert (await anext(updates))["uri"] == A
