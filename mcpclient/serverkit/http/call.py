"""One HTTP request and its one response, over ASGI. Has never heard of a session.

Every wait for the client has a bound; a client that is gone raises :class:`Gone`.

https://asgi.readthedocs.io/en/latest/specs/www.html
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

import anyio

from mcpclient.protocol.httprules import JSON

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Iterable, MutableMapping

    from mcpclient.protocol.httprules import Header
    from mcpclient.serverkit.http.options import HttpLimits

    Scope = MutableMapping[str, Any]
    Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Gone(Exception):
    """The client is gone, or takes nothing any more."""


class TooLarge(Exception):
    """The body is longer than it may be."""


class TooSlow(Exception):
    """The body did not come in time."""


class Call:
    """One request and its response.

    Attributes:
        scope: What the host says of it.
        method: Such as ``POST``.
        path: The path below where the application is mounted.
        headers: By name in lower case; values of the same name are joined.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send, limits: HttpLimits) -> None:
        self.scope = scope
        self.method: str = scope["method"]
        self.path = _below(scope.get("path", ""), scope.get("root_path", ""))
        self.headers: dict[str, str] = {}
        for raw, value in scope["headers"]:
            name = raw.decode("latin-1").lower()
            text = value.decode("latin-1").strip(" \t")
            self.headers[name] = f"{self.headers[name]}, {text}" if name in self.headers else text
        self._receive = receive
        self._send = send
        self._limits = limits

    @property
    def remote(self) -> str | None:
        """The client's address, or None."""
        client = self.scope.get("client")
        return str(client[0]) if client else None

    @property
    def on_loopback(self) -> bool:
        """Whether it came to an address that only this machine has."""
        server = self.scope.get("server")
        if not server or server[1] is None:
            return False  # a Unix socket, which no browser finds, or a host that does not say
        return is_loopback(str(server[0]))

    def accepts(self, *types: str) -> bool:
        """Return whether the client takes all of these media types; without the header it does."""
        listed = self.headers.get("accept")
        if listed is None:
            return True
        named = {one for one in map(_acceptable, listed.lower().split(",")) if one}
        return all(
            type in named or f"{type.partition('/')[0]}/*" in named or "*/*" in named
            for type in types
        )

    # -- in --------------------------------------------------------------------------------

    async def body(self, limit: int) -> bytes:
        """Return the body.

        Raises:
            TooLarge: It is longer than the limit. As much again was read and thrown away, so that
                the client gets to read why.
            TooSlow: It did not come in time.
            Gone: The client left.
        """
        length = self.headers.get("content-length", "")
        announced = int(length) if length.isascii() and length.isdigit() else 0
        if announced > limit and "100-continue" in self.headers.get("expect", "").lower():
            raise TooLarge  # it asked first, and sends nothing
        chunks: list[bytes] = []
        size = 0
        with anyio.move_on_after(self._limits.reading):
            while True:
                message = await self._receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                part = message.get("body", b"")
                size += len(part)
                if size <= limit:
                    chunks.append(part)
                else:
                    chunks.clear()
                if not message.get("more_body", False):
                    if size > limit:
                        raise TooLarge
                    return b"".join(chunks)
                if size > 2 * limit:
                    raise TooLarge
        raise TooLarge if size > limit else TooSlow

    async def gone(self) -> None:
        """Return when the client is gone."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def while_here(
        self,
        work: Callable[[], Awaitable[object]],
        *beside: Callable[[], Coroutine[Any, Any, object]],
    ) -> None:
        """Do something that answers, and what goes on beside it; give all of it up when the
        client is gone."""
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                await self.gone()
                group.cancel_scope.cancel()

            group.start_soon(watch)
            for one in beside:
                group.start_soon(one)
            try:
                await work()
            except Gone:
                pass
            group.cancel_scope.cancel()

    # -- out -------------------------------------------------------------------------------

    async def respond(
        self, status: int, body: bytes = b"", headers: Iterable[Header] = (), type: str = JSON
    ) -> None:
        """Send a whole response; without a body it has no type.

        Raises:
            Gone: The client takes it not.
        """
        found = [*headers, (b"content-length", str(len(body)).encode())]
        if body:
            found.append((b"content-type", type.encode()))
        await self._sent(
            {"type": "http.response.start", "status": status, "headers": found},
            {"type": "http.response.body", "body": body},
        )

    async def begin(self, status: int, headers: list[Header]) -> None:
        """Send the beginning of a response."""
        await self._sent({"type": "http.response.start", "status": status, "headers": headers})

    async def write(self, body: bytes, *, more: bool = True) -> None:
        """Send a part of the response's body; not ``more``: the last one."""
        await self._sent({"type": "http.response.body", "body": body, "more_body": more})

    async def _sent(self, *messages: dict[str, Any]) -> None:
        try:
            with anyio.fail_after(self._limits.writing):
                for message in messages:
                    await self._send(message)
        except (TimeoutError, OSError):
            raise Gone from None


def is_loopback(host: str) -> bool:
    """Return whether a name or an address is one that only this machine has."""
    if host.lower() in ("localhost", "localhost."):
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _below(path: str, root: str) -> str:
    # The path holds the prefix of the mount with newer hosts, and not with older ones.
    root = root.rstrip("/")
    if root and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :]
    return path.rstrip("/")


def _acceptable(part: str) -> str:
    name, _, params = part.partition(";")
    quality = params.replace(" ", "").partition("q=")[2].partition(";")[0]
    return "" if quality and not quality.strip("0.") else name.strip()
