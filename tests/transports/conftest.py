"""Servers and pipes for the tests; none is left whatever a test does."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
from anyio import CapacityLimiter

from mcpclient import Limits, Timeouts, loops
from mcpclient.transports import stdio
from mcpclient.transports.process import Command
from mcpclient.transports.stdio import StdioTransport
from tests.conftest import SERVERS
from tests.transports.pipes import Pipe
from tests.transports.sinks import Recorder

# Patience that no test waits out, unless it says so.
PATIENT = Timeouts(eof=60.0, term=60.0, write=60.0)

Launch = Callable[..., Awaitable[tuple[StdioTransport, Recorder]]]


def shell(script: str) -> tuple[str, ...]:
    return ("/bin/sh", "-c", script)


def fixture_server(name: str, *args: str) -> tuple[str, ...]:
    return (sys.executable, str(SERVERS / f"{name}.py"), *args)


@pytest.fixture
def no_pidfd(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that has no descriptors for processes."""

    def refuse(pid: int) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", refuse)


@pytest.fixture(params=["pidfd", "no pidfd"])
def either_way(request: pytest.FixtureRequest) -> str:
    """Ends are told by a pidfd, or found out without."""
    if request.param == "no pidfd":
        request.getfixturevalue("no_pidfd")
    return str(request.param)


@pytest.fixture
async def launch() -> AsyncIterator[Launch]:
    """Start a server and return its transport, started, and the sink that listens to it."""
    launched: list[StdioTransport] = []
    limiter = CapacityLimiter(4)

    async def start(
        argv: tuple[str, ...],
        *,
        timeouts: Timeouts = PATIENT,
        limits: Limits = Limits(),  # noqa: B008 - frozen
        kill_tree: bool = True,
        listen: bool = True,
        **options: Any,
    ) -> tuple[StdioTransport, Recorder]:
        transport = await stdio.spawn(
            Command(argv, **options),
            loop=loops.current(),
            limiter=limiter,
            timeouts=timeouts,
            limits=limits,
            kill_tree=kill_tree,
        )
        launched.append(transport)
        sink = Recorder()
        if listen:
            transport.start(sink)
        return transport, sink

    yield start
    for transport in launched:
        transport.kill()


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.outbox.stop()
    made.hang_up()
    os.close(made.writer)
