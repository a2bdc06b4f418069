"""Each misdeed costs what docs/faults.md says, and never a second server's calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpclient import Manager
from tests.cases import case
from tests.faults.matrix import Fault, play
from tests.faults.rows_hosts import HOSTS
from tests.faults.rows_lives import LIVES
from tests.faults.rows_machine import MACHINE
from tests.faults.rows_starts import STARTS
from tests.faults.rows_words import WORDS

ROWS = [*STARTS, *LIVES, *WORDS, *HOSTS, *MACHINE]


@pytest.mark.parametrize("fault", ROWS, ids=lambda fault: fault.name.replace(" ", "-"))
async def test_a_misdeed_costs_what_is_owed_and_no_other_server(
    fault: Fault, manager: Manager, tmp_path: Path
) -> None:
    await play(fault, manager, tmp_path)


for _fault in ROWS:
    case(*_fault.cases)(test_a_misdeed_costs_what_is_owed_and_no_other_server)


def test_the_matrix_has_a_row_for_each_of_many_misdeeds() -> None:
    names = [fault.name for fault in ROWS]
    assert len(names) == len(set(names)) >= 45
