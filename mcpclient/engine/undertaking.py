"""What a face shows of an operation without asking anybody."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpclient.engine.facts import documented_as
from mcpclient.features.operation import Operation as Original

if TYPE_CHECKING:
    from mcpclient.engine.portal import Portal


@documented_as(Original)
class OperationFace:
    """The facts of one operation."""

    def __init__(self, portal: Portal, original: Original) -> None:
        """Made by a server.

        Args:
            portal: The manager's.
            original: The async one.
        """
        self._portal = portal
        self._original = original
        self.tool = original.tool

    @property
    def id(self) -> str | None:
        return self._original.id

    @property
    def server(self) -> str:
        return self._original.server

    @property
    def status(self) -> str:
        return self._original.status

    @property
    def message(self) -> str | None:
        return self._original.message

    @property
    def created_at(self) -> str | None:
        return self._original.created_at

    @property
    def ttl(self) -> float | None:
        return self._original.ttl

    @property
    def poll_interval(self) -> float | None:
        return self._original.poll_interval

    @property
    def raw(self) -> dict[str, Any]:
        return self._original.raw

    @property
    def ended(self) -> bool:
        return self._original.ended

    def __repr__(self) -> str:
        return repr(self._original)
