"""The ids of our requests, and which of them an answer means. Knows no call.

Ids are counted from 1 and never used twice in the life of a connection: old servers require
it (BASE-05), id 0 is taken for "absent" by careless ones, and small numbers survive servers
that keep 32 bits.
"""

from __future__ import annotations

import re

_NUMBER = re.compile(r"\s*(\d{1,18})(?:\.0+)?\s*\Z", re.ASCII)


def meant(id: object) -> int | None:
    """Return the request id that an answer's id means, or None if it can mean none of ours.

    ``1``, ``1.0``, ``"1"`` and ``"1.0"`` all mean 1: all our ids are integers, so a number in
    another dress is not ambiguous. ``true`` does not mean 1.
    """
    if type(id) is int:
        return id
    if isinstance(id, float) and id.is_integer():
        return int(id)
    if isinstance(id, str):
        found = _NUMBER.match(id)
        return int(found.group(1)) if found else None
    return None
