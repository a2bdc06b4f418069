"""Messages of the stateless era, and of the gateway profile: each POST stands for itself.

Who closes the response cancels the request.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import anyio

from mcpclient.protocol import methods
from mcpclient.serverkit.errors import INVALID_REQUEST
from mcpclient.serverkit.http import answers, mirrored
from mcpclient.serverkit.http.streams import Stream
from mcpclient.serverkit.incoming import Batch, Fault, Notification, Request, Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.protocol.httprules import Header
    from mcpclient.serverkit.exchange import Peer
    from mcpclient.serverkit.http.call import Call
    from mcpclient.serverkit.http.options import HttpLimits
    from mcpclient.serverkit.incoming import Item, Reply
    from mcpclient.serverkit.session import Session


class Single:
    """Answers one POST by itself.

    Args:
        limits: How long to wait, and what may wait.
        mode: How answers go out.
    """

    def __init__(self, limits: HttpLimits, mode: str) -> None:
        self._limits = limits
        self._mode = mode

    async def answer(
        self,
        call: Call,
        session: Session,
        item: Item,
        peer: Peer,
        headers: Callable[[Reply | None], list[Header]],
    ) -> None:
        """Answer one item of a session that is for nothing else."""
        match item:
            case Request():
                problem = mirrored.mismatch(call.headers, item, session.server.tools)
                if problem is not None:
                    reply = session.refuse(item, methods.HEADER_MISMATCH, problem)
                    await call.respond(reply.status, reply.frame.rstrip(b"\n"))
                    return
                await self._run(call, session, item, peer, headers, self._mode)
            case Notification():
                await session.answer(item, peer=peer)
                await call.respond(202)
            case Fault(reply=reply):
                await call.respond(reply.status, reply.frame.rstrip(b"\n"))
            case Response() | Batch():
                # Of one there are no more, of the other nothing was ever asked (HTTP-03).
                text = "Invalid request: only requests and notifications are sent here"
                await call.respond(400, answers.error(INVALID_REQUEST, text))

    async def _run(
        self,
        call: Call,
        session: Session,
        item: Request,
        peer: Peer,
        headers: Callable[[Reply | None], list[Header]],
        mode: str,
    ) -> None:
        listens = item.method == methods.LISTEN
        lossless = "the subscription ends" if listens else ""
        stream = Stream(self._limits, lossless=lossless)
        reader = stream.attach()
        if listens:
            mode = "auto"  # it is nothing but a stream

        async def run() -> None:
            reply = None
            with anyio.CancelScope() as scope:
                say = stream.say if mode != "json" else _nothing
                reply = await session.answer(item, send=say, peer=peer, cancel=scope.cancel)
            stream.end(reply)

        await call.while_here(
            lambda: answers.answer(call, stream, reader, self._limits, mode, headers, _stopped),
            run,
        )


def _stopped() -> int:
    return 503


def _nothing(_: object) -> None:
    """Where nothing but the answer can be said."""
