"""Many threads at once, handlers on threads of their own, and loops that run here already."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import threading
from typing import Any

import anyio
import pytest

from mcpclient import CallTimedOut, LocalProtocolError, Refuse
from mcpclient.blocking import Manager, Server
from tests.blocking.conftest import until
from tests.cases import case
from tests.conftest import ROOT, SERVERS, eventually, spec

GOOD = spec("good_handshake")
MESSAGE = "notifications/message"
UPDATED = "notifications/resources/updated"
SAID = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
ASK = {
    "method": "sampling/createMessage",
    "params": {"messages": [], "maxTokens": 1},
}


def test_many_threads_call_many_servers_and_each_gets_its_own_answers() -> None:
    right: list[int] = []
    with Manager({f"server {n}": spec("bench_echo") for n in range(4)}) as manager:

        def work(number: int) -> None:
            server = manager[f"server {number % 4}"]
            found = 0
            for call in range(64):
                text = f"{number} {call} é"
                found += server.invoke_tool("echo", {"text": text}).text == text
            right.append(found)

        threads = [threading.Thread(target=work, args=[number]) for number in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert right == [64] * 32  # 2048 calls
        assert sum(one.calls for one in manager.status().servers) >= 2048
        assert sum(one.in_flight for one in manager.status().servers) == 0


def test_threads_that_wait_do_not_hold_each_other_up(blocking: Manager) -> None:
    one = blocking.add("one", GOOD)
    one.start()
    slow = threading.Thread(target=lambda: one.call_tool("slow", {"seconds": 600}, timeout=600))
    slow.daemon = True
    slow.start()
    until(lambda: one.status().in_flight)
    for n in range(20):
        assert one.invoke_tool("echo", {"text": str(n)}).text == str(n)
    assert slow.is_alive()
    with pytest.raises(CallTimedOut):
        one.call_tool("slow", {"seconds": 600}, timeout=0.01)
    quiet = threading.excepthook
    threading.excepthook = lambda args: None  # its call is cancelled by the stop
    try:
        one.stop()
        slow.join(10)
    finally:
        threading.excepthook = quiet
    assert not slow.is_alive()


def test_progress_is_told_on_the_thread_that_waits_and_may_itself_call(blocking: Manager) -> None:
    one = blocking.add("one", GOOD)
    told: list[Any] = []

    def progress(done: float, total: float | None, message: str | None) -> None:
        text = one.invoke_tool("echo", {"text": f"at {done}"}).text
        told.append((threading.get_ident(), done, total, text))
        raise ValueError("which is logged and nothing else")

    assert one.invoke_tool("progress", {"n": 3}, on_progress=progress).text
    me = threading.get_ident()
    assert told == [(me, n, 3, f"at {n}") for n in (1, 2, 3)]


def test_an_async_progress_handler_is_awaited_before_the_call_returns(blocking: Manager) -> None:
    one = blocking.add("one", GOOD)
    told: list[float] = []

    async def progress(done: float, total: float | None, message: str | None) -> None:
        await asyncio.sleep(0)
        told.append(done)

    one.invoke_tool("progress", {"n": 3}, on_progress=progress)
    assert told == [1, 2, 3]


def test_progress_of_a_slow_handler_is_bounded_and_the_newest_counts(blocking: Manager) -> None:
    one = blocking.add("one", GOOD)
    one.start()
    made = one.status().calls
    told: list[float] = []
    go = threading.Event()

    def progress(done: float, total: float | None, message: str | None) -> None:
        go.wait(10)
        told.append(done)

    def call() -> None:
        one.invoke_tool("progress", {"n": 500}, on_progress=progress)

    caller = threading.Thread(target=call)
    caller.start()
    until(lambda: one.status().calls > made and not one.status().in_flight)
    go.set()
    caller.join(20)
    assert told[-1] == 500
    assert len(told) <= 102
    assert told == sorted(told)


def test_handlers_of_notifications_have_one_thread_and_may_call(
    blocking: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    one = blocking.add("one", GOOD)
    told: list[Any] = []

    def handler(server: Server, params: Any) -> None:
        told.append((threading.current_thread().name, server.read_resource("test://a").text))

    def wrong(server: Server, params: Any) -> None:
        raise ValueError("of the user's own")

    async def later(server: Server, params: Any) -> None:
        await asyncio.sleep(0)
        told.append("later")

    blocking.on_notification(UPDATED, wrong)
    blocking.on_notification(UPDATED, handler)
    blocking.on_notification(UPDATED, later)
    one.invoke_tool("notify", {"n": 2, "uri": "test://a"})
    until(lambda: len(told) == 4)
    assert told == [("mcpclient notifications", "this is a"), "later"] * 2
    assert caplog.text.count("ValueError: of the user's own") == 2


def test_a_handler_may_remove_itself_and_register_others(blocking: Manager) -> None:
    one = blocking.add("one", GOOD)
    told: list[str] = []

    def second(server: Server, params: Any) -> None:
        told.append("second")

    def first(server: Server, params: Any) -> None:
        told.append("first")
        blocking.on_notification(UPDATED, second)
        blocking.off_notification(token)

    token = blocking.on_notification(UPDATED, first)
    one.invoke_tool("notify", {"n": 3, "uri": "test://a"})
    until(lambda: len(told) >= 3)
    assert told == ["first", "second", "second"]


@case("B258")
def test_a_handler_that_blocks_holds_up_nobody_who_reads(blocking: Manager) -> None:
    one = blocking.add("one", GOOD)
    began, go = threading.Event(), threading.Event()

    def handler(server: Server, params: Any) -> None:
        began.set()
        go.wait(20)

    blocking.on_notification(UPDATED, handler)
    one.invoke_tool("notify", {"uri": "test://a"})
    assert began.wait(10)
    text = "x" * 400_000  # much more than a pipe holds
    assert one.invoke_tool("echo", {"text": text}).text == text
    go.set()


def asks(manager: Manager) -> Server:
    return manager.add("asks", spec("asks_handshake"))


def test_asks_are_answered_on_threads_of_their_own_that_may_call() -> None:
    threads: list[str] = []

    def sample(server: Server, params: Any) -> Any:
        threads.append(threading.current_thread().name)
        assert "ask" in [tool.name for tool in server.list_tools()]
        return {**SAID, "content": {"type": "text", "text": "from within"}}

    def roots(server: Server) -> list[str]:
        return ["file:///here"]

    with Manager(on_sample=sample, roots=roots) as manager:
        server = asks(manager)
        assert "from within" in server.invoke_tool("ask", ASK).text
        assert "file:///here" in server.invoke_tool("ask", {"method": "roots/list"}).text
    [thread] = threads
    assert thread != threading.current_thread().name
    assert thread not in ("mcpclient", "mcpclient notifications")


def test_a_handler_that_refuses_or_fails_is_told_to_the_server() -> None:
    def sample(server: Server, params: Any) -> Any:
        raise Refuse("not for you")

    with Manager(on_sample=sample) as manager:
        text = asks(manager).invoke_tool("ask", ASK).text
        assert "not for you" in text


def test_a_blocking_verb_in_an_async_handler_is_refused_and_does_not_hang() -> None:
    problems: list[Exception] = []

    async def sample(server: Server, params: Any) -> Any:
        try:
            server.list_tools()
        except LocalProtocolError as problem:
            problems.append(problem)
        return SAID

    with Manager(on_sample=sample) as manager:
        assert "hi" in asks(manager).invoke_tool("ask", ASK).text
    assert "use a plain handler, which has its own thread" in str(problems[0])


def test_closing_from_a_handler_ends_the_call_that_waits() -> None:
    manager = Manager({"one": GOOD})
    manager.open()
    one = manager["one"]
    closed = threading.Event()

    def handler(server: Server, params: Any) -> None:
        manager.close()
        closed.set()

    manager.on_notification(UPDATED, handler)
    one.invoke_tool("notify", {"uri": "test://a"})
    assert closed.wait(20)
    assert one.state == "idle"


# -- loops that run here -------------------------------------------------------------------


async def test_it_works_inside_a_running_loop_and_from_its_worker_threads() -> None:
    with Manager({"one": GOOD}) as manager:
        one = manager["one"]
        assert one.invoke_tool("echo", {"text": "blocks the loop"}).text == "blocks the loop"
        texts = []

        async def call(number: int) -> None:
            work = lambda: one.invoke_tool("echo", {"text": str(number)})  # noqa: E731
            texts.append((await anyio.to_thread.run_sync(work)).text)

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(call, number)
        assert sorted(texts) == list("01234567")
    await eventually(lambda: one.state == "idle")


class NoFile(io.StringIO):
    """A stderr as notebooks have it: text may be written to it, but it has no descriptor."""

    def fileno(self) -> int:
        raise io.UnsupportedOperation("fileno")


@case("B251")
def test_a_notebook_whose_stderr_has_no_descriptor_runs_servers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    err, out = NoFile(), NoFile()
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stdin", None)

    async def cell() -> tuple[str, str]:
        with Manager({"one": GOOD}) as manager:
            text = manager["one"].invoke_tool("stderr", {"n": 16})
            return text.text, manager["one"].stderr_tail()

    _, tail = asyncio.run(cell())
    assert tail == "0123456789abcde\n"
    assert (err.getvalue(), out.getvalue()) == ("", "")


@case("B252")
def test_patched_loops_and_other_policies_do_not_reach_the_loop_of_its_own() -> None:
    # In a process of its own: the patch is of the whole of asyncio, and for ever.
    code = """
import asyncio, sys, threading
import nest_asyncio, uvloop
from mcpclient.blocking import Manager

asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
plain = asyncio.SelectorEventLoop()
nest_asyncio.apply(plain)

async def cell():
    with Manager({"one": sys.argv[1:]}) as manager:
        print(manager["one"].invoke_tool("echo", {"text": "in a cell"}).text)
        work = lambda: print(manager["one"].invoke_tool("echo", {"text": "in a thread"}).text)
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        plain.run_until_complete(nested(manager))  # as a notebook would, in the loop that runs

async def nested(manager):
    print(manager["one"].invoke_tool("echo", {"text": "nested"}).text)

plain.run_until_complete(cell())
plain.close()
with Manager({"one": sys.argv[1:]}) as manager:
    print(manager["one"].invoke_tool("echo", {"text": "outside"}).text)
"""
    ran = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-c",
            code,
            sys.executable,
            str(SERVERS / "good_handshake.py"),
        ],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.splitlines() == ["in a cell", "in a thread", "nested", "outside"]
