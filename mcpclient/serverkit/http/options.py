"""The numbers of the HTTP shell, and who somebody is who may come in. Knows no request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

MIB = 1024 * 1024


class HttpLimits(Struct, frozen=True, kw_only=True):
    """How long anything may take, and how much it may hold, over HTTP. Seconds, bytes and counts.

    Attributes:
        body: The longest body that is read.
        reading: For how long a client may take to send a body.
        writing: For how long a client may take nothing of an answer; then it is left alone.
        quick: An answer that comes so soon, and with nothing before it, is plain JSON; else it is
            a stream of events (``answers="auto"``).
        pulse: After so much silence a stream carries a comment, so that nobody takes it for dead.
        retry: After what time a client shall come back for a stream that was closed.
        outbox: How many bytes may wait for one client that does not read; more notices are lost.
        events: How many events of a session are kept for clients that come back.
        event_bytes: How many bytes those may be together.
        sessions: How many sessions are open; the one that was idle the longest makes room.
        ending: For how long what runs may take to end when the server stops.
    """

    body: int = 4 * MIB
    reading: float = 30.0
    writing: float = 30.0
    quick: float = 0.1
    pulse: float = 15.0
    retry: float = 0.5
    outbox: int = 4 * MIB
    events: int = 500
    event_bytes: int = MIB
    sessions: int = 1000
    ending: float = 2.0


class Identity(Struct, frozen=True):
    """Who somebody is, and what they may do; tools see it as ``frame.subject``, ``frame.scopes``
    and ``frame.claims``.

    Attributes:
        subject: Their name, or None.
        scopes: What they may do; None: everything.
        claims: What else is known.
    """

    subject: str | None = None
    scopes: frozenset[str] | None = None
    claims: Mapping[str, Any] = {}


# Takes a token; returns whose it is, or None for nobody's. Plain or async.
TokenCheck = Callable[[str], Identity | Awaitable[Identity | None] | None]


class Bearer(Struct, frozen=True, kw_only=True):
    """That only who has a token may come in, and where one gets a token.

    Attributes:
        check: Takes a token, returns whose it is, or None. Plain or async; it should compare
            secrets with :func:`hmac.compare_digest`.
        servers: The issuers that give tokens; told in the protected resource document.
        scopes: What there is to ask for; told there too.
        needed: What one needs at the least; told to who comes without a token.
        resource: The URL of the endpoint as clients know it; None: as the request named it.
    """

    check: TokenCheck
    servers: Sequence[str] = ()
    scopes: Sequence[str] = ()
    needed: Sequence[str] = ()
    resource: str | None = None
