"""What a server remembers of a conversation: the part of it that can be saved. Sends nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from mcpclient.serverkit.components import KINDS

if TYPE_CHECKING:
    from mcpclient.serverkit.components import Component

# The severities of RFC 5424, least first.
LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")


class State:
    """One conversation's memory.

    Attributes:
        assigns: What handlers put there.
        added: Components that only this conversation has, by kind and key.
        page_size: How many items a page of a list has; None for all.
        client_info: Who the client says it is.
        client_capabilities: What it declared.
        version: The protocol version, empty before the opening.
        level: From which severity on it is logged to; None: never.
        subscriptions: The URIs it subscribed to.
        ready: Whether the client said that it is.
        restored: Whether this was saved once and loaded again.
    """

    __slots__ = (
        "added",
        "assigns",
        "client_capabilities",
        "client_info",
        "level",
        "page_size",
        "ready",
        "restored",
        "subscriptions",
        "version",
    )

    def __init__(self, page_size: int | None = None) -> None:
        self.assigns: dict[str, Any] = {}
        self.added: dict[str, dict[str, Component]] = {kind: {} for kind in KINDS}
        self.page_size = page_size
        self.client_info: dict[str, Any] = {}
        self.client_capabilities: dict[str, Any] = {}
        self.version = ""
        self.level: str | None = "info"
        self.subscriptions: set[str] = set()
        self.ready = False
        self.restored = False

    def save(self) -> dict[str, Any]:
        """Return it as JSON values. Components are code: the ``init`` hook adds them again."""
        found = {name: getattr(self, name) for name in self.__slots__ if name not in _NOT_SAVED}
        found["subscriptions"] = sorted(self.subscriptions)
        plain = msgspec.to_builtins(found, str_keys=True)
        assert isinstance(plain, dict)
        return plain

    def load(self, saved: dict[str, Any]) -> None:
        """Take over what :meth:`save` gave; what is not there stays as it is."""
        for name in self.__slots__:
            if name in saved and name not in _NOT_SAVED:
                setattr(self, name, saved[name])
        self.subscriptions = set(self.subscriptions)
        self.restored = True


_NOT_SAVED = frozenset({"added", "restored"})
