"""A home of its own for each test of the command line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.driving import Shell


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    """What runs commands in this process, in an empty folder that is home as well."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("XDG_CONFIG_HOME", "MCPCLIENT_CONFIG", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return Shell(tmp_path, capsys, monkeypatch)
