"""Bytes of an event stream in, events out. Knows neither HTTP nor JSON.

Lines end in LF, CR LF or CR. An event that is longer than the limit is skipped, as a line on a pipe
is, and told of with both its ends; the next one is read as usual. An event that the end of the
stream cuts off does not count.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import re

from msgspec import Struct

from mcpclient.protocol.framing import LineSplitter, Oversize

# What stands on a line before the data, and around an event of many lines, is not counted as data.
_SLACK = 1024
# An id or a name longer than this is no id or name; it would be sent back in a header.
_SHORT = 1024
_LONGEST_RETRY = 3_600_000
# Nor is one that holds what no header may: with it no stream could ever be asked for again.
_SENDABLE = re.compile(rb"[^\x00-\x1f\x7f]*")
_BOM = b"\xef\xbb\xbf"


class Event(Struct, frozen=True, gc=False):
    """One event that has data.

    Attributes:
        name: What kind it is; ``message`` unless the server says otherwise.
        data: Its data, the lines joined by LF.
    """

    name: str
    data: bytes


class EventReader:
    """Reads one stream, holding at most about ``limit`` bytes of an unfinished event.

    Attributes:
        last_id: The id of the last event that had one, or None; an empty one takes it back.
        retry: After how many milliseconds the server wants a new stream to be asked for, or None.
        count: How many events ended, those without data included.
    """

    __slots__ = (
        "_after_cr",
        "_data",
        "_id",
        "_limit",
        "_lines",
        "_name",
        "_spill",
        "_started",
        "count",
        "last_id",
        "retry",
    )

    def __init__(
        self, limit: int | None = None, last_id: str | None = None, retry: int | None = None
    ) -> None:
        """Begin a stream, after another one if its last id and retry are given."""
        self._limit = limit
        self._lines = LineSplitter(None if limit is None else limit + _SLACK)
        self._after_cr = False
        self._started = False
        self._name = ""
        # One buffer: kept apart, very short lines would take many times what they hold.
        self._data: bytes | bytearray | None = None
        self._spill: Oversize | None = None
        self._id: str | None = None
        self.last_id = last_id
        self.retry = retry
        self.count = 0

    def feed(self, chunk: bytes) -> list[Event | Oversize]:
        """Return the events that this chunk ends."""
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk[:1] == b"\n":
                chunk = chunk[1:]  # the second half of a CR LF
        if b"\r" in chunk:
            self._after_cr = chunk[-1:] == b"\r"
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        found: list[Event | Oversize] = []
        for line in self._lines.feed(chunk):
            if not self._started:
                self._started = True
                if isinstance(line, bytes) and line.startswith(_BOM):
                    line = line[3:]
            if isinstance(line, Oversize):
                self._overflow(line)
            elif line:
                self._field(line)
            elif (event := self._end()) is not None:
                found.append(event)
        return found

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"data":
            if self._data is None:
                self._data = value
            else:
                if isinstance(self._data, bytes):
                    self._data = bytearray(self._data)
                self._data += b"\n"
                self._data += value
            whole = self._data
            if self._limit is not None and len(whole) > self._limit:
                self._overflow(Oversize(len(whole), bytes(whole[:512]), bytes(whole[-512:])))
        elif name == b"event":
            self._name = value[:_SHORT].decode("utf-8", "replace")
        elif name == b"id":
            value = value.strip(b" \t")  # as whoever reads the header would
            if len(value) <= _SHORT and _SENDABLE.fullmatch(value):
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry":
            if value.isdigit() and len(value) <= 12:
                self.retry = min(int(value), _LONGEST_RETRY)

    def _overflow(self, part: Oversize) -> None:
        """Keep both ends of an event that is too long, and drop the rest."""
        head = part.head.removeprefix(b"data:")
        old = self._spill
        if old is not None:
            part = Oversize(old.length + part.length, old.head, (old.tail + part.tail)[-512:])
        else:
            part = Oversize(part.length, head, part.tail)
        self._spill = part
        self._data = None

    def _end(self) -> Event | Oversize | None:
        self.count += 1
        if self._id is not None:
            # Also of an event without data: a server says so where to resume before it answers.
            self.last_id = self._id or None
        data, name, spill = self._data, self._name, self._spill
        self._id = None
        self._name = ""
        self._data = self._spill = None
        if spill is not None:
            return spill
        return None if data is None else Event(name or "message", bytes(data))
