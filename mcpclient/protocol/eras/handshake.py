"""The era of 2024-11-05 to 2025-11-25: ``initialize`` first, then both sides may ask.

https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct

from mcpclient.ground.errors import LocalProtocolError, RemoteProtocolError
from mcpclient.ground.text import printable
from mcpclient.protocol import methods, payload, versions
from mcpclient.protocol.eras import (
    ELICITATION,
    ROOTS,
    SAMPLING,
    Each,
    Identity,
    NoTasks,
    Refused,
    Terms,
    Wanted,
)
from mcpclient.protocol.events import Answer, Broken, Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpclient.protocol.eras.tasks import Tasks


RELATED_KEY = "io.modelcontextprotocol/related-task"

_NO_TASKS = NoTasks("it does not declare that it runs tools as tasks")


class Handshake:
    """The rules of a conversation that ``initialize`` opened."""

    name = "handshake"
    server_may_ask = True
    pings = True
    mirrors = False
    deprecated: frozenset[str] = frozenset()
    structured_any = False

    def __init__(self, version: str) -> None:
        self.version = version

    def stamp(self, params: Mapping[str, Any] | None, token: int | None) -> Any:
        """Return the params as they are, with the progress token if there is one."""
        if token is None:
            return params
        params = params or {}
        return {**params, "_meta": {**(params.get("_meta") or {}), "progressToken": token}}

    def read(self, method: str, result: Raw) -> Raw:
        """Return any result: all are final here, a stray ``resultType`` means nothing (RES-05)."""
        return result

    def tasks(self, capabilities: Mapping[str, Any]) -> Tasks | NoTasks:
        """Return the tasks of 2025-11-25; what extensions say means nothing here (TSK-27)."""
        declared = capabilities.get("tasks")
        if not declared or not versions.since("2025-11-25", self.version):
            return _NO_TASKS
        from mcpclient.protocol.eras.tasks import core  # few servers have any

        return core(declared) or _NO_TASKS

    def replying(self, params: Any, result: Any) -> Any:
        """Return the answer, which belongs to the task that the request belongs to (LTSK-08)."""
        related = as_mapping(as_mapping(params).get("_meta")).get(RELATED_KEY)
        if related is None or not isinstance(result, dict):
            return result
        return {**result, "_meta": {**as_mapping(result.get("_meta")), RELATED_KEY: related}}

    def wanted(self, code: int, data: Any) -> dict[str, Any]:
        """Return the pages that a person must visit first (ELI-19)."""
        if code != methods.PAGES_FIRST or not versions.since("2025-11-25", self.version):
            return {}
        pages = as_mapping(data).get("elicitations")
        return {
            one["elicitationId"]: {"method": "elicitation/create", "params": {**one, "mode": "url"}}
            for one in (pages if isinstance(pages, list) else ())
            if isinstance(one, dict) and isinstance(one.get("elicitationId"), str)
        }

    def lifetime(self, result: Raw) -> float | None:
        """Return None: these servers tell by notices what is stale, never by time."""
        return None

    def subscribing(self, old: Wanted, new: Wanted, capabilities: Mapping[str, Any]) -> Each:
        """Return a request for each resource; list changes come unasked (SUB-16, RSC-06)."""
        begun, ended = sorted(new.uris - old.uris), sorted(old.uris - new.uris)
        if not as_mapping(capabilities.get("resources")).get("subscribe"):
            return Each([], begun)
        requests = [(methods.SUBSCRIBE, {"uri": uri}) for uri in begun]
        return Each(requests + [(methods.UNSUBSCRIBE, {"uri": uri}) for uri in ended], [])

    @property
    def declares_completions(self) -> bool:
        """Whether the capability exists; the method is older (CPL-03)."""
        return versions.since("2025-03-26", self.version)

    @property
    def completes_in_context(self) -> bool:
        """Whether ``context`` exists (LIFE-09)."""
        return versions.since("2025-06-18", self.version)

    def log_from(self, level: str | None, capabilities: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the params of the request; nothing takes a level back (LOG-01)."""
        if level is None:
            return None
        if "logging" not in capabilities:
            raise LocalProtocolError(
                'the server did not declare "logging", so it takes no level; '
                "what it writes to stderr is in stderr_tail()"
            )
        return {"level": level}

    def cancel(self, id: int, reason: str) -> dict[str, Any]:
        """Return the params of the cancellation."""
        return {"requestId": id, "reason": reason}


