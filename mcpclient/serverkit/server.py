"""A server: what it offers, to whom it is open, and what happens to a request.

For tests, fixtures and small tools. It needs no transport: :meth:`Server.handle` answers one
message; the shells beside this file carry them.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, overload
from weakref import WeakSet

import msgspec

from mcpclient import loops
from mcpclient.ground.errors import ConfigError, LocalProtocolError
from mcpclient.ground.text import printable
from mcpclient.protocol import versions as known
from mcpclient.serverkit import hooks
from mcpclient.serverkit.components import RESOURCES, TEMPLATES
from mcpclient.serverkit.errors import METHOD_NOT_FOUND, RpcError
from mcpclient.serverkit.exchange import Peer
from mcpclient.serverkit.frame import Frame
from mcpclient.serverkit.lobby import Lobby
from mcpclient.serverkit.offering import Offering
from mcpclient.serverkit.options import KitLimits
from mcpclient.serverkit.session import Session
from mcpclient.serverkit.tasks import LONGEST, SHORTEST, Task, TaskOptions, TaskTable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from mcpclient.serverkit.exchange import Exchange, Send
    from mcpclient.serverkit.listening import Listener
    from mcpclient.serverkit.stores import Store

VERSIONS = (*known.HANDSHAKE, *known.STATELESS)


class Server(Offering):
    """A server of tools, prompts and resources, in both eras of the protocol.

    Attributes:
        name: Its name.
        version: Its version.
        instructions: A hint for models, or None.
        versions: The protocol versions it speaks, oldest first.
        page_size: How many items a page of a list has, unless a session says otherwise.
        limits: How much anything may hold.
        ask_timeout: For how many seconds a client may take to answer what it is asked.
        ttl: For how many seconds clients may keep what it says, unless a component says otherwise.
        cache_scope: Whether others may be given it.
        lobby: The sessions that have a name.
        listeners: The subscriptions of the stateless era.
        task_table: The tasks.
    """

    def __init__(
        self,
        name: str | None = None,
        version: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        website: str | None = None,
        icons: Sequence[Mapping[str, Any]] | None = None,
        instructions: str | None = None,
        components: Iterable[Any] = (),
        capabilities: Mapping[str, Any] | Iterable[str] | None = None,
        extensions: Mapping[str, Mapping[str, Any]] | None = None,
        versions: Sequence[str] = VERSIONS,
        page_size: int | None = None,
        ask_timeout: float | None = 30.0,
        tasks: TaskOptions = TaskOptions(),  # noqa: B008 - frozen
        ttl: float = 0.0,
        cache_scope: str = "private",
        secret: bytes | None = None,
        store: Store | None = None,
        idle: float | None = None,
        limits: KitLimits = KitLimits(),  # noqa: B008 - frozen
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Take note of what the server is.

        Args:
            name: Its name; mandatory.
            version: Its version; mandatory.
            title: Its name for people.
            description: What it is for, for people.
            website: Its home page.
            icons: As the protocol has them.
            instructions: A hint for models.
            components: What it offers: classes or instances; functions are decorated later.
            capabilities: What it declares; None: whatever it has, with all options.
            extensions: Extensions of the protocol and their settings, by id.
            versions: The protocol versions to speak.
            page_size: How many items a page of a list has; None for all.
            ask_timeout: For how many seconds a client may take to answer; None for no limit.
            tasks: How tasks are run.
            ttl: For how many seconds clients may keep what it says (2026-07-28).
            cache_scope: ``public`` or ``private``: whether others may be given it.
            secret: Signs the state of rounds. Workers that serve the same clients need the same
                one; None: a random one.
            store: Where sessions are kept, so that they outlive the process.
            idle: After so many seconds without a message a session is over; None: never.
            limits: How much anything may hold.
            clock: The time, in seconds since the epoch.

        Raises:
            ConfigError: Name or version is missing, or something else cannot be meant.
        """
        lacking = [key for key, one in (("name", name), ("version", version)) if not one]
        if lacking:
            raise ConfigError(f"a server must have a {' and a '.join(lacking)}", key=lacking[0])
        assert name is not None
        assert version is not None
        super().__init__(capabilities, extensions, tasks)
        odd = [one for one in versions if one not in VERSIONS]
        if odd or not versions:
            raise ConfigError(
                f"versions must be some of {', '.join(VERSIONS)}, not {odd or 'none'}",
                key="versions",
            )
        self.name = name
        self.version = version
        info = {
            "name": name,
            "version": version,
            "title": title,
            "description": description,
            "websiteUrl": website,
            "icons": icons,
        }
        self.info = {key: value for key, value in info.items() if value is not None}
        self.instructions = instructions
        self.versions = tuple(one for one in VERSIONS if one in versions)
        self.page_size = page_size
        self.ask_timeout = ask_timeout
        self.ttl = ttl
        self.cache_scope = cache_scope
        self.limits = limits
        self.clock = clock
        self.lobby = Lobby(self, store, idle)
        self.listeners: set[Listener] = set()
        self.task_table = TaskTable(self)
        self._open: WeakSet[Session] = WeakSet()
        self._secret = secret
        for component in components:
            self.add(component)

    @property
    def secret(self) -> bytes:
        """What signs the state of rounds."""
        if self._secret is None:
            import os

            self._secret = os.urandom(32)
        return self._secret

    # -- one message -----------------------------------------------------------------------

    def open(
        self,
        send: Send | None = None,
        *,
        id: str | None = None,
        peer: Peer = Peer(),  # noqa: B008 - frozen
        profile: str = "spec",
    ) -> Session:
        """Begin a conversation; :meth:`Session.close` ends it.

        Args:
            send: Takes what belongs to no request: a plain function that does not block.
            id: The session's name, where the transport names sessions.
            peer: Who is at the other end.
            profile: ``spec``, or ``gateway``.
        """
        if profile not in ("spec", "gateway"):
            raise ConfigError(f'profile must be "spec" or "gateway", not {profile!r}')
        session = Session(self, send, id=id, peer=peer, profile=profile)
        self._open.add(session)
        if id is not None:
            self.lobby.open[id] = session
        return session

    @overload
    async def handle(self, message: bytes, session: Session | None = None) -> bytes | None: ...
    @overload
    async def handle(
        self, message: Mapping[str, Any], session: Session | None = None
    ) -> dict[str, Any] | None: ...
    async def handle(self, message: Any, session: Session | None = None) -> Any:
        """Answer one message, without any transport.

        Args:
            message: A line of JSON, or a mapping.
            session: The conversation; by default a new one.

        Returns:
            The answer, in the form of the message; None if it gets none.
        """
        session = session or self.open()
        line = message if isinstance(message, bytes) else msgspec.json.encode(message)
        for item in session.receive(line):
            reply = await session.answer(item)
            if reply is None:
                return None
            return reply.frame if isinstance(message, bytes) else msgspec.json.decode(reply.frame)
        return None

    async def serve(self, exchange: Exchange) -> dict[str, Any]:
        """Return the result of a request that was admitted; called by the session."""
        request = exchange.request
        assert request is not None
        era = exchange.era
        session = exchange.session
        if era.name == "stateless" and "init" in self.hooks:
            await self.begin(exchange)
        intercept = self.hooks.get("handle_request")
        if intercept is not None and request.method != "initialize":
            result = await intercept(request.method, request.params.whole(), Frame(exchange))
            if result is not hooks.NEXT:
                return exchange.era.dress(exchange, result)
        route = era.routes.get(request.method) or self.methods.get(request.method)
        if route is None:
            raise RpcError(METHOD_NOT_FOUND, f"Method not found: {printable(request.method, 200)}")
        result = await route(exchange)
        await session.keep()
        return exchange.era.dress(exchange, result)

    async def begin(self, exchange: Exchange) -> None:
        """Run the ``init`` hook for a frame that is new."""
        hook = self.hooks.get("init")
        if hook is not None:
            await hook(exchange.state.client_info, Frame(exchange))

    # -- telling everybody -----------------------------------------------------------------

    def resource_updated(self, uri: str) -> None:
        """Tell whoever subscribed to a resource, or to what it is part of, that it changed."""
        from mcpclient.serverkit.uris import covers

        for session in list(self._open):
            if any(covers(one, uri) for one in session.state.subscriptions):
                session.tell("notifications/resources/updated", {"uri": uri})
        for listener in list(self.listeners):
            listener.resource_updated(uri)

    def _list_changed(self, kind: str) -> None:
        shown = RESOURCES if kind == TEMPLATES else kind
        for session in list(self._open):
            session.list_changed(shown)
        for listener in list(self.listeners):
            listener.list_changed(shown)

    def task_moved(self, task: Task) -> None:
        """Tell who wants to know how a task is; called by the task."""
        if task.exchange is None:
            return
        if task.exchange.era.name == "handshake":
            task.exchange.session.tell("notifications/tasks/status", task.told())
            return
        for listener in list(self.listeners):
            listener.task_moved(task.id, task.told_as_extension(detailed=True))

    async def inform(self, event: Any) -> None:
        """Give an event of the application to the ``handle_info`` hook, once for each session."""
        hook = self.hooks.get("handle_info")
        if hook is None:
            raise LocalProtocolError("there is no hook handle_info to take the event")
        for session in list(self._open):
            if session.era is not None and not session.closed:
                await hook(event, session.frame())

    def task_ttl(self, wish: object) -> float:
        """Return for how many seconds a task is kept whose client wants this many milliseconds."""
        if type(wish) is not int and type(wish) is not float:
            return min(max(self.tasks.ttl, SHORTEST), LONGEST)
        # Bounded first: a number of JSON may be too long to be divided.
        return min(max(wish, SHORTEST * 1000), LONGEST * 1000) / 1000

    # -- sessions that have a name ---------------------------------------------------------

    @property
    def sessions(self) -> dict[str, Session]:
        """The open sessions that have a name."""
        return self.lobby.open

    async def resume(self, id: str, *, peer: Peer = Peer()) -> Session | None:  # noqa: B008
        """Return the session of this name: the open one, or one from the store; None for none.

        If there is none, the hook ``session_expired`` may accept it all the same.

        Raises:
            StoreFailed: The store cannot be asked.
        """
        return await self.lobby.resume(id, peer)

    async def end(self, session: Session, reason: str = "ended") -> None:
        """End a session for good: the store forgets it."""
        await self.lobby.end(session, reason)

    def sweep(self) -> list[Session]:
        """Close the sessions that were idle for too long, and return them."""
        return self.lobby.sweep()

    # -- the end --------------------------------------------------------------------------

    def gone(self, session: Session, reason: str) -> None:
        """Forget a session; called by the session."""
        self._open.discard(session)
        self.task_table.forsake(session)
        if session.id is not None and self.lobby.open.get(session.id) is session:
            del self.lobby.open[session.id]
        hook = self.hooks.get("terminate")
        if hook is None or session.era is None:
            return

        async def run() -> None:
            await hook(reason, session.frame())

        loops.current().job(run, "terminate")

    def close(self, reason: str = "the server stops") -> None:
        """End all sessions, tasks and subscriptions."""
        for listener in list(self.listeners):
            listener.end()
        self.task_table.end()
        for session in list(self._open):
            session.close(reason)

    def __repr__(self) -> str:
        return f"<Server {self.name!r} {self.version}>"
