"""Opens a page in the person's browser, without a shell and without its noise on our streams."""

from __future__ import annotations

import subprocess
import sys

# Whatever runs longer is the browser itself, which is not waited for.
_PATIENCE = 3.0
_OPEN = "import sys, webbrowser; sys.exit(not webbrowser.open(sys.argv[1]))"
# Those that were not waited for: they are reaped with the next one.
_left: list[subprocess.Popen[bytes]] = []


def opened(url: str) -> bool:
    """Open a page, and return whether a browser took it; takes at most a few seconds.

    Args:
        url: What a person agreed to open, as :func:`mcpclient.asking.pages.page` let it pass.
    """
    _left[:] = [one for one in _left if one.poll() is None]
    # In a process of its own: which browser there is, and whether it stays in front, nobody knows.
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", _OPEN, url],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(_PATIENCE) == 0
    except subprocess.TimeoutExpired:
        _left.append(process)
        return True
