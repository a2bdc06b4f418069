"""One conversation with a kit server without any transport; every frame is held to the schema."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from mcpclient import loops
from mcpclient.protocol.envelope import Outgoing
from mcpclient.serverkit import Peer, Server, Session
from tests.protocol import schemas

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
ERAS = (HANDSHAKE, STATELESS)
PREFIX = "io.modelcontextprotocol/"
TASKS = f"{PREFIX}tasks"

# What a client that can do everything declares.
ALL: dict[str, Any] = {
    "roots": {"listChanged": True},
    "sampling": {"tools": {}},
    "elicitation": {"form": {}, "url": {}},
}


def opening(version: str = HANDSHAKE) -> dict[str, Any]:
    """Return the params of an initialize."""
    client = {"name": "talk", "version": "1"}
    return {"protocolVersion": version, "capabilities": {}, "clientInfo": client}


_RESULTS = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "completion/complete": "CompleteResult",
    "tasks/get": "GetTaskResult",
    "tasks/list": "ListTasksResult",
    "tasks/cancel": "CancelTaskResult",
    "subscriptions/listen": "SubscriptionsListenResult",
}
_KINDS = {"input_required": "InputRequiredResult", "task": "CreateTaskResult"}
_ERRORS = {
    -32022: "UnsupportedProtocolVersionError",
    -32021: "MissingRequiredClientCapabilityError",
}
_EXTENSION = {"tasks/get", "tasks/update", "tasks/cancel"}

Answer = Callable[[str, dict[str, Any]], dict[str, Any]]


class Talk:
    """A client's side of one conversation.

    Attributes:
        sent: What the server sent unasked: notices and questions, in order.
    """

    def __init__(
        self,
        server: Server,
        version: str = HANDSHAKE,
        *,
        can: Mapping[str, Any] = ALL,
        answers: Answer | None = None,
        peer: Peer | None = None,
        id: str | None = None,
        tasks: bool = False,
    ) -> None:
        self.server = server
        self.version = version
        self.can = dict(can)
        if tasks:
            self.can["extensions"] = {TASKS: {}}
        self.answers = answers
        self.sent: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.session: Session = server.open(self._take, id=id, peer=peer or Peer())
        self._next = 0

    async def __aenter__(self) -> Talk:
        if self.version != STATELESS:
            await self.result(
                "initialize",
                {
                    "protocolVersion": self.version,
                    "capabilities": self.can,
                    "clientInfo": {"name": "talk", "version": "1"},
                },
            )
            await self.notify("notifications/initialized")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.session.close()

    # -- asking ----------------------------------------------------------------------------

    def stamped(self, params: Mapping[str, Any] | None, meta: Mapping[str, Any]) -> dict[str, Any]:
        """Return params as the era has them."""
        found = dict(params or {})
        own: dict[str, Any] = {}
        if self.version == STATELESS:
            own = {
                f"{PREFIX}protocolVersion": STATELESS,
                f"{PREFIX}clientInfo": {"name": "talk", "version": "1"},
                f"{PREFIX}clientCapabilities": self.can,
            }
        if own or meta:
            found["_meta"] = {**own, **meta}
        return found

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        id: Any = None,
        meta: Mapping[str, Any] = {},
        peer: Peer | None = None,
    ) -> dict[str, Any]:
        """Send a request and return the whole answer, held to the schema."""
        self._next += 1
        message = {
            "jsonrpc": "2.0",
            "id": self._next if id is None else id,
            "method": method,
            "params": self.stamped(params, meta),
        }
        reply = await self.line(msgspec.json.encode(message), peer=peer)
        assert reply is not None
        assert reply["id"] == message["id"]
        assert type(reply["id"]) is type(message["id"])
        check_answer(self.version, method, reply)
        return reply

    async def result(
        self, method: str, params: Mapping[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        """Return the result of a request."""
        reply = await self.request(method, params, **more)
        assert "result" in reply, reply
        found = reply["result"]
        assert isinstance(found, dict)
        return found

    async def error(
        self, method: str, params: Mapping[str, Any] | None = None, **more: Any
    ) -> dict[str, Any]:
        """Return the error that a request is answered with."""
        reply = await self.request(method, params, **more)
        assert "error" in reply, reply
        found = reply["error"]
        assert isinstance(found, dict)
        return found

    async def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool, through as many rounds as it takes, and return the result."""
        return await self.rounds("tools/call", {"name": tool, "arguments": arguments})

    async def text(self, tool: str, /, **arguments: Any) -> str:
        """Call a tool and return its first text."""
        found = await self.call(tool, **arguments)
        return str(found["content"][0]["text"])

    async def rounds(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the result of a request that may ask for more rounds."""
        given = dict(params)
        for _ in range(20):
            found = await self.result(method, given)
            if found.get("resultType") != "input_required":
                return found
            self.asked += found["inputRequests"].values()
            assert self.answers is not None
            given = {
                **params,
                "requestState": found["requestState"],
                "inputResponses": {
                    key: self.answers(one["method"], one["params"])
                    for key, one in found["inputRequests"].items()
                },
            }
        raise AssertionError("it asks for ever")

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send a notification."""
        message = {"jsonrpc": "2.0", "method": method, "params": dict(params or {})}
        assert await self.line(msgspec.json.encode(message)) is None

    async def line(self, line: bytes, *, peer: Peer | None = None) -> Any:
        """Send any bytes and return the answer, or None."""
        [item] = self.session.receive(line)
        reply = await self.session.answer(item, peer=peer)
        if reply is None:
            return None
        assert reply.frame.endswith(b"\n")
        assert reply.frame.count(b"\n") == 1
        assert reply.frame.isascii()
        return msgspec.json.decode(reply.frame)

    # -- what comes unasked ----------------------------------------------------------------

    def notices(self, method: str) -> list[dict[str, Any]]:
        """Return the params of the notices of a method."""
        return [one["params"] for one in self.sent if one["method"] == method]

    def _take(self, item: Outgoing) -> None:
        message = msgspec.json.decode(item.frame)
        assert item.method == message["method"]
        self.sent.append(message)
        check_unasked(self.version, message)
        if "id" in message and self.answers is not None:
            self.asked.append(message)
            self._answer(message, self.answers)

    def _answer(self, message: dict[str, Any], answers: Answer) -> None:
        found = answers(message["method"], message["params"])
        kind = "error" if "code" in found else "result"
        line = msgspec.json.encode({"jsonrpc": "2.0", "id": message["id"], kind: found})
        [item] = self.session.receive(line)

        async def answer() -> None:
            assert await self.session.answer(item) is None

        loops.current().job(answer, "answer of a test")


def check_answer(version: str, method: str, reply: dict[str, Any]) -> None:
    """Hold an answer to the published schema of the version, if the schemas are there."""
    if not schemas.SPEC.is_dir():
        return
    known = schemas.definitions(version)
    if "error" in reply:
        plain = "JSONRPCError" if "JSONRPCError" in known else "JSONRPCErrorResponse"
        schemas.check(version, plain, reply)
        special = _ERRORS.get(reply["error"]["code"])
        if special in known:
            schemas.check(version, special, reply)
        return
    result = reply["result"]
    kind = _KINDS.get(result.get("resultType"))
    if version == STATELESS:
        assert result["resultType"] in ("complete", *_KINDS)
        if kind == "CreateTaskResult" or method in _EXTENSION:
            name = {"tasks/get": "GetTaskResult", "tasks/update": "UpdateTaskResult"}.get(method)
            schemas.check("ext-tasks", kind or name or "CancelTaskResult", result)
            return
    elif "task" in result and method == "tools/call":
        kind = "CreateTaskResult"
    schemas.check(version, kind or _RESULTS.get(method, "Result"), result)


def check_unasked(version: str, message: dict[str, Any]) -> None:
    """Hold a notice or a question to the published schema of the version."""
    if not schemas.SPEC.is_dir():
        return
    if message["method"] == "notifications/tasks":
        schemas.check("ext-tasks", "TaskStatusNotification", message)
        return
    name = schemas.by_method(version)[message["method"]]
    schemas.check(version, name, message)
    union = "ServerRequest" if "id" in message else "ServerNotification"
    assert name in schemas.allowed(version, union)


def content(result: Mapping[str, Any]) -> list[str]:
    """Return the texts of a tool's result."""
    return [block["text"] for block in result["content"] if block["type"] == "text"]
