"""How long one waits for a task. What this side takes itself is nobody's time-out.

A person who is asked takes time; a server that tells of progress earns more of it.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpclient.connection.connection import Connection


class Leeway:
    """The time of one task."""

    def __init__(self, most: float | None) -> None:
        """Begin.

        Args:
            most: How long a wait may become by progress, in seconds; None for no limit.
        """
        self._most = most
        self._asked = 0.0
        self._asking_since: float | None = None
        self._connection: Connection | None = None
        self._held = 0.0
        self._moved = 0.0

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Within this a person is asked."""
        self._asking_since = time.monotonic()
        try:
            yield
        finally:
            self._asked += time.monotonic() - self._asking_since
            self._asking_since = None

    def use(self, connection: Connection) -> None:
        """From here on the server asks by this connection, if it asks by requests."""
        if connection is not self._connection:
            self._held += self._holding() - connection.deadlines.held
            self._connection = connection

    def moved(self) -> None:
        """There was progress."""
        self._moved = time.monotonic()

    def idle(self) -> float:
        """Return for how many seconds in all the server waited for this side."""
        since = self._asking_since
        asking = 0.0 if since is None else time.monotonic() - since
        return self._asked + asking + self._held + self._holding()

    def left(self, begun: float, idle: float, limit: float | None) -> float | None:
        """Return how long a wait lasts yet.

        Args:
            begun: When it began.
            idle: What :meth:`idle` said then.
            limit: How long it may last, or None for ever.
        """
        if limit is None:
            return None
        end = begun + limit
        if self._moved > begun:
            end = self._moved + limit
            if self._most is not None:
                end = min(end, begun + max(self._most, limit))
        return end + self.idle() - idle - time.monotonic()

    def _holding(self) -> float:
        return self._connection.deadlines.held if self._connection is not None else 0.0
