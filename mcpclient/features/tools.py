"""Calling tools. Knows what an error result means; never caches, joins or repeats a call.

https://modelcontextprotocol.io/specification/2026-07-28/server/tools
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpclient.ground.errors import ToolError
from mcpclient.protocol.methods import TOOLS_CALL
from mcpclient.protocol.types import ToolResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpclient.connection.caller import Caller, Timeout
    from mcpclient.connection.progress import Progress


async def call(
    caller: Caller,
    name: str,
    arguments: Mapping[str, Any] | None,
    timeout: Timeout,
    on_progress: Progress | None,
) -> ToolResult:
    """Return a tool's result, whether or not it says that it failed."""
    params = {"name": name, "arguments": {} if arguments is None else arguments}
    return ToolResult(await caller.request(TOOLS_CALL, params, timeout, on_progress))


async def invoke(
    caller: Caller,
    name: str,
    arguments: Mapping[str, Any] | None,
    timeout: Timeout,
    on_progress: Progress | None,
) -> ToolResult:
    """Return a tool's result, or raise ToolError if it says that it failed."""
    params = {"name": name, "arguments": {} if arguments is None else arguments}
    result = ToolResult(await caller.request(TOOLS_CALL, params, timeout, on_progress))
    if result.is_error:
        raise ToolError(result.error_text, result, tool=name, server=caller.name)
    return result
