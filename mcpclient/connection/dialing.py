"""From a way to start a server to an open connection. Remembers the era between lives.

It starts a second process where the first one died of the probe. It does not know when to dial,
nor how often.
"""

from __future__ import annotations

import logging
import math
from typing import TYPE_CHECKING, Any

import anyio

from mcpclient.connection.connection import Connection
from mcpclient.connection.opening import DiedOnProbe, Opening
from mcpclient.ground.errors import OpeningFailed
from mcpclient.ground.text import seconds
from mcpclient.protocol.session import Session

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpclient.connection.connection import Owner
    from mcpclient.ground.options import Limits, Timeouts
    from mcpclient.loops.base import Loop
    from mcpclient.protocol.eras import Identity
    from mcpclient.protocol.trace import Trace
    from mcpclient.transports.base import Transport

_log = logging.getLogger("mcpclient")


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
        trace: Trace | None = None,
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
            trace: Gives the trace context of each request, or None.
        """
        self._server = server
        self._connect = connect
        self._loop = loop
        self._identity = identity
        self._era = era
        self._timeouts = timeouts
        self._limits = limits
        self._command = command
        self._tracer: Callable[..., Any] | None = None
        if trace is not None:
            from mcpclient.connection.tracing import Tracer  # only who traces needs it

            self._tracer = Tracer(trace, server)
        # What an earlier life proved. Only "handshake" is worth knowing: a stateless server
        # answers the probe at once, one of the handshake era may be silent or die of it.
        self._proven: str | None = None

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
        """
        attempt = _Attempt(self, generation, owner, started)
        try:
            connection = await self._opened(attempt, self._proven or self._era)
        except OpeningFailed as problem:
            if not (problem.final and self._proven):
                raise
            # It refuses what it accepted before: it was upgraded between two lives.
            self._proven = None
            connection = await self._opened(attempt, self._era)
        if self._era == "auto" and connection.session.era.name == "handshake":
            self._proven = "handshake"
        return connection

    async def _opened(self, attempt: _Attempt, era: str) -> Connection:
        try:
            return await attempt.run(era)
        except DiedOnProbe:
            _log.info("%s#%d = ended when probed; once more", self._server, attempt.generation)
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

    async def run(self, era: str, *, probed: bool = False) -> Connection:
        dialer = self._dialer
        with anyio.CancelScope(deadline=self._deadline) as scope:
            transport = await dialer._connect()
        if scope.cancelled_caught:
            raise self._too_slow("the process did not start", None)
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
            _log.info("%s + pid %s", connection.label, transport.pid)
            self._started(connection)
            connection.start()
            with anyio.CancelScope(deadline=self._deadline) as scope:
                await Opening(connection, era, dialer._timeouts.probe, probed=probed).run()
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
        command = f"; its command is {self._dialer._command!r}" if self._dialer._command else ""
        aside = connection.aside() if connection is not None else ""
        return OpeningFailed(
            f"{problem} within {seconds(self._limit or 0.0)} (Timeouts.open{command}){aside}",
            server=self._dialer._server,
            stderr_tail=connection.transport.stderr_tail() if connection is not None else "",
            noise=connection.noise.text() if connection is not None else "",
        )
