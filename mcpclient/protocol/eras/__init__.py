"""What an era must answer, and what an opening agrees on. One file per era stands beside.

An era is asked how to stamp a request, how to read a result, how to cancel and whether the
server may ask. Nothing above this package holds an ``if`` about versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Raw, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping


class Terms(Struct, frozen=True, kw_only=True):
    """What an opening agreed on.

    Attributes:
        version: The protocol version spoken from here on.
        capabilities: What the server declared, as received.
        info: The server's name, version and the like, as received; may be empty.
        instructions: The server's hint for models, or None.
    """

    version: str
    capabilities: dict[str, Any] = {}
    info: dict[str, Any] = {}
    instructions: str | None = None


class Identity(Struct, frozen=True):
    """Who we are and what we can do, as told to every server."""

    name: str
    version: str
    capabilities: dict[str, Any] = {}

    @property
    def info(self) -> dict[str, Any]:
        """The ``clientInfo`` member."""
        return {"name": self.name, "version": self.version}


class Era(Protocol):
    """How one era converses, once (or while) it is opened."""

    @property
    def name(self) -> str:
        """``handshake`` or ``stateless``."""

    @property
    def version(self) -> str:
        """The protocol version."""

    @property
    def server_may_ask(self) -> bool:
        """Whether requests from the server are legal, and so must be answered."""

    @property
    def pings(self) -> bool:
        """Whether ``ping`` exists, so that a server can be asked whether it is well."""

    def stamp(self, params: Mapping[str, Any] | None, token: int | None) -> Any:
        """Return the params of a request as this era sends them."""

    def read(self, method: str, result: Raw) -> Raw:
        """Return the result if it is a final one.

        Raises:
            RemoteProtocolError: It is of a kind that this era does not know.
            InputRefused: The server wants another round.
        """

    def lifetime(self, result: Raw) -> float | None:
        """Return for how many seconds a result stays fresh; None if the era does not say."""

    def cancel(self, id: int, reason: str) -> dict[str, Any]:
        """Return the params of the ``notifications/cancelled`` that gives a request up."""


class Refused(Struct, frozen=True, gc=False):
    """A verdict: no conversation is possible, and trying again would not help."""

    problem: str
