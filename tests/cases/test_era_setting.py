"""The setting ``era``: a server is spoken to as its user says, or fails by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpclient import Manager, OpeningFailed
from tests.cases import ONE_LIFE, counted, hasty, refused, started
from tests.conftest import spec


@pytest.mark.parametrize(
    ("era", "version"),
    [
        ("handshake", "2025-11-25"),
        ("2025-11-25", "2025-11-25"),
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
    ],
)
async def test_a_handshake_that_was_asked_for_is_not_preceded_by_a_probe(
    manager: Manager, era: str, version: str
) -> None:
    server = await manager.add("pinned", spec("good_handshake", era=era))
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert (server.era, server.protocol_version) == ("handshake", version)
    journal = json.loads((await server.invoke_tool("journal", {})).text)
    assert journal[0]["method"] == "initialize"
    assert journal[0]["params"]["protocolVersion"] == version
    assert [m["method"] for m in journal[1:3]] == ["notifications/initialized", "tools/call"]


@pytest.mark.parametrize("era", ["stateless", "2026-07-28"])
async def test_the_stateless_era_may_be_asked_for(manager: Manager, era: str) -> None:
    server = await manager.add("pinned", spec("good_stateless", era=era))
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert (server.era, server.protocol_version) == ("stateless", "2026-07-28")


@pytest.mark.parametrize("era", ["stateless", "2026-07-28"])
async def test_a_handshake_server_that_must_be_stateless_fails_by_name(
    manager: Manager, era: str, tmp_path: Path
) -> None:
    server = await manager.add("old", spec("good_handshake", era=era))
    failure = await refused(server)
    assert isinstance(failure, OpeningFailed)
    assert failure.final
    assert str(failure).startswith(
        f'server "old": the server does not know server/discover, so it is not of the era {era!r}; '
        'set era="auto"'
    )
    pids = tmp_path / "pids"
    # There is nothing to fall back to, so it may use all the time that the opening has.
    hasty_ones = hasty(probe=0.1, open=0.4)
    one = spec("ignores_probe", era=era, timeouts=hasty_ones, restart=ONE_LIFE)
    deaf = await manager.add("deaf", counted(pids, one))
    assert "did not open within 400 ms" in str(await refused(deaf))
    touchy = await manager.add(
        "touchy", counted(pids, spec("dies_on_probe", era=era, restart=ONE_LIFE))
    )
    assert "exit code 1" in str(await refused(touchy))
    # No second process was tried: that could only shake hands.
    assert len(started(pids)) == 2


@pytest.mark.parametrize("era", ["handshake", "2025-06-18"])
async def test_a_stateless_server_that_must_shake_hands_fails_by_name(
    manager: Manager, era: str
) -> None:
    server = await manager.add("modern", spec("good_stateless", era=era))
    failure = await refused(server)
    assert isinstance(failure, OpeningFailed)
    assert failure.final
    assert 'the server speaks only the stateless era; set era="auto"' in str(failure)
