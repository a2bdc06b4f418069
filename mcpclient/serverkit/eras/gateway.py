"""The profile of an endpoint inside an HTTP gateway: tools only, no sessions, no gate.

A handshake that agrees to everything, for callers that were there before the protocol was.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mcpclient.ground.text import printable
from mcpclient.protocol import methods
from mcpclient.protocol.envelope import NOTHING
from mcpclient.serverkit import calling, incoming, routes
from mcpclient.serverkit.eras.handshake import Handshake
from mcpclient.serverkit.errors import INVALID_PARAMS, PARSE_ERROR, RpcError
from mcpclient.serverkit.incoming import Fault, Notification, Params, Request
from mcpclient.serverkit.state import State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpclient.serverkit.components import Tool
    from mcpclient.serverkit.exchange import Exchange
    from mcpclient.serverkit.incoming import Item
    from mcpclient.serverkit.session import Session

_log = logging.getLogger("mcpclient.serverkit")
_OLDEST = "2024-11-05"


async def initialize(exchange: Exchange) -> dict[str, Any]:
    """Agree to whatever version the client names."""
    assert exchange.request is not None
    found = exchange.request.params.get("protocolVersion")
    try:
        version = incoming.decoded(found, str, "protocolVersion") if found else _OLDEST
    except RpcError:
        version = _OLDEST
    server = exchange.server
    result: dict[str, Any] = {
        "protocolVersion": version,
        "capabilities": {"tools": {"listChanged": False}},
        "serverInfo": {"name": server.name, "version": server.version},
    }
    if server.instructions is not None:
        result["instructions"] = server.instructions
    return result


class Gateway(Handshake):
    """The rules of the profile."""

    gated = False

    def __init__(self) -> None:
        super().__init__("2025-11-25")

    @property
    def routes(self) -> Mapping[str, Any]:
        """See :class:`~mcpclient.serverkit.eras.Era`."""
        return _ROUTES

    def admit(self, session: Session, request: Request) -> State:
        """Everything is answered at once, and nothing is remembered; lists are whole."""
        return State()

    def item(self, item: dict[str, Any]) -> dict[str, Any]:
        """Leave out the task support too: nothing runs as a task here."""
        found = super().item(item)
        found.pop("execution", None)
        return found

    def unknown_tool(self, name: str, known: list[str]) -> RpcError:
        """Name those that there are."""
        listed = ", ".join(sorted(known)) or "none"
        return RpcError(
            INVALID_PARAMS, f"Tool not found: {printable(name, 200)} (available: {listed})"
        )

    def failure(self, tool: Tool, text: str) -> str:
        """Name the tool too."""
        return f"{tool.name}: {text}"

    def task_plan(self, exchange: Exchange, tool: Tool) -> None:
        """Nothing runs as a task."""
        return

    def dress(self, exchange: Exchange, result: dict[str, Any]) -> dict[str, Any]:
        """Name the tool in a failure of its own making too, and log it."""
        if not result.get("isError"):
            return result
        assert exchange.request is not None
        name = exchange.request.params.text("name")
        texts = [block for block in result["content"] if block.get("type") == "text"]
        said = texts[0]["text"] if texts else "failed"
        if said.startswith(f"{name}: "):
            return result  # a crash, which is named and logged already
        _log.warning("! tool %s failed: %s", name, printable(said, 500))
        told = {"type": "text", "text": f"{name}: {said}"}
        others = [block for block in result["content"] if not texts or block is not texts[0]]
        return {**result, "content": [told, *others]}


def read(line: bytes) -> list[Item]:
    """Return the one item that a body is.

    What is empty, or more than one message, is a parse error here; an id of null makes a
    notification.
    """
    bare = line.strip(b" \t\r\n")
    if not bare or bare[:1] == b"[":
        return [incoming.fault(PARSE_ERROR, "Parse error: one JSON-RPC message is expected")]
    item = incoming.read_one(bare, null_is_absent=True)
    if isinstance(item, Fault) and item.reply.code == INVALID_PARAMS:
        item.reply.status = 200
    if isinstance(item, Request) and item.method in ("initialized", methods.INITIALIZED):
        return [Notification(methods.INITIALIZED, Params(NOTHING))]
    return [item]


_ROUTES: dict[str, Any] = {
    methods.INITIALIZE: initialize,
    methods.PING: routes.ping,
    methods.TOOLS_LIST: routes.list_tools,
    methods.TOOLS_CALL: calling.call_tool,
}
