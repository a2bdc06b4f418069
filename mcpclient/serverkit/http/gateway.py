"""The endpoint inside an HTTP gateway: POST alone, JSON alone, no session, and no auth of its own.

Callers of such a gateway were there before the protocol; so statuses and types are those that they
know. What the profile says of messages is in ``serverkit/eras/gateway``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from mcpclient.serverkit.errors import INVALID_REQUEST, PARSE_ERROR
from mcpclient.serverkit.http import answers
from mcpclient.serverkit.http.call import TooLarge, TooSlow
from mcpclient.serverkit.incoming import Fault

if TYPE_CHECKING:
    from mcpclient.protocol.httprules import Header
    from mcpclient.serverkit.exchange import Peer
    from mcpclient.serverkit.http.call import Call
    from mcpclient.serverkit.incoming import Reply
    from mcpclient.serverkit.server import Server

TYPE = "application/json; charset=utf-8"
_CLOSE: list[Header] = [(b"connection", b"close")]


async def endpoint(call: Call, server: Server, peer: Peer, limit: int) -> None:
    """Answer one request.

    Args:
        call: The request.
        server: The server.
        peer: Who asks.
        limit: The longest body, in bytes.
    """
    if call.method != "POST":
        body = answers.error(INVALID_REQUEST, "Method not allowed: use POST")
        await call.respond(405, body, [(b"allow", b"POST")], TYPE)
        return
    try:
        body = await call.body(limit)
    except (TooLarge, TooSlow) as problem:
        what = f"over {limit} bytes" if isinstance(problem, TooLarge) else "too slow"
        told = answers.error(PARSE_ERROR, f"Parse error: the body is {what}")
        await call.respond(400, told, _CLOSE, TYPE)
        return

    async def work() -> None:
        reply = await _reply(server, peer, body)
        if reply is None:
            await call.respond(202)
        else:
            await call.respond(reply.status, reply.frame.rstrip(b"\n"), (), TYPE)

    await call.while_here(work)


async def _reply(server: Server, peer: Peer, body: bytes) -> Reply | None:
    session = server.open(peer=peer, profile="gateway")
    reply: Reply | None = None
    try:
        for item in session.receive(body):
            if isinstance(item, Fault):
                return item.reply
            with anyio.CancelScope() as scope:
                reply = await session.answer(item, send=_nothing, cancel=scope.cancel)
    finally:
        session.close("answered")
    return reply


def _nothing(_: object) -> None:
    """There is no way to say anything but the answer."""
