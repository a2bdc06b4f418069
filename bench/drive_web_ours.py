"""One measurement of `mcpclient` with servers behind URLs, printed as one JSON line."""

from __future__ import annotations

import asyncio
import gc
import sys
import time

from bench import web
from bench.probe import Figures, Order, begin, descriptors, resident_kb, tell, threads
from bench.workloads import Connected
from mcpclient import Manager, ServerSpec


async def measure(order: Order, url: str) -> Figures:
    """Use one server, with default options."""
    async with Manager({"bench": ServerSpec(url=url)}) as manager:
        bench = manager["bench"]
        await bench.start()
        invoke = bench.invoke_tool

        async def count_tools() -> int:
            return len(await bench.list_tools())

        connected = Connected(
            echo=lambda text: invoke("echo", {"text": text}),
            echoed=lambda result: str(result.text),
            read=lambda size: bench.read_resource(f"bench://{size}", cache="bypass"),
            length=lambda page: len(page.text),
            count_tools=count_tools,
        )
        return await web.perform(order.name, connected, order.seconds)


async def idle(url: str) -> Figures:
    """Configure many servers that nobody uses, and then use one of them."""
    async with Manager({"first": ServerSpec(url=url)}) as manager:
        await manager["first"].invoke_tool("echo", {"text": "warm"})
    gc.collect()
    rss, tasks, fds = resident_kb() or 0, threads(), descriptors() or 0
    start = time.perf_counter()
    servers = {f"s{n}": ServerSpec(url=f"{url}?{n}") for n in range(web.IDLE_SERVERS)}
    async with Manager(servers) as manager:
        opened = time.perf_counter() - start
        await asyncio.sleep(0.2)
        gc.collect()
        figures: Figures = {
            "open_ms": opened * 1e3,
            "rss_kb_per_server": ((resident_kb() or 0) - rss) / web.IDLE_SERVERS,
            "fds": (descriptors() or 0) - fds,
            "threads": threads() - tasks,
        }
        result = await manager["s500"].invoke_tool("echo", {"text": "used"})
        assert result.text == "used", "the echo came back changed"
    return figures


def main(order: Order) -> Figures:
    """Carry an order out."""
    with web.served(order.server) as url:
        return asyncio.run(idle(url) if order.name == web.IDLE else measure(order, url))


if __name__ == "__main__":
    tell(main(begin(sys.argv[1:])))
