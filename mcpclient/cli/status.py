"""``status``: each server is started once and says how it is."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import click

from mcpclient.cli.options import common, state_of
from mcpclient.cli.problems import exit_code, failure
from mcpclient.cli.shell import completing
from mcpclient.ground.errors import McpClientError
from mcpclient.ground.text import seconds

if TYPE_CHECKING:
    from mcpclient.cli.running import Session
    from mcpclient.manager.server import Server

_HEAD = ("SERVER", "STATE", "ERA", "VERSION", "READY", "TOOLS", "RESOURCES", "PROMPTS", "IT IS")


@click.command()
@click.argument("names", nargs=-1, metavar="[SERVER]...", shell_complete=completing("servers"))
@common
@click.pass_context
def status(context: click.Context, names: tuple[str, ...]) -> int:
    """Start servers and say how they are."""
    from mcpclient.cli.running import run

    return run(state_of(context), _status, names)


async def _status(session: Session) -> int:
    found = await asyncio.gather(*(_one(session, name) for name in session.names))
    out = session.out
    if out.json:
        out.document([facts for facts, _ in found])
    else:
        out.table(_HEAD, [_row(facts) for facts, _ in found])
    code = 0
    for _, problem in found:
        if problem is not None:
            out.problem(failure(problem))
            code = max(code, exit_code(problem))
    return code


async def _one(session: Session, name: str) -> tuple[dict[str, Any], McpClientError | None]:
    facts: dict[str, Any] = {"server": name, "state": "failed"}
    began = time.monotonic()
    try:
        server = session[name]
        await server.start()
        facts |= {
            "state": server.state,
            "era": server.era,
            "version": server.protocol_version,
            "ready": round(time.monotonic() - began, 3),
            "pid": server.pid,
            "info": server.info,
        }
        facts |= await _counts(session, server)
    except McpClientError as problem:
        return {**facts, "error": str(failure(problem))}, problem
    return facts, None


async def _counts(session: Session, server: Server) -> dict[str, int]:
    from mcpclient.cli import lists

    tools, resources, prompts = await asyncio.gather(
        lists.known_tools(session, server),
        lists.known_resources(session, server),
        lists.known_prompts(session, server),
    )
    return {"tools": len(tools), "resources": len(resources), "prompts": len(prompts)}


def _row(facts: dict[str, Any]) -> tuple[str, ...]:
    info = facts.get("info", {})
    who = " ".join(str(info[key]) for key in ("name", "version") if info.get(key))
    counts = (str(facts.get(key, "–")) for key in ("tools", "resources", "prompts"))
    ready = seconds(facts["ready"]) if "ready" in facts else "–"
    era, version = facts.get("era") or "–", facts.get("version") or "–"
    return (facts["server"], facts["state"], era, version, ready, *counts, who)
