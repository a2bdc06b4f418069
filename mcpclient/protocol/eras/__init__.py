"""What an era must answer, and what an opening agrees on. One file per era stands beside.

An era is asked how to stamp a request, how to read a result, how to cancel and whether the
server may ask. Nothing above this package holds an ``if`` about versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Raw, Struct

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.ground.text import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpclient.protocol.eras.tasks import Tasks
    from mcpclient.protocol.extensions import Extension


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


# What a client may offer to answer, whatever an era calls it on the wire.
ROOTS = "roots"
SAMPLING = "sampling"
ELICITATION = "elicitation"


class Identity(Struct, frozen=True):
    """Who we are and what we answer, as told to every server.

    Attributes:
        name: Our name.
        version: Our version.
        offers: Of :data:`ROOTS`, :data:`SAMPLING`, :data:`ELICITATION`, what has a handler.
        extensions: What the host opted in to, by id.
    """

    name: str
    version: str
    offers: frozenset[str] = frozenset()
    extensions: dict[str, Extension] = {}

    @property
    def info(self) -> dict[str, Any]:
        """The ``clientInfo`` member."""
        return {"name": self.name, "version": self.version}


class Wanted(Struct, frozen=True):
    """What is to be told of by notifications.

    Attributes:
        uris: Resources.
        lists: Of ``tools``, ``prompts``, ``resources``, those whose changes are of interest.
        tasks: The ids of tasks.
    """

    uris: frozenset[str] = frozenset()
    lists: frozenset[str] = frozenset()
    tasks: frozenset[str] = frozenset()


class Each(Struct, frozen=True):
    """A plan: one request for each resource.

    Attributes:
        requests: Methods and params, in order; each params has a ``uri``.
        refused: Resources that cannot be followed, since the server does not offer it.
    """

    requests: list[tuple[str, dict[str, Any]]]
    refused: list[str]


class Listen(Struct, frozen=True):
    """A plan: one long request for all of it, in place of the one before; None for none."""

    params: dict[str, Any] | None


class NoTasks(Struct, frozen=True, gc=False):
    """An answer: no call to this server can become a task, and why."""

    barred: str


class OtherResult(RemoteProtocolError):
    """A result is of a kind that an extension adds: not what the method by itself returns.

    Attributes:
        method: The method.
        kind: The ``resultType``.
        result: The whole result, as received.
    """

    def __init__(self, method: str, kind: str, result: Raw) -> None:
        super().__init__(
            f"the result of {method} is of the kind {printable(kind, 100)!r}, "
            f"which an extension adds; request() returns it as it is"
        )
        self.method = method
        self.kind = kind
        self.result = result


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
    def structured_any(self) -> bool:
        """Whether structured content may be any JSON value, and not only an object (TOOL-05)."""

    @property
    def mirrors(self) -> bool:
        """Whether arguments that tools mark are repeated in headers, where there are headers."""

    @property
    def pings(self) -> bool:
        """Whether ``ping`` exists, so that a server can be asked whether it is well."""

    @property
    def deprecated(self) -> frozenset[str]:
        """What a client may offer and should not any more."""

    def stamp(self, params: Mapping[str, Any] | None, token: int | None) -> Any:
        """Return the params of a request as this era sends them."""

    def read(self, method: str, result: Raw) -> Raw:
        """Return the result if it is a final one.

        Raises:
            RemoteProtocolError: It is of a kind that this era does not know.
            OtherResult: It is of a kind that an extension adds.
            InputRefused: The server wants another round.
        """

    def tasks(self, capabilities: Mapping[str, Any]) -> Tasks | NoTasks:
        """Return how a server that declared these capabilities runs tasks."""

    def replying(self, params: Any, result: Any) -> Any:
        """Return our answer to a request with these params, as this era sends it."""

    def wanted(self, code: int, data: Any) -> Mapping[str, Any]:
        """Return what a refusal asks for before the same request can succeed, by key."""

    def lifetime(self, result: Raw) -> float | None:
        """Return for how many seconds a result stays fresh; None if the era does not say."""

    def subscribing(
        self, old: Wanted, new: Wanted, capabilities: Mapping[str, Any]
    ) -> Each | Listen:
        """Return how to get from what is active to what is wanted."""

    @property
    def declares_completions(self) -> bool:
        """Whether a server that completes arguments says so in its capabilities."""

    @property
    def completes_in_context(self) -> bool:
        """Whether a completion may be asked for with the arguments that are chosen already."""

    def log_from(self, level: str | None, capabilities: Mapping[str, Any]) -> dict[str, Any] | None:
        """Have the server log from a level on; None for no more than it logs by itself.

        Returns:
            The params of the ``logging/setLevel`` that tells it so, or None if there is nothing
            to send: then later requests tell it.

        Raises:
            LocalProtocolError: It did not declare that it can be told.
        """

    def cancel(self, id: int, reason: str) -> dict[str, Any]:
        """Return the params of the ``notifications/cancelled`` that gives a request up."""


class Refused(Struct, frozen=True, gc=False):
    """A verdict: no conversation is possible, and trying again would not help."""

    problem: str
