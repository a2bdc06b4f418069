"""A session on a transport: calls, their time-outs and cancellation, and its end.

Each call is settled as its answer arrives, by :mod:`~mcpclient.connection.incoming`: no task, queue
or cancel scope stands between. It does not know how many lives the server had, nor what becomes of
it when it dies.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import anyio
from msgspec import Raw, Struct

from mcpclient.connection.deadlines import Deadlines
from mcpclient.connection.incoming import Incoming
from mcpclient.connection.inflight import Call, Inflight
from mcpclient.connection.noise import Noise
from mcpclient.connection.progress import Teller, Tellers
from mcpclient.ground.errors import (
    CallCancelled,
    CallLost,
    CallTimedOut,
    InputRefused,
    McpClientError,
    RemoteProtocolError,
    ReplyError,
    ServerDied,
    UseAfterClose,
    odd_words,
    timed_out,
)
from mcpclient.ground.exits import Exit
from mcpclient.ground.text import printable, size
from mcpclient.protocol import payload
from mcpclient.protocol.events import Answer, Broken, Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpclient.connection.incoming import Owner
    from mcpclient.connection.progress import Progress
    from mcpclient.ground.options import Limits, Timeouts
    from mcpclient.loops.base import Loop
    from mcpclient.protocol.envelope import Outgoing
    from mcpclient.protocol.session import Session
    from mcpclient.transports.base import Transport

_log = logging.getLogger("mcpclient")


class Counts(Struct):
    """What a connection met, as numbers.

    Attributes:
        oversize: Frames over the limit.
        asks: Requests from the server.
        ignored: Requests from the server that were never answered: its era forbids them, or it
            does not read.
        own: Requests of ours that no user made: openings and pings.
    """

    oversize: int = 0
    asks: int = 0
    ignored: int = 0
    own: int = 0


class Connection:
    """One conversation with one server process.

    Attributes:
        session: The pure conversation.
        transport: What carries it.
        inflight: The calls in flight.
        counts: What was met besides answers.
        noise: What stood on stdout and was no message.
        deadlines: When calls time out.
        incoming: What the transport brings goes there.
        kept: Who is told of progress beyond the answer, since a task goes on.
        server: The server's name.
        label: The name and generation, for the log.
        over: Whether it has ended.
        ended: Set when it has ended.
        exit: How the process ended, then.
        reason: Why, if the exit does not say it all.
        on_over: Told of the end at once, before the calls in flight are.
    """

    def __init__(
        self,
        session: Session,
        transport: Transport,
        *,
        loop: Loop,
        timeouts: Timeouts,
        limits: Limits,
        server: str,
        generation: int,
        owner: Owner,
        trace: Callable[[str, Any], Any] | None = None,
    ) -> None:
        self.session = session
        self.transport = transport
        self.inflight = Inflight(limits.retired)
        self.counts = Counts()
        self.server = server
        self.label = f"{server}#{generation}"
        self.loop = loop
        self._timeouts = timeouts
        self._limits = limits
        self.noise = Noise(self.label, limits.noise)
        self.deadlines = Deadlines(loop, self.inflight, self._time_out)
        self.kept = Tellers(limits.retired)
        self._trace = trace
        self._closing = False
        self.over = False
        self.ended = anyio.Event()
        self.exit = Exit()
        self.reason = ""
        self.on_over: Callable[[], None] | None = None
        self.incoming = Incoming(self, owner, limits)

    @property
    def calls(self) -> int:
        """How many calls users made."""
        return self.inflight.filed - self.counts.own

    def start(self) -> None:
        """Begin to listen."""
        self.transport.start(self.incoming)

    # -- calls -----------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: Progress | None = None,
    ) -> Raw:
        """Return the result of a call. Cancelling it tells the server to give it up.

        Raises:
            ReplyError: The server answered no.
            RemoteProtocolError: The answer cannot be read.
            InputRefused: The server wants another round.
            CallTimedOut: No answer came within ``timeout`` seconds.
            ServerDied: The process ended first.
            CallLost: The server does not read.
            LocalProtocolError: The params are no JSON.
        """
        waiter = self.loop.waiter()
        call = self.begin(method, params, timeout, on_progress, waiter=waiter)
        try:
            outcome = await waiter
        except BaseException:  # a cancellation, whichever loop's: the server must hear of it
            self.abandon(call, "the caller was cancelled")
            raise
        return self.read(call, outcome)

    def begin(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: Progress | None = None,
        *,
        waiter: Any = None,
        watch: Callable[[Any], None] | None = None,
    ) -> Call:
        """Send a request and return the call; its waiter or watch gets the outcome, once.

        The outcome is an event of the session or an exception, to be given to :meth:`read`.
        """
        if self.over:
            raise UseAfterClose(f'the connection to "{self.server}" is closed')
        waiting = self.transport.waiting
        if waiting and self._limits.outbox is not None and waiting > self._limits.outbox:
            raise CallLost(
                f"{size(waiting)} wait for the server to read its input (Limits.outbox)",
                method=method,
                server=self.server,
                maybe_done=False,
            )
        if self._trace is not None:
            params = self._trace(method, params)
        id, item = self.session.request(method, params, progress=on_progress is not None)
        call = Call(id, method, item, waiter, watch)
        moves = on_progress is not None
        if timeout is not None:
            self.deadlines.watch(call, timeout, self._timeouts.call_max, moves=moves)
        if on_progress is not None:
            call.teller = Teller(on_progress, self.loop, self.label)
        self._file(call)
        return call

    def opening(self, id: int, item: Outgoing, watch: Callable[[Any], None]) -> Call:
        """Send a request that opens the session. It has no deadline of its own."""
        call = Call(id, item.method, item, None, watch)
        self.counts.own += 1
        self._file(call)
        return call

    def abandon(self, call: Call, reason: str, outcome: Any = None) -> None:
        """Give a call up and, if the server can know of it, tell it so. At any time, once."""
        if not self.inflight.abandon(call, outcome):
            return
        # One that waits in the outbox never reaches the server: nothing to cancel (CAN-01).
        if self.transport.withdraw(call.item) or self.over:
            return
        if self.session.state == "open":
            self.send(self.session.cancel(call.id, reason))

    def forget(self, call: Call) -> None:
        """Give a call up without a word: an opening is never cancelled (LIFE-12, ERA-15)."""
        self.inflight.abandon(call)

    def read(self, call: Call, outcome: Any) -> Raw:
        """Return a call's result, or raise why there is none. As :meth:`request` does."""
        if type(outcome) is Answer:
            try:
                return self.session.era.read(call.method, outcome.result)
            except InputRefused as needed:
                needed.server = self.server
                raise
        raise self.error(call, outcome)

    def error(self, call: Call, outcome: Any) -> McpClientError:
        """Return the error that an outcome means."""
        match outcome:
            case Refusal(code=code, message=message, data=data):
                told = payload.told(data)
                refused = ReplyError(code, message, told, method=call.method, server=self.server)
                refused.wants = self.session.era.wanted(code, told)
                return refused
            case Broken(problem=problem):
                return RemoteProtocolError(
                    f'{call.method} on "{self.server}": {problem}{self.aside()}'
                )
            case McpClientError():
                return outcome
        raise AssertionError(f"no outcome of a call: {outcome!r}")

    def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification."""
        if self.over:
            raise UseAfterClose(f'the connection to "{self.server}" is closed')
        self.send(self.session.notification(method, params))

    def send(self, item: Outgoing) -> None:
        """Send anything but a request."""
        if _log.isEnabledFor(logging.DEBUG):
            method = printable(item.method) or "answer"
            _log.debug("%s > %s %s", self.label, method, size(len(item.frame)))
        self.transport.send_soon(item)

    def aside(self) -> str:
        """Return what the server said beside the protocol, as a suffix of an error's text."""
        return odd_words(self.noise.text())

    async def close(self) -> Exit:
        """End the conversation and the transport. Calls in flight end as cancelled."""
        self._closing = True
        return await self.transport.close()

    def kill(self) -> None:
        """End everything now: the loop itself is ending."""
        self._closing = True
        self.transport.kill()

    def _file(self, call: Call) -> None:
        inflight = self.inflight
        inflight.file(call)  # first into the table, then onto the wire (B49)
        if _log.isEnabledFor(logging.DEBUG):
            method = printable(call.method)
            _log.debug("%s > %d %s %s", self.label, call.id, method, size(len(call.item.frame)))
        # Alone, at once; among others, together with them.
        if len(inflight) == 1:
            self.transport.send(call.item)
        else:
            self.transport.send_soon(call.item)

    def _time_out(self, call: Call) -> None:
        hard = call.hard is not None and call.deadline == call.hard
        waited = max(self._timeouts.call_max or 0.0, call.timeout or 0.0) if hard else call.timeout
        problem = timed_out(
            waited or 0.0,
            "(progress or not)" if hard else "",
            self.transport.stderr_tail(),
            self.noise.text(),
        )
        self.abandon(
            call,
            "timed out",
            CallTimedOut(
                problem, method=call.method, server=self.server, maybe_done=call.item.written
            ),
        )

    # -- the end ---------------------------------------------------------------------------

    def gone(self, exit: Exit, reason: str) -> None:
        """Take note of the end, which the transport told."""
        if self.over:
            return
        self.over = True
        self.exit = exit
        self.reason = reason
        self.ended.set()
        _log.info("%s x %s%s", self.label, exit, f", {reason}" if reason else "")
        self.session.close()
        if self.on_over is not None:
            self.on_over()
        self.inflight.lose(lambda call: self.lost(call.method, maybe_done=call.item.written))
        self.inflight.check()
        # Last: the end of an ask, told above, sets the clock of the calls in flight anew.
        self.deadlines.stop()

    def lost(self, method: str, *, maybe_done: bool) -> CallLost:
        """Return the error of a call that the end of this connection cut off."""
        facts: Any = {"method": method, "server": self.server, "maybe_done": maybe_done}
        if self._closing:
            return CallCancelled("the server was stopped", **facts)
        tail = self.transport.stderr_tail()
        return ServerDied(self.exit, tail, reason=self.reason, **facts)
