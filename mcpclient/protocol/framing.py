"""Bytes in, lines out. Has never heard of JSON.

The stdio transport puts one message on one line that ends in LF. Only the byte 0x0A ends a
line: U+2028, NEL, FF and the like are legal inside a JSON string.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/stdio
"""

from __future__ import annotations

from msgspec import Struct

# Enough of both ends of a skipped line to find the id of the call it answers: servers put it
# within the first few members, or last.
_END = 512


class Oversize(Struct, frozen=True, gc=False):
    """A line that was longer than the limit and was skipped.

    Attributes:
        length: How many bytes it had.
        head: Its first bytes.
        tail: Its last bytes.
    """

    length: int
    head: bytes
    tail: bytes


class LineSplitter:
    """Cuts a stream of bytes into lines, holding at most ``limit`` bytes of an unfinished one.

    Each byte is searched once: what was kept of an unfinished line has no newline in it, so
    only the new chunk is looked at, and the kept chunks are joined once, when the line ends.
    A line longer than the limit is dropped as it comes, and the next one is read as usual.
    """

    __slots__ = ("_held", "_kept", "_limit", "_skipped")

    def __init__(self, limit: int | None = None) -> None:
        self._limit = limit
        self._kept: list[bytes] = []
        self._held = 0
        self._skipped: Oversize | None = None

    def feed(self, chunk: bytes) -> list[bytes | Oversize]:
        """Return the lines that this chunk ends, without their LF."""
        lines: list[bytes | Oversize] = chunk.split(b"\n")  # type: ignore[assignment]  # widened
        rest = lines.pop()
        assert isinstance(rest, bytes)
        if lines and (self._kept or self._skipped):
            first = lines[0]
            assert isinstance(first, bytes)
            lines[0] = self._finish(first)
        limit = self._limit
        if limit is not None and len(chunk) > limit:
            lines = [self._measured(line) for line in lines]
        if rest:
            self._keep(rest)
        return lines

    def end(self) -> list[bytes | Oversize]:
        """Return what stands after the last LF when the stream ends: a line, or nothing."""
        if not (self._kept or self._skipped):
            return []
        return [self._finish(b"")]

    def _keep(self, part: bytes) -> None:
        if self._skipped is not None:
            old = self._skipped
            self._skipped = Oversize(
                old.length + len(part),
                old.head if len(old.head) == _END else (old.head + part[:_END])[:_END],
                (old.tail + part[-_END:])[-_END:],
            )
            return
        self._kept.append(part)
        self._held += len(part)
        if self._limit is not None and self._held > self._limit:
            whole = b"".join(self._kept)
            self._forget()
            self._skipped = Oversize(len(whole), whole[:_END], whole[-_END:])

    def _finish(self, last: bytes) -> bytes | Oversize:
        if last:
            self._keep(last)
        if self._skipped is not None:
            line: bytes | Oversize = self._skipped
        else:
            line = b"".join(self._kept)
        self._forget()
        return line

    def _forget(self) -> None:
        self._kept = []
        self._held = 0
        self._skipped = None

    def _measured(self, line: bytes | Oversize) -> bytes | Oversize:
        # Only when one chunk alone is longer than the limit, which real reads never are.
        if isinstance(line, bytes) and self._limit is not None and len(line) > self._limit:
            return Oversize(len(line), line[:_END], line[-_END:])
        return line
