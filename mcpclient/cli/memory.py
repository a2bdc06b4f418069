"""How much memory the processes of servers take. Knows only numbers.

A server is the leader of a session, so all that it started counts as its own, unless that left the
session.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_PROC = Path("/proc")


def resident(leaders: Iterable[int]) -> dict[int, int]:
    """Return the resident bytes of each leader's session; empty where that cannot be found out."""
    found = dict.fromkeys(leaders, 0)
    if not found or not (_PROC / "self" / "statm").exists():
        return {}
    page = os.sysconf("SC_PAGE_SIZE")
    for name in os.listdir(_PROC):
        if not name.isdigit():
            continue
        try:
            stat = (_PROC / name / "stat").read_text(errors="replace")
            # After the name, which may hold anything: state, parent, group, session, ….
            session = int(stat.rpartition(")")[2].split()[3])
            if session in found:
                pages = (_PROC / name / "statm").read_text().split()[1]
                found[session] += int(pages) * page
        except (OSError, ValueError, IndexError):
            continue  # it ended while it was looked at
    return found
