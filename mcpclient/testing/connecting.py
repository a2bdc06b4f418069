"""One server with an open client, for a test of either. Knows how to tell whose an option is."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from mcpclient.manager.manager import Manager
from mcpclient.manager.spec import ServerSpec, spec_of
from mcpclient.testing.memory import in_memory, is_source

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from mcpclient.manager.server import Server

_OPTIONS = frozenset(ServerSpec.__struct_fields__)


@asynccontextmanager
async def connect(
    source: Any, *, name: str = "server", wait: bool = True, **options: Any
) -> AsyncIterator[Server]:
    """Run one server and give the client's handle of it, on asyncio or trio.

    ``async with connect(server) as client`` begins when it is up, and stops it in the end.

    Args:
        source: A :class:`Script`, a :class:`Replay` or a server of :mod:`mcpclient.serverkit`, each
            served in memory; or whatever :class:`Manager` takes as a server.
        name: What the server is called.
        wait: Whether to wait until it is up; else the first call starts it.
        options: The options of :class:`ServerSpec` and of :class:`Manager`.

    Raises:
        ServerUnavailable: It does not come up; a subclass says why.
    """
    spec, options = split(source, options)
    async with Manager({name: spec}, **options) as manager:
        if wait:
            await manager[name].start()
        yield manager[name]


def split(source: Any, options: dict[str, Any]) -> tuple[ServerSpec, dict[str, Any]]:
    """Return the spec that a source and options mean, and the options that are a manager's."""
    mine = {name: value for name, value in options.items() if name in _OPTIONS}
    rest = {name: value for name, value in options.items() if name not in _OPTIONS}
    return spec_for(source, **mine), rest


def spec_for(source: Any, **options: Any) -> ServerSpec:
    """Return the spec that a source means; see :func:`connect`."""
    if is_source(source):
        return in_memory(source, **options)
    spec = spec_of(source)
    return msgspec.structs.replace(spec, **options) if options else spec
