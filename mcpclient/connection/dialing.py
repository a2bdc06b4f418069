"""From a way to start or reach a server to an open connection. Remembers the era between lives.

It starts a second process where the first one died of the probe, and takes the older transport
where an endpoint knows no other. It does not know when to dial, nor how often.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any

import anyio
from msgspec import Struct

from mcpclient.connection.connection import Connection
from mcpclient.connection.opening import DiedOnProbe, OldTransport, Opening
from mcpclient.ground.errors import OpeningFailed
from mcpclient.ground.text import seconds
from mcpclient.protocol.session import Session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpclient.connection.incoming import Owner
    from mcpclient.ground.options import Limits, Timeouts
    from mcpclient.loops.base import Loop
    from mcpclient.protocol.eras import Identity
    from mcpclient.protocol.trace import Trace
    from mcpclient.transports.base import Transport

_log = logging.getLogger("mcpclient")


class Proven(Struct):
    """What earlier lives proved of a server, to be tried first.

    Attributes:
        era: Only ``handshake`` is worth knowing: a stateless server answers the probe at once, one
            of the handshake era may be silent or die of it.
        old: Whether it was reached by the older transport.
    """

    era: str | None = None
    old: bool = False


class Dialer:
    """Opens connections to one server, one after the other."""

    def __init__(
        self,
        server: str,
        connect: Callable[[], Awaitable[Transport]],
        *,
        loop: Loop,
        identity: Identity,
        era: str,
        timeouts: Timeouts,
        limits: Limits,
        command: str = "",
        address: str = "",
        trace: Trace | None = None,
        older: Callable[[], Awaitable[Transport]] | None = None,
        proven: Proven | None = None,
        silence_tells: bool = True,
    ) -> None:
        """Prepare to dial.

        Args:
            server: The server's name.
            connect: Starts a process and returns the transport to it.
            loop: The loop that runs this code.
            identity: Who we say we are.
            era: ``auto``, ``handshake``, ``stateless`` or a version.
            timeouts: ``open`` and ``probe`` bound the opening.
            limits: The connection's.
            command: What ``connect`` starts, for errors. Without arguments: they may be secret.
            address: What it reaches instead, for errors, without secrets.
            trace: Gives the trace context of each request, or None.
            older: Reaches it in the way of 2024-11-05, or None if there is none.
            proven: What is known of it already; shared by those who dial the same endpoint.
            silence_tells: Whether a server that is silent to the probe is taken for one of the
                handshake era, after ``Timeouts.probe``.
        """
        self._server = server
        self._connect = connect
        self._loop = loop
        self._identity = identity
        self._era = era
        self._timeouts = timeouts
        self._limits = limits
        self._command = command
        self._address = address
        self._tracer: Callable[..., Any] | None = None
        if trace is not None:
            from mcpclient.connection.tracing import Tracer  # only who traces needs it

            self._tracer = Tracer(trace, server)
        self._older = older
        self._proven = Proven() if proven is None else proven
        self._patience = timeouts.probe if silence_tells else None
        # Whether it ended when it was probed and was not reached since: where the process is not
        # ours, it may be a while until somebody starts it again.
        self._unprobed = False

    async def dial(
        self, generation: int, owner: Owner, started: Callable[[Connection], None]
    ) -> Connection:
        """Start a process and open the session. Cancelling it leaves no process behind.

        Args:
            generation: The number of this life.
            owner: Told of the server's notifications.
            started: Told the connection as soon as there is a process, open or not.

        Raises:
            SpawnFailed: The process cannot be started.
            OpeningFailed: It ended, refused, or took too long.
            AccessRefused: It wants other credentials.
        """
        attempt = _Attempt(self, generation, owner, started)
        proven = self._proven
        known = proven.era if self._era == "auto" else None
        try:
            connection = await self._reached(attempt, known or self._era)
        except OpeningFailed as problem:
            if not (problem.final and (known or proven.old)):
                raise
            # It refuses what it accepted before: it was upgraded between two lives.
            proven.era, proven.old = None, False
            connection = await self._reached(attempt, self._era)
        if self._era == "auto" and connection.session.era.name == "handshake":
            proven.era = "handshake"
        return connection

    async def _reached(self, attempt: _Attempt, era: str) -> Connection:
        """Open a connection by whichever transport the server takes."""
        older = self._older
        if older is not None and self._proven.old:
            try:
                return await attempt.run(era, probed=True, connect=older)
            except OldTransport as refusal:
                raise refusal.problem from None
        try:
            return await self._opened(attempt, era)
        except OldTransport as refusal:
            if older is None:
                raise refusal.problem from None
            _log.info("%s#%d = no POST; by the older transport", self._server, attempt.generation)
            try:
                connection = await attempt.run(era, probed=True, connect=older)
            except (OpeningFailed, OldTransport):
                # That is none either: why it is not of the newer kind tells more.
                raise refusal.problem from None
        self._proven.old = True
        return connection

    async def _opened(self, attempt: _Attempt, era: str) -> Connection:
        if not self._unprobed:
            try:
                return await attempt.run(era)
            except DiedOnProbe:
                _log.info("%s#%d = ended when probed; once more", self._server, attempt.generation)
            self._unprobed = True
        try:
            # By initialize this time. If it was not the probe that killed it, and it is of the
            # stateless era, it says so.
            return await attempt.run(era, probed=True)
        except DiedOnProbe as death:
            raise death.problem from None


class _Attempt:
    """One life that is to begin: one process, or a second one if the first died of the probe."""

    def __init__(
        self, dialer: Dialer, generation: int, owner: Owner, started: Callable[[Connection], None]
    ) -> None:
        self._dialer = dialer
        self.generation = generation
        self._owner = owner
        self._started = started
        self._limit = dialer._timeouts.open
        self._deadline = math.inf if self._limit is None else anyio.current_time() + self._limit

    async def run(
        self,
        era: str,
        *,
        probed: bool = False,
        connect: Callable[[], Awaitable[Transport]] | None = None,
    ) -> Connection:
        dialer = self._dialer
        with anyio.CancelScope(deadline=self._deadline) as scope:
            transport = await (connect or dialer._connect)()
        if scope.cancelled_caught:
            problem = "it was not reached" if dialer._address else "the process did not start"
            raise self._too_slow(problem, None)
        dialer._unprobed = False
        connection = Connection(
            Session(dialer._identity),
            transport,
            loop=dialer._loop,
            timeouts=dialer._timeouts,
            limits=dialer._limits,
            server=dialer._server,
            generation=self.generation,
            owner=self._owner,
            trace=dialer._tracer,
        )
        try:
            which = "connection" if transport.pid is None else f"pid {transport.pid}"
            _log.info("%s + %s", connection.label, which)
            self._started(connection)
            connection.start()
            with anyio.CancelScope(deadline=self._deadline) as scope:
                await Opening(connection, era, dialer._patience, probed=probed).run()
            if scope.cancelled_caught:
                raise self._too_slow("the server did not open", connection)
        except BaseException:  # a cancellation too: no process without an owner
            try:
                await connection.close()
            finally:
                # Still open only if the loop ends and has cancelled the ladder itself.
                if not connection.over:
                    connection.kill()
            raise
        return connection

    def _too_slow(self, problem: str, connection: Connection | None) -> OpeningFailed:
        where = ""
        if self._dialer._address:
            where = f"; it is at {self._dialer._address}"
        elif self._dialer._command:
            where = f"; its command is {self._dialer._command!r}"
        aside = connection.aside() if connection is not None else ""
        return OpeningFailed(
            f"{problem} within {seconds(self._limit or 0.0)} (Timeouts.open{where}){aside}",
            server=self._dialer._server,
            stderr_tail=connection.transport.stderr_tail() if connection is not None else "",
            noise=connection.noise.text() if connection is not None else "",
        )
