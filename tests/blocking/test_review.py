"""Handlers that leave, and blocks that end after their manager."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from mcpclient.blocking import Manager, Server
from tests.blocking.conftest import until
from tests.conftest import spec

GOOD = spec("good_handshake")
ASK = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}


def test_a_handler_that_leaves_its_thread_keeps_no_other_from_its_notifications(
    blocking: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    states: list[str] = []

    def moved(server: Server, state: str) -> None:
        states.append(state)
        if state == "starting":
            raise SystemExit

    blocking.on_state(moved)
    blocking.add("one", GOOD).start()
    until(lambda: "up" in states)
    assert states == ["starting", "opening", "up"]
    assert "a handler raised" in caplog.text


@pytest.mark.parametrize("plain", [True, False])
def test_an_ask_whose_handler_leaves_is_refused_and_the_manager_stays(plain: bool) -> None:
    def leave(server: Server, params: Any) -> Any:
        raise SystemExit(3)

    async def leave_later(server: Server, params: Any) -> Any:
        raise SystemExit(3)

    with Manager({"asks": spec("asks_handshake")}, on_sample=leave if plain else leave_later) as m:
        assert '"error"' in m["asks"].invoke_tool("ask", ASK, timeout=20).text
        assert "ask" in [tool.name for tool in m["asks"].list_tools()]


def test_a_block_that_ends_after_its_manager_hides_no_error() -> None:
    manager = Manager({"one": GOOD})
    manager.open()
    with pytest.raises(RuntimeError, match="of the block"), manager["one"].subscribe("test://a"):
        manager.close()
        raise RuntimeError("of the block")


def test_threads_that_close_while_others_call_and_open_all_come_to_an_end() -> None:
    for _ in range(5):
        manager = Manager({"one": GOOD})
        ends: list[str] = []

        def use(manager: Manager = manager, ends: list[str] = ends) -> None:
            try:
                manager.open()
                while True:
                    manager["one"].invoke_tool("echo", {"text": "hi"})
            except Exception as problem:
                ends.append(type(problem).__name__)

        users = [threading.Thread(target=use) for _ in range(4)]
        closers = [threading.Thread(target=manager.close) for _ in range(2)]
        for thread in users:
            thread.start()
        until(lambda manager=manager: manager["one"].state == "up")  # type: ignore[misc]
        for thread in closers:
            thread.start()
        for thread in (*users, *closers):
            thread.join(30)
            assert not thread.is_alive()
        assert set(ends) <= {"UseAfterClose", "CallCancelled", "CallLost", "ServerUnavailable"}
