"""What a client of the stateless era listens to: one long request, and a filter.

https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import msgspec

from mcpclient.protocol import methods
from mcpclient.protocol.extensions import TASKS
from mcpclient.serverkit import asks
from mcpclient.serverkit.errors import RpcError
from mcpclient.serverkit.uris import LONGEST, covers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpclient.loops.base import Waiter
    from mcpclient.serverkit.exchange import Exchange

SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"


class Listener:
    """One subscription.

    Attributes:
        honoured: The part of the filter that is kept to, as it is acknowledged.
        waiter: Holds a value once the server ends it.
    """

    def __init__(self, exchange: Exchange, honoured: dict[str, Any]) -> None:
        assert exchange.request is not None
        self._exchange = exchange
        self.honoured = honoured
        self.waiter: Waiter | None = None
        id = msgspec.json.decode(exchange.request.id)
        # With its JSON type: 1 is not "1" (SUB-02).
        self.meta = {SUBSCRIPTION_KEY: id}

    @classmethod
    def made(cls, exchange: Exchange, wanted: Mapping[str, Any]) -> Self:
        """Return the subscription that a filter asks for, as far as the server can keep to it."""
        server, state = exchange.server, exchange.state
        found: dict[str, Any] = {}
        for kind in ("tools", "prompts", "resources"):
            flag = f"{kind}ListChanged"
            if wanted.get(flag) is True and server.declares(state, kind, "listChanged"):
                found[flag] = True
        uris = wanted.get("resourceSubscriptions")
        if isinstance(uris, list) and server.declares(state, "resources", "subscribe"):
            most = server.limits.subscriptions
            listed = [uri for uri in uris if isinstance(uri, str) and len(uri) <= LONGEST]
            if listed:
                found["resourceSubscriptions"] = listed[:most]
        ids = wanted.get("taskIds")
        if isinstance(ids, list):
            if TASKS not in (state.client_capabilities.get("extensions") or {}):
                raise asks.missing(("extensions", TASKS))
            found["taskIds"] = [id for id in ids if _is_task(exchange, id)]
        return cls(exchange, found)

    def acknowledge(self) -> None:
        """Say what will be told, before anything is."""
        self._tell(methods.ACKNOWLEDGED, {"notifications": self.honoured})

    def list_changed(self, kind: str) -> None:
        """Tell that a list changed, if that was asked for."""
        if self.honoured.get(f"{kind}ListChanged"):
            self._tell(f"notifications/{kind}/list_changed", {})

    def resource_updated(self, uri: str) -> None:
        """Tell that a resource changed, if that was asked for."""
        if any(covers(one, uri) for one in self.honoured.get("resourceSubscriptions", ())):
            self._tell(methods.RESOURCE_UPDATED, {"uri": uri})

    def task_moved(self, id: str, told: dict[str, Any]) -> None:
        """Tell how a task is, if that was asked for."""
        if id in self.honoured.get("taskIds", ()):
            self._tell(methods.TASKS_NOTICE, told)

    def end(self) -> None:
        """End it from the server's side: the request gets its result."""
        self._exchange.ending = True
        if self.waiter is not None and not self.waiter.done():
            self.waiter.set_result(None)

    def _tell(self, method: str, params: dict[str, Any]) -> None:
        self._exchange.tell(method, {"_meta": self.meta, **params})


def _is_task(exchange: Exchange, id: object) -> bool:
    try:
        exchange.server.task_table.of(exchange, str(id))
    except RpcError:
        return False
    return True