class Agreed(Struct, frozen=True):
    """A verdict: the conversation is open on these terms."""

    terms: Terms


class Offer(Struct, frozen=True, gc=False):
    """A verdict: ask again with this version."""

    version: str


class ProvenStateless(Struct, frozen=True, gc=False):
    """A verdict: the refusal is one that only a stateless server gives; probe again."""


Verdict = Agreed | Offer | ProvenStateless | Refused


class _InitializeResult(Struct, rename="camel"):
    protocol_version: Any = None
    capabilities: Any = None
    server_info: Any = None
    instructions: Any = None


def initialize(identity: Identity, version: str) -> dict[str, Any]:
    """Return the params of ``initialize``."""
    return {
        "protocolVersion": version,
        "capabilities": _capabilities(identity.offers, version),
        "clientInfo": identity.info,
    }


def _capabilities(offers: frozenset[str], version: str) -> dict[str, Any]:
    """Return what is offered, in the words of the version that is offered (LIFE-09, LIFE-13)."""
    place = versions.HANDSHAKE.index(version)
    found: dict[str, Any] = {}
    if ROOTS in offers:
        found[ROOTS] = {"listChanged": True}
    if SAMPLING in offers:
        found[SAMPLING] = {}
    if ELICITATION in offers and place >= versions.HANDSHAKE.index("2025-06-18"):
        modes = place >= versions.HANDSHAKE.index("2025-11-25")
        found[ELICITATION] = {"form": {}, "url": {}} if modes else {}
    return found


def judge(outcome: Answer | Refusal | Broken, offered: str, *, insist: bool) -> Verdict:
    """Return what to do about the answer to ``initialize``.

    Args:
        outcome: The answer.
        offered: The version that was offered.
        insist: Whether this was the second offer already, so that there is no third (B54).
    """
    match outcome:
        case Answer(result=result):
            return _agree(result, offered)
        case Refusal(code=code, message=message, data=data):
            named = _named_versions(payload.told(data))
            if code == methods.UNSUPPORTED_VERSION and versions.newest(versions.STATELESS, named):
                return ProvenStateless()
            other = versions.newest(versions.HANDSHAKE, named)
            if other is not None and other != offered and not insist:
                return Offer(other)
            said = f" (it speaks {', '.join(named)})" if named else ""
            return Refused(
                f"the server refused initialize for {offered}: [{code}] {printable(message)}{said}"
            )
        case Broken(problem=problem):
            return Refused(f"the answer to initialize cannot be read: {problem}")


def _agree(result: Raw, offered: str) -> Verdict:
    try:
        found = payload.decode(result, _InitializeResult, "the initialize result")
    except RemoteProtocolError as problem:
        return Refused(str(problem))
    version = found.protocol_version
    if version not in versions.HANDSHAKE:
        # A server that wants a version we do not have must be left (LIFE-04).
        return Refused(
            f"the server wants protocol version {shown(version)}; "
            f"offered was {offered}, possible are {', '.join(versions.HANDSHAKE)}"
        )
    return Agreed(
        Terms(
            version=version,
            capabilities=as_mapping(found.capabilities),
            info=as_mapping(found.server_info),
            instructions=as_text(found.instructions),
        )
    )


def _named_versions(data: Any) -> list[str]:
    """Return the versions that an error's data names, in whatever member it does (LIFE-11)."""
    if not isinstance(data, dict):
        return []
    found: list[Any] = []
    for key in ("supported", "supportedVersions", "expected"):
        member = data.get(key)
        found += member if isinstance(member, list) else [member]
    return [version for version in found if isinstance(version, str)]


def as_mapping(value: Any) -> dict[str, Any]:
    """Return a value if it is an object, else an empty one: odd servers send null or text."""
    return value if isinstance(value, dict) else {}


def shown(version: Any) -> str:
    """Return what a server names as a version, as text; it may be anything."""
    nested = isinstance(version, dict | list)  # its repr may be deeper than Python can go
    return "that is no text" if nested else printable(str(version), 40)


def as_text(value: Any) -> str | None:
    """Return a value if it is text, else None."""
    return value if isinstance(value, str) else None
