"""Whether the host behind a URL can be reached, before anything is asked of it. Sends nothing."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mcpclient.cli import masks
from mcpclient.ground.text import seconds

if TYPE_CHECKING:
    Step = tuple[str, str, str]

_PATIENCE = 10.0
_PORTS = {"http": 80, "https": 443}
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


async def look(url: str) -> list[Step]:
    """Return what is found out about a URL: whether it is reached, how long, and over which TLS."""
    steps: list[Step] = [("ok", "url", masks.address(url))]
    parts = urlsplit(url)
    host = parts.hostname or ""
    try:
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError as problem:
        return [("fail", "url", str(problem))]
    if not host or port is None:
        return steps  # a local socket: dialling it tells all there is
    if proxy := _proxy(parts.scheme, host):
        return [*steps, ("note", "reached", f"through the proxy that {proxy} names; not looked at")]
    tls = ssl.create_default_context() if parts.scheme == "https" else None
    began = time.monotonic()
    try:
        async with asyncio.timeout(_PATIENCE):
            _, writer = await asyncio.open_connection(host, port, ssl=tls)
    except TimeoutError:
        return [*steps, ("fail", "reached", f"{host}:{port} does not answer in {_PATIENCE:g} s")]
    except ssl.SSLError as problem:
        why = getattr(problem, "verify_message", "") or problem.reason or str(problem)
        return [*steps, ("fail", "tls", f"{host}:{port}: {why}")]
    except OSError as problem:
        # The loop's own words name the address once more; those of a name not found are the best.
        why = problem.strerror or str(problem)
        if problem.errno and not isinstance(problem, socket.gaierror):
            why = os.strerror(problem.errno)
        return [*steps, ("fail", "reached", f"{host}:{port}: {why}")]
    steps.append(("ok", "reached", f"{host}:{port} in {seconds(time.monotonic() - began)}"))
    secured = writer.get_extra_info("ssl_object")
    if secured is not None:
        until = (secured.getpeercert() or {}).get("notAfter", "?")
        steps.append(("ok", "tls", f"{secured.version()}, certificate good until {until}"))
    elif parts.scheme == "http" and host not in _LOOPBACK:
        steps.append(("note", "tls", "none: everybody on the way can read what is sent"))
    writer.close()
    try:
        await writer.wait_closed()
    except OSError:
        pass  # it was there; how it leaves does not matter
    return steps


def _proxy(scheme: str, host: str) -> str:
    """Return the variable that sends a scheme through a proxy, or an empty text."""
    if host in _LOOPBACK:
        return ""
    names = (f"{scheme}_proxy", f"{scheme.upper()}_PROXY", "all_proxy", "ALL_PROXY")
    return next((name for name in names if os.environ.get(name)), "")
