"""Twenty servers, two hundred callers, and gremlins; every call's end is written down and checked.

What is random comes from the seed, each actor with a generator of its own. What happens is not
repeatable all the same: processes and loops have their own pace.
"""

from __future__ import annotations

import gc
import logging
import os
import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
from msgspec import Struct, field

from mcpclient import (
    CallLost,
    Limits,
    Manager,
    McpClientError,
    RemoteProtocolError,
    RestartPolicy,
    Server,
    ServerSpec,
    ServerUnavailable,
    Timeouts,
    UseAfterClose,
)
from tests.conftest import SERVERS, alive, children, descriptors, threads

TIMEOUTS = Timeouts(open=5, probe=1, call=2, call_max=5, write=0.5, eof=0.2, term=0.2, settle=0.05)
LIMITS = Limits(frame=1_000_000, stderr=10_000, inbox=200, retired=100, incidents=5)
# Restarted for ever, or given up now and then, so that somebody has to start it again.
PATIENT = RestartPolicy(first=0.01, cap=0.1, burst=1_000_000)
STRICT = RestartPolicy(first=0.01, cap=0.05, burst=3, reset_after=1)
# What the wild server does.
BEFORE = ["garbage", "flood", "stderr", "notices", "storm", "oversize", "slow"]
INSTEAD = ["exit", "half", "broken", "silent"]
AFTER = ["twice", "deaf", "mute", "hang"]
# What a call may end with, besides its answer.
EXPECTED = (CallLost, ServerUnavailable, RemoteProtocolError)


class Plan(Struct, frozen=True, kw_only=True):
    """How much of what.

    Attributes:
        seed: Where chance comes from.
        seconds: How long it goes on.
        servers: How many servers.
        callers: How many callers.
        slack: How much later than its time-out a call may end, in seconds: the loop is busy.
    """

    seed: int = 1
    seconds: float = 30.0
    servers: int = 20
    callers: int = 200
    slack: float = 2.0


class Figures(Struct, kw_only=True):
    """What happened.

    Attributes:
        begun: Calls begun.
        ended: How calls ended: by error class, ``answered`` or ``given up``.
        deeds: What the gremlins did.
        faults: What must not be, in words.
        worst: The longest time a call took over its time-out, in seconds.
        restarts: Lives that policies began.
        incidents: Deaths nobody asked for.
        updates: Notifications delivered.
        dropped: Notifications that no one took in time, of the servers there were in the end.
        noise: Lines that were no message, of those.
        memory: Resident memory in kB after a third of the time, and in the end.
    """

    begun: int = 0
    ended: Counter[str] = field(default_factory=Counter)
    deeds: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    worst: float = 0.0
    restarts: int = 0
    incidents: int = 0
    updates: int = 0
    dropped: int = 0
    noise: int = 0
    memory: tuple[int, int] = (0, 0)

    def __str__(self) -> str:
        lines = [
            f"calls       {self.begun}: {_told(self.ended)}",
            f"gremlins    {_told(self.deeds)}",
            f"lives       {self.restarts} restarts, {self.incidents} incidents",
            f"pressure    {self.noise} lines of noise, {self.updates} notifications delivered, "
            f"{self.dropped} dropped",
            f"latest end  {self.worst * 1000:.0f} ms after its time-out",
            f"memory      {self.memory[0]} kB after a third, {self.memory[1]} kB in the end",
        ]
        return "\n".join([*lines, *(f"FAULT       {fault}" for fault in self.faults)])


def _told(counter: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counter.most_common())


def spec_for(number: int, variant: int = 0) -> ServerSpec:
    """Return the spec of the n-th server: no two neighbours are alike."""
    name = ("wild", "good_handshake", "wild", "good_stateless", "wild")[number % 5]
    return ServerSpec(
        sys.executable,
        [str(SERVERS / f"{name}.py")],
        env={"VARIANT": str(variant)},  # nobody reads it, but a reload sees a change
        timeouts=TIMEOUTS,
        limits=LIMITS,
        restart=STRICT if number % 4 == 3 else PATIENT,
        ping=0.2 if number % 2 == 0 else None,
        ping_misses=2,
        idle_stop=0.3 if number % 7 == 6 else None,
        resend="safe" if number % 3 == 0 else "never",
        start="eager" if number % 2 else "lazy",
    )


