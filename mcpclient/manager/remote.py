"""What may be written of a server that runs elsewhere: its URL, headers and kind. Dials nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# What the files of editors call them.
_KINDS = {
    "stdio": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamableHttp": "http",
    "streamable_http": "http",
    "sse": "sse",
    "stream": "stream",
}


def kind_of(kind: object, url: object) -> str:
    """Return the kind of transport: ``stdio``, ``http``, ``sse`` or ``stream``.

    Args:
        kind: What was said, or None to tell it from the URL.
        url: The URL, or None if there is a command.

    Raises:
        ValueError: There is no such kind, or it does not fit.
    """
    if url is None:
        told = "stdio"
    else:
        told = "http" if isinstance(url, str) and _is_http(url) else "stream"
    if kind is None:
        return told
    known = _KINDS.get(kind) if isinstance(kind, str) else None
    if known is None:
        raise ValueError(f'type must be "stdio", "http" or "sse", not {kind!r}')
    if known != told and (known, told) != ("sse", "http"):
        wanted = {"stdio": "a command", "stream": "a unix or tcp url"}
        raise ValueError(f"type {kind!r} goes with {wanted.get(known, 'an http or https url')}")
    return known


def check_remote(url: object, headers: object, auth: Any, args: object) -> None:
    """Check what is said of a server that runs elsewhere.

    Raises:
        ValueError: A value cannot be meant; the text shows no secret.
    """
    if not isinstance(headers, Mapping):
        raise ValueError(f"headers must be a mapping of text by name, not {type(headers).__name__}")
    if auth is not None and not callable(auth):
        raise ValueError(f"auth must be a function of (server, challenge), not {auth!r}")
    if url is None:
        if headers or auth is not None:
            raise ValueError("headers and auth go with a url, not with a command")
        return
    if not isinstance(url, str):
        raise ValueError(f"url must be text, not {type(url).__name__}")
    # Reading URLs is loaded by who writes one.
    from mcpclient.protocol.httprules import checked
    from mcpclient.transports.addresses import address_of
    from mcpclient.transports.urls import SCHEMES

    if args:
        raise ValueError("args go with a command, not with a url")
    if not _is_http(url):
        if address_of(url) is None:
            schemes = ", ".join(f"{scheme}://" for scheme in SCHEMES)
            raise ValueError(f"url must begin with one of {schemes}")
        if headers or auth is not None:
            raise ValueError("headers and auth go with an http or https url")
    for name, value in headers.items():
        checked(name, value)


def _is_http(url: str) -> bool:
    from mcpclient.transports.urls import http_url

    return http_url(url) is not None
