"""Notifications from real servers to the handlers of a manager, by itself or at each tick."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpclient import Limits, Manager, Server, TickReport
from tests.conftest import eventually, spec
from tests.features.helpers import journal, puppet, result, say

UPDATED = "notifications/resources/updated"
MESSAGE = "notifications/message"
CHANGED = "notifications/tools/list_changed"


@pytest.fixture
async def ticked() -> Any:
    """A manager that delivers only at a tick, with two servers `s` and `t`."""
    servers = {"s": puppet(limits=Limits(inbox=5)), "t": puppet()}
    async with Manager(servers, dispatch="manual") as manager:
        yield manager


# -- at a tick -----------------------------------------------------------------------------


async def test_without_a_tick_nothing_is_delivered(ticked: Manager) -> None:
    told: list[Any] = []
    ticked.on_notification(MESSAGE, lambda server, params: told.append((server, params)))
    assert ticked.tick() == TickReport(delivered=0, left=0, dropped=0, failed=0)
    server = ticked["s"]
    await say(server, MESSAGE, {"level": "info"})
    await say(server, UPDATED, {"uri": "test://nobody-wants-it"})
    assert told == []
    assert ticked.tick() == TickReport(delivered=1, left=0, dropped=0, failed=0)
    assert told == [(server, {"level": "info"})]
    assert ticked.tick().delivered == 0


async def test_ticks_keep_the_order_of_arrival_over_methods_and_servers(ticked: Manager) -> None:
    told: list[str] = []
    for method in (MESSAGE, UPDATED):
        ticked.on_notification(method, lambda server, params: told.append(params["uri"]))
    for number, (name, method) in enumerate(
        [("s", MESSAGE), ("t", UPDATED), ("s", UPDATED), ("t", MESSAGE), ("s", MESSAGE)]
    ):
        await say(ticked[name], method, {"uri": f"{name}{number}"})
    assert ticked.tick(max_items=3) == TickReport(delivered=3, left=2, dropped=0, failed=0)
    assert told == ["s0", "t1", "s2"]
    assert ticked.tick(budget=0).delivered == 1
    assert ticked.tick(budget=60).delivered == 1
    assert told == ["s0", "t1", "s2", "t3", "s4"]


async def test_the_inbox_of_a_server_is_bounded_and_its_drops_are_counted(ticked: Manager) -> None:
    told: list[Any] = []
    ticked.on_notification(MESSAGE, lambda server, params: told.append(server.name))
    await say(ticked["s"], MESSAGE, n=12)  # its limit is 5
    await say(ticked["t"], MESSAGE, n=12)
    assert ticked.tick() == TickReport(delivered=17, left=0, dropped=7, failed=0)
    assert (told.count("s"), told.count("t")) == (5, 12)
    assert [one.dropped for one in ticked.status().servers] == [7, 0]


async def test_a_handler_removed_between_two_ticks_drops_what_waits(ticked: Manager) -> None:
    told: list[Any] = []
    token = ticked.on_notification(MESSAGE, lambda server, params: told.append(1))
    await say(ticked["s"], MESSAGE, n=2)
    ticked.off_notification(token)
    ticked.on_notification(MESSAGE, lambda server, params: told.append(2))
    assert ticked.tick().delivered == 0
    await say(ticked["s"], MESSAGE)
    assert ticked.tick().delivered == 1
    assert told == [2]


async def test_a_handler_may_await_at_a_tick_but_the_tick_does_not(ticked: Manager) -> None:
    server = ticked["s"]
    names: list[list[str]] = []

    async def relist(server: Server, params: Any) -> None:
        names.append([tool.name for tool in await server.list_tools()])

    ticked.on_notification(CHANGED, relist)
    await say(server, CHANGED)
    assert ticked.tick().delivered == 1
    assert names == []
    await eventually(lambda: names)
    assert names == [["echo", "sin"]]


async def test_an_awaiting_handler_that_raises_after_a_tick_is_logged(
    ticked: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(server: Server, params: Any) -> None:
        await anyio.lowlevel.checkpoint()
        raise ValueError("the handler is broken")

    ticked.on_notification(MESSAGE, broken)
    await say(ticked["s"], MESSAGE)
    ticked.tick()
    await eventually(lambda: "ValueError: the handler is broken" in caplog.text)
    assert "notification handler ended by a fault of its own" in caplog.text


async def test_a_server_that_is_removed_takes_its_notifications_with_it(ticked: Manager) -> None:
    told: list[str] = []
    ticked.on_notification(MESSAGE, lambda server, params: told.append(server.name))
    await say(ticked["s"], MESSAGE, n=2)
    await say(ticked["t"], MESSAGE, n=2)
    await ticked.remove("s")
    assert ticked.tick().delivered == 2
    assert told == ["t", "t"]


async def test_what_came_before_a_crash_is_still_delivered(ticked: Manager) -> None:
    told: list[Any] = []
    ticked.on_notification(MESSAGE, lambda server, params: told.append(server.generation))
    server = ticked["s"]
    await say(server, MESSAGE)
    with pytest.raises(Exception, match="the server died"):
        await server.call_tool("exit", {"code": 3})
    await server.wait_ready()
    await say(server, MESSAGE)
    assert ticked.tick().delivered == 2
    assert told == [2, 2]  # the server is the same object over its lives


# -- by itself -----------------------------------------------------------------------------


async def test_notifications_are_delivered_by_themselves_in_order(manager: Manager) -> None:
    told: list[Any] = []
    for method in (MESSAGE, UPDATED):
        manager.on_notification(method, lambda server, params: told.append(params["uri"]))
    server = await manager.add("s", puppet())
    for number in range(6):
        await say(server, (MESSAGE, UPDATED)[number % 2], {"uri": number})
    await eventually(lambda: len(told) == 6)
    assert told == list(range(6))


async def test_a_burst_arrives_complete_and_in_order(manager: Manager) -> None:
    told: list[int] = []
    manager.on_notification(UPDATED, lambda server, params: told.append(len(told)))
    server = await manager.add("s", spec("good_handshake"))
    await server.invoke_tool("notify", {"n": 900})
    await eventually(lambda: len(told) == 900)
    assert manager.status().servers[0].dropped == 0


async def test_awaiting_handlers_run_one_after_the_other_all_for_each_notification(
    manager: Manager,
) -> None:
    told: list[Any] = []

    def handler(name: str) -> Any:
        async def handle(server: Server, params: Any) -> None:
            told.append((name, params["n"], "begins"))
            for _ in range(3):
                await anyio.lowlevel.checkpoint()
            told.append((name, params["n"], "ends"))

        return handle

    manager.on_notification(MESSAGE, handler("first"))
    manager.on_notification(MESSAGE, lambda server, params: told.append(("plain", params["n"])))
    manager.on_notification(MESSAGE, handler("last"))
    server = await manager.add("s", puppet())
    await server.call_tool("echo")
    for number in (1, 2):
        await server.notify("puppet/say", {"method": MESSAGE, "params": {"n": number}})
    await eventually(lambda: len(told) == 10)
    assert told == [
        entry
        for n in (1, 2)
        for entry in [
            ("first", n, "begins"),
            ("first", n, "ends"),
            ("plain", n),
            ("last", n, "begins"),
            ("last", n, "ends"),
        ]
    ]


async def test_a_handler_may_call_the_same_server(manager: Manager) -> None:
    told: list[Any] = []

    async def relist(server: Server, params: Any) -> None:
        names = [tool.name for tool in await server.list_tools()]
        echoed = await server.invoke_tool("echo", {"text": "from inside"})
        told.append((names, echoed.text))

    manager.on_notification(CHANGED, relist)
    server = await manager.add("s", puppet())
    await say(server, CHANGED)
    await eventually(lambda: told)
    assert told == [(["echo", "sin"], "from inside")]


async def test_a_slow_handler_of_one_server_delays_neither_answers_nor_other_servers(
    manager: Manager,
) -> None:
    told: list[str] = []
    go_on = anyio.Event()

    async def handler(server: Server, params: Any) -> None:
        if server.name == "slow":
            await go_on.wait()
        told.append(server.name)

    manager.on_notification(MESSAGE, handler)
    slow, quick = [await manager.add(name, puppet()) for name in ("slow", "quick")]
    await say(slow, MESSAGE)
    await say(quick, MESSAGE)
    await eventually(lambda: told)
    assert (await slow.call_tool("echo", {"text": "still here"})).text == "still here"
    assert told == ["quick"]
    go_on.set()
    await eventually(lambda: told == ["quick", "slow"])


async def test_handlers_that_raise_are_reported_and_the_others_go_on(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Any] = []

    def broken(server: Server, params: Any) -> None:
        raise ValueError("broken at once")

    async def broken_later(server: Server, params: Any) -> None:
        await anyio.lowlevel.checkpoint()
        raise ValueError("broken later")

    manager.on_notification(MESSAGE, broken)
    manager.on_notification(MESSAGE, broken_later)
    manager.on_notification(MESSAGE, lambda server, params: told.append(params["n"]))
    server = await manager.add("s", puppet())
    for number in (1, 2):
        await say(server, MESSAGE, {"n": number})
    await eventually(lambda: told == [1, 2])
    assert caplog.text.count("a handler of notifications/message raised") == 4
    assert caplog.text.count("ValueError: broken at once") == 2
    assert caplog.text.count("ValueError: broken later") == 2


async def test_a_handler_removed_while_another_awaits_is_not_called(manager: Manager) -> None:
    told: list[str] = []
    waits, go_on = anyio.Event(), anyio.Event()

    async def first(server: Server, params: Any) -> None:
        waits.set()
        await go_on.wait()
        told.append("first")

    manager.on_notification(MESSAGE, first)
    token = manager.on_notification(MESSAGE, lambda server, params: told.append("removed"))
    server = await manager.add("s", puppet())
    await say(server, MESSAGE)
    await waits.wait()
    manager.off_notification(token)
    manager.on_notification(MESSAGE, lambda server, params: told.append("added"))
    go_on.set()
    await eventually(lambda: told)
    assert told == ["first"]
    await say(server, MESSAGE)
    await eventually(lambda: "added" in told)
    assert told == ["first", "first", "added"]


# trio runs what became ready together in any order, so only asyncio can promise this one.
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_what_arrived_before_an_answer_is_handled_before_the_caller_goes_on(
    manager: Manager,
) -> None:
    told: list[Any] = []
    before = [{"method": MESSAGE, "params": {"n": n}} for n in range(5)]
    answer = {**result(content=[{"type": "text", "text": "done"}]), "before": before}
    server = await manager.add("s", puppet({"tools/call": [answer]}))
    manager.on_notification(MESSAGE, lambda server, params: told.append(params["n"]))
    assert (await server.call_tool("sin")).text == "done"
    assert told == [0, 1, 2, 3, 4]


async def test_a_handler_that_reads_at_the_notice_of_a_change_never_gets_the_old_text(
    manager: Manager,
) -> None:
    told: list[str] = []

    async def reread(server: Server, params: Any) -> None:
        told.append((await server.read_resource(params["uri"])).text)

    manager.on_notification(UPDATED, reread)
    server = await manager.add("s", puppet())
    assert (await server.read_resource("test://a")).text == "1"
    await say(server, UPDATED, {"uri": "test://a"})
    await eventually(lambda: told)
    assert told == ["2"]
    assert (await server.read_resource("test://a")).text == "2"


async def test_a_change_of_a_list_counts_whether_or_not_it_was_declared(manager: Manager) -> None:
    told: list[Any] = []
    manager.on_notification(CHANGED, lambda server, params: told.append(params))
    server = await manager.add("s", spec("undeclared"))
    await server.call_tool("sin")
    await eventually(lambda: told)
    assert told == [{}]


async def test_the_fakes_tools_and_prompts_announce_their_changes(manager: Manager) -> None:
    told: list[str] = []
    for kind in ("tools", "prompts"):
        method = f"notifications/{kind}/list_changed"
        manager.on_notification(method, lambda server, params, kind=kind: told.append(kind))
    server = await manager.add("s", spec("fake"))
    for verb, there in (("add", True), ("change", True), ("remove", False)):
        await server.invoke_tool(f"{verb}_tool", {"name": "new", "description": verb})
        tools = {tool.name: tool.description for tool in await server.list_tools()}
        assert tools.get("new") == (f"{verb}" if there else None)
        await server.invoke_tool(f"{verb}_prompt", {"name": "new", "description": verb})
        prompts = {one.name: one.description for one in await server.list_prompts()}
        assert prompts.get("new") == (f"{verb}" if there else None)
    # Those that came soon after the first may be told as one, but never lost.
    status = manager.status().servers[0]
    await eventually(lambda: len(told) + manager.status().servers[0].merged == 6)
    assert {"tools", "prompts"} == set(told)
    assert status.noise == 0


# -- ends ----------------------------------------------------------------------------------


async def test_a_handler_may_remove_its_own_server_and_goes_on(manager: Manager) -> None:
    told: list[Any] = []

    async def remover(server: Server, params: Any) -> None:
        told.append("removes")
        await manager.remove(server.name)
        told.append("removed")

    manager.on_notification(MESSAGE, remover)
    server = await manager.add("s", puppet())
    await say(server, MESSAGE)
    await eventually(lambda: len(told) == 2)
    assert "s" not in manager
    assert server.pid is None


async def test_closing_ends_a_handler_that_still_waits() -> None:
    told: list[str] = []

    async def waits(server: Server, params: Any) -> None:
        told.append("begins")
        try:
            await anyio.sleep_forever()
        finally:
            told.append("ends")

    async with Manager({"s": puppet()}) as manager:
        manager.on_notification(MESSAGE, waits)
        await say(manager["s"], MESSAGE, n=3)
        await eventually(lambda: told)
    await eventually(lambda: len(told) == 2)
    assert told == ["begins", "ends"]


async def test_a_stateless_servers_notices_need_no_subscription_to_be_understood(
    manager: Manager,
) -> None:
    told: list[Any] = []
    manager.on_notification(MESSAGE, lambda server, params: told.append(params))
    server = await manager.add("s", puppet(era="stateless"))
    await say(server, MESSAGE, {"level": "info"})
    await eventually(lambda: told)
    assert told == [{"level": "info"}]
    assert await journal(server, "notifications/initialized") == []
