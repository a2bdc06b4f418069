"""Frames on their way into a descriptor that may not take them yet. Knows no process.

A frame goes out at once if nothing waits before it. Frames sent in the same turn of the loop
go out together: a write costs more than the bytes in it.
"""

from __future__ import annotations

import os
import time
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.loops.base import Loop, Stop
    from mcpclient.protocol.envelope import Outgoing

# More frames than this do not make a write cheaper, but they make the first one wait (measured
# with 100 calls in flight).
_TOGETHER = 16
# What a pipe takes at once, in bytes.
_PIPE = 65536


class Outbox:
    """The writing half of a pipe.

    Attributes:
        waiting: How many bytes wait.
    """

    __slots__ = (
        "_broken",
        "_closing",
        "_drained",
        "_fd",
        "_loop",
        "_moved_at",
        "_patience",
        "_queue",
        "_rest",
        "_scheduled",
        "_stalled",
        "_stall_timer",
        "_watch",
        "waiting",
    )

    def __init__(
        self,
        loop: Loop,
        fd: int,
        patience: float,
        stalled: Callable[[float], None],
        broken: Callable[[OSError], None],
    ) -> None:
        """Write into ``fd``.

        Args:
            loop: The loop that runs this code.
            fd: A non-blocking descriptor; its owner closes it after :meth:`stop`.
            patience: After so many seconds in which no byte was taken, ``stalled`` is called.
            stalled: Told that the reader takes nothing, again after each such span.
            broken: Told once that the descriptor takes nothing any more.
        """
        self._loop = loop
        self._fd = fd
        self._patience = patience
        self._stalled = stalled
        self._broken: Callable[[OSError], None] | None = broken
        self._queue: deque[Outgoing] = deque()
        self._rest: memoryview | None = None
        self._scheduled = False
        self._watch: Stop | None = None
        self._stall_timer: Stop | None = None
        self._moved_at = 0.0
        self._drained: Callable[[], None] | None = None
        self._closing = False
        self.waiting = 0

    def send(self, item: Outgoing) -> None:
        """Write a frame at once, or after those that wait."""
        if self._queue or self._watch is not None or self._fd < 0 or self._closing:
            self.send_soon(item)
            return
        frame = item.frame
        try:
            count = os.write(self._fd, frame)
        except BlockingIOError:
            count = 0
        except OSError as problem:
            self._break(problem)
            return
        if count:
            item.written = True
        if count < len(frame):
            if count:
                self._rest = memoryview(frame)[count:]
            else:
                self._queue.append(item)
            self.waiting += len(frame) - count
            self._wait()

    def send_soon(self, item: Outgoing) -> None:
        """Write a frame together with what else is sent in this turn of the loop."""
        if self._fd < 0 or self._closing:
            return
        self._queue.append(item)
        self.waiting += len(item.frame)
        if self._watch is not None:
            return
        if len(self._queue) >= _TOGETHER:
            self._flush()
        elif not self._scheduled:
            self._scheduled = True
            self._loop.soon(self._flush_now)

    def withdraw(self, item: Outgoing) -> bool:
        """Take back a frame of which no byte was written; False if it is too late."""
        if item.written:
            return False
        for place, queued in enumerate(self._queue):
            # By identity: two calls may well send equal frames.
            if queued is item:
                del self._queue[place]
                self.waiting -= len(item.frame)
                return True
        return True

    def finish(self, drained: Callable[[], None]) -> None:
        """Take no more frames; call ``drained`` once all that wait are written."""
        self._closing = True
        self._drained = drained
        if not self._queue and self._rest is None:
            self._ended()
        elif self._watch is None:
            self._flush()

    def stop(self) -> None:
        """Write nothing more. The descriptor may be closed after this."""
        self._fd = -1
        self._unwatch()
        self._queue.clear()
        self._rest = None
        self.waiting = 0

    def _flush_now(self) -> None:
        self._scheduled = False
        if self._queue and self._watch is None:
            self._flush()

    def _flush(self) -> None:
        """Write what waits until the pipe is full."""
        while self._fd >= 0 and (self._rest is not None or self._queue):
            items = [] if self._rest is not None else self._next()
            data = self._rest if self._rest is not None else b"".join([i.frame for i in items])
            try:
                count = os.write(self._fd, data)
            except BlockingIOError:
                self._wait()
                return
            except OSError as problem:
                self._break(problem)
                return
            self.waiting -= count
            self._moved_at = time.monotonic()
            if not self._written(items, count, data):
                self._wait()
                return
        self._unwatch()
        if self._closing:
            self._ended()

    def _next(self) -> list[Outgoing]:
        """Return the frames of the next write: no more than a pipe takes at once."""
        items: list[Outgoing] = []
        size = 0
        for item in self._queue:
            items.append(item)
            size += len(item.frame)
            if size >= _PIPE:
                break
        return items

    def _written(self, items: list[Outgoing], count: int, data: bytes | memoryview) -> bool:
        """Account for a write; return whether all of it went out."""
        if self._rest is not None:
            self._rest = self._rest[count:] if count < len(data) else None
            return self._rest is None
        whole = count == len(data)
        for item in items:
            if count <= 0:
                break
            self._queue.popleft()
            item.written = True
            length = len(item.frame)
            if count < length:
                self._rest = memoryview(item.frame)[count:]
            count -= length
        return whole

    def _wait(self) -> None:
        if self._watch is None and self._fd >= 0:
            self._watch = self._loop.writable(self._fd, self._flush)
            self._moved_at = time.monotonic()
            self._stall_timer = self._loop.later(self._patience, self._check)

    def _check(self) -> None:
        """Tell of a stall, if nothing moved since the timer was set."""
        if self._watch is None:
            return
        idle = time.monotonic() - self._moved_at
        if idle >= self._patience * 0.99:
            self._stalled(idle)
            idle = 0.0
        self._stall_timer = self._loop.later(self._patience - idle, self._check)

    def _unwatch(self) -> None:
        for stop in (self._watch, self._stall_timer):
            if stop is not None:
                stop.cancel()
        self._watch = self._stall_timer = None

    def _break(self, problem: OSError) -> None:
        tell, self._broken = self._broken, None
        self.stop()
        if tell is not None:
            tell(problem)

    def _ended(self) -> None:
        tell, self._drained = self._drained, None
        if tell is not None:
            tell()
