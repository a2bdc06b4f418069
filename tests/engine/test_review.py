"""Where threads, signals and the portal meet at the worst moment."""

from __future__ import annotations

import signal
import threading
import time
import traceback
from typing import Any

import pytest

from mcpclient.engine.calls import Call
from mcpclient.engine.portal import Portal
from tests.engine.scripts import begin, finish, ran


async def nothing() -> None:
    pass


def opened() -> Portal:
    portal = Portal(nothing, nothing)
    portal.open().wait()
    return portal


def closed(portal: Portal) -> None:
    portal.close().wait()
    portal.join()


class Gate:
    """A lock that two threads ask for at the same time, and one of them gets late."""

    def __init__(self, lock: Any, late: threading.Event) -> None:
        self._lock = lock
        self._late = late
        self._both = threading.Barrier(2)
        self._first = threading.Semaphore(1)

    def __enter__(self) -> Any:
        self._both.wait(10)
        if not self._first.acquire(blocking=False):
            assert self._late.wait(10)
        return self._lock.__enter__()

    def __exit__(self, *problem: object) -> Any:
        return self._lock.__exit__(*problem)


def test_two_threads_that_wake_the_loop_at_once_do_not_leave_it_asleep_for_ever() -> None:
    portal = opened()
    end = time.monotonic() + 10
    while not portal._asleep:
        assert time.monotonic() < end
    begun = threading.Event()
    given = [threading.Event(), threading.Event()]

    def work() -> None:  # on the loop, before it empties its pipe
        begun.set()
        for each in given:
            assert each.wait(10)

    def give(mine: threading.Event) -> None:
        portal.post(work)
        mine.set()

    lock = portal.lock
    portal.lock = Gate(lock, begun)  # type: ignore[assignment]  # a lock as far as it is used
    givers = [threading.Thread(target=give, args=[each]) for each in given]
    for giver in givers:
        giver.start()
    for giver in givers:
        giver.join()
    portal.lock = lock
    try:
        for _ in range(3):
            call = Call(portal, nothing)
            portal.submit(call)
            assert call.wait(10), "the loop sleeps, and nobody wakes it"
    finally:
        portal._waking = False  # else the end of a failed test would never come
        closed(portal)


