"""Delivers notifications by itself, each server's in order. Knows no method and no handler."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from mcpclient.loops.base import Loop, Stop
    from mcpclient.manager.server import Server

# How many notifications are delivered before others get their turn.
_BATCH = 50


class Pump:
    """One job for each server whose inbox holds something, until it is empty."""

    def __init__(self, *, auto: bool) -> None:
        """Prepare to deliver.

        Args:
            auto: Whether to deliver at all; without, somebody calls ``tick``.
        """
        self._auto = auto
        self._loop: Loop | None = None
        self._jobs: dict[Server, Stop] = {}

    def start(self, loop: Loop) -> None:
        """Deliver on this loop from now on."""
        self._loop = loop

    def stop(self) -> None:
        """Deliver no more; a handler that waits is cancelled."""
        self._auto = False
        for job in list(self._jobs.values()):
            job.cancel()

    def announce(self, server: Server) -> None:
        """Take note that a server's inbox holds something."""
        if self._auto and server not in self._jobs:
            assert self._loop is not None
            self._jobs[server] = self._loop.job(
                lambda: self._run(server), f"notifications of {server.name}"
            )

    def finish(self, answer: Awaitable[Any]) -> None:
        """Run what an asynchronous handler returned, in a job of its own."""
        assert self._loop is not None

        async def run() -> None:
            await answer

        self._loop.job(run, "notification handler")

    async def _run(self, server: Server) -> None:
        """Deliver one server's notifications, each to all its handlers before the next."""
        assert self._loop is not None
        inbox = server.inbox
        try:
            delivered = 0
            while inbox:
                delivery = inbox.deliver()
                while (answer := delivery.step()) is not None:
                    try:
                        await answer
                    except Exception:  # the user's code; the other handlers must run
                        delivery.fail()
                delivered += 1
                if delivered % _BATCH == 0:
                    await self._loop.checkpoint()
        finally:
            self._jobs.pop(server, None)
