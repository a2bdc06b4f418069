"""The era of 2026-07-28, served: each request says who asks, in which version, and what it can.

https://modelcontextprotocol.io/specification/2026-07-28/basic
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpclient.ground.text import printable
from mcpclient.protocol import methods, versions
from mcpclient.protocol.eras.stateless import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    LEVEL_KEY,
    SERVER_KEY,
    VERSION_KEY,
)
from mcpclient.protocol.extensions import TASKS
from mcpclient.serverkit import asks, calling, routes, taskroutes
from mcpclient.serverkit.asks import NoAsker
from mcpclient.serverkit.errors import INVALID_PARAMS, NotFound, RpcError
from mcpclient.serverkit.rounds import Rounds
from mcpclient.serverkit.state import LEVELS, State
from mcpclient.serverkit.taskasks import TaskQuestions
from mcpclient.serverkit.tasks import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpclient.serverkit.asks import Asker
    from mcpclient.serverkit.components import Component, Tool
    from mcpclient.serverkit.errors import MissingCapability
    from mcpclient.serverkit.exchange import Exchange
    from mcpclient.serverkit.incoming import Request
    from mcpclient.serverkit.rounds import AnotherRound
    from mcpclient.serverkit.server import Server
    from mcpclient.serverkit.session import Session
    from mcpclient.serverkit.tasks import Task

# Section "Error handling" of the page on Streamable HTTP.
_STATUS = {
    -32700: 400,
    -32600: 400,
    -32601: 404,
    -32010: 403,
    methods.HEADER_MISMATCH: 400,
    methods.MISSING_CAPABILITY: 400,
    methods.UNSUPPORTED_VERSION: 400,
}


async def discover(exchange: Exchange) -> dict[str, Any]:
    """Say what the server speaks and can do (ERA-13)."""
    server = exchange.server
    found: dict[str, Any] = {
        "supportedVersions": list(reversed(server.versions)),
        "capabilities": _capabilities(server.capabilities(exchange.state)),
    }
    if server.instructions is not None:
        found["instructions"] = server.instructions
    return exchange.era.cacheable(exchange, found, [])


class _BadMeta(RpcError):
    """The members of ``_meta`` that the era cannot do without."""


class Stateless:
    """The rules of one request."""

    name = "stateless"
    gated = True
    tasks_are_mute = True

    def __init__(self, server: Server, meta: dict[str, Any]) -> None:
        self._server = server
        self._meta = meta
        version = meta.get(VERSION_KEY)
        self.version = version if isinstance(version, str) else ""

    @property
    def routes(self) -> Mapping[str, Any]:
        """See :class:`~mcpclient.serverkit.eras.Era`."""
        return _ROUTES

    def admit(self, session: Session, request: Request) -> State:
        """Check ``_meta`` (META-01 to META-03); nothing is remembered from one to the next."""
        version, capabilities = self._meta.get(VERSION_KEY), self._meta.get(CAPABILITIES_KEY)
        if not isinstance(version, str):
            raise _bad(VERSION_KEY, "text")
        ours = [one for one in versions.STATELESS if one in self._server.versions]
        if version not in ours:
            data = {"supported": ours or list(self._server.versions), "requested": version}
            raise RpcError(methods.UNSUPPORTED_VERSION, "Unsupported protocol version", data)
        if not isinstance(capabilities, dict):
            raise _bad(CAPABILITIES_KEY, "an object")
        info = self._meta.get(CLIENT_KEY, {})
        if not isinstance(info, dict):
            raise _bad(CLIENT_KEY, "an object")
        level = self._meta.get(LEVEL_KEY)
        if level is not None and level not in LEVELS:
            raise _bad(LEVEL_KEY, "a level")
        state = State(self._server.page_size)
        state.client_info = info
        state.client_capabilities = capabilities
        state.version = version
        state.level = level  # silence, unless the request says otherwise (LOG-02)
        return state

    def asker(self, exchange: Exchange) -> Asker:
        """Questions are rounds, of the three methods that may have some (RES-03)."""
        request = exchange.request
        if request is None or request.method not in methods.MAY_ASK_BACK:
            return NoAsker("nothing can be asked here: only tools, prompts and reads can ask")
        return Rounds(exchange)

    def notice(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Drop what only the other era has."""
        return None if method in _GONE else params

    def item(self, item: dict[str, Any]) -> dict[str, Any]:
        """Leave out what is not there, and what the era has no more."""
        return {
            key: value for key, value in item.items() if value is not None and key != "execution"
        }

    def tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Results are as they are."""
        return result

    def prompt_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Results are as they are."""
        return result

    def dress(self, exchange: Exchange, result: dict[str, Any]) -> dict[str, Any]:
        """Say of what kind the result is, and who answers."""
        meta = {SERVER_KEY: exchange.server.info, **result.get("_meta", {})}
        return {"resultType": "complete", **result, "_meta": meta}

    def cacheable(
        self, exchange: Exchange, result: dict[str, Any], of: list[Component]
    ) -> dict[str, Any]:
        """The shortest time of all that it is made of, and private if one of them is."""
        server = exchange.server
        ttl = min([server.ttl if one.ttl is None else one.ttl for one in of] or [server.ttl])
        named = {one.cache_scope or server.cache_scope for one in of} or {server.cache_scope}
        # What depends on who asks must not be given to others.
        guarded = exchange.peer.scopes is not None or exchange.peer.subject is not None
        public = named == {"public"} and not guarded
        hints = {"ttlMs": round(ttl * 1000), "cacheScope": "public" if public else "private"}
        return {**result, **hints}

    def not_found(self, uri: str) -> RpcError:
        """See :class:`~mcpclient.serverkit.eras.Era`."""
        return NotFound(uri, INVALID_PARAMS)

    def unknown_tool(self, name: str, known: list[str]) -> RpcError:
        """See :class:`~mcpclient.serverkit.eras.Era`."""
        return RpcError(INVALID_PARAMS, f"Tool not found: {printable(name, 200)}")

    def failure(self, tool: Tool, text: str) -> str:
        """See :class:`~mcpclient.serverkit.eras.Era`."""
        return text

    def lacks(self, problem: MissingCapability) -> bool:
        """There is a code for it."""
        return True

    def another_round(self, exchange: Exchange, another: AnotherRound) -> dict[str, Any]:
        """Return the result that asks (MRTR-01)."""
        asker = exchange.asker
        assert isinstance(asker, Rounds)
        found = {
            "resultType": "input_required",
            "inputRequests": {key: asked(ask) for key, ask in another.asks.items()},
            "requestState": asker.sealed(),
        }
        return self.dress(exchange, found)

    def task_plan(self, exchange: Exchange, tool: Tool) -> Plan | None:
        """The server decides, for clients that can (TSK-01)."""
        if tool.task_support == "forbidden":
            return None
        if TASKS in (exchange.state.client_capabilities.get("extensions") or {}):
            return Plan(exchange.server.task_ttl(None))
        if tool.task_support == "required":
            raise asks.missing(("extensions", TASKS))
        return None

    def made(self, task: Task) -> dict[str, Any]:
        """See :class:`~mcpclient.serverkit.eras.Era`."""
        return {"resultType": "task", **task.told_as_extension()}

    def status(self, problem: RpcError) -> int:
        """See :class:`~mcpclient.serverkit.eras.Era`."""
        return 400 if isinstance(problem, _BadMeta) else _STATUS.get(problem.code, 200)

    def task_asker(self, exchange: Exchange, task: Task) -> Asker:
        """A task says what it asks when it is asked how it is (TSK-11)."""
        return TaskQuestions(exchange, task, asked)


