"""Run the backend on its own stdin and stdout: ``python …/mcpclient_nvim``, from the plugin."""

from __future__ import annotations

import sys
from pathlib import Path

if (
    not __package__
):  # run by its folder: the package is beside us, and nothing of ours is in the way
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    __package__ = "mcpclient_nvim"


def main() -> None:
    """Serve the editor until it goes away; what is lacking is said in one line."""
    if sys.version_info < (3, 11):  # noqa: UP036 - it is whatever Python the editor found
        sys.exit(f"mcpclient needs Python 3.11 or newer, and {sys.executable} is older")
    try:
        from .backend import serve
    except ModuleNotFoundError as lacking:
        sys.exit(
            f"{sys.executable} has no {lacking.name}: "
            f"{sys.executable} -m pip install mcpclient pynvim"
        )
    serve()


main()
