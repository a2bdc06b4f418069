"""Whom a browser may send here: the Origin and Host of a request, against DNS rebinding. Pure.

A page whose name was made to lead to 127.0.0.1 can reach a server on this machine, with that name
in Host and in Origin. So a server on a loopback address wants a loopback name in Host, and any
server wants an Origin that it knows, if there is one; programs send none.

https://modelcontextprotocol.io/specification/2025-11-25/basic/transports
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from mcpclient.ground.errors import ConfigError
from mcpclient.ground.text import printable
from mcpclient.serverkit.http.call import is_loopback

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcpclient.serverkit.http.call import Call


class Doors:
    """Which origins and hosts may come in.

    Args:
        origins: Such as ``https://app.example.com``; ``*`` for any. None: those of this machine.
        hosts: Names, with a port or without; ``*`` for any. None: on a loopback address those of
            this machine, elsewhere any.

    Raises:
        ConfigError: An origin is none.
    """

    def __init__(self, origins: Iterable[str] | None, hosts: Iterable[str] | None) -> None:
        self._origins = None if origins is None else {one.lower().rstrip("/") for one in origins}
        self._hosts = None if hosts is None else {one.lower() for one in hosts}
        for one in self._origins or ():
            if one != "*" and "://" not in one:
                raise ConfigError(
                    f'an origin is a scheme and a host, such as "https://{one}"',
                    key="allowed_origins",
                )

    def refusal(self, call: Call) -> str | None:
        """Return why a request is not let in, or None."""
        origin, host = call.headers.get("origin"), call.headers.get("host")
        if origin is not None and not self._knows_origin(origin.lower()):
            return f"the origin {printable(origin, 200)} is not allowed (allowed_origins)"
        if host is not None and not self._knows_host(host.lower(), call):
            return f"the host {printable(host, 200)} is not allowed (allowed_hosts)"
        return None

    def _knows_origin(self, origin: str) -> bool:
        if self._origins is not None:
            return "*" in self._origins or origin in self._origins
        try:
            found = urlsplit(origin)
            return found.scheme in ("http", "https") and is_loopback(found.hostname or "")
        except ValueError:
            return False

    def _knows_host(self, host: str, call: Call) -> bool:
        name = name_of(host)
        if self._hosts is not None:
            return bool({"*", host, name} & self._hosts)
        return not call.on_loopback or is_loopback(name)


def name_of(host: str) -> str:
    """Return the name or the address in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0] if host.count(":") == 1 else host
