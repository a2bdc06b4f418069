"""The page about the command line is true: its commands print what it says they print."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.driving import ROOT, environment

PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```console\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def commands(block: str) -> list[tuple[str, str]]:
    """Return each command of a block with what it prints."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize(
    ("command", "shown"), [pair for block in BLOCKS for pair in commands(block)]
)
def test_each_command_prints_what_the_page_says(command: str, shown: str, tmp_path: Path) -> None:
    [entries] = re.findall(r"^```json\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    (tmp_path / ".mcp.json").write_text(entries)
    place = tmp_path / "bin"
    place.mkdir()
    for name, words in (("python3", ""), ("mcpclient", "-m mcpclient ")):
        script = place / name
        script.write_text(f'#!/bin/sh\nexec {sys.executable} {words}"$@"\n')
        script.chmod(0o755)
    ran = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env=environment(tmp_path, PATH=f"{place}{os.pathsep}{os.environ['PATH']}"),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
    )
    # An ellipsis stands for what differs from run to run, and with it how wide a column is.
    wanted, printed = (re.sub(" +", " ", text.rstrip("\n")) for text in (shown, ran.stdout))
    pattern = ".*".join(map(re.escape, wanted.split("…")))
    assert re.fullmatch(pattern, printed), ran.stdout


def test_the_page_tells_every_command_and_every_common_option() -> None:
    from mcpclient.cli.app import SECTIONS, cli

    for section in SECTIONS.values():
        for name in section:
            assert re.search(
                rf"`(?:mcpclient )?{name}\b|^\$ mcpclient {name}\b", PAGE, re.MULTILINE
            )
    for option in cli.params:
        assert any(f"`{name}" in PAGE for name in option.opts if name != "--version") or (
            "--version" in option.opts
        )
