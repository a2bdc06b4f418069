"""Programs of others take their time, and know nothing of our loop: each test uses one backend.

Both backends take turns: what one test does on asyncio, the next one does on trio.
"""

from __future__ import annotations

import pytest

PROGRAMS = ("programs", "proxied", "workers")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out every other one of those that talk to a program, and of the next the other."""
    dropped: list[pytest.Item] = []
    turn: dict[str, int] = {}
    for item in items:
        callspec = getattr(item, "callspec", None)
        names = getattr(item, "fixturenames", ())
        if "tests/remote" not in item.path.as_posix() or callspec is None:
            continue
        backend = callspec.params.get("anyio_backend")
        if backend is None or not set(PROGRAMS) & set(names):
            continue
        case = item.name.replace(f"{backend}-", "").replace(backend, "")
        number = turn.setdefault(f"{item.path}::{case}", len(turn))
        if backend != ("asyncio", "trio")[number % 2]:
            dropped.append(item)
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        gone = set(dropped)
        items[:] = [item for item in items if item not in gone]
