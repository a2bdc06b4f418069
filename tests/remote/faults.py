"""A proxy between client and server that passes bytes on as a test says, or does not.

It knows nothing of HTTP: it cuts, delays, truncates, repeats and resets whatever passes.
"""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import anyio
from anyio.abc import SocketAttribute, SocketListener, SocketStream
from anyio.lowlevel import checkpoint

BROKEN = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


class Over(Exception):
    """A fault ended the connection."""


class Fault:
    """How one connection's bytes are passed on; this one passes them as they come.

    Attributes:
        link: The connection.
    """

    link: Link

    async def up(self, data: bytes) -> None:
        """Pass on what the client sends."""
        await self.link.server.send(data)

    async def down(self, data: bytes) -> None:
        """Pass on what the server sends."""
        await self.link.client.send(data)


@dataclass
class Link:
    """One connection through the proxy.

    Attributes:
        number: Which it is, from 1.
    """

    number: int
    client: SocketStream
    server: SocketStream

    async def cut(self) -> None:
        """End it in good order, from within a fault."""
        await self.client.send_eof()
        raise Over

    def reset(self) -> None:
        """End it without any, from within a fault."""
        self._forget()
        raise Over

    async def drop(self) -> None:
        """End it without any, from outside."""
        self._forget()
        await self.server.aclose()
        await self.client.aclose()

    def _forget(self) -> None:
        if (bare := self.client.extra(SocketAttribute.raw_socket)).fileno() >= 0:
            bare.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@dataclass
class Proxy:
    """The proxy.

    Attributes:
        port: Where it listens, on loopback.
        to: The port of the server.
        fault: Makes what happens to a connection; it may be replaced at any time.
        links: All connections there ever were.
    """

    port: int
    to: int
    fault: Callable[[], Fault]
    links: list[Link] = field(default_factory=list)

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, client: SocketStream) -> None:
        async with client:
            try:
                server = await anyio.connect_tcp("127.0.0.1", self.to)
            except OSError:
                return
            async with server:
                fault = self.fault()
                fault.link = Link(len(self.links) + 1, client, server)
                self.links.append(fault.link)
                async with anyio.create_task_group() as group:
                    group.start_soon(self._pass, client, fault.up, group.cancel_scope)
                    group.start_soon(self._pass, server, fault.down, group.cancel_scope)

    async def _pass(
        self, stream: SocketStream, on: Callable[[bytes], object], scope: anyio.CancelScope
    ) -> None:
        try:
            while True:
                await on(await stream.receive())  # type: ignore[misc] # a fault's method
        except (*BROKEN, Over):
            scope.cancel()


@asynccontextmanager
async def proxy(to: int, fault: Callable[[], Fault] = Fault) -> AsyncIterator[Proxy]:
    """Stand before a server while the block runs."""
    bare = socket.create_server(("127.0.0.1", 0), backlog=200)
    bare.setblocking(False)
    listener = await SocketListener.from_socket(bare)
    async with listener, anyio.create_task_group() as group:
        one = Proxy(bare.getsockname()[1], to, fault)
        group.start_soon(listener.serve, one.serve)
        try:
            yield one
        finally:
            group.cancel_scope.cancel()


# -- harmless ones -------------------------------------------------------------------------


class Trickle(Fault):
    """The first bytes of all that comes one by one, the rest of it soon after."""

    async def down(self, data: bytes) -> None:
        for place in range(min(len(data), 40)):
            await self.link.client.send(data[place : place + 1])
            await checkpoint()
        if data[40:]:
            await self.link.client.send(data[40:])


class Pieces(Fault):
    """Both ways in pieces of any size."""

    def __init__(self) -> None:
        self._chance = random.Random(7)

    async def up(self, data: bytes) -> None:
        await self._in_pieces(self.link.server, data)

    async def down(self, data: bytes) -> None:
        await self._in_pieces(self.link.client, data)

    async def _in_pieces(self, stream: SocketStream, data: bytes) -> None:
        while data:
            length = self._chance.choice((1, 2, 3, 17, 100, 5000))
            await stream.send(data[:length])
            data = data[length:]
            await checkpoint()


class Late(Fault):
    """Both ways a little later, each connection by another delay, so that they overtake."""

    async def up(self, data: bytes) -> None:
        await anyio.sleep(0.002 * (self.link.number % 3))
        await super().up(data)

    async def down(self, data: bytes) -> None:
        await anyio.sleep(0.002 * (self.link.number % 2))
        await super().down(data)


class Cutting(Fault):
    """No stream of events lasts: that of a call breaks as soon as it says where to resume.

    One that resumes breaks after its first event with data; every other one is reset. A few bytes
    of what follows come through, which are part of an event.
    """

    def __init__(self) -> None:
        self._called = False
        self._seen = b""

    async def up(self, data: bytes) -> None:
        if data.startswith((b"POST ", b"GET ")):
            self._called = data.startswith(b"POST ")
            self._seen = b""
        await super().up(data)

    async def down(self, data: bytes) -> None:
        before = len(self._seen)
        self._seen += data
        if b"text/event-stream" not in self._seen:
            await super().down(data)
            return
        place = self._seen.find(b"\nid: " if self._called else b"\ndata: {")
        end = self._seen.find(b"\n\n", place)
        if place < 0 or end < 0:
            await super().down(data)
            return
        await self.link.client.send(data[: max(end + 9 - before, 0)])
        if self.link.number % 2:
            await self.link.cut()
        await anyio.sleep(0.002)
        self.link.reset()


# -- hostile ones --------------------------------------------------------------------------


class After(Fault):
    """So many bytes of what the server sends pass, then the connection ends."""

    def __init__(self, count: int, *, reset: bool = False) -> None:
        self._left = count
        self._reset = reset

    async def down(self, data: bytes) -> None:
        await self.link.client.send(data[: self._left])
        self._left -= len(data)
        if self._left <= 0:
            if self._reset:
                self.link.reset()
            await self.link.cut()


class Stall(Fault):
    """So many bytes of what the server sends pass, then nothing does, and nothing ends."""

    def __init__(self, count: int) -> None:
        self._left = count

    async def down(self, data: bytes) -> None:
        await self.link.client.send(data[: self._left])
        self._left = max(self._left - len(data), 0)
