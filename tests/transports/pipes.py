"""A small pipe with an outbox at its writing end, for the tests of both its halves."""

from __future__ import annotations

import fcntl
import os

from mcpclient import loops
from mcpclient.transports.outbox import Outbox
from tests.conftest import eventually

ROOM = 4096  # the smallest pipe there is
LONG = 300.0


class Pipe:
    """A small pipe with an outbox at its writing end."""

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, ROOM)
        os.set_blocking(self.reader, False)
        os.set_blocking(self.writer, False)
        self.stalls: list[float] = []
        self.problems: list[OSError] = []
        self.outbox: Outbox

    def open(self, patience: float = LONG) -> Outbox:
        """Return the outbox; on the loop, which the fixture has none of."""
        self.outbox = Outbox(
            loops.current(), self.writer, patience, self.stalls.append, self.problems.append
        )
        return self.outbox

    def read(self, count: int = 1 << 20) -> bytes:
        try:
            return os.read(self.reader, count)
        except BlockingIOError:
            return b""

    async def read_to(self, length: int, most: int = 1 << 20) -> bytes:
        """Read until there are so many bytes."""
        found = bytearray()

        def enough() -> bool:
            found.extend(self.read(most))
            return len(found) >= length

        await eventually(enough)
        return bytes(found)

    def hang_up(self) -> None:
        fd, self.reader = self.reader, -1
        if fd >= 0:
            os.close(fd)
