"""Servers on sockets; none is left whatever a test does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

from mcpclient import Manager, Server
from tests.lives.streams import at
from tests.relays import Listener, Relay, listeners, relays

Serve = Callable[..., Awaitable[Server]]


@pytest.fixture
def relay() -> Iterator[Callable[..., Relay]]:
    with relays() as make:
        yield make


@pytest.fixture
def listen() -> Iterator[Callable[..., Listener]]:
    with listeners() as make:
        yield make


@pytest.fixture
async def serve(relay: Callable[..., Relay]) -> AsyncIterator[Serve]:
    """Make a server of a manager out of a fixture server on a socket."""
    async with Manager() as manager:

        async def make(name: str, *args: object, kind: str = "unix", **options: Any) -> Server:
            url = relay(kind, name, *args).url
            return await manager.add(name, at(url, **options))

        yield make
