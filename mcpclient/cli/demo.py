"""``demo``: a short tour with a server that is shipped along. Needs nothing but this package."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from mcpclient.cli.options import common, state_of
from mcpclient.ground.errors import McpClientError
from mcpclient.ground.text import seconds

if TYPE_CHECKING:
    from mcpclient.cli.out import Out
    from mcpclient.cli.running import Session
    from mcpclient.manager.server import Server
    from mcpclient.manager.spec import ServerSpec

_SERVER = Path(__file__).with_name("demo_server.py")
_NOTES = "demo://notes"


@click.command()
@common
@click.pass_context
def demo(context: click.Context) -> int:
    """Show it all, with a server that is shipped along."""
    from mcpclient.cli.running import run
    from mcpclient.cli.sources import Source
    from mcpclient.manager.spec import spec_of
    from mcpclient.supervision.policy import RestartPolicy

    state = state_of(context)
    argv = [sys.executable, "-I", str(_SERVER)]
    state.source = Source(entries={"demo": argv}, specs={"demo": spec_of(argv)})

    def patient(name: str, spec: ServerSpec) -> ServerSpec:
        return structs.replace(spec, restart=RestartPolicy(first=0.1))

    return run(state, _tour, lasting=True, change=patient)


async def _tour(session: Session) -> int:
    out, server = session.out, session.server
    out.note("A small server that comes with mcpclient; each step names the command that does it.")
    await _starts(out, server)
    await _tools(out, server)
    await _calls(out, server)
    await _reads(out, server, session)
    pid = await _comes_back(out, server)
    await server.stop()
    gone = not _alive(pid)
    _step(
        out,
        "When it ends, everything it started is gone.",
        "",
        f"server {server.state}, process {pid} {'is gone' if gone else 'is still there'}",
    )
    out.note("\nNow yours: mcpclient tools -- npx -y @modelcontextprotocol/server-everything")
    return 0 if gone else 1


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def _starts(out: Out, server: Server) -> None:
    began = time.monotonic()
    await server.start()
    took = seconds(time.monotonic() - began)
    shown = f"up in {took}: {server.era} {server.protocol_version}, pid {server.pid}"
    _step(out, "A server starts when it is needed.", "status", shown)


async def _tools(out: Out, server: Server) -> None:
    from mcpclient.cli.lists import tool_row

    tools = await server.list_tools()
    _step(out, "It says what it can do.", "tools demo", *[one.name for one in tools], quiet=True)
    if not out.json:
        out.table(("TOOL", "ARGUMENTS", "DESCRIPTION"), [tool_row(one) for one in tools])


async def _calls(out: Out, server: Server) -> None:
    from mcpclient.cli.bar import progress

    result = await server.invoke_tool("greet", {"name": "world", "style": "loud"})
    _step(out, "A call.", "call demo greet name=world style=loud", result.text)
    async with progress(out, "count") as told:
        result = await server.invoke_tool("count", {"to": 30}, on_progress=told)
    _step(
        out, "A long one shows how far it is, on a terminal.", "call demo count to=30", result.text
    )


async def _reads(out: Out, server: Server, session: Session) -> None:
    shown = []
    for _ in range(2):
        began = time.perf_counter()
        page = await server.read_resource(_NOTES)
        shown.append(f"{page.text}  ({(time.perf_counter() - began) * 1e6:.0f} µs)")
    _step(out, "A read, from the server and then from the cache.", f"read demo {_NOTES}", *shown)
    heard: asyncio.Queue[Any] = asyncio.Queue(10)
    async with server.subscribe(_NOTES) as updates:
        await server.invoke_tool("note", {"text": "The second is yours."})
        heard.put_nowait(await anext(updates))
    page = await server.read_resource(_NOTES)
    _step(
        out,
        "A resource that is followed tells of its changes.",
        f"watch demo --resource {_NOTES}",
        f"updated {heard.get_nowait().get('uri')}",
        *page.text.splitlines(),
    )


async def _comes_back(out: Out, server: Server) -> int:
    pid = server.pid
    assert pid is not None
    call = asyncio.create_task(server.invoke_tool("hang"))
    await asyncio.sleep(0.1)  # for the look of it: the call is on its way
    os.kill(pid, signal.SIGKILL)
    try:
        await call
        ended = "it answered"
    except McpClientError as problem:
        ended = str(problem)
    began = time.monotonic()
    answer = await server.invoke_tool("greet", {"name": "again"})
    back = f"{answer.text}  (life {server.generation}, after {seconds(time.monotonic() - began)})"
    _step(out, "Killed in the middle of a call, it comes back for the next.", "top", ended, back)
    assert server.pid is not None
    return server.pid


def _step(out: Out, what: str, command: str, *shown: str, quiet: bool = False) -> None:
    if out.json:
        out.document({"step": what, "command": command, "shown": list(shown)}, stream=True)
        return
    out.text("")
    out.heading(what)
    if command:
        out.row(f"$ mcpclient {command}")
    for line in () if quiet else shown:
        out.row("", line)
