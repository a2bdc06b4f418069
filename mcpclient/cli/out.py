"""Where a command's words go: results to stdout, all else to stderr, nothing raw to either.

Every text is made safe here, so that no command can forget to. Knows no server.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mcpclient.cli import safe
from mcpclient.cli.problems import Failure, Hangup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from mcpclient.cli.bar import Bar

# No column but the last takes more than this of a terminal's width.
_WIDEST = 48
_LEAST = 16
# Lines that wait while a person is asked; of more, the oldest are dropped.
_HELD = 1000


class Out:
    """The two streams of a command.

    Attributes:
        json: Whether results are JSON, and errors one line of JSON.
        quiet: Whether only results and errors are told.
        verbose: How much more is told.
        terminal: Whether a person reads stdout.
        watched: Whether a person reads stderr.
        writing: Whether a write is under way: then a signal must break it off, for whoever reads
            may never take it.
        broken: Whether stdout took no more.
        interrupted: Whether a signal asked us to leave.
        undo: What brings the terminal back into its state, if it is in another.
        bar: What else is drawn on stderr; it makes place for a talk.
    """

    def __init__(self, *, json: bool = False, quiet: bool = False, verbose: int = 0) -> None:
        self.json = json
        self.quiet = quiet
        self.verbose = verbose
        self.terminal = sys.stdout.isatty()
        self.watched = sys.stderr.isatty()
        self.writing = False
        self.broken = False
        self.interrupted = False
        self.undo: Callable[[], None] | None = None
        self.bar: Bar | None = None
        # What is told aside while a person is asked; None if nobody is.
        self._held: deque[str] | None = None
        plain = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
        self._colour = self.terminal and not plain
        self._colour_aside = self.watched and not plain

    # -- results ---------------------------------------------------------------------------

    def text(self, text: str) -> None:
        """Print a text that ends with a newline, whatever it ended with."""
        shown = safe.lines(text)
        self._write(shown if shown.endswith("\n") else f"{shown}\n")

    def row(self, *cells: str) -> None:
        """Print one line of parts, two blanks between them."""
        self._write("  ".join(map(safe.line, cells)).rstrip() + "\n")

    def heading(self, text: str) -> None:
        """Print a line that stands out."""
        self._write(self._styled(safe.line(text), "1") + "\n")

    def step(self, mark: str, what: str, text: str) -> None:
        """Print one thing that was looked at: ``ok``, ``fail`` or ``note``, what, and how it is."""
        style = {"ok": "32", "fail": "31", "note": "33"}.get(mark, "2")
        shown = self._styled(mark, style) + " " * (5 - len(mark))
        self._write(f"  {shown} {safe.line(what):<10} {safe.line(text)}".rstrip() + "\n")

    def document(self, value: Any, *, stream: bool = False) -> None:
        """Print JSON: indented for a person, one line for a program or in a stream."""
        encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
        indent = 2 if self.terminal and not stream else None
        self._write(safe.jsoned(value, indent=indent, ascii_only=encoding != "utf8") + "\n")

    def table(self, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        """Print a table without its empty columns.

        For a person the last column is cut, so that each row is one line.
        """
        import shutil  # not for help and completion, which must be quick

        width = shutil.get_terminal_size().columns if self.terminal else None
        used = [place for place in range(len(head)) if any(row[place] for row in rows)]
        first, *others = aligned(
            [head[place] for place in used], [[row[place] for place in used] for row in rows], width
        )
        self._write("\n".join([self._styled(first, "2"), *others]) + "\n")

    def raw(self, data: bytes) -> None:
        """Write bytes as they are; somebody asked for just that, and not at a terminal."""
        self._guarded(lambda: (sys.stdout.buffer.write(data), sys.stdout.buffer.flush()))

    # -- aside -----------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Tell a person something that is no result."""
        if not self.quiet and not self.json:
            self.aside(text)

    def aside(self, text: str) -> None:
        """Write a line to stderr; behind a talk with a person, if there is one."""
        if self._held is not None:
            self._held.append(text)
        else:
            self.ask(text.rstrip("\n") + "\n")

    def ask(self, text: str) -> None:
        """Write to stderr what a person is to read at once, as it is but for what acts."""
        try:
            sys.stderr.write(safe.lines(text))
            sys.stderr.flush()
        except OSError:
            pass  # nobody listens there

    @contextmanager
    def talking(self) -> Iterator[None]:
        """Within this a person is asked: all else on stderr waits, at most the last thousand."""
        if self.bar is not None:
            self.bar.pause()
        self._held = held = deque[str](maxlen=_HELD)
        try:
            yield
        finally:
            self._held = None
            self.undo = None
            for text in held:
                self.aside(text)
            if self.bar is not None:
                self.bar.resume()

    def problem(self, failure: Failure) -> None:
        """Tell what went wrong."""
        if self.json:
            facts = {"error": str(failure), **failure.facts, "exit": failure.exit}
            self.aside(safe.jsoned(facts, ascii_only=True))
        else:
            word = "\x1b[31merror:\x1b[0m" if self._colour_aside else "error:"
            text = safe.lines(str(failure)).rstrip("\n")
            try:
                sys.stderr.write(f"{word} {text}\n")
                sys.stderr.flush()
            except OSError:
                pass

    # -- inside ----------------------------------------------------------------------------

    def _styled(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self._colour and text else text

    def _write(self, text: str) -> None:
        self._guarded(lambda: (sys.stdout.write(text), sys.stdout.flush()))

    def _guarded(self, write: Callable[[], object]) -> None:
        self.writing = True
        try:
            write()
        except BrokenPipeError:
            raise Hangup from None
        except OSError as problem:
            self.broken = True
            raise Failure(f"the output cannot be written: {problem.strerror}") from None
        finally:
            self.writing = False


def aligned(head: Sequence[str], rows: Sequence[Sequence[str]], width: int | None) -> list[str]:
    """Return the lines of a table, made safe.

    Args:
        head: What each column is called.
        rows: The cells.
        width: How wide a line may be: the last column takes what is left. None: any.
    """
    from rich.cells import cell_len, set_cell_size  # a letter may be two cells wide, or none

    limit = 100_000 if width is None else 500
    shown = [[safe.brief(cell, limit) for cell in row] for row in (head, *rows)]
    widths = [max(cell_len(row[place]) for row in shown) for place in range(len(head))]
    if width is not None:
        between = 2 * (len(head) - 1)
        if width - sum(widths[:-1]) - between < min(widths[-1], _LEAST):
            widths[:-1] = [min(one, _WIDEST) for one in widths[:-1]]
        left = width - sum(widths[:-1]) - between
        widths[-1] = min(widths[-1], max(left, _LEAST))

    def fitted(cell: str, wide: int) -> str:
        return cell if cell_len(cell) <= wide else set_cell_size(cell, wide - 1) + "…"

    def padded(cell: str, wide: int) -> str:
        cell = fitted(cell, wide)
        return cell + " " * (wide - cell_len(cell))

    return ["  ".join(map(padded, row, widths)).rstrip() for row in shown]
