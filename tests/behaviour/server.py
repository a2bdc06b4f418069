"""One server for every version, as a pure function of what it is told: `server.py VERSION`.

It speaks the one version it is given, lawfully, and shares no code with the client. `handle` takes
a message and returns what is to be sent for it; nothing waits and nothing has a clock, so that a
test says what happens when. Run as a script it does the same over stdin and stdout.

Tools: `echo {text}`; `add {a, b}`; `nothing` (structured null, stateless only); `fail` (isError);
`refuse` (an error with data); `hold {key, stubborn}` (no answer until released; a stubborn one
answers though it was cancelled); `release {keys, together}` (answers what is held, in this order,
then itself; together: in one array); `progress {n}`; `log {level, n}`; `touch {uri}` (tells who
follows it); `grow` (one more of everything, and tells so); `ask {method, params}` (answers what it
was answered); `withdraw` (takes its open asks back); `ping`; `journal` (all that was received);
`close` (ends the subscriptions, stateless only); `say {method, params}` (any notification);
`exit {code}`.

A list has two items a page; in the stateless era the cursor of the second page is "". Any
`test://` resource counts its reads; `test://held` is answered only when `held` is released;
`test://asking` and the prompt `asking` ask for roots first.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

Message = dict[str, Any]
STATELESS = "2026-07-28"
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
INFO = {"name": "behaviour", "version": "1.0"}
INSTRUCTIONS = "Harmless, but for exit."
PREFIX = "io.modelcontextprotocol/"
STATE = 'opaque: {"n": 1.0} \u00fc\u2028'
# fmt: off
TOOLS = [
    "echo", "add", "nothing", "fail", "refuse", "hold", "release", "progress", "log", "touch",
    "grow", "ask", "withdraw", "ping", "journal", "close", "say", "exit",
]
# fmt: on
WORDS = ("paris", "park", "party", "rome")


class Refusal(Exception):
    """Becomes a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error: Message = {"code": code, "message": message}
        if data is not None:
            self.error["data"] = data


