"""Who comes in: by a token that is checked here, or as a host outside has found out.

https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization
https://www.rfc-editor.org/rfc/rfc9728
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import msgspec

from mcpclient.serverkit.exchange import Peer
from mcpclient.serverkit.http.options import Bearer, Identity

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpclient.protocol.httprules import Header
    from mcpclient.serverkit.http.call import Call

WELL_KNOWN = "/.well-known/oauth-protected-resource"
# Where a host may put an Identity for us.
IDENTITY = "mcpclient.identity"
# They open doors, so they do not reach tools; who was let in does.
_SECRETS = ("authorization", "proxy-authorization", "cookie", "mcp-session-id")


class Refused(Exception):
    """Nobody comes in.

    Attributes:
        challenge: What the client is told in ``WWW-Authenticate``.
        reason: Why, for people.
    """

    def __init__(self, challenge: Header, reason: str) -> None:
        super().__init__(reason)
        self.challenge = challenge
        self.reason = reason


class Access:
    """Who comes in.

    Args:
        bearer: How tokens are checked; None: not here.
        identity: Returns who a host found somebody to be, of the ASGI scope; None for nobody.
        path: Of the endpoint.
    """

    def __init__(
        self,
        bearer: Bearer | None,
        identity: Callable[[Mapping[str, Any]], Identity | None],
        path: str,
    ) -> None:
        self._bearer = bearer
        self._identity = identity
        self._path = path

    @property
    def checks(self) -> bool:
        """Whether tokens are checked here."""
        return self._bearer is not None

    def describes(self, path: str) -> bool:
        """Return whether the protected resource document is at a path."""
        return self._bearer is not None and path in (WELL_KNOWN, WELL_KNOWN + self._path)

    def document(self, call: Call) -> bytes:
        """Return the protected resource document."""
        assert self._bearer is not None
        found: dict[str, Any] = {
            "resource": self._bearer.resource or self._here(call) + self._path,
            "bearer_methods_supported": ["header"],
        }
        if self._bearer.servers:
            found["authorization_servers"] = list(self._bearer.servers)
        if self._bearer.scopes:
            found["scopes_supported"] = list(self._bearer.scopes)
        return msgspec.json.encode(found)

    async def peer(self, call: Call) -> Peer:
        """Return who is at the other end.

        Raises:
            Refused: There is no token, or it is nobody's.
        """
        found = (
            self._identity(call.scope)
            if self._bearer is None
            else await self._checked(self._bearer, call)
        )
        headers = {name: value for name, value in call.headers.items() if name not in _SECRETS}
        who = found or Identity()
        return Peer(headers, call.remote, who.subject, who.scopes, who.claims)

    async def _checked(self, bearer: Bearer, call: Call) -> Identity:
        scheme, _, token = call.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not token.strip():
            needed = {"scope": " ".join(bearer.needed)} if bearer.needed else {}
            raise Refused(self.challenge(call, **needed), "a bearer token is needed")
        found = bearer.check(token.strip())
        if inspect.isawaitable(found):
            found = await found
        if found is None:
            raise Refused(self.challenge(call, error="invalid_token"), "the token is not valid")
        return found

    def challenge(self, call: Call, **params: str) -> Header:
        """Return the header that tells how to get in."""
        if self._bearer is not None:
            params["resource_metadata"] = self._here(call) + WELL_KNOWN + self._path
        told = ", ".join(f'{name}="{_quoted(value)}"' for name, value in params.items())
        return b"www-authenticate", f"Bearer {told}".strip().encode("ascii", "replace")

    def _here(self, call: Call) -> str:
        host = call.headers.get("host", "localhost")
        root = str(call.scope.get("root_path", "")).rstrip("/")
        return f"{call.scope.get('scheme', 'http')}://{host}{root}"


def from_scope(scope: Mapping[str, Any]) -> Identity | None:
    """Return who a host found somebody to be: an Identity under ``mcpclient.identity``, else what
    Starlette's AuthenticationMiddleware left under ``user`` and ``auth``."""
    found = scope.get(IDENTITY)
    if isinstance(found, Identity):
        return found
    user = scope.get("user")
    if user is None or not getattr(user, "is_authenticated", False):
        return None
    scopes = getattr(scope.get("auth"), "scopes", None)
    try:
        subject = user.identity
    except NotImplementedError:  # Starlette's own users have only a name for people
        subject = user.display_name
    return Identity(str(subject), None if scopes is None else frozenset(scopes))


def _quoted(text: str) -> str:
    return "".join(f"\\{one}" if one in '"\\' else one for one in text if one.isprintable())
