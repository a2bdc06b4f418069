"""The peer of the behaviour suite behind HTTP, in the test's own loop.

In the stateless era each request is answered by itself: what belongs to it comes on its stream, and
closing that cancels it. In the handshake era each opening is a session of its own; its streams have
ids, so that one that broke can be resumed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio

from tests.behaviour.server import STATELESS
from tests.behaviour.server import Server as Peer
from tests.http.peer import Exchange, Gone

PREFIX = "io.modelcontextprotocol/"


class Stream:
    """What is sent in answer to one request, or by GET; kept, for whoever resumes it.

    Attributes:
        key: Its name in the ids of its events.
        asked: The id of the request, or None.
        over: Whether the answer is in it.
    """

    def __init__(self, key: int, asked: Any = None) -> None:
        self.key = key
        self.asked = asked
        self.sent: list[Any] = []
        self.over = False
        self._more = anyio.Event()

    def put(self, message: Any) -> None:
        self.sent.append(message)
        if self.asked is not None and "method" not in message:
            self.over = message.get("id") == self.asked
        self._more.set()
        self._more = anyio.Event()

    def end(self) -> None:
        self.over = True
        self._more.set()

    async def more(self) -> None:
        await self._more.wait()


class Session:
    """One conversation with one peer."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.streams: list[Stream] = []
        self.scopes: set[anyio.CancelScope] = set()
        self.open = self.stream()  # of what nobody asked for

    def stream(self, asked: Any = None) -> Stream:
        self.streams.append(Stream(len(self.streams), asked))
        return self.streams[-1]

    def take(self, message: Any, stream: Stream | None) -> None:
        """Let the peer have a message, and put what it sends where it belongs."""
        for one in self.peer.handle(message):
            self.place(one, stream).put(one)

    def knows(self, message: Any) -> bool:
        """Return whether what a message releases has come: it may be on another connection."""
        called = message.get("params") or {}
        if called.get("name") != "release":
            return True
        params = [one.get("params") or {} for one in self.peer.journal]
        known = {(one.get("arguments") or {}).get("key") for one in params}
        known |= {"held" for one in params if one.get("uri") == "test://held"}
        return known.issuperset(called["arguments"]["keys"])

    def place(self, message: Any, stream: Stream | None) -> Stream:
        asking = [one for one in self.streams if one.asked is not None and not one.over]
        keys = self._keys(message)
        for one in asking:
            if any(type(key) is type(one.asked) and key == one.asked for key in keys):
                return one
        return stream if stream is not None and not stream.over else self.open

    @staticmethod
    def _keys(message: Any) -> list[Any]:
        """Return the ids of the requests that a message may belong to."""
        if "method" not in message:
            return [message.get("id")]
        params = message.get("params") or {}
        named = [(params.get("_meta") or {}).get(f"{PREFIX}subscriptionId")]
        if message["method"] == "notifications/progress":
            named.append(params.get("progressToken"))
        if message["method"] == "notifications/cancelled":
            named.append(params.get("requestId"))
        return [key for key in named if key is not None]


class Site:
    """A handler for :func:`tests.http.peer.serving`."""

    def __init__(self, version: str, peer: Callable[[str], Peer], *, streams: bool) -> None:
        """Prepare.

        Args:
            version: What the peer speaks.
            peer: Makes one.
            streams: Whether all answers come as streams, also those that are one message.
        """
        self._version = version
        self._peer = peer
        self._streams = streams
        self._sessions: dict[str, Session] = {}
        self._made = 0

    async def __call__(self, exchange: Exchange) -> None:
        stateless = self._version == STATELESS
        message = exchange.message
        if stateless:
            session = self._sessions.get("") or self._begin("")
        elif message.get("method") == "initialize":
            self._made += 1
            session = self._begin(f"session-{self._made}")
        else:
            known = self._sessions.get(exchange.request.headers.get("mcp-session-id", ""))
            if known is None:
                gone = {"code": -32001, "message": "Session not found"}
                status = 404 if "mcp-session-id" in exchange.request.headers else 400
                await exchange.json({"jsonrpc": "2.0", "id": None, "error": gone}, status)
                return
            session = known
        with anyio.CancelScope() as scope:
            session.scopes.add(scope)
            try:
                await self._handle(exchange, session, stateless)
            except SystemExit:
                # What a process does to its pipes.
                self._sessions = {k: v for k, v in self._sessions.items() if v is not session}
                for one in session.scopes:
                    one.cancel()
            finally:
                session.scopes.discard(scope)
        if scope.cancelled_caught:
            exchange.drop()

    def _begin(self, key: str) -> Session:
        session = self._sessions[key] = Session(self._peer(self._version))
        return session

    async def _handle(self, exchange: Exchange, session: Session, stateless: bool) -> None:
        method, message = exchange.request.method, exchange.message
        if method == "DELETE":
            self._sessions.pop(exchange.request.headers["mcp-session-id"])
            await exchange.send(200)
        elif method == "GET":
            await self._resume(exchange, session)
        elif "id" not in message or "method" not in message:
            session.take(message, None)
            await exchange.send(202)
        else:
            stream = session.stream(message["id"])
            while not session.knows(message):
                await anyio.sleep(0.002)
            session.take(message, stream)
            if stream.over and len(stream.sent) == 1 and not self._streams:
                await exchange.json(stream.sent[0], **self._named(message, session))
                return
            try:
                await self._follow(exchange, session, stream, stateless)
            except Gone:
                if stateless and not stream.over:
                    stream.end()
                    told = {"requestId": message["id"]}
                    session.peer.handle({"method": "notifications/cancelled", "params": told})
                raise

    def _named(self, message: Any, session: Session) -> dict[str, str]:
        if message.get("method") != "initialize":
            return {}
        return {"Mcp_Session_Id": next(k for k, v in self._sessions.items() if v is session)}

    async def _resume(self, exchange: Exchange, session: Session) -> None:
        last = exchange.request.headers.get("last-event-id")
        stream, place = session.open, len(session.open.sent)
        if last is not None:
            key, _, number = last.partition("-")
            stream, place = session.streams[int(key)], int(number)
        await self._follow(exchange, session, stream, False, place)

    async def _follow(
        self, exchange: Exchange, session: Session, stream: Stream, stateless: bool, place: int = 0
    ) -> None:
        """Send what is on a stream, from a place on, until its end or the client's."""
        named = self._named(exchange.message if exchange.request.body else {}, session)
        # It cannot be both read from and kept.
        await exchange.events(Connection="close", **named)
        exchange.kept = False
        done = False
        async with anyio.create_task_group() as group:
            group.start_soon(self._until_gone, exchange, group.cancel_scope)
            try:
                if not stateless:
                    await exchange.event(id=f"{stream.key}-{place}", retry=10)
                while not (stream.over and place >= len(stream.sent)):
                    if place < len(stream.sent):
                        place += 1
                        id = None if stateless else f"{stream.key}-{place}"
                        await exchange.event(json.dumps(stream.sent[place - 1]), id=id)
                    else:
                        await stream.more()
                await exchange.end()
                done = True
            except Gone:
                pass  # it would leave the group in a group
            group.cancel_scope.cancel()
        if not done:
            raise Gone

    async def _until_gone(self, exchange: Exchange, scope: anyio.CancelScope) -> None:
        try:
            await exchange.hung_up()
        except Gone:
            scope.cancel()
