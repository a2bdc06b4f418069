"""Streams of notices that end, by the server in whatever way, or give way to another one."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpclient import Manager, RestartPolicy, RestartsExhausted, ServerDied
from tests.cases import inline
from tests.conftest import eventually
from tests.features.helpers import reads, refusal, release, say
from tests.features.streams import (
    CANCELLED,
    KEY,
    LISTEN,
    TOOLS_CHANGED,
    UPDATED,
    A,
    B,
    C,
    Streams,
    add,
    heard,
)

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
        assert await heard(streams.entered[A]) == {"uri": A}
        await eventually(lambda: told == ["tools"])
        await server.read_resource(A)
        assert len(await reads(server)) == 2
        await streams.update(A, second)
        assert (await heard(streams.entered[A]))["uri"] == A
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
        listens = int((await server.call_tool("echo", timeout=10)).text)
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
        assert (await heard(streams.entered[A]))["uri"] == A
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
    told: list[Any] = []
    manager.on_notification(UPDATED, lambda server, params: told.append(params))
    await streams.begin()
    async with anyio.create_task_group() as group:
        await streams.follow(group, A, 1)
        mine = await streams.agree(1, A)
        for number, id in enumerate((mine + 7, str(mine), mine + 0.5, True, [mine]), 1):
            await server.read_resource(A)
            await streams.update(A, id)
            assert len(await reads(server)) == number
        assert told == []
        await streams.update(A, mine)
        assert await heard(streams.entered[A]) == {"uri": A, "_meta": {KEY: mine}}
        await streams.update(A)  # without an id it may be anybody's
        assert await heard(streams.entered[A]) == {"uri": A}
        await eventually(lambda: len(told) == 2)
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
        assert (await heard(streams.entered[B]))["_meta"] == {KEY: ids[1]}
        assert (await heard(streams.entered[C]))["_meta"] == {KEY: ids[2]}
        with anyio.move_on_after(0.02):
            pytest.fail(f"heard {await heard(streams.entered[A])}")
        group.cancel_scope.cancel()
