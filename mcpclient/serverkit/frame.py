"""What a handler sees: the conversation's memory, and the voice of the request it answers.

Plain functions run in worker threads; what they call here crosses over to the loop by itself.
"""

from __future__ import annotations

import inspect
import threading
from typing import TYPE_CHECKING, Any

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.serverkit import asks
from mcpclient.serverkit.components import TEMPLATES, Component, made
from mcpclient.serverkit.state import LEVELS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpclient.serverkit.asks import Ask, Elicited, Root, Sampled
    from mcpclient.serverkit.exchange import Exchange
    from mcpclient.serverkit.server import Server


class Frame:
    """The conversation as one handler sees it.

    In the handshake era its memory lives as long as the session; in the stateless era as long as
    the request, since there is no session.
    """

    __slots__ = ("_exchange", "_keys", "_thread")

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._keys: set[str] = set()
        self._thread = threading.get_ident()

    # -- who -------------------------------------------------------------------------------

    @property
    def server(self) -> Server:
        """The server."""
        return self._exchange.server

    @property
    def session_id(self) -> str | None:
        """The session's name, where sessions have one."""
        return self._exchange.session.id

    @property
    def era(self) -> str:
        """``handshake`` or ``stateless``."""
        return self._exchange.era.name

    @property
    def protocol_version(self) -> str:
        """The protocol version that is spoken."""
        return self._exchange.era.version

    @property
    def client_info(self) -> dict[str, Any]:
        """Who the client says it is; may be empty."""
        return self._exchange.state.client_info

    @property
    def client_capabilities(self) -> dict[str, Any]:
        """What the client declared."""
        return self._exchange.state.client_capabilities

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the request, names in lower case; empty where there are none."""
        return self._exchange.peer.headers

    @property
    def remote(self) -> str | None:
        """The client's address, or None."""
        return self._exchange.peer.remote

    @property
    def subject(self) -> str | None:
        """Whom the authorization names, or None."""
        return self._exchange.peer.subject

    @property
    def scopes(self) -> frozenset[str] | None:
        """What the authorization allows; None: there is none, everything is allowed."""
        return self._exchange.peer.scopes

    @property
    def claims(self) -> Mapping[str, Any]:
        """What else the authorization says."""
        return self._exchange.peer.claims

    @property
    def meta(self) -> dict[str, Any]:
        """The request's ``_meta``; empty outside of a request."""
        request = self._exchange.request
        return request.meta if request is not None else {}

    @property
    def prepared(self) -> Any:
        """What the tool's ``prepare`` returned, in a task."""
        return self._exchange.prepared

    # -- memory ----------------------------------------------------------------------------

    @property
    def assigns(self) -> dict[str, Any]:
        """What handlers put there."""
        return self._exchange.state.assigns

    def assign(self, values: Mapping[str, Any] | None = None, /, **more: Any) -> Frame:
        """Remember values by name, and return the frame."""
        self.assigns.update(values or {}, **more)
        return self

    def assign_new(self, name: str, make: Callable[[], Any]) -> Any:
        """Return a value by name; the first time it is made."""
        if name not in self.assigns:
            self.assigns[name] = make()
        return self.assigns[name]

    @property
    def page_size(self) -> int | None:
        """How many items a page of a list has; None for all."""
        return self._exchange.state.page_size

    @page_size.setter
    def page_size(self, size: int | None) -> None:
        if size is not None and (type(size) is not int or size < 1):
            raise LocalProtocolError(f"page_size must be at least 1, or None, not {size!r}")
        self._exchange.state.page_size = size

    def save(self) -> dict[str, Any]:
        """Return the memory as JSON values, for :meth:`restore`."""
        return self._exchange.state.save()

    def restore(self, saved: dict[str, Any]) -> Frame:
        """Take over what :meth:`save` gave, and return the frame."""
        self._exchange.state.load(saved)
        return self

    # -- what there is ---------------------------------------------------------------------

    def register(self, component: Any, *, name: str | None = None) -> Component:
        """Give this session a tool, a prompt or a resource of its own; the client is told.

        Raises:
            LocalProtocolError: There is no session: ``server.add`` gives it to everybody.
        """
        self._in_a_session("register")
        added = made(component, name)
        self._exchange.state.added[added.kind][added.key] = added
        self._list_changed(added.kind)
        return added

    def unregister(self, kind: str, key: str) -> bool:
        """Take one of this session's own components away; the client is told.

        Args:
            kind: ``tools``, ``prompts``, ``resources`` or ``templates``.
            key: The name, or a resource's URI.

        Returns:
            Whether there was one.
        """
        self._in_a_session("unregister")
        gone = self._exchange.state.added[kind].pop(key, None) is not None
        if gone:
            self._list_changed(kind)
        return gone

    def _in_a_session(self, what: str) -> None:
        if self._exchange.state is not self._exchange.session.state:
            raise LocalProtocolError(
                f"{what}: there is no session in the stateless era; use server.add or "
                "server.remove, which are for everybody"
            )

    def _list_changed(self, kind: str) -> None:
        shown = "resources" if kind == TEMPLATES else kind
        session = self._exchange.session
        self._on_loop(lambda: session.list_changed(shown))

    # -- telling ---------------------------------------------------------------------------

    def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Tell the client how far the request is, if it wants to know."""
        self._on_loop(lambda: self._exchange.progress(progress, total, message))

    def log(self, level: str, data: Any, logger: str | None = None) -> None:
        """Send a log message, if the client wants those of this severity.

        Args:
            level: ``debug``, ``info``, ``notice``, ``warning``, ``error``, ``critical``, ``alert``
                or ``emergency``.
            data: Any JSON value.
            logger: Who says it.
        """
        if level not in LEVELS:
            raise LocalProtocolError(f"no such level: {level!r} (known: {', '.join(LEVELS)})")
        # As it is now: a long request may be told to log more, or less.
        least = None if self._exchange.mute else self._exchange.state.level
        if least is None or LEVELS.index(level) < LEVELS.index(least):
            return
        params = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        self._on_loop(lambda: self._exchange.tell("notifications/message", params))

    def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        """Send any notification to this client."""
        self._on_loop(lambda: self._exchange.tell(method, params or {}))

    def resource_updated(self, uri: str) -> None:
        """Tell whoever subscribed to it that a resource changed."""
        self._on_loop(lambda: self.server.resource_updated(uri))

    def elicitation_complete(self, id: str) -> None:
        """Tell the client that the page with this id was dealt with (2025-11-25)."""
        self.notify("notifications/elicitation/complete", {"elicitationId": id})

    def close_stream(self) -> None:
        """Close the stream of this request, where there is one that the client can resume.

        The client comes back for the rest (2025-11-25, HTTP); elsewhere nothing happens.
        """
        self._on_loop(self._exchange.drop)

    def _on_loop(self, call: Callable[[], None]) -> None:
        if threading.get_ident() == self._thread:
            call()
            return
        from anyio import from_thread  # we are in one of its threads

        from_thread.run_sync(call)

    # -- asking ----------------------------------------------------------------------------

    async def ask(self, ask: Ask, *, key: str | None = None) -> Any:
        """Ask the client one thing; see :mod:`mcpclient.serverkit.asks`.

        In the handshake era it is a request, and the handler waits. In the stateless era the
        request ends with a result that asks, and **the handler is run again from its start** when
        the client repeats it with the answer: what was answered is answered at once then. So
        what a handler does before it asks must do no harm if it is done again; see :meth:`once`.

        Args:
            ask: The question.
            key: What it is called on the wire of the stateless era; by default by its kind and
                number.

        Raises:
            MissingCapability: The client cannot be asked that.
            AskFailed: It refused, did not answer in time, or its answer does not fit.
        """
        key = self._key(ask, key)
        return (await self._exchange.asker.ask({key: ask}))[key]

    async def ask_all(self, **questions: Ask) -> dict[str, Any]:
        """Ask several things at once, each under its key, and return the answers by key."""
        for key, ask in questions.items():
            self._key(ask, key)
        return await self._exchange.asker.ask(questions)

    async def sample(self, messages: Any, *, key: str | None = None, **options: Any) -> Sampled:
        """Ask the client's model; see :func:`mcpclient.serverkit.asks.sample`."""
        found: Sampled = await self.ask(asks.sample(messages, **options), key=key)
        return found

    async def roots(self, *, key: str | None = None) -> list[Root]:
        """Ask for the client's roots."""
        found: list[Root] = await self.ask(asks.roots(), key=key)
        return found

    async def elicit(self, message: str, form: Any, *, key: str | None = None) -> Elicited:
        """Ask a person by a form; see :func:`mcpclient.serverkit.asks.elicit`."""
        found: Elicited = await self.ask(asks.elicit(message, form), key=key)
        return found

    async def elicit_url(
        self, message: str, url: str, *, id: str | None = None, key: str | None = None
    ) -> Elicited:
        """Ask a person to visit a page; see :func:`mcpclient.serverkit.asks.elicit_url`."""
        found: Elicited = await self.ask(asks.elicit_url(message, url, id=id), key=key)
        return found

    async def once(self, key: str, make: Callable[[], Any]) -> Any:
        """Return what a function gives, called only once however often the handler is run.

        The value, which must be JSON, goes to the client and comes back signed, not hidden.

        Args:
            key: The value's name.
            make: Plain or async, without arguments.
        """

        async def run() -> Any:
            made_now = make()
            return await made_now if inspect.isawaitable(made_now) else made_now

        return await self._exchange.asker.once(key, run)

    def _key(self, ask: Ask, key: str | None) -> str:
        key = key or asks.key_for(ask, self._keys)
        if key in self._keys:
            raise LocalProtocolError(f"the key {key!r} is used for two questions")
        self._keys.add(key)
        return key
