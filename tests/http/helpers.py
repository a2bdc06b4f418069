"""What the tests of servers behind URLs share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcpclient import Manager, RestartPolicy, Server, ServerSpec, Timeouts
from tests.http.peer import Handler, Peer, serving

QUICK = RestartPolicy(burst=None, first=0.01, cap=0.05, jitter=0.0)


def web(url: str, **options: Any) -> ServerSpec:
    """Return the spec of a server behind a URL that is dialled again quickly."""
    options.setdefault("restart", QUICK)
    options.setdefault("timeouts", Timeouts(eof=1.0, call=20))
    return ServerSpec(url=url, **options)


@asynccontextmanager
async def reached(
    handler: Handler, *, manager: dict[str, Any] | None = None, path: str = "/mcp", **options: Any
) -> AsyncIterator[tuple[Peer, Server]]:
    """Serve, and give a server of a manager that is behind it; nothing was sent yet."""
    async with serving(handler) as peer, Manager(**(manager or {})) as opened:
        yield peer, await opened.add("web", web(peer.origin + path, **options))
