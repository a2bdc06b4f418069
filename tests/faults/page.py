"""Draws the tables of docs/faults.md from the rows: `python tests/faults/page.py` renews them."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.faults import HTTP, WINDOWS  # noqa: E402
from tests.faults.matrix import Fault  # noqa: E402
from tests.faults.rows_hosts import HOSTS  # noqa: E402
from tests.faults.rows_lives import LIVES  # noqa: E402
from tests.faults.rows_machine import MACHINE  # noqa: E402
from tests.faults.rows_starts import STARTS  # noqa: E402
from tests.faults.rows_words import WORDS  # noqa: E402

PAGE = ROOT / "docs" / "faults.md"
NTH = {2: "second", 3: "third", 6: "sixth"}


def tables() -> dict[str, str]:
    """Return the tables by the names under which they stand in the page."""
    return {
        "lives": rows([*STARTS, *LIVES]),
        "words": rows(WORDS),
        "hosts": rows([*HOSTS, *MACHINE]),
        "windows": cases(WINDOWS),
        "http": cases(HTTP),
    }


def rows(faults: list[Fault]) -> str:
    """Return some rows of the matrix as a table."""
    lines = ["| misdeed | its caller gets | after it | incident |", "|---|---|---|---|"]
    for fault in faults:
        cells = (fault.name, gets(fault), state(fault), incident(fault))
        lines.append(f"| {' | '.join(cell.replace('|', '&#124;') for cell in cells)} |")
    return "\n".join(lines)


def gets(fault: Fault) -> str:
    """Return what the one who asked gets."""
    if fault.error is None:
        return "what was asked for"
    parts = " … ".join(part.replace("\n", " ") for part in fault.says)
    return f"`{fault.error.__name__}`: {parts}" if parts else f"`{fault.error.__name__}`"


def state(fault: Fault) -> str:
    """Return the state of the server in the end."""
    if fault.after == "up" and fault.life > 1:
        return f"up, in its {NTH[fault.life]} life"
    return fault.after


def incident(fault: Fault) -> str:
    """Return what is recorded."""
    if not fault.incidents:
        return "–"
    times = f"{fault.incidents} times: " if fault.incidents > 1 else ""
    return times + fault.incident


def cases(reasons: dict[str, str]) -> str:
    """Return cases of the field reports with the reasons why they are not shown."""
    lines = ["| case | why |", "|---|---|"]
    return "\n".join([*lines, *(f"| {id} | {reason} |" for id, reason in reasons.items())])


def renewed(text: str) -> str:
    """Return a page with all its tables drawn anew."""
    for name, table in tables().items():
        begin, end = f"<!-- table: {name} -->\n", "\n<!-- end -->"
        head, found, rest = text.partition(begin)
        assert found, f"the page has no table {name!r}"
        text = head + begin + table + rest[rest.index(end) :]
    return text


if __name__ == "__main__":
    PAGE.write_text(renewed(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
