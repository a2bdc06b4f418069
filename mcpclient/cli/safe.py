"""What of somebody else's text may reach a terminal: what shows, nothing that acts.

Names, descriptions, results, errors and stderr of servers may hold escape sequences that clear a
screen or set a title, and marks that turn the order of letters around. They become escapes that
can be read.
"""

from __future__ import annotations

import re
from typing import Any

# All of C0 but tab and newline, DEL, C1, the marks that reorder text (bidi), the separators that
# some terminals act on, invisible annotations and tags, and lone surrogates.
_ACTS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
    "\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff]"
)


def lines(text: str) -> str:
    """Return a text safe to print, its own newlines and tabs kept."""
    return _ACTS.sub(_escape, text.replace("\r\n", "\n"))


def line(text: str) -> str:
    """Return a text as one line safe to print; its newlines become escapes."""
    return lines(text).replace("\n", "\\n").replace("\t", " ")


def brief(text: str, limit: int = 500) -> str:
    """Return a text as one line safe to print, white space drawn together, cut at a limit."""
    # Cut first, with room for white space: a description may have megabytes.
    shown = " ".join(text[: 4 * limit].split())
    return _ACTS.sub(_escape, shown if len(shown) <= limit else f"{shown[:limit]}…")


def jsoned(value: Any, *, indent: int | None = None, ascii_only: bool = False) -> str:
    """Return a value as JSON that is safe to print and still means the same."""
    import json  # not for help and completion, which must be quick

    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    # json escapes C0 only. Whatever else acts stands inside of strings, where \u is allowed.
    return _ACTS.sub(_json_escape, text) if indent is None else _indented(text)


def _indented(text: str) -> str:
    return "\n".join(_ACTS.sub(_json_escape, part) for part in text.split("\n"))


def _escape(found: re.Match[str]) -> str:
    return ascii(found.group())[1:-1]


def _json_escape(found: re.Match[str]) -> str:
    # As JSON wants it: four digits each, what lies beyond them as a pair of surrogates.
    data = found.group().encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{data[place : place + 4]}" for place in range(0, len(data), 4))
