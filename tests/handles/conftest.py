"""A manager of handles that is open, and how its tests tick."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mcpclient.handles import Manager


@pytest.fixture
def host() -> Iterator[Manager]:
    """An open manager of handles, without servers."""
    with Manager() as manager:
        yield manager


def until(fact: Callable[[], Any], within: float = 10.0) -> Any:
    """Wait until a fact holds, without ticking, and return it; fail if it does not in time."""
    end = time.monotonic() + within
    while not (found := fact()):
        if time.monotonic() > end:
            pytest.fail(f"did not come true within {within} s")
        time.sleep(0.002)
    return found


def ticking(manager: Manager, fact: Callable[[], Any], within: float = 10.0) -> Any:
    """Tick until a fact holds and return it."""

    def look() -> Any:
        manager.tick()
        return fact()

    return until(look, within)
