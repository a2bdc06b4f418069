"""All that a feature knows of a server: a name, and somebody who asks it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import UnsetType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import Raw

    from mcpclient.connection.connection import Connection
    from mcpclient.connection.progress import Progress
    from mcpclient.ground.errors import InputRefused, ReplyError

Timeout = float | None | UnsetType
"""Seconds, None for no limit, or UNSET for the default of the server (``Timeouts.call``)."""


class Caller(Protocol):
    """Asks one server, whichever life it is in."""

    @property
    def name(self) -> str:
        """The server's name."""

    def limit(self, timeout: Timeout) -> float | None:
        """Return a time-out in seconds, the server's default if it is UNSET."""

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: Timeout,
        on_progress: Progress | None = None,
    ) -> Raw:
        """Return a result, waiting for the server if need be. Raises as the connection does."""

    async def plain(
        self,
        method: str,
        params: Mapping[str, Any],
        timeout: Timeout,
        on_progress: Progress | None = None,
    ) -> Raw:
        """Return a result as :meth:`request` does, but wait for no task that the call becomes.

        Raises:
            OtherResult: It became one.
        """

    async def resume(
        self,
        method: str,
        params: Mapping[str, Any],
        timeout: Timeout,
        needed: InputRefused | ReplyError,
    ) -> Raw:
        """Answer what the first round of a call asked, and return its final result.

        Raises:
            InputRefused: Nothing answers it.
        """

    async def line(
        self,
        timeout: Timeout,
        method: str,
    ) -> tuple[Connection, float | None]:
        """Return the open connection and the seconds left, waiting for the server if need be."""
