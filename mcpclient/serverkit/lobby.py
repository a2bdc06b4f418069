"""Sessions that have a name: found again, kept, idle for too long, ended. Knows no transport."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.protocol import versions
from mcpclient.serverkit.exchange import Peer

if TYPE_CHECKING:
    from mcpclient.serverkit.server import Server
    from mcpclient.serverkit.session import Session
    from mcpclient.serverkit.stores import Store

_log = logging.getLogger("mcpclient.serverkit")


class StoreFailed(Exception):
    """The store does not do its part; why is logged, and is the cause."""


class Lobby:
    """The sessions of one server that have a name.

    Attributes:
        open: Those that are open in this process, by name.
        store: Where they are kept, or None.
        idle: After so many seconds without a message one is over; None: never.
    """

    def __init__(self, server: Server, store: Store | None, idle: float | None) -> None:
        self._server = server
        self.open: dict[str, Session] = {}
        self.store = store
        self.idle = idle

    async def resume(self, id: str, peer: Peer) -> Session | None:
        """See :meth:`Server.resume`."""
        session = self.open.get(id)
        if session is not None and self._expired(session):
            # Idle for too long: what is kept of it is, too.
            await self.end(session, "idle for too long")
            session = None
        if session is not None and self.store is None:
            return session
        try:
            saved = await self.store.load(id) if self.store is not None else None
        except Exception as problem:  # the edge to somebody else's code
            _log.exception("! the store does not say what it keeps")
            if session is None:
                raise StoreFailed from problem
            return session
        session = self.open.get(id)  # as it is now: others came while the store was asked
        if session is not None and saved is not None:
            # Another process may have served it meanwhile.
            if not session.exchanges and saved != session.state.save():
                session.state.load(saved)
            return session
        if session is not None and not session.kept:
            return session
        if session is not None:
            session.close("ended elsewhere")
        if saved is not None and saved.get("version"):
            return await self._reopened(id, peer, saved, kept=True)
        hook = self._server.hooks.get("session_expired")
        verdict: Any = await hook(id, peer) if hook is not None else "reject"
        if (session := self.open.get(id)) is not None:
            return session
        if verdict == "reject":
            return None
        if verdict != "accept" and not isinstance(verdict, dict):
            raise LocalProtocolError(
                'session_expired returns "accept", client info or "reject", not '
                f"{type(verdict).__name__}"
            )
        handshake = [one for one in versions.HANDSHAKE if one in self._server.versions]
        info = verdict if isinstance(verdict, dict) else {}
        opened = {"version": handshake[-1], "client_info": info, "ready": True}
        return await self._reopened(id, peer, opened, kept=False)

    async def _reopened(self, id: str, peer: Peer, saved: dict[str, Any], *, kept: bool) -> Session:
        from mcpclient.serverkit.eras.handshake import Handshake

        session = self._server.open(id=id, peer=peer)
        session.state.load(saved)
        session.kept = kept
        session.era = Handshake(session.state.version)
        hook = self._server.hooks.get("init")
        if hook is not None:
            # Components of one session are code, so they are added anew.
            await hook(session.state.client_info, session.frame())
        return session

    async def end(self, session: Session, reason: str) -> None:
        """See :meth:`Server.end`."""
        session.close(reason)
        if self.store is not None and session.id is not None:
            try:
                await self.store.delete(session.id)
            except Exception as problem:  # the edge to somebody else's code
                _log.exception("! the store does not forget a session that is over")
                raise StoreFailed from problem

    def sweep(self) -> list[Session]:
        """See :meth:`Server.sweep`."""
        over = [session for session in self.open.values() if self._expired(session)]
        for session in over:
            session.close("idle for too long")
        return over

    def _expired(self, session: Session) -> bool:
        if session.exchanges or self.idle is None:
            return False
        return self._server.clock() - session.used_at > self.idle
