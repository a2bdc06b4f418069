"""What a process may do while a manager is open: end, and be interrupted. Each in its own."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from tests.engine.scripts import begin, finish, gone, ran

FACES = {
    "blocking": "manager = blocking.Manager({'one': GOOD}); manager.open()",
    "handles": "manager = handles.Manager({'one': GOOD}); manager.open()",
}
face = pytest.mark.parametrize("opened", FACES.values(), ids=FACES)


def interrupt(program: subprocess.Popen[str]) -> None:
    """Send Ctrl-C once the program says that it is about to wait."""
    assert program.stdout is not None
    assert program.stdout.readline() == "waits\n"
    # Whenever the signal comes, before the wait or in it, it must end it.
    os.kill(program.pid, signal.SIGINT)


def test_importing_the_faces_loads_no_loop_and_starts_nothing() -> None:
    lines = ran(
        """
        heavy = {"asyncio", "trio", "concurrent.futures", "subprocess", "socket", "ssl", "queue"}
        heavy |= {"anyio._backends._asyncio", "multiprocessing", "email", "http"}
        print(sorted(heavy & set(sys.modules)), len(threading.enumerate()))
        manager = blocking.Manager({"one": GOOD})
        handles.Manager({"one": GOOD}).close()
        print(sorted(heavy & set(sys.modules)), len(threading.enumerate()), len(manager))
        """
    )
    assert lines == ["[] 1", "[] 1 1"]


@face
def test_the_end_of_the_interpreter_closes_what_is_open_with_a_call_in_flight(
    opened: str,
) -> None:
    [pid] = ran(
        f"""
        {opened}
        one = manager["one"]
        if (started := one.start()) is not None:
            started.result()
            one.invoke_tool("slow", {{"seconds": 600}})
        else:
            def call():
                try:
                    one.invoke_tool("slow", {{"seconds": 600}})
                except CallCancelled:
                    pass
            threading.Thread(target=call, daemon=True).start()
        print(one.pid)
        """
    )
    assert gone(pid)


@face
def test_a_program_that_exits_while_a_server_starts_leaves_none(opened: str) -> None:
    program = begin(
        f"""
        {opened}
        one = manager["one"]
        threading.Thread(target=one.start, daemon=True).start()
        while (pid := one.pid) is None:
            time.sleep(0.001)
        print(pid, flush=True)
        sys.exit(7)
        """
    )
    out, _ = program.communicate(timeout=60)  # the daemon may complain; it was cut off
    assert program.returncode == 7
    assert gone(out)


def test_threads_that_outlive_the_main_one_are_still_answered() -> None:
    lines = ran(
        """
        manager = blocking.Manager({"one": GOOD})
        manager.open()

        def work():
            threading.main_thread().join()
            for n in range(3):
                print(manager["one"].invoke_tool("echo", {"text": f"still {n}"}).text)

        threading.Thread(target=work).start()
        """
    )
    assert lines == ["still 0", "still 1", "still 2"]


def test_ctrl_c_ends_the_call_that_waits_tells_the_server_and_nothing_else() -> None:
    program = begin(
        """
        import json
        manager = blocking.Manager({"one": GOOD})
        manager.open()
        one = manager["one"]
        one.start()

        def tell(calls):
            while one.status().calls == calls:
                time.sleep(0.001)
            print("waits", flush=True)

        for n in range(2):
            try:
                threading.Thread(target=tell, args=[one.status().calls]).start()
                one.invoke_tool("slow", {"seconds": 600})
            except KeyboardInterrupt:
                print("interrupted", flush=True)
        received = json.loads(one.invoke_tool("journal").text)
        slow = [m["id"] for m in received if (m.get("params") or {}).get("name") == "slow"]
        gone = [m for m in received if m["method"] == "notifications/cancelled"]
        told = [m["params"]["requestId"] for m in gone]
        print(told == slow, len(slow), one.generation, one.state)
        manager.close()
        """
    )
    assert program.stdout is not None
    for _ in range(2):
        interrupt(program)
        assert program.stdout.readline() == "interrupted\n"
    assert finish(program) == ["True 2 1 up"]


def test_ctrl_c_while_a_server_opens_leaves_a_manager_that_can_be_closed() -> None:
    program = begin(
        """
        silent = [sys.executable, "-c", "import sys; sys.stdin.read()"]
        with blocking.Manager({"one": silent}) as manager:
            one = manager["one"]

            def tell():
                while one.state != "opening":
                    time.sleep(0.001)
                print("waits", flush=True)

            try:
                threading.Thread(target=tell).start()
                one.start(timeout=None)
            except KeyboardInterrupt:
                print(one.pid, one.state, flush=True)
        print("closed")
        """
    )
    interrupt(program)
    state, closed = finish(program)
    assert closed == "closed"
    assert state.endswith("opening")
    assert gone(state.split()[0])


def test_ctrl_c_while_updates_are_awaited_ends_the_program_cleanly() -> None:
    program = begin(
        """
        try:
            with blocking.Manager({"one": GOOD}) as manager:
                with manager["one"].subscribe("test://a") as updates:
                    print("waits", flush=True)
                    for update in updates:
                        print(update)
        except KeyboardInterrupt:
            print("interrupted", manager["one"].state)
        """
    )
    interrupt(program)
    assert finish(program) == ["interrupted idle"]
