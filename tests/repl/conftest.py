"""A server to explore, and the two managers that it is explored over."""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpclient import Manager, ServerSpec, Timeouts, blocking
from mcpclient.repl import Explorer, Servers, explore
from tests.conftest import QUICK

# The picture of its tool `picture`.
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5E"
    "rkJggg=="
)
SERVER = Path(__file__).with_name("server.py")


def spec(**options: Any) -> ServerSpec:
    """Return the spec of the server to explore."""
    options.setdefault("timeouts", Timeouts(eof=1.0, term=0.5))
    return ServerSpec(sys.executable, [str(SERVER)], restart=QUICK, **options)


async def settled(answer: Any) -> Any:
    """Return what a call gives, over either face."""
    return await answer if inspect.isawaitable(answer) else answer


@pytest.fixture
def manager() -> Iterator[blocking.Manager]:
    """An open blocking manager of one server."""
    with blocking.Manager({"git": spec()}) as opened:
        yield opened


@pytest.fixture
def git(manager: blocking.Manager) -> Explorer:
    """Its server, explored."""
    return explore(manager)["git"]


@pytest.fixture(params=["async", "blocking"])
async def servers(request: pytest.FixtureRequest) -> AsyncIterator[Servers]:
    """A server, explored over each face; what a call gives goes through :func:`settled`."""
    named = {"git": spec(), "odd-one": spec()}
    if request.param == "async":
        async with Manager(named) as opened:
            yield explore(opened)
    else:
        with blocking.Manager(named) as blocked:
            yield explore(blocked)
