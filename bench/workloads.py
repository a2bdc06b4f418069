"""What is measured, the same for every asyncio client. Does not know which client it drives.

A driver gives two async context managers and this module does the rest, so that the contestants
run the same loops, the same warm-up and the same arithmetic.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from bench.probe import (
    CoreWait,
    Figures,
    Order,
    descriptors,
    flow_figures,
    latency_figures,
    median,
    peak_kb,
    resident_kb,
    threads,
)

TEXT = "0123456789" * 10
CALLERS = 100
MIB = 1024 * 1024
SIZES = (1, 10)
HUGE = 100
WARM_SERVERS = 10


@dataclass(frozen=True, slots=True)
class Connected:
    """The verbs of one connected client: functions that return its own awaitables."""

    echo: Callable[[str], Awaitable[Any]]
    echoed: Callable[[Any], str]
    read: Callable[[int], Awaitable[Any]]
    length: Callable[[Any], int]
    count_tools: Callable[[], Awaitable[int]]


StartMore = Callable[[int], Awaitable[None]]


class Contestant(Protocol):
    """What a driver brings."""

    def connect(self, server: list[str]) -> AbstractAsyncContextManager[Connected]:
        """Run one server and connect to it."""

    def fleet(self, server: list[str]) -> AbstractAsyncContextManager[StartMore]:
        """Give a function that starts so many more at once; it returns when all are connected."""


async def sequential(client: Connected, seconds: float) -> Figures:
    """Call after call, each timed."""
    echo, clock = client.echo, time.perf_counter_ns
    assert client.echoed(await echo(TEXT)) == TEXT, "the echo came back changed"
    end = clock() + int(seconds * 0.3e9)
    while clock() < end:
        await echo(TEXT)
    spans: list[int] = []
    cpu = time.process_time()
    start = before = clock()
    end = start + int(seconds * 1e9)
    while before < end:
        await echo(TEXT)
        now = clock()
        spans.append(now - before)
        before = now
    return latency_figures(spans, before - start, time.process_time() - cpu)


async def in_flight(client: Connected, seconds: float, callers: int = CALLERS) -> Figures:
    """A hundred callers or so, each with one call in flight, for about that long."""
    echo = client.echo

    async def caller(calls: int) -> None:
        for _ in range(calls):
            await echo(TEXT)

    async def all_callers(calls: int) -> float:
        start = time.perf_counter()
        await asyncio.gather(*[caller(calls) for _ in range(callers)])
        return time.perf_counter() - start

    assert client.echoed(await echo(TEXT)) == TEXT, "the echo came back changed"
    await all_callers(3)
    each = max(3, int(0.25 * seconds / (await all_callers(3) / 3)))
    each = max(5, int(seconds / (await all_callers(each) / each)))
    cpu = time.process_time()
    elapsed = await all_callers(each)
    return flow_figures(each * callers, elapsed, time.process_time() - cpu)


async def reads(client: Connected, repeat: int) -> Figures:
    """Read 1 and 10 MiB of text, some times each, after one read to warm up."""
    figures: Figures = {}
    for mib in SIZES:
        assert client.length(await client.read(mib * MIB)) == mib * MIB, "the text has another size"
        spans: list[float] = []
        for _ in range(repeat):
            start = time.perf_counter()
            await client.read(mib * MIB)
            spans.append(time.perf_counter() - start)
        figures[f"mib{mib}_ms"] = median(spans) * 1e3
    return figures


async def huge_line(client: Connected) -> Figures:
    """Read 100 MiB of text in one line, once, on a connection that has made one call."""
    await client.echo(TEXT)
    start = time.perf_counter()
    page = await client.read(HUGE * MIB)
    elapsed = time.perf_counter() - start
    assert client.length(page) == HUGE * MIB, "the text has another size"
    return {"seconds": elapsed}


async def tools(client: Connected, repeat: int) -> Figures:
    """List all tools, some times, after one list to warm up."""
    count = await client.count_tools()
    assert count >= 1000, f"only {count} tools"
    spans: list[float] = []
    for _ in range(repeat):
        start = time.perf_counter()
        await client.count_tools()
        spans.append(time.perf_counter() - start)
    return {"tools": count, "list_ms": median(spans) * 1e3}


async def memory(client: Connected) -> Figures:
    """Make one call and look how large this process has ever been."""
    assert client.echoed(await client.echo(TEXT)) == TEXT, "the echo came back changed"
    return {"peak_mb": peak_kb() / 1024}


@dataclass(slots=True)
class Stall:
    """The longest time the loop did not turn: as the host sees it, and less the wait for a core."""

    wall: float = 0.0
    own: float = 0.0


class Heartbeat:
    """A task that sleeps 1 ms over and over and keeps the largest gap beyond that millisecond."""

    def __init__(self) -> None:
        self._stall = Stall()
        self._stop = False
        self._task = asyncio.get_running_loop().create_task(self._beat())

    async def _beat(self) -> None:
        wait = CoreWait()
        try:
            last, waited = time.perf_counter(), wait.seconds()
            while not self._stop:
                await asyncio.sleep(0.001)
                now, waited_now = time.perf_counter(), wait.seconds()
                gap = now - last - 0.001
                self._stall.wall = max(self._stall.wall, gap)
                self._stall.own = max(self._stall.own, gap - (waited_now - waited))
                last, waited = now, waited_now
        finally:
            wait.close()

    async def done(self) -> Stall:
        """Stop and give the stall; the gap that is running now still counts."""
        self._stop = True
        await self._task
        return self._stall


async def watched(work: Awaitable[None]) -> tuple[float, Stall]:
    """Await something under a heartbeat; give its seconds and the stall."""
    heart = Heartbeat()
    await asyncio.sleep(0.01)
    start = time.perf_counter()
    await work
    elapsed = time.perf_counter() - start
    return elapsed, await heart.done()


async def fleet(start_more: StartMore, count: int) -> Figures:
    """Start many servers at once; then what each one costs.

    Some servers are started first, so that what is paid once (imports, worker threads of a pool)
    is not counted as the cost of a server.
    """
    _, first = await watched(start_more(WARM_SERVERS))
    await asyncio.sleep(0.2)
    gc.collect()
    rss, tasks, fds = resident_kb(), threads(), descriptors()
    elapsed, stall = await watched(start_more(count))
    await asyncio.sleep(0.2)
    gc.collect()
    rss_now, tasks_now, fds_now = resident_kb(), threads(), descriptors()
    figures: Figures = {
        "servers": count,
        "start_s": elapsed,
        "stall_ms": stall.wall * 1e3,
        "stall_own_ms": stall.own * 1e3,
        "stall_first_ms": first.wall * 1e3,
        "threads_per_server": (tasks_now - tasks) / count,
    }
    if rss is not None and rss_now is not None:
        figures["rss_kb_per_server"] = (rss_now - rss) / count
    if fds is not None and fds_now is not None:
        figures["fds_per_server"] = (fds_now - fds) / count
    return figures


async def fleet_traced(start_more: StartMore, count: int) -> Figures:
    """Count what Python allocated for each connected server and still holds."""
    import tracemalloc

    tracemalloc.start()
    await start_more(WARM_SERVERS)
    await asyncio.sleep(0.2)
    gc.collect()
    before = tracemalloc.get_traced_memory()[0]
    await start_more(count)
    await asyncio.sleep(0.2)
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return {"servers": count, "traced_kb_per_server": (after - before) / count / 1024}


async def perform(order: Order, contestant: Contestant) -> Figures:
    """Carry out one order; a name that is not known is a KeyError."""
    if order.name in ("fleet", "fleet_traced"):
        async with contestant.fleet(order.server) as start_more:
            if order.name == "fleet":
                return await fleet(start_more, order.count)
            return await fleet_traced(start_more, order.count)
    async with contestant.connect(order.server) as client:
        match order.name:
            case "sequential":
                return await sequential(client, order.seconds)
            case "in_flight":
                return await in_flight(client, order.seconds)
            case "reads":
                return await reads(client, order.repeat)
            case "huge_line":
                return await huge_line(client)
            case "tools":
                return await tools(client, order.repeat)
            case "memory":
                return await memory(client)
            case name:
                raise KeyError(name)
