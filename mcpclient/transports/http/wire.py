"""Sockets for the HTTP library, on either loop: what is written in parts goes out as one.

The library writes head and body apart. Two packets cost the sender a system call more and the
reader one more look; in one packet, a call takes about a tenth less time.
"""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING, Any

import anyio
import httpcore2

if TYPE_CHECKING:
    from collections.abc import Iterable

# Parts longer than this in all are not held back: copying them costs more than it saves.
_TOGETHER = 65536
# How long a proxy may take to answer what it is told before the request: the library sets no bound.
_PROXY = 10.0
# How that begins: a CONNECT, and the three messages of SOCKS5. No request of ours begins so.
_TO_PROXY = (b"CONNECT ", b"\x05", b"\x01")


class Backend(httpcore2.AnyIOBackend):
    """Connects as the library's own does."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect, and return a stream that joins what is written."""
        stream = await super().connect_tcp(host, port, timeout, local_address, socket_options)
        return _Joining(stream)


class _Joining(httpcore2.AsyncNetworkStream):
    def __init__(self, stream: httpcore2.AsyncNetworkStream) -> None:
        self._stream = stream
        self._held = b""
        self._patience: float | None = None
        self._to_proxy = False

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._held += buffer
        self._patience = timeout
        if len(self._held) > _TOGETHER:
            await self._flush()

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if self._held:
            try:
                await self._flush()
            except httpcore2.WriteError:
                pass  # the server may have answered before it read all, and hung up
        try:
            return await self._stream.read(max_bytes, _PROXY if self._to_proxy else timeout)
        except httpcore2.ReadTimeout:
            raise httpcore2.ConnectTimeout from None  # nothing else sets a bound
        except ssl.SSLError as problem:  # a server may refuse our certificate as late as here
            raise httpcore2.ReadError(problem) from problem

    async def _flush(self) -> None:
        held, self._held = self._held, b""
        self._to_proxy = held.startswith(_TO_PROXY)
        try:
            await self._stream.write(held, self._patience)
        except ssl.SSLError as problem:
            raise httpcore2.WriteError(problem) from problem

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            return _Joining(await self._stream.start_tls(ssl_context, server_hostname, timeout))
        except BaseException:  # a cancellation
            # The library closes it only if it was no cancellation.
            with anyio.CancelScope(shield=True):
                await self._stream.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
