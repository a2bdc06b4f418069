"""A server as an ASGI application: one endpoint, both eras. Runs under any host, or mounted in one.

Who may come in is asked first, then of which era a message is; the rest is in the files beside.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import anyio.lowlevel
from msgspec import Raw

from mcpclient.ground.errors import ConfigError
from mcpclient.protocol import methods, versions
from mcpclient.protocol.httprules import EVENTS, JSON, media_type
from mcpclient.serverkit import incoming
from mcpclient.serverkit.errors import INSUFFICIENT_SCOPE, INVALID_REQUEST, PARSE_ERROR
from mcpclient.serverkit.http import answers, gateway
from mcpclient.serverkit.http.access import Access, Refused, from_scope
from mcpclient.serverkit.http.call import Call, Gone, TooLarge, TooSlow
from mcpclient.serverkit.http.doors import Doors
from mcpclient.serverkit.http.options import MIB, Bearer, HttpLimits, Identity
from mcpclient.serverkit.http.sessions import SESSION, Refusal, Sessions
from mcpclient.serverkit.http.single import Single
from mcpclient.serverkit.incoming import Fault, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcpclient.protocol.httprules import Header
    from mcpclient.serverkit.exchange import Peer
    from mcpclient.serverkit.http.call import Receive, Scope, Send
    from mcpclient.serverkit.incoming import Item, Reply
    from mcpclient.serverkit.server import Server
    from mcpclient.serverkit.session import Session

_PROFILES = ("spec", "gateway")
_CLOSE: list[Header] = [(b"connection", b"close")]
_ALLOWED: list[Header] = [(b"allow", b"POST, GET, DELETE")]
_ONLY_POST: list[Header] = [(b"allow", b"POST")]


def asgi(
    server: Server,
    *,
    path: str = "/mcp",
    answers: str = "auto",
    profile: str = "spec",
    auth: Bearer | None = None,
    identity: Callable[[Mapping[str, Any]], Identity | None] = from_scope,
    allowed_origins: Iterable[str] | None = None,
    allowed_hosts: Iterable[str] | None = None,
    max_body: int | None = None,
    limits: HttpLimits = HttpLimits(),  # noqa: B008 - frozen
) -> AsgiApp:
    """Return a server as an ASGI application, for a host to run or to mount.

    Args:
        server: The server.
        path: Where the endpoint is, below the mount.
        answers: ``auto``: JSON if an answer comes soon and alone, else events; ``json``: never
            events, so progress and questions of the handshake era go by the GET stream;
            ``sse``: always events.
        profile: ``spec``, or ``gateway``: POST and JSON alone, no sessions.
        auth: That only who has a token may come in; None: whoever the host lets in.
        identity: Returns who the host found somebody to be, of the ASGI scope. By default an
            Identity under ``mcpclient.identity``, else what Starlette left there.
        allowed_origins: The origins that browsers may come from; ``*`` for any; None: this machine.
        allowed_hosts: The names that clients may use for the server; ``*`` for any; None: on a
            loopback address those of this machine, elsewhere any.
        max_body: The longest body, in bytes; by default ``limits.body``, 1 MiB for a gateway.
        limits: The other limits.

    Raises:
        ConfigError: Something of this cannot be meant.
    """
    return AsgiApp(
        server,
        path=path,
        mode=answers,
        profile=profile,
        access=Access(auth, identity, path.rstrip("/")),
        doors=Doors(allowed_origins, allowed_hosts),
        max_body=max_body if max_body is not None else MIB if profile == "gateway" else limits.body,
        limits=limits,
    )


class AsgiApp:
    """The application that :func:`asgi` returns.

    Attributes:
        server: The server.
        path: Where the endpoint is.
    """

    def __init__(
        self,
        server: Server,
        *,
        path: str,
        mode: str,
        profile: str,
        access: Access,
        doors: Doors,
        max_body: int,
        limits: HttpLimits,
    ) -> None:
        for key, value, known in (
            ("answers", mode, answers.MODES),
            ("profile", profile, _PROFILES),
        ):
            if value not in known:
                raise ConfigError(f"must be one of {', '.join(known)}, not {value!r}", key=key)
        if not path.startswith("/"):
            raise ConfigError(f"must begin with a slash, unlike {path!r}", key="path")
        self.server = server
        self.path = path.rstrip("/")
        self._profile = profile
        self._access = access
        self._doors = doors
        self._max_body = max_body
        self._limits = limits
        self._single = Single(limits, mode)
        self._needed = (JSON,) if mode == "json" else (JSON, EVENTS)
        self._sessions = Sessions(server, limits, mode)

    @property
    def guarded(self) -> bool:
        """Whether one needs a token to come in."""
        return self._access.checks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request, or the life of the host."""
        match scope["type"]:
            case "http":
                await self._http(Call(scope, receive, send, self._limits))
            case "lifespan":
                await self._lifespan(receive, send)
            case "websocket":
                await receive()
                await send({"type": "websocket.close"})

    async def close(self) -> None:
        """End all sessions, subscriptions and streams; those that listen get their result.

        A host that runs the application calls it by its lifespan. Mounted applications have none:
        then whoever mounts it does.
        """
        self.server.close()
        await anyio.lowlevel.checkpoint()  # who listens gets an answer
        await self._sessions.close()

    def __repr__(self) -> str:
        return f"<AsgiApp {self.server.name!r} at {self.path or '/'}>"

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    # -- one request -----------------------------------------------------------------------

    async def _http(self, call: Call) -> None:
        try:
            if (refusal := self._doors.refusal(call)) is not None:
                await self._refuse(call, 403, f"Forbidden: {refusal}")
            elif self._access.describes(call.path):
                await self._describe(call)
            elif call.path != self.path:
                await self._refuse(call, 404, f"Not found: the endpoint is {self.path or '/'}")
            else:
                await self._enter(call)
        except Gone:
            pass

    async def _describe(self, call: Call) -> None:
        if call.method == "GET":
            await call.respond(200, self._access.document(call))
        else:
            await self._refuse(call, 405, "Method not allowed", [(b"allow", b"GET")])

    async def _enter(self, call: Call) -> None:
        try:
            peer = await self._access.peer(call)
        except Refused as problem:
            await self._refuse(call, 401, f"Unauthorized: {problem.reason}", [problem.challenge])
            return
        if self._profile == "gateway":
            await gateway.endpoint(call, self.server, peer, self._max_body)
            return
        try:
            await self._serve(call, peer)
        except Refusal as problem:
            await self._refuse(call, problem.status, problem.message)
        except TooLarge:
            text = f"Content too large: the body may have {self._max_body} bytes"
            await self._refuse(call, 413, text, _CLOSE)
        except TooSlow:
            await self._refuse(call, 408, "Request time-out: the body did not come", _CLOSE)

    async def _serve(self, call: Call, peer: Peer) -> None:
        match call.method:
            case "POST":
                await self._post(call, peer)
            case "GET" | "DELETE" if self._is_stateless(call) or not self._has_sessions:
                text = f"Method not allowed: {call.method} is of sessions, and there are none"
                await self._refuse(call, 405, text, _ONLY_POST)
            case "GET":
                session = await self._sessions.named(call, peer)
                await self._sessions.listen(call, session)
            case "DELETE":
                session = await self._sessions.named(call, peer)
                await self._sessions.end(session)
                await call.respond(204)
            case _:
                await self._refuse(call, 405, "Method not allowed", _ALLOWED)

    async def _post(self, call: Call, peer: Peer) -> None:
        if media_type(call.headers.get("content-type")) != JSON:
            raise Refusal(415, f"Unsupported media type: the body must be {JSON}")
        if not call.accepts(*self._needed):
            both = " and ".join(self._needed)
            raise Refusal(406, f"Not acceptable: the client must accept {both}")
        body = await call.body(self._max_body)
        claimed = call.headers.get("mcp-protocol-version")

        def headers(reply: Reply | None) -> list[Header]:
            return self._challenge(call, reply)

        if SESSION in call.headers and not self._is_stateless(call):
            session = await self._sessions.named(call, peer)
            items = _items(session, body, claimed)
            if not any(_is_stateless(item) for item in items):
                await self._sessions.post(call, session, items, peer, headers)
                return
            session.disown(items)
        session = self.server.open(peer=peer)
        try:
            for item in _items(session, body, claimed):
                if _is_stateless(item) or isinstance(item, Fault) or self._is_stateless(call):
                    await self._single.answer(call, session, item, peer, headers)
                elif isinstance(item, Request):
                    await self._unnamed(call, item, peer)
                else:
                    await self._sessions.named(call, peer)  # which says that it must be named
        finally:
            session.close("answered")

    async def _unnamed(self, call: Call, item: Request, peer: Peer) -> None:
        """Answer a request of the handshake era that names no session."""
        claimed = call.headers.get("mcp-protocol-version")
        if item.method == methods.INITIALIZE:
            await self._sessions.open(call, item, peer)
        elif claimed is not None and claimed not in versions.HANDSHAKE:
            supported = {"supported": list(self.server.versions), "requested": claimed[:40]}
            text = "Unsupported protocol version"
            body = answers.error(methods.UNSUPPORTED_VERSION, text, supported, Raw(item.id))
            await call.respond(400, body)
        else:
            await self._sessions.named(call, peer)

    @property
    def _has_sessions(self) -> bool:
        return any(version in versions.HANDSHAKE for version in self.server.versions)

    def _is_stateless(self, call: Call) -> bool:
        return call.headers.get("mcp-protocol-version") in versions.STATELESS

    def _challenge(self, call: Call, reply: Reply | None) -> list[Header]:
        if reply is None or reply.code != INSUFFICIENT_SCOPE:
            return []
        needed = reply.data.get("requiredScopes", ()) if isinstance(reply.data, dict) else ()
        return [self._access.challenge(call, error="insufficient_scope", scope=" ".join(needed))]

    async def _refuse(
        self, call: Call, status: int, message: str, headers: Iterable[Header] = ()
    ) -> None:
        await call.respond(status, answers.error(INVALID_REQUEST, message), headers)


def _items(session: Session, body: bytes, claimed: str | None) -> list[Item]:
    empty = incoming.fault(PARSE_ERROR, "Parse error: the body is empty")
    return session.receive(body, claimed=claimed) or [empty]


def _is_stateless(item: object) -> bool:
    return isinstance(item, Request) and item.era.name == "stateless"
