"""One measurement of `mcpclient`, printed as one JSON line."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench import workloads
from bench.probe import begin, tell
from bench.workloads import Connected, StartMore
from mcpclient import Limits, Manager, ServerSpec

# The one limit that is not the default: the 100 MiB line is longer than the default allows.
LIMITS = Limits(frame=160 * workloads.MIB)


class Ours:
    """Default options: time-outs on, notifications delivered by themselves."""

    @asynccontextmanager
    async def connect(self, server: list[str]) -> AsyncIterator[Connected]:
        async with Manager({"bench": ServerSpec(server[0], server[1:], limits=LIMITS)}) as manager:
            bench = manager["bench"]
            await bench.start()
            invoke, read_resource = bench.invoke_tool, bench.read_resource

            async def count_tools() -> int:
                return len(await bench.list_tools())

            yield Connected(
                echo=lambda text: invoke("echo", {"text": text}),
                echoed=lambda result: str(result.text),
                read=lambda size: read_resource(f"bench://{size}", cache="bypass"),
                length=lambda page: len(page.text),
                count_tools=count_tools,
            )

    @asynccontextmanager
    async def fleet(self, server: list[str]) -> AsyncIterator[StartMore]:
        async with Manager({}) as manager:
            names: list[str] = []

            async def start_more(count: int) -> None:
                new = [f"bench{len(names) + number}" for number in range(count)]
                names.extend(new)
                for name in new:
                    await manager.add(name, ServerSpec(server[0], server[1:]))
                await asyncio.gather(*[manager[name].start() for name in new])

            yield start_more


if __name__ == "__main__":
    tell(asyncio.run(workloads.perform(begin(sys.argv[1:]), Ours())))
