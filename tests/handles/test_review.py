"""Handles in the hands of handlers that leave, loops that end and hosts that never tick."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from mcpclient import UseAfterClose
from mcpclient.handles import Handle, Manager
from tests.conftest import spec
from tests.handles.conftest import ticking, until

GOOD = spec("good_handshake")


def test_a_handler_that_is_interrupted_does_not_leave_the_host_untold(host: Manager) -> None:
    told: list[int] = []
    host.set_wakeup(lambda: told.append(1))

    def interrupted(handle: Handle[Any]) -> None:
        raise KeyboardInterrupt

    handle = host.roots_changed()
    assert handle.wait(10)
    handle.add_done_callback(interrupted)
    with pytest.raises(KeyboardInterrupt):
        host.tick()
    before = len(told)
    seen: list[Handle[Any]] = []
    handle.add_done_callback(seen.append)
    assert len(told) == before + 1
    host.tick()
    assert seen == [handle]


def test_what_is_left_when_a_handler_is_interrupted_is_told_at_once(host: Manager) -> None:
    told: list[int] = []

    def cancelled(handle: Handle[Any]) -> None:
        raise asyncio.CancelledError

    handles = [host.roots_changed() for _ in range(2)]
    for handle in handles:
        assert handle.wait(10)
        handle.add_done_callback(cancelled)
    host.set_wakeup(lambda: told.append(1))
    for n in (2, 2):
        with pytest.raises(asyncio.CancelledError):
            host.tick()
        assert len(told) == n
    assert host.tick().delivered == 0


def test_an_async_callback_that_leaves_does_not_end_the_manager(
    host: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    one = host.add("one", GOOD).result()

    async def leave(handle: Handle[Any]) -> None:
        raise SystemExit(3)

    handle = one.invoke_tool("echo", {"text": "hi"})
    handle.add_done_callback(leave)
    assert handle.wait(10)
    host.tick()
    until(lambda: "a handler raised" in caplog.text)
    assert one.invoke_tool("echo", {"text": "still"}).result(10).text == "still"


def test_an_ask_whose_handler_leaves_is_answered_all_the_same() -> None:
    def sample(server: Any, params: Any) -> Any:
        raise SystemExit(3)

    with Manager({"asks": spec("asks_handshake")}, on_sample=sample) as manager:
        ask = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
        handle = manager["asks"].invoke_tool("ask", ask)
        with pytest.raises(SystemExit):
            ticking(manager, handle.done)
        assert '"error"' in handle.result(10).text


def test_a_loop_that_ended_while_it_awaited_costs_the_other_waiters_nothing(
    host: Manager,
) -> None:
    one = host.add("one", GOOD).result()
    one.start().result()
    handle = one.invoke_tool("slow", {"seconds": 600})
    loop = asyncio.new_event_loop()

    async def wait() -> None:
        await handle

    coroutine = wait()
    waiting = loop.create_task(coroutine)
    loop.run_until_complete(asyncio.sleep(0))
    waiting._log_destroy_pending = False  # type: ignore[attr-defined]  # it is, on purpose
    loop.close()
    outcomes: list[BaseException | None] = []
    reader = threading.Thread(target=lambda: outcomes.append(handle.exception()))
    reader.start()
    seen: list[Handle[Any]] = []
    handle.add_done_callback(seen.append)
    assert handle.cancel()
    reader.join(10)
    assert [type(one).__name__ for one in outcomes] == ["CallCancelled"]
    host.tick()
    assert seen == [handle]
    coroutine.close()


def test_calls_without_end_and_without_a_tick_leave_nothing_in_the_mail(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    for _ in range(20):
        batch = [one.invoke_tool("echo", {"text": "hi"}) for _ in range(200)]
        assert all(each.wait(30) for each in batch)
    assert (len(host._mail._items), host._portal.calls) == (0, set())
    assert host.tick().delivered == 0


async def test_a_subscription_whose_manager_was_closed_is_left_in_peace() -> None:
    manager = Manager({"one": GOOD})
    manager.open()
    async with manager["one"].subscribe("test://a"):
        await manager.close()
    with pytest.raises(UseAfterClose, match="the manager is closed"):
        await manager["one"].subscribe("test://a").open()
    manager._portal.join()
