"""What a server sends, sorted: answers to their calls, all else to whoever is to hear of it.

It knows which message settles what; it starts no call and ends no connection.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Raw, Struct

from mcpclient.connection.progress import heard
from mcpclient.ground.errors import (
    AccessRefused,
    CallLost,
    McpClientError,
    RemoteProtocolError,
    ServerUnavailable,
)
from mcpclient.ground.text import printable, seconds, size
from mcpclient.protocol import events, methods, payload
from mcpclient.protocol.events import Answer, Ask, Broken, Event, Notice, Refusal
from mcpclient.protocol.oddlines import LSP, salvage

if TYPE_CHECKING:
    from mcpclient.connection.connection import Connection
    from mcpclient.ground.exits import Exit
    from mcpclient.ground.options import Limits
    from mcpclient.protocol.envelope import Outgoing
    from mcpclient.protocol.framing import Oversize

_log = logging.getLogger("mcpclient")
# Requests of the server that came before its era was known, at most.
_HELD = 16


class Owner(Protocol):
    """Who is told of what is no answer. It never raises and never waits."""

    def noticed(self, method: str, params: Raw) -> None:
        """The server sent a notification."""

    def asked(self, connection: Connection, ask: Ask) -> bool:
        """The server sent a request; return whether it will be answered."""

    def unasked(self, ask_id: object) -> None:
        """The server took a request back."""

    def lapsed(self) -> None:
        """For a while notifications of the server were lost."""


class Incoming:
    """The sink of one connection's transport."""

    def __init__(self, connection: Connection, owner: Owner, limits: Limits) -> None:
        self._connection = connection
        self._owner = owner
        self._limits = limits
        self._held: list[Ask] = []
        # What the path of every answer needs, bound once.
        self._session = connection.session
        self._inflight = connection.inflight
        self._noise = connection.noise
        self._transport = connection.transport
        self._counts = connection.counts
        self._deadlines = connection.deadlines
        self._label = connection.label
        self._server = connection.server

    def frame(self, line: bytes) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        try:
            for event in self._session.receive(line):
                if isinstance(event, Answer):
                    if self._inflight.settle(event.id, "answer", event) is None:
                        self._unmatched(event.id, line)
                    if _log.isEnabledFor(logging.DEBUG):
                        _log.debug("%s < %d result %s", self._label, event.id, size(len(line)))
                else:
                    self._other(event, line)
        except Exception:  # the reader's outer edge: it may cost this line, but no other (B16)
            self._faulted()

    def _other(self, event: Event, line: bytes) -> None:
        match event:
            case Refusal(id=id) | Broken(id=id):
                if _log.isEnabledFor(logging.DEBUG):
                    _log.debug("%s < %d error %s", self._label, id, size(len(line)))
                if self._inflight.settle(id, "refuse", event) is None:
                    self._unmatched(id, line)
            case Notice(method=method, params=params):
                if _log.isEnabledFor(logging.DEBUG):
                    _log.debug("%s < %s %s", self._label, printable(method), size(len(line)))
                if method == methods.PROGRESS:
                    self._progress(params)
                elif method == methods.CANCELLED:
                    self._unasked(params)
                else:
                    self._owner.noticed(method, params)
            case Ask():
                self._asked(event)
            case events.Noise(line=part, hint=hint):
                self._noisy(part, hint)
            case Answer():
                raise AssertionError("answers are settled where they arrive")

    def rest(self, line: bytes) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        # Whole, it counts like any other. Half an answer is none: that the server died of it says
        # more than that its JSON is broken.
        if any(isinstance(event, Broken) for event in self._session.receive(line)):
            self._noisy(line, "the end of it is missing")
        else:
            self.frame(line)

    def reply(self, item: Outgoing, body: bytes) -> bool:
        """See :class:`~mcpclient.transports.base.Sink`."""
        try:
            for event in self._session.receive(body):
                match event:
                    case Answer():
                        self._inflight.settle(event.id, "answer", event)
                    case events.Noise():
                        pass
                    case _:
                        self._other(event, body)
            if not item.settled and item.id is not None:
                if (refusal := self._session.nameless(body, item.id)) is not None:
                    self._inflight.settle(item.id, "refuse", refusal)
            if item.settled and _log.isEnabledFor(logging.DEBUG):
                _log.debug("%s < %s answer %s", self._label, item.id, size(len(body)))
        except Exception:  # the reader's outer edge, as in frame()
            self._faulted()
        return item.settled

    def failed(self, item: Outgoing, problem: McpClientError) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        call = None if item.settled or item.id is None else self._inflight.get(item.id)
        if call is None or call.item is not item:
            return
        if isinstance(problem, CallLost | AccessRefused):
            problem.method = call.method
        if isinstance(problem, CallLost | ServerUnavailable):
            problem.server = self._server
        if isinstance(problem, RemoteProtocolError):
            problem = RemoteProtocolError(f'{call.method} on "{self._server}": {problem}')
        _log.info("%s ! %d %s", self._label, call.id, problem)
        self._inflight.fail(call, problem)

    def oversize(self, spill: Oversize) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        self._counts.oversize += 1
        problem = (
            f"the server sent a message of {size(spill.length)}; "
            f"the limit is {size(self._limits.frame or 0)} (Limits.frame)"
        )
        _log.warning("%s ! %s", self._label, problem)
        id = salvage(spill.head, spill.tail)
        if id is not None and self._inflight.settle(id, "refuse", Broken(id, problem)):
            return
        self._noise.keep(problem.encode())
        start = spill.head.lstrip()[:1]
        if len(self._inflight) == 1 and start in (b"{", b"[") and b'"method"' not in spill.head:
            # A message, and nobody else can be meant.
            for call in self._inflight:
                self._inflight.settle(call.id, "refuse", Broken(call.id, problem))

    def lapsed(self) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        self._owner.lapsed()

    def stalled(self, waited: float) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        _log.warning("%s ! has not read its input for %s", self._label, seconds(waited))
        for call in self._inflight:
            if not call.item.written and self._transport.withdraw(call.item):
                problem = f"the server has not read its input for {seconds(waited)}"
                lost = CallLost(problem, method=call.method, server=self._server, maybe_done=False)
                self._inflight.abandon(call, lost)

    def gone(self, exit: Exit, reason: str) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        self._connection.gone(exit, reason)

    # -- beside the answers ----------------------------------------------------------------

    def _progress(self, params: Raw) -> None:
        told = heard(params)
        if told is None or told.id is None:
            return
        call = self._inflight.get(told.id)
        teller = call.teller if call is not None else self._connection.kept.get(told.id)
        if call is not None and teller is not None:
            self._deadlines.progressed(call)
        if teller is not None:
            teller.tell(told)

    def _asked(self, ask: Ask) -> None:
        self._counts.asks += 1
        if self._session.state == "probing":
            # Whether it may ask is not known yet.
            if len(self._held) < _HELD:
                self._held.append(ask)
            return
        self._respond(ask)

    def answer_held(self) -> None:
        """Answer the requests that came before the era was known."""
        held, self._held = self._held, []
        for ask in held:
            self._respond(ask)

    def _respond(self, ask: Ask) -> None:
        if not self._session.era.server_may_ask:
            # Answering would break the rule of this era, whatever the server did (STD-03).
            self._counts.ignored += 1
            _log.warning(
                "%s ! a request from the server, which this era forbids: %s",
                self._label,
                printable(ask.method, 100),
            )
        elif self._limits.outbox is not None and self._transport.waiting > self._limits.outbox:
            self._counts.ignored += 1  # it asks on and on, but reads no answer
        elif ask.method == methods.PING:
            self._connection.send(self._session.answer(ask, {}))
        elif not self._owner.asked(self._connection, ask):
            self._connection.send(
                self._session.refuse(
                    ask,
                    methods.METHOD_NOT_FOUND,
                    f"{printable(ask.method, 100)} is not supported by this client",
                )
            )

    def _faulted(self) -> None:
        try:
            _log.exception("%s ! a line could not be handled", self._label)
        except Exception:  # it may have been a handler of the log that raised
            pass

    def _unasked(self, params: Raw) -> None:
        try:
            id = payload.decode(params, _Cancelled).id
        except RemoteProtocolError:
            return  # malformed ones are ignored (CAN-04)
        if _log.isEnabledFor(logging.DEBUG):
            known = printable(str(id), 100) if type(id) in (int, str) else "what has no such id"
            _log.debug("%s < %s %s", self._label, methods.CANCELLED, known)
        self._owner.unasked(id)

    def _unmatched(self, id: int, line: bytes) -> None:
        if not self._session.issued(id):
            self._noisy(line, f"an answer to id {id}, which was never asked")

    def _noisy(self, line: bytes, hint: str) -> None:
        self._noise.add(line, hint)
        if hint == LSP and self._session.state != "open":
            # Nothing readable will ever come: say so now instead of at the time-out (B25).
            for call in self._inflight:
                self._inflight.settle(call.id, "refuse", Broken(call.id, hint))


class _Cancelled(Struct, gc=False, rename={"id": "requestId"}):
    id: Any = None
