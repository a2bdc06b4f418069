"""How an answer goes out: as JSON if it comes soon and alone, else as a stream of events.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Raw

from mcpclient.protocol import envelope
from mcpclient.protocol.httprules import EVENTS

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.protocol.httprules import Header
    from mcpclient.serverkit.http.call import Call
    from mcpclient.serverkit.http.options import HttpLimits
    from mcpclient.serverkit.http.streams import Reader, Stream
    from mcpclient.serverkit.incoming import Reply

MODES = ("auto", "json", "sse")
_COMMENT = b": keep-alive\n\n"
_NULL = Raw(b"null")
# Proxies shall neither keep nor gather it.
_STREAMED: list[Header] = [
    (b"content-type", EVENTS.encode()),
    (b"cache-control", b"no-cache, no-store"),
    (b"x-accel-buffering", b"no"),
]


async def answer(
    call: Call,
    stream: Stream,
    reader: Reader,
    limits: HttpLimits,
    mode: str,
    headers: Callable[[Reply | None], list[Header]],
    missing: Callable[[], int],
) -> None:
    """Send the response to a request, from its stream.

    Args:
        call: The request.
        stream: What is said to it.
        reader: Ours, of the stream.
        limits: How long to wait.
        mode: ``auto``, ``json`` or ``sse``.
        headers: Returns what else the response says, for the reply that it begins with, if any.
        missing: Returns the status if there is no answer, and nothing was said.
    """
    await reader.first(limits.quick if mode != "json" else None)
    reply = stream.reply
    if stream.over and not stream.streaming:
        if reply is None:
            await call.respond(missing(), b"", headers(None))
            return
        # An error has a status, which only a response has that did not begin yet.
        if mode != "sse" or reply.status != 200:
            await call.respond(reply.status, reply.frame.rstrip(b"\n"), headers(reply))
            return
    stream.stream()
    await carry(call, reader, limits, headers(None))


async def carry(call: Call, reader: Reader, limits: HttpLimits, headers: list[Header]) -> None:
    """Send a response of events until the stream, or the reader, ends."""
    await call.begin(200, [*_STREAMED, *headers])
    while (data := await reader.next(limits.pulse)) is not None:
        await call.write(data or _COMMENT)
    await call.write(b"", more=False)


def error(code: int, message: str, data: object = None, id: Raw = _NULL) -> bytes:
    """Return the body of a response that refuses what is no request, or whose id is not known."""
    return envelope.refusal(id, code, message, data).rstrip(b"\n")
