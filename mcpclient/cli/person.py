"""Asks the person at the terminal what a server wants to know, one question at a time.

What is asked, and in which order, stands in :mod:`mcpclient.asking`; here are the loop, the
streams and the ends: a server that takes a question back, or a call that is over.
"""

from __future__ import annotations

import asyncio
import sys
import termios
from typing import TYPE_CHECKING, Any

import anyio
from msgspec import UNSET

from mcpclient.asking.talk import Open, talk
from mcpclient.asking.terminal import Terminal
from mcpclient.ground.text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpclient.asking.talk import Asked
    from mcpclient.cli.out import Out


def is_there() -> bool:
    """Return whether a person can be asked: what they type is read, and they see the question."""
    return all(one is not None and one.isatty() for one in (sys.stdin, sys.stderr))


class Person:
    """The handler of ``elicitation/create``."""

    def __init__(self, out: Out) -> None:
        """Ask nobody yet.

        Args:
            out: The streams.
        """
        self._out = out
        self._turn = asyncio.Lock()
        self._scope: anyio.CancelScope | None = None
        self._left = False

    async def __call__(self, server: Any, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the person answers: an ``ElicitResult``."""
        begun = talk(server.name, params)
        async with self._turn:
            with anyio.CancelScope() as self._scope:
                if not self._left:
                    return await self._answered(server.name, begun)
            return {"action": "cancel"}

    def leave(self) -> None:
        """Ask no more: the command is over. Whatever is open is cancelled."""
        self._left = True
        if self._scope is not None:
            self._scope.cancel()

    async def _answered(self, server: str, begun: Any) -> dict[str, Any]:
        line: str | None = None
        with self._out.talking():
            try:
                with Terminal(self._out.ask) as terminal:
                    self._out.undo = terminal.restore
                    while True:
                        line = await self._done(begun.send(line), terminal)
            except StopIteration as end:
                answer: dict[str, Any] = end.value
                return answer
            except (OSError, termios.error) as problem:
                self._out.aside(f"! nobody can be asked here: {problem}")
                return {"action": "cancel"}
            except asyncio.CancelledError:
                self._out.ask("\n")
                if not self._left and not self._out.interrupted:
                    self._out.aside(f'! "{printable(server)}" does not ask any more')
                raise

    async def _done(self, step: Asked, terminal: Terminal) -> str | None:
        if isinstance(step, Open):
            from mcpclient.asking.browser import opened

            return "" if await asyncio.to_thread(opened, step.url) else None
        terminal.ask(step)
        while True:
            await anyio.wait_readable(terminal.fd)
            if (line := terminal.take()) is not UNSET:
                return line
