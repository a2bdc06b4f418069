"""Every case of the kinds shown here has a test, or a reason why not."""

from __future__ import annotations

import importlib

import pytest

from tests.cases import TESTED
from tests.cases.test_table import REPORTS, reported
from tests.conftest import ROOT
from tests.faults import HTTP, WINDOWS

KINDS = {"process": 38, "cancel": 14, "notifications": 11, "event-loop": 7}


@pytest.fixture(scope="module", autouse=True)
def all_are_imported() -> None:
    """The tests of the cases are known, also if this file is run alone."""
    for folder in ("faults", "lives"):
        for path in (ROOT / "tests" / folder).glob("test_*.py"):
            importlib.import_module(f"tests.{folder}.{path.stem}")
    importlib.import_module("tests.http.test_cases")


@pytest.mark.skipif(not REPORTS.exists(), reason="the field reports do not stand beside this tree")
@pytest.mark.parametrize("kind", KINDS)
def test_every_reported_case_has_a_test_or_a_reason(kind: str) -> None:
    ids = reported(REPORTS)[kind]
    assert len(ids) == len(set(ids)) == KINDS[kind]
    assert [id for id in ids if id not in {**TESTED, **WINDOWS, **HTTP}] == []


@pytest.mark.skipif(not REPORTS.exists(), reason="the field reports do not stand beside this tree")
def test_every_reason_is_one_for_a_case_of_these_kinds() -> None:
    known = {id for kind in KINDS for id in reported(REPORTS)[kind]}
    assert [id for id in (*WINDOWS, *HTTP) if id not in known] == []


def test_a_case_that_has_a_test_needs_no_reason() -> None:
    assert [id for id in (*WINDOWS, *HTTP) if id in TESTED] == []
