"""Keeps storms of "the list changed" from the handlers, without ever losing the last one.

Some servers announce a change after every list they give; a handler that lists again would go
round for ever at full speed. A notice that comes too soon after the last one waits until the
time is over, and those that come meanwhile are the same notice: it says nothing but "look again".
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from msgspec import Raw

    from mcpclient.loops.base import Loop, Stop

_SUFFIX = "/list_changed"


class Calm:
    """The list notices of one server.

    Attributes:
        interval: The least time between two notices of one method, in seconds.
        merged: How many notices were told as one with another.
    """

    def __init__(self, loop: Loop, interval: float, put: Callable[[str, Raw], None]) -> None:
        """Let notices through to ``put``, of each method at most one in ``interval`` seconds."""
        self._loop = loop
        self.interval = interval
        self._put = put
        self._told_at: dict[str, float] = {}
        self._waiting: dict[str, tuple[Raw, Stop]] = {}
        self.merged = 0

    def offer(self, method: str, params: Raw) -> None:
        """Put a notice through, now or a little later."""
        if not method.endswith(_SUFFIX):
            self._put(method, params)
            return
        if method in self._waiting:
            self.merged += 1
            self._waiting[method] = (params, self._waiting[method][1])
            return
        now = time.monotonic()
        wait = self._told_at.get(method, -self.interval) + self.interval - now
        if wait <= 0:
            self._told_at[method] = now
            self._put(method, params)
        else:
            timer = self._loop.later(wait, lambda: self._tell(method))
            self._waiting[method] = (params, timer)

    def flush(self) -> None:
        """Tell what waits: the server is gone, but what it said last still counts."""
        for method in list(self._waiting):
            self._waiting[method][1].cancel()
            self._tell(method)

    def _tell(self, method: str) -> None:
        params, _ = self._waiting.pop(method)
        self._told_at[method] = time.monotonic()
        self._put(method, params)
