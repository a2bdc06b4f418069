"""What the newest protocol would rather not see is offered all the same, with one warning."""

from __future__ import annotations

import logging

import pytest

from mcpclient import Manager
from tests.conftest import spec


@pytest.mark.parametrize(("name", "warned"), [("good_stateless", True), ("good_handshake", False)])
async def test_offering_what_is_deprecated_is_warned_of_once(
    name: str, warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "mcpclient")
    async with Manager({"one": spec(name)}, roots=["."]) as manager:
        for _ in range(2):
            await manager["one"].restart()
    said = [record.getMessage() for record in caplog.records]
    assert said == (["one ! 2026-07-28 has deprecated roots"] if warned else [])
