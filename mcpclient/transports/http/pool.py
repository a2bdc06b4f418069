"""Connections to origins, shared by the servers behind them. Knows no message and no session.

Certificates are checked by the system's trust store, or by ``SSL_CERT_FILE`` and
``SSL_CERT_DIR``; proxies come from the environment, but what is on this machine is reached without
one. Each origin has connections of its own: a look at one costs a system call, and they are looked
at with each request.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import ssl
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import anyio
import httpcore2
from anyio import to_thread

from mcpclient.ground.text import printable
from mcpclient.transports.http.wire import Backend
from mcpclient.transports.urls import USUAL_PORTS

if TYPE_CHECKING:
    from mcpclient.loops.base import Loop, Stop
    from mcpclient.protocol.httprules import Header
    from mcpclient.transports.urls import HttpUrl

# How long it may take to connect, TLS and proxy included: a host that answers at all does so in
# a second; the kernel would wait for two minutes.
_CONNECT = 10.0
# For how long an unused connection is kept. Common servers close theirs after 5 s, and a request
# that crosses the closing is lost.
_KEPT = 4.0
_IDLE = 8
# After so long without a byte the system asks whether the other end is still there, so that a
# stream whose peer vanished ends.
_KEEPALIVE: list[Any] = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
for _name, _value in (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4)):
    if hasattr(socket, _name):
        _KEEPALIVE.append((socket.IPPROTO_TCP, getattr(socket, _name), _value))


class Unreached(Exception):
    """No byte of the request was sent.

    Attributes:
        final: Whether it will not be different the next time.
    """

    def __init__(self, problem: str, *, final: bool = False) -> None:
        super().__init__(problem)
        self.final = final


class Cut(Exception):
    """The exchange broke off."""


class Answer:
    """The head of an answer, and its body as it comes. It must be closed.

    Attributes:
        status: The HTTP status.
    """

    __slots__ = ("_headers", "_parts", "_response", "status")

    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response
        self._parts: Any = None
        self._headers = response.headers
        self.status = response.status

    def header(self, name: bytes) -> str | None:
        """Return a header's value, or None; of several the first."""
        return next(iter(self.headers(name)), None)

    def headers(self, name: bytes) -> list[str]:
        """Return all values of a header, its name in small letters."""
        return [value.decode("latin-1") for key, value in self._headers if key.lower() == name]

    async def chunk(self) -> bytes:
        """Return the next part of the body, as it comes; nothing at its end.

        Raises:
            Cut: The connection broke before its end.
        """
        if self._parts is None:
            self._parts = self._response.aiter_stream()
        try:
            return bytes(await anext(self._parts, b""))
        except _ERRORS as problem:
            raise _told(problem) from None

    async def close(self) -> None:
        """Let the connection go: for others if the body was read to its end, else for good."""
        with anyio.CancelScope(shield=True):
            try:
                if self._parts is not None:
                    await self._parts.aclose()
                await self._response.aclose()
            except _ERRORS:
                pass  # it is broken, and nobody wants anything of it any more


