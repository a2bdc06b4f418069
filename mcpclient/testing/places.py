"""Where in a user's test something was written. Knows frames, nothing of servers."""

from __future__ import annotations

import os
import sys

_OURS = "mcpclient.testing"


def here() -> str:
    """Return the file and line of the caller outside of this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    path = frame.f_code.co_filename
    near = os.path.relpath(path) if os.path.isabs(path) else path
    return f"{path if near.startswith('..') else near}:{frame.f_lineno}"


def _is_ours(module: str) -> bool:
    return module == _OURS or module.startswith(f"{_OURS}.")
