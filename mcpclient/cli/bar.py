"""A sign of life on a terminal while a call takes long: a spinner, or a bar if progress is told."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcpclient.cli import safe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from mcpclient.cli.out import Out

    Told = Callable[[float, float | None, str | None], None]

# What is quicker needs no sign, and would only flicker.
_SOON = 0.5
_REFRESH = 0.1


@asynccontextmanager
async def progress(out: Out, what: str) -> AsyncIterator[Told]:
    """Show on stderr that something is under way, and how far it is, until the block ends.

    Args:
        out: The streams; nothing is shown unless a person reads both.
        what: What is under way.

    Yields:
        What takes the progress that a server tells. Progress is asked for whether or not anybody
        sees it, so that servers behave the same in a pipe.
    """
    facts: dict[str, Any] = {"completed": 0.0, "total": None, "description": safe.brief(what, 60)}

    def told(done: float, total: float | None, message: str | None) -> None:
        facts["completed"] = done
        facts["total"] = total if total is not None and total > 0 else facts["total"]
        if message:
            facts["description"] = safe.brief(message, 60)

    if out.quiet or out.json or not (out.watched and out.terminal):
        yield told
        return
    drawer = asyncio.create_task(_draw(out, facts))
    try:
        yield told
    finally:
        drawer.cancel()
        await asyncio.wait([drawer])


async def _draw(out: Out, facts: dict[str, Any]) -> None:
    await asyncio.sleep(_SOON)
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    # Markup off: in a server's words, brackets are brackets.
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[share]}", markup=False),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True, markup=False, emoji=False, highlight=False)
    shown = Progress(
        *columns,
        console=console,
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
    task = shown.add_task("", total=None, share="")
    out.undo = shown.stop
    shown.start()
    try:
        while True:
            done, total = facts["completed"], facts["total"]
            share = f"{done:g}/{total:g}" if total else f"{done:g}" if done else ""
            shown.update(task, share=share, **facts)
            shown.refresh()
            await asyncio.sleep(_REFRESH)
    finally:
        shown.stop()
        out.undo = None
