"""What the protocol says of HTTP, as plain values: headers, statuses, challenges. Sends nothing.

Of a message only its method, its name and its version are repeated in headers; nothing is read out
of a frame. In the stateless era each POST stands for itself; in the handshake era they belong to a
session that has an id.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.ground.text import printable
from mcpclient.protocol import methods, versions

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcpclient.protocol.envelope import Outgoing

Header = tuple[bytes, bytes]

SESSION = b"mcp-session-id"
VERSION = b"mcp-protocol-version"
LAST_EVENT = b"last-event-id"
JSON = "application/json"
EVENTS = "text/event-stream"
# As far as a person would be told to wait, and a program may; a server may say a year.
_LONGEST = 3600.0
# Longer ones are cut; so many challenges, and params of one, are read.
_CHALLENGES, _PARAMS = 16, 32
_PLAIN = re.compile(r"[ -~]*")
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
# Set by the transport, by the rules; whoever could set them could break the framing of requests.
_OURS = re.compile(
    r"(?:host|content-length|content-type|content-encoding|transfer-encoding|connection|"
    r"accept|accept-encoding|te|upgrade|trailer|expect|last-event-id|"
    r"mcp-(?:session-id|protocol-version|method|name|param-.*))",
    re.IGNORECASE,
)
_VISIBLE = re.compile(r"[!-~]+")
# Which param a header repeats, so that those between need not read the body (HTTP-07, HTTP-08).
_NAMES = {
    methods.TOOLS_CALL: "name",
    methods.PROMPTS_GET: "name",
    methods.RESOURCES_READ: "uri",
    methods.TASKS_GET: "taskId",
    methods.TASKS_UPDATE: "taskId",
    methods.TASKS_CANCEL: "taskId",
}


def stateless(version: str) -> bool:
    """Return whether messages of a version are carried each by itself: closing the answer's stream
    cancels, and a stream that broke is lost. In the handshake era neither is so."""
    return version in versions.STATELESS


def message_headers(item: Outgoing, session: str | None) -> list[Header]:
    """Return the headers that a message needs besides its content type.

    Args:
        item: The message.
        session: The id of the session, in the handshake era, or None.
    """
    if stateless(item.version):
        if not _PLAIN.fullmatch(item.method) or item.method != item.method.strip(" "):
            raise LocalProtocolError(
                f"the method {printable(repr(item.method), 100)} cannot be sent over HTTP: it goes "
                "into a header, so it must be printable ASCII"
            )
        headers = [(VERSION, item.version.encode()), (b"mcp-method", item.method.encode())]
        key = _NAMES.get(item.method)
        name = item.params.get(key) if key is not None and item.params is not None else None
        if isinstance(name, str):
            headers.append((b"mcp-name", encoded(name)))
        return headers
    if item.method == methods.INITIALIZE:
        return []  # a second one, with another version, begins another session (HTL-17)
    return session_headers(item.version, session)


def session_headers(version: str, session: str | None) -> list[Header]:
    """Return what tells a server of the handshake era which conversation this belongs to.

    The header of the version is only sent where it exists: older servers may be strict (HTL-04).
    """
    headers = [] if session is None else [(SESSION, session.encode())]
    if versions.since("2025-06-18", version):
        headers.append((VERSION, version.encode()))
    return headers


def encoded(text: str) -> bytes:
    """Return text as a header's value: as it is if it is plain, else in Base64 with its marks.

    Plain is printable ASCII without a blank at an end, that does not look like Base64 with marks.
    """
    if _PLAIN.fullmatch(text) and text == text.strip(" "):
        if not (text.startswith("=?base64?") and text.endswith("?=")):
            return text.encode()
    import base64  # most names are plain

    # A lone surrogate has no UTF-8; a mark in its place is refused by the server, which is right.
    return b"=?base64?" + base64.b64encode(text.encode("utf-8", "replace")) + b"?="


def checked(name: object, value: object) -> Header:
    """Return a header that a user gives as it is sent.

    Raises:
        ValueError: It cannot be sent, or is not for users to set. The value is not shown.
    """
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise ValueError(f"headers: {name!r} cannot be the name of a header")
    if _OURS.fullmatch(name):
        raise ValueError(f"headers: {name} is set by the transport itself")
    if not isinstance(value, str):
        raise ValueError(f"headers.{name} must be text, not {type(value).__name__}")
    if not _PLAIN.fullmatch(value):
        raise ValueError(
            f"headers.{name} must be printable ASCII: is there a line end at the end of it?"
        )
    return name.lower().encode(), value.strip(" ").encode()


def session_id(value: str | None) -> str | None:
    """Return a session's id as it may be sent back, or None if it is none (visible ASCII)."""
    return value if value and len(value) <= 4096 and _VISIBLE.fullmatch(value) else None


