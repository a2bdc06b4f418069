"""The handshake era over HTTP: sessions, their streams, and coming back for what was missed.

Whoever loses a response has not cancelled anything (HTL-11), so requests run in jobs of their own.

https://modelcontextprotocol.io/specification/2025-11-25/basic/transports
"""

from __future__ import annotations

import re
import secrets
from typing import TYPE_CHECKING

import anyio

from mcpclient import loops
from mcpclient.protocol.httprules import EVENTS
from mcpclient.protocol.versions import since
from mcpclient.serverkit.http import answers
from mcpclient.serverkit.http.streams import Channel, Desk, Reader
from mcpclient.serverkit.incoming import Batch, Fault, Request
from mcpclient.serverkit.lobby import StoreFailed

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpclient.loops.base import Stop
    from mcpclient.protocol.httprules import Header
    from mcpclient.serverkit.exchange import Peer
    from mcpclient.serverkit.http.call import Call
    from mcpclient.serverkit.http.options import HttpLimits
    from mcpclient.serverkit.incoming import Item, Reply
    from mcpclient.serverkit.server import Server
    from mcpclient.serverkit.session import Session

SESSION = "mcp-session-id"
# Visible ASCII, and no colon: see _key.
_ID = re.compile(r"[!-9;-~]{1,256}")


