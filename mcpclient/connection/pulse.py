"""Whether a server still answers, asked by ``ping``. Only for eras that have it, only if wanted.

A server that is busy with a call is not hung, and one that refuses a ping is alive. What counts
is silence, several times in a row, with nothing else to do.

https://modelcontextprotocol.io/specification/2025-11-25/basic/utilities/ping
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpclient.ground.errors import CallTimedOut, McpClientError
from mcpclient.ground.text import seconds
from mcpclient.protocol.methods import PING

if TYPE_CHECKING:
    from mcpclient.connection.connection import Connection
    from mcpclient.loops.base import Stop


class Pulse:
    """The pings of one connection."""

    def __init__(self, connection: Connection, interval: float, misses: int) -> None:
        """Prepare to ping.

        Args:
            connection: An open connection.
            interval: Seconds between two pings, and how long one may stay unanswered.
            misses: After so many unanswered ones in a row the server is ended as hung.
        """
        self._connection = connection
        self._interval = interval
        self._most = misses
        self._missed = 0
        self._timer: Stop | None = None

    def start(self) -> None:
        """Begin. It ends with the connection, or by :meth:`stop`."""
        if self._connection.session.era.pings:
            self._later()

    def stop(self) -> None:
        """Ask no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _later(self) -> None:
        self._timer = self._connection.loop.later(self._interval, self._beat)

    def _beat(self) -> None:
        connection = self._connection
        if connection.over:
            return
        if len(connection.inflight):
            self._missed = 0
            self._later()
        else:
            connection.counts.own += 1
            try:
                connection.begin(PING, None, self._interval, watch=self._heard)
            except McpClientError:
                # It does not read: no ping can be sent, and none was missed.
                self._later()

    def _heard(self, outcome: Any) -> None:
        connection = self._connection
        if not isinstance(outcome, CallTimedOut):
            # Any answer proves life, an error as well (B100).
            self._missed = 0
        else:
            self._missed += 1
            if self._missed >= self._most:
                span = seconds(self._missed * self._interval)
                connection.transport.destroy(f"it answered no ping for {span}")
                return
        if not connection.over:
            self._later()
