"""A server behind an HTTP endpoint: each message a POST, its answer JSON or a stream of events.

In the stateless era an exchange stands for itself: closing it cancels the call, and if it breaks
the call is lost. In the handshake era they belong to a session that the server names; a stream
that breaks may be resumed, and what nobody asked for comes on a stream of its own. Which of both
it is each message says by its version.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import anyio

from mcpclient.ground.errors import (
    AccessRefused,
    CallLost,
    HttpError,
    McpClientError,
    OpeningFailed,
    ProtocolError,
    RemoteProtocolError,
)
from mcpclient.ground.exits import Exit
from mcpclient.ground.text import sample, size
from mcpclient.protocol import httprules, methods
from mcpclient.protocol.framing import Oversize
from mcpclient.protocol.httprules import EVENTS, JSON, media_type
from mcpclient.protocol.sse import EventReader
from mcpclient.transports.http import streams
from mcpclient.transports.http.courier import NoCredentials, drained
from mcpclient.transports.http.lanes import Lanes
from mcpclient.transports.http.pool import Cut, Unreached

if TYPE_CHECKING:
    from mcpclient.ground.options import Limits, Timeouts
    from mcpclient.loops.base import Loop, Stop
    from mcpclient.protocol.envelope import Outgoing
    from mcpclient.protocol.httprules import Header
    from mcpclient.protocol.mirror import Mirror
    from mcpclient.transports.base import Sink
    from mcpclient.transports.http.courier import Courier
    from mcpclient.transports.http.pool import Answer
    from mcpclient.transports.urls import HttpUrl

_log = logging.getLogger("mcpclient")
POST: list[Header] = [
    (b"content-type", JSON.encode()),
    (b"accept", f"{JSON}, {EVENTS}".encode()),
]
# How many notifications and answers of ours are on the wire at the same time.
NOTES = 16
# How long one of them may take to be taken.
_NOTICE = 30.0
# How long the first calls wait for the stream that the server may need to ask something (B247). One
# that sends no head before the first event must not hold them up for long.
_GATE = 1.0
# How long a call that was cancelled may still answer, in the handshake era, before its connection
# is closed.
_LINGER = 5.0
# How long the calls on the wire have to tell how they ended, once it is known that the server, or
# the session, is gone.
_PARTING = 0.5
# A stream that breaks is asked for again so often, in a row, without a single event.
_TRIES = 5
CLOSED = Exit(words="the connection was closed from this side")
EXPIRED = Exit(words="the server does not know the session any more", expired=True)


class HttpTransport:
    """The transport to one endpoint."""

    pid = None

    def __init__(
        self,
        courier: Courier,
        *,
        server: str,
        mirror: Mirror,
        loop: Loop,
        timeouts: Timeouts,
        limits: Limits,
    ) -> None:
        self._courier = courier
        self._server = server
        self._mirror = mirror
        self._loop = loop
        self._timeouts = timeouts
        self._limits = limits
        self._lanes = Lanes(loop, self._carry, limits.connections, server)
        self._notes = Lanes(loop, self._carry, NOTES, server)
        self._sink: Sink | None = None
        self._session: str | None = None
        self._version = ""
        self._listener: Stop | None = None
        self._timers: dict[str, Stop] = {}
        self._closing = False
        self._parting: Exit | None = None
        self._exit: Exit | None = None

    @property
    def waiting(self) -> int:
        """See :class:`~mcpclient.transports.base.Transport`."""
        return self._lanes.waiting + self._notes.waiting

    def start(self, sink: Sink) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._sink = sink

    def send(self, item: Outgoing) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        if item.id is None:
            if item.method == methods.INITIALIZED:
                # The handshake is complete only when the server has it; then calls may follow.
                self._lanes.hold()
            self._notes.put(item, aside=False)
        else:
            self._lanes.put(item, aside=item.method == methods.LISTEN)

    send_soon = send

    def withdraw(self, item: Outgoing) -> bool:
        """See :class:`~mcpclient.transports.base.Transport`.

        In the stateless era a request is taken back at any time: closing its stream cancels it.
        """
        if self._lanes.take_back(item) or not self._lanes.has(item):
            return True
        if httprules.stateless(item.version) or not item.written:
            self._lanes.cut(item)
            return True
        self._lanes.cut(item, _LINGER)
        return False

    def stderr_tail(self) -> str:
        """See :class:`~mcpclient.transports.base.Transport`. There is none."""
        return ""

    def destroy(self, reason: str) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        # Not on this very stack: whoever gives the server up may be in the middle of its calls.
        self._loop.soon(lambda: self._end(CLOSED, reason))

    def kill(self) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._end(CLOSED)

    async def close(self) -> Exit:
        """See :class:`~mcpclient.transports.base.Transport`.

        The server is told that the session ended, which may take ``Timeouts.eof``.
        """
        self._closing = True
        self._lanes.stop()
        self._notes.stop()
        if self._listener is not None:
            self._listener.cancel()
        session, self._session = self._session, None
        with anyio.move_on_after(self._timeouts.eof, shield=True):
            await self._lanes.ended()
            await self._notes.ended()
            if session is not None and self._exit is None:
                await self._sign_off(session)
        self._end(CLOSED)
        return self._exit or CLOSED

    async def _sign_off(self, session: str) -> None:
        headers = httprules.session_headers(self._version, session)
        try:
            answer = await self._courier.send("DELETE", headers)
            await drained(answer)
        except (Unreached, Cut, NoCredentials) as problem:
            _log.debug("%s = the end of the session was not told: %s", self._server, problem)
            return
        # Most that do not offer it say 405 (B242); whatever it says, we are done.
        _log.debug("%s = the end of the session was told: HTTP %d", self._server, answer.status)

    # -- exchanges -------------------------------------------------------------------------

    async def _carry(self, item: Outgoing) -> None:
        """Exchange one message, and see to it that a call has its outcome afterwards."""
        problem: McpClientError | None = None
        try:
            if item.id is None:
                await self._tell(item)
            else:
                problem = await self._ask(item)
        except Unreached as lost:
            item.written = False
            if lost.final:
                self._fail(item, OpeningFailed(str(lost), final=True))
            self.unreached(lost)
        except Cut as lost:
            problem = CallLost(f"the connection broke before the answer came ({lost})")
        except NoCredentials as lost:
            problem = CallLost(str(lost), maybe_done=False)
        except ProtocolError as wrong:
            problem = wrong
        except Exception as fault:  # the task's outer edge: the call must not wait for its time-out
            _log.exception("%s ! an exchange failed", self._server)
            problem = CallLost(f"a fault in mcpclient itself: {fault!r}")
        except BaseException:  # a cancellation
            # Whoever cuts an exchange takes it off the lanes first; so a task that `auth` waited
            # for was cancelled, or the loop ends.
            if item.id is not None and self._lanes.has(item):
                self._fail(item, CallLost("the exchange was cancelled, perhaps from within auth"))
            raise
        if problem is not None:
            self._fail(item, problem)

    def _fail(self, item: Outgoing, problem: McpClientError) -> None:
        if self._sink is not None and self._exit is None:
            if item.id is not None:
                self._sink.failed(item, problem)
            else:
                what = item.method or "an answer"
                _log.warning("%s ! %s was not taken: %s", self._server, what, problem)

    async def _tell(self, item: Outgoing) -> None:
        """Send what gets no answer. Whatever the server says to it, the session goes on (B245)."""
        try:
            with anyio.move_on_after(_NOTICE) as scope:
                answer = await self._post(item)
                body = await drained(answer)
                if not 200 <= answer.status < 300:
                    self._fail(item, self._refusal(answer, body))
            if scope.cancelled_caught:
                self._fail(item, CallLost(f"no answer to it within {_NOTICE:g} s"))
        finally:
            if item.method == methods.INITIALIZED:
                self._listen(item.version)

    async def _ask(self, item: Outgoing) -> McpClientError | None:
        """Send a request and hand on what comes; return why it got no answer, if so."""
        session = self._session
        answer = await self._post(item)
        try:
            status = answer.status
            if 200 <= status < 300:
                if item.method == methods.INITIALIZE:
                    self._session = httprules.session_id(answer.header(httprules.SESSION))
                return await self._answered(item, answer)
            body = await drained(answer)
            if status == 404 and session is not None and not httprules.stateless(item.version):
                item.written = False  # whoever does not know the session has not run it
                self.expire()
                return None
            if self._told(item, answer, body):
                return None
            return self._refusal(answer, body)
        finally:
            await answer.close()

    async def _post(self, item: Outgoing) -> Answer:
        headers = POST + httprules.message_headers(item, self._session)
        if item.method == methods.TOOLS_CALL and httprules.stateless(item.version):
            headers += self._mirror.headers(item.params)
        # From here on nobody can be sure; it is set back if no connection comes about.
        item.written = True
        return await self._courier.send("POST", headers, item.frame)

    def _refusal(self, answer: Answer, body: bytes) -> McpClientError:
        shown = self._courier.masked(body, self._session)
        return refusal(answer, shown, self._courier.url)

    def _told(self, item: Outgoing, answer: Answer, body: bytes) -> bool:
        """Return whether a body answers the request, whatever the status (HTTP-18)."""
        if answer.status in (401, 403) or self._sink is None:
            return False
        kind = media_type(answer.header(b"content-type"))
        return (kind.endswith("json") or not kind) and self._sink.reply(item, body)

    async def _answered(self, item: Outgoing, answer: Answer) -> McpClientError | None:
        kind = media_type(answer.header(b"content-type"))
        coding = (answer.header(b"content-encoding") or "identity").strip().lower()
        if coding != "identity":
            shown = sample(coding.encode(), 50)
            return RemoteProtocolError(f"the answer is compressed ({shown}): nobody asked for that")
        if kind == EVENTS:
            return await self._streamed(item, answer)
        body = await self._body(item, answer)
        if item.settled or self._told(item, answer, body):
            return None
        body = self._courier.masked(body, self._session)
        if not body.strip():
            return RemoteProtocolError(f"HTTP {answer.status} came without an answer in it")
        if kind.endswith("json"):
            return RemoteProtocolError(f"what came back is no answer to this: {sample(body)}")
        return RemoteProtocolError(
            f"the answer is of the type {sample(kind.encode())}, neither {JSON} nor {EVENTS}: "
            f"{sample(body)}"
        )

    async def _body(self, item: Outgoing, answer: Answer) -> bytes:
        """Return a whole body; one over the limit ends the call, and is not read on."""
        parts: list[bytes] = []
        held = 0
        limit = self._limits.frame
        while chunk := await answer.chunk():
            parts.append(chunk)
            held += len(chunk)
            if limit is not None and held > limit:
                whole = b"".join(parts)
                assert self._sink is not None
                self._sink.oversize(Oversize(held, whole[:512], whole[-512:]))
                raise RemoteProtocolError(f"the answer is longer than {size(limit)} (Limits.frame)")
        return parts[0] if len(parts) == 1 else b"".join(parts)

    async def _streamed(self, item: Outgoing, answer: Answer) -> McpClientError | None:
        sink = self._sink
        assert sink is not None
        reader = EventReader(self._limits.frame)
        broken = "the stream of the answer ended before the answer"
        try:
            await streams.read(answer, reader, sink, item)
        except Cut as problem:
            broken = f"the stream of the answer broke ({problem})"
        if not item.settled and not httprules.stateless(item.version):
            broken = await self._resumed(item, reader, broken)
        return None if item.settled else CallLost(broken)

    async def _resumed(self, item: Outgoing, reader: EventReader, broken: str) -> str:
        """Ask for the rest of a stream until the answer came; return why it did not, else."""
        sink = self._sink
        assert sink is not None
        failures = 0
        while not item.settled and reader.last_id is not None:
            if failures >= _TRIES:
                return f"{broken}, and cannot be resumed"
            usual = min(streams.FIRST * 2**failures, streams.CAP)
            await anyio.sleep(streams.pause(reader, usual))
            count = reader.count
            headers = [streams.ACCEPT, *self.session_headers(), *streams.resuming(reader)]
            failures += 1
            try:
                answer = await self._courier.send("GET", headers)
            except (Unreached, Cut):
                continue
            except NoCredentials as problem:  # the call itself was sent: it may have been done
                return f"{broken}, and cannot be resumed ({problem})"
            try:
                kind = media_type(answer.header(b"content-type"))
                if answer.status == 200 and kind == EVENTS:
                    reader = EventReader(self._limits.frame, reader.last_id, reader.retry)
                    reader.count = count
                    await streams.read(answer, reader, sink, item)
                    failures = 0
                elif answer.status < 500 and answer.status not in (409, 425, 429):
                    return f"{broken}, and cannot be resumed (HTTP {answer.status})"
            except Cut:
                if reader.count > count:
                    failures = 0
            finally:
                await answer.close()
        return broken

    # -- the session -----------------------------------------------------------------------

    def session_headers(self) -> list[Header]:
        """See :class:`~mcpclient.transports.http.streams.Home`."""
        return httprules.session_headers(self._version, self._session)

    def _listen(self, version: str) -> None:
        """Open the stream of what nobody asks for, and let calls go once it is there or is not."""
        self._version = version
        over = self._exit is not None or self._parting is not None or self._closing
        if over or self._sink is None:
            return
        listener = streams.Listener(
            self._courier, self._sink, self, self._limits.frame, self._open_gate
        )
        self._listener = self._loop.job(listener.run, f"the stream of {self._server}")
        self._timers["gate"] = self._loop.later(_GATE, self._open_gate)

    def _open_gate(self) -> None:
        timer = self._timers.pop("gate", None)
        if timer is not None:
            timer.cancel()
            if self._parting is None:
                self._lanes.release()

    # -- the end ---------------------------------------------------------------------------

    def expire(self) -> None:
        """See :class:`~mcpclient.transports.http.streams.Home`."""
        self._part(EXPIRED)

    def unreached(self, problem: Unreached) -> None:
        """See :class:`~mcpclient.transports.http.streams.Home`."""
        self._part(Exit(words=f"it cannot be reached: {problem}"))

    def _part(self, exit: Exit) -> None:
        """End it as soon as those on the wire, who may learn the same, have told how they ended."""
        if self._parting is not None or self._exit is not None:
            return
        self._parting = exit
        self._lanes.hold()
        self._lanes.quiet = lambda: self._end(exit)
        patience = _PARTING if self._lanes.running else 0.0
        self._timers["parting"] = self._loop.later(patience, lambda: self._end(exit))

    def _end(self, exit: Exit, reason: str = "") -> None:
        if self._exit is not None:
            return
        self._exit = exit
        self._lanes.stop()
        self._notes.stop()
        for stop in (*self._timers.values(), self._listener):
            if stop is not None:
                stop.cancel()
        self._timers.clear()
        self._courier.release()
        if self._sink is not None:
            self._sink.gone(exit, reason)


def refusal(answer: Answer, body: bytes, url: HttpUrl) -> McpClientError:
    """Return the error that an HTTP status means.

    Args:
        answer: The answer's head.
        body: The beginning of its body.
        url: The endpoint that was asked.
    """
    text = body[:4096].decode("utf-8", "replace")
    status = answer.status
    if status in (401, 403):
        told = httprules.challenges(answer.headers(b"www-authenticate"))
        return AccessRefused(status, told, body=text)
    problem = httprules.meaning(status)
    if 300 <= status < 400:
        there = url.joined(answer.header(b"location") or "")
        problem += f", {there or 'nowhere'}; put the right url into the configuration"
    return HttpError(
        status,
        problem,
        body=text,
        retry_after=httprules.retry_after(answer.header(b"retry-after"), time.time()),
        maybe_done=not httprules.is_undone(status),
    )
