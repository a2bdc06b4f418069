"""Which message goes to the server when: each in a task, and not too many of them at the same time.

HTTP/1.1 carries one exchange on a connection. A few of them serve many calls as long as they are
quick; while they are slow, more are opened, up to a limit. What is no call has lanes of its own: an
answer that the server needs for a call must not stand in the line behind it. A stream that lasts
goes aside, where it takes nobody's place.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from mcpclient.loops.base import Loop, Stop
    from mcpclient.protocol.envelope import Outgoing

# How many at first; and after the line has not moved for so many seconds, twice as many.
_FEW = 4
_PATIENCE = 0.1


class _Job:
    __slots__ = ("counted", "item", "later", "stop")

    def __init__(self, item: Outgoing, counted: bool) -> None:
        self.item = item
        self.counted = counted
        self.stop: Stop | None = None
        self.later: Stop | None = None


class Lanes:
    """The messages of one transport that wait or are on the wire.

    Attributes:
        waiting: How many bytes wait.
        running: How many calls are on the wire.
        quiet: Called when the last call on the wire has ended.
    """

    def __init__(
        self,
        loop: Loop,
        carry: Callable[[Outgoing], Coroutine[Any, Any, None]],
        most: int,
        name: str,
    ) -> None:
        """Begin with none.

        Args:
            loop: The loop that runs this code.
            carry: Exchanges one message. It raises nothing but a cancellation.
            most: How many calls may be on the wire at the most.
            name: Whose they are, for the names of tasks.
        """
        self._loop = loop
        self._carry = carry
        self._most = most
        self._name = name
        self._queue: deque[Outgoing] = deque()
        self._jobs: dict[int, _Job] = {}
        self._allowed = min(_FEW, most)
        self._held = False
        self._stopped = False
        self._taken = 0
        self._timer: Stop | None = None
        self._live = 0
        self._empty = anyio.Event()
        self.waiting = 0
        self.running = 0
        self.quiet: Callable[[], None] | None = None

    def put(self, item: Outgoing, *, aside: bool) -> None:
        """Send a message when it is its turn; at once if it goes aside of the line."""
        if self._stopped:
            return
        if aside:
            self._begin(item, counted=False)
        elif self._held or self.running >= self._allowed:
            self._queue.append(item)
            self.waiting += len(item.frame)
            self._watch()
        else:
            self._begin(item, counted=True)

    def take_back(self, item: Outgoing) -> bool:
        """Take a message out of the line; False if it is on the wire, or was."""
        for place, queued in enumerate(self._queue):
            # By identity: two calls may well send equal frames.
            if queued is item:
                del self._queue[place]
                self.waiting -= len(item.frame)
                return True
        return False

    def queued(self) -> list[Outgoing]:
        """Return the messages in the line."""
        return list(self._queue)

    def has(self, item: Outgoing) -> bool:
        """Return whether a message is on the wire."""
        return id(item) in self._jobs

    def cut(self, item: Outgoing, delay: float = 0.0) -> None:
        """End the exchange of a message, now or in some seconds, if it has not ended by then."""
        job = self._jobs.get(id(item))
        if job is None:
            return
        if delay and job.later is None:
            job.later = self._loop.later(delay, lambda: self.cut(item))
        elif not delay:
            self._end(job)
            if job.stop is not None:
                job.stop.cancel()

    def hold(self) -> None:
        """Begin no more calls."""
        self._held = True

    def release(self) -> None:
        """End a :meth:`hold`."""
        self._held = False
        self._go_on()

    def stop(self) -> None:
        """End all exchanges; what waits is not sent any more."""
        self._stopped = True
        self.quiet = None
        self._queue.clear()
        self.waiting = 0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for job in list(self._jobs.values()):
            self._end(job)
            if job.stop is not None:
                job.stop.cancel()
        if self._live == 0:
            self._empty.set()

    async def ended(self) -> None:
        """Wait until the tasks of stopped lanes have let their connections go."""
        await self._empty.wait()

    def _begin(self, item: Outgoing, *, counted: bool) -> None:
        job = self._jobs[id(item)] = _Job(item, counted)
        self.running += counted
        what = item.method or "answer"
        job.stop = self._loop.job(lambda: self._run(job), f"{what} to {self._name}")

    async def _run(self, job: _Job) -> None:
        self._live += 1
        try:
            if self._jobs.get(id(job.item)) is job:
                await self._carry(job.item)
        finally:
            self._live -= 1
            self._end(job)
            if self._stopped and self._live == 0:
                self._empty.set()

    def _end(self, job: _Job) -> None:
        if self._jobs.get(id(job.item)) is not job:
            return
        del self._jobs[id(job.item)]
        if job.later is not None:
            job.later.cancel()
        if job.counted:
            self.running -= 1
            self._go_on()
            if self.running == 0:
                self._allowed = min(_FEW, self._most)
                if self.quiet is not None:
                    self.quiet()

    def _go_on(self) -> None:
        while self._queue and not self._held and self.running < self._allowed:
            item = self._queue.popleft()
            self.waiting -= len(item.frame)
            self._taken += 1
            self._begin(item, counted=True)

    def _watch(self) -> None:
        if self._timer is None and self._allowed < self._most:
            taken = self._taken
            self._timer = self._loop.later(_PATIENCE, lambda: self._look(taken))

    def _look(self, taken: int) -> None:
        self._timer = None
        if not self._queue:
            return
        if self._taken == taken and not self._held:
            self._allowed = min(self._allowed * 2, self._most)
            self._go_on()
        if self._queue:
            self._watch()
