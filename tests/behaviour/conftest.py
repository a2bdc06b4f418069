"""The behaviour suite runs over every version and over memory and stdio, on both backends."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from mcpclient.protocol.versions import HANDSHAKE, STATELESS
from tests.behaviour.bench import Bench


@pytest.fixture(params=[*HANDSHAKE, *STATELESS])
def version(request: pytest.FixtureRequest) -> str:
    """The version that the server speaks."""
    return str(request.param)


@pytest.fixture(params=["memory", "stdio"])
def medium(request: pytest.FixtureRequest) -> str:
    """What stands between client and server."""
    return str(request.param)


@pytest.fixture
async def bench(version: str, medium: str) -> AsyncIterator[Bench]:
    """A bench that is still to be opened; every frame of the test is checked after it."""
    one = Bench(version, medium)
    yield one
    if one.lives:
        await one.manager.close()
    one.check()
