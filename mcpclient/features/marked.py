"""Tools whose arguments go into headers too: those that cannot be called so are left out, aloud.

https://modelcontextprotocol.io/specification/2026-07-28/server/tools
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from mcpclient.ground.text import printable

if TYPE_CHECKING:
    from mcpclient.protocol.mirror import Mirror
    from mcpclient.protocol.types import Tool

_log = logging.getLogger("mcpclient")


def usable(tools: list[Tool], mirror: Mirror, server: str) -> list[Tool]:
    """Return the tools that can be called, and have their marks learnt (HDR-08, HDR-10, HDR-15).

    Args:
        tools: The newest list.
        mirror: What learns.
        server: The server's name, for the warning.
    """
    if not mirror.active:
        return tools
    kept = []
    for tool in tools:
        problem = mirror.learn(tool.name, tool.input_schema)
        if problem is None:
            kept.append(tool)
        elif mirror.news(tool.name, problem):
            shown = printable(tool.name, 100)
            _log.warning("%s ! the tool %r is left out: %s", server, shown, printable(problem, 500))
    return kept
