"""What may be asked a second time when the first time nobody can tell. Only if the user opted in.

A call that was in flight when a server died was sent or not, and carried out or not. Reading
twice harms nobody; calling a tool twice may, unless the server says that it does not.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from mcpclient.features import catalog
from mcpclient.ground.errors import CallLost, McpClientError, ServerDied
from mcpclient.protocol.methods import TOOLS_LIST
from mcpclient.protocol.types import Tool

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpclient.connection.caller import Caller, Timeout

T = TypeVar("T")

_HARMLESS = ("readOnlyHint", "idempotentHint")


async def once_more(
    caller: Caller,
    timeout: Timeout,
    attempt: Callable[[Timeout], Awaitable[T]],
    tool: str | None = None,
    *,
    unsent: bool = False,
) -> T:
    """Return what an attempt gives; if the server or the exchange died of it, try once more.

    Args:
        caller: Who asks.
        timeout: For both attempts together.
        attempt: Makes the call, within the time it is given.
        tool: The tool it calls, or None if it only reads.
        unsent: Whether only what the server did not carry out is tried once more. That needs
            nobody's leave.

    Raises:
        CallLost: The second time as well, or the tool may not be called twice.
    """
    begun = time.monotonic()
    try:
        return await attempt(timeout)
    except CallLost as lost:
        if not isinstance(lost, ServerDied) and not (_broken(lost) and not unsent):
            raise
        limit = caller.limit(timeout)
        left = None if limit is None else begun + limit - time.monotonic()
        if (left is not None and left <= 0) or (unsent and lost.maybe_done):
            raise
        if tool is not None and lost.maybe_done and not await _harmless(caller, tool, left, lost):
            raise
    left = None if limit is None else begun + limit - time.monotonic()
    return await attempt(left if left is None else max(left, 0.001))


def _broken(lost: CallLost) -> bool:
    """Return whether only the exchange broke, with the server still up (HTTP)."""
    return type(lost) is CallLost and lost.maybe_done


async def _harmless(caller: Caller, tool: str, left: float | None, lost: CallLost) -> bool:
    """Ask the new life whether it says that the tool may be called twice."""
    try:
        tools = await catalog.listed(caller, TOOLS_LIST, Tool, left, pages=1000)
    except McpClientError:
        raise lost from None  # it is that call of which the caller must hear
    hints = next((one.annotations for one in tools if one.name == tool), {})
    return any(hints.get(hint) is True for hint in _HARMLESS)
