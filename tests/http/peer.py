"""An HTTP server in the test's own loop, on either backend, that does what the test says.

It is written on bare sockets from the rules of HTTP/1.1 alone, so that it can also break them.
"""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
from anyio.abc import SocketListener, SocketStream

STATELESS = "2026-07-28"


@dataclass
class Request:
    """One request as it came.

    Attributes:
        method: The HTTP method.
        target: The path with its query.
        headers: By name in small letters.
        body: The bytes.
        connection: The number of the connection it came on.
    """

    method: str
    target: str
    headers: dict[str, str]
    body: bytes
    connection: int

    @property
    def message(self) -> dict[str, Any]:
        return dict(json.loads(self.body)) if self.body else {}

    @property
    def rpc(self) -> str:
        """The method of the message in it; ``answer`` for an answer; the HTTP method for none."""
        return str(self.message.get("method", "answer")) if self.body else self.method


class Gone(Exception):
    """The exchange is over: the client hung up, or the test did."""


@dataclass
class Exchange:
    """One request and the answer to it, written by the test."""

    request: Request
    stream: SocketStream
    kept: bool = True

    @property
    def message(self) -> dict[str, Any]:
        return self.request.message

    async def raw(self, data: bytes) -> None:
        try:
            await self.stream.send(data)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            raise Gone from None

    async def head(self, status: int, headers: Mapping[str, str]) -> None:
        lines = [f"HTTP/1.1 {status} Whatever", *(f"{k}: {v}" for k, v in headers.items())]
        await self.raw("\r\n".join([*lines, "", ""]).encode())

    async def send(
        self, status: int = 200, body: bytes = b"", kind: str = "", **headers: str
    ) -> None:
        told = {"Content-Length": str(len(body)), **_named(headers)}
        if kind:
            told["Content-Type"] = kind
        await self.head(status, told)
        await self.raw(body)

    async def json(self, value: Any, status: int = 200, **headers: str) -> None:
        await self.send(status, json.dumps(value).encode(), "application/json", **headers)

    async def result(self, result: Mapping[str, Any], **headers: str) -> None:
        await self.json(answer(self.message["id"], result), **headers)

    async def error(self, code: int, text: str = "no", status: int = 200, **more: Any) -> None:
        error = {"code": code, "message": text, **more}
        await self.json({"jsonrpc": "2.0", "id": self.message["id"], "error": error}, status)

    async def events(self, **headers: str) -> None:
        """Begin a stream of events."""
        told = {"Content-Type": "text/event-stream", "Transfer-Encoding": "chunked"}
        await self.head(200, {**told, **_named(headers)})

    async def event(
        self, data: Any = None, *, name: str = "", id: str | None = None, retry: int | None = None
    ) -> None:
        lines = [f"event: {name}"] if name else []
        if id is not None:
            lines.append(f"id: {id}")
        if retry is not None:
            lines.append(f"retry: {retry}")
        text = data if isinstance(data, str) else "" if data is None else json.dumps(data)
        lines += [f"data: {line}" for line in text.split("\n")]
        await self.text("\n".join([*lines, "", ""]))

    async def text(self, text: str) -> None:
        """Send any text on a stream of events."""
        data = text.encode()
        await self.raw(b"%x\r\n%s\r\n" % (len(data), data))

    async def end(self) -> None:
        """End a stream of events."""
        await self.raw(b"0\r\n\r\n")

    def drop(self) -> None:
        """Break the connection off."""
        self.kept = False
        raise Gone

    async def hung_up(self) -> None:
        """Wait until the client closes the connection."""
        self.kept = False
        try:
            while await self.stream.receive():
                pass
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        raise Gone


Handler = Callable[[Exchange], Awaitable[None]]


