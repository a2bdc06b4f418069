"""When calls in flight time out: one timer for all of them, set to the nearest. Tells, never acts.

A timer or a cancel scope for each call would cost half of the rate of calls (see ``bench/``).
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.connection.inflight import Call, Inflight
    from mcpclient.loops.base import Loop, Stop

# Deadlines nearer to each other than this are swept together.
_TOGETHER = 0.01


class Deadlines:
    """The time-outs of one connection."""

    __slots__ = (
        "_at",
        "_expire",
        "_held",
        "_held_since",
        "_holds",
        "_inflight",
        "_loop",
        "_timer",
    )

    def __init__(self, loop: Loop, inflight: Inflight, expire: Callable[[Call], None]) -> None:
        """Watch the calls of ``inflight``, and call ``expire`` with each whose time is over."""
        self._loop = loop
        self._inflight = inflight
        self._expire = expire
        self._at = math.inf
        self._timer: Stop | None = None
        self._holds = 0
        self._held_since = 0.0
        self._held = 0.0

    @property
    def held(self) -> float:
        """For how many seconds in all no call could time out."""
        return self._held + (time.monotonic() - self._held_since if self._holds else 0.0)

    def watch(self, call: Call, timeout: float, most: float | None, *, moves: bool) -> None:
        """Let a call time out.

        Args:
            call: The call, not filed yet.
            timeout: How many seconds it may take, or be without progress.
            most: How many seconds it may take in all, if progress moves its time-out; None for
                no limit.
            moves: Whether progress moves it.
        """
        call.begun = now = time.monotonic()
        call.timeout = timeout
        call.deadline = deadline = now + timeout
        if moves:
            call.hard = None if most is None else now + max(most, timeout)
        if deadline < self._at:
            self._set(deadline, now)

    def progressed(self, call: Call) -> None:
        """Begin a call's time anew, up to its hard end."""
        if call.timeout is not None:
            deadline = time.monotonic() + call.timeout
            call.deadline = deadline if call.hard is None else min(deadline, call.hard)

    def hold(self) -> None:
        """Let no call time out: a person is being asked, and the server waits for the answer."""
        if self._holds == 0:
            self._held_since = time.monotonic()
        self._holds += 1

    def release(self) -> None:
        """End a :meth:`hold`: all calls get the time back."""
        self._holds -= 1
        if self._holds:
            return
        now = time.monotonic()
        self._held += now - self._held_since
        for call in self._inflight:
            if call.deadline is None or call.timeout is None:
                continue
            # One that was made meanwhile, or moved on meanwhile, lost less.
            call.deadline += now - max(self._held_since, call.deadline - call.timeout)
            if call.hard is not None:
                call.hard += now - max(self._held_since, call.begun)
        self.stop()
        self._sweep()

    def stop(self) -> None:
        """Watch no more."""
        self._at = math.inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set(self, deadline: float, now: float) -> None:
        self.stop()
        self._at = max(deadline, now + _TOGETHER)
        self._timer = self._loop.later(self._at - now, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        self._at = math.inf
        if self._holds:
            return  # release() sweeps
        now = time.monotonic()
        for call in self._inflight.due(now):
            self._expire(call)
        following = self._inflight.next_deadline()
        if following is not None and following < self._at:
            self._set(following, now)
