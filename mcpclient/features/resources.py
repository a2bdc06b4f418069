"""Reading resources: from the cache, with others who read the same, or from the server.

Reads of one resource that overlap share one request. Each reader has its own time-out and may
leave alone; when the last one leaves, the request is cancelled. What is invalidated while it is
being read is still given to those who wait for it, but not kept, and the next read asks anew.

https://modelcontextprotocol.io/specification/2026-07-28/server/resources
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from mcpclient.ground.errors import (
    CallTimedOut,
    InputRefused,
    McpClientError,
    ReplyError,
    timed_out,
)
from mcpclient.protocol.methods import CHANGED_BY, RESOURCES_CHANGED, RESOURCES_READ
from mcpclient.protocol.types import ResourceResult

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.connection.caller import Caller, Timeout
    from mcpclient.connection.connection import Connection
    from mcpclient.connection.inflight import Call
    from mcpclient.connection.progress import Progress
    from mcpclient.features.cache import Key, ReadCache
    from mcpclient.loops.base import Waiter

USES = ("use", "refresh", "bypass")
# How often is looked whether a person who is asked has answered, in seconds.
_GLANCE = 0.1


def check_use(cache: str) -> None:
    """Raise ValueError unless a word says how to use the cache."""
    if cache not in USES:
        raise ValueError(f"cache must be one of {', '.join(USES)}, not {cache!r}")


class _Read:
    """One request and all who wait for it."""

    __slots__ = ("call", "connection", "waiters")

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.waiters: set[Waiter] = set()
        self.call: Call | None = None


class Reader:
    """The reads of all servers of one manager."""

    def __init__(self, cache: ReadCache, default_ttl: float | None = None) -> None:
        """Read through a cache.

        Args:
            cache: Where results are kept.
            default_ttl: How long a result is kept for which the era knows no time, in seconds;
                None: reads until they are invalidated, lists not at all, since a server need not
                tell that they changed.
        """
        self.cache = cache
        self._default_ttl = math.inf if default_ttl is None else default_ttl
        self.lists_ttl = 0.0 if default_ttl is None else default_ttl
        self._reads: dict[Key, _Read] = {}

    async def read(
        self,
        caller: Caller,
        uri: str,
        cache: str,
        timeout: Timeout,
        on_progress: Progress | None,
    ) -> ResourceResult:
        """Return the contents of a resource."""
        check_use(cache)
        key = (caller.name, uri)
        if cache == "bypass" or on_progress is not None:
            # Progress belongs to one request of one caller.
            result = await caller.request(RESOURCES_READ, {"uri": uri}, timeout, on_progress)
            return ResourceResult(result)
        if cache == "refresh":
            self.invalidate(*key)
        connection, left = await caller.line(timeout, RESOURCES_READ)
        kept = self.cache.get(key)
        if kept is not None:
            # Not at once: a loop over cached reads must let others run.
            await connection.loop.checkpoint()
            return kept  # type: ignore[no-any-return]  # of a read
        try:
            return await self._shared(connection, key, left)
        except CallTimedOut:
            if (old := self.cache.stale(key)) is not None:
                return old  # type: ignore[no-any-return]  # of a read
            raise
        except (InputRefused, ReplyError) as needed:
            if isinstance(needed, ReplyError) and not needed.wants:
                raise
            # From here on each reader goes its own way; nothing of it is kept (MRTR-15).
            return ResourceResult(
                await caller.resume(RESOURCES_READ, {"uri": uri}, timeout, needed)
            )

    def invalidate(self, server: str, uri: str) -> None:
        """Forget what is kept of a resource, and keep nothing of a read under way."""
        self._reads.pop((server, uri), None)
        self.cache.drop((server, uri))

    def updated(self, server: str, uri: str) -> None:
        """Forget a resource, those below it and those above it: any may hold what changed."""
        below = uri.rstrip("/") + "/"

        def doomed(key: Key) -> bool:
            if len(key) != 2 or key[0] != server:
                return False
            known = key[1]
            return (
                known == uri or known.startswith(below) or uri.startswith(known.rstrip("/") + "/")
            )

        self._forget(server, doomed)

    def list_changed(self, server: str, notice: str) -> None:
        """Forget the lists that a notice tells of; with that of the resources, all reads too."""
        changed = CHANGED_BY.get(notice, ())
        self._forget(
            server,
            lambda key: (
                key[0] == server
                and (notice == RESOURCES_CHANGED if len(key) == 2 else key[1] in changed)
            ),
        )

    def forget(self, server: str) -> None:
        """Forget all of a server: its process ended, or it was removed."""
        self._forget(server, lambda key: key[0] == server)

    def _forget(self, server: str, doomed: Callable[[Key], bool]) -> None:
        for key in [key for key in self._reads if doomed(key)]:
            del self._reads[key]
        self.cache.drop_where(doomed, server)

    async def _shared(
        self,
        connection: Connection,
        key: Key,
        timeout: float | None,
    ) -> ResourceResult:
        read = self._reads.get(key)
        if read is None or read.connection is not connection:
            read = self._begin(connection, key)
            self.cache.count_miss()
        else:
            self.cache.count_join()
        loop = connection.loop
        waiter = loop.waiter()
        read.waiters.add(waiter)
        timer = None
        if timeout is not None:
            begun = time.monotonic()
            deadlines = connection.deadlines
            held = deadlines.held

            def expire() -> None:
                nonlocal timer
                waited = time.monotonic() - begun
                idle = deadlines.held - held
                if idle and waited - idle < timeout:
                    # The server waited for this side meanwhile, which is nobody's time-out.
                    timer = loop.later(max(timeout - waited + idle, _GLANCE), expire)
                elif not waiter.done():
                    waiter.set_result(waited)

            timer = loop.later(timeout, expire)
        try:
            outcome = await waiter
        finally:
            read.waiters.discard(waiter)
            if timer is not None:
                timer.cancel()
            if not read.waiters and self._reads.get(key) is read:
                del self._reads[key]
            if not read.waiters and read.call is not None:
                connection.abandon(read.call, "nobody reads it any more")
        if isinstance(outcome, ResourceResult):
            return outcome
        if isinstance(outcome, McpClientError):
            raise outcome.again()
        raise CallTimedOut(
            timed_out(outcome, "", connection.transport.stderr_tail(), connection.noise.text()),
            method=RESOURCES_READ,
            server=key[0],
            maybe_done=read.call is None or read.call.item.written,
        )

    def _begin(self, connection: Connection, key: Key) -> _Read:
        read = _Read(connection)

        def arrived(outcome: Any) -> None:
            assert read.call is not None
            result: ResourceResult | McpClientError
            try:
                data = connection.read(read.call, outcome)
                result = ResourceResult(data)
            except McpClientError as problem:
                result = problem
            else:
                if self._reads.get(key) is read:
                    lifetime = connection.session.era.lifetime(data)
                    self.cache.put(key, result, self._default_ttl if lifetime is None else lifetime)
            if self._reads.get(key) is read:
                del self._reads[key]
            for waiter in read.waiters:
                if not waiter.done():
                    waiter.set_result(result)

        # Marked as under way only once it is: a request that cannot be sent is nobody's to join.
        read.call = connection.begin(RESOURCES_READ, {"uri": key[1]}, None, watch=arrived)
        self._reads[key] = read
        return read
