"""The page of the checklist is true: every row is there, and every test that it names exists."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest

from tests.conftest import ROOT, SHARED

PAGE = ROOT / "docs" / "checklist.md"
CHECKLIST = SHARED / "spec" / "client-checklist.md"
LEVELS = ("MUST", "MUST NOT", "SHOULD", "SHOULD NOT", "MAY", "D")
# How a reason begins that a row of MUST or SHOULD may have instead of a test.
REASONS = (
    "Arrays are never sent.",
    "Authorization is the next step",
    "Icons are never",
    "No progress is ever sent.",
    "No URL is opened here.",
    "Not yet:",
    "Nothing polls",
    "Sampling with tools is not offered.",
    "The host's",
    "There is no earlier use",
)


def page() -> dict[str, tuple[str, list[str], str]]:
    """Return the rows of the page: by id the level, the tests, and what else is said."""
    rows: dict[str, tuple[str, list[str], str]] = {}
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if found := re.fullmatch(r"\| ([A-Z]+-\d+) \| ([A-Z ]+) \| (.*) \|", line):
            id, level, shown = found.groups()
            assert id not in rows, f"{id} has two rows"
            parts = shown.split("<br>")
            tests = [part[1:-1] for part in parts if re.fullmatch(r"`[\w/]+\.py::\w+`", part)]
            rest = " ".join(part for part in parts if part[1:-1] not in tests)
            assert "::" not in rest, f"{id}: {rest}"
            rows[id] = (level, tests, rest)
    return rows


def checklist() -> dict[str, str]:
    """Return the level of each row of the checklist."""
    rows = {}
    for line in CHECKLIST.read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\| ([A-Z]+)(-\d+) \| [^|]+ \| ([^|]+) \|", line):
            family, number, level = found.groups()
            rows[family + number] = level.strip()
    return rows


@cache
def defined_in(path: str) -> frozenset[str]:
    """Return the tests that a file defines, as pytest would find them."""
    file = ROOT / "tests" / path
    if not file.is_file():
        return frozenset()
    body = ast.parse(file.read_text(encoding="utf-8")).body
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(one.name for one in body if isinstance(one, kinds) and one.name[:5] == "test_")


needs_checklist = pytest.mark.skipif(
    not CHECKLIST.exists(), reason="the checklist does not stand beside this checkout"
)


@needs_checklist
def test_every_row_of_the_checklist_is_on_the_page_with_its_level() -> None:
    wanted = checklist()
    assert len(wanted) > 300
    assert {id: row[0] for id, row in page().items()} == wanted
    assert list(page()) == list(wanted)


def test_every_test_that_the_page_names_is_there() -> None:
    named = {(id, test) for id, row in page().items() for test in row[1]}
    assert len(named) > 300
    lost = [
        f"{id}: {test}"
        for id, test in sorted(named)
        if test.split("::")[1] not in defined_in(test.split("::")[0])
    ]
    assert lost == []


def test_every_row_has_a_test_or_a_reason() -> None:
    for id, (level, tests, rest) in page().items():
        assert level in LEVELS, id
        assert tests or rest, id
        if not tests and level not in ("MAY", "D"):
            assert rest.startswith(REASONS), f"{id}: {rest}"


def test_what_is_not_done_yet_is_known() -> None:
    undone = [id for id, row in page().items() if "Not yet" in row[2]]
    assert undone == []


def test_a_test_that_is_not_there_would_be_found() -> None:
    assert "test_a_test_that_is_not_there_would_be_found" in defined_in("test_checklist.py")
    assert "test_nothing" not in defined_in("test_checklist.py")
    assert defined_in("no/such.py") == frozenset()
