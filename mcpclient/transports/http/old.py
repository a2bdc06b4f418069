"""The HTTP transport of 2024-11-05, which servers of that time still speak.

One stream brings all that the server says, first of all where to POST what is said to it. With the
stream the conversation ends.

https://modelcontextprotocol.io/specification/2024-11-05/basic/transports
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import anyio

from mcpclient.ground.errors import CallLost, McpClientError, OpeningFailed
from mcpclient.ground.exits import Exit
from mcpclient.protocol.framing import Oversize
from mcpclient.protocol.httprules import EVENTS, media_type
from mcpclient.protocol.sse import EventReader
from mcpclient.transports.http import streams
from mcpclient.transports.http.courier import NoCredentials, drained
from mcpclient.transports.http.lanes import Lanes
from mcpclient.transports.http.pool import Cut, Unreached
from mcpclient.transports.http.transport import CLOSED, NOTES, POST, refusal

if TYPE_CHECKING:
    from mcpclient.ground.options import Limits, Timeouts
    from mcpclient.loops.base import Loop, Stop
    from mcpclient.protocol.envelope import Outgoing
    from mcpclient.transports.base import Sink
    from mcpclient.transports.http.courier import Courier
    from mcpclient.transports.http.pool import Answer
    from mcpclient.transports.urls import HttpUrl

_log = logging.getLogger("mcpclient")
# How long one message may take to be taken. Its answer comes on the stream.
_TAKEN = 30.0


class OldTransport:
    """The transport to a server that is listened to on one endpoint and told on another."""

    pid = None

    def __init__(
        self, courier: Courier, *, server: str, loop: Loop, timeouts: Timeouts, limits: Limits
    ) -> None:
        self._courier = courier
        self._server = server
        self._loop = loop
        self._timeouts = timeouts
        self._limits = limits
        self._lanes = Lanes(loop, self._carry, limits.connections, server)
        self._notes = Lanes(loop, self._carry, NOTES, server)
        # Nothing can be sent before the server has said where to.
        self._lanes.hold()
        self._notes.hold()
        self._endpoint: HttpUrl | None = None
        self._problem: McpClientError | None = None
        self._sink: Sink | None = None
        self._listener: Stop | None = None
        self._listening = False
        self._quiet = anyio.Event()
        self._exit: Exit | None = None

    @property
    def waiting(self) -> int:
        """See :class:`~mcpclient.transports.base.Transport`."""
        return self._lanes.waiting + self._notes.waiting

    def start(self, sink: Sink) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._sink = sink
        self._listener = self._loop.job(self._listen, f"the stream of {self._server}")

    def send(self, item: Outgoing) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        lanes = self._notes if item.id is None else self._lanes
        lanes.put(item, aside=False)

    send_soon = send

    def withdraw(self, item: Outgoing) -> bool:
        """See :class:`~mcpclient.transports.base.Transport`."""
        if self._lanes.take_back(item):
            return True
        if not item.written:
            self._lanes.cut(item)
        return not item.written

    def stderr_tail(self) -> str:
        """See :class:`~mcpclient.transports.base.Transport`. There is none."""
        return ""

    def destroy(self, reason: str) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._loop.soon(lambda: self._end(CLOSED, reason))

    def kill(self) -> None:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._end(CLOSED)

    async def close(self) -> Exit:
        """See :class:`~mcpclient.transports.base.Transport`."""
        self._lanes.stop()
        self._notes.stop()
        if self._listener is not None:
            self._listener.cancel()
        with anyio.move_on_after(self._timeouts.eof, shield=True):
            await self._lanes.ended()
            await self._notes.ended()
            if self._listening:
                await self._quiet.wait()
        self._end(CLOSED)
        return self._exit or CLOSED

    # -- what is said to the server ----------------------------------------------------------

    async def _carry(self, item: Outgoing) -> None:
        problem: McpClientError | None = None
        try:
            with anyio.move_on_after(_TAKEN) as scope:
                problem = await self._told(item)
            if scope.cancelled_caught:
                problem = CallLost(f"the server did not take it within {_TAKEN:g} s")
        except Unreached as lost:
            item.written = False
            self._end(Exit(words=f"it cannot be reached: {lost}"))
        except Cut as lost:
            problem = CallLost(f"the connection broke before the server took it ({lost})")
        except NoCredentials as lost:
            problem = CallLost(str(lost), maybe_done=False)
        except Exception as fault:  # the task's outer edge: the call must not wait for its time-out
            _log.exception("%s ! an exchange failed", self._server)
            problem = CallLost(f"a fault in mcpclient itself: {fault!r}")
        except BaseException:  # as in HttpTransport
            if item.id is not None and self._lanes.has(item) and self._sink is not None:
                ended = CallLost("the exchange was cancelled, perhaps from within auth")
                self._sink.failed(item, ended)
            raise
        if problem is not None and self._sink is not None:
            if item.id is not None:
                self._sink.failed(item, problem)
            else:
                _log.warning("%s ! %s was not taken: %s", self._server, item.method, problem)

    async def _told(self, item: Outgoing) -> McpClientError | None:
        item.written = True
        answer = await self._courier.send("POST", POST, item.frame, to=self._endpoint)
        body = await drained(answer)
        if 200 <= answer.status < 300:
            return None  # whatever stands in the body: the answer comes on the stream (SSE-02)
        return refusal(answer, self._courier.masked(body), self._courier.url)

    # -- what the server says ----------------------------------------------------------------

    async def _listen(self) -> None:
        self._listening = True
        words = "the server closed its stream"
        try:
            answer = await self._courier.send("GET", [streams.ACCEPT])
            try:
                kind = media_type(answer.header(b"content-type"))
                if answer.status != 200 or kind != EVENTS:
                    body = await drained(answer)
                    self._refuse(refusal(answer, self._courier.masked(body), self._courier.url))
                    words = f"HTTP {answer.status} {kind} came instead of a stream of events"
                else:
                    await self._heard(answer)
            finally:
                await answer.close()
        except Unreached as problem:
            words = f"it cannot be reached: {problem}"
            if problem.final:
                self._refuse(OpeningFailed(words, final=True))
        except Cut as problem:
            words = f"its stream broke: {problem}"
        except NoCredentials as problem:
            words = str(problem)
        except Exception as fault:  # the task's outer edge: nobody would hear the answers any more
            _log.exception("%s ! its stream failed", self._server)
            words = f"a fault in mcpclient itself: {fault!r}"
        finally:
            self._listening = False
            self._quiet.set()
        self._end(Exit(words=words))

    async def _heard(self, answer: Answer) -> None:
        sink = self._sink
        assert sink is not None
        reader = EventReader(self._limits.frame)
        while chunk := await answer.chunk():
            for event in reader.feed(chunk):
                if isinstance(event, Oversize) or event.name != "endpoint":
                    streams.hand_on(event, sink)
                elif self._endpoint is None:
                    self._go(event.data)
                if self._exit is not None:
                    return

    def _go(self, data: bytes) -> None:
        """Learn where to POST, which must be of the same origin: credentials go there."""
        there = self._courier.url.joined(data[:4096].decode("utf-8", "replace"))
        if there is None or there.origin != self._courier.url.origin:
            self._end(Exit(words=f"it wants its messages at another origin, {there or 'nowhere'}"))
            return
        self._endpoint = there
        self._lanes.release()
        self._notes.release()

    def _refuse(self, problem: McpClientError) -> None:
        """Fail what waits for the server to say where it is to be sent."""
        if self._sink is not None:
            for item in self._lanes.queued():
                self._sink.failed(item, problem)

    def _end(self, exit: Exit, reason: str = "") -> None:
        if self._exit is not None:
            return
        self._exit = exit
        self._lanes.stop()
        self._notes.stop()
        if self._listener is not None:
            self._listener.cancel()
        self._courier.release()
        if self._sink is not None:
            self._sink.gone(exit, reason)
