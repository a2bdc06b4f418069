"""Who listens to a scripted server of the stateless era, and what each is told."""

from __future__ import annotations

from typing import Any

from mcpclient.protocol import methods
from mcpclient.testing.acts import as_mapping

_KEY = "io.modelcontextprotocol/subscriptionId"
_LISTS = {
    methods.TOOLS_CHANGED: "toolsListChanged",
    methods.RESOURCES_CHANGED: "resourcesListChanged",
    methods.PROMPTS_CHANGED: "promptsListChanged",
}


class Listeners:
    """The open streams of one life, by the id of the request that opened each."""

    def __init__(self) -> None:
        self._wanted: dict[Any, dict[str, Any]] = {}

    def add(self, id: Any, params: dict[str, Any]) -> dict[str, Any]:
        """Open a stream; return the notification that agrees to it."""
        wanted = self._wanted[id] = as_mapping(params.get("notifications"))
        told = {"_meta": {_KEY: id}, "notifications": wanted}
        return {"method": methods.ACKNOWLEDGED, "params": told}

    def drop(self, id: Any) -> None:
        """Close a stream, if it is one."""
        if isinstance(id, int | str):
            self._wanted.pop(id, None)

    def told(self, method: str, params: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the params of each notification to send: one for each stream that wants it.

        What belongs to no stream is sent as it is.
        """
        if method == methods.RESOURCE_UPDATED:
            uri = params.get("uri")
            ids = [
                id
                for id, one in self._wanted.items()
                if uri in (one.get("resourceSubscriptions") or ())
            ]
        elif method in _LISTS:
            ids = [id for id, one in self._wanted.items() if one.get(_LISTS[method])]
        else:
            return [params]
        return [{**params, "_meta": {**as_mapping(params.get("_meta")), _KEY: id}} for id in ids]
