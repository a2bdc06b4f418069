"""The behaviour suite runs over every version and over memory and stdio, on both backends.

Over a socket it runs with the newest version of each era, each on one backend. The faces that have
a loop of their own run it with these two versions in memory, and each with one of them over stdio.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from mcpclient.protocol.versions import HANDSHAKE, STATELESS
from tests.behaviour.bench import Bench
from tests.relays import relays


@pytest.fixture(params=[*HANDSHAKE, *STATELESS])
def version(request: pytest.FixtureRequest) -> str:
    """The version that the server speaks."""
    return str(request.param)


FACES = {
    "memory": {(face, v) for face in ("blocking", "handles") for v in ("2025-11-25", "2026-07-28")},
    "stdio": {("blocking", "2026-07-28"), ("handles", "2025-11-25")},
}
SOCKET = {("2025-11-25", "trio"), ("2026-07-28", "asyncio")}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what runs over a socket, or on another face, too often."""
    kept = [item for item in items if not _is_too_much(item)]
    config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
    items[:] = kept


def _is_too_much(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    params = callspec.params if callspec is not None else {}
    version, backend = params.get("version"), params.get("anyio_backend")
    if params.get("face", "async") != "async":
        pair = (params["face"], version)
        return backend != "asyncio" or pair not in FACES.get(params.get("medium", "memory"), ())
    return params.get("medium") == "unix" and (version, backend) not in SOCKET


@pytest.fixture(params=["memory", "stdio", "unix"])
def medium(request: pytest.FixtureRequest) -> str:
    """What stands between client and server."""
    return str(request.param)


@pytest.fixture(params=["async", "blocking", "handles"])
def face(request: pytest.FixtureRequest) -> str:
    """Which face the test looks at."""
    return str(request.param)


@pytest.fixture
async def bench(version: str, medium: str, face: str) -> AsyncIterator[Bench]:
    """A bench that is still to be opened; every frame of the test is checked after it."""
    with relays() as relay:
        one = Bench(version, medium, relay, face)
        yield one
        if one.lives:
            await one.manager.close()
    one.check()
