"""One job that runs as long as somebody waits for what it finds out, and a moment longer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from mcpclient.ground.errors import McpClientError
    from mcpclient.loops.base import Loop, Stop, Waiter

# For how long the job goes on for nobody: who waits in a loop comes back soon.
_LINGER = 1.0


class Vigil:
    """Those who wait, and the job they wait for. It is run anew if it ended meanwhile."""

    def __init__(self, loop: Loop, run: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Begin with nobody.

        Args:
            loop: The loop that runs this code.
            run: The job. It wakes those who wait, and never raises.
            name: What the job is called.
        """
        self._loop = loop
        self._run = run
        self._name = name
        self._job: Stop | None = None
        self._turn = 0
        self._linger: Stop | None = None
        self._waiters: set[Waiter] = set()

    async def wait(self, left: float | None = None) -> None:
        """Wait for news, for so many seconds; raise what they are if they are bad."""
        self._stay()
        waiter = self._loop.waiter()
        self._waiters.add(waiter)
        timer = None if left is None else self._loop.later(left, lambda: _hand(waiter, None))
        try:
            if self._job is None:
                self._turn = turn = self._turn + 1
                self._job = self._loop.job(lambda: self._watch(turn), self._name)
            problem = await waiter
        finally:
            self._waiters.discard(waiter)
            if timer is not None:
                timer.cancel()
            if not self._waiters and self._job is not None:
                self._linger = self._loop.later(_LINGER, self._leave)
        if problem is not None:
            raise problem.again()

    def wake(self, problem: McpClientError | None = None) -> None:
        """There are news for all who wait."""
        for waiter in self._waiters:
            _hand(waiter, problem)

    def end(self) -> None:
        """End the job now. Whoever still waits looks again, and may run it anew."""
        self._stay()
        # Forgotten at once: one that is cancelled before it ran at all has no end of its own.
        job, self._job = self._job, None
        if job is not None:
            job.cancel()
        self.wake()

    async def _watch(self, turn: int) -> None:
        try:
            await self._run()
        finally:
            if turn == self._turn and self._job is not None:
                self._job = None
                self._stay()
                self.wake()  # whoever came meanwhile runs it anew

    def _leave(self) -> None:
        self._linger = None
        if not self._waiters:
            self.end()

    def _stay(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None


def _hand(waiter: Waiter, news: McpClientError | None) -> None:
    if not waiter.done():
        waiter.set_result(news)