class Origin:
    """The connections to one origin."""

    def __init__(self, pools: Pools, url: HttpUrl) -> None:
        self.users = 0
        self.key = url.origin
        self._pools = pools
        self._url = url
        self._pool: httpcore2.AsyncConnectionPool | None = None
        self._making = anyio.Lock()
        self._ending = anyio.Lock()

    async def send(
        self,
        method: str,
        url: HttpUrl,
        headers: list[Header],
        body: bytes | None,
        write: float,
    ) -> Answer:
        """Send a request and return the answer as soon as its head is there.

        Args:
            method: ``POST``, ``GET`` or ``DELETE``.
            url: The endpoint; of this origin.
            headers: All but ``Host``, ``Accept-Encoding`` and ``Content-Length``.
            body: The body, or None.
            write: For how many seconds the peer may take no byte.

        Raises:
            Unreached: No connection came about.
            Cut: One did, and broke.
        """
        pool = self._pool
        if pool is None:
            pool = await self._made()
        host = [(b"host", url.authority.encode()), (b"accept-encoding", b"identity"), *headers]
        if body is not None:
            host.append((b"content-length", str(len(body)).encode()))
        request = httpcore2.Request(
            method.encode(),
            httpcore2.URL(
                scheme=url.scheme.encode(),
                host=url.host.encode(),
                # The usual one is left out, also where a proxy is told the whole URL.
                port=None if url.port == USUAL_PORTS[url.scheme] else url.port,
                target=url.target.encode(),
            ),
            headers=host,
            content=body,
            extensions={"timeout": {"connect": _CONNECT, "write": write}},
        )
        try:
            return Answer(await pool.handle_async_request(request))
        except _ERRORS as problem:
            raise _told(problem) from None

    def release(self) -> None:
        """Say that one user less needs it; with the last its connections are closed."""
        self.users -= 1
        if self.users == 0:
            self._pools.drop(self)

    async def close(self) -> None:
        """Close all connections. Whoever closes them a second time waits for the first."""
        async with self._ending:
            if self._pool is not None:
                await self._pool.aclose()

    async def _made(self) -> httpcore2.AsyncConnectionPool:
        async with self._making:
            if self._pool is None:
                trust = await self._pools.trust() if self._url.scheme == "https" else None
                self._pool = _pool(_proxy_for(self._url), trust)
            return self._pool


class Pools:
    """The origins of one manager."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._origins: dict[str, Origin] = {}
        self._ending: set[Origin] = set()
        self._trust: ssl.SSLContext | None = None
        self._job: Stop | None = None
        self._closing = anyio.Event()
        self._closed = anyio.Event()

    def lease(self, url: HttpUrl) -> Origin:
        """Return the connections to a URL's origin; the caller releases them."""
        origin = self._origins.get(url.origin)
        if origin is None:
            origin = self._origins[url.origin] = Origin(self, url)
        origin.users += 1
        if self._job is None:
            self._job = self._loop.job(self._keep, "HTTP connections")
        return origin

    def drop(self, origin: Origin) -> None:
        """Close the connections to an origin soon."""
        if self._origins.get(origin.key) is origin:
            del self._origins[origin.key]
            self._ending.add(origin)
            self._loop.job(lambda: self._end(origin), f"the end of {origin.key}")

    async def close(self) -> None:
        """Close all connections. Cancelling does not shorten it."""
        if self._job is not None:
            self._closing.set()
            with anyio.CancelScope(shield=True):
                await self._closed.wait()

    async def trust(self) -> ssl.SSLContext:
        """Return what certificates are checked by.

        Raises:
            Unreached: The file that the environment names cannot be used.
        """
        if self._trust is None:
            try:
                # Reading the system's store takes some 20 ms.
                self._trust = await to_thread.run_sync(httpcore2.default_ssl_context)
            except (OSError, ssl.SSLError) as problem:
                raise Unreached(
                    f"the certificates that SSL_CERT_FILE or SSL_CERT_DIR names cannot be read: "
                    f"{_said(problem)}",
                    final=True,
                ) from None
        return self._trust

    async def _keep(self) -> None:
        """Wait for the end; if the loop ends first, nobody else closes the connections."""
        try:
            await self._closing.wait()
        finally:
            with anyio.CancelScope(shield=True):
                # Those that nobody uses any more may not be closed yet.
                for origin in [*self._origins.values(), *self._ending]:
                    await origin.close()
            self._closed.set()

    async def _end(self, origin: Origin) -> None:
        await origin.close()
        self._ending.discard(origin)


_PROXIES = ("http", "https", "socks5", "socks5h")


def _pool(
    proxy: httpcore2.Proxy | None, trust: ssl.SSLContext | None
) -> httpcore2.AsyncConnectionPool:
    return httpcore2.AsyncConnectionPool(
        ssl_context=trust,
        proxy=proxy,
        max_connections=None,  # whoever sends keeps count
        max_keepalive_connections=_IDLE,
        keepalive_expiry=_KEPT,
        network_backend=Backend(),
        socket_options=_KEEPALIVE,
    )


