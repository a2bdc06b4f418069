"""One measurement of the official SDK's `mcp.Client`, printed as one JSON line."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

# Lives in an environment of its own, where no type checker looks.
from mcp import Client, StdioServerParameters

from bench import workloads
from bench.probe import begin, tell
from bench.workloads import Connected, StartMore


def client_of(server: list[str]) -> Client:
    """Make a client as the SDK's own documentation does: defaults everywhere."""
    return Client(StdioServerParameters(command=server[0], args=server[1:]))


class Sdk:
    """Default options, which means no time-out on a call."""

    @asynccontextmanager
    async def connect(self, server: list[str]) -> AsyncIterator[Connected]:
        async with client_of(server) as client:
            call_tool, read_resource = client.call_tool, client.read_resource

            async def count_tools() -> int:
                count, cursor = 0, None
                while True:
                    page = await client.list_tools(cursor=cursor, cache_mode="bypass")
                    count += len(page.tools)
                    cursor = page.next_cursor
                    if cursor is None:
                        return count

            yield Connected(
                echo=lambda text: call_tool("echo", {"text": text}),
                echoed=lambda result: str(result.content[0].text),
                read=lambda size: read_resource(f"bench://{size}", cache_mode="bypass"),
                length=lambda page: len(page.contents[0].text),
                count_tools=count_tools,
            )

    @asynccontextmanager
    async def fleet(self, server: list[str]) -> AsyncIterator[StartMore]:
        # A client must be left by the task that entered it, so each lives in a task of its own.
        stop = asyncio.Event()

        async with asyncio.TaskGroup() as group:

            async def live(connected: asyncio.Future[None]) -> None:
                async with client_of(server):
                    connected.set_result(None)
                    await stop.wait()

            async def start_more(count: int) -> None:
                loop = asyncio.get_running_loop()
                waiting: list[asyncio.Future[None]] = []
                for _ in range(count):
                    connected = loop.create_future()
                    waiting.append(connected)
                    group.create_task(live(connected))
                await asyncio.gather(*waiting)

            try:
                yield start_more
            finally:
                stop.set()


if __name__ == "__main__":
    tell(asyncio.run(workloads.perform(begin(sys.argv[1:]), Sdk())))
