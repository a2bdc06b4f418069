"""What stood on a server's stdout and was no message: counted, sampled, logged now and then."""

from __future__ import annotations

import logging

from mcpclient.ground.text import sample

_log = logging.getLogger("mcpclient")
# The first lines tell most, and a log must not be flooded (B04).
_FIRST, _EACH = 10, 1000


class Noise:
    """The noise of one connection.

    Attributes:
        count: How many lines there were.
    """

    __slots__ = ("_kept", "_label", "_limit", "count")

    def __init__(self, label: str, limit: int) -> None:
        self._label = label
        self._limit = limit
        self._kept = bytearray()
        self.count = 0

    def add(self, line: bytes, hint: str) -> None:
        """Take note of a line, and of what it looks like."""
        self.count += 1
        if self.count <= _FIRST or self.count % _EACH == 0:
            _log.warning(
                "%s ! not a message (%d so far%s): %s",
                self._label,
                self.count,
                f"; {hint}" if hint else "",
                sample(line),
            )
        self.keep(line, hint)

    def keep(self, line: bytes, hint: str = "") -> None:
        """Keep a line for the sample without counting it."""
        room = self._limit - len(self._kept)
        if room > 0:
            text = line[:room] + (b" (" + hint.encode() + b")" if hint else b"")
            self._kept += text[:room] + b"\n"

    def text(self) -> str:
        """Return a sample of it all."""
        return bytes(self._kept).decode("utf-8", "replace").strip()
