"""Every case of what servers say has a test, or a reason why not here; how they die: ``faults``."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tests.cases import ELSEWHERE, TESTED
from tests.conftest import SHARED

REPORTS = SHARED / "cases" / "field-reports.md"
KINDS = {
    "framing": 21,
    "ids": 13,
    "handshake": 13,
    "capability": 7,
    "tools": 14,
    "resources": 9,
    "prompts": 3,
    "server-requests": 5,
}


def reported(path: Path) -> dict[str, list[str]]:
    """Return the ids of the reported cases, by kind."""
    kinds: dict[str, list[str]] = {}
    kind = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if heading := re.match(r"## (.+)", line):
            kind = heading.group(1)
        elif row := re.match(r"\| (B\d+) \|", line):
            kinds.setdefault(kind, []).append(row.group(1))
    return kinds


@pytest.fixture(scope="module", autouse=True)
def all_are_imported() -> None:
    """The tests of the cases are known, also if this file is run alone."""
    for path in Path(__file__).parent.glob("test_*.py"):
        importlib.import_module(f"tests.cases.{path.stem}")
    importlib.import_module("tests.http.test_cases")


@pytest.mark.skipif(not REPORTS.exists(), reason="the field reports do not stand beside this tree")
@pytest.mark.parametrize("kind", KINDS)
def test_every_reported_case_has_a_test_or_a_reason(kind: str) -> None:
    ids = reported(REPORTS)[kind]
    assert len(ids) == len(set(ids)) == KINDS[kind]
    assert [id for id in ids if id not in TESTED and id not in ELSEWHERE] == []


@pytest.mark.skipif(not REPORTS.exists(), reason="the field reports do not stand beside this tree")
def test_every_case_that_is_named_here_was_reported() -> None:
    known = {id for ids in reported(REPORTS).values() for id in ids}
    assert [id for id in (*TESTED, *ELSEWHERE) if id not in known] == []


def test_a_case_that_has_a_test_needs_no_reason() -> None:
    assert [id for id in ELSEWHERE if id in TESTED] == []
