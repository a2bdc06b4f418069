"""A session on a transport: calls out, answers in, time-outs, cancellation, progress, asks.

One reader feeds it, and settles each call as its answer arrives: no task, queue or cancel scope
stands between. It does not know how many lives the server had, nor what becomes of it when it dies.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

import anyio
from msgspec import Raw, Struct

from mcpclient.connection.inflight import Call, Inflight
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
from mcpclient.ground.text import printable, sample, seconds, size
from mcpclient.protocol import methods, payload
from mcpclient.protocol.events import Answer, Ask, Broken, Event, Noise, Notice, Refusal
from mcpclient.protocol.oddlines import LSP, salvage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcpclient.ground.options import Limits, Timeouts
    from mcpclient.loops.base import Loop, Stop
    from mcpclient.protocol.envelope import Outgoing
    from mcpclient.protocol.framing import Oversize
    from mcpclient.protocol.session import Session
    from mcpclient.transports.base import Transport

    Progress = Callable[[float, float | None, str | None], Any]

_log = logging.getLogger("mcpclient")
# Deadlines nearer to each other than this are swept together.
_SWEEP = 0.01
# Requests of the server that came before its era was known, at most.
_HELD = 16
# Progress that waits for an async handler to be done with the last, per call; the newest counts.
_UNTOLD = 100


class Owner(Protocol):
    """Who is told of what is no answer. It never raises and never waits."""

    def noticed(self, method: str, params: Raw) -> None:
        """The server sent a notification."""

    def asked(self, connection: Connection, ask: Ask) -> bool:
        """The server sent a request; return whether it will be answered."""

    def unasked(self, ask_id: object) -> None:
        """The server took a request back."""


class Counts(Struct):
    """What a connection met, as numbers.

    Attributes:
        noise: Lines on stdout that were no message.
        oversize: Frames over the limit.
        asks: Requests from the server.
        ignored: Requests from the server that its era forbids, never answered.
        own: Requests of ours that no user made: openings and pings.
    """

    noise: int = 0
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
        self._owner = owner
        self._sweep_at = float("inf")
        self._sweeper: Stop | None = None
        self._noise = bytearray()
        self._held: list[Ask] = []
        self._holds = 0
        self._held_since = 0.0
        self._closing = False
        self.over = False
        self.ended = anyio.Event()
        self.exit = Exit()
        self.reason = ""
        self.on_over: Callable[[], None] | None = None

    @property
    def calls(self) -> int:
        """How many calls users made."""
        return self.inflight.filed - self.counts.own

    def start(self) -> None:
        """Begin to listen."""
        self.transport.start(self)

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
        except BaseException:
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
                f"{size(waiting)} wait for the server to read its stdin (Limits.outbox)",
                method=method,
                server=self.server,
                maybe_done=False,
            )
        id, item = self.session.request(method, params, progress=on_progress is not None)
        call = Call(id, method, item, waiter, watch)
        if timeout is not None:
            now = time.monotonic()
            call.timeout = timeout
            call.deadline = deadline = now + timeout
            if on_progress is not None:
                most = self._timeouts.call_max
                call.hard = None if most is None else now + max(most, timeout)
            if deadline < self._sweep_at:
                self._sweep_later(deadline, now)
        if on_progress is not None:
            call.on_progress = _Teller(on_progress, self.loop, self.label)
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
                return ReplyError(
                    code,
                    message,
                    payload.told(data),
                    method=call.method,
                    server=self.server,
                )
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
        return odd_words(self.noise())

    def noise(self) -> str:
        """Return a sample of what stood on stdout and was no message."""
        return bytes(self._noise).decode("utf-8", "replace").strip()

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

    # -- deadlines -------------------------------------------------------------------------

    def _sweep_later(self, deadline: float, now: float) -> None:
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._sweep_at = max(deadline, now + _SWEEP)
        self._sweeper = self.loop.later(self._sweep_at - now, self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        self._sweep_at = float("inf")
        if self._holds:
            return  # release() sweeps
        now = time.monotonic()
        for call in self.inflight.due(now):
            self._time_out(call)
        following = self.inflight.next_deadline()
        if following is not None:
            self._sweep_later(following, now)

    def _time_out(self, call: Call) -> None:
        hard = call.hard is not None and call.deadline == call.hard
        waited = max(self._timeouts.call_max or 0.0, call.timeout or 0.0) if hard else call.timeout
        problem = timed_out(
            waited or 0.0,
            "(progress or not)" if hard else "",
            self.transport.stderr_tail(),
            self.noise(),
        )
        self.abandon(
            call,
            "timed out",
            CallTimedOut(
                problem, method=call.method, server=self.server, maybe_done=call.item.written
            ),
        )

    # -- what arrives ----------------------------------------------------------------------

    def frame(self, line: bytes) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        try:
            for event in self.session.receive(line):
                if isinstance(event, Answer):
                    if self.inflight.settle(event.id, "answer", event) is None:
                        self._unmatched(event.id, line)
                    if _log.isEnabledFor(logging.DEBUG):
                        _log.debug("%s < %d result %s", self.label, event.id, size(len(line)))
                else:
                    self._other(event, line)
        except Exception:  # the reader's outer edge: it may cost this line, but no other (B16)
            self._faulted()

    def _other(self, event: Event, line: bytes) -> None:
        match event:
            case Refusal(id=id) | Broken(id=id):
                if _log.isEnabledFor(logging.DEBUG):
                    _log.debug("%s < %d error %s", self.label, id, size(len(line)))
                if self.inflight.settle(id, "refuse", event) is None:
                    self._unmatched(id, line)
            case Notice(method=method, params=params):
                if _log.isEnabledFor(logging.DEBUG):
                    _log.debug("%s < %s %s", self.label, printable(method), size(len(line)))
                if method == methods.PROGRESS:
                    self._progress(params)
                elif method == methods.CANCELLED:
                    self._unasked(params)
                else:
                    self._owner.noticed(method, params)
            case Ask():
                self._asked(event)
            case Noise(line=part, hint=hint):
                self._noisy(part, hint)
            case Answer():
                raise AssertionError("answers are settled where they arrive")

    def rest(self, line: bytes) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        # Whole, it counts like any other. Half an answer is none: that the server died of it says
        # more than that its JSON is broken.
        if any(isinstance(event, Broken) for event in self.session.receive(line)):
            self._noisy(line, "the end of it is missing")
        else:
            self.frame(line)

    def oversize(self, spill: Oversize) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        self.counts.oversize += 1
        problem = (
            f"the server sent a message of {size(spill.length)}; "
            f"the limit is {size(self._limits.frame or 0)} (Limits.frame)"
        )
        _log.warning("%s ! %s", self.label, problem)
        id = salvage(spill.head, spill.tail)
        if id is not None and self.inflight.settle(id, "refuse", Broken(id, problem)):
            return
        self._keep_noise(problem.encode())
        start = spill.head.lstrip()[:1]
        if len(self.inflight) == 1 and start in (b"{", b"[") and b'"method"' not in spill.head:
            # A message, and nobody else can be meant.
            for call in self.inflight:
                self.inflight.settle(call.id, "refuse", Broken(call.id, problem))

    def stalled(self, waited: float) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        _log.warning("%s ! has not read its stdin for %s", self.label, seconds(waited))
        for call in self.inflight:
            if not call.item.written and self.transport.withdraw(call.item):
                problem = f"the server has not read its stdin for {seconds(waited)}"
                lost = CallLost(problem, method=call.method, server=self.server, maybe_done=False)
                self.inflight.abandon(call, lost)

    def gone(self, exit: Exit, reason: str) -> None:
        """See :class:`~mcpclient.transports.base.Sink`."""
        if self.over:
            return
        self.over = True
        self.exit = exit
        self.reason = reason
        self.ended.set()
        _log.info("%s x %s%s", self.label, exit, f", {reason}" if reason else "")
        if self._sweeper is not None:
            self._sweeper.cancel()
        self.session.close()
        if self.on_over is not None:
            self.on_over()
        self.inflight.lose(lambda call: self.lost(call.method, maybe_done=call.item.written))
        self.inflight.check()

    def lost(self, method: str, *, maybe_done: bool) -> CallLost:
        """Return the error of a call that the end of this connection cut off."""
        facts: Any = {"method": method, "server": self.server, "maybe_done": maybe_done}
        if self._closing:
            return CallCancelled("the server was stopped", **facts)
        tail = self.transport.stderr_tail()
        return ServerDied(self.exit, tail, reason=self.reason, **facts)

    def hold(self) -> None:
        """Let no call time out: a person is being asked, and the server waits for the answer."""
        if self._holds == 0:
            self._held_since = time.monotonic()
        self._holds += 1

    def release(self) -> None:
        """End a :meth:`hold`: all calls get the time back."""
        self._holds -= 1
        if self._holds or self.over:
            return
        now = time.monotonic()
        for call in self.inflight:
            if call.deadline is None or call.timeout is None:
                continue
            # One that was made meanwhile, or moved on meanwhile, lost less.
            lost = now - max(self._held_since, call.deadline - call.timeout)
            call.deadline += lost
            if call.hard is not None:
                call.hard += lost
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._sweep()

    # -- beside the answers ----------------------------------------------------------------

    def _progress(self, params: Raw) -> None:
        try:
            told = payload.decode(params, _Progress)
        except RemoteProtocolError:
            return
        # By exact type (B143): our tokens are integers, and True is none.
        call = self.inflight.get(told.token) if type(told.token) is int else None
        if call is None or call.on_progress is None:
            return
        if call.timeout is not None:
            deadline = time.monotonic() + call.timeout
            call.deadline = deadline if call.hard is None else min(deadline, call.hard)
        if isinstance(told.progress, int | float):
            total = told.total if isinstance(told.total, int | float) else None
            message = told.message if isinstance(told.message, str) else None
            call.on_progress(told.progress, total, message)

    def _asked(self, ask: Ask) -> None:
        self.counts.asks += 1
        if self.session.state == "probing":
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
        if not self.session.era.server_may_ask:
            # Answering would break the rule of this era, whatever the server did (STD-03).
            self.counts.ignored += 1
            _log.warning(
                "%s ! a request from the server, which this era forbids: %s",
                self.label,
                printable(ask.method, 100),
            )
        elif ask.method == methods.PING:
            self.send(self.session.answer(ask, {}))
        elif not self._owner.asked(self, ask):
            self.send(
                self.session.refuse(
                    ask,
                    methods.METHOD_NOT_FOUND,
                    f"{printable(ask.method, 100)} is not supported by this client",
                )
            )

    def _faulted(self) -> None:
        try:
            _log.exception("%s ! a line could not be handled", self.label)
        except Exception:  # it may have been a handler of the log that raised
            pass

    def _unasked(self, params: Raw) -> None:
        try:
            self._owner.unasked(payload.decode(params, _Cancelled).id)
        except RemoteProtocolError:
            return  # malformed ones are ignored (CAN-04)

    def _unmatched(self, id: int, line: bytes) -> None:
        if not self.session.issued(id):
            self._noisy(line, f"an answer to id {id}, which was never asked")

    def _noisy(self, line: bytes, hint: str) -> None:
        counts = self.counts
        counts.noise += 1
        # The first lines tell most, and a log must not be flooded (B04).
        if counts.noise <= 10 or counts.noise % 1000 == 0:
            _log.warning(
                "%s ! not a message (%d so far%s): %s",
                self.label,
                counts.noise,
                f"; {hint}" if hint else "",
                sample(line),
            )
        self._keep_noise(line, hint)
        if hint == LSP and self.session.state != "open":
            # Nothing readable will ever come: say so now instead of at the time-out (B25).
            for call in self.inflight:
                self.inflight.settle(call.id, "refuse", Broken(call.id, hint))

    def _keep_noise(self, line: bytes, hint: str = "") -> None:
        room = self._limits.noise - len(self._noise)
        if room > 0:
            text = line[:room] + (b" (" + hint.encode() + b")" if hint else b"")
            self._noise += text[:room] + b"\n"


class _Cancelled(Struct, gc=False, rename={"id": "requestId"}):
    id: Any = None


class _Progress(Struct, gc=False, rename={"token": "progressToken"}):
    token: Any = None
    progress: Any = None
    total: Any = None
    message: Any = None


class _Teller:
    """Tells one handler of progress. An async one is told again when it is done with the last."""

    __slots__ = ("_handler", "_label", "_loop", "_untold")

    def __init__(self, handler: Progress, loop: Loop, label: str) -> None:
        self._handler = handler
        self._loop = loop
        self._label = label
        self._untold: deque[tuple[Any, ...]] | None = None

    def __call__(self, *facts: Any) -> None:
        if self._untold is not None:
            self._untold.append(facts)
        elif (answer := self._told(facts)) is not None:
            self._untold = deque(maxlen=_UNTOLD)
            self._loop.job(lambda: self._go_on(answer), f"progress of {self._label}")

    async def _go_on(self, answer: Awaitable[Any] | None) -> None:
        untold = self._untold
        assert untold is not None
        while True:
            try:
                if answer is not None:
                    await answer
            except Exception:  # the user's code; the next progress is told all the same
                self._faulted()
            if not untold:
                break
            answer = self._told(untold.popleft())
        self._untold = None

    def _told(self, facts: tuple[Any, ...]) -> Awaitable[Any] | None:
        try:
            answer: Awaitable[Any] | None = self._handler(*facts)
        except Exception:  # the user's code; the reader must live on
            self._faulted()
            return None
        return answer if hasattr(answer, "__await__") else None

    def _faulted(self) -> None:
        _log.exception("%s ! a progress handler raised", self._label)
