"""Versions are compared by their place in a list and never as text."""

from __future__ import annotations

from typing import Any

import pytest

from mcpclient.protocol.versions import HANDSHAKE, STATELESS, check_era, newest


def test_the_versions_we_speak() -> None:
    assert HANDSHAKE == ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
    assert STATELESS == ("2026-07-28",)


@pytest.mark.parametrize(
    ("theirs", "found"),
    [
        (["2025-06-18", "2024-11-05"], "2025-06-18"),
        (["2024-11-05", "2025-06-18"], "2025-06-18"),
        (HANDSHAKE, "2025-11-25"),
        (["2099-01-01", "2024-11-05", "zzz"], "2024-11-05"),
        (["2025-06-18 ", "2025-6-18"], None),
        ([], None),
        ([None, 2025, ["2025-06-18"], {"a": 1}, "2025-03-26"], "2025-03-26"),
        ({"2025-03-26": 1}, "2025-03-26"),
    ],
)
def test_the_newest_common_version_is_found(theirs: Any, found: str | None) -> None:
    assert newest(HANDSHAKE, theirs) == found


@pytest.mark.parametrize("era", ["auto", "handshake", "stateless", *HANDSHAKE, *STATELESS])
def test_an_era_or_a_version_is_a_setting(era: str) -> None:
    assert check_era(era) == era


@pytest.mark.parametrize("era", ["", "Auto", "legacy", "2099-01-01", "2025"])
def test_another_setting_is_refused_with_the_known_ones(era: str) -> None:
    with pytest.raises(ValueError) as caught:
        check_era(era)
    assert str(caught.value) == (
        'era must be "auto", "handshake", "stateless" or one of 2024-11-05, 2025-03-26, '
        f"2025-06-18, 2025-11-25, 2026-07-28, not {era!r}"
    )
