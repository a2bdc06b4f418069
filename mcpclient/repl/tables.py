"""Tables for people, as text and as HTML. Whatever stands in a cell is made harmless first."""

from __future__ import annotations

import shutil
import unicodedata
from collections.abc import Sequence
from html import escape

from mcpclient.ground.text import printable

# A cell's characters; what is longer belongs into a docstring.
_CELL = 300
# The narrowest that a last column is cut to, and how many rows are shown.
_NARROW = 20
_ROWS = 500


class Table:
    """Rows under a head. As text it fits the terminal: the last column gives way.

    Args:
        title: What stands above, or an empty string.
        head: The columns' names.
        rows: The rows; each has as many cells as the head.
        note: What stands below, or an empty string.
    """

    def __init__(
        self, title: str, head: Sequence[str], rows: Sequence[Sequence[object]], note: str = ""
    ) -> None:
        self.title = printable(title)
        self.head = tuple(head)
        self.rows = [tuple(_cell(one) for one in row) for row in rows[:_ROWS]]
        left = len(rows) - len(self.rows)
        self.note = "\n".join(
            filter(None, (f"… and {left} more" if left > 0 else "", printable(note)))
        )

    def __str__(self) -> str:
        body = self._body() if self.rows else []
        return "\n".join(part for part in (self.title, *body, self.note) if part)

    __repr__ = __str__

    def _body(self) -> list[str]:
        lines = [self.head, *self.rows]
        widths = [max(width(line[place]) for line in lines) for place in range(len(self.head))]
        room = shutil.get_terminal_size((100, 24)).columns
        widths[-1] = max(_NARROW, min(widths[-1], room - sum(widths[:-1]) - 2 * len(widths[:-1])))
        return [
            "  ".join(
                padded(cut(cell, most), most) for cell, most in zip(line, widths, strict=True)
            ).rstrip()
            for line in lines
        ]

    def html(self) -> str:
        """Return the table as HTML, everything in it escaped."""
        title = f"<caption>{escape(self.title)}</caption>" if self.title else ""
        head = "".join(f"<th>{escape(name)}</th>" for name in self.head)
        style = ' style="text-align: left"'
        body = "".join(
            f"<tr>{''.join(f'<td{style}>{escape(cell)}</td>' for cell in row)}</tr>"
            for row in self.rows
        )
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"

    def _repr_html_(self) -> str:
        return self.html()


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(mark) else 1 + (unicodedata.east_asian_width(mark) in "WF")
        for mark in text
    )


def cut(text: str, most: int) -> str:
    """Return a text that takes at most so many columns."""
    if width(text) <= most:
        return text
    kept = text
    while kept and width(kept) >= most:
        kept = kept[: most - 1] if len(kept) >= most else kept[:-1]
    return f"{kept}…"


def padded(text: str, most: int) -> str:
    """Return a text filled up with blanks to so many columns."""
    return text + " " * (most - width(text))


def first_line(text: str | None) -> str:
    """Return the first line of a text that says something, or an empty string."""
    lines = (line.strip() for line in (text or "")[:2000].splitlines())
    return next((line for line in lines if line), "")


def _cell(value: object) -> str:
    return printable("–" if value is None else str(value), _CELL)
