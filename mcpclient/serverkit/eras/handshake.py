"""The era of 2024-11-05 to 2025-11-25, served: ``initialize`` first, then both sides may ask.

What a version does not have yet is left out, or said in words that it has.

https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpclient.ground.text import printable
from mcpclient.protocol import methods, versions
from mcpclient.protocol.versions import since
from mcpclient.serverkit import calling, routes, taskroutes
from mcpclient.serverkit.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    NotFound,
    RpcError,
)
from mcpclient.serverkit.requests import Requests
from mcpclient.serverkit.taskasks import TaskRequests
from mcpclient.serverkit.tasks import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpclient.serverkit.asks import Asker
    from mcpclient.serverkit.components import Component, Tool
    from mcpclient.serverkit.errors import MissingCapability
    from mcpclient.serverkit.exchange import Exchange
    from mcpclient.serverkit.incoming import Request
    from mcpclient.serverkit.rounds import AnotherRound
    from mcpclient.serverkit.session import Session
    from mcpclient.serverkit.state import State
    from mcpclient.serverkit.tasks import Task

_STATUS = {-32700: 400, -32010: 403}
# Since which version an item may have a member.
_MEMBERS = {
    "title": "2025-06-18",
    "_meta": "2025-06-18",
    "outputSchema": "2025-06-18",
    "icons": "2025-11-25",
    "execution": "2025-11-25",
}
_BLOCKS = {"audio": "2025-03-26", "resource_link": "2025-06-18"}


async def initialize(exchange: Exchange) -> dict[str, Any]:
    """Open the conversation (LIFE-01): the client's version if we speak it, else our newest."""
    session, server = exchange.session, exchange.server
    if session.era is not None:
        raise RpcError(INVALID_REQUEST, "Invalid request: the session is initialized already")
    assert exchange.request is not None
    params = exchange.request.params
    wanted = params.text("protocolVersion")
    ours = [one for one in versions.HANDSHAKE if one in server.versions]
    if not ours:
        data = {"supported": list(server.versions), "requested": wanted}
        raise RpcError(methods.UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    state = session.state
    state.version = wanted if wanted in ours else ours[-1]
    state.client_info = params.value("clientInfo", dict[str, Any], {})
    state.client_capabilities = params.value("capabilities", dict[str, Any], {})
    session.era = era = Handshake(state.version)
    # The frame of the hook speaks the version that was just agreed on.
    exchange.era = era
    try:
        await server.begin(exchange)
    except BaseException:  # a cancellation too
        session.era = None  # it was not opened, and the client may try again
        raise
    found = {
        "protocolVersion": state.version,
        "capabilities": era.capabilities(server.capabilities(state)),
        "serverInfo": era.info(server.info),
    }
    if server.instructions is not None:
        found["instructions"] = server.instructions
    return found


class Handshake:
    """The rules of a conversation that ``initialize`` opens."""

    name = "handshake"
    gated = True
    tasks_are_mute = False

    def __init__(self, version: str) -> None:
        self.version = version

    @property
    def routes(self) -> Mapping[str, Any]:
        """See :class:`~mcpclient.serverkit.eras.Era`."""
        return _ROUTES

    def admit(self, session: Session, request: Request) -> State:
        """Before the opening only ``initialize`` and ``ping`` are answered."""
        if session.era is None and request.method not in (methods.INITIALIZE, methods.PING):
            raise RpcError(INVALID_REQUEST, "Server not initialized")
        return session.state

    def asker(self, exchange: Exchange) -> Asker:
        """Questions are requests."""
        return Requests(exchange, self.adapt)

    def adapt(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the params of a question as this version has them."""
        if method == "elicitation/create" and not since("2025-11-25", self.version):
            return {key: value for key, value in params.items() if key != "mode"}
        return params

    def notice(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Progress has had a message since 2025-03-26; news of pages are of 2025-11-25."""
        if method == methods.PROGRESS and not since("2025-03-26", self.version):
            return {key: value for key, value in params.items() if key != "message"}
        if method == "notifications/elicitation/complete" and self.version != "2025-11-25":
            return None
        return params

    def item(self, item: dict[str, Any]) -> dict[str, Any]:
        """Leave out what the version does not have, and output schemas that are of no object."""
        found = {
            key: value
            for key, value in item.items()
            if value is not None and since(_MEMBERS.get(key, "2024-11-05"), self.version)
        }
        output = found.get("outputSchema")
        if output is not None and not (isinstance(output, dict) and output.get("type") == "object"):
            del found["outputSchema"]
        if "inputSchema" in found and not since("2025-03-26", self.version):
            found.pop("annotations", None)
        return found

    def tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Structured content is an object, since 2025-06-18 (TOOL-06)."""
        structured = result.get("structuredContent")
        if not isinstance(structured, dict) or not since("2025-06-18", self.version):
            result.pop("structuredContent", None)
        if self.version != "2025-11-25":
            result["content"] = [self._block(block) for block in result["content"]]
        return result

    def prompt_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """The blocks of the version."""
        for message in result["messages"]:
            message["content"] = self._block(message["content"])
        return result

    def _block(self, block: dict[str, Any]) -> dict[str, Any]:
        first = _BLOCKS.get(str(block.get("type")))
        if first is None or since(first, self.version):
            return block
        said = block.get("uri") or f"{block.get('type')}, {block.get('mimeType')}"
        return {"type": "text", "text": f"[{said}]"}

    def dress(self, exchange: Exchange, result: dict[str, Any]) -> dict[str, Any]:
        """Results are as they are."""
        return result

    def cacheable(
        self, exchange: Exchange, result: dict[str, Any], of: list[Component]
    ) -> dict[str, Any]:
        """The era knows no time; notices tell what is stale."""
        return result

    def capabilities(self, found: dict[str, Any]) -> dict[str, Any]:
        """Return the capabilities that this version has."""
        found = {key: value for key, value in found.items() if key != "extensions"}
        if not since("2025-03-26", self.version):
            found.pop("completions", None)
        if self.version != "2025-11-25":
            found.pop("tasks", None)
        return found

    def info(self, info: dict[str, Any]) -> dict[str, Any]:
        """Return who the server is, with what this version has."""
        new = {"description": "2025-11-25", "websiteUrl": "2025-11-25", **_MEMBERS}
        return {
            key: value
            for key, value in info.items()
            if since(new.get(key, "2024-11-05"), self.version)
        }

    def not_found(self, uri: str) -> RpcError:
        """See :class:`~mcpclient.serverkit.eras.Era`."""
        return NotFound(uri)

    def unknown_tool(self, name: str, known: list[str]) -> RpcError:
        """See :class:`~mcpclient.serverkit.eras.Era`."""
        return RpcError(INVALID_PARAMS, f"Tool not found: {printable(name, 200)}")

    def failure(self, tool: Tool, text: str) -> str:
        """See :class:`~mcpclient.serverkit.eras.Era`."""
        return text

    def lacks(self, problem: MissingCapability) -> bool:
        """No code for it here: the tool's result tells it."""
        return False

    def another_round(self, exchange: Exchange, another: AnotherRound) -> dict[str, Any]:
        """There are no rounds here."""
        raise AssertionError("a round in the handshake era")

    def task_plan(self, exchange: Exchange, tool: Tool) -> Plan | None:
        """The client says which call becomes a task (LTSK-01 to LTSK-03)."""
        assert exchange.request is not None
        params = exchange.request.params
        has_tasks = self.version == "2025-11-25" and exchange.server.declares(
            exchange.state, "tasks", "requests"
        )
        if has_tasks and "task" in params:
            if tool.task_support == "forbidden":
                raise RpcError(METHOD_NOT_FOUND, f"Tool {tool.name} does not run as a task")
            wish = params.value("task", dict[str, Any], {})
            return Plan(exchange.server.task_ttl(wish.get("ttl")))
        if tool.task_support == "required":
            raise RpcError(METHOD_NOT_FOUND, f"Tool {tool.name} only runs as a task")
        return None

    def made(self, task: Task) -> dict[str, Any]:
        """See :class:`~mcpclient.serverkit.eras.Era`."""
        return {"task": task.told()}

    def status(self, problem: RpcError) -> int:
        """The era answers errors with 200, but for what never was a request."""
        return _STATUS.get(problem.code, 200)

    def task_asker(self, exchange: Exchange, task: Task) -> Asker:
        """A task asks while its result is waited for (LTSK-06)."""
        return TaskRequests(exchange, task, self.adapt)


_ROUTES: dict[str, Any] = {
    methods.INITIALIZE: initialize,
    methods.PING: routes.ping,
    methods.TOOLS_LIST: routes.list_tools,
    methods.TOOLS_CALL: calling.call_tool,
    methods.PROMPTS_LIST: routes.list_prompts,
    methods.PROMPTS_GET: routes.get_prompt,
    methods.RESOURCES_LIST: routes.list_resources,
    methods.TEMPLATES_LIST: routes.list_templates,
    methods.RESOURCES_READ: routes.read_resource,
    methods.SUBSCRIBE: routes.subscribe,
    methods.UNSUBSCRIBE: routes.unsubscribe,
    methods.COMPLETE: routes.complete,
    methods.SET_LEVEL: routes.set_level,
    methods.TASKS_GET: taskroutes.task_get,
    methods.TASKS_RESULT: taskroutes.task_result,
    methods.TASKS_CANCEL: taskroutes.task_cancel,
    methods.TASKS_LIST: taskroutes.task_list,
}
