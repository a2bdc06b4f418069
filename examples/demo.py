"""Real servers start, answer, crash, come back and stop. Run it with ``make demo``.

The servers are not ours: they are installed from their packages by ``scripts/setup_real.py``.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mcpclient import Manager, McpClientError, Server, ServerSpec

REAL = Path(__file__).resolve().parent.parent / ".real" / "servers.json"

# What each server is asked first: a tool and its arguments. "{dir}" is a folder made for the demo.
CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "time": (
        "convert_time",
        {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"},
    ),
    "git": ("git_log", {"repo_path": "{dir}/repository", "max_count": 1}),
    "fetch": ("fetch", {"url": "http://localhost:9/"}),
    "sqlite": ("list_tables", {}),
    "everything": ("get-sum", {"a": 2, "b": 40}),
    "filesystem": ("list_directory", {"path": "{dir}"}),
    "memory": ("read_graph", {}),
    "sequential-thinking": (
        "sequentialthinking",
        {"thought": "done", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
    ),
}


def servers(folder: Path) -> dict[str, ServerSpec]:
    """Return the servers that are set up, each with what it needs to run here."""
    if not REAL.exists():
        sys.exit("the real servers are not set up: run `make demo`")
    extra = {"sqlite": ["--db-path", f"{folder}/demo.db"], "filesystem": [str(folder)]}
    env = {"memory": {"MEMORY_FILE_PATH": f"{folder}/memory.json"}}
    specs = {}
    for name, entry in json.loads(REAL.read_text()).items():
        command, *args = entry["command"]
        specs[name] = ServerSpec(
            command, [*args, *extra.get(name, [])], env=env.get(name, {}), start="eager"
        )
    return specs


def repository(folder: Path) -> None:
    """Make a small git repository for the git server to look at."""
    if shutil.which("git") is None:
        return
    place = str(folder / "repository")
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "init", "-q", place], check=True)
    subprocess.run(
        ["git", "-C", place, *who, "commit", "-q", "--allow-empty", "-m", "The first commit"],
        check=True,
    )


async def introduce(server: Server, folder: Path) -> tuple[str, ...]:
    """Return a row about one server: what it is, and what it answers to one call."""
    began = time.perf_counter()
    tool, arguments = CALLS[server.name]
    filled = json.loads(json.dumps(arguments).replace("{dir}", str(folder)))
    try:
        await server.wait_ready()
        ready = time.perf_counter() - began
        tools = await server.list_tools()
        try:
            answer = (await server.invoke_tool(tool, filled)).text
        except McpClientError as problem:
            answer = f"{type(problem).__name__}: {problem}"
    except McpClientError as problem:
        return (server.name, "–", "–", "–", "–", str(problem))
    shown = " ".join(answer.split())
    return (
        server.name,
        server.era or "",
        server.protocol_version or "",
        f"{ready:.1f} s",
        str(len(tools)),
        f"{tool}: {shown[:60]}{'…' if len(shown) > 60 else ''}",
    )


def table(rows: list[tuple[str, ...]]) -> str:
    """Return rows as aligned text."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


async def demo(folder: Path) -> None:
    """Show it all with the servers that are set up."""
    pids: list[int] = []
    async with Manager(servers(folder), dispatch="manual") as manager:
        print(f"{len(manager)} servers that we did not write, started at the same time:\n")
        head = ("server", "era", "version", "ready in", "tools", "a call")
        rows = await asyncio.gather(*(introduce(manager[name], folder) for name in manager))
        print(table([head, *rows]))

        sqlite = manager["sqlite"]
        print("\nA read, from the server and then from the cache:")
        for _ in range(2):
            began = time.perf_counter()
            page = await sqlite.read_resource("memo://insights")
            print(
                f"  {page.text.splitlines()[0]!r} in {(time.perf_counter() - began) * 1e6:.0f} µs"
            )
        stats = manager.cache.stats()
        print(f"  the cache counts {stats.misses} miss, {stats.hits} hit")

        print("\nA prompt:")
        prompt = await sqlite.get_prompt("mcp-demo", {"topic": "coffee"})
        print(f"  {' '.join(prompt.text.split())[:90]}…")

        print("\nA notification, delivered by a tick of the host:")
        manager.on_notification(
            "notifications/resources/updated",
            lambda server, params: print(f"  {server} says that {params['uri']} changed"),
        )
        await sqlite.invoke_tool("append_insight", {"insight": "People like coffee."})
        while not (report := manager.tick(max_items=100, budget=0.002)).delivered:
            await asyncio.sleep(1 / 60)
        print(f"  the tick delivered {report.delivered}; {report.left} are left")
        page = await sqlite.read_resource("memo://insights")
        print(f"  and the cached read is gone, the new one has {page.text.splitlines()[-1]!r}")

        print("\nA server killed with SIGKILL in the middle of a call:")
        clock = manager["time"]
        assert clock.pid is not None
        before = clock.pid
        call = asyncio.create_task(clock.invoke_tool("get_current_time", {"timezone": "UTC"}))
        await asyncio.sleep(0)
        os.kill(before, signal.SIGKILL)
        try:
            await call
        except McpClientError as problem:
            print(f"  {type(problem).__name__}: {problem}")
        began = time.perf_counter()
        answer = await clock.invoke_tool("get_current_time", {"timezone": "UTC"})
        print(
            f"  the next call waited {time.perf_counter() - began:.1f} s for life "
            f"{clock.generation} (pid {before} → {clock.pid}) and answered "
            f"{json.loads(answer.text)['datetime']}"
        )

        print(f"\n{manager.status()}")
        pids = [pid for name in manager if (pid := manager[name].pid) is not None]
        began = time.perf_counter()
    left = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    print(
        f"\nAll {len(pids)} stopped in {time.perf_counter() - began:.1f} s; "
        f"{len(left) or 'no'} process is left."
    )
    if left:
        sys.exit(1)


if __name__ == "__main__":
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as name:
        repository(Path(name))
        asyncio.run(demo(Path(name)))
    print(f"The demo took {time.perf_counter() - began:.1f} s.")
