"""How text from outside is shown to a person. Knows nothing of where it came from."""

from __future__ import annotations

import re

# C0 without tab, DEL, C1, the separators some terminals and editors act on, and the marks that
# have letters shown in another order.
_CONTROLS = re.compile(
    "[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def printable(text: str, limit: int = 2000) -> str:
    """Return ``text`` as one line safe to print: controls and lone surrogates become escapes.

    A server's text may hold escape sequences that clear a screen or set a title, or a newline
    that forges a line of a log; they must never reach a terminal or a log as they are. Longer
    texts are cut at ``limit`` characters.
    """
    shown = _CONTROLS.sub(lambda found: ascii(found.group())[1:-1], text[:limit])
    return shown if len(text) <= limit else f"{shown}… ({len(text)} characters)"


def printable_lines(text: str, limit: int = 2000) -> str:
    """Return ``text`` as :func:`printable` does, but with its own newlines kept."""
    shown = "\n".join(printable(line, limit) for line in text[:limit].split("\n"))
    return shown if len(text) <= limit else f"{shown}… ({len(text)} characters)"


def sample(data: bytes, limit: int = 200) -> str:
    """Return the head of some bytes as printable text, for a diagnosis."""
    head = printable(data[:limit].decode("utf-8", "replace"))
    return head if len(data) <= limit else f"{head}… ({size(len(data))})"


def size(count: int) -> str:
    """Return a number of bytes as people write it: ``512 B``, ``1.2 kB``, ``64.0 MB``."""
    if count < 1000:
        return f"{count} B"
    amount = float(count)
    for unit in ("kB", "MB"):
        amount /= 1000
        if amount < 1000:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1000:.1f} GB"


def seconds(amount: float) -> str:
    """Return a span of time as people write it: ``250 ms``, ``5 s``, ``1.5 s``."""
    if amount < 1:
        return f"{amount * 1000:.0f} ms"
    return f"{amount:.3g} s" if amount < 100 else f"{amount:.0f} s"
