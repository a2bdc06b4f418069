"""What is measured of servers behind URLs, the same for every client. Knows no client.

The server is a process of its own on loopback that answers with JSON, as quickly as asyncio can.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from bench.probe import Figures, descriptors
from bench.workloads import Connected, in_flight, sequential

CALLERS = 200
IDLE = "web_idle"
IDLE_SERVERS = 1000


@contextmanager
def served(argv: list[str]) -> Iterator[str]:
    """Run a server that prints its URL and ends with its stdin; give the URL."""
    with subprocess.Popen(
        argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            process.wait(10)


async def perform(name: str, client: Connected, seconds: float) -> Figures:
    """Carry out one order; a name that is not known is a KeyError."""
    match name:
        case "web_sequential":
            return await sequential(client, seconds)
        case "web_in_flight":
            return await crowded(client, seconds)
        case _:
            raise KeyError(name)


async def crowded(client: Connected, seconds: float) -> Figures:
    """Two hundred callers; and how many connections are open at the most meanwhile."""
    await client.echo("warm")
    before = descriptors() or 0
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, (descriptors() or 0) - before)
            await asyncio.sleep(0.005)

    watching = asyncio.create_task(watch())
    figures = await in_flight(client, seconds, CALLERS)
    watching.cancel()
    # The one that the first call left open is among those of the baseline.
    return {**figures, "connections": most + 1}
