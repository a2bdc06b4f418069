"""What goes wrong at a prompt, in one line with the next step; the traceback on demand."""

from __future__ import annotations

import sys
from types import TracebackType

from mcpclient.ground.errors import McpClientError
from mcpclient.repl.mistakes import Mistake

# What is told in one line: it is not the user's code that is to be looked for in a traceback.
OURS = (McpClientError, Mistake)


def line(problem: BaseException) -> str:
    """Return an error as a person needs it: what it is, what it says, what to do.

    It has more than one line only if a tool's own message has.
    """
    kind = type(problem)
    if isinstance(problem, Mistake):
        kind = next(base for base in kind.__mro__ if base.__module__ == "builtins")  # Python's word
    said = str(problem)
    return f"{kind.__name__}: {said}" if said else kind.__name__


def remember(problem: BaseException, traceback: TracebackType | None) -> None:
    """Make it the last error of the session, of which the whole traceback can be asked."""
    sys.last_type, sys.last_value, sys.last_traceback = type(problem), problem, traceback
    if sys.version_info >= (3, 12):
        sys.last_exc = problem
