"""The era of 2026-07-28: no handshake; every request says who asks and in which version.

https://modelcontextprotocol.io/specification/2026-07-28/basic
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct

from mcpclient.ground.errors import InputRefused, RemoteProtocolError
from mcpclient.ground.text import printable
from mcpclient.protocol import methods, payload
from mcpclient.protocol.eras import (
    ELICITATION,
    ROOTS,
    SAMPLING,
    Listen,
    NoTasks,
    OtherResult,
    Wanted,
)
from mcpclient.protocol.extensions import TASK, TASKS, kinds_of, settings_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpclient.protocol.eras import Identity
    from mcpclient.protocol.eras.tasks import Tasks

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
LEVEL_KEY = "io.modelcontextprotocol/logLevel"

_OFFERS: dict[str, dict[str, Any]] = {
    ROOTS: {},
    SAMPLING: {},
    ELICITATION: {"form": {}, "url": {}},
}
_MOST = 10**15  # milliseconds: for ever
_NO_TASKS = NoTasks(f'tasks are off; turn them on by Manager(extensions={{"{TASKS}": {{}}}})')


class _Kind(Struct, gc=False, rename="camel"):
    result_type: Any = "complete"
    input_requests: Raw = Raw(b"")
    request_state: Raw = Raw(b"")


class _Hints(Struct, gc=False, rename="camel"):
    ttl_ms: Any = None


class Stateless:
    """The rules of a conversation without a handshake."""

    name = "stateless"
    server_may_ask = False
    pings = False
    mirrors = True
    deprecated = frozenset({ROOTS, SAMPLING})
    structured_any = True
    declares_completions = True
    completes_in_context = True

    def __init__(self, version: str, identity: Identity) -> None:
        self.version = version
        capabilities = {offer: _OFFERS[offer] for offer in sorted(identity.offers)}
        if identity.extensions:
            capabilities["extensions"] = settings_of(identity.extensions)
        self._own: dict[str, Any] = {
            VERSION_KEY: version,
            CLIENT_KEY: identity.info,
            CAPABILITIES_KEY: capabilities,
        }
        self._meta = self._own
        self._kinds = kinds_of(identity.extensions)

    def stamp(self, params: Mapping[str, Any] | None, token: int | None) -> Any:
        """Return the params with version, identity and capabilities in ``_meta`` (META-01)."""
        meta: dict[str, Any] = self._meta
        if params is None:
            params = {}
        elif params.get("_meta"):
            # A request may ask for a level of its own; all else is ours to say.
            meta = {**meta, **params["_meta"], **self._own}
        if token is not None:
            meta = {**meta, "progressToken": token}
        return {**params, "_meta": meta}

    def read(self, method: str, result: Raw) -> Raw:
        """Return a complete result; refuse the other kinds (RES-01, RES-02, RES-03)."""
        kind = payload.decode(result, _Kind)
        if kind.result_type == "complete":
            return result
        if kind.result_type == "input_required" and method in methods.MAY_ASK_BACK:
            raise _asked(method, kind)
        if isinstance(kind.result_type, str) and kind.result_type in self._kinds:
            if kind.result_type != TASK or method in methods.MAY_BE_TASKS:
                raise OtherResult(method, kind.result_type, result)
            if method in methods.ABOUT_TASKS:
                return result  # the specification's own examples say so (TSK-21)
        shown = printable(str(kind.result_type), 100)
        raise RemoteProtocolError(f"the result of {method} is of the unknown kind {shown!r}")

    def tasks(self, capabilities: Mapping[str, Any]) -> Tasks | NoTasks:
        """Return the tasks of the extension; what the core once declared is no more (TSK-27)."""
        if TASK not in self._kinds:
            return _NO_TASKS
        from mcpclient.protocol.eras.tasks import ExtensionTasks  # only who opted in needs it

        declared = capabilities.get("extensions")
        return ExtensionTasks(declared=isinstance(declared, dict) and TASKS in declared)

    def replying(self, params: Any, result: Any) -> Any:
        """Return the answer as it is; none is ever sent by itself."""
        return result

    def wanted(self, code: int, data: Any) -> dict[str, Any]:
        """Return nothing: here a result asks, never an error (ELI-21)."""
        return {}

    def lifetime(self, result: Raw) -> float | None:
        """Return ``ttlMs`` in seconds; absent, negative or odd means stale at once (CACHE-04)."""
        try:
            ttl = payload.decode(result, _Hints).ttl_ms
        except RemoteProtocolError:
            return 0.0  # nested too deep, say: no reason to lose the result
        # By exact type: True is an odd value. An integer may be too large for a float.
        return min(ttl, _MOST) / 1000 if type(ttl) in (int, float) and ttl > 0 else 0.0

    def subscribing(self, old: Wanted, new: Wanted, capabilities: Mapping[str, Any]) -> Listen:
        """Return one request for all that the server says it can tell of (SUB-01, SUB-13)."""
        told: dict[str, Any] = {}
        for name in sorted(new.lists):
            declared = capabilities.get(name)
            if isinstance(declared, dict) and declared.get("listChanged"):
                told[f"{name}ListChanged"] = True
        if new.uris:
            # Asked for even if not declared: what is not acknowledged is refused then.
            told["resourceSubscriptions"] = sorted(new.uris)
        if new.tasks:
            told["taskIds"] = sorted(new.tasks)
        return Listen({"notifications": told} if told else None)

    def log_from(self, level: str | None, capabilities: Mapping[str, Any]) -> None:
        """Put the level into each later request; without one a server must be silent (LOG-02)."""
        self._meta = self._own if level is None else {**self._own, LEVEL_KEY: level}

    def cancel(self, id: int, reason: str) -> dict[str, Any]:
        """Return the params of the cancellation."""
        return {"requestId": id, "reason": reason}


def _asked(method: str, kind: _Kind) -> InputRefused:
    state: Raw | None = kind.request_state
    if bytes(kind.request_state) in (b"", b"null"):
        state = None
    elif not _is_text(kind.request_state):
        # It could only be given back altered (MRTR-04).
        raise RemoteProtocolError(f"the state in the result of {method} is no UTF-8")
    found = payload.value(kind.input_requests)
    if found is None:
        found = {}
    if not isinstance(found, dict) or not all(isinstance(one, dict) for one in found.values()):
        raise RemoteProtocolError(f"the result of {method} asks in a shape that nobody can answer")
    if not found and state is None:
        # Nothing to answer and nothing to give back: the next round would be this one (MRTR-14).
        raise RemoteProtocolError(f"the result of {method} wants another round for no reason")
    return InputRefused(method, found, state)


def _is_text(data: Raw) -> bool:
    try:
        bytes(data).decode()
    except UnicodeDecodeError:
        return False
    return True
