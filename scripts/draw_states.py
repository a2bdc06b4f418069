"""Draws the state machines into ARCHITECTURE.md, from the tables that the code runs on.

``python scripts/draw_states.py`` writes the page anew; ``--check`` only tells whether it is stale.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from mcpclient.connection.inflight import CALL
from mcpclient.ground.table import Table
from mcpclient.protocol.states import SESSION
from mcpclient.supervision.phases import PHASE

PAGE = Path(__file__).resolve().parent.parent / "ARCHITECTURE.md"
TABLES = (SESSION, CALL, PHASE)


def picture(table: Table) -> str:
    """Return a table as a Mermaid state diagram, its moves in the order of the table."""
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {table.start}"]
    for state, moves in table.moves.items():
        targets: dict[str, list[str]] = {}
        for event, target in moves.items():
            targets.setdefault(target, []).append(event)
        lines += [
            f"    {state} --> {target}: {', '.join(events)}" for target, events in targets.items()
        ]
        if not moves:
            lines.append(f"    {state} --> [*]")
    return "\n".join([*lines, "```"])


def drawn(page: str) -> str:
    """Return the page with each picture between its markers drawn anew."""
    for table in TABLES:
        marked = re.compile(rf"(<!-- states: {table.name} -->\n).*?(<!-- end -->)", re.DOTALL)
        if not marked.search(page):
            raise SystemExit(f"ARCHITECTURE.md has no place for the states of {table.name!r}")
        page = marked.sub(rf"\g<1>{picture(table)}\n\g<2>", page)
    return page


def main() -> None:
    """Write the page, or with ``--check`` fail if it is stale."""
    old = PAGE.read_text(encoding="utf-8")
    new = drawn(old)
    if "--check" in sys.argv[1:]:
        if new != old:
            raise SystemExit("ARCHITECTURE.md is stale: run python scripts/draw_states.py")
    else:
        PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
