"""The engine's wishes on asyncio, by its own futures, readers and timers."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mcpclient.loops.base import Stop, Waiter

_log = logging.getLogger("mcpclient")
# The loop itself holds its tasks only weakly.
_jobs: set[asyncio.Task[None]] = set()


class AsyncioLoop:
    """One running asyncio loop."""

    __slots__ = ("_loop", "soon", "waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        # Bound once: these two stand on the path of every call.
        self.waiter: Callable[[], Waiter] = loop.create_future
        self.soon: Callable[[Callable[[], None]], object] = loop.call_soon

    def from_thread(self, call: Callable[[], None]) -> None:
        """See :class:`~mcpclient.loops.base.Loop`."""
        try:
            self._loop.call_soon_threadsafe(call)
        except RuntimeError:
            pass  # it is closed, and whoever waited there is gone

    def later(self, delay: float, call: Callable[[], None]) -> Stop:
        """See :class:`~mcpclient.loops.base.Loop`."""
        return self._loop.call_later(delay, call)

    def readable(self, fd: int, call: Callable[[], None]) -> Stop:
        """See :class:`~mcpclient.loops.base.Loop`."""
        self._loop.add_reader(fd, call)
        return _Watch(self._loop.remove_reader, fd)

    def writable(self, fd: int, call: Callable[[], None]) -> Stop:
        """See :class:`~mcpclient.loops.base.Loop`."""
        self._loop.add_writer(fd, call)
        return _Watch(self._loop.remove_writer, fd)

    def job(self, run: Callable[[], Coroutine[Any, Any, None]], name: str) -> Stop:
        """See :class:`~mcpclient.loops.base.Loop`."""
        task = self._loop.create_task(run(), name=f"mcpclient {name}")
        _jobs.add(task)
        task.add_done_callback(_job_ended)
        return task

    async def checkpoint(self) -> None:
        """See :class:`~mcpclient.loops.base.Loop`."""
        await asyncio.sleep(0)

    async def outlast(self, waiter: Any) -> None:
        """See :class:`~mcpclient.loops.base.Loop`."""
        import anyio  # only who must not be cancelled needs it; a server must be up at once

        cancelled = False
        # The scope keeps anyio from cancelling again and again; a native cancel comes once.
        with anyio.CancelScope(shield=True):
            while not waiter.done():
                try:
                    await asyncio.shield(waiter)
                except asyncio.CancelledError:
                    cancelled = True
        if cancelled:
            raise asyncio.CancelledError


class _Watch:
    __slots__ = ("_fd", "_remove")

    def __init__(self, remove: Callable[[int], object], fd: int) -> None:
        self._remove = remove
        self._fd = fd

    def cancel(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            self._remove(fd)


def _job_ended(task: asyncio.Task[None]) -> None:
    _jobs.discard(task)
    if not task.cancelled() and (problem := task.exception()) is not None:
        _log.error("! %s ended by a fault of its own", task.get_name(), exc_info=problem)
