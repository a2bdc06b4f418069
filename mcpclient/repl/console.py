"""The prompt for where IPython is not: Python's own, with ``await`` and completion.

It is the standard library's console. What is awaited runs on one asyncio loop, which is made at
the first ``await`` and runs while something is awaited, not while a person types.
"""

from __future__ import annotations

import ast
import code
import inspect
import sys
import traceback
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from mcpclient.repl import failures
from mcpclient.repl.completion import offers

if TYPE_CHECKING:
    import asyncio


class Console(code.InteractiveConsole):
    """Reads, runs and shows. ``close`` ends the loop of what was awaited."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        """Make a console.

        Args:
            namespace: The names that code is run with; ``tb`` joins them.
        """
        super().__init__(namespace, filename="<mcpclient>")
        self.compile.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        self._names = namespace
        self._runner: asyncio.Runner | None = None
        namespace.setdefault("tb", self.tb)

    def runcode(self, code: CodeType) -> None:
        """Run some code; if it awaits, on the loop. Ctrl-C ends it and not the console."""
        try:
            found = FunctionType(code, self._names)()
            if inspect.iscoroutine(found):
                self._loop().run(found)
        except SystemExit:
            raise
        except BaseException:  # the console's outer edge: whatever is raised is shown
            self.showtraceback()

    def showtraceback(self) -> None:
        """Show the present error: ours, and an interruption, in one line."""
        _, problem, trace = sys.exc_info()
        assert problem is not None
        if isinstance(problem, (*failures.OURS, KeyboardInterrupt)):
            failures.remember(problem, trace)
            self.write(f"{failures.line(problem)}\n")
        else:
            super().showtraceback()
        del problem, trace

    @staticmethod
    def tb() -> None:
        """Show the whole traceback of the last error."""
        if getattr(sys, "last_value", None) is None:
            print("there was no error yet")
        else:
            traceback.print_last()

    def close(self) -> None:
        """End the loop, and cancel what still runs on it."""
        if self._runner is not None:
            self._runner.close()

    def _loop(self) -> asyncio.Runner:
        if self._runner is None:
            import asyncio

            self._runner = asyncio.Runner()
        return self._runner

    def written(self) -> str:
        """Return the lines of the statement that is being written, without the present one."""
        return "".join(f"{line}\n" for line in self.buffer)


def interact(namespace: dict[str, Any], banner: str) -> None:
    """Talk to a person until the end of input.

    Raises:
        SystemExit: The person said ``exit()``.
    """
    console = Console(namespace)
    restore = _completing(console, namespace)
    try:
        console.interact(banner, exitmsg="")
    finally:
        restore()
        console.close()


def _completing(console: Console, namespace: dict[str, Any]) -> Callable[[], None]:
    """Have Tab complete; return what undoes it."""
    try:
        import readline
        import rlcompleter
    except ImportError:
        return lambda: None  # a Python without readline: one types all of it
    others = rlcompleter.Completer(namespace)
    found: list[str] = []

    def complete(text: str, state: int) -> str | None:
        if state == 0:
            begin, end = readline.get_begidx(), readline.get_endidx()
            line = readline.get_line_buffer()
            mine = matches(console.written(), line, begin, end, namespace)
            found[:] = _listed(others, text) if mine is None else mine
        return found[state] if state < len(found) else None

    before, delimiters = readline.get_completer(), readline.get_completer_delims()
    readline.set_completer(complete)
    # A quote that ends its word for it, it would close by itself, and we as well.
    readline.set_completer_delims("".join(mark for mark in delimiters if mark not in "\"'"))
    # macOS has another library under the same name.
    libedit = "libedit" in (readline.__doc__ or "")
    readline.parse_and_bind("bind ^I rl_complete" if libedit else "tab: complete")

    def restore() -> None:
        readline.set_completer(before)
        readline.set_completer_delims(delimiters)

    return restore


def matches(
    above: str, line: str, begin: int, end: int, namespace: dict[str, Any]
) -> list[str] | None:
    """Return what readline may put in place of a part of a line; None if nothing here knows.

    Args:
        above: The lines of the statement that were written before.
        line: The line.
        begin: Where the part begins that is replaced.
        end: Where the cursor is.
        namespace: The names that the code is run with.
    """
    offer = offers(above + line[:end], namespace, line[end:])
    if offer is None:
        return None
    start = offer.start - len(above)
    if start >= begin:
        return [line[begin:start] + text for text in offer.texts]
    # It cuts its words elsewhere, in the middle of a URI say: only what follows is replaced.
    kept = line[max(start, 0) : begin]
    return [text[len(kept) :] for text in offer.texts if text.startswith(kept)]


def _listed(others: Any, text: str) -> list[str]:
    found: list[str] = []
    while (one := others.complete(text, len(found))) is not None:
        found.append(one)
    return found
