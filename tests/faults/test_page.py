"""docs/faults.md tells what the rows of the matrix prove, and what nothing proves yet."""

from __future__ import annotations

from tests.faults.page import PAGE, renewed


def test_the_page_of_faults_is_drawn_from_the_matrix_as_it_is() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert renewed(text) == text, "renew it: python tests/faults/page.py"