def asked(ask: asks.Ask) -> dict[str, Any]:
    """Return a question as results have it; the name of a page is no more (ELI-21)."""
    params = {key: value for key, value in ask.params.items() if key != "elicitationId"}
    return {"method": ask.method, "params": params}


def _capabilities(found: dict[str, Any]) -> dict[str, Any]:
    tasks = found.pop("tasks", None)
    if tasks is not None:
        found["extensions"] = {TASKS: {}, **found.get("extensions", {})}
    return found


def _bad(key: str, kind: str) -> RpcError:
    return _BadMeta(INVALID_PARAMS, f"Invalid params: _meta[{key!r}] must be {kind}")


# What only the other era has.
_GONE = frozenset({"notifications/elicitation/complete", methods.TASK_STATUS})
_ROUTES: dict[str, Any] = {
    methods.DISCOVER: discover,
    methods.TOOLS_LIST: routes.list_tools,
    methods.TOOLS_CALL: calling.call_tool,
    methods.PROMPTS_LIST: routes.list_prompts,
    methods.PROMPTS_GET: routes.get_prompt,
    methods.RESOURCES_LIST: routes.list_resources,
    methods.TEMPLATES_LIST: routes.list_templates,
    methods.RESOURCES_READ: routes.read_resource,
    methods.COMPLETE: routes.complete,
    methods.LISTEN: routes.listen,
    methods.TASKS_GET: taskroutes.extension_get,
    methods.TASKS_UPDATE: taskroutes.extension_update,
    methods.TASKS_CANCEL: taskroutes.extension_cancel,
}
