"""What all tests share: both backends, the fixture servers, and the proof that nothing is left."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest

from mcpclient import Manager, RestartPolicy, ServerSpec, Timeouts

if TYPE_CHECKING:
    from tests.frames import Frames

# A shell that runs us in the background has us ignore these, and children inherit that: a test that
# sends one to a child would wait for ever.
for _number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(
            _number,
            signal.default_int_handler if _number == signal.SIGINT else signal.SIG_DFL,
        )

ROOT = Path(__file__).resolve().parent.parent
SERVERS = ROOT / "fixtures" / "servers"
SHARED = ROOT.parent / "shared"
PASSED = pytest.StashKey[bool]()

# Short pauses and no chance in them, so that a test of restarts is quick and repeatable.
QUICK = RestartPolicy(first=0.01, cap=0.05, jitter=0.0)


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Every asynchronous test runs on both."""
    return str(request.param)


def spec(name: str, *args: object, **options: Any) -> ServerSpec:
    """Return the spec of a fixture server; it restarts quickly and stops impatiently."""
    options.setdefault("restart", QUICK)
    options.setdefault("timeouts", Timeouts(eof=1.0, term=0.5))
    argv = [str(SERVERS / f"{name}.py"), *map(str, args)]
    return ServerSpec(sys.executable, argv, **options)


def real_servers() -> dict[str, list[str]]:
    """Return the commands of the servers that we did not write, as far as they are set up."""
    path = ROOT / ".real" / "servers.json"
    if not path.exists():
        return {}
    return {name: one["command"] for name, one in json.loads(path.read_text()).items()}


@pytest.fixture
async def manager() -> AsyncIterator[Manager]:
    """An open manager without servers; use ``await manager.add(name, spec(...))``."""
    async with Manager() as opened:
        yield opened


async def eventually(fact: Callable[[], Any], within: float = 10.0) -> Any:
    """Wait until a fact holds and return it; fail if it does not in time."""
    end = time.monotonic() + within
    while not (found := fact()):
        if time.monotonic() > end:
            pytest.fail(f"did not come true within {within} s")
        await anyio.sleep(0.005)
    return found


def alive(pid: int) -> bool:
    """Return whether a process exists and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


# -- every frame is lawful -----------------------------------------------------------------


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Note that a test did all that it wanted to, for what is asked after it."""
    yield
    item.stash[PASSED] = True


@pytest.fixture(autouse=True)
def frames(request: pytest.FixtureRequest) -> Iterator[Frames]:
    """Fail a test whose connections send what the schema of their version forbids.

    One that does so on purpose is marked ``odd_frames`` with the reason; it fails if it does not.
    """
    from tests.frames import watch  # it needs this module

    frames = watch()
    yield frames
    mark = request.node.get_closest_marker("odd_frames")
    excuse = None if mark is None else str(*mark.args)
    if problem := frames.judge(excuse, passed=request.node.stash.get(PASSED, False)):
        pytest.fail(problem, pytrace=False)


# -- nothing is left -----------------------------------------------------------------------


def children() -> set[int]:
    """Return our direct children, zombies included."""
    found: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        try:
            found |= {int(pid) for pid in (task / "children").read_text().split()}
        except OSError:
            continue
    return found


def descriptors() -> dict[int, str]:
    """Return our open descriptors and what they lead to."""
    found = {}
    for name in os.listdir("/proc/self/fd"):
        try:
            found[int(name)] = os.readlink(f"/proc/self/fd/{name}")
        except OSError:
            continue  # the descriptor of this very listing
    return found


def threads() -> set[str]:
    """Return our threads, without the loops' own pools, which end by themselves."""
    pools = ("AnyIO worker thread", "Trio thread", "Trio worker thread")
    return {one.name for one in threading.enumerate() if not one.name.startswith(pools)}


def tasks() -> set[str]:
    """Return the running loop's tasks that are ours."""
    if "trio" in sys.modules:
        trio = sys.modules["trio"]
        if trio.lowlevel.in_trio_task():
            todo, found = [trio.lowlevel.current_root_task()], set()
            while todo:
                task = todo.pop()
                if task.name.startswith("mcpclient"):
                    found.add(task.name)
                for nursery in task.child_nurseries:
                    todo += nursery.child_tasks
            return found
    import asyncio

    names = (task.get_name() for task in asyncio.all_tasks())
    return {name for name in names if name.startswith("mcpclient")}


@pytest.fixture(autouse=True)
def nothing_is_left(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that leaves a child, a thread or a descriptor, or a task of ours in its loop."""
    if "anyio_backend" in request.fixturenames:
        request.getfixturevalue("no_task_is_left")
    before = children(), set(descriptors()), threads()
    yield
    end = time.monotonic() + 5
    while (after := (children(), set(descriptors()), threads())) != before:
        if not (after[0] - before[0] or after[1] - before[1] or after[2] - before[2]):
            break  # less than before is no leak
        # A manager that was never closed may wait for the collector, and its watchdog with it.
        gc.collect()
        if time.monotonic() > end:
            opened = {fd: name for fd, name in descriptors().items() if fd not in before[1]}
            pytest.fail(
                f"left behind: children {after[0] - before[0]}, descriptors {opened}, "
                f"threads {after[2] - before[2]}"
            )
        time.sleep(0.01)


@pytest.fixture
async def no_task_is_left(anyio_backend: str) -> AsyncIterator[None]:
    """Fail an asynchronous test that leaves a task of ours in its loop."""
    yield
    await eventually(lambda: not tasks(), within=5)