def memory() -> int:
    """Return our resident memory in kB."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") // 1024


class Chaos:
    """One run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.figures = Figures()
        self.pids: set[int] = set()
        self._specs = {f"server-{n:02}": spec_for(n) for n in range(plan.servers)}
        self._variants = Counter[str]()
        self._over = False

    async def run(self) -> Figures:
        """Do it, and return what happened."""
        plan, figures = self.plan, self.figures
        complaints = Complaints()
        logger = logging.getLogger("mcpclient")
        logger.addHandler(complaints)
        before = children(), set(descriptors()), threads()
        try:
            async with Manager(self._specs) as manager:
                self._listen(manager)
                async with anyio.create_task_group() as group:
                    for number in range(plan.callers):
                        group.start_soon(self._call_on, manager, number)
                    for deed in (
                        self._kill,
                        self._suspend,
                        self._stop,
                        self._reload,
                        self._replace,
                        self._block,
                        self._kill_watchdog,
                    ):
                        group.start_soon(self._meddle, manager, deed)
                    await anyio.sleep(plan.seconds / 3)
                    third = memory()
                    await anyio.sleep(plan.seconds * 2 / 3)
                    self._over = True
                await self._settle(manager)
                self._count(manager)
                figures.memory = (third, memory())
        finally:
            logger.removeHandler(complaints)
        figures.faults += complaints.texts
        await self._nothing_is_left(*before)
        return figures

    # -- callers ---------------------------------------------------------------------------

    async def _call_on(self, manager: Manager, number: int) -> None:
        rng = random.Random(f"{self.plan.seed} caller {number}")
        names = list(self._specs)
        while not self._over:
            name = rng.choice(names)
            timeout = rng.choice((0.05, 0.2, 0.5, 1.0, 2.0))
            patience = rng.choice((None, None, None, rng.uniform(0, 0.2)))
            await self._call(manager, name, rng, timeout, patience)
            await anyio.sleep(rng.uniform(0, 0.1))

    async def _call(
        self,
        manager: Manager,
        name: str,
        rng: random.Random,
        timeout: float,
        patience: float | None,
    ) -> None:
        figures = self.figures
        try:
            server = manager[name]
        except KeyError:
            return  # it is being replaced
        if server.pid is not None:
            self.pids.add(server.pid)
        figures.begun += 1
        begun = time.monotonic()
        how = "given up"
        try:
            with anyio.move_on_after(patience):
                await self._ask(server, rng, timeout)
                how = "answered"
        except EXPECTED as problem:
            how = type(problem).__name__
            if not str(problem).strip() or "fault in mcpclient" in str(problem):
                figures.faults.append(f"an odd error: {problem!r}")
        except UseAfterClose:
            how = "removed"
        except McpClientError as problem:
            how = type(problem).__name__
            figures.faults.append(f"a call to {name} ended with {problem!r}")
        finally:
            figures.ended[how] += 1
        waited = time.monotonic() - begun - timeout
        figures.worst = max(figures.worst, waited)
        if waited > self.plan.slack:
            figures.faults.append(f"a call to {name} took {waited:.1f} s over its {timeout} s")

    async def _ask(self, server: Server, rng: random.Random, timeout: float) -> None:
        wild = server.spec.args[0].endswith("wild.py")
        what = rng.random()
        if what < 0.1 and wild:
            kind = rng.choice(BEFORE + INSTEAD + AFTER)
            await server.invoke_tool("sin", {"kind": kind}, timeout=timeout)
        elif what < 0.2 and not wild:
            await server.invoke_tool("slow", {"seconds": rng.uniform(0, 1)}, timeout=timeout)
        elif what < 0.3:
            if not await server.list_tools(timeout=timeout):
                self.figures.faults.append(f"{server} listed no tools")
        elif what < 0.4 and not wild:
            result = await server.read_resource("test://a", timeout=timeout)
            if result.text != "this is a":
                self.figures.faults.append(f"{server} read {result.text!r}")
        else:
            text = f"{rng.random()}" * rng.choice((1, 1, 1, 1000))
            found = (await server.invoke_tool("echo", {"text": text}, timeout=timeout)).text
            if found != text:
                self.figures.faults.append(f"{server} echoed {found[:50]!r} for {text[:50]!r}")

    # -- gremlins --------------------------------------------------------------------------

    async def _meddle(
        self,
        manager: Manager,
        deed: Callable[[Manager, Server, random.Random], Awaitable[None]],
    ) -> None:
        name = deed.__name__.strip("_")
        rng = random.Random(f"{self.plan.seed} {name}")
        while not self._over:
            await anyio.sleep(rng.uniform(0.02, 0.4))
            try:
                server = manager[rng.choice(list(self._specs))]
            except KeyError:
                continue
            self.figures.deeds[name] += 1
            await deed(manager, server, rng)

    async def _kill(self, manager: Manager, server: Server, rng: random.Random) -> None:
        # What it tells as its pid is not reaped, so the number is its own.
        if server.pid is not None:
            os.kill(server.pid, signal.SIGKILL)

    async def _suspend(self, manager: Manager, server: Server, rng: random.Random) -> None:
        pid = server.pid
        if pid is None:
            return
        os.kill(pid, signal.SIGSTOP)
        await anyio.sleep(rng.uniform(0, 0.5))
        if server.pid == pid:  # else it was ended meanwhile, as it stood
            os.kill(pid, signal.SIGCONT)

    async def _stop(self, manager: Manager, server: Server, rng: random.Random) -> None:
        with anyio.move_on_after(rng.choice((None, rng.uniform(0, 0.1)))):
            await server.stop()
        await anyio.sleep(rng.uniform(0, 0.1))
        try:
            server.begin()
        except UseAfterClose:
            pass

    async def _reload(self, manager: Manager, server: Server, rng: random.Random) -> None:
        if server.name in manager:
            self._variants[server.name] += 1
            number = int(server.name[-2:])
            self._specs[server.name] = spec_for(number, self._variants[server.name])
        specs = {name: one for name, one in self._specs.items() if name in manager}
        with anyio.move_on_after(rng.choice((None, rng.uniform(0, 0.1)))):
            await manager.reload(specs)

    async def _replace(self, manager: Manager, server: Server, rng: random.Random) -> None:
        try:
            await manager.remove(server.name)
        except KeyError:
            return
        await manager.add(server.name, self._specs[server.name])

    async def _block(self, manager: Manager, server: Server, rng: random.Random) -> None:
        time.sleep(rng.uniform(0, 0.05))

    async def _kill_watchdog(self, manager: Manager, server: Server, rng: random.Random) -> None:
        await anyio.sleep(rng.uniform(0, 1))
        watchdog = manager._watchdog
        if watchdog is not None and watchdog.pid is not None:
            self.pids.add(watchdog.pid)
            os.kill(watchdog.pid, signal.SIGKILL)

    # -- what else goes on -----------------------------------------------------------------

    def _listen(self, manager: Manager) -> None:
        async def relist(server: Server, _params: Any) -> None:
            try:
                await server.list_tools(timeout=1)
            except (*EXPECTED, UseAfterClose):
                pass

        def died(_server: Server, _incident: object) -> None:
            self.figures.incidents += 1

        def moved(_server: Server, state: str) -> None:
            self.figures.restarts += state == "waiting"

        def updated(_server: Server, _params: object) -> None:
            self.figures.updates += 1

        manager.on_notification("notifications/tools/list_changed", relist)
        manager.on_notification("notifications/resources/updated", updated)
        manager.on_state(moved)
        manager.on_incident(died)

    async def _settle(self, manager: Manager) -> None:
        """After the storm every server can be had again."""
        async with anyio.create_task_group() as group:
            for name in manager:
                group.start_soon(self._comes_back, manager[name])
        # A ping may be under way, or a handler's own call.
        with anyio.move_on_after(5):
            while any(one.in_flight for one in manager.status().servers):
                await anyio.sleep(0.01)

    async def _comes_back(self, server: Server) -> None:
        try:
            await server.restart(timeout=15)
            result = await server.invoke_tool("echo", {"text": server.name}, timeout=15)
        except McpClientError as problem:
            self.figures.faults.append(f"{server} did not come back: {problem}")
            return
        if result.text != server.name:
            self.figures.faults.append(f"{server} echoed {result.text!r}")

    def _count(self, manager: Manager) -> None:
        figures = self.figures
        if figures.begun != figures.ended.total():
            figures.faults.append(f"{figures.begun} begun, {figures.ended.total()} ended")
        for one in manager.status().servers:
            figures.dropped += one.dropped
            figures.noise += one.noise
            if one.in_flight:
                figures.faults.append(f"{one.name} has {one.in_flight} calls in flight")
            connection = manager[one.name]._supervisor.connection
            if connection is not None:
                connection.inflight.check()

    async def _nothing_is_left(
        self, children_: set[int], descriptors_: set[int], threads_: set[str]
    ) -> None:
        end = time.monotonic() + 5
        while True:
            left = {
                "children": children() - children_,
                "descriptors": set(descriptors()) - descriptors_,
                "threads": threads() - threads_,
                "processes": {pid for pid in self.pids if alive(pid)},
            }
            if not any(left.values()):
                return
            if time.monotonic() > end:
                self.figures.faults += [f"left: {k} {v}" for k, v in left.items() if v]
                return
            await anyio.sleep(0.02)


class Complaints(logging.Handler):
    """Keeps what the library calls an error: a fault of its own, or of a handler."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.texts.append(f"logged: {record.getMessage()} {record.exc_info}")
