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
    RestartPolicy,
    RestartsExhausted,
    Server,
    ServerDied,
    Timeouts,
)
from tests.cases import inline
from tests.conftest import eventually
from tests.features.helpers import hold, journal, puppet, reads, refusal, release, result, say

KEY = "io.modelcontextprotocol/subscriptionId"
LISTEN = "subscriptions/listen"
AGREED = "notifications/subscriptions/acknowledged"
CANCELLED = "notifications/cancelled"
UPDATED = "notifications/resources/updated"
TOOLS_CHANGED = "notifications/tools/list_changed"
A, B, C = "test://a", "test://b", "test://c"
ALL = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "prompts": {}}


class Streams:
    """The streams of a puppet, which are agreed to and ended by hand."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.entered: dict[str, Any] = {}

    async def begin(self) -> None:
        await hold(self.server, LISTEN)

    async def asked(self, count: int) -> list[dict[str, Any]]:
        """Wait for so many listens in all; return what each wants, and its id."""
        with anyio.fail_after(5):
            while len(found := await journal(self.server, LISTEN)) < count:
                await anyio.sleep(0.005)
        assert len(found) == count
        return [{"id": one["id"], **one["params"]["notifications"]} for one in found]

    async def agree(self, count: int, *uris: str, **more: Any) -> int:
        """Agree to the newest of so many listens, for these URIs; return its id."""
        id = (await self.asked(count))[-1]["id"]
        told = {"resourceSubscriptions": list(uris), **more}
        await say(self.server, AGREED, {"_meta": {KEY: id}, "notifications": told})
        return int(id)

    async def follow(self, group: Any, uri: str, count: int, **options: Any) -> anyio.CancelScope:
        """Begin to follow a resource, until the scope is cancelled, and wait for the listen."""
        scope = anyio.CancelScope()

        async def run() -> None:
            with scope:
                try:
                    async with self.server.subscribe(uri, **options) as updates:
                        self.entered[uri] = updates
                        await anyio.sleep_forever()
                except Exception as problem:
                    self.entered[uri] = problem

        group.start_soon(run)
        if count:
            await self.asked(count)
        return scope

    async def update(self, uri: str, id: Any = None) -> None:
        meta = {} if id is None else {"_meta": {KEY: id}}
        await say(self.server, UPDATED, {"uri": uri, **meta})

    async def given_up(self, ids: list[Any]) -> None:
        """Wait until just these are cancelled."""
        with anyio.fail_after(5):
            while await self.cancels() != ids:
                await anyio.sleep(0.005)

    async def cancels(self) -> list[Any]:
        return [one["params"]["requestId"] for one in await journal(self.server, CANCELLED)]


async def add(manager: Manager, answers: Any = None, **options: Any) -> Streams:
    options.setdefault("capabilities", ALL)
    return Streams(await manager.add("s", puppet(answers, era="stateless", **options)))


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
        assert (await anext(streams.entered[A]))["uri"] == A
        assert await streams.cancels() == [first, second]
        group.cancel_scope.cancel()


async def test_a_stream_that_is_never_agreed_to_is_given_up_and_asked_for_again(
    manager: Manager,
) -> None:
    streams = await add(manager, timeouts=Timeouts(eof=1, term=0.5, call=0.3))
    server = streams.server
    await server.start(timeout=30)
    await streams.begin()
    async with anyio.create_task_group() as group:
        await streams.follow(group, A, 2, timeout=1.0)
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
        assert (await anext(streams.entered[A]))["uri"] == A
        assert first not in await streams.cancels()
        # Without the one who was refused it is what it was.
        third = await streams.agree(3, A)
        await streams.update(A, third)
        assert (await anext(streams.entered[A]))["uri"] == A
        assert await streams.cancels() == [first]
        group.cancel_scope.cancel()


# -- ends ----------------------------------------------------------------------------------


async def ended(streams: Streams, how: str, id: int) -> None:
    """Let the server end its stream."""
    if how in ("cancellation", "both"):
        await say(streams.server, CANCELLED, {"requestId": id})
    if how != "cancellation":
        answer = refusal(-32000) if how == "error" else {"result": {"_meta": {KEY: id}}}
        await release(streams.server, LISTEN, **answer)
        await streams.begin()
    if how == "both, the other way round":
        await say(streams.server, CANCELLED, {"requestId": id})


ENDS = ["result", "cancellation", "both", "both, the other way round", "error"]


@pytest.mark.parametrize("how", ENDS)
async def test_a_stream_that_ends_is_asked_for_once_more_and_what_was_missed_made_good(
    manager: Manager, how: str
) -> None:
    lasting = {"contents": [{"uri": A, "text": "x"}], "ttlMs": 60_000}
    streams = await add(manager, {"resources/read": [{"result": lasting}]})
    server = streams.server
    told: list[str] = []
    await streams.begin()
    manager.on_notification(TOOLS_CHANGED, lambda server, params: told.append("tools"))
    async with anyio.create_task_group() as group:
        given_up = await streams.agree(1, toolsListChanged=True)
        await streams.follow(group, A, 2)
        first = await streams.agree(2, A, toolsListChanged=True)
        await server.read_resource(A)
        await server.read_resource(A)
        assert len(await reads(server)) == 1
        await ended(streams, how, first)
        # Before it is agreed to again, nobody knows.
        await streams.asked(3)
        assert told == []
        second = await streams.agree(3, A, toolsListChanged=True)
        assert await anext(streams.entered[A]) == {"uri": A}
        await eventually(lambda: told == ["tools"])
        await server.read_resource(A)
        assert len(await reads(server)) == 2
        await streams.update(A, second)
        assert (await anext(streams.entered[A]))["uri"] == A
        assert len(await streams.asked(3)) == 3
        assert await streams.cancels() == [given_up]
        assert server.status().stray == 0
        group.cancel_scope.cancel()


async def test_a_server_that_agrees_and_ends_at_once_is_asked_ever_more_seldom(
    manager: Manager,
) -> None:
    code = """if True:
        import json, _wire
        listens = 0
        for message in _wire.messages():
            id = message.get("id")
            if message["method"] == "subscriptions/listen":
                listens += 1
                told = {"_meta": {"io.modelcontextprotocol/subscriptionId": id}, "notifications": {
                    "resourceSubscriptions": ["test://a"]}}
                _wire.send(_wire.notification("notifications/subscriptions/acknowledged", told))
                _wire.send(_wire.notification("test/agreed"))
                _wire.send(_wire.result(id, {}))
            elif _wire.called(message) == "echo":
                _wire.send(_wire.text(id, str(listens)))
            elif id is not None:
                _wire.send(_wire.answer_stateless(message))
    """
    server = await manager.add("s", inline(code))
    entered = anyio.Event()

    async def follow() -> None:
        async with server.subscribe(A):
            entered.set()
            await anyio.sleep_forever()

    async with anyio.create_task_group() as group:
        group.start_soon(follow)
        await anyio.sleep(0.6)
        # At 0, 0.1, 0.3 and 0.7 seconds, or later.
        listens = int((await server.call_tool("echo")).text)
        assert 2 <= listens <= 4
        group.cancel_scope.cancel()


async def test_a_cancellation_of_anything_else_ends_no_stream(manager: Manager) -> None:
    streams = await add(manager)
    await streams.begin()
    async with anyio.create_task_group() as group:
        await streams.follow(group, A, 1)
        first = await streams.agree(1, A)
        for id in (str(first), first + 1, first + 0.5, True, None, [first], {"id": first}):
            await say(streams.server, CANCELLED, {"requestId": id})
        await say(streams.server, CANCELLED, {})
        await streams.update(A, first)
        assert (await anext(streams.entered[A]))["uri"] == A
        assert len(await streams.asked(1)) == 1
        group.cancel_scope.cancel()


async def test_a_server_that_dies_of_the_listen_is_no_reason_to_wait(manager: Manager) -> None:
    streams = await add(manager, restart=RestartPolicy(when="never"))
    await streams.begin()
    async with anyio.create_task_group() as group:
        await streams.follow(group, A, 1, timeout=None)
        with pytest.raises(ServerDied):
            await streams.server.call_tool("exit", {"code": 3})
        await eventually(lambda: A in streams.entered)
    assert isinstance(streams.entered[A], RestartsExhausted)
    assert "exit code 3" in str(streams.entered[A])


# -- whose notices -------------------------------------------------------------------------


async def test_notices_of_a_stream_that_is_not_ours_reach_nobody_but_make_old_what_is_kept(
    manager: Manager,
) -> None:
    kept = {"contents": [{"uri": A, "text": "x"}], "ttlMs": 60_000}
    streams = await add(manager, {"resources/read": [{"result": kept}]})
    server = streams.server
    heard: list[Any] = []
    manager.on_notification(UPDATED, lambda server, params: heard.append(params))
    await streams.begin()
    async with anyio.create_task_group() as group:
        await streams.follow(group, A, 1)
        mine = await streams.agree(1, A)
        for number, id in enumerate((mine + 7, str(mine), mine + 0.5, True, [mine]), 1):
            await server.read_resource(A)
            await streams.update(A, id)
            assert len(await reads(server)) == number
        assert heard == []
        await streams.update(A, mine)
        assert await anext(streams.entered[A]) == {"uri": A, "_meta": {KEY: mine}}
        await streams.update(A)  # without an id it may be anybody's
        assert await anext(streams.entered[A]) == {"uri": A}
        await eventually(lambda: len(heard) == 2)
        group.cancel_scope.cancel()


async def test_while_one_stream_gives_way_to_the_next_the_notices_of_both_count(
    manager: Manager,
) -> None:
    streams = await add(manager)
    await streams.begin()
    async with anyio.create_task_group() as group:
        ids = []
        for count, uri in enumerate((A, B, C), 1):
            await streams.follow(group, uri, count)
            ids.append(await streams.agree(count, *(A, B, C)[:count]))
        await eventually(lambda: len(streams.entered) == 3)
        assert await streams.cancels() == ids[:2]
        # What the last but one still had to say, the last, and what the first has no more.
        for id, uri in ((ids[0], A), (ids[1], B), (ids[2], C)):
            await streams.update(uri, id)
        assert (await anext(streams.entered[B]))["_meta"] == {KEY: ids[1]}
        assert (await anext(streams.entered[C]))["_meta"] == {KEY: ids[2]}
        with anyio.move_on_after(0.02):
            pytest.fail(f"heard {await anext(streams.entered[A])}")
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
