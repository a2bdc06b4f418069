"""Results that are kept, bounded by number and bytes. Knows keys and time, never a server's life.

https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from cachetools import LRUCache


Key = tuple[str, ...]
"""A server's name and, as written, a resource's URI, or a list's method and one of its cursors."""


class Kept(Protocol):
    """What is kept: any result that knows its size."""

    @property
    def size(self) -> int:
        """How many bytes of JSON it has."""


class CacheStats(Struct, kw_only=True):
    """What the cache did and holds.

    Attributes:
        hits: Reads and pages of lists answered from the cache.
        misses: Reads that went to a server.
        joins: Reads that shared the request of another one.
        evictions: Entries dropped because the cache was full.
        stale: Results past their time, given since the server did not answer.
        entries: How many reads it holds.
        bytes: How many bytes of JSON they are.
    """

    hits: int = 0
    misses: int = 0
    joins: int = 0
    evictions: int = 0
    stale: int = 0
    entries: int = 0
    bytes: int = 0


class _Entry(Struct, gc=False):
    result: Any
    stale_at: float


class ReadCache:
    """Results by server and URI, the least recently used dropped first."""

    def __init__(
        self,
        entries: int,
        size: int,
        clock: Callable[[], float] | None = None,
        grace: float = 0.0,
    ) -> None:
        """Make an empty cache.

        Args:
            entries: How many reads it holds at most.
            size: How many bytes of JSON it holds at most; a larger result is not kept.
            clock: Tells the time in seconds; None: ``time.monotonic``.
            grace: For how many seconds a stale result is still remembered, for :meth:`stale`.
        """
        self._most = entries
        self._size = size
        # Looked up at each call: a test may turn it.
        self._clock = clock or (lambda: time.monotonic())
        self._grace = grace
        self._epochs: dict[str, int] = {}
        self._kept: LRUCache[Key, _Entry] | None = None
        self._stats = CacheStats()

    def get(self, key: Key) -> Any:
        """Return a fresh result and count a hit, or None."""
        kept = self._kept
        entry = kept.get(key) if kept is not None else None
        if entry is None:
            return None
        if (late := self._clock() - entry.stale_at) >= 0:
            if late >= self._grace:
                self.drop(key)
            return None
        self._stats.hits += 1
        return entry.result

    def peek(self, key: Key) -> Any:
        """Return a fresh result and count nothing, or None."""
        entry = self._kept.get(key) if self._kept is not None else None
        return entry.result if entry is not None and self._clock() < entry.stale_at else None

    def stale(self, key: Key) -> Any:
        """Return a result that is still remembered, fresh or not, or None."""
        entry = self._kept.get(key) if self._kept is not None else None
        if entry is None or self._clock() - entry.stale_at >= self._grace:
            return None
        self._stats.stale += 1
        return entry.result

    def epoch(self, server: str) -> int:
        """Return a number that changes whenever something of a server is invalidated."""
        return self._epochs.get(server, 0)

    def put(self, key: Key, result: Kept, lifetime: float) -> None:
        """Keep a result for so many seconds, in place of an older one; 0 keeps nothing."""
        if lifetime <= 0 or result.size > self._size:
            self.drop(key)  # an older one must not be taken for it
            return
        kept = self._kept
        if kept is None:
            # Loaded when there is something to keep: most programs never read a resource.
            from cachetools import LRUCache

            kept = self._kept = LRUCache(self._size, getsizeof=lambda entry: entry.result.size)
        before = len(kept) - (key in kept)
        stale_at = math.inf if lifetime == math.inf else self._clock() + lifetime
        kept[key] = _Entry(result, stale_at)
        while len(kept) > self._most:
            kept.popitem()
        self._stats.evictions += before + 1 - len(kept)

    def drop(self, key: Key) -> None:
        """Forget one result."""
        if self._kept is not None:
            self._kept.pop(key, None)

    def drop_where(self, doomed: Callable[[Key], bool], server: str = "") -> None:
        """Forget all results whose key says so; they are a server's, if it is named."""
        self._epochs[server] = self.epoch(server) + 1
        for key in [key for key in self._kept or () if doomed(key)]:
            self.drop(key)

    def count_miss(self) -> None:
        """Count a read that went to a server."""
        self._stats.misses += 1

    def count_join(self) -> None:
        """Count a read that shared another one's request."""
        self._stats.joins += 1

    def stats(self) -> CacheStats:
        """Return the numbers of this moment."""
        kept = self._kept
        self._stats.entries = len(kept) if kept is not None else 0
        self._stats.bytes = int(kept.currsize) if kept is not None else 0
        return CacheStats(**{name: getattr(self._stats, name) for name in _FIELDS})


_FIELDS = CacheStats.__struct_fields__
