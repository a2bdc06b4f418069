"""Which era a server belongs to, told from its answer to ``server/discover``.

The decision table of the page on versioning. An unknown error or silence means a server of the
handshake era, whatever the code; only three codes prove a stateless one.

https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning
"""

from __future__ import annotations

from typing import Any

from msgspec import Raw, Struct

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.ground.text import printable
from mcpclient.protocol import methods, oddlines, payload, versions
from mcpclient.protocol.eras import Refused, Terms
from mcpclient.protocol.eras.handshake import as_mapping, as_text, shown
from mcpclient.protocol.eras.stateless import SERVER_KEY
from mcpclient.protocol.events import Answer, Broken, Refusal
from mcpclient.protocol.httprules import is_evidence


class Silence(Struct, frozen=True, gc=False):
    """An outcome: the time for the probe ran out."""


class Death(Struct, frozen=True, gc=False):
    """An outcome: the server's process ended, or closed its stdout."""


class Status(Struct, frozen=True, gc=False):
    """An outcome: an HTTP status came instead of an answer."""

    code: int


class Speak(Struct, frozen=True):
    """A verdict: stateless, on these terms."""

    terms: Terms


class ProbeAgain(Struct, frozen=True, gc=False):
    """A verdict: stateless, but ask again with this version."""

    version: str


class Shake(Struct, frozen=True, gc=False):
    """A verdict: open with ``initialize``, offering this version.

    After silence it is provisional: a late answer to the probe may still prove the other era.
    """

    version: str


class Undecided(Struct, frozen=True, gc=False):
    """A verdict: it tells of the moment, not of the era; try again later."""


class Respawn(Struct, frozen=True, gc=False):
    """A verdict: some old servers die of an unknown first request; start a fresh one and open it
    with ``initialize``."""


Outcome = Answer | Refusal | Broken | Silence | Death | Status
Verdict = Speak | ProbeAgain | Shake | Respawn | Refused | Undecided


class _DiscoverResult(
    Struct,
    rename={
        "supported_versions": "supportedVersions",
        "server_info": "serverInfo",
        "meta": "_meta",
    },
):
    supported_versions: Any
    capabilities: Any = None
    instructions: Any = None
    server_info: Any = None
    meta: Any = None

    @property
    def info(self) -> dict[str, Any]:
        # It belongs into _meta; servers of the last drafts leave it in the body (META-13).
        return as_mapping(as_mapping(self.meta).get(SERVER_KEY)) or as_mapping(self.server_info)


def judge(outcome: Outcome, *, again: bool) -> Verdict:
    """Return what to do about the outcome of a probe.

    Args:
        outcome: What came back.
        again: Whether this was the second probe already, so that there is no third.
    """
    match outcome:
        case Answer(result=result):
            return _discovered(result)
        case Refusal(code=methods.UNSUPPORTED_VERSION, data=data):
            return _unsupported(payload.told(data), again=again)
        case Refusal(code=methods.HEADER_MISMATCH | methods.MISSING_CAPABILITY) if not again:
            # Nothing can be corrected on a stream without headers, but it is no reason to fall
            # back either (ERA-07).
            return ProbeAgain(versions.STATELESS[-1])
        case Refusal(
            code=methods.HEADER_MISMATCH | methods.MISSING_CAPABILITY as code, message=message
        ):
            return Refused(f"the server refused server/discover: [{code}] {printable(message)}")
        case Broken(problem=oddlines.LSP):
            return Refused(oddlines.LSP)  # it would answer initialize the same way (B25)
        case Refusal() | Broken():
            return Shake(versions.HANDSHAKE[-1])
        case Status(code=code):
            return Shake(versions.HANDSHAKE[-1]) if is_evidence(code) else Undecided()
        case Silence():
            return Shake(versions.HANDSHAKE[-1])
        case Death():
            return Respawn()


def _discovered(result: Raw) -> Verdict:
    try:
        found = payload.decode(result, _DiscoverResult)
    except RemoteProtocolError:
        return Shake(versions.HANDSHAKE[-1])
    named = found.supported_versions
    if not isinstance(named, list):
        return Shake(versions.HANDSHAKE[-1])
    version = versions.newest(versions.STATELESS, named)
    if version is None:
        return _by_advertisement(named)
    return Speak(
        Terms(
            version=version,
            capabilities=as_mapping(found.capabilities),
            info=found.info,
            instructions=as_text(found.instructions),
        )
    )


def _unsupported(data: Any, *, again: bool) -> Verdict:
    named = as_mapping(data).get("supported")
    if not isinstance(named, list):
        named = []
    version = versions.newest(versions.STATELESS, named)
    if version is None:
        return _by_advertisement(named)
    if again:
        return Refused(f"the server names {version} as supported and refuses it")
    return ProbeAgain(version)


def _by_advertisement(named: list[Any]) -> Verdict:
    version = versions.newest(versions.HANDSHAKE, named)
    if version is not None:
        return Shake(version)
    theirs = ", ".join(shown(name) for name in named[:10]) or "none"
    ours = ", ".join((*versions.HANDSHAKE, *versions.STATELESS))
    return Refused(f"no common protocol version: the server speaks {theirs}; we speak {ours}")
