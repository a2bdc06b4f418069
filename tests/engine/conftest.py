"""No program that a test began outlives it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.engine import scripts


@pytest.fixture(autouse=True)
def programs_end(nothing_is_left: None) -> Iterator[None]:
    """End what is still running after a test."""
    yield
    scripts.end_all()
