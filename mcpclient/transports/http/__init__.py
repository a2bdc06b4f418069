"""Servers behind http and https URLs. Needs the extra ``http``; loaded when one is dialled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpclient.transports.http.courier import Courier
from mcpclient.transports.http.old import OldTransport
from mcpclient.transports.http.pool import Pools
from mcpclient.transports.http.transport import HttpTransport
from mcpclient.transports.urls import HttpUrl

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpclient.ground.options import Limits, Timeouts
    from mcpclient.loops.base import Loop
    from mcpclient.protocol.mirror import Mirror

__all__ = ["HttpTransport", "OldTransport", "Pools", "dial"]


def dial(
    url: HttpUrl,
    pools: Pools,
    *,
    server: str,
    headers: Mapping[str, str],
    auth: Callable[..., Any] | None,
    mirror: Mirror,
    loop: Loop,
    timeouts: Timeouts,
    limits: Limits,
    old: bool = False,
) -> HttpTransport | OldTransport:
    """Return a transport to an endpoint. Nothing is sent before the first message.

    Args:
        url: The endpoint.
        pools: The manager's connections.
        server: The server's name.
        headers: What is sent with each request.
        auth: Gives more headers for each, or None.
        mirror: Which arguments of tools are repeated in headers.
        loop: The loop that runs this code.
        timeouts: ``write``, ``ask`` and ``eof`` are used.
        limits: ``frame`` and ``connections`` are used.
        old: Whether it is the transport of 2024-11-05.
    """
    courier = Courier(
        pools.lease(url), url, server=server, headers=headers, auth=auth, timeouts=timeouts
    )
    if old:
        return OldTransport(courier, server=server, loop=loop, timeouts=timeouts, limits=limits)
    return HttpTransport(
        courier, server=server, mirror=mirror, loop=loop, timeouts=timeouts, limits=limits
    )
