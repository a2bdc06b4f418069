"""What a scripted server answers of itself, so that a script need only say what is special.

Opening, ping and lists, in both eras, as the script implies them. Knows no time and no order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpclient.protocol import methods
from mcpclient.protocol.eras.stateless import SERVER_KEY, VERSION_KEY
from mcpclient.protocol.versions import HANDSHAKE, STATELESS
from mcpclient.testing.acts import as_mapping
from mcpclient.testing.plan import Notify

if TYPE_CHECKING:
    from mcpclient.testing.plan import Plan

_FRESH = frozenset(
    {
        methods.DISCOVER,
        methods.TOOLS_LIST,
        methods.RESOURCES_LIST,
        methods.TEMPLATES_LIST,
        methods.RESOURCES_READ,
        methods.PROMPTS_LIST,
    }
)


class Manners:
    """The plain side of one scripted server."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._asked = {step.method for step in plan.steps}
        self._told = {
            action.method
            for step in plan.steps
            for action in step.actions
            if isinstance(action, Notify)
        }
        self._lists: dict[str, tuple[str, list[dict[str, Any]]]] = {
            methods.TOOLS_LIST: (
                "tools",
                self._named(plan.tools, methods.TOOLS_CALL, "name", inputSchema={"type": "object"}),
            ),
            methods.PROMPTS_LIST: (
                "prompts",
                self._named(plan.prompts, methods.PROMPTS_GET, "name"),
            ),
            methods.RESOURCES_LIST: (
                "resources",
                self._named(plan.resources, methods.RESOURCES_READ, "uri"),
            ),
            methods.TEMPLATES_LIST: ("resourceTemplates", plan.templates),
        }

    def _named(
        self, given: list[dict[str, Any]], method: str, key: str, **more: Any
    ) -> list[dict[str, Any]]:
        found = {one[key]: one for one in given}
        for step in self._plan.steps:
            if step.method == method and isinstance(name := step.params.get(key), str):
                item = {"uri": name, "name": name} if key == "uri" else {"name": name}
                found.setdefault(name, {**item, **more})
        return list(found.values())

    @property
    def capabilities(self) -> dict[str, Any]:
        """What the server declares: what its script needs, unless that was said."""
        if self._plan.capabilities is not None:
            return self._plan.capabilities
        found: dict[str, Any] = {}
        changing = {"listChanged": True}
        if self._has("tools", methods.TOOLS_LIST, methods.TOOLS_CALL, methods.TOOLS_CHANGED):
            found["tools"] = changing
        about = (methods.RESOURCES_LIST, methods.RESOURCES_READ, methods.SUBSCRIBE)
        told = (methods.RESOURCE_UPDATED, methods.RESOURCES_CHANGED)
        if self._plan.templates or self._has("resources", *about, *told):
            follows = methods.RESOURCE_UPDATED in self._told or methods.SUBSCRIBE in self._asked
            found["resources"] = {**changing, "subscribe": True} if follows else changing
        if self._has("prompts", methods.PROMPTS_LIST, methods.PROMPTS_GET, methods.PROMPTS_CHANGED):
            found["prompts"] = changing
        if "notifications/message" in self._told or methods.SET_LEVEL in self._asked:
            found["logging"] = {}
        if methods.COMPLETE in self._asked:
            found["completions"] = {}
        return found

    def _has(self, key: str, *about: str) -> bool:
        listed = any(items for name, items in self._lists.values() if name == key)
        return listed or not (self._asked | self._told).isdisjoint(about)

    def answer(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        """Return the result, or the error as ``{"error": …}``, of what needs no script; else None.

        Args:
            method: What is asked.
            params: With which params.
        """
        plan, info = self._plan, {"name": self._plan.name, "version": "1"}
        hint = {} if plan.instructions is None else {"instructions": plan.instructions}
        if method == methods.INITIALIZE:
            wanted = params.get("protocolVersion")
            if plan.era == "stateless":
                data = {"supported": list(STATELESS), "requested": wanted}
                code = methods.UNSUPPORTED_VERSION
                return refused(code, "Unsupported protocol version", data)
            return {
                "protocolVersion": wanted if wanted in HANDSHAKE else HANDSHAKE[-1],
                "capabilities": self.capabilities,
                "serverInfo": info,
                **hint,
            }
        if method == methods.DISCOVER:
            if plan.era == "handshake":
                return refused(methods.METHOD_NOT_FOUND, f"Method not found: {method}")
            return {
                "supportedVersions": list(STATELESS),
                "capabilities": self.capabilities,
                "_meta": {SERVER_KEY: info},
                **hint,
            }
        if method == methods.PING and not is_stateless(params):
            return {}
        capabilities = self.capabilities
        if method in self._lists and methods.DECLARED_BY[method] in capabilities:
            key, items = self._lists[method]
            return {key: items}
        if method in (methods.SUBSCRIBE, methods.UNSUBSCRIBE):
            return {} if as_mapping(capabilities.get("resources")).get("subscribe") else None
        if method == methods.SET_LEVEL:
            return {} if "logging" in capabilities else None
        return None


def refused(code: int, message: str, data: Any = None) -> dict[str, Any]:
    """Return an error as :meth:`Manners.answer` does."""
    body = {"code": code, "message": message}
    return {"error": body if data is None else {**body, "data": data}}


def is_stateless(params: dict[str, Any]) -> bool:
    """Return whether a request is of the stateless era."""
    return VERSION_KEY in as_mapping(params.get("_meta"))


def complete(method: str, result: Any) -> Any:
    """Return a result with what the stateless era wants in each."""
    if not isinstance(result, dict):
        return result
    fresh = {"ttlMs": 0, "cacheScope": "private"} if method in _FRESH else {}
    if result.get("resultType", "complete") != "complete":
        fresh = {}
    return {"resultType": "complete", **fresh, **result}