class Refusal(Exception):
    """A request is answered with a status and a JSON-RPC error of no request."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class Sessions:
    """Serves the sessions of one server.

    Args:
        server: The server.
        limits: How long to wait, and what may wait.
        mode: How answers go out.
    """

    def __init__(self, server: Server, limits: HttpLimits, mode: str) -> None:
        self._server = server
        self._limits = limits
        self._mode = mode
        self._desks: dict[Session, Desk] = {}
        self._running: set[Stop] = set()
        self._ended: anyio.Event | None = None

    # -- whose -----------------------------------------------------------------------------

    async def named(self, call: Call, peer: Peer) -> Session:
        """Return the session that a request names.

        Raises:
            Refusal: It names none, there is none, or it speaks another version than agreed.
        """
        given = call.headers.get(SESSION)
        if given is None:
            raise Refusal(400, "Bad request: the header Mcp-Session-Id is missing")
        session = None
        if _ID.fullmatch(given):
            try:
                session = await self._server.resume(_key(given, peer), peer=peer)
            except StoreFailed:
                raise Refusal(503, "Busy: the session cannot be looked up now") from None
        if session is None:
            # Not to tell whether it is over or somebody else's.
            raise Refusal(404, "Session not found: begin a new one with initialize")
        self._make_room(session)
        version = call.headers.get("mcp-protocol-version")
        if version is not None and session.version and version != session.version:
            raise Refusal(
                400,
                f"Bad request: the session speaks {session.version}, but the header "
                f"MCP-Protocol-Version says {version[:40]!r}",
            )
        return session

    def _desk(self, session: Session) -> Desk:
        desk = self._desks.get(session)
        if desk is None:

            def retry() -> int | None:
                # Before it, clients may take the first event for a message.
                primes = since("2025-11-25", session.version)
                return round(self._limits.retry * 1000) if primes else None

            desk = self._desks[session] = made = Desk(self._limits, retry)

            def ended() -> None:
                self._desks.pop(session, None)
                made.close()

            session.send = made.general.say
            session.ended = ended
        return desk

    # -- what clients do -------------------------------------------------------------------

    async def open(self, call: Call, item: Request, peer: Peer) -> None:
        """Answer an ``initialize``."""
        self._make_room()
        name = secrets.token_urlsafe(32)
        session = self._server.open(id=_key(name, peer), peer=peer)
        opened: list[Header] = [(SESSION.encode(), name.encode())]

        def headers(reply: Reply | None) -> list[Header]:
            refused = reply is not None and reply.code is not None
            return [] if refused else opened

        try:
            await self._run(call, session, item, peer, headers)
        finally:
            if session.era is None:
                session.close("it was not opened")

    async def post(
        self,
        call: Call,
        session: Session,
        items: list[Item],
        peer: Peer,
        headers: Callable[[Reply | None], list[Header]],
    ) -> None:
        """Answer what was posted to a session."""
        for item in items:
            match item:
                case Request() | Batch():
                    await self._run(call, session, item, peer, headers)
                case Fault(reply=reply):
                    await call.respond(reply.status, reply.frame.rstrip(b"\n"))
                case _:
                    await session.answer(item, peer=peer)
                    await call.respond(202)

    async def listen(self, call: Call, session: Session) -> None:
        """Carry what belongs to no request, or what is left of a stream that broke."""
        if not call.accepts(EVENTS):
            raise Refusal(406, f"Not acceptable: the client must accept {EVENTS}")
        desk = self._desk(session)
        last = call.headers.get("last-event-id")
        if last is None:
            channel: Channel = desk.general
            channel.stream()
            reader = channel.attach()
        else:
            found = desk.find(last)
            if found is None:
                raise Refusal(400, "Bad request: nothing is kept of what Last-Event-ID names")
            channel, number = found
            reader = channel.attach_after(number)
        await self._carry(
            call, channel, reader, lambda: answers.carry(call, reader, self._limits, [])
        )

    async def end(self, session: Session) -> None:
        """End a session, as its client wishes."""
        try:
            await self._server.end(session, "the client ended it")
        except StoreFailed:
            raise Refusal(503, "Busy: the session cannot be forgotten now") from None

    # -- running ---------------------------------------------------------------------------

    async def _run(
        self,
        call: Call,
        session: Session,
        item: Item,
        peer: Peer,
        headers: Callable[[Reply | None], list[Header]],
    ) -> None:
        desk = self._desk(session)
        channel = desk.channel()
        reader = channel.attach()
        self._begin(session, item, peer, channel, desk)

        def missing() -> int:
            return 503 if session.closed else 202

        await self._carry(
            call,
            channel,
            reader,
            lambda: answers.answer(
                call, channel, reader, self._limits, self._mode, headers, missing
            ),
        )

    def _begin(
        self, session: Session, item: Item, peer: Peer, channel: Channel, desk: Desk
    ) -> None:
        # Without streams of its own a request speaks on that of the session.
        say = channel.say if self._mode != "json" else None
        resumable = desk.retry() is not None and self._mode != "json"
        stop: Stop | None = None

        def cancel() -> None:
            if stop is not None:
                stop.cancel()

        async def run() -> None:
            reply = None
            try:
                reply = await session.answer(
                    item,
                    send=say,
                    peer=peer,
                    cancel=cancel,
                    drop=channel.drop if resumable else None,
                )
            finally:
                channel.end(reply)
                self._over(stop)

        stop = loops.current().job(run, "HTTP request")
        if not channel.over:
            self._running.add(stop)

    async def _carry(
        self, call: Call, channel: Channel, reader: Reader, work: Callable[[], Awaitable[None]]
    ) -> None:
        try:
            await call.while_here(work)
        finally:
            channel.detach(reader)

    # -- room, and the end -----------------------------------------------------------------

    def _make_room(self, resumed: Session | None = None) -> None:
        """Have room for one more session that is about to be opened, or for one that was kept."""
        open = self._server.sessions
        most = self._limits.sessions - (resumed is None)
        if resumed is None or len(open) > most:
            self._server.sweep()
        if len(open) <= most:
            return
        idle = [
            one
            for one in open.values()
            if one is not resumed and not (one.exchanges or self._is_read(one))
        ]
        if not idle:
            if resumed is not None:
                resumed.close("there is no room for it")
            raise Refusal(503, "Busy: as many sessions are open as may be")
        min(idle, key=lambda one: one.used_at).close("others need its place")

    def _is_read(self, session: Session) -> bool:
        desk = self._desks.get(session)
        return desk is not None and desk.general.is_read

    async def close(self) -> None:
        """End all streams, and wait a moment for what runs."""
        for desk in list(self._desks.values()):
            desk.close()
        for stop in list(self._running):
            stop.cancel()
        with anyio.move_on_after(self._limits.ending):
            while self._running:
                self._ended = anyio.Event()
                await self._ended.wait()

    def _over(self, stop: Stop | None) -> None:
        if stop is not None:
            self._running.discard(stop)
        if self._ended is not None:
            self._ended.set()


def _key(name: str, peer: Peer) -> str:
    """Return what a session is kept as: whoever is not its owner does not find it, even by name.

    A name has no colon, so nobody can name the session of somebody else as their own.
    """
    return name if peer.subject is None else f"{peer.subject}:{name}"
