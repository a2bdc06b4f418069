"""One request while it is answered: whose it is, where its messages go, how it is given up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcpclient.protocol import envelope, methods
from mcpclient.protocol.envelope import Outgoing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpclient.serverkit.asks import Asker
    from mcpclient.serverkit.eras import Era
    from mcpclient.serverkit.incoming import Request
    from mcpclient.serverkit.server import Server
    from mcpclient.serverkit.session import Session
    from mcpclient.serverkit.state import State

    Send = Callable[[Outgoing], None]


class Peer(Struct, frozen=True):
    """Who is at the other end, as far as the transport knows.

    Attributes:
        headers: The headers of the request, names in lower case; empty where there are none.
        remote: The address, or None.
        subject: Whom an authorization names, or None.
        scopes: What it allows; None: there is no authorization, everything is allowed.
        claims: What else it says.
    """

    headers: Mapping[str, str] = {}
    remote: str | None = None
    subject: str | None = None
    scopes: frozenset[str] | None = None
    claims: Mapping[str, Any] = {}


class Exchange:
    """One request while it is answered.

    Attributes:
        session: The conversation.
        request: The request; None for what the server does by itself.
        era: The era's rules for it.
        peer: Who asks.
        state: What is remembered: the conversation's, or only for this request.
        asker: How to ask the client.
        mute: Whether nothing is told on the way: no log, no progress.
        cancelled: Whether the client gave it up; then it gets no answer.
        ending: Whether the server ends it by itself, with an answer.
        prepared: What a tool prepared before its task was made.
    """

    __slots__ = (
        "_cancel",
        "_drop",
        "_send",
        "asker",
        "cancelled",
        "ending",
        "era",
        "mute",
        "peer",
        "prepared",
        "request",
        "session",
        "state",
        "token",
    )

    def __init__(
        self,
        session: Session,
        request: Request | None,
        era: Era,
        *,
        state: State,
        send: Send | None,
        peer: Peer,
        cancel: Callable[[], object] | None = None,
        drop: Callable[[], object] | None = None,
    ) -> None:
        self.session = session
        self.request = request
        self.era = era
        self.state = state
        self.peer = peer
        self.mute = False
        self.cancelled = False
        self.ending = False
        self.prepared: Any = None
        token = request.meta.get("progressToken") if request is not None else None
        self.token: str | int | None = token if type(token) in (str, int) else None
        self._send = send
        self._cancel = cancel
        self._drop = drop
        self.asker: Asker = era.asker(self)

    @property
    def server(self) -> Server:
        """The server."""
        return self.session.server

    @property
    def send(self) -> Send | None:
        """Where its messages go: the request's own way, else the conversation's."""
        return self._send or self.session.send

    def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification that belongs to this request, if this era has it."""
        send = self.send
        told = self.era.notice(method, params)
        if send is not None and told is not None:
            send(Outgoing(envelope.notification(method, told), method, told, self.era.version))

    def progress(self, progress: float, total: float | None, message: str | None) -> None:
        """Tell how far it is, if the client wants to know."""
        # Of a thread that nobody waits for any more, nobody wants to hear.
        if self.token is None or self.mute or self.cancelled:
            return
        params: dict[str, Any] = {"progressToken": self.token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        self.tell(methods.PROGRESS, params)

    def give_up(self) -> None:
        """Stop it: the client asked for no answer."""
        self.cancelled = True
        if self._cancel is not None:
            self._cancel()

    def drop(self) -> None:
        """Have the transport close this request's stream; the client comes back for the rest."""
        if self._drop is not None:
            self._drop()

    def allows(self, scopes: frozenset[str]) -> bool:
        """Return whether the caller has these scopes."""
        return self.peer.scopes is None or scopes <= self.peer.scopes
