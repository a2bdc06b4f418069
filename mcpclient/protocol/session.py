"""One conversation: frames in, events out; requests in, frames out. Never waits.

It gives ids, keeps the state, speaks the era's dialect and sorts what arrives. It does not know
which requests are still in flight, nor what becomes of an event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, Struct

from mcpclient.ground.errors import LocalProtocolError, RemoteProtocolError
from mcpclient.ground.text import sample
from mcpclient.protocol import envelope, methods, oddlines
from mcpclient.protocol.envelope import NOTHING, Envelope, Outgoing, decode_envelope
from mcpclient.protocol.eras import handshake
from mcpclient.protocol.eras.handshake import Handshake
from mcpclient.protocol.eras.stateless import Stateless
from mcpclient.protocol.events import Answer, Ask, Broken, Event, Noise, Notice, Refusal
from mcpclient.protocol.ids import meant
from mcpclient.protocol.oddlines import Unreadable
from mcpclient.protocol.states import SESSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcpclient.protocol.eras import Era, Identity, NoTasks, Terms
    from mcpclient.protocol.eras.tasks import Tasks


class Session:
    """The pure conversation with one server, from the first frame to the last.

    Attributes:
        state: A state of :data:`mcpclient.protocol.states.SESSION`.
        era: The era's rules, provisional until the state is ``open``.
        terms: What the opening agreed on, or None before that.
    """

    __slots__ = ("_identity", "_next_id", "era", "state", "terms")

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._next_id = 1
        self.state = SESSION.start
        self.era: Era = Handshake("")
        self.terms: Terms | None = None

    # -- opening ---------------------------------------------------------------------------

    def probe(self, version: str) -> tuple[int, Outgoing]:
        """Return the id and frame of a ``server/discover`` in this version."""
        self._move("probe")
        self.era = Stateless(version, self._identity)
        return self._request(methods.DISCOVER, None, progress=False)

    def initialize(self, version: str) -> tuple[int, Outgoing]:
        """Return the id and frame of an ``initialize`` that offers this version."""
        self._move("initialize")
        self.era = Handshake(version)
        return self._request(
            methods.INITIALIZE, handshake.initialize(self._identity, version), progress=False
        )

    def agree_stateless(self, terms: Terms) -> None:
        """Open the conversation on the terms of a ``server/discover``."""
        self._move("agree")
        self.era = Stateless(terms.version, self._identity)
        self.terms = terms

    def agree_handshake(self, terms: Terms) -> Outgoing:
        """Open the conversation on the terms of an ``initialize``; return what confirms it."""
        self._move("agree")
        self.era = Handshake(terms.version)
        self.terms = terms
        return self.notification(methods.INITIALIZED, None)

    def close(self) -> None:
        """End the conversation. Closing twice is no fault."""
        if self.state != "closed":
            self._move("close")

    # -- sending ---------------------------------------------------------------------------

    def request(
        self, method: str, params: Mapping[str, Any] | None, *, progress: bool = False
    ) -> tuple[int, Outgoing]:
        """Return the id and frame of a request.

        Args:
            method: The method.
            params: Its params, or None for none.
            progress: Whether to ask for progress notices; the request's id is the token.

        Raises:
            LocalProtocolError: The conversation is not open, or the params are no JSON.
        """
        if self.state != "open":
            raise LocalProtocolError(f"session: {method!r} cannot be sent in state {self.state!r}")
        return self._request(method, params, progress=progress)

    def notification(self, method: str, params: Mapping[str, Any] | None) -> Outgoing:
        """Return the frame of a notification."""
        return Outgoing(envelope.notification(method, params), method, params, self.era.version)

    def cancel(self, id: int, reason: str) -> Outgoing:
        """Return the frame that tells the server to give a request up."""
        return self.notification(methods.CANCELLED, self.era.cancel(id, reason))

    def answer(self, ask: Ask, result: Any) -> Outgoing:
        """Return the frame that answers a server's request."""
        return Outgoing(envelope.answer(ask.id, result), version=self.era.version)

    def refuse(self, ask: Ask, code: int, message: str) -> Outgoing:
        """Return the frame that refuses a server's request."""
        return Outgoing(envelope.refusal(ask.id, code, message), version=self.era.version)

    def tasks(self) -> Tasks | NoTasks:
        """Return how the server runs tasks, by what it declared."""
        return self.era.tasks(self.terms.capabilities if self.terms is not None else {})

    def issued(self, id: int) -> bool:
        """Return whether a request of ours ever had this id."""
        return 0 < id < self._next_id

    def _request(
        self, method: str, params: Mapping[str, Any] | None, *, progress: bool
    ) -> tuple[int, Outgoing]:
        id = self._next_id
        era = self.era
        stamped = era.stamp(params, id if progress else None)
        frame = envelope.request(id, method, stamped)
        # Only now: a request that cannot be written uses up no id.
        self._next_id = id + 1
        return id, Outgoing(frame, method, params, era.version, False, id)

    def _move(self, event: str) -> None:
        self.state = SESSION.after(self.state, event)

    # -- receiving -------------------------------------------------------------------------

    def receive(self, line: bytes) -> Sequence[Event]:
        """Return what one line says, in order; nothing if it is blank. Never raises."""
        try:
            found = decode_envelope(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return [
                _unreadable(part) if isinstance(part, Unreadable) else _event(part, line)
                for part in oddlines.read(line)
            ]
        return (_event(found, line),)

    def nameless(self, body: bytes, id: int) -> Refusal | None:
        """Return the refusal that an error without an id means for the request it came back for.

        Only of the three codes that are a stateless server's own; of others the status tells more.
        """
        try:
            found = decode_envelope(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        if not found.error or found.method is not None or type(found.id) is int:
            return None
        refusal = _refusal(id, found.error)
        return refusal if refusal.code in methods.STATELESS_ONLY else None


class _Error(Struct, gc=False):
    code: Any = None
    message: Any = None
    data: Raw = NOTHING


_decode_error = msgspec.json.Decoder(_Error).decode


def _event(found: Envelope, line: bytes) -> Event:
    # What has a method is no answer, whatever its id: the two sides count their ids apart (B38).
    id = found.id
    if found.method is not None:
        if id is UNSET:
            return Notice(found.method, found.params)
        if id is None:
            return Noise(line, "a request whose id is null or of no legal type")
        return Ask(id, found.method, found.params)
    refused = found.error and bytes(found.error) != b"null"
    number = id if type(id) is int else meant(id)
    if number is None:
        return Noise(line, _stray(found, refused=bool(refused)))
    if refused:
        return _refusal(number, found.error)
    if found.result:
        return Answer(number, found.result)
    if found.jsonrpc is not None:
        return Broken(number, "the answer has neither a result nor an error")
    return Noise(line, "JSON that is no message")


def _refusal(id: int, error: Raw) -> Refusal:
    try:
        body = _decode_error(error)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        try:
            body = _decode_error(oddlines.repaired(bytes(error)))
        except (RemoteProtocolError, msgspec.MsgspecError):
            # Whatever it is, it still is a refusal: the text of it is all there is to tell.
            body = _Error(message=bytes(error).decode("utf-8", "replace"))
    code = body.code if type(body.code) is int else meant(body.code) or 0
    message = body.message if isinstance(body.message, str) else ""
    return Refusal(id, code, message, body.data)


def _stray(found: Envelope, *, refused: bool) -> str:
    if refused:
        return "an error that names no request of ours"
    if found.result:
        return "an answer that names no request of ours"
    return "JSON that is no message"


def _unreadable(part: Unreadable) -> Event:
    if part.id is not None:
        problem = part.hint or "the answer cannot be read"
        return Broken(part.id, f"{problem}: {sample(part.line)}")
    return Noise(part.line, part.hint)
