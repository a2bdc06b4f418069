"""``watch``: what servers announce and what becomes of them, as it happens."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import click

from mcpclient.cli import telling
from mcpclient.cli.options import common, state_of
from mcpclient.cli.problems import UNREACHABLE, failure
from mcpclient.cli.shell import completing
from mcpclient.ground.errors import McpClientError

if TYPE_CHECKING:
    from mcpclient.cli.running import Session
    from mcpclient.manager.server import Server
    from mcpclient.supervision.incidents import Incident

News = asyncio.Queue[tuple[str, str, dict[str, Any]]]
# What waits to be written; if a reader is slow the servers' inboxes fill, which drop the oldest.
_WAITING = 100


@click.command()
@click.option(
    "-r",
    "--resource",
    "uris",
    metavar="URI",
    multiple=True,
    help="Follow this resource too, of the one SERVER that is named.",
)
@click.option(
    "-m", "--method", "methods", metavar="METHOD", multiple=True, help="A notification of its own."
)
@click.argument("names", nargs=-1, metavar="[SERVER]...", shell_complete=completing("servers"))
@common
@click.pass_context
def watch(
    context: click.Context, uris: tuple[str, ...], methods: tuple[str, ...], names: tuple[str, ...]
) -> int:
    """Show notifications and changes of state, live.

    The servers are started, and stopped when this ends: with Ctrl-C, or when nothing more can
    come. With --json each line is an object.
    """
    from mcpclient.cli.running import run

    state = state_of(context)
    if uris and not state.adhoc and len(names) != 1:
        raise click.UsageError("--resource needs the one SERVER that has it", context)
    return run(state, lambda session: _watch(session, uris, methods), names, lasting=True)


async def _watch(session: Session, uris: tuple[str, ...], methods: tuple[str, ...]) -> int:
    news: News = asyncio.Queue(_WAITING)
    manager = session.manager

    # Written by the one task that a signal can break off, not where they are delivered.
    async def moved(server: Server, state: str) -> None:
        facts = {"generation": server.generation, "pid": server.pid}
        text = telling.state(server, state)
        await news.put((server.name, text, {"event": "state", "state": state, **facts}))

    async def died(server: Server, incident: Incident) -> None:
        facts = {"event": "incident", "generation": incident.generation, "text": str(incident)}
        await news.put((server.name, str(incident), facts))

    def notified(method: str) -> Any:
        async def put(server: Server, params: Any) -> None:
            facts = {"event": "notification", "method": method, "params": params}
            await news.put((server.name, telling.notification(method, params), facts))

        return put

    manager.on_state(moved)
    manager.on_incident(died)
    for method in dict.fromkeys((*telling.KNOWN, *methods)):
        manager.on_notification(method, notified(method))
    broken = 0
    for name in session.names:
        try:
            session[name].begin()
        except McpClientError as problem:
            session.out.problem(failure(problem))
            broken += 1
    following = asyncio.create_task(_follow(session, uris, news)) if uris else None
    states: dict[str, str] = {}
    try:
        while sum(state in telling.OVER for state in states.values()) < len(session.names) - broken:
            name, text, facts = await news.get()
            if facts["event"] == "refused":
                raise facts["problem"]
            telling.tell(session.out, name, text, **facts)
            if facts["event"] == "state":
                states[name] = facts["state"]
    finally:
        if following is not None:
            following.cancel()
            await asyncio.wait([following])
    return UNREACHABLE if broken or "failed" in states.values() else 0


async def _follow(session: Session, uris: tuple[str, ...], news: News) -> None:
    """Follow resources until it is cancelled; that they changed is told as a notification."""
    async with AsyncExitStack() as followed:
        try:
            for uri in uris:
                await followed.enter_async_context(session.server.subscribe(uri))
        except McpClientError as problem:
            await news.put((session.server.name, "", {"event": "refused", "problem": problem}))
        await asyncio.Event().wait()
