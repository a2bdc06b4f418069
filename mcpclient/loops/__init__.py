"""Layer 2, its floor: asyncio and trio behind one small interface. Knows no protocol.

What a call costs is decided here, so the fast path uses each loop's own futures, readers and
timers. Neither loop is imported before one of them runs.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mcpclient.ground.errors import LocalProtocolError

if TYPE_CHECKING:
    from mcpclient.loops.base import Loop


def current() -> Loop:
    """Return the loop that runs this code.

    Raises:
        LocalProtocolError: None does.
    """
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_task():
        from mcpclient.loops.trio_loop import TrioLoop

        return TrioLoop()
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None:
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            from mcpclient.loops.asyncio_loop import AsyncioLoop

            return AsyncioLoop(running)
    raise LocalProtocolError("no event loop runs here: use this inside asyncio.run or trio.run")
