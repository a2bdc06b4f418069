"""Each misdeed costs what docs/faults.md says, and never a second server's calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from mcpclient import Manager
from tests.faults.matrix import Fault, play
from tests.faults.rows_hosts import HOSTS
from tests.faults.rows_lives import LIVES
from tests.faults.rows_words import WORDS

ROWS = [*LIVES, *WORDS, *HOSTS]


@pytest.mark.parametrize("fault", ROWS, ids=lambda fault: fault.name.replace(" ", "-"))
async def test_a_misdeed_costs_what_is_owed_and_no_other_server(
    fault: Fault, manager: Manager, tmp_path: Path
) -> None:
    await play(fault, manager, tmp_path)
