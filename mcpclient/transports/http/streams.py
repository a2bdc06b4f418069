"""Streams of events: handed on, asked for again where they broke off. Knows no call.

What is sent by a server of its own accord comes on a stream that is asked for by GET. A server that
offers none says so by any status; one that closes it wants to be asked again a while later.

https://modelcontextprotocol.io/specification/2025-11-25/basic/transports
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Protocol

import anyio

from mcpclient.ground.text import sample
from mcpclient.protocol.framing import Oversize
from mcpclient.protocol.httprules import EVENTS, LAST_EVENT, media_type, retry_after
from mcpclient.protocol.sse import Event, EventReader
from mcpclient.transports.http.courier import NoCredentials
from mcpclient.transports.http.pool import Cut, Unreached

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.protocol.envelope import Outgoing
    from mcpclient.protocol.httprules import Header
    from mcpclient.transports.base import Sink
    from mcpclient.transports.http.courier import Courier
    from mcpclient.transports.http.pool import Answer

_log = logging.getLogger("mcpclient")
# Pauses before a stream is asked for again, in seconds, unless the server says how long; they
# double while nothing comes of it.
FIRST, CAP = 1.0, 30.0
# A server may say 0, and close each stream at once: that would be a storm.
_LEAST = 0.02
# How long the end of a stream is waited for after the answer, in seconds.
_END = 0.05
ACCEPT: Header = (b"accept", EVENTS.encode())


def hand_on(event: Event | Oversize, sink: Sink, item: Outgoing | None = None) -> None:
    """Give the sink what an event carries.

    Args:
        event: The event.
        sink: Who takes frames.
        item: The request whose answer the stream is, if it is one's.
    """
    if isinstance(event, Oversize):
        sink.oversize(event)
    elif event.data.strip() in (b"", b"{}"):
        # It only says where to resume. When a stream is resumed, servers on the official TypeScript
        # SDK repeat such an event of theirs as an empty object.
        pass
    elif event.name == "message":
        sink.frame(event.data)
    elif event.name == "error" and not (item is not None and sink.reply(item, event.data)):
        # Some send the error of a call so (B236); else it is for people.
        _log.warning("! an error event from the server: %s", sample(event.data))


async def read(
    answer: Answer, reader: EventReader, sink: Sink, item: Outgoing | None = None
) -> None:
    """Hand on the events of a stream until its end, or until the request has its outcome.

    Raises:
        Cut: The stream broke.
    """
    while chunk := await answer.chunk():
        for event in reader.feed(chunk):
            hand_on(event, sink, item)
        if item is not None and item.settled:
            # Whether or not the server ends it (HTTP-13). If it does, which takes it no time, the
            # connection serves the next call.
            with anyio.move_on_after(_END):
                while await answer.chunk():
                    pass
            return


def resuming(reader: EventReader) -> list[Header]:
    """Return the header that asks for what came after the last event that had an id."""
    return [] if reader.last_id is None else [(LAST_EVENT, reader.last_id.encode("utf-8"))]


def pause(reader: EventReader, usual: float) -> float:
    """Return how long to wait before the next stream: what the server says, or what is usual."""
    return usual if reader.retry is None else max(reader.retry / 1000, _LEAST)


class Home(Protocol):
    """Who a :class:`Listener` listens for. Its methods never wait."""

    def session_headers(self) -> list[Header]:
        """What says whose stream it is."""

    def expire(self) -> None:
        """The server does not know the session any more."""

    def unreached(self, problem: Unreached) -> None:
        """The server cannot be reached any more."""


class Listener:
    """Keeps the stream open on which a server sends what nobody asked for."""

    def __init__(
        self,
        courier: Courier,
        sink: Sink,
        home: Home,
        limit: int | None,
        settled: Callable[[], None],
    ) -> None:
        """Prepare to listen.

        Args:
            courier: Sends requests.
            sink: Who takes frames.
            home: Whose stream it is.
            limit: The longest event.
            settled: Called when it is known whether there is a stream, perhaps more than once.
        """
        self._courier = courier
        self._sink = sink
        self._home = home
        self._settled = settled
        self._reader = EventReader(limit)
        self._limit = limit
        self._opened = False
        self._refused = False

    async def run(self) -> None:
        """Listen until there is nothing to listen to."""
        usual = FIRST
        try:
            while True:
                begun, count = time.monotonic(), self._reader.count
                least = await self._once()
                if least is None:
                    return
                brought = self._reader.count > count or time.monotonic() - begun > CAP
                usual = FIRST if brought else usual
                if self._refused:
                    # What a server says of its streams is not for the time when it offers none.
                    least = max(least, usual)
                await anyio.sleep(max(least, pause(self._reader, usual)))
                usual = min(usual * 2, CAP)
        finally:
            self._settled()

    async def _once(self) -> float | None:
        """Follow one stream to its end; return how long to wait at least, or None to stop."""
        headers = [ACCEPT, *self._home.session_headers(), *resuming(self._reader)]
        self._refused = True
        try:
            answer = await self._courier.send("GET", headers)
        except Unreached as problem:
            self._home.unreached(problem)
            return None
        except (NoCredentials, Cut):
            self._settled()
            return 0.0
        try:
            return await self._heard(answer)
        except Cut:
            return 0.0
        finally:
            await answer.close()

    async def _heard(self, answer: Answer) -> float | None:
        status = answer.status
        kind = media_type(answer.header(b"content-type"))
        if status == 200 and kind == EVENTS:
            old = self._reader
            if self._opened and old.last_id is None:
                self._sink.lapsed()
            self._opened = True
            self._refused = False
            self._settled()
            self._reader = EventReader(self._limit, old.last_id, old.retry)
            self._reader.count = old.count
            await read(answer, self._reader, self._sink)
            return 0.0
        self._settled()
        if status == 404 and self._opened:
            self._home.expire()
            return None
        if status in (408, 409, 425, 429) or status >= 500:
            # 409: the server has not noticed yet that the old one ended (B232).
            return retry_after(answer.header(b"retry-after"), time.time()) or 0.0
        lost = logging.WARNING if self._opened else logging.DEBUG  # many never offer one
        _log.log(lost, "%s = no stream by GET: HTTP %d %s", self._courier.url, status, kind)
        return None
