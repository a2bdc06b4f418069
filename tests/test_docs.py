"""The docs are true: their code runs, their pictures are fresh, their links lead somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT, real_servers

PAGES = sorted(
    path for path in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")] if path.name != "LICENSE"
)


def snippets() -> list[tuple[str, str]]:
    """Return each Python block of the docs with a name for it."""
    found = []
    for path in PAGES:
        blocks = re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL)
        found += [(f"{path.name}-{place}", code) for place, code in enumerate(blocks, 1)]
    return found


@pytest.mark.parametrize("code", [pytest.param(code, id=name) for name, code in snippets()])
def test_each_python_block_of_the_docs_runs(code: str, tmp_path: Path) -> None:
    folders = {str(Path(command[0]).parent) for command in real_servers().values()}
    env = {**os.environ, "PATH": os.pathsep.join([*folders, os.environ["PATH"]])}
    env["PYTHONPATH"] = str(ROOT)
    # They run from a folder of their own, in which the fixture servers are where they are here.
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip(), "an example shows something"


def test_the_pictures_of_the_states_are_drawn_from_the_tables_as_they_are() -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "draw_states.py"), "--check"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_link_between_the_docs_leads_to_a_file(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"
