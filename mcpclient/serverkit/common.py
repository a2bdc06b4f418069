"""What the routes have in common: params, what a caller may see, what is declared."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpclient.serverkit.components import Component
from mcpclient.serverkit.errors import METHOD_NOT_FOUND, RpcError, refused_scope

if TYPE_CHECKING:
    from mcpclient.serverkit.exchange import Exchange
    from mcpclient.serverkit.incoming import Params


def params_of(exchange: Exchange) -> Params:
    """Return the params of the request."""
    assert exchange.request is not None
    return exchange.request.params


def visible(exchange: Exchange, kind: str) -> list[Component]:
    """Return what of a kind the caller may see, sorted by name."""
    found = exchange.server.components(kind, exchange.state)
    return sorted((one for one in found.values() if exchange.allows(one.scope_set)), key=sorted_by)


def sorted_by(component: Component) -> str:
    """Return by what a list is sorted."""
    # Names of resources need not be unique; their URIs are.
    return f"{component.name}\n{component.key}"


def declared(exchange: Exchange, *path: str) -> None:
    """Check that a capability, or an option of it, is declared.

    Raises:
        RpcError: It is not, so the method does not exist.
    """
    if exchange.era.gated and not exchange.server.declares(exchange.state, *path):
        assert exchange.request is not None
        raise RpcError(
            METHOD_NOT_FOUND,
            f"Method not found: {exchange.request.method} (the server declares no "
            f"{'.'.join(path)})",
        )


def allowed(exchange: Exchange, component: Component) -> None:
    """Check that the caller may use a component.

    Raises:
        RpcError: Not with these scopes.
    """
    if not exchange.allows(component.scope_set):
        have = exchange.peer.scopes or frozenset()
        raise refused_scope(component.scope_set, component.scope_set - have)


def offered(exchange: Exchange, kind: str) -> dict[str, Component]:
    """Return what there is of a kind, by name or URI, whoever may see it."""
    return exchange.server.components(kind, exchange.state)