def answer(id: Any, result: Mapping[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "result": dict(result)}


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


@dataclass
class Peer:
    """A server and what came to it.

    Attributes:
        port: Where it listens, on loopback.
        handler: Answers; it may be replaced at any time.
        requests: What came, in order.
        connections: How many there ever were.
        open: How many there are.
    """

    port: int
    handler: Handler
    requests: list[Request] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    most: int = 0

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    @property
    def rpcs(self) -> list[str]:
        return [one.rpc for one in self.requests]

    def of(self, rpc: str) -> list[Request]:
        return [one for one in self.requests if one.rpc == rpc]

    async def serve(self, stream: SocketStream) -> None:
        self.connections += 1
        number = self.connections
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            async with stream:
                reader = Reader(stream)
                while (request := await reader.request(number)) is not None:
                    self.requests.append(request)
                    exchange = Exchange(request, stream)
                    try:
                        await self.handler(exchange)
                    except Gone:
                        return
                    if not exchange.kept:
                        return
        finally:
            self.open -= 1


class Reader:
    """Reads requests off a connection."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._held = b""

    async def request(self, number: int) -> Request | None:
        while b"\r\n\r\n" not in self._held:
            if not await self._more():
                return None
        head, _, self._held = self._held.partition(b"\r\n\r\n")
        first, *rest = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        pairs = [line.split(":", 1) for line in rest]
        headers = {name.lower(): value.strip() for name, value in pairs}
        length = int(headers.get("content-length", "0"))
        while len(self._held) < length:
            if not await self._more():
                return None
        body, self._held = self._held[:length], self._held[length:]
        return Request(method, target, headers, body, number)

    async def _more(self) -> bool:
        try:
            self._held += await self._stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True


@asynccontextmanager
async def serving(handler: Handler, port: int = 0) -> AsyncIterator[Peer]:
    """Serve while the block runs."""
    bare = socket.create_server(("127.0.0.1", port), backlog=200)
    bare.setblocking(False)
    listener = await SocketListener.from_socket(bare)
    async with listener, anyio.create_task_group() as group:
        peer = Peer(bare.getsockname()[1], handler)
        group.start_soon(listener.serve, peer.serve)
        try:
            yield peer
        finally:
            group.cancel_scope.cancel()


# -- lawful servers --------------------------------------------------------------------------


async def stateless(exchange: Exchange) -> None:
    """Answer as a server of the stateless era with one tool, ``echo``."""
    message = exchange.message
    method = message.get("method")
    if method == "server/discover":
        await exchange.result(
            {
                "resultType": "complete",
                "supportedVersions": [STATELESS],
                "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True}},
            }
        )
    elif method == "tools/list":
        tool = {"name": "echo", "inputSchema": {"type": "object"}}
        await exchange.result({"resultType": "complete", "tools": [tool]})
    elif method == "tools/call":
        text = json.dumps(message["params"].get("arguments"))
        await exchange.result(
            {"resultType": "complete", "content": [{"type": "text", "text": text}]}
        )
    elif method == "subscriptions/listen":
        await exchange.events()
        meta = {"io.modelcontextprotocol/subscriptionId": message["id"]}
        told = {"_meta": meta, "notifications": message["params"]["notifications"]}
        await exchange.event(notice("notifications/subscriptions/acknowledged", told))
        await exchange.hung_up()
    elif "id" in message:
        await exchange.error(-32601, "no such method", 404)
    else:
        await exchange.send(202)


def notice(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


class Handshake:
    """Answers as a server of the handshake era with sessions and one tool, ``echo``.

    Attributes:
        version: What it speaks.
        sessions: The ids that it knows.
        made: How many sessions it ever made; None for a server that names none.
        streams: The exchanges whose stream is open by GET.
        ended: The ids that a client gave back.
    """

    def __init__(self, version: str = "2025-11-25", *, named: bool = True) -> None:
        self.version = version
        self.named = named
        self.sessions: set[str] = set()
        self.made = 0
        self.streams: list[Exchange] = []
        self.ended: list[str] = []
        self.offers_stream = True
        self.call: Handler | None = None

    async def __call__(self, exchange: Exchange) -> None:
        request = exchange.request
        message = exchange.message
        method = message.get("method")
        session = request.headers.get("mcp-session-id")
        if method == "initialize":
            self.made += 1
            known = f"s-{self.made}"
            self.sessions.add(known)
            result = {
                "protocolVersion": self.version,
                "capabilities": {"tools": {}, "logging": {}},
                "serverInfo": {"name": "peer", "version": "1"},
            }
            await exchange.result(result, **({"Mcp_Session_Id": known} if self.named else {}))
        elif self.named and session is None:
            error = {"code": -32000, "message": "Bad Request: no session"}
            await exchange.json({"jsonrpc": "2.0", "id": None, "error": error}, 400)
        elif self.named and session not in self.sessions:
            error = {"code": -32001, "message": "Session not found"}
            await exchange.json({"jsonrpc": "2.0", "id": None, "error": error}, 404)
        elif request.method == "DELETE":
            self.sessions.discard(str(session))
            self.ended.append(str(session))
            await exchange.send(200)
        elif request.method == "GET":
            if not self.offers_stream:
                await exchange.send(405)
                return
            await exchange.events()
            self.streams.append(exchange)
            try:
                await exchange.hung_up()
            finally:
                self.streams.remove(exchange)
        elif "id" not in message or "method" not in message:
            await exchange.send(202)
        elif method == "tools/call" and self.call is not None:
            await self.call(exchange)
        elif method == "tools/call":
            text = json.dumps(message["params"].get("arguments"))
            await exchange.result({"content": [{"type": "text", "text": text}]})
        elif method == "tools/list":
            tool = {"name": "echo", "inputSchema": {"type": "object"}}
            await exchange.result({"tools": [tool]})
        elif method == "ping":
            await exchange.result({})
        else:
            await exchange.error(-32601)
