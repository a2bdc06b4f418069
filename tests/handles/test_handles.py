"""Handles: what they tell, to whom, how often, and when a cancellation wins."""

from __future__ import annotations

import json
import threading
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    CallTimedOut,
    ConfigError,
    LocalProtocolError,
    ServerDied,
    ToolError,
    UseAfterClose,
)
from mcpclient.engine.relayed import Relayed
from mcpclient.handles import Handle, Manager
from tests.conftest import spec
from tests.handles.conftest import ticking, until

GOOD = spec("good_handshake")


def arrived(handle: Handle[Any]) -> None:
    """Wait until the outcome of a handle is there, without seeing it."""
    assert handle.wait(10)


def test_a_verb_returns_at_once_and_the_handle_has_the_result(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    handle = one.invoke_tool("echo", {"text": "hi"})
    assert repr(handle) == f"<Handle {handle.id} one.invoke_tool: running>"
    assert (handle.verb, handle.server) == ("invoke_tool", "one")
    assert handle.result().text == "hi"
    assert handle.result(timeout=0).text == "hi"
    assert handle.exception() is None
    assert handle.done()
    assert not handle.cancelled()
    assert repr(handle).endswith(": complete>")
    other = one.invoke_tool("echo", {"text": "hi"})
    assert other.id == handle.id + 1
    other.result()


def test_a_host_that_looks_while_the_manager_opens_finds_all_servers() -> None:
    reached, go_on = threading.Event(), threading.Event()

    class Slow(Relayed):
        def _take_in(self, name: str, spec: Any) -> Any:
            reached.set()
            assert go_on.wait(10)
            return super()._take_in(name, spec)

    class Host(Manager):
        _manager_class = Slow

    with Host({"one": GOOD, "two": GOOD}) as manager:
        assert reached.wait(10)
        try:
            assert (list(manager), len(manager), "two" in manager) == (["one", "two"], 2, True)
            handle = manager["two"].invoke_tool("echo", {"text": "hi"})
        finally:
            go_on.set()
        assert handle.result().text == "hi"


def test_servers_are_used_before_the_manager_is_open() -> None:
    manager = Manager({"one": GOOD})
    opening = manager.open()
    one = manager["one"]
    assert (one.state, one.generation, one.incidents, one.info) == ("idle", 0, [], {})
    assert (one.stderr_tail(), one.status().calls, one.spec) == ("", 0, GOOD)
    assert one.invoke_tool("echo", {"text": "hi"}).result().text == "hi"
    assert opening.result(timeout=0) is None
    assert manager.open().result() is None  # twice is no fault
    assert manager["one"] is one
    assert one.generation == 1
    closing = manager.close()
    closing.result()
    assert manager.close().result() is None
    with pytest.raises(UseAfterClose, match="the manager is closed"):
        one.invoke_tool("echo").result()
    with pytest.raises(UseAfterClose, match="make a new one"):
        manager.open()
    manager._portal.join()


def test_what_goes_wrong_is_in_the_handle_whoever_did_it(host: Manager) -> None:
    never = Manager({"one": GOOD})
    with pytest.raises(UseAfterClose, match="the manager is not open"):
        never["one"].list_tools().result()
    one = host.add("one", GOOD).result()
    failed = one.invoke_tool("fail")
    first, second = failed.exception(), failed.exception()
    assert isinstance(first, ToolError)
    assert first is second
    for _ in range(2):  # raised as often as one likes, each time with its own traceback
        with pytest.raises(ToolError) as caught:
            failed.result()
        assert caught.value is not first
        assert caught.value.result.is_error
    assert repr(failed).endswith(": failed>")
    assert isinstance(one.invoke_tool("echo", {"text": object()}).exception(), LocalProtocolError)
    circle: dict[str, Any] = {}
    circle["text"] = circle
    assert isinstance(one.invoke_tool("echo", circle).exception(), LocalProtocolError)
    slow = one.invoke_tool("slow", {"seconds": 600}, timeout=0.02)
    assert isinstance(slow.exception(), CallTimedOut)
    died = one.invoke_tool("exit", {"code": 3})
    with pytest.raises(ServerDied, match="code 3"):
        died.result()
    assert isinstance(host.add("one", GOOD).exception(), ConfigError)
    assert isinstance(host.remove("two").exception(), KeyError)


def test_arguments_may_be_changed_once_the_verb_has_returned(host: Manager) -> None:
    one = host.add("one", spec("fake")).result()
    given: dict[str, Any] = {"list": [1, {"deep": True}]}
    handles = []
    for n in range(20):
        given["n"] = n
        given["list"][1]["deep"] = n
        handles.append(one.invoke_tool("nullary", given))
    given.clear()
    for n, handle in enumerate(handles):
        assert json.loads(handle.result().text) == {"n": n, "list": [1, {"deep": n}]}


def test_waiting_for_a_result_ends_with_its_time_and_the_call_goes_on(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    one.start().result()
    handle = one.invoke_tool("slow", {"seconds": 0.3})
    with pytest.raises(TimeoutError, match="has not ended yet; it goes on"):
        handle.result(timeout=0)
    with pytest.raises(TimeoutError):
        handle.exception(timeout=0.01)
    assert not handle.done()
    assert handle.result().text


def test_a_handle_is_read_by_many_threads_at_once(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    handle = one.invoke_tool("slow", {"seconds": 0.1})
    texts: list[str] = []
    threads = [
        threading.Thread(target=lambda: texts.append(handle.result(10).text)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(texts) == 8
    assert len(set(texts)) == 1


# -- cancelling ----------------------------------------------------------------------------


def test_a_cancellation_reaches_the_server_and_ends_the_handle_at_once(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    one.start().result()
    handle = one.invoke_tool("slow", {"seconds": 600})
    until(lambda: one.status().in_flight)
    assert handle.cancel()
    assert handle.cancel()
    assert handle.cancelled()
    assert handle.done()
    with pytest.raises(CallCancelled, match="cancelled by the caller") as caught:
        handle.result()
    assert caught.value.maybe_done
    assert caught.value.server == "one"
    journal = json.loads(one.invoke_tool("journal").result().text)
    assert [one["method"] for one in journal][-2:] == ["notifications/cancelled", "tools/call"]
    assert repr(handle).endswith(": cancelled>")


def test_a_cancellation_wins_over_an_answer_that_nobody_has_seen(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    handle = one.invoke_tool("echo", {"text": "too late"})
    told: list[Handle[Any]] = []
    handle.add_done_callback(told.append)
    arrived(handle)
    assert handle.cancel()
    host.tick()
    assert told == [handle]
    assert handle.cancelled()
    with pytest.raises(CallCancelled):
        handle.result()
    journal = json.loads(one.invoke_tool("journal").result().text)
    assert "notifications/cancelled" not in [one["method"] for one in journal]


@pytest.mark.parametrize("how", ["result", "exception", "done", "callback"])
def test_once_seen_an_answer_can_be_cancelled_no_more(how: str, host: Manager) -> None:
    one = host.add("one", GOOD).result()
    handle = one.invoke_tool("echo", {"text": "seen"})
    arrived(handle)
    if how == "callback":
        told: list[Any] = []
        handle.add_done_callback(told.append)
        ticking(host, lambda: told)
    else:
        getattr(handle, how)()
    assert not handle.cancel()
    assert not handle.cancelled()
    assert handle.result().text == "seen"


def test_what_is_cancelled_before_it_was_sent_is_never_sent(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    one.start().result()
    gate = threading.Event()

    def hold() -> None:
        gate.wait()

    host._portal.post(hold)
    handle = one.invoke_tool("echo", {"text": "never"})
    assert handle.cancel()
    gate.set()
    with pytest.raises(CallCancelled, match="never sent"):
        handle.result()
    journal = json.loads(one.invoke_tool("journal").result().text)
    assert [one["method"] for one in journal].count("tools/call") == 1


def test_closing_ends_every_handle(host: Manager) -> None:
    manager = Manager({"one": GOOD})
    manager.open()
    one = manager["one"]
    one.start().result()
    handles = [one.invoke_tool("slow", {"seconds": 600}) for _ in range(3)]
    told: list[Handle[Any]] = []
    for handle in handles:
        handle.add_done_callback(told.append)
    closing = manager.close()
    closing.add_done_callback(told.append)
    late = one.invoke_tool("echo", {"text": "too late"})
    closing.result()
    for handle in [*handles, late]:
        assert isinstance(handle.exception(timeout=5), CallCancelled | UseAfterClose)
    manager.tick()  # what is left is still delivered
    assert told == [*handles, closing]
    manager._portal.join()


# -- awaiting ------------------------------------------------------------------------------


async def test_a_handle_is_awaited_any_number_of_times_in_either_loop() -> None:
    with Manager({"one": GOOD}) as manager:
        one = manager["one"]
        handle = one.invoke_tool("echo", {"text": "hi"})
        assert (await handle).text == "hi"
        assert (await handle).text == "hi"
        slow = one.invoke_tool("slow", {"seconds": 0.1})
        texts: list[str] = []

        async def wait() -> None:
            texts.append((await slow).text)

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(wait)
        assert len(texts) == 5
        with pytest.raises(ToolError):
            await one.invoke_tool("fail")
        await manager.close()


async def test_who_stops_to_await_leaves_the_call_alone() -> None:
    with Manager({"one": GOOD}) as manager:
        one = manager["one"]
        await one.start()
        slow = one.invoke_tool("slow", {"seconds": 0.3})
        with anyio.move_on_after(0.01) as scope:
            await slow
        assert scope.cancelled_caught
        assert not slow.cancelled()
        assert (await slow).text
        lasting = one.invoke_tool("slow", {"seconds": 600})
        async with anyio.create_task_group() as group:

            async def wait() -> None:
                with pytest.raises(CallCancelled):
                    await lasting

            group.start_soon(wait)
            await anyio.lowlevel.checkpoint()
            lasting.cancel()
        await manager.close()


async def test_subscriptions_and_operations_are_iterated_where_a_loop_runs() -> None:
    extensions: dict[str, Any] = {"io.modelcontextprotocol/tasks": {}}
    servers = {"one": GOOD, "tasks": spec("tasks_handshake")}
    with Manager(servers, extensions=extensions) as manager:
        one = manager["one"]
        async with one.subscribe("test://a") as updates:
            await one.invoke_tool("notify", {"uri": "test://a"})
            async for update in updates:
                assert update["uri"] == "test://a"
                break
        tasks = manager["tasks"]
        operation = await tasks.start_tool("must", {"text": "done", "seconds": 0.05})
        assert [status async for status in operation][-1] == "completed"
        assert (await operation.result()).text == "done"
        assert (await operation.refresh()) is operation
        assert operation.id is not None
        assert (await (await tasks.operation(operation.id)).result()).text == "done"
        assert operation.id in [known.id for known in await tasks.list_operations()]
        lasting = await tasks.start_tool("never")
        await lasting.cancel()
        with pytest.raises(CallCancelled):
            await lasting.result()
        await manager.close()


def test_a_subscription_is_followed_by_handles_alone(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    updates = one.subscribe("test://a")
    with pytest.raises(LocalProtocolError, match="open the subscription first"):
        updates.next().result()
    assert updates.open().result() is updates
    assert updates.open().result() is updates
    waiting = updates.next()
    one.invoke_tool("notify", {"uri": "test://a"}).result()
    assert waiting.result()["uri"] == "test://a"
    last = updates.next()
    updates.close().result()
    assert last.result() is None
    refused = one.subscribe("other://x", timeout=5)
    refused.close().result()  # never opened


def test_every_other_verb_gives_what_the_async_one_returns(host: Manager) -> None:
    one = host.add("one", GOOD).result()
    one.wait_ready().result()
    assert "echo" in [tool.name for tool in one.list_tools().result()]
    assert one.list_resources().result()
    assert one.list_resource_templates().result()
    assert one.list_prompts().result()
    assert one.call_tool("fail").result().is_error
    assert one.read_resource("test://a").result().text == "this is a"
    one.invalidate_resource("test://a").result()
    assert "Ada" in one.get_prompt("greet", {"name": "Ada"}).result().text
    assert one.complete("greet", "name", "", context={"a": "b"}).result().values
    one.set_log_level("error").result()
    assert one.request("ping").result() == {}
    one.notify("notifications/vendor").result()
    assert one.no_wait.invoke_tool("echo", {"text": "now"}).result().text == "now"
    assert one.restart().result() is None
    assert one.generation == 2
    host.roots_changed().result()
    assert host.reload({"two": GOOD}).result().removed == ["one"]
    assert list(host) == ["two"]
    host["two"].start().result()
    assert host["two"].stop().result() is None
