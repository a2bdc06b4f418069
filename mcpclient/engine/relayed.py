"""The async manager as a face needs it: what it announces is handed on at once, in order."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mcpclient.manager.manager import Manager
from mcpclient.manager.pump import Pump

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.manager.server import Server


class Relayed(Manager):
    """Calls its handlers, which must be plain, in the order in which things arrive.

    Attributes:
        left: Told of each server that was removed.
    """

    left: Callable[[Server], None]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._pump = _Relay(auto=True)

    def _let_go(self, name: str) -> Server:
        server = super()._let_go(name)
        self.left(server)
        return server


class _Relay(Pump):
    def announce(self, server: Server) -> None:
        """See :class:`~mcpclient.manager.pump.Pump`."""
        # Not on this very stack: an answer that came just before wakes its task by the same
        # queue, and what arrived first is to be handed on first.
        if self._auto and self._loop is not None:
            self._loop.soon(partial(_hand_on, server))


def _hand_on(server: Server) -> None:
    if server.inbox:  # else it was dropped meanwhile
        server.inbox.deliver().step()
