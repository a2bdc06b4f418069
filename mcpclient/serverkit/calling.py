"""How a tool is called: it exists, the caller may, task or not, good arguments; then it runs.

https://modelcontextprotocol.io/specification/2026-07-28/server/tools
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from mcpclient.serverkit import response
from mcpclient.serverkit.common import allowed, declared, offered, params_of, visible
from mcpclient.serverkit.components import TOOLS, Tool
from mcpclient.serverkit.errors import (
    AskFailed,
    MissingCapability,
    RpcError,
    ToolFailure,
    said,
    unwrapped,
)
from mcpclient.serverkit.exchange import Exchange
from mcpclient.serverkit.frame import Frame
from mcpclient.serverkit.functions import called
from mcpclient.serverkit.schema import Invalid
from mcpclient.serverkit.tasks import Task

if TYPE_CHECKING:
    from collections.abc import Awaitable

_log = logging.getLogger("mcpclient.serverkit")


async def call_tool(exchange: Exchange) -> dict[str, Any]:
    """Call a tool."""
    declared(exchange, TOOLS)
    params = params_of(exchange)
    name = params.text("name")
    tool = cast("Tool | None", offered(exchange, TOOLS).get(name))
    if tool is None:
        known = [one.name for one in visible(exchange, TOOLS)]
        raise exchange.era.unknown_tool(name, known)
    allowed(exchange, tool)
    plan = exchange.era.task_plan(exchange, tool)
    try:
        args = tool.read(params)
    except Invalid as problem:
        return _failed(exchange, tool, f"Invalid arguments: {problem}").result
    frame = Frame(exchange)
    try:
        if type(tool).prepare is not Tool.prepare:
            work = called(tool.prepare, args, frame)
            exchange.prepared = await _attempt(exchange, tool, work)
        if plan is None:
            return await _run(exchange, tool, args, frame)
    except _Failed as failed:
        return failed.result
    task = exchange.server.task_table.new(exchange, plan.ttl)
    task.exchange = own = _detached(exchange, task)
    task.start(lambda: _run_alone(own, tool, args))
    return exchange.era.made(task)


def _detached(exchange: Exchange, task: Task) -> Exchange:
    """Return the exchange of a task: it outlives the request, and asks in its own way."""
    own = Exchange(
        exchange.session,
        exchange.request,
        exchange.era,
        state=exchange.state,
        send=None,
        peer=exchange.peer,
    )
    own.prepared = exchange.prepared
    own.asker = exchange.era.task_asker(own, task)
    own.mute = exchange.era.tasks_are_mute
    return own


class _Failed(Exception):
    """Ends a call with the result that says why it failed."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__("the tool failed")
        self.result = result


async def _run_alone(exchange: Exchange, tool: Tool, args: Any) -> dict[str, Any]:
    try:
        return await _run(exchange, tool, args, Frame(exchange))
    except _Failed as failed:
        return failed.result


async def _run(exchange: Exchange, tool: Tool, args: Any, frame: Frame) -> dict[str, Any]:
    result = await _attempt(exchange, tool, _result(tool, args, frame))
    if not result.get("isError") and tool.output is not None:
        if (wrong := _bad_output(tool, result)) is not None:
            _log.error("! tool %s: its result is not as it declares: %s", tool.name, wrong)
            raise _failed(exchange, tool, f"the server's fault: {wrong}")
    return exchange.era.tool_result(result)


async def _result(tool: Tool, args: Any, frame: Frame) -> dict[str, Any]:
    value = await called(tool.run, args, frame)
    return response.tool_result(value, structured=tool.output is not None)


async def _attempt(exchange: Exchange, tool: Tool, work: Awaitable[Any]) -> Any:
    """Return what a tool's own code returns.

    Raises:
        _Failed: It failed, in whatever way.
        RpcError: The call is to be refused.
    """
    try:
        return await work
    except Exception as problem:  # the tool's outer edge: its crash is its result
        found = unwrapped(problem)
    match found:
        case ToolFailure(content=content):
            result = response.tool_result(content, structured=False)
            result["isError"] = True
            raise _Failed(exchange.era.tool_result(result)) from None
        case MissingCapability() if not exchange.era.lacks(found):
            raise _failed(exchange, tool, found.message) from None
        case RpcError():
            raise found
        case AskFailed():
            raise _failed(exchange, tool, str(found)) from None
    _log.error("! tool %s failed", tool.name, exc_info=found)
    raise _failed(exchange, tool, said(found)) from None


def _bad_output(tool: Tool, result: dict[str, Any]) -> str | None:
    if "structuredContent" not in result:
        return "structuredContent is missing"
    return tool.check_output(result["structuredContent"])


def _failed(exchange: Exchange, tool: Tool, text: str) -> _Failed:
    said_so = exchange.era.failure(tool, text)
    return _Failed({"content": [{"type": "text", "text": said_so}], "isError": True})