def test_ctrl_c_while_the_thread_starts_leaves_none_and_it_may_be_opened_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []

    async def note() -> None:
        events.append("opened or closed")

    started: list[threading.Thread] = []

    class Interrupted(threading.Thread):
        def start(self) -> None:
            super().start()
            started.append(self)
            raise KeyboardInterrupt

    portal = Portal(note, note)
    with monkeypatch.context() as patch:
        patch.setattr("mcpclient.engine.portal.threading.Thread", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            portal.open()
    started[0].join(10)
    assert not started[0].is_alive()
    assert (events, portal.calls) == ([], set())
    portal.open().wait()
    closed(portal)
    assert len(events) == 2


def test_ctrl_c_while_the_thread_starts_leaves_what_can_be_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Interrupted(threading.Thread):
        def start(self) -> None:
            super().start()
            raise KeyboardInterrupt

    portal = Portal(nothing, nothing)
    with monkeypatch.context() as patch:
        patch.setattr("mcpclient.engine.portal.threading.Thread", Interrupted)
        with pytest.raises(KeyboardInterrupt):
            portal.open()
    assert portal.close().wait(10)


def test_a_fault_that_cannot_be_copied_does_not_grow_by_those_who_ask() -> None:
    portal = opened()

    async def fail() -> None:
        raise ValueError("of the user's own")

    call = Call(portal, fail)
    portal.submit(call)
    call.wait()
    traces = []
    for _ in range(20):
        with pytest.raises(ValueError, match="of the user's own") as told:
            call.take()
        traces.append([frame.name for frame in traceback.extract_tb(told.value.__traceback__)])
    assert all(trace == traces[0] for trace in traces)
    assert traces[0][-1] == "fail"
    closed(portal)


def test_work_that_leaves_the_program_ends_its_waiter_and_not_the_loop() -> None:
    portal = opened()

    async def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        portal.run(leave)
    assert portal.run(nothing) is None
    closed(portal)


def test_many_threads_may_close_at_once_and_all_of_them_wait_for_the_end() -> None:
    go, ends = threading.Event(), []

    async def close() -> None:
        import asyncio

        await asyncio.get_running_loop().run_in_executor(None, go.wait)

    portal = Portal(nothing, close)
    portal.open()  # not waited for: some close while it opens

    def end() -> None:
        ends.append(portal.close().wait(10))

    closers = [threading.Thread(target=end) for _ in range(8)]
    for closer in closers:
        closer.start()
    assert ends == []
    go.set()
    for closer in closers:
        closer.join()
    portal.join()
    assert ends == [True] * 8


def test_ctrl_c_while_all_is_closed_leaves_at_once_and_closing_again_waits_for_the_end() -> None:
    program = begin(
        """
        stubborn = '''
        import signal, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        import json
        for line in sys.stdin:
            message = json.loads(line)
            if message["method"] == "initialize":
                result = {"protocolVersion": "2025-11-25", "capabilities": {},
                          "serverInfo": {"name": "s", "version": "1"}}
                print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}),
                      flush=True)
            elif "id" in message:
                error = {"code": -32601, "message": "no"}
                print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}),
                      flush=True)
        time.sleep(600)
        '''
        import textwrap
        argv = [sys.executable, "-c", textwrap.dedent(stubborn)]
        try:
            with blocking.Manager({"one": argv}) as manager:
                one = manager["one"]
                one.start()
                pid = one.pid

                def tell():
                    while one.state != "stopping":
                        time.sleep(0.001)
                    print("waits", flush=True)

                threading.Thread(target=tell).start()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        manager.close()
        print(os.path.exists(f"/proc/{pid}"))
        """
    )
    assert program.stdout is not None
    assert program.stdout.readline() == "waits\n"
    program.send_signal(signal.SIGINT)
    assert finish(program) == ["interrupted", "False"]


def test_processes_of_multiprocessing_are_refused_or_have_a_manager_of_their_own() -> None:
    lines = ran(
        """
        import multiprocessing

        manager = blocking.Manager({"one": GOOD})

        def use():
            try:
                manager["one"].invoke_tool("echo", {"text": "hi"})
            except UseAfterClose as problem:
                print("forked" in str(problem), flush=True)
            with blocking.Manager({"one": GOOD}) as own:
                print(own["one"].invoke_tool("echo", {"text": "own"}).text, flush=True)

        manager.open()
        manager["one"].start()
        context = multiprocessing.get_context("fork")
        child = context.Process(target=use)
        child.start()
        child.join()
        print(child.exitcode, manager["one"].invoke_tool("echo", {"text": "parent"}).text)
        manager.close()
        """
    )
    assert lines == ["True", "own", "0 parent"]


def test_the_debug_mode_of_asyncio_complains_of_nothing() -> None:
    lines = ran(
        """
        with blocking.Manager({"one": GOOD}) as manager:
            print(manager["one"].invoke_tool("echo", {"text": "hi"}).text)
        with handles.Manager({"one": GOOD}) as manager:
            print(manager["one"].invoke_tool("echo", {"text": "hi"}).result().text)
        """,
        "-X",
        "dev",
    )
    assert lines == ["hi", "hi"]


def test_closing_in_an_exit_handler_of_ones_own_is_no_fault() -> None:
    lines = ran(
        """
        import atexit

        manager = blocking.Manager({"one": GOOD})
        atexit.register(lambda: (manager.close(), print("after ours")))
        manager.open()
        print(manager["one"].invoke_tool("echo", {"text": "hi"}).text)
        other = handles.Manager({"one": GOOD})
        other.open()
        atexit.register(lambda: (other.close().result(), print("before ours")))
        other["one"].invoke_tool("slow", {"seconds": 600})
        """
    )
    assert lines == ["hi", "before ours", "after ours"]
