"""A fork of the process has none of the manager's threads; it is told so, and harms nothing."""

from __future__ import annotations

from tests.engine.scripts import ran

FORK = """
pid = os.fork()
if pid == 0:
    for use in uses:
        try:
            print("WRONG: not refused,", use(), flush=True)
        except UseAfterClose as problem:
            print(problem, flush=True)
    manager.close()
    sys.exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""
FORKED = (
    "this process was forked from the one that opened the manager, whose servers are that one's; "
    "make a new manager here"
)


def test_a_fork_cannot_use_a_blocking_manager_and_harms_nothing() -> None:
    lines = ran(
        """
manager = blocking.Manager({"one": GOOD})
manager.open()
one = manager["one"]
subscription = one.subscribe("test://a").__enter__()
uses = [
    lambda: one.invoke_tool("echo", {"text": "hi"}),
    lambda: one.stop(),
    lambda: manager["one"],
    lambda: manager.tick(),
    lambda: manager.add("two", GOOD),
    lambda: manager.on_notification("x", print),
    lambda: subscription.next(timeout=1),
    lambda: manager.open(),
]
"""
        + FORK
        + """
print(one.invoke_tool("echo", {"text": "the parent"}).text, one.generation)
manager.close()
"""
    )
    assert lines == [FORKED] * 8 + ["0", "the parent 1"]


def test_a_fork_cannot_use_handles_and_those_from_before_have_an_end() -> None:
    lines = ran(
        """
manager = handles.Manager({"one": GOOD})
opening = manager.open()
one = manager["one"]
one.start().result()
slow = one.invoke_tool("slow", {"seconds": 600})
done = one.invoke_tool("echo", {"text": "before"})
done.result()
uses = [
    lambda: one.invoke_tool("echo", {"text": "hi"}).result(),
    lambda: slow.result(),
    lambda: slow.done(),
    lambda: slow.cancel(),
    lambda: manager.tick(),
    lambda: manager["one"],
]
"""
        + FORK
        + """
print(one.invoke_tool("echo", {"text": "the parent"}).result().text, one.generation)
print(slow.done(), slow.cancel())
manager.close().result()
"""
    )
    assert lines == [FORKED] * 6 + ["0", "the parent 1", "False True"]


def test_a_fork_may_open_a_manager_of_its_own() -> None:
    lines = ran(
        """
        with blocking.Manager({"one": GOOD}) as manager:
            manager["one"].start()
            later = blocking.Manager({"one": GOOD})
            pid = os.fork()
            if pid == 0:
                with later:
                    print(later["one"].invoke_tool("echo", {"text": "of the child"}).text)
                os._exit(0)
            os.waitpid(pid, 0)
            print(manager["one"].invoke_tool("echo", {"text": "of the parent"}).text)
        """,
        "-u",
    )
    assert lines == ["of the child", "of the parent"]


def test_a_fork_made_by_a_thread_while_others_call_is_refused_too() -> None:
    lines = ran(
        """
        manager = blocking.Manager({"one": GOOD})
        manager.open()
        over = threading.Event()

        def call():
            while not over.is_set():
                manager["one"].invoke_tool("echo", {"text": "hi"})

        callers = [threading.Thread(target=call) for _ in range(4)]
        for caller in callers:
            caller.start()
        codes = []
        for _ in range(20):
            pid = os.fork()
            if pid == 0:
                try:
                    manager["one"].invoke_tool("echo", {"text": "hi"})
                except UseAfterClose:
                    os._exit(3)
                os._exit(4)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        over.set()
        for caller in callers:
            caller.join()
        manager.close()
        print(codes == [3] * 20)
        """
    )
    assert lines == ["True"]
