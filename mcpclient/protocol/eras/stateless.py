"""The era of 2026-07-28: no handshake; every request says who asks and in which version.

https://modelcontextprotocol.io/specification/2026-07-28/basic
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct

from mcpclient.ground.errors import InputRefused, RemoteProtocolError
from mcpclient.ground.text import printable
from mcpclient.protocol import methods, payload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpclient.protocol.eras import Identity

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_MOST = 10**15  # milliseconds: for ever


class _Kind(Struct, gc=False, rename="camel"):
    result_type: Any = "complete"
    input_requests: Raw = Raw(b"")


class _Hints(Struct, gc=False, rename="camel"):
    ttl_ms: Any = None


class Stateless:
    """The rules of a conversation without a handshake."""

    name = "stateless"
    server_may_ask = False
    pings = False

    def __init__(self, version: str, identity: Identity) -> None:
        self.version = version
        self._meta = {
            VERSION_KEY: version,
            CLIENT_KEY: identity.info,
            CAPABILITIES_KEY: identity.capabilities,
        }

    def stamp(self, params: Mapping[str, Any] | None, token: int | None) -> Any:
        """Return the params with version, identity and capabilities in ``_meta`` (META-01)."""
        meta: dict[str, Any] = self._meta
        if params is None:
            params = {}
        elif params.get("_meta"):
            meta = {**params["_meta"], **meta}
        if token is not None:
            meta = {**meta, "progressToken": token}
        return {**params, "_meta": meta}

    def read(self, method: str, result: Raw) -> Raw:
        """Return a complete result; refuse the other kinds (RES-01, RES-02, RES-03)."""
        kind = payload.decode(result, _Kind)
        if kind.result_type == "complete":
            return result
        if kind.result_type == "input_required" and method in methods.MAY_ASK_BACK:
            raise InputRefused(method, _asked(kind.input_requests))
        shown = printable(str(kind.result_type), 100)
        raise RemoteProtocolError(f"the result of {method} is of the unknown kind {shown!r}")

    def lifetime(self, result: Raw) -> float | None:
        """Return ``ttlMs`` in seconds; absent, negative or odd means stale at once (CACHE-04)."""
        ttl = payload.decode(result, _Hints).ttl_ms
        # By exact type: True is an odd value. An integer may be too large for a float.
        return min(ttl, _MOST) / 1000 if type(ttl) in (int, float) and ttl > 0 else 0.0

    def cancel(self, id: int, reason: str) -> dict[str, Any]:
        """Return the params of the cancellation."""
        return {"requestId": id, "reason": reason}


def _asked(requests: Raw) -> list[str]:
    found = payload.value(requests)
    if not isinstance(found, dict):
        return []
    return [str(request.get("method")) for request in found.values() if isinstance(request, dict)]
