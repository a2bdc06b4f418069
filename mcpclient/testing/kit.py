"""A server of the kit at the far end of a pair of memory transports, on asyncio or trio.

What arrives is begun in its order, so that no cancellation overtakes the request it names; what
runs, runs concurrently.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from mcpclient.protocol.envelope import Outgoing
from mcpclient.testing.silent import Silent

if TYPE_CHECKING:
    from mcpclient.ground.exits import Exit
    from mcpclient.loops.base import Loop, Stop, Waiter
    from mcpclient.serverkit import Server
    from mcpclient.serverkit.incoming import Item
    from mcpclient.transports.memory import MemoryTransport


def serve(server: Server, loop: Loop, far: MemoryTransport) -> None:
    """Begin to serve one client; it ends with the pair."""
    far.start(_Session(server, loop, far))


class _Session(Silent):
    def __init__(self, server: Server, loop: Loop, far: MemoryTransport) -> None:
        self._loop = loop
        self._far = far
        self._session = server.open(far.send)
        self._arrived: deque[Item] = deque()
        self._pump: Stop | None = None
        self._running: dict[int, Stop] = {}
        self._count = 0

    def frame(self, line: bytes) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        self._arrived += self._session.receive(line)
        if self._pump is None and self._arrived:
            self._pump = self._loop.job(self._begin, "kit server")

    def gone(self, exit: Exit, reason: str) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        self._session.close(reason or "the client is gone")
        self._arrived.clear()
        # The pump too: it may wait for the beginning of what is cancelled before it began.
        for stop in [*self._running.values(), *filter(None, [self._pump])]:
            stop.cancel()

    async def _begin(self) -> None:
        try:
            while self._arrived:
                begun = self._loop.waiter()
                self._count += 1
                run = partial(self._answer, self._arrived.popleft(), self._count, begun)
                self._running[self._count] = self._loop.job(run, "kit request")
                await begun
        finally:
            self._pump = None

    async def _answer(self, item: Item, number: int, begun: Waiter) -> None:
        try:
            if not begun.done():
                begun.set_result(None)
            # Up to its first wait this goes on at once, before the next one is begun.
            reply = await self._session.answer(item, cancel=self._running[number].cancel)
            if reply is not None:
                self._far.send(Outgoing(reply.frame))
        finally:
            del self._running[number]
