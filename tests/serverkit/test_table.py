"""The table of what the kit owes is held to the list of it, and to the tests, both ways."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.conftest import ROOT, SHARED

TABLE = ROOT / "docs" / "serverkit-rows.md"
SEEDS = SHARED / "seeds" / "server-kit.md"
# Each section of the list, by the letter of its rows.
SECTIONS = {
    "S": "The server",
    "T": "Tools",
    "P": "Prompts (two generations)",
    "R": "Resources",
    "E": "Everything else",
}


def rows() -> dict[str, list[str]]:
    """Return the tests of each row of the table."""
    found = {}
    for line in TABLE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if re.fullmatch(r"[A-Z]\d+", cells[0]):
            assert cells[0] not in found
            found[cells[0]] = re.findall(r"`(test_\w+)`", cells[2])
    return found


def names() -> list[str]:
    """Return the names of all tests of the kit."""
    found: list[str] = []
    for path in sorted(Path(__file__).parent.rglob("test_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if node.name.startswith("test_"):
                    found.append(node.name)
    return found


def owed(text: str) -> dict[str, int]:
    """Return how many behaviours each section of the list has."""
    found: dict[str, int] = {}
    section = ""
    for line in text.splitlines():
        if line.startswith("## "):
            section = line[3:]
        elif re.match(r"- |\| (?!feature|-)", line):
            found[section] = found.get(section, 0) + 1
    return found


def test_every_row_names_tests_that_there_are() -> None:
    known = names()
    for row, named in rows().items():
        assert named, f"row {row} has no test"
        assert [name for name in named if name not in known] == [], row


def test_no_two_tests_of_the_kit_have_one_name() -> None:
    known = names()
    assert sorted(name for name in set(known) if known.count(name) > 1) == []


@pytest.mark.skipif(not SEEDS.exists(), reason="the list of behaviours does not stand beside it")
def test_every_behaviour_that_is_owed_has_a_row_and_every_row_a_behaviour() -> None:
    counts = owed(SEEDS.read_text(encoding="utf-8"))
    expected = [
        f"{letter}{number}"
        for letter, section in SECTIONS.items()
        for number in range(1, counts[section] + 1)
    ]
    assert list(rows()) == expected


def test_a_section_of_the_list_is_counted_by_its_rows_and_points() -> None:
    text = (
        "## One\n| feature | behaviour |\n|---|---|\n| a | b |\n| c | d |\n## Two\n- e\n  f\n- g\n"
    )
    assert owed(text) == {"One": 2, "Two": 2}
