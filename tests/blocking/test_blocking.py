"""The verbs without await: opening, calls, errors, subscriptions, tasks, servers that come."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from mcpclient import (
    CallCancelled,
    CallTimedOut,
    ConfigError,
    Exit,
    LocalProtocolError,
    ReplyError,
    ServerDied,
    ServerUnavailable,
    TickReport,
    ToolError,
    UseAfterClose,
)
from mcpclient.blocking import Manager, Server
from tests.blocking.conftest import until
from tests.conftest import SERVERS, alive, spec

GOOD = spec("good_handshake")
TASKS = "io.modelcontextprotocol/tasks"


def test_a_with_block_opens_calls_and_leaves_nothing() -> None:
    with Manager({"one": GOOD}) as manager:
        one = manager["one"]
        assert one is manager["one"]
        assert one.state == "idle"
        assert one.invoke_tool("echo", {"text": "hi"}).text == "hi"
        assert (one.state, one.generation, one.era) == ("up", 1, "handshake")
        assert one.info["name"]
        pid = one.pid
        assert pid is not None
        assert alive(pid)
    assert not alive(pid)
    assert one.state == "idle"
    with pytest.raises(UseAfterClose, match="the manager is closed"):
        one.invoke_tool("echo", {"text": "hi"})


def test_open_and_close_do_the_same_and_twice_is_no_fault() -> None:
    manager = Manager({"one": GOOD})
    assert "one" in manager
    assert list(manager) == ["one"]
    assert manager["one"].state == "idle"  # not open yet, and has facts all the same
    with pytest.raises(UseAfterClose, match=r"use `with Manager\(...\)`, or open\(\)"):
        manager["one"].list_tools()
    manager.open()
    manager.open()
    assert manager["one"].invoke_tool("add", {"a": 1, "b": 2}).structured == {"sum": 3}
    manager.close()
    manager.close()
    with pytest.raises(UseAfterClose, match="make a new one"):
        manager.open()


def test_errors_are_those_of_the_async_face(blocking: Manager) -> None:
    one = blocking.add("one", GOOD)
    with pytest.raises(ToolError) as failed:
        one.invoke_tool("fail")
    assert failed.value.result.is_error
    assert one.call_tool("fail").is_error
    with pytest.raises(ReplyError, match="-32602"):
        one.invoke_tool("no such tool")
    with pytest.raises(CallTimedOut, match="no answer within"):
        one.invoke_tool("slow", {"seconds": 600}, timeout=0.05)
    with pytest.raises(LocalProtocolError):
        one.invoke_tool("echo", {"text": object()})
    with pytest.raises(ServerDied) as died:
        one.invoke_tool("exit", {"code": 3})
    assert died.value.exit.code == 3
    with pytest.raises(KeyError, match=r"no server is named 'two' \(known: 'one'\)"):
        blocking["two"]
    with pytest.raises(ConfigError):
        Manager({"": ["x"]})
    with pytest.raises(ValueError, match="dispatch must be"):
        Manager(dispatch="sometimes")


def test_all_the_other_verbs_return_what_the_async_ones_do(blocking: Manager) -> None:
    one = blocking.add("one", GOOD)
    one.start()
    one.wait_ready()
    assert "echo" in [tool.name for tool in one.list_tools()]
    assert "test://a" in [found.uri for found in one.list_resources()]
    [template] = one.list_resource_templates()
    assert template.expand(name="x") == "test://item/x"
    assert [prompt.name for prompt in one.list_prompts()] == ["greet", "plain"]
    assert one.read_resource("test://a").text == "this is a"
    first = one.read_resource("test://counter").text
    assert one.read_resource("test://counter").text == first
    one.invalidate_resource("test://counter")
    assert one.read_resource("test://counter").text != first
    assert "Ada" in one.get_prompt("greet", {"name": "Ada"}).text
    assert one.complete("greet", "name", "").values
    one.set_log_level("error")
    assert one.request("ping") == {}
    one.notify("notifications/vendor")
    methods = [message["method"] for message in json.loads(one.invoke_tool("journal").text)]
    assert "notifications/vendor" in methods
    assert blocking.cache.stats().hits == 1
    assert "one" in str(blocking.status())
    assert one.status().calls > 10
    assert one.stderr_tail() == ""
    assert one.spec is not None
    assert (str(one), repr(one)) == ("one", "<Server 'one' up>")
    one.restart()
    assert one.generation == 2
    one.stop()
    assert one.state == "idle"


def test_a_verb_that_must_not_wait_for_the_server_is_refused(blocking: Manager) -> None:
    one = blocking.add("one", GOOD)
    with pytest.raises(ServerUnavailable, match=r"wait_ready\(\) waits for it"):
        one.no_wait.list_tools()
    one.start()
    assert one.no_wait.invoke_tool("echo", {"text": "hi"}).text == "hi"
    assert one.no_wait.name == "one"


def test_servers_come_and_go_and_change(blocking: Manager, tmp_path: Path) -> None:
    one = blocking.add("one", GOOD)
    assert blocking["one"] is one
    one.start()
    pid = one.pid
    assert pid is not None
    report = blocking.reload({"two": spec("good_handshake"), "one": spec("good_stateless")})
    assert (report.added, report.changed, report.removed) == (["two"], ["one"], [])
    assert blocking["one"] is one
    assert not alive(pid)
    one.start()
    assert one.era == "stateless"
    blocking.remove("one")
    assert "one" not in blocking
    assert len(blocking) == 1
    with pytest.raises(UseAfterClose):
        one.start()
    again = blocking.add("one", GOOD)
    assert again is not one
    assert again.invoke_tool("echo", {"text": "anew"}).text == "anew"
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"three": {"command": "true"}}}))
    assert blocking.reload(file).removed == ["two", "one"]
    assert list(Manager.from_config(file)) == ["three"]


def test_a_subscription_gives_updates_within_a_time_and_loses_none(blocking: Manager) -> None:
    one = blocking.add("one", GOOD)
    with one.subscribe("test://counter") as updates:
        with pytest.raises(TimeoutError):
            updates.next(timeout=0)
        with pytest.raises(TimeoutError):
            updates.next(timeout=0.05)
        one.invoke_tool("notify", {"uri": "test://counter"})
        assert updates.next(timeout=10)["uri"] == "test://counter"
        one.invoke_tool("notify", {"uri": "test://counter"})
        for update in updates:
            assert update["uri"] == "test://counter"
            break
        with pytest.raises(LocalProtocolError, match="entered once"):
            updates.__enter__()
        ended: list[Any] = []
        reader = threading.Thread(target=lambda: ended.append(list(updates)))
        reader.start()
        blocking.remove("one")
        reader.join(10)
        assert ended == [[]]
        assert updates.next() is None
    with pytest.raises(LocalProtocolError, match="use a subscription with `with`"):
        one.subscribe("test://a").next()


@pytest.mark.parametrize("name", ["tasks_handshake", "tasks_stateless"])
def test_a_tool_that_runs_as_a_task_is_followed_to_its_end(name: str) -> None:
    tool = "must" if name == "tasks_handshake" else "soon"
    with Manager({"one": spec(name)}, extensions={TASKS: {}}) as manager:
        one = manager["one"]
        operation = one.start_tool(tool, {"text": "done", "seconds": 0.05})
        assert operation.id is not None
        assert (operation.server, operation.tool) == ("one", tool)
        statuses = list(operation)
        assert statuses[-1] == "completed"
        assert operation.result().text == "done"
        assert operation.ended
        assert operation.refresh() is operation
        assert operation.raw["status"] == "completed"
        same = one.operation(operation.id)
        assert same.result().text == "done"
        assert repr(same).startswith("<Operation ")
        if name == "tasks_handshake":
            assert operation.id in [known.id for known in one.list_operations()]
        lasting = one.start_tool("never")
        lasting.cancel()
        with pytest.raises(CallCancelled):
            lasting.result(timeout=10)
        assert lasting.status == "cancelled"


def test_states_and_incidents_are_told_with_the_server_as_this_face_has_it(
    blocking: Manager,
) -> None:
    told: list[tuple[Server, Any]] = []
    blocking.on_state(lambda server, state: told.append((server, state)))
    token = blocking.on_incident(lambda server, incident: told.append((server, incident.exit)))
    one = blocking.add("one", spec("good_handshake"))
    with pytest.raises(ServerDied):
        one.invoke_tool("exit", {"code": 5})
    until(lambda: (one, Exit(code=5)) in told)
    one.wait_ready()
    until(lambda: told[-1] == (one, "up"))
    states = [state for _, state in told]
    assert states[:3] == ["starting", "opening", "up"]
    assert {server for server, _ in told} == {one}
    blocking.off_notification(token)


def test_in_manual_dispatch_notifications_wait_for_a_tick_on_the_threads_own_stack() -> None:
    told: list[Any] = []
    with Manager({"one": GOOD}, dispatch="manual") as manager:
        manager.on_notification(
            "notifications/resources/updated",
            lambda server, params: told.append((threading.get_ident(), params["uri"])),
        )
        one = manager["one"]
        one.invoke_tool("notify", {"n": 3, "uri": "test://a"})
        assert told == []
        assert manager.tick(max_items=1) == TickReport(delivered=1, left=2, dropped=0, failed=0)
        assert manager.tick().delivered == 2
        assert told == [(threading.get_ident(), "test://a")] * 3
    with pytest.raises(UseAfterClose):
        manager.tick()


def test_a_server_that_cannot_start_is_told_where_it_is_used(blocking: Manager) -> None:
    one = blocking.add("one", ["no-such-program-at-all"])
    with pytest.raises(ServerUnavailable, match="no-such-program-at-all"):
        one.start()
    assert one.state in ("failed", "waiting")


def test_a_file_of_servers_makes_a_manager(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    server = {"command": GOOD.command, "args": [str(SERVERS / "good_handshake.py")]}
    file.write_text(json.dumps({"mcpServers": {"one": server}}))
    with Manager.from_config(file, client_name="me") as manager:
        assert manager["one"].invoke_tool("echo", {"text": "hi"}).text == "hi"
