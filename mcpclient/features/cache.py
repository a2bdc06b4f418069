"""Reads that are kept, bounded by number and bytes. Knows keys and time, never a server's life.

https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/caching
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable

    from cachetools import LRUCache

    from mcpclient.protocol.types import ResourceResult

Key = tuple[str, str]
"""A server's name and a resource's URI, both exactly as written."""


class CacheStats(Struct, kw_only=True):
    """What the cache did and holds.

    Attributes:
        hits: Reads answered from the cache.
        misses: Reads that went to a server.
        joins: Reads that shared the request of another one.
        evictions: Entries dropped because the cache was full.
        entries: How many reads it holds.
        bytes: How many bytes of JSON they are.
    """

    hits: int = 0
    misses: int = 0
    joins: int = 0
    evictions: int = 0
    entries: int = 0
    bytes: int = 0


class _Entry(Struct, gc=False):
    result: ResourceResult
    stale_at: float


class ReadCache:
    """Results by server and URI, the least recently used dropped first."""

    def __init__(
        self, entries: int, size: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Make an empty cache.

        Args:
            entries: How many reads it holds at most.
            size: How many bytes of JSON it holds at most; a larger result is not kept.
            clock: Tells the time in seconds.
        """
        self._most = entries
        self._size = size
        self._clock = clock
        self._kept: LRUCache[Key, _Entry] | None = None
        self._stats = CacheStats()

    def get(self, key: Key) -> ResourceResult | None:
        """Return a fresh result and count a hit, or None."""
        kept = self._kept
        entry = kept.get(key) if kept is not None else None
        if entry is None:
            return None
        if self._clock() >= entry.stale_at:
            self.drop(key)
            return None
        self._stats.hits += 1
        return entry.result

    def put(self, key: Key, result: ResourceResult, lifetime: float) -> None:
        """Keep a result for so many seconds; 0 keeps nothing."""
        if lifetime <= 0 or result.size > self._size:
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

    def drop_where(self, doomed: Callable[[Key], bool]) -> None:
        """Forget all results whose key says so."""
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
