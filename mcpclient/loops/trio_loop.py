"""The engine's wishes on trio: parked tasks for waiters, system tasks for readers and timers.

A system task's exception would end the whole run, so none leaves one here.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import outcome
import trio
from trio import lowlevel

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

    from mcpclient.loops.base import Stop

_log = logging.getLogger("mcpclient")


class TrioLoop:
    """One running trio loop."""

    __slots__ = ("_token", "waiter")

    def __init__(self) -> None:
        self._token = lowlevel.current_trio_token()
        self.waiter = TrioWaiter

    def soon(self, call: Callable[[], None]) -> None:
        """See :class:`~mcpclient.loops.base.Loop`."""
        self._token.run_sync_soon(_guarded, call)

    def from_thread(self, call: Callable[[], None]) -> None:
        """See :class:`~mcpclient.loops.base.Loop`."""
        try:
            self._token.run_sync_soon(_guarded, call)
        except trio.RunFinishedError:
            pass  # whoever waited there is gone

    def later(self, delay: float, call: Callable[[], None]) -> Stop:
        """See :class:`~mcpclient.loops.base.Loop`."""
        scope = trio.CancelScope()

        async def run() -> None:
            with scope:
                await trio.sleep(delay)
                _guarded(call)

        lowlevel.spawn_system_task(run, name="mcpclient timer")
        return scope

    def readable(self, fd: int, call: Callable[[], None]) -> Stop:
        """See :class:`~mcpclient.loops.base.Loop`."""
        return _Watch(lowlevel.wait_readable, fd, call)

    def writable(self, fd: int, call: Callable[[], None]) -> Stop:
        """See :class:`~mcpclient.loops.base.Loop`."""
        return _Watch(lowlevel.wait_writable, fd, call)

    def job(self, run: Callable[[], Coroutine[Any, Any, None]], name: str) -> Stop:
        """See :class:`~mcpclient.loops.base.Loop`."""

        scope = trio.CancelScope()

        async def guarded() -> None:
            with scope:
                try:
                    await run()
                except Exception:  # a task's outer edge: trio would end the run
                    _log.exception("! mcpclient %s ended by a fault of its own", name)

        lowlevel.spawn_system_task(guarded, name=f"mcpclient {name}")
        return scope

    async def checkpoint(self) -> None:
        """See :class:`~mcpclient.loops.base.Loop`."""
        await lowlevel.checkpoint()

    async def outlast(self, waiter: Any) -> None:
        """See :class:`~mcpclient.loops.base.Loop`."""
        with trio.CancelScope(shield=True):
            await waiter
        await lowlevel.checkpoint_if_cancelled()


class TrioWaiter:
    """One value that one task waits for, parked without any queue between."""

    __slots__ = ("_done", "_task", "_value")

    def __init__(self) -> None:
        self._done = False
        self._task: lowlevel.Task | None = None
        self._value: Any = None

    def done(self) -> bool:
        """See :class:`~mcpclient.loops.base.Waiter`."""
        return self._done

    def set_result(self, value: Any, /) -> None:
        """See :class:`~mcpclient.loops.base.Waiter`."""
        self._done = True
        self._value = value
        if self._task is not None:
            lowlevel.reschedule(self._task, outcome.Value(None))

    def __await__(self) -> Generator[Any, Any, Any]:
        """See :class:`~mcpclient.loops.base.Waiter`."""
        if not self._done:
            self._task = lowlevel.current_task()
            wait = lowlevel.wait_task_rescheduled(self._abort)  # noqa: ASYNC105 - awaited below
            yield from wait.__await__()
        return self._value

    def _abort(self, _raise: object) -> lowlevel.Abort:
        self._done = True
        self._task = None
        return lowlevel.Abort.SUCCEEDED


class _Watch:
    __slots__ = ("_call", "_fd", "_scope", "_wait")

    def __init__(
        self, wait: Callable[[int], Awaitable[None]], fd: int, call: Callable[[], None]
    ) -> None:
        self._wait = wait
        self._fd = fd
        self._call = call
        self._scope = trio.CancelScope()
        lowlevel.spawn_system_task(self._run, name="mcpclient reader")

    async def _run(self) -> None:
        with self._scope:
            while self._fd >= 0:
                await self._wait(self._fd)
                if self._fd >= 0:
                    _guarded(self._call)

    def cancel(self) -> None:
        # The wait ends at once, not when the task next runs: the caller may close the descriptor.
        # Not by notify_closing, which would end the other watch of a socket too.
        self._fd = -1
        self._scope.cancel()


def _guarded(call: Callable[[], None]) -> None:
    try:
        call()
    except Exception:  # a callback's outer edge: trio would end the run
        _log.exception("! a callback ended by a fault of its own")
