"""``top``: a live table of servers, each asked now and then whether it is there."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections import deque
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING, Any

import click

from mcpclient.cli import memory
from mcpclient.cli.options import common, state_of
from mcpclient.cli.out import aligned
from mcpclient.cli.problems import UNREACHABLE
from mcpclient.cli.shell import completing
from mcpclient.ground.errors import McpClientError
from mcpclient.ground.text import size
from mcpclient.protocol import methods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcpclient.cli.out import Out
    from mcpclient.cli.running import Session
    from mcpclient.manager.server import Server

_HEAD = (
    "SERVER",
    "STATE",
    "ERA",
    "LIFE",
    "IN FLIGHT",
    "CALLS/S",
    "P50",
    "RESTARTS",
    "MEMORY",
    "LAST",
)
# Over how many answers the median goes.
_SAMPLES = 60


@click.command()
@click.option(
    "-i",
    "--interval",
    type=click.FloatRange(min=0.1),
    default=1.0,
    show_default=True,
    metavar="SECONDS",
    help="How often it is drawn, and each server asked.",
)
@click.option("-n", "--count", type=click.IntRange(min=1), metavar="N", help="End after N tables.")
@click.argument("names", nargs=-1, metavar="[SERVER]...", shell_complete=completing("servers"))
@common
@click.pass_context
def top(context: click.Context, interval: float, count: int | None, names: tuple[str, ...]) -> int:
    """Show a live table of servers.

    They are started, and each is asked once every interval whether it is there: CALLS/S and P50,
    the median time of an answer, are those of that. On a terminal q ends it; in a pipe a table is
    printed each time, and with --json a line of JSON.
    """
    from mcpclient.cli.running import run

    return run(
        state_of(context), lambda session: _top(session, interval, count), names, lasting=True
    )


class _Row:
    """One server, over time."""

    def __init__(self, name: str, server: Server | None, problem: str = "") -> None:
        self.name = name
        self.server = server
        self.problem = problem
        self.spans: deque[float] = deque(maxlen=_SAMPLES)
        self._calls = 0
        self._at = time.monotonic()

    async def ask(self, interval: float) -> None:
        """Ask the server whether it is there, and note how long the answer took."""
        server = self.server
        assert server is not None
        await asyncio.sleep(interval / 2)  # between two drawings, not at the moment of one
        while True:
            await asyncio.sleep(interval)
            if server.state != "up":
                continue
            # The one era has no ping, the other no second discovery.
            method = methods.PING if server.era == "handshake" else methods.DISCOVER
            began = time.monotonic()
            try:
                await server.no_wait.request(method)
            except McpClientError:
                continue  # the state tells of it
            self.spans.append(time.monotonic() - began)

    def facts(self, sizes: dict[int, int]) -> dict[str, Any]:
        """Return what is shown of it now."""
        if self.server is None:
            return {"server": self.name, "state": "failed", "last": self.problem}
        now, told = time.monotonic(), self.server.status()
        rate = (told.calls - self._calls) / max(now - self._at, 0.001)
        self._calls, self._at = told.calls, now
        return {
            "server": self.name,
            "state": told.state,
            "era": told.era,
            "generation": told.generation,
            "in_flight": told.in_flight,
            "calls_per_second": round(rate, 1),
            "p50": round(median(self.spans), 6) if self.spans else None,
            "restarts": told.restarts,
            "memory": sizes.get(told.pid or 0),
            "pid": told.pid,
            "last": told.last_incident,
        }


async def _top(session: Session, interval: float, count: int | None) -> int:
    out = session.out
    rows = []
    for name in session.names:
        try:
            server = session[name]
        except McpClientError as problem:
            rows.append(_Row(name, None, str(problem)))
        else:
            server.begin()
            rows.append(_Row(name, server))
    asking = [asyncio.create_task(row.ask(interval)) for row in rows if row.server is not None]
    quit_ = asyncio.Event()
    drawn = 0
    facts: list[dict[str, Any]] = []
    try:
        with _screen(out, count, quit_.set) as draw:
            while count is None or drawn < count:
                try:
                    # The first after an interval too: before it nothing has happened.
                    await asyncio.wait_for(quit_.wait(), interval)
                    break
                except TimeoutError:
                    pass
                pids = [row.server.pid for row in rows if row.server is not None]
                sizes = memory.resident(pid for pid in pids if pid is not None)
                facts = [row.facts(sizes) for row in rows]
                draw(facts)
                drawn += 1
    finally:
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
    return UNREACHABLE if facts and all(one["state"] == "failed" for one in facts) else 0


def _cells(one: dict[str, Any]) -> tuple[str, ...]:
    def shown(key: str) -> str:
        return "–" if one.get(key) is None else str(one[key])

    p50, bytes_ = one.get("p50"), one.get("memory")
    return (
        one["server"],
        one["state"],
        shown("era"),
        shown("generation"),
        shown("in_flight"),
        shown("calls_per_second"),
        "–" if p50 is None else f"{p50 * 1000:.1f} ms",
        shown("restarts"),
        "–" if bytes_ is None else size(bytes_),
        one.get("last") or "",
    )


@contextmanager
def _screen(
    out: Out, count: int | None, leave: Callable[[], None]
) -> Iterator[Callable[[list[dict[str, Any]]], None]]:
    """Give what draws: over the last drawing on a terminal, else one after the other."""
    if out.json:
        yield lambda facts: out.document(facts, stream=True)
        return
    if not out.terminal or count is not None:
        yield lambda facts: out.table(_HEAD, [_cells(one) for one in facts])
        return
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console(markup=False, emoji=False, highlight=False)
    live = Live(
        console=console,
        screen=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )

    def draw(facts: list[dict[str, Any]]) -> None:
        lines = aligned(_HEAD, [_cells(one) for one in facts], console.width)
        head = f"{time.strftime('%H:%M:%S')}  {len(facts)} servers  q quits"
        shown = Text("\n".join(["", *lines]), no_wrap=True, overflow="crop")
        live.update(Text.assemble((head, "bold"), shown), refresh=True)

    with _keys(out, leave), live:
        yield draw


@contextmanager
def _keys(out: Out, leave: Callable[[], None]) -> Iterator[None]:
    """Have q leave at once, without a return key; the terminal is as before at the end."""
    if not sys.stdin.isatty():
        yield
        return
    import termios
    import tty

    before = termios.tcgetattr(sys.stdin)

    def restore() -> None:
        termios.tcsetattr(sys.stdin, termios.TCSANOW, before)

    def pressed() -> None:
        try:
            key = os.read(sys.stdin.fileno(), 1)
        except OSError:
            key = b""
        if key in (b"q", b"Q", b"\x04", b""):
            loop.remove_reader(sys.stdin)
            leave()

    loop = asyncio.get_running_loop()
    out.undo = restore
    tty.setcbreak(sys.stdin)
    loop.add_reader(sys.stdin, pressed)
    try:
        yield
    finally:
        loop.remove_reader(sys.stdin)
        restore()
        out.undo = None
