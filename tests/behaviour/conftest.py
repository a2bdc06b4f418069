"""The behaviour suite runs over every version and over memory and stdio.

In memory that is on both backends; over stdio as well with the newest version of each era, while
the older ones, which differ in no way that a process could show, take turns.
Over a socket and over HTTP it runs with the newest version of each era, each on one backend; so it
does through a proxy that is harmless but odd. The faces that have
a loop of their own run it with these two versions in memory, and each with one of them over stdio.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from mcpclient.protocol import versions
from tests.behaviour.bench import Bench
from tests.http.peer import serving
from tests.relays import relays
from tests.remote.faults import Cutting, Fault, Late, Pieces, Trickle, proxy
from tests.remote.site import Site


@pytest.fixture(params=[*versions.HANDSHAKE, *versions.STATELESS])
def version(request: pytest.FixtureRequest) -> str:
    """The version that the server speaks."""
    return str(request.param)


FACES = {
    "memory": {(face, v) for face in ("blocking", "handles") for v in ("2025-11-25", "2026-07-28")},
    "stdio": {("blocking", "2026-07-28"), ("handles", "2025-11-25")},
}
SOCKET = {("2025-11-25", "trio"), ("2026-07-28", "asyncio")}
TURNS = {"2024-11-05": "asyncio", "2025-03-26": "trio", "2025-06-18": "asyncio"}
# What stands between them over HTTP, by the name of the medium.
FAULTS: dict[str, type[Fault]] = {
    "trickle": Trickle,
    "pieces": Pieces,
    "late": Late,
    "cutting": Cutting,
}
PROXIED = {
    "trickle": SOCKET,
    "pieces": {("2025-11-25", "asyncio"), ("2026-07-28", "trio")},
    "late": {("2025-11-25", "asyncio"), ("2026-07-28", "trio")},
    # Only of the handshake era can a stream be resumed.
    "cutting": {("2025-11-25", "asyncio"), ("2025-11-25", "trio")},
}


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
    medium = params.get("medium")
    if medium == "http" or medium in FAULTS:
        if is_of_another(item, version in versions.STATELESS):
            return True
        return (version, backend) not in PROXIED.get(medium, SOCKET)
    if medium == "stdio" and version in TURNS:
        return backend != TURNS[version]
    return medium == "unix" and (version, backend) not in SOCKET


def is_of_another(item: pytest.Item, stateless: bool) -> bool:
    """Return whether a test is of what is otherwise over HTTP, as `tests/http` shows it.

    Lives end by the loss of a session, or cannot be seen to end; what comes late may find that
    nobody reads; and in the stateless era the closing of a stream stands for a cancellation.
    """
    name = getattr(item, "originalname", "")
    return (
        item.path.name == "test_restart.py"
        or name == "test_an_answer_after_the_time_out_is_dropped_silently"
        or (
            stateless
            and name
            in (
                "test_a_subscription_is_agreed_used_and_given_back",
                "test_a_shared_read_is_cancelled_only_when_nobody_wants_it",
            )
        )
    )


@pytest.fixture(params=["memory", "stdio", "unix", "http", *FAULTS])
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
        async with _site(one):
            yield one
            if one.lives:
                await one.manager.close()
    one.check()


@asynccontextmanager
async def _site(bench: Bench) -> AsyncIterator[None]:
    """Serve the suite's server over HTTP, where that is the medium."""
    if bench.medium != "http" and bench.medium not in FAULTS:
        yield
        return
    site = Site(bench.version, bench.peer, streams=bench.medium != "http")
    fault = FAULTS.get(bench.medium, Fault)
    async with serving(site) as served, proxy(served.port, fault) as between:
        bench.url = served.url if bench.medium == "http" else f"{between.origin}/mcp"
        yield
