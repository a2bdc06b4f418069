"""What the names that servers give are called in Python. Knows words, not what they name.

The mapping: compatibility forms are unified as Python does it (NFKC); each character that cannot
stand in a Python name becomes ``_``; a name that would begin with a digit gets ``_`` in front, a
keyword gets ``_`` behind: ``git-status`` is ``git_status``, ``from`` is ``from_``. Where two names
become the same, the one that needed no change keeps it, and the others get ``_2``, ``_3`` … in
the order of the list. The server's own name always works in brackets: ``tools["git-status"]``.
"""

from __future__ import annotations

import difflib
import keyword
import unicodedata
from collections.abc import Iterable

from mcpclient.ground.text import printable

# Longer names are cut before they become Python's; the one in brackets stays whole.
_LENGTH = 100


def identifier(name: str) -> str:
    """Return the Python name that a name becomes."""
    unified = unicodedata.normalize("NFKC", name[:_LENGTH])
    word = "".join(mark if f"x{mark}".isidentifier() else "_" for mark in unified)
    # Not only digits: there are marks that may follow, but not begin.
    if not word.isidentifier():
        word = f"_{word}"
    return f"{word}_" if keyword.iskeyword(word) else word


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Return names by the Python names that they become, in the order given."""
    order = list(dict.fromkeys(names))
    changed = {name: identifier(name) for name in order}
    taken = {name for name, word in changed.items() if word == name}
    numbers: dict[str, int] = {}  # the last one tried: a server may have thousands that clash
    for name in order:
        word = changed[name]
        if word == name:
            continue
        number = numbers.get(word, 1)
        while changed[name] in taken:
            number += 1
            changed[name] = f"{word}_{number}"
        numbers[word] = number
        taken.add(changed[name])
    return {changed[name]: name for name in order}


def nearest(name: str, known: Iterable[str]) -> str:
    """Return how a sentence about an unknown name ends: the one that was meant, or all."""
    words = list(known)
    near = difflib.get_close_matches(name, words, n=1)
    if near:
        return f"; did you mean {printable(near[0], 200)!r}?"
    shown = ", ".join(printable(word, 200) for word in words[:20])
    more = f", … ({len(words)} in all)" if len(words) > 20 else ""
    return f" (known: {shown or 'none'}{more})"