def media_type(value: str | None) -> str:
    """Return the type that a ``Content-Type`` names, without its parameters."""
    return (value or "").partition(";")[0].strip().lower()


# -- statuses ------------------------------------------------------------------------------

# A redirect that keeps method and body. The others would make a POST a GET.
_KEEPING = (307, 308)
_FOLLOWED = (301, 302, 303, *_KEEPING)
# They tell of the moment, the way or the size, not of what the server understands (section 1.3 of
# the page on versioning names 429 and 5xx; HTTP-20).
_NEUTRAL = frozenset({401, 403, 407, 408, 413, 421, 425, 429, 431, 451})
# After which the server provably did not run the request.
_UNDONE = frozenset({401, 403, 404, 405, 406, 407, 411, 413, 414, 415, 421, 425, 429, 431})


def redirects(status: int, *, post: bool) -> bool:
    """Return whether a status is a redirect that may be followed as it is."""
    return status in (_KEEPING if post else _FOLLOWED)


def is_evidence(status: int) -> bool:
    """Return whether a status tells of a server's era: most of 4xx does."""
    return 400 <= status < 500 and status not in _NEUTRAL


def is_undone(status: int) -> bool:
    """Return whether a status says for sure that the request was not run."""
    return status in _UNDONE


def meaning(status: int) -> str:
    """Return what a status means here, in words, with the next step where there is one."""
    if status in (413, 431):
        part = "message is" if status == 413 else "headers are"
        return f"the {part} too large for the server or a proxy before it"
    if status == 429:
        return "the server is asked too often"
    if status in (404, 405):
        return "the server has no such endpoint; check the path of the url"
    if 300 <= status < 400:
        return "the server redirects to where it may not be followed"
    if status >= 500:
        return "the server or a proxy before it failed"
    return "the server refused it"


def retry_after(value: str | None, now: float) -> float | None:
    """Return in how many seconds to ask again, at most an hour, or None if nothing is said.

    Args:
        value: The header, a number or a date.
        now: Seconds since the epoch.
    """
    text = (value or "").strip()
    if not text or len(text) > 64:
        return None
    if text.isascii() and text.isdigit():
        return min(float(text), _LONGEST)
    from email.utils import parsedate_to_datetime  # dates are rare

    try:
        return min(max(parsedate_to_datetime(text).timestamp() - now, 0.0), _LONGEST)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


# -- challenges ----------------------------------------------------------------------------


class Challenge(Struct, frozen=True):
    """What a server wants before it lets somebody in, of its ``WWW-Authenticate``.

    Attributes:
        scheme: Such as ``Bearer``, as written.
        params: Its parameters by name in small letters, such as ``resource_metadata``, ``scope``
            and ``error``; what is no parameter stands under an empty name.
    """

    scheme: str
    params: dict[str, str] = {}

    def __str__(self) -> str:
        told = ", ".join(f'{name}="{value}"' for name, value in self.params.items() if name)
        return printable(f"{self.scheme} {told}".strip(), 500)


_PART = re.compile(
    r"""\s*(?:,\s*)*
    (?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+)
    (?:\s*=\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<plain>[^\s,"=]+))(?=\s*(?:,|$))
      |(?P<scheme>(?=\s*(?:,|$)|\s+[^\s=,])))""",
    re.VERBOSE,
)
_TOKEN68 = re.compile(r"\s+(?P<text>[A-Za-z0-9._~+/-]+=*)(?=\s*(?:,|$))")


def challenges(values: Iterable[str]) -> tuple[Challenge, ...]:
    """Return what the ``WWW-Authenticate`` headers of an answer say, as far as it can be read."""
    found: list[tuple[str, dict[str, str]]] = []
    for value in values:
        text, place = value[:8192], 0
        fresh = len(found)
        while len(found) < _CHALLENGES and (part := _PART.match(text, place)):
            place = part.end()
            name = part["name"]
            if part["scheme"] is not None:
                found.append((name, {}))
                token = _TOKEN68.match(text, place)
                if token is not None:
                    found[-1][1][""] = token["text"]
                    place = token.end()
            elif len(found) > fresh and len(found[-1][1]) < _PARAMS:
                quoted = part["quoted"]
                plain = part["plain"] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
                found[-1][1].setdefault(name.lower(), plain)
    return tuple(Challenge(scheme, params) for scheme, params in found)
