"""Every case of the kind http has a test."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from tests.cases import TESTED
from tests.cases.test_table import REPORTS, reported


@pytest.fixture(scope="module", autouse=True)
def all_are_imported() -> None:
    """The tests of the cases are known, also if this file is run alone."""
    for path in Path(__file__).parent.glob("test_*.py"):
        importlib.import_module(f"tests.http.{path.stem}")


@pytest.mark.skipif(not REPORTS.exists(), reason="the field reports do not stand beside this tree")
def test_every_reported_case_has_a_test() -> None:
    ids = reported(REPORTS)["http"]
    assert len(ids) == len(set(ids)) == 19
    assert [id for id in ids if id not in TESTED] == []