class Server:
    """The server: one conversation's worth of state."""

    def __init__(self, version: str) -> None:
        self.version = version
        self.stateless = version == STATELESS
        self.open = self.stateless
        self.journal: list[Message] = []
        self.held: dict[str, Message] = {}  # by key: the request that waits for its release
        self.stubborn: set[str] = set()
        self.asked: dict[str, tuple[Message, Callable[[Message], Any]]] = {}
        self.asks = 0
        self.reads: dict[str, int] = {}
        self.followed: set[str] = set()
        self.listens: dict[Any, Message] = {}  # by id: what it tells of
        self.level = "info"
        self.more = 0

    # -- the conversation ------------------------------------------------------------------

    def handle(self, message: Message) -> list[Any]:
        """Return what is to be sent for a message: messages, and lists of them as one array."""
        self.journal.append(message)
        if "method" not in message:
            return self.replied(message)
        if "id" not in message:
            self.noticed(message["method"], message.get("params") or {})
            return []
        try:
            return self.requested(message)
        except Refusal as refusal:
            return [{"jsonrpc": "2.0", "id": message["id"], "error": refusal.error}]

    def replied(self, message: Message) -> list[Any]:
        waiting = self.asked.pop(message["id"], None)
        if waiting is None:
            return []
        call, finish = waiting
        found: Message = {key: message[key] for key in ("result", "error") if key in message}
        return [self.result(call, finish(found))]

    def noticed(self, method: str, params: Message) -> None:
        if method == "notifications/initialized":
            self.open = True
        elif method == "notifications/cancelled":
            id = params["requestId"]
            self.listens.pop(id, None)
            for key, call in list(self.held.items()):
                if call["id"] == id and key not in self.stubborn:
                    del self.held[key]

    def requested(self, message: Message) -> list[Any]:
        method, params = message["method"], message.get("params") or {}
        if self.stateless:
            self.check_meta(method, params)
        elif method == "initialize":
            return [self.result(message, self.initialized())]
        elif not self.open and method != "server/discover":
            raise Refusal(-32600, "initialize first")
        answer: Callable[[Message, Message], list[Any]] | None = {
            "tools/list": self.list_tools,
            "tools/call": self.call_tool,
            "resources/list": self.list_resources,
            "resources/templates/list": self.list_templates,
            "resources/read": self.read,
            "prompts/list": self.list_prompts,
            "prompts/get": self.prompt,
            "completion/complete": self.complete,
            **self.own_methods(),
        }.get(method)
        if answer is None:
            raise Refusal(-32601, f"Method not found: {method}")
        return answer(message, params)

    def own_methods(self) -> dict[str, Any]:
        if self.stateless:
            return {"server/discover": self.discover, "subscriptions/listen": self.listen}
        return {
            "ping": lambda message, params: [self.result(message, {})],
            "resources/subscribe": self.subscribe,
            "resources/unsubscribe": self.unsubscribe,
            "logging/setLevel": self.set_level,
        }

    def check_meta(self, method: str, params: Message) -> None:
        meta = params.get("_meta") or {}
        asked = meta.get(PREFIX + "protocolVersion")
        if method == "initialize" or (asked is not None and asked != STATELESS):
            said = {"supported": [STATELESS], "requested": asked or "initialize"}
            raise Refusal(-32022, "Unsupported protocol version", said)
        if asked is None or not isinstance(meta.get(PREFIX + "clientCapabilities"), dict):
            raise Refusal(-32602, "_meta is incomplete")

    def result(self, message: Message, body: Message, *, kept: bool = False) -> Message:
        if self.stateless:
            body = {"resultType": "complete", **body}
            if kept:
                body = {**body, "ttlMs": 60_000, "cacheScope": "private"}
        return {"jsonrpc": "2.0", "id": message["id"], "result": body}

    @staticmethod
    def notice(method: str, **params: Any) -> Message:
        return {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": params}

    # -- opening ---------------------------------------------------------------------------

    @property
    def capabilities(self) -> Message:
        found: Message = {
            "tools": {"listChanged": True},
            "resources": {"subscribe": True, "listChanged": True},
            "prompts": {"listChanged": True},
            "logging": {},
        }
        if self.version >= "2025-03-26":
            found["completions"] = {}
        return found

    def initialized(self) -> Message:
        return {
            "protocolVersion": self.version,
            "capabilities": self.capabilities,
            "serverInfo": INFO,
            "instructions": INSTRUCTIONS,
        }

    def discover(self, message: Message, params: Message) -> list[Any]:
        body = {
            "supportedVersions": [STATELESS],
            "capabilities": self.capabilities,
            "instructions": INSTRUCTIONS,
            "_meta": {PREFIX + "serverInfo": INFO},
        }
        return [self.result(message, body, kept=True)]

    # -- lists -----------------------------------------------------------------------------

    def page(self, message: Message, params: Message, key: str, items: list[Any]) -> list[Any]:
        cursors = [None, "" if self.stateless else "page 2", *(f"page {n}" for n in range(3, 99))]
        if params.get("cursor") not in cursors:
            raise Refusal(-32602, "Unknown cursor")
        number = cursors.index(params.get("cursor"))
        body: Message = {key: items[2 * number : 2 * number + 2]}
        if 2 * number + 2 < len(items):
            body["nextCursor"] = cursors[number + 1]
        return [self.result(message, body, kept=True)]

    def list_tools(self, message: Message, params: Message) -> list[Any]:
        tools: list[Message] = []
        for name in [*TOOLS, *(f"more {n}" for n in range(self.more))]:
            tools.append({"name": name, "inputSchema": {"type": "object", "x-kept": {"a": [1]}}})
            if name == "add" and self.version >= "2025-06-18":
                number = {"sum": {"type": "number"}}
                tools[-1]["outputSchema"] = {"type": "object", "properties": number}
                tools[-1]["title"] = "Sum"
        return self.page(message, params, "tools", tools)

    def list_resources(self, message: Message, params: Message) -> list[Any]:
        names = ["a", "b", "c", *(f"more {n}" for n in range(self.more))]
        return self.page(
            message, params, "resources", [{"uri": f"test://{n}", "name": n} for n in names]
        )

    def list_templates(self, message: Message, params: Message) -> list[Any]:
        item = {"uriTemplate": "test://item/{name}", "name": "item"}
        return self.page(message, params, "resourceTemplates", [item])

    def list_prompts(self, message: Message, params: Message) -> list[Any]:
        greet = {"name": "greet", "arguments": [{"name": "name", "required": True}]}
        names = ["plain", "asking", *(f"more {n}" for n in range(self.more))]
        return self.page(message, params, "prompts", [greet, *({"name": n} for n in names)])

    # -- resources, prompts, completion ----------------------------------------------------

    def read(self, message: Message, params: Message) -> list[Any]:
        uri = params["uri"]
        if not uri.startswith("test://"):
            code = -32602 if self.stateless else -32002
            raise Refusal(code, "Resource not found", {"uri": uri})
        if uri == "test://held":
            self.held["held"] = message
            return []
        if uri == "test://asking":
            return self.ask(message, "roots/list", {}, lambda reply: self.contents(uri, reply))
        return [self.result(message, self.contents(uri), kept=True)]

    def contents(self, uri: str, reply: Message | None = None) -> Message:
        self.reads[uri] = self.reads.get(uri, 0) + 1
        text = f"read {self.reads[uri]}" if reply is None else json.dumps(reply)
        body: Message = {"contents": [{"uri": uri, "text": text}]}
        if reply is not None and self.stateless:
            body |= {"ttlMs": 60_000, "cacheScope": "private"}
        return body

    def prompt(self, message: Message, params: Message) -> list[Any]:
        name, arguments = params["name"], params.get("arguments") or {}
        if name == "asking":
            return self.ask(message, "roots/list", {}, lambda reply: said(json.dumps(reply)))
        if name == "plain":
            return [self.result(message, said("Be plain."))]
        if name != "greet" or "name" not in arguments:
            raise Refusal(-32602, "No such prompt" if name != "greet" else "name is missing")
        return [self.result(message, said(f"Greet {arguments['name']}."))]

    def complete(self, message: Message, params: Message) -> list[Any]:
        start = params["argument"]["value"]
        chosen = params.get("context", {}).get("arguments", {})
        values = [word for word in WORDS if word.startswith(start)]
        values += [f"{name}={value}" for name, value in chosen.items()]
        body = {"values": values, "total": len(values), "hasMore": False}
        return [self.result(message, {"completion": body})]

    # -- what is told ----------------------------------------------------------------------

    def subscribe(self, message: Message, params: Message) -> list[Any]:
        self.followed.add(params["uri"])
        return [self.result(message, {})]

    def unsubscribe(self, message: Message, params: Message) -> list[Any]:
        self.followed.discard(params["uri"])
        return [self.result(message, {})]

    def set_level(self, message: Message, params: Message) -> list[Any]:
        self.level = params["level"]
        return [self.result(message, {})]

    def listen(self, message: Message, params: Message) -> list[Any]:
        agreed = self.listens[message["id"]] = params["notifications"]
        meta = {PREFIX + "subscriptionId": message["id"]}
        return [self.notice("subscriptions/acknowledged", _meta=meta, notifications=agreed)]

    def changed(self, kind: str) -> list[Any]:
        if not self.stateless:
            return [{"jsonrpc": "2.0", "method": f"notifications/{kind}/list_changed"}]
        return [
            self.notice(f"{kind}/list_changed", _meta={PREFIX + "subscriptionId": id})
            for id, agreed in self.listens.items()
            if agreed.get(f"{kind}ListChanged")
        ]

    def updated(self, uri: str) -> list[Any]:
        if not self.stateless:
            return [self.notice("resources/updated", uri=uri)] if uri in self.followed else []
        return [
            self.notice("resources/updated", uri=uri, _meta={PREFIX + "subscriptionId": id})
            for id, agreed in self.listens.items()
            if uri in agreed.get("resourceSubscriptions", ())
        ]

    def ask(
        self, message: Message, method: str, params: Message, finish: Callable[[Message], Message]
    ) -> list[Any]:
        """Ask in the era's way, and answer the message with what comes of the reply."""
        given = message["params"].get("inputResponses")
        if not self.stateless:
            self.asks += 1
            id = f"ask-{self.asks}"
            self.asked[id] = (message, finish)
            return [{"jsonrpc": "2.0", "id": id, "method": method, "params": params}]
        if given is not None:
            if message["params"].get("requestState") != STATE or set(given) != {"one"}:
                raise Refusal(-32602, "that is not what was asked")
            return [self.result(message, finish({"result": given["one"]}))]
        asked = {"one": {"method": method, "params": params}}
        body = {"resultType": "input_required", "inputRequests": asked, "requestState": STATE}
        return [self.result(message, body)]

    # -- tools -----------------------------------------------------------------------------

    def call_tool(self, message: Message, params: Message) -> list[Any]:
        if params["name"] not in TOOLS:
            raise Refusal(-32602, f"Unknown tool: {params['name']}")
        arguments = params.get("arguments") or {}
        found = getattr(self, f"tool_{params['name']}")(message, **arguments)
        return found if isinstance(found, list) else [self.result(message, found)]

    def tool_echo(self, message: Message, text: str) -> Message:
        return texts(text)

    def tool_add(self, message: Message, a: float, b: float) -> Message:
        body = texts(str(a + b))
        return {**body, "structuredContent": {"sum": a + b}} if self.version >= "2025-06" else body

    def tool_nothing(self, message: Message) -> Message:
        return {"content": [], "structuredContent": None}

    def tool_fail(self, message: Message) -> Message:
        return {**texts("it failed", "and here is why"), "isError": True}

    def tool_refuse(self, message: Message) -> Message:
        raise Refusal(-32001, "not today", {"why": ["rain", 1, None]})

    def tool_hold(self, message: Message, key: str, stubborn: bool = False) -> list[Any]:
        self.held[key] = message
        if stubborn:
            self.stubborn.add(key)
        return []

    def tool_release(self, message: Message, keys: list[str], together: bool = False) -> list[Any]:
        found = [(key, self.held.pop(key)) for key in keys if key in self.held]
        answers: list[Any] = []
        for key, call in found:
            if call["method"] == "resources/read":
                answers.append(self.result(call, self.contents("test://held"), kept=True))
            else:
                answers.append(self.result(call, texts(f"held {key}")))
        answers.append(self.result(message, texts(f"released {len(found)}")))
        return [answers] if together else answers

    def tool_progress(self, message: Message, n: int) -> list[Any]:
        token = message["params"].get("_meta", {}).get("progressToken")
        told: list[Any] = []
        for done in range(1, n + 1) if token is not None else ():
            more = {"message": f"step {done}"} if self.version >= "2025-03-26" else {}
            told.append(
                self.notice("progress", progressToken=token, progress=done, total=n, **more)
            )
        return [*told, self.result(message, texts("done"))]

    def tool_log(self, message: Message, level: str, n: int = 1) -> list[Any]:
        least = self.level
        if self.stateless:
            least = message["params"]["_meta"].get(PREFIX + "logLevel")
        told = bool(least) and LEVELS.index(level) >= LEVELS.index(least)
        notices = [self.notice("message", level=level, data=k) for k in range(n) if told]
        return [*notices, self.result(message, texts(str(len(notices))))]

    def tool_touch(self, message: Message, uri: str) -> list[Any]:
        notices = self.updated(uri)
        return [*notices, self.result(message, texts(str(len(notices))))]

    def tool_grow(self, message: Message) -> list[Any]:
        self.more += 1
        notices = [one for kind in ("tools", "resources", "prompts") for one in self.changed(kind)]
        return [*notices, self.result(message, texts(str(len(notices))))]

    def tool_ask(self, message: Message, method: str, params: Message) -> list[Any]:
        return self.ask(message, method, params, lambda reply: texts(json.dumps(reply)))

    def tool_withdraw(self, message: Message) -> list[Any]:
        told: list[Any] = []
        for id, (call, _) in self.asked.items():
            told.append(self.notice("cancelled", requestId=id))
            told.append(self.result(call, texts("withdrawn")))
        self.asked.clear()
        return [*told, self.result(message, texts("done"))]

    def tool_ping(self, message: Message) -> list[Any]:
        ping = {"jsonrpc": "2.0", "id": "ping-1", "method": "ping"}
        if self.stateless:  # which breaks the rules: nothing may come back, so nothing waits
            return [ping, self.result(message, texts("asked"))]
        self.asked["ping-1"] = (message, lambda reply: texts(json.dumps(reply)))
        return [ping]

    def tool_journal(self, message: Message) -> Message:
        return texts(json.dumps(self.journal))

    def tool_close(self, message: Message) -> list[Any]:
        told: list[Any] = []
        for id in self.listens:
            meta = {PREFIX + "subscriptionId": id}
            told += [
                self.notice("cancelled", requestId=id),
                self.result({"id": id}, {"_meta": meta}),
            ]
        self.listens.clear()
        return [*told, self.result(message, texts("done"))]

    def tool_say(self, message: Message, method: str, params: Message) -> list[Any]:
        told = {"jsonrpc": "2.0", "method": method, "params": params}
        return [told, self.result(message, texts("said"))]

    def tool_exit(self, message: Message, code: int) -> Message:
        raise SystemExit(code)


def texts(*parts: str) -> Message:
    """Return a tool's result of text blocks."""
    return {"content": [{"type": "text", "text": part} for part in parts]}


def said(text: str) -> Message:
    """Return a prompt of one message."""
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


def encoded(message: Any) -> bytes:
    """Return a message as one line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def main() -> None:
    server = Server(sys.argv[1])
    for line in sys.stdin.buffer:
        for message in server.handle(json.loads(line)):
            sys.stdout.buffer.write(encoded(message))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
