"""What goes to a client as events: one stream per request, and what is kept for coming back.

A stream is written to by what runs, at any time, without waiting; one reader at a time carries it
into a response. Knows events and bytes, no HTTP.

https://modelcontextprotocol.io/specification/2025-11-25/basic/transports
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

import anyio

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.protocol.envelope import Outgoing
    from mcpclient.serverkit.http.options import HttpLimits
    from mcpclient.serverkit.incoming import Reply

_log = logging.getLogger("mcpclient.serverkit")


class Reader:
    """Who carries a stream into a response.

    Attributes:
        at: The number of the last event that was taken.
        closing: Whether it shall end, once it has taken what there is.
    """

    def __init__(self, stream: Stream, at: int) -> None:
        self._stream = stream
        self._news = anyio.Event()
        self.at = at
        self.closing = False

    def wake(self) -> None:
        """Have it look again."""
        self._news.set()

    async def first(self, seconds: float | None) -> None:
        """Return once there is something to say, or nothing after all, or so much time went by."""
        with anyio.move_on_after(seconds):
            while not (self._stream.streaming or self._stream.over or self.closing):
                await self._wait()

    async def next(self, seconds: float) -> bytes | None:
        """Return the next events; empty after so much silence, None at the end."""
        while True:
            if found := self._stream.take(self):
                return found
            if self.closing or self._stream.over:
                return None
            with anyio.move_on_after(seconds) as scope:
                await self._wait()
            if scope.cancelled_caught:
                return b""

    async def _wait(self) -> None:
        await self._news.wait()
        self._news = anyio.Event()


class Stream:
    """The stream of one request, kept by nobody: what was taken is forgotten.

    Attributes:
        streaming: Whether it carries events: something was said before the answer, or shall be.
        over: Whether nothing more will be said.
        reply: The answer; None: there is none, or not yet.
        waiting: How many bytes were not taken yet.
    """

    def __init__(self, limits: HttpLimits, *, lossless: str = "") -> None:
        """Make an empty one.

        Args:
            limits: What may wait.
            lossless: Why no notice may be lost, if so: rather the stream ends.
        """
        self.streaming = False
        self.over = False
        self.reply: Reply | None = None
        self.waiting = 0
        self._limits = limits
        self._lossless = lossless
        self._lost = 0
        self._reader: Reader | None = None
        self._events: deque[tuple[int, bytes]] = deque()

    @property
    def is_read(self) -> bool:
        """Whether a response carries it."""
        return self._reader is not None

    # -- what runs writes ------------------------------------------------------------------

    def say(self, item: Outgoing) -> None:
        """Put a message on it. If too much waits a notice is lost, since nothing else may be."""
        if self.over:
            return
        if self.waiting > self._limits.outbox and item.method.startswith("notifications/"):
            self._overflow()
            return
        self.stream()
        self._file(item.frame)

    def end(self, reply: Reply | None) -> None:
        """Say the answer, or that there is none; nothing comes after it."""
        if self.over:
            return
        self.over = True
        self.reply = reply
        if self.streaming and reply is not None:
            self._file(reply.frame)
        self._wake()

    def stream(self) -> None:
        """Carry events from now on, the answer too."""
        if self.streaming:
            return
        self.streaming = True
        self._prime()
        if self.over and self.reply is not None:
            self._file(self.reply.frame)

    def drop(self) -> None:
        """End the response that carries it, but not the stream."""
        self.stream()
        if self._reader is not None:
            self._reader.closing = True
            self._reader.wake()

    # -- a response reads ------------------------------------------------------------------

    def attach(self) -> Reader:
        """Return who reads it from now on; another one ends."""
        return self._attached(0)

    def detach(self, reader: Reader) -> None:
        """Read no more."""
        if self._reader is reader:
            self._reader = None

    def take(self, reader: Reader) -> bytes:
        """Return what there is for a reader."""
        if self._reader is not reader or not self._events:
            return b""
        found = b"".join([data for _, data in self._events])
        self._events.clear()
        self.waiting = 0
        return found

    def _attached(self, at: int) -> Reader:
        if self._reader is not None:
            self._reader.closing = True
            self._reader.wake()
        self._reader = Reader(self, at)
        return self._reader

    # -- inside ----------------------------------------------------------------------------

    def _prime(self) -> None:
        """Say something first, so that the client can come back from the beginning."""

    def _file(self, frame: bytes) -> None:
        self._put(0, b"data: " + frame + b"\n")

    def _put(self, number: int, data: bytes) -> None:
        self._events.append((number, data))
        self.waiting += len(data)
        self._wake()

    def _wake(self) -> None:
        if self._reader is not None:
            self._reader.wake()

    def _overflow(self) -> None:
        self._lost += 1
        if self._lost == 1:
            told = self._lossless or "notices are lost"
            _log.warning("! a client does not read: %d bytes wait, %s", self.waiting, told)
        if self._lossless:
            self.over = True
            if self._reader is not None:
                self._reader.closing = True
            self._wake()


class Channel(Stream):
    """A stream of a session: its events have names, and are kept for a while."""

    def __init__(self, desk: Desk, name: int, limits: HttpLimits) -> None:
        super().__init__(limits)
        self.name = name
        self._desk = desk
        self._given = 0  # the number of the last event that a reader took

    def attach(self) -> Reader:
        """Return who reads from now on what nobody took."""
        return self._attached(self._given)

    def attach_after(self, number: int) -> Reader:
        """Return who reads from now on what came after an event."""
        reader = self._attached(number)
        self._given = number
        self.waiting = sum(len(data) for at, data in self._events if at > number)
        return reader

    def detach(self, reader: Reader) -> None:
        """Read no more. Without an event to name nobody can come back: the rest has no taker."""
        super().detach(reader)
        if not (self._given or self._events):
            self._desk.forget(self)

    def take(self, reader: Reader) -> bytes:
        """Return what there is for a reader."""
        if self._reader is not reader:
            return b""
        found = [(number, data) for number, data in self._events if number > reader.at]
        if found:
            reader.at = self._given = found[-1][0]
            self.waiting = 0
            self._desk.trim()
        return b"".join([data for _, data in found])

    def keeps(self, number: int) -> bool:
        """Return whether an event is not needed: it was taken, or nobody reads."""
        return self._reader is not None and number > self._given

    def lose(self) -> int:
        """Forget the oldest event, and return its size."""
        number, data = self._events.popleft()
        if number > self._given:
            self.waiting -= len(data)
        return len(data)

    @property
    def oldest(self) -> int | None:
        """The number of the oldest event that is kept."""
        return self._events[0][0] if self._events else None

    @property
    def kept(self) -> int:
        """How many events are kept."""
        return len(self._events)

    def _prime(self) -> None:
        retry = self._desk.retry()
        if retry is not None:
            self._event(b"retry: %d\ndata: \n\n" % retry)

    def _file(self, frame: bytes) -> None:
        self._event(b"data: " + frame + b"\n")

    def _event(self, rest: bytes) -> None:
        number = self._desk.number()
        data = b"id: %d-%d\n" % (number, self.name) + rest
        self._put(number, data)
        self._desk.took(self, len(data))


class Desk:
    """All streams of one session.

    Attributes:
        general: The one for what belongs to no request.
    """

    def __init__(self, limits: HttpLimits, retry: Callable[[], int | None]) -> None:
        """Make one for a session.

        Args:
            limits: What may wait, and what is kept.
            retry: Returns after how many milliseconds clients shall come back; None: they speak a
                version in which a stream begins without that.
        """
        self._limits = limits
        self.retry = retry
        self._channels: dict[int, Channel] = {}
        self._order: deque[Channel] = deque()
        self._bytes = 0
        self._number = 0
        self._names = 0
        self.general = self.channel()

    def channel(self) -> Channel:
        """Return a new stream."""
        self._names += 1
        made = self._channels[self._names] = Channel(self, self._names, self._limits)
        return made

    def find(self, event: str) -> tuple[Channel, int] | None:
        """Return the stream that an event belongs to, and its number; None: it is not kept."""
        number, _, name = event.partition("-")
        if not (event.isascii() and number.isdigit() and name.isdigit() and len(event) < 40):
            return None
        channel = self._channels.get(int(name))
        if channel is None or not 0 < int(number) <= self._number:
            return None
        return channel, int(number)

    def forget(self, channel: Channel) -> None:
        """Keep nothing of a stream."""
        if channel is not self.general:
            self._channels.pop(channel.name, None)

    def close(self) -> None:
        """End all streams: what waits is still read."""
        for channel in list(self._channels.values()):
            channel.end(None)

    # -- for the streams -------------------------------------------------------------------

    def number(self) -> int:
        """Return the number of the next event."""
        self._number += 1
        return self._number

    def took(self, channel: Channel, size: int) -> None:
        """Take note of a new event."""
        self._order.append(channel)
        self._bytes += size
        self.trim()

    def trim(self) -> None:
        """Forget the oldest events that are too many; never one that somebody waits for."""
        limits = self._limits
        while len(self._order) > 1 and (
            len(self._order) > limits.events or self._bytes > limits.event_bytes
        ):
            channel = self._order[0]
            oldest: Any = channel.oldest
            if channel.keeps(oldest):
                break
            self._order.popleft()
            self._bytes -= channel.lose()
            if channel.over and not channel.kept:
                self.forget(channel)
