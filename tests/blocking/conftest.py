"""A blocking manager that is open, and what its tests share."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from mcpclient.blocking import Manager


@pytest.fixture
def blocking() -> Iterator[Manager]:
    """An open blocking manager without servers."""
    with Manager() as manager:
        yield manager


def until(fact: Callable[[], Any], within: float = 10.0) -> Any:
    """Wait until a fact holds and return it; fail if it does not in time."""
    end = time.monotonic() + within
    while not (found := fact()):
        if time.monotonic() > end:
            pytest.fail(f"did not come true within {within} s")
        time.sleep(0.002)
    return found
