"""A sign of life on a terminal while a call takes long: a spinner, or a bar if progress is told."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from mcpclient.cli import safe

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from rich.progress import Progress

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
    bar = Bar(out, facts)
    drawer = asyncio.create_task(bar.draw())
    try:
        yield told
    finally:
        drawer.cancel()
        await asyncio.wait([drawer])


class Bar:
    """What is drawn on stderr."""

    def __init__(self, out: Out, facts: dict[str, Any]) -> None:
        """Draw nothing yet.

        Args:
            out: The streams.
            facts: What is known of the progress; it changes meanwhile.
        """
        self._out = out
        self._facts = facts
        self._shown: Progress | None = None
        self._free = asyncio.Event()
        self._free.set()

    async def draw(self) -> None:
        """Draw until cancelled, but while it is paused."""
        self._out.bar = self
        try:
            while True:
                await self._free.wait()
                await asyncio.sleep(_SOON if self._shown is None else _REFRESH)
                if self._free.is_set():
                    self._refresh()
        finally:
            self._out.bar = None
            self._erase()

    def pause(self) -> None:
        """Make place for something else."""
        self._free.clear()
        self._erase()

    def resume(self) -> None:
        """Draw again."""
        self._free.set()

    def _refresh(self) -> None:
        if self._shown is None:
            self._shown = _made()
            self._shown.add_task("", total=None, share="")
            self._out.undo = self._shown.stop
            self._shown.start()
        facts = self._facts
        done, total = facts["completed"], facts["total"]
        share = f"{done:g}/{total:g}" if total else f"{done:g}" if done else ""
        self._shown.update(self._shown.task_ids[0], share=share, **facts)
        self._shown.refresh()

    def _erase(self) -> None:
        if self._shown is not None:
            self._shown.stop()
            self._shown = None
            self._out.undo = None


def _made() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    # Markup off: in a server's words, brackets are brackets.
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[share]}", markup=False),
        TimeElapsedColumn(),
        console=Console(stderr=True, markup=False, emoji=False, highlight=False),
        transient=True,
        auto_refresh=False,
        redirect_stdout=False,
        redirect_stderr=False,
    )