def _proxy_for(url: HttpUrl) -> httpcore2.Proxy | None:
    """Return the proxy that the environment names for an origin."""
    if _is_local(url.host) or proxy_bypass(url.host):
        return None
    named = getproxies()
    text = named.get(url.scheme) or named.get("all")
    if not text:
        return None
    if "://" not in text:
        text = f"http://{text}"
    odd = Unreached(
        "the proxy that the environment names cannot be used: write such as "
        "http://name:password@host:3128, what is special in it percent-encoded",
        final=True,
    )
    try:
        parts = urlsplit(text)
        port = "" if parts.port is None else f":{parts.port}"
        host = (parts.hostname or "").encode("ascii").decode()
    except ValueError:  # its words may be half of a password
        raise odd from None
    if not host or parts.scheme not in _PROXIES:
        raise odd
    auth = None
    if parts.username is not None:
        auth = (unquote(parts.username).encode(), unquote(parts.password or "").encode())
    host = f"[{host}]" if ":" in host else host
    if parts.scheme.startswith("socks") and find_spec("socksio") is None:
        raise Unreached("a SOCKS proxy needs one more package: pip install socksio", final=True)
    return httpcore2.Proxy(f"{parts.scheme}://{host}{port}", auth=auth)


def _is_local(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


_BEFORE = (
    httpcore2.ConnectError,
    httpcore2.ConnectTimeout,
    httpcore2.ProxyError,
    httpcore2.UnsupportedProtocol,
)
_ERRORS = (
    *_BEFORE,
    httpcore2.TimeoutException,
    httpcore2.NetworkError,
    httpcore2.ProtocolError,
)


def _told(problem: Exception) -> Unreached | Cut:
    """Say in our words what went wrong with a connection."""
    if isinstance(problem, _BEFORE):
        return _unreached(problem)
    if isinstance(problem, httpcore2.TimeoutException):
        return Cut("the server takes no more of the request")
    return Cut(_said(problem))


def _unreached(problem: Exception) -> Unreached:
    if isinstance(problem, httpcore2.ConnectTimeout):
        return Unreached(f"it did not answer within {_CONNECT:g} s")
    cause = problem.args[0] if problem.args else None
    if isinstance(cause, ssl.SSLCertVerificationError):
        return Unreached(_untrusted(cause.verify_code, cause.verify_message), final=True)
    if isinstance(cause, ssl.SSLError) and cause.reason in _NO_TLS:
        return Unreached("it does not speak TLS; is it an http url?")
    return Unreached(_said(problem))


# What OpenSSL calls the first bytes of an answer that is plain HTTP.
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST")


def _untrusted(code: int, words: str) -> str:
    """Say what is wrong with a certificate, by the numbers of OpenSSL, and what to do."""
    match code:
        case 9:
            return "its certificate is not valid yet; is the clock of this machine right?"
        case 10:
            return "its certificate has expired; whoever runs the server must renew it"
        case 62 | 64:
            return f"its certificate is not for this host ({words}); is the host of the url right?"
        case _:
            return (
                f"its certificate is not trusted ({words}); if it is of a private authority, "
                "name the authority's file in SSL_CERT_FILE"
            )


def _said(problem: BaseException) -> str:
    """Return the plainest words in an exception and what caused it."""
    todo: list[Any] = [problem]
    while todo:
        one = todo.pop()
        if isinstance(one, OSError) and one.strerror:
            # The loops write the address into it, which is no news.
            number = one.errno or 0
            if number in errno.errorcode and not isinstance(one, socket.gaierror | ssl.SSLError):
                return os.strerror(number)
            return printable(one.strerror, 200)
        if isinstance(one, BaseExceptionGroup):
            todo += reversed(one.exceptions)
        elif isinstance(one, BaseException):
            todo += [part for part in (one.__cause__, *one.args[:1]) if part is not None]
    return printable(str(problem), 200) or type(problem).__name__
