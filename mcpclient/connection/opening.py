"""From a fresh process to an open session, whichever era the server belongs to.

It asks the probe and the eras what each answer means and does what they say. A server that is
silent to the probe is offered ``initialize``; if the probe is answered after all, that counts.

https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_never

import anyio

from mcpclient.ground.errors import (
    CallCancelled,
    CallLost,
    HttpError,
    OpeningFailed,
    RemoteProtocolError,
    ServerDied,
    ServerUnavailable,
)
from mcpclient.ground.text import printable
from mcpclient.protocol import versions
from mcpclient.protocol.eras import Refused, handshake, probe
from mcpclient.protocol.events import Answer, Broken, Refusal
from mcpclient.protocol.httprules import is_evidence

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.connection.connection import Connection
    from mcpclient.connection.inflight import Call


class DiedOnProbe(Exception):
    """The server ended when it was probed. A fresh process may open by ``initialize``.

    Attributes:
        problem: What it is if that was tried already.
    """

    def __init__(self, problem: ServerUnavailable) -> None:
        super().__init__(str(problem))
        self.problem = problem


class OldTransport(Exception):
    """The endpoint takes no POST: it may be of the HTTP transport of 2024-11-05.

    Attributes:
        problem: What it is if that was tried already, or comes to nothing.
    """

    def __init__(self, problem: OpeningFailed) -> None:
        super().__init__(str(problem))
        self.problem = problem


class Opening:
    """One opening of one connection."""

    def __init__(
        self, connection: Connection, era: str, probe_time: float | None, *, probed: bool = False
    ) -> None:
        """Prepare to open a connection.

        Args:
            connection: A started connection with a fresh session.
            era: ``auto``, ``handshake``, ``stateless`` or a version.
            probe_time: How long the probe may stay unanswered, in seconds, before that says
                something; None if silence says nothing.
            probed: Whether a process before this one ended when it was probed, so that this one
                is asked to initialize first.
        """
        self._connection = connection
        self._session = connection.session
        self._era = era
        self._probe_time = probe_time
        self._unprobed = probed
        self._probed: _Reply | None = None
        self._proven = False

    async def run(self) -> None:
        """Open the session.

        Raises:
            OpeningFailed: The server refuses, speaks no common version, or ended.
            AccessRefused: It wants other credentials.
            DiedOnProbe: It ended before it answered the probe.
            OldTransport: It takes no POST.
        """
        era = self._era
        if self._unprobed or era == "handshake" or era in versions.HANDSHAKE:
            await self._shake(era if era in versions.HANDSHAKE else versions.HANDSHAKE[-1])
        else:
            version = era if era in versions.STATELESS else versions.STATELESS[-1]
            await self._probe(version, again=False)
        self._connection.incoming.answer_held()

    async def _probe(self, version: str, *, again: bool) -> None:
        while True:
            reply = self._probed = _Reply()
            self._probed.call = self._connection.opening(*self._session.probe(version), reply)
            # Without another era to fall back to, silence is no answer: a slow start may use up
            # all the time that the opening has.
            patience = self._probe_time if self._era in ("auto", "handshake") else None
            with anyio.move_on_after(patience):
                await reply.event.wait()
            verdict = probe.judge(self._probe_outcome(reply.outcome), again=again)
            if self._connection.over and isinstance(verdict, probe.Shake):
                # It answered and ended before we could go on.
                verdict = probe.Respawn()
            elif self._connection.over and not isinstance(verdict, probe.Respawn | Refused):
                raise self._died(reply.outcome)
            match verdict:
                case probe.Speak(terms=terms):
                    self._session.agree_stateless(terms)
                    return
                case probe.ProbeAgain(version=version):
                    again = True
                case probe.Shake(version=offered):
                    if self._era not in ("auto", "handshake"):
                        raise self._failed(
                            "the server does not know server/discover, so it is not of the era "
                            f'{self._era!r}; set era="auto"',
                            final=True,
                        )
                    await self._shake(offered)
                    return
                case probe.Respawn():
                    if self._era != "auto":
                        raise self._died(reply.outcome)
                    raise DiedOnProbe(self._died(reply.outcome))
                case probe.Undecided():
                    raise self._died(reply.outcome)
                case Refused(problem=problem):
                    raise self._failed(problem, final=True)
                case _:
                    assert_never(verdict)

    async def _shake(self, offered: str) -> None:
        insist = False
        while True:
            reply = _Reply()
            reply.call = self._connection.opening(*self._session.initialize(offered), reply)
            if await self._late_probe(reply):
                return
            outcome = reply.outcome
            if isinstance(outcome, HttpError) and is_evidence(outcome.status):
                raise OldTransport(self._failed(_told(outcome), final=True))
            if not isinstance(outcome, Answer | Refusal | Broken):
                raise self._died(outcome)
            verdict = handshake.judge(outcome, offered, insist=insist)
            if self._connection.over and not isinstance(verdict, Refused):
                raise self._died(outcome)  # it answered and ended before we could go on
            match verdict:
                case handshake.Agreed(terms=terms):
                    if self._probed is not None and self._probed.call is not None:
                        self._connection.forget(self._probed.call)
                    self._connection.send(self._session.agree_handshake(terms))
                    return
                case handshake.Offer(version=offered):
                    insist = True
                case handshake.ProvenStateless():
                    if self._proven or self._era not in ("auto", *versions.STATELESS):
                        raise self._failed(
                            "the server speaks only the stateless era; "
                            'set era="auto" to let it be asked',
                            final=True,
                        )
                    self._proven = True
                    await self._probe(versions.STATELESS[-1], again=True)
                    return
                case Refused(problem=problem):
                    raise self._failed(problem, final=True)
                case _:
                    assert_never(verdict)

    async def _late_probe(self, reply: _Reply) -> bool:
        """Wait for the answer to initialize; return True if the probe's answer settles it."""
        late = self._probed
        if late is None or late.event.is_set():
            await reply.event.wait()
            return False
        either = anyio.Event()
        reply.also = late.also = either.set
        while not reply.event.is_set():
            await either.wait()
            if late.outcome is not None:
                verdict = probe.judge(self._probe_outcome(late.outcome), again=True)
                if isinstance(verdict, probe.Speak):
                    if self._connection.over:
                        raise self._died(late.outcome)
                    # A slow server of the stateless era. It refuses initialize, or never
                    # answers it; nobody cares any more.
                    if reply.call is not None:
                        self._connection.forget(reply.call)
                    self._session.agree_stateless(verdict.terms)
                    return True
                await reply.event.wait()
        return False

    def _probe_outcome(self, outcome: Any) -> probe.Outcome:
        if outcome is None:
            return probe.Silence()
        if isinstance(outcome, Answer | Refusal | Broken):
            return outcome
        if isinstance(outcome, HttpError):
            return probe.Status(outcome.status)
        if isinstance(outcome, RemoteProtocolError):
            return Broken(0, str(outcome))
        if isinstance(outcome, ServerDied) and not self._unreached(outcome):
            return probe.Death()
        # It was not reached, or refused us, or the exchange broke: of the era nothing is known.
        raise self._died(outcome)

    def _unreached(self, outcome: Any) -> bool:
        """Return whether the server, which others run, was never asked."""
        remote = bool(self._connection.exit.words)
        return remote and isinstance(outcome, ServerDied) and not outcome.maybe_done

    def _died(self, outcome: Any) -> ServerUnavailable:
        connection = self._connection
        if isinstance(outcome, ServerUnavailable):
            return outcome
        if isinstance(outcome, HttpError):
            # Where it was sent to, or how large it was, will be the same the next time.
            lasting = outcome.status < 400 or outcome.status in (413, 431)
            return self._failed(_told(outcome), final=lasting, retry_after=outcome.retry_after)
        if isinstance(outcome, RemoteProtocolError):
            return self._failed(str(outcome), final=True)
        if isinstance(outcome, ServerDied | Answer | Refusal | Broken):
            how = str(connection.exit)
            if connection.reason:
                how += f": {connection.reason}"
            if not self._unreached(outcome):
                how = f"the server ended while it was opened ({how})"
            return OpeningFailed(
                f"{how}{connection.aside()}",
                server=connection.server,
                exit=connection.exit,
                stderr_tail=connection.transport.stderr_tail(),
                noise=connection.noise.text(),
            )
        if isinstance(outcome, CallLost) and not isinstance(outcome, CallCancelled):
            return self._failed(outcome.problem)
        return self._failed(f"the server was closed while it was opened ({outcome})")

    def _failed(
        self, problem: str, *, final: bool = False, retry_after: float | None = None
    ) -> OpeningFailed:
        return OpeningFailed(
            f"{problem}{self._connection.aside()}",
            server=self._connection.server,
            stderr_tail=self._connection.transport.stderr_tail(),
            noise=self._connection.noise.text(),
            final=final,
            retry_after=retry_after,
        )


class _Reply:
    """Where the outcome of an opening request arrives, whenever it does."""

    def __init__(self) -> None:
        self.outcome: Any = None
        self.event = anyio.Event()
        self.also: Callable[[], None] | None = None
        self.call: Call | None = None

    def __call__(self, outcome: Any) -> None:
        self.outcome = outcome
        self.event.set()
        if self.also is not None:
            self.also()


def _told(error: HttpError) -> str:
    said = " ".join(error.body.split())
    return f"HTTP {error.status}: {error.problem}{f' ({printable(said, 200)})' if said else ''}"
