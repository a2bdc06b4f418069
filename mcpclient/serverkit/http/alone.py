"""A server run alone over HTTP, by uvicorn, which is only imported here."""

from __future__ import annotations

import logging
import os
import socket
from typing import TYPE_CHECKING, Any

from mcpclient.ground.errors import ConfigError
from mcpclient.serverkit.http.app import AsgiApp, asgi
from mcpclient.serverkit.http.call import is_loopback
from mcpclient.serverkit.stdio import threads_left

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.serverkit.server import Server

_log = logging.getLogger("mcpclient.serverkit")
# How long uvicorn lets responses end when it stops, in seconds.
_GRACE = 2


def serve_http(
    server: Server | AsgiApp,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    ready: Callable[[str], object] | None = None,
    **options: Any,
) -> None:
    """Serve over HTTP until SIGINT or SIGTERM comes.

    If a plain function still runs in a thread after SIGINT, the process ends at once.

    Args:
        server: The server, or what :func:`asgi` made of it.
        host: The address to listen on. Beyond loopback anyone who reaches it may use it, unless
            ``auth`` says otherwise.
        port: The port; 0: any free one.
        ready: Called with the URL once it listens.
        options: Those of :func:`asgi`, for a server.

    Raises:
        ConfigError: uvicorn is not installed.
        OSError: The address cannot be had.
    """
    try:
        import uvicorn
    except ImportError:
        raise ConfigError(
            "serving over HTTP needs uvicorn: pip install 'mcpclient[serve]'"
        ) from None
    if not isinstance(server, AsgiApp):
        server = asgi(server, **options)
    elif options:
        raise ConfigError(f"{', '.join(options)}: give that to asgi() already")
    app = server
    if not is_loopback(host) and not app.guarded:
        _log.warning("! %s is open to whoever reaches %s", app.server.name, host)

    class _Uvicorn(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if ready is not None and self.started:
                ready(url)

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            # First of all: it waits for the responses to end, and streams do not by themselves.
            await app.close()
            await super().shutdown(sockets)

    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, port), family=family, backlog=2048) as listening:
        name, bound = listening.getsockname()[:2]
        shown = f"[{name}]" if ":" in name else name
        url = f"http://{shown}:{bound}{app.path}"
        config = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=_GRACE,
        )
        try:
            _Uvicorn(config).run(sockets=[listening])
        except KeyboardInterrupt:
            # It has ended in order already, but for plain functions: Ctrl-C shall end them too.
            if threads_left("AnyIO worker"):
                os._exit(130)
