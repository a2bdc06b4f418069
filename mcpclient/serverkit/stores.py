"""Where sessions are kept so that they outlive a process: in memory, or in SQLite.

Knows sessions as names and JSON values.
"""

from __future__ import annotations

import math
import os
import time
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable


class Store(Protocol):
    """Keeps sessions."""

    async def save(self, id: str, state: dict[str, Any]) -> None:
        """Keep a session, in place of what was kept of it."""

    async def load(self, id: str) -> dict[str, Any] | None:
        """Return a session, or None if it is not kept, or was idle for too long."""

    async def delete(self, id: str) -> None:
        """Forget a session; it is no fault if there is none."""

    async def active(self) -> list[str]:
        """Return the names of all that are kept and not idle for too long."""

    async def touch(self, id: str) -> None:
        """Say that a session is used."""


class MemoryStore:
    """Keeps sessions in this process.

    Args:
        idle: After so many seconds without use a session is forgotten; None: never.
        clock: The time, in seconds.
        most: How many are kept; the one that was not used for the longest time goes first.
    """

    def __init__(
        self,
        *,
        idle: float | None = 3600.0,
        clock: Callable[[], float] = time.time,
        most: int = 10_000,
    ) -> None:
        self._idle = idle
        self._clock = clock
        self._most = most
        # The bytes, not the values: what is kept must not change when a session does.
        self._kept: dict[str, tuple[float, bytes]] = {}

    async def save(self, id: str, state: dict[str, Any]) -> None:
        """See :class:`Store`."""
        self._kept.pop(id, None)
        self._kept[id] = (self._clock(), msgspec.json.encode(state))
        while len(self._kept) > self._most:
            del self._kept[next(iter(self._kept))]

    async def load(self, id: str) -> dict[str, Any] | None:
        """See :class:`Store`."""
        self._sweep()
        found = self._kept.get(id)
        return msgspec.json.decode(found[1], type=dict[str, Any]) if found is not None else None

    async def delete(self, id: str) -> None:
        """See :class:`Store`."""
        self._kept.pop(id, None)

    async def active(self) -> list[str]:
        """See :class:`Store`."""
        self._sweep()
        return sorted(self._kept)

    async def touch(self, id: str) -> None:
        """See :class:`Store`."""
        if id in self._kept:
            self._kept[id] = (self._clock(), self._kept.pop(id)[1])

    def _sweep(self) -> None:
        if self._idle is not None:
            least = self._clock() - self._idle
            for id in [id for id, (used, _) in self._kept.items() if used < least]:
                del self._kept[id]


class SqliteStore:
    """Keeps sessions in a SQLite file, which several processes may share.

    Args:
        path: The file; it is made if it is not there.
        idle: After so many seconds without use a session is forgotten; None: never.
        clock: The time, in seconds.

    The statements take less time than a thread would cost; a locked file is waited for up to a
    second.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        idle: float | None = 3600.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        import sqlite3  # only who keeps sessions in a file needs it

        self._idle = idle
        self._clock = clock
        if os.fspath(path) != ":memory:":
            # A session's name lets its owner in: nobody else on this machine shall read it.
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
        # Each statement stands alone, and the loop that runs them may be in another thread.
        self._connection: sqlite3.Connection = sqlite3.connect(
            path, timeout=1.0, isolation_level=None, check_same_thread=False
        )
        self._run("PRAGMA journal_mode=WAL")
        self._run(
            "CREATE TABLE IF NOT EXISTS sessions "
            "(id TEXT PRIMARY KEY, used REAL NOT NULL, state BLOB NOT NULL)"
        )

    async def save(self, id: str, state: dict[str, Any]) -> None:
        """See :class:`Store`."""
        self._sweep()
        self._run(
            "INSERT INTO sessions VALUES (?, ?, ?) ON CONFLICT (id) "
            "DO UPDATE SET used = excluded.used, state = excluded.state",
            (id, self._clock(), msgspec.json.encode(state)),
        )

    async def load(self, id: str) -> dict[str, Any] | None:
        """See :class:`Store`."""
        # Nothing is written, so that another process that writes need not be waited for.
        found = self._run(
            "SELECT state FROM sessions WHERE id = ? AND used >= ?", (id, self._least())
        ).fetchone()
        return msgspec.json.decode(found[0], type=dict[str, Any]) if found is not None else None

    async def delete(self, id: str) -> None:
        """See :class:`Store`."""
        self._run("DELETE FROM sessions WHERE id = ?", (id,))

    async def active(self) -> list[str]:
        """See :class:`Store`."""
        self._sweep()
        return [id for (id,) in self._run("SELECT id FROM sessions ORDER BY id").fetchall()]

    async def touch(self, id: str) -> None:
        """See :class:`Store`."""
        self._run("UPDATE sessions SET used = ? WHERE id = ?", (self._clock(), id))

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def _least(self) -> float:
        return -math.inf if self._idle is None else self._clock() - self._idle

    def _sweep(self) -> None:
        if self._idle is not None:
            self._run("DELETE FROM sessions WHERE used < ?", (self._least(),))

    def _run(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        return self._connection.execute(statement, values)
