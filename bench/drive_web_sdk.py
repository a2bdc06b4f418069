"""One measurement of the official SDK's `mcp.Client` with a URL, printed as one JSON line."""

from __future__ import annotations

import asyncio
import sys

# Lives in an environment of its own, where no type checker looks.
from mcp import Client

from bench import web
from bench.probe import Figures, Order, begin, tell
from bench.workloads import Connected


async def measure(order: Order, url: str) -> Figures:
    """Use one server, with default options, which means no time-out on a call."""
    async with Client(url) as client:
        call_tool = client.call_tool

        async def count_tools() -> int:
            return len((await client.list_tools(cache_mode="bypass")).tools)

        connected = Connected(
            echo=lambda text: call_tool("echo", {"text": text}),
            echoed=lambda result: str(result.content[0].text),
            read=lambda size: client.read_resource(f"bench://{size}", cache_mode="bypass"),
            length=lambda page: len(page.contents[0].text),
            count_tools=count_tools,
        )
        return await web.perform(order.name, connected, order.seconds)


def main(order: Order) -> Figures:
    """Carry an order out."""
    with web.served(order.server) as url:
        return asyncio.run(measure(order, url))


if __name__ == "__main__":
    tell(main(begin(sys.argv[1:])))
