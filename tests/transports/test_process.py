"""Children and their groups: signalled, swept, reaped once, and never signalled after that."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpclient.ground.exits import Exit
from mcpclient.transports import process as process_module
from mcpclient.transports.process import Child, Command, Ticket
from tests.conftest import alive


@pytest.fixture(params=["pidfd", "no pidfd"], autouse=True)
def exit_descriptor(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """All of it with and without a descriptor that tells of the end."""
    if request.param == "no pidfd":

        def refuse(pid: int) -> int:
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr(os, "pidfd_open", refuse)
    return str(request.param)


@pytest.fixture
def begin() -> Iterator[Callable[..., Child]]:
    """Start shell scripts; whatever the test does, they are gone after it."""
    begun: list[Child] = []

    def start(script: str, *, kill_tree: bool = True) -> Child:
        child = Child(Command(("/bin/sh", "-c", script)), kill_tree=kill_tree)
        begun.append(child)
        return child

    yield start
    for child in begun:
        child.abandon()


def wait_for(fact: Callable[[], object], within: float = 10.0) -> object:
    end = time.monotonic() + within
    while not (found := fact()):
        assert time.monotonic() < end, f"did not come true within {within} s"
        time.sleep(0.002)
    return found


def read_line(child: Child) -> str:
    os.set_blocking(child.stdout, True)
    found = b""
    while not found.endswith(b"\n"):
        part = os.read(child.stdout, 1)
        assert part, "the child said nothing"
        found += part
    os.set_blocking(child.stdout, False)
    return found.decode().strip()


# -- one process ---------------------------------------------------------------------------


def test_a_child_leads_a_session_and_group_of_its_own(begin: Callable[..., Child]) -> None:
    child = begin("echo ready; exec cat")
    read_line(child)
    assert os.getpgid(child.pid) == child.pid
    assert os.getsid(child.pid) == child.pid
    assert os.getsid(0) != child.pid


def test_our_ends_are_not_inherited_and_do_not_block(
    begin: Callable[..., Child], exit_descriptor: str
) -> None:
    child = begin("exec cat")
    ends = [child.stdin, child.stdout, child.stderr]
    assert not any(os.get_blocking(fd) for fd in ends)
    if exit_descriptor == "pidfd":
        assert child.exit_fd is not None
        ends.append(child.exit_fd)
    else:
        assert child.exit_fd is None
    assert not any(os.get_inheritable(fd) for fd in ends)


def test_no_other_child_holds_our_end_of_a_child_s_stdin(begin: Callable[..., Child]) -> None:
    first = begin("exec cat")
    second = begin("exec cat")
    first.close_stdin()
    wait_for(first.ended)
    assert first.reap() == Exit(code=0)
    assert not second.ended()


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exit 0", Exit(code=0)),
        ("exit 3", Exit(code=3)),
        ("kill -TERM $$", Exit(signal=signal.SIGTERM)),
        ("kill -KILL $$", Exit(signal=signal.SIGKILL)),
    ],
)
def test_an_end_is_seen_before_it_is_reaped_and_stays_known(
    begin: Callable[..., Child], script: str, expected: Exit
) -> None:
    child = begin(script)
    wait_for(child.ended)
    assert Path(f"/proc/{child.pid}").exists(), "looking is not reaping"
    assert child.reap() == expected
    assert not Path(f"/proc/{child.pid}").exists()
    assert child.ended()
    assert child.reap() == expected


def test_a_child_that_runs_is_not_reaped(begin: Callable[..., Child]) -> None:
    child = begin("exec cat")
    assert not child.ended()
    assert child.reap() is None


def test_closing_twice_closes_nothing_of_others(begin: Callable[..., Child]) -> None:
    child = begin("exit 0")
    numbers = {child.stdin, child.stdout, child.stderr}
    wait_for(child.ended)
    child.reap()
    child.close()
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(4)]
    assert numbers & set(others), "the numbers are used again"
    child.close()
    child.close_stdin()
    for fd in others:
        os.fstat(fd)
        os.close(fd)


# -- the group -----------------------------------------------------------------------------


def test_a_signal_reaches_the_whole_group(begin: Callable[..., Child]) -> None:
    child = begin("sleep 300 & echo $!; wait")
    grandchild = int(read_line(child))
    child.signal(signal.SIGTERM)
    wait_for(lambda: not alive(grandchild))
    wait_for(child.ended)
    assert child.reap() == Exit(signal=signal.SIGTERM)


def test_without_the_tree_a_signal_reaches_the_process_alone(begin: Callable[..., Child]) -> None:
    child = begin("sleep 300 & echo $!; wait", kill_tree=False)
    grandchild = int(read_line(child))
    try:
        child.signal(signal.SIGTERM)
        wait_for(child.ended)
        child.sweep()
        assert child.reap() == Exit(signal=signal.SIGTERM)
        child.abandon()
        assert alive(grandchild)
    finally:
        os.kill(grandchild, signal.SIGKILL)


def test_what_a_dead_leader_left_behind_is_swept(begin: Callable[..., Child]) -> None:
    child = begin("sleep 300 & echo $!; exit 5")
    grandchild = int(read_line(child))
    wait_for(child.ended)
    assert alive(grandchild)
    child.sweep()
    wait_for(lambda: not alive(grandchild))
    assert child.reap() == Exit(code=5), "the leader's own end is not changed by that"


def test_a_pid_that_was_reaped_is_never_signalled(
    begin: Callable[..., Child], monkeypatch: pytest.MonkeyPatch
) -> None:
    child = begin("exit 0")
    wait_for(child.ended)
    assert child.reap() == Exit(code=0)
    signalled: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *facts: signalled.append(facts))
    monkeypatch.setattr(os, "killpg", lambda *facts: signalled.append(facts))
    child.signal(signal.SIGTERM)
    child.sweep()
    child.abandon()
    assert signalled == []


def test_a_child_that_somebody_else_reaped_ended_in_an_unknown_way(
    begin: Callable[..., Child],
) -> None:
    child = begin("exit 0")
    os.waitpid(child.pid, 0)
    assert child.ended()
    assert child.reap() == Exit()
    assert str(child.reap()) == "exit status unknown"


# -- abandoning ----------------------------------------------------------------------------


def test_an_abandoned_child_is_gone_with_its_group_and_its_pipes(
    begin: Callable[..., Child],
) -> None:
    child = begin("trap '' TERM; sleep 300 & echo $!; wait")
    grandchild = int(read_line(child))
    child.abandon()
    assert child.reap() == Exit(signal=signal.SIGKILL)
    assert not Path(f"/proc/{child.pid}").exists()
    wait_for(lambda: not alive(grandchild))
    assert (child.stdin, child.stdout, child.stderr) == (-1, -1, -1)
    child.abandon()


def test_abandoning_a_dead_child_sweeps_its_group(begin: Callable[..., Child]) -> None:
    child = begin("sleep 300 & echo $!; exit 5")
    grandchild = int(read_line(child))
    wait_for(child.ended)
    child.abandon()
    wait_for(lambda: not alive(grandchild), within=2)
    assert child.reap() == Exit(code=5)


# -- a claim on a child that a thread starts -----------------------------------------------


def test_a_ticket_that_is_kept_gives_the_child() -> None:
    ticket = Ticket()
    child = ticket.spawn(Command(("/bin/cat",)), kill_tree=True)
    assert not child.ended()
    ticket.void()
    assert not Path(f"/proc/{child.pid}").exists()


def test_a_ticket_that_was_void_before_the_start_leaves_no_process() -> None:
    ticket = Ticket()
    ticket.void()
    child = ticket.spawn(Command(("/bin/cat",)), kill_tree=True)
    assert not Path(f"/proc/{child.pid}").exists()
    assert child.reap() == Exit(signal=signal.SIGKILL)
    assert child.stdin == -1


def test_a_ticket_that_becomes_void_during_the_start_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made, go_on = threading.Event(), threading.Event()
    children: list[Child] = []

    class Slow(Child):
        def __init__(self, command: Command, **options: Any) -> None:
            super().__init__(command, **options)
            children.append(self)
            made.set()
            assert go_on.wait(10)

    monkeypatch.setattr(process_module, "Child", Slow)
    ticket = Ticket()
    thread = threading.Thread(target=lambda: ticket.spawn(Command(("/bin/cat",)), kill_tree=True))
    thread.start()
    assert made.wait(10)
    ticket.void()
    assert alive(children[0].pid), "the thread has not handed it over yet"
    go_on.set()
    thread.join()
    assert not Path(f"/proc/{children[0].pid}").exists()
