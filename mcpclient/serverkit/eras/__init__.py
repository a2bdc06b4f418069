"""What an era must answer on the server's side, and which era a request is of.

One file per era stands beside. Nothing above this package holds an ``if`` about versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from mcpclient.protocol import methods, versions
from mcpclient.protocol.eras.stateless import VERSION_KEY
from mcpclient.serverkit import incoming

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcpclient.serverkit.asks import Asker
    from mcpclient.serverkit.components import Component, Tool
    from mcpclient.serverkit.errors import MissingCapability, RpcError
    from mcpclient.serverkit.exchange import Exchange
    from mcpclient.serverkit.incoming import Item, Request
    from mcpclient.serverkit.rounds import AnotherRound
    from mcpclient.serverkit.session import Session
    from mcpclient.serverkit.state import State
    from mcpclient.serverkit.tasks import Plan, Task

    Route = Callable[[Exchange], Awaitable[dict[str, Any]]]


class Era(Protocol):
    """How one era is served."""

    @property
    def name(self) -> str:
        """``handshake`` or ``stateless``."""

    @property
    def version(self) -> str:
        """The protocol version; empty if none is agreed on yet."""

    @property
    def gated(self) -> bool:
        """Whether a method of a capability that is not declared does not exist."""

    @property
    def tasks_are_mute(self) -> bool:
        """Whether a task tells nothing on the way: no log, no progress (PRG-07)."""

    @property
    def routes(self) -> Mapping[str, Route]:
        """What answers which method."""

    def admit(self, session: Session, request: Request) -> State:
        """Return what is remembered for a request.

        Raises:
            RpcError: It may not be served.
        """

    def asker(self, exchange: Exchange) -> Asker:
        """Return how a handler of this exchange asks the client."""

    def notice(self, method: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the params of a notification as this version has them; None not to send it."""

    def item(self, item: dict[str, Any]) -> dict[str, Any]:
        """Return a listed item with the members that this version has."""

    def tool_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return a tool's result with what this version has."""

    def prompt_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return a prompt with what this version has."""

    def dress(self, exchange: Exchange, result: dict[str, Any]) -> dict[str, Any]:
        """Return a result as this era sends it."""

    def cacheable(
        self, exchange: Exchange, result: dict[str, Any], of: list[Component]
    ) -> dict[str, Any]:
        """Return a result, made of some components, with how long it may be kept."""

    def not_found(self, uri: str) -> RpcError:
        """Return the error that there is no such resource."""

    def unknown_tool(self, name: str, known: list[str]) -> RpcError:
        """Return the error that there is no such tool."""

    def failure(self, tool: Tool, text: str) -> str:
        """Return the text of a tool's failure."""

    def lacks(self, problem: MissingCapability) -> bool:
        """Return whether the protocol has an error for a capability that the client lacks."""

    def another_round(self, exchange: Exchange, another: AnotherRound) -> dict[str, Any]:
        """Return the result that asks."""

    def task_plan(self, exchange: Exchange, tool: Tool) -> Plan | None:
        """Return that a call of a tool becomes a task, or None.

        Raises:
            RpcError: It must, or must not, and cannot.
        """

    def made(self, task: Task) -> dict[str, Any]:
        """Return the result of a call that became a task."""

    def task_asker(self, exchange: Exchange, task: Task) -> Asker:
        """Return how a task asks the client."""

    def status(self, problem: RpcError) -> int:
        """Return the HTTP status that goes with an error."""


def read(session: Session, line: bytes) -> list[Item]:
    """Return what a line holds."""
    if session.profile == "gateway":
        from mcpclient.serverkit.eras import gateway  # few servers have that profile

        return gateway.read(line)
    most = session.server.limits.batch
    return incoming.read(line, batches=session.version == "2025-03-26", most=most)


def of(session: Session, request: Request, claimed: str | None) -> Era:
    """Return the rules for a request.

    Each request of the stateless era says so itself; ``initialize`` opens the other one.
    """
    if session.profile == "gateway":
        return unopened(session)
    modern = VERSION_KEY in request.meta or (claimed is not None and claimed in versions.STATELESS)
    if modern or request.method == methods.DISCOVER:
        from mcpclient.serverkit.eras.stateless import Stateless

        return Stateless(session.server, request.meta)
    return session.era or unopened(session)


def unopened(session: Session) -> Era:
    """Return the rules before an opening."""
    if session.profile == "gateway":
        from mcpclient.serverkit.eras.gateway import Gateway

        return Gateway()
    from mcpclient.serverkit.eras.handshake import Handshake

    return Handshake("")
