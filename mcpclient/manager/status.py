"""What a manager's servers do and did, as a snapshot for people. Asks nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

if TYPE_CHECKING:
    from mcpclient.connection.connection import Connection
    from mcpclient.features.cache import CacheStats


class ServerStatus(Struct):
    """One server at one moment; the numbers are over all its lives.

    Attributes:
        name: Its name.
        state: What it is doing.
        era: ``handshake`` or ``stateless``, or None if that was never found out.
        version: The protocol version, or None.
        generation: The number of its present or last life.
        restarts: How often it was restarted by itself.
        pid: Its process id, or None.
        in_flight: Calls without an answer yet.
        calls: Calls made.
        late: Answers to calls that were given up, dropped.
        stray: Answers to calls that nobody made or that were answered before, dropped.
        noise: Lines on its stdout that were no message.
        oversize: Messages over ``Limits.frame``.
        asks: Requests it made to us.
        ignored: Those of them that its era forbids.
        dropped: Notifications dropped because nobody took them in time.
        merged: Notices of a changed list that came too soon after another and were told as one.
        last_incident: Its last death, in words, or an empty string.
    """

    name: str
    state: str = "idle"
    era: str | None = None
    version: str | None = None
    generation: int = 0
    restarts: int = 0
    pid: int | None = None
    in_flight: int = 0
    calls: int = 0
    late: int = 0
    stray: int = 0
    noise: int = 0
    oversize: int = 0
    asks: int = 0
    ignored: int = 0
    dropped: int = 0
    merged: int = 0
    last_incident: str = ""

    def copy(self) -> ServerStatus:
        """Return an independent copy."""
        return structs.replace(self)

    def add(self, connection: Connection) -> None:
        """Add up the numbers of one life."""
        inflight, counts = connection.inflight, connection.counts
        self.in_flight = 0 if connection.over else len(inflight)
        self.calls += connection.calls
        self.late += inflight.late
        self.stray += inflight.stray
        self.noise += connection.noise.count
        self.oversize += counts.oversize
        self.asks += counts.asks
        self.ignored += counts.ignored


class Status(Struct, frozen=True):
    """All servers of a manager and its cache at one moment. As text, a table."""

    servers: list[ServerStatus]
    cache: CacheStats

    def __str__(self) -> str:
        head = ("server", "state", "era", "version", "life", "restarts", "calls", "in flight")
        rows = [head, *map(_row, self.servers)]
        widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
        lines = [
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        ]
        lines += [
            f"{one.name}: last, {one.last_incident}" for one in self.servers if one.last_incident
        ]
        cache = self.cache
        lines.append(
            f"cache: {cache.entries} entries, {cache.bytes} bytes, {cache.hits} hits, "
            f"{cache.misses} misses, {cache.joins} joins, {cache.evictions} evictions"
        )
        return "\n".join(lines)


def _row(one: ServerStatus) -> tuple[str, ...]:
    numbers = (one.generation, one.restarts, one.calls, one.in_flight)
    return (one.name, one.state, one.era or "–", one.version or "–", *map(str, numbers))
