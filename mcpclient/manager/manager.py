"""Many servers under their names, one cache, one place where notifications are delivered."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self

from anyio import create_task_group
from msgspec import Struct

from mcpclient import loops
from mcpclient.connection.dialing import Dialer
from mcpclient.features.asks import Asks
from mcpclient.features.cache import ReadCache
from mcpclient.features.notifications import Handlers, TickReport, Token, tick
from mcpclient.features.resources import Reader
from mcpclient.ground.errors import ConfigError, UseAfterClose
from mcpclient.ground.options import Limits
from mcpclient.ground.version import VERSION
from mcpclient.manager.pump import Pump
from mcpclient.manager.server import INCIDENT, STATE, Server
from mcpclient.manager.spec import ServerSpec, is_disabled, spec_of
from mcpclient.manager.status import Status
from mcpclient.manager.ways import Ways
from mcpclient.protocol.eras import Identity
from mcpclient.protocol.extensions import checked
from mcpclient.protocol.versions import is_stateless

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from mcpclient.features.asks import Roots
    from mcpclient.loops.base import Loop
    from mcpclient.protocol.mirror import Mirror
    from mcpclient.protocol.trace import Trace
    from mcpclient.supervision.incidents import Incident
    from mcpclient.transports.base import Transport
    from mcpclient.transports.watchdog import Watchdog

    Handler = Callable[[Server, Any], Any]


class Reload(Struct, frozen=True):
    """What a reload did: the names of the servers that are new, gone, or run in another way."""

    added: list[str]
    removed: list[str]
    changed: list[str]


class Manager:
    """Runs MCP servers and answers calls to them, on asyncio or trio.

    ``async with Manager({"git": ["mcp-server-git"]}) as manager`` opens it; :meth:`open` and
    :meth:`close` do the same and may be called from different tasks. All of it is used on the
    loop and thread that opened it.

    Attributes:
        cache: The reads that are kept; ``cache.stats()`` tells what it did.
    """

    def __init__(
        self,
        servers: Mapping[str, Any] | None = None,
        *,
        roots: Roots | None = None,
        on_sample: Callable[[Server, Any], Any] | None = None,
        on_elicit: Callable[[Server, Any], Any] | None = None,
        extensions: Mapping[str, Any] | None = None,
        trace: Trace | None = None,
        dispatch: str = "auto",
        limits: Limits = Limits(),  # noqa: B008 - frozen
        cache_ttl: float | None = None,
        stale_if_error: float | None = None,
        client_name: str = "mcpclient",
        client_version: str = VERSION,
    ) -> None:
        """Take note of the servers. Nothing starts before the manager is opened.

        Args:
            servers: By name: a :class:`ServerSpec`, an argv list, or a mapping as in a
                configuration file (``command``, ``args``, ``env``, ``cwd`` and the fields of
                :class:`ServerSpec`).
            roots: What of the file system servers may work in, if they ask: paths or ``file:``
                URIs, or a function of the server that returns them, plain or async.
            on_sample: Asks a model for a server: called with ``(server, params)`` of
                ``sampling/createMessage``, returns its result; plain or async.
            on_elicit: Asks a person for a server: called with ``(server, params)`` of
                ``elicitation/create``, returns ``{"action": "accept", "content": …}`` or the action
                ``decline`` or ``cancel``; plain or async. Defaults of the form are filled in,
                and what does not fit it is not sent. What has no handler is not offered to
                servers.
            extensions: The extensions of the protocol to use, by id, each a mapping of settings
                or an :class:`Extension`; servers of the stateless era are told of them. With
                ``{"io.modelcontextprotocol/tasks": {}}`` they may run tools as tasks.
            trace: Gives the trace context of each request: called with ``(server, method)``, both
                text, returns a mapping of ``traceparent``, ``tracestate`` and ``baggage``, or
                None. What is not of the W3C's shape is left out.
            dispatch: ``auto`` delivers notifications by itself; ``manual`` waits for
                :meth:`tick`.
            limits: ``cache_entries`` and ``cache_bytes`` bound the cache; the others are each
                server's own (``ServerSpec.limits``).
            cache_ttl: For how many seconds results are kept where the server's era names no time.
                None: reads until the server announces a change or ends, lists not at all.
            stale_if_error: For how many seconds past its time a result is still given if the
                server does not answer in time; None: never.
            client_name: Who we say we are, to the servers.
            client_version: In which version.

        Raises:
            ConfigError: An entry cannot be meant.
            ValueError: ``dispatch`` is neither, or an extension is none.
        """
        if dispatch not in ("auto", "manual"):
            raise ValueError(f'dispatch must be "auto" or "manual", not {dispatch!r}')
        self._specs = _specs_of(servers or {})
        self._asks = Asks(roots, on_sample, on_elicit)
        self._identity = Identity(
            client_name, client_version, self._asks.offers, checked(extensions)
        )
        self._trace = trace
        self.cache = ReadCache(
            limits.cache_entries, limits.cache_bytes, grace=stale_if_error or 0.0
        )
        self._reader = Reader(self.cache, cache_ttl)
        self._handlers = Handlers()
        self._servers: dict[str, Server] = {}
        self._leaving: set[Server] = set()
        self._pump = Pump(auto=dispatch == "auto")
        self._loop: Loop | None = None
        # Whether the servers have taken the place of their specs: a host's thread may look at any
        # moment of the opening, and must find all of them.
        self._taken_in = False
        self._ways: Ways | None = None
        self._closed = False

    @classmethod
    def from_config(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        """Return a manager of the servers that a file names.

        Args:
            path: A JSON file with ``mcpServers`` or ``servers``, as editors have them.
            options: The keyword arguments of :class:`Manager`.

        Raises:
            ConfigError: The file cannot be read, or an entry cannot be meant.
        """
        from mcpclient.manager import config  # only who has a file needs it

        return cls(config.load(path), **options)

    # -- life ------------------------------------------------------------------------------

    async def open(self) -> None:
        """Open the manager on the running loop, and begin to start its eager servers.

        Raises:
            ConfigError: A server needs packages that are not installed.
            UseAfterClose: It was closed. A manager is opened once.
        """
        if self._closed:
            raise UseAfterClose("the manager was closed; make a new one")
        if self._loop is not None:
            return
        _check_packages(self._specs)
        self._loop = loops.current()
        self._pump.start(self._loop)
        self._ways = Ways(self._loop)
        for name, spec in self._specs.items():
            self._take_in(name, spec)
        self._taken_in = True

    async def close(self) -> None:
        """Stop all servers, at the same time, and wait until their processes are gone.

        Takes at most as long as the slowest of them; cancelling does not shorten it.
        """
        self._closed = True
        self._pump.stop()
        servers = [*self._servers.values(), *self._leaving]
        for server in servers:
            server.retire()
        cancelled: BaseException | None = None
        for server in servers:
            try:
                await server.stop()
            except BaseException as problem:  # a cancellation: the others must be waited for too
                cancelled = problem
        if self._ways is not None:
            await self._ways.close()
        if cancelled is not None:
            raise cancelled

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    # -- servers ---------------------------------------------------------------------------

    def __getitem__(self, name: str) -> Server:
        self._running()
        try:
            return self._servers[name]
        except KeyError:
            known = ", ".join(map(repr, self._servers)) or "none"
            raise KeyError(f"no server is named {name!r} (known: {known})") from None

    def __contains__(self, name: object) -> bool:
        return name in (self._servers if self._taken_in else self._specs)

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._servers if self._taken_in else self._specs))

    def __len__(self) -> int:
        return len(self._servers if self._taken_in else self._specs)

    async def add(self, name: str, entry: Any) -> Server:
        """Take in one more server and return it; an eager one begins to start.

        Raises:
            ConfigError: The name is taken, or the entry cannot be meant.
        """
        self._running()
        if name in self._servers:
            raise ConfigError("there is a server of this name; remove it first", key=name)
        spec = spec_of(entry, key=name)
        _check_packages({name: spec})
        return self._take_in(_checked(name), spec)

    async def remove(self, name: str) -> None:
        """Stop a server, wait until its processes are gone, and forget it.

        Raises:
            KeyError: There is none of this name.
        """
        await self._see_off(self._let_go(name))

    async def reload(self, servers: Mapping[str, Any] | str | os.PathLike[str]) -> Reload:
        """Run these servers from now on, and touch only what is different.

        A server whose entry means the same goes on undisturbed. One whose entry changed is
        stopped and, if it was running, started again; it stays the same object. The others are
        added or removed.

        Args:
            servers: As for :class:`Manager`, or the path of a file, as for :meth:`from_config`.

        Raises:
            ConfigError: An entry cannot be meant; then nothing was touched.
        """
        self._running()
        if isinstance(servers, Mapping):
            specs = _specs_of(servers)
        else:
            from mcpclient.manager import config

            specs = config.load(servers)
        _check_packages(specs)
        mine = self._servers
        report = Reload(
            added=[name for name in specs if name not in mine],
            removed=[name for name in mine if name not in specs],
            changed=[name for name in specs if name in mine and specs[name] != mine[name].spec],
        )
        # All of it at once, whoever reloads or stops meanwhile; only the ends are waited for.
        removed = [self._let_go(name) for name in report.removed]
        changed = [mine[name] for name in report.changed]
        for server in changed:
            self._rerun(server, specs[server.name])
        for name in report.added:
            self._take_in(name, specs[name])
        async with create_task_group() as group:
            for server in removed:
                group.start_soon(self._see_off, server)
            for server in changed:
                group.start_soon(server.ended)
        return report

    def status(self) -> Status:
        """Return a snapshot of all servers; printed, it is a table."""
        # A copy: another thread may look while one is added.
        servers = [server.status() for server in list(self._servers.values())]
        return Status(servers, self.cache.stats())

    def roots_changed(self) -> None:
        """Tell the servers that ``roots`` returns others than before, so that they ask again.

        Where it must not be told it is not: a stateless server asks each time it needs them.
        """
        self._running()
        for server in self._servers.values():
            server.roots_changed()

    # -- notifications ---------------------------------------------------------------------

    def on_notification(self, method: str, handler: Handler) -> Token:
        """Call a function for each notification of a method, from whichever server.

        Args:
            method: The exact method, such as ``notifications/resources/updated``.
            handler: Called with ``(server, params)``, plain or async. One that raises is logged;
                the others are called all the same.

        Returns:
            What :meth:`off_notification` takes. The same handler twice is called twice.
        """
        token = self._handlers.add(method, handler)
        for server in self._servers.values():
            server.want_lists()
        return token

    def on_state(self, handler: Callable[[Server, str], Any]) -> Token:
        """Call a function with ``(server, state)`` whenever a server's state changes.

        It is delivered like a notification, in the order of what happened, and removed by
        :meth:`off_notification`.
        """
        return self._handlers.add(STATE, handler)

    def on_incident(self, handler: Callable[[Server, Incident], Any]) -> Token:
        """Call a function with ``(server, incident)`` whenever a server ends unasked.

        It is delivered like a notification, and removed by :meth:`off_notification`.
        """
        return self._handlers.add(INCIDENT, handler)

    def off_notification(self, token: Token) -> None:
        """Remove a handler; with the last of its method, what is queued of it is dropped."""
        if self._handlers.remove(token):
            for server in self._servers.values():
                server.inbox.drop(token.method)
                server.want_lists()

    def tick(self, max_items: int | None = None, budget: float | None = None) -> TickReport:
        """Deliver the notifications that wait, in the order of arrival, on this very stack.

        Args:
            max_items: How many at most; None for all.
            budget: After so many seconds none is begun any more; None for no limit. One is
                always delivered.

        Returns:
            What was delivered, and what is left.
        """
        self._running()
        inboxes = [server.inbox for server in self._servers.values()]
        return tick(inboxes, max_items, budget, self._pump.finish)

    # -- inside ----------------------------------------------------------------------------

    def _running(self) -> Loop:
        if self._loop is None:
            raise UseAfterClose("the manager is not open: use `async with Manager(...)`")
        if self._closed:
            raise UseAfterClose("the manager is closed")
        return self._loop

    def _dialer(self, name: str, spec: ServerSpec, mirror: Mirror | None) -> Dialer:
        assert self._loop is not None
        assert self._ways is not None
        web = mirror is not None
        return Dialer(
            name,
            lambda: self._connect(name, spec, mirror),
            loop=self._loop,
            identity=self._identity,
            trace=self._trace,
            era=spec.era,
            timeouts=spec.timeouts,
            limits=spec.limits,
            command=spec.command,
            address=spec.address,
            older=(
                None
                if not web or is_stateless(spec.era)
                else lambda: self._connect(name, spec, mirror, old=True)
            ),
            proven=self._ways.known_of(spec) if web else None,
            # Each request has an answer of its own there: silence is a fault, not an era.
            silence_tells=not web,
        )

    def _rerun(self, server: Server, spec: ServerSpec) -> None:
        mirror = _mirror_for(spec)
        server.rerun(spec, self._dialer(server.name, spec, mirror), mirror)

    async def _connect(
        self, name: str, spec: ServerSpec, mirror: Mirror | None, *, old: bool = False
    ) -> Transport:
        """Start a server's process, or reach a server that runs elsewhere."""
        assert self._ways is not None
        # The machinery of each kind is loaded when the first of it is dialled.
        own = spec.dial(self._ways.loop, lambda one: self._connect(name, one, None))
        transport = await (own or self._ways.connect(name, spec, mirror, old=old))
        return self._ways.logged(transport, spec)

    @property
    def _watchdog(self) -> Watchdog | None:
        return self._ways.watchdog if self._ways is not None else None

    def _take_in(self, name: str, spec: ServerSpec) -> Server:
        assert self._loop is not None
        mirror = _mirror_for(spec)
        server = self._servers[name] = Server(
            name,
            spec,
            self._dialer(name, spec, mirror),
            mirror=mirror,
            loop=self._loop,
            reader=self._reader,
            handlers=self._handlers,
            announce=self._pump.announce,
            asks=self._asks,
        )
        if spec.start == "eager":
            server.begin()
        return server

    def _let_go(self, name: str) -> Server:
        server = self[name]
        del self._servers[name]
        self._leaving.add(server)
        # Its notifications are dropped; a handler that runs, and may be the caller, goes on.
        server.retire()
        return server

    async def _see_off(self, server: Server) -> None:
        try:
            await server.stop()
        finally:
            self._leaving.discard(server)


def _specs_of(servers: Mapping[str, Any]) -> dict[str, ServerSpec]:
    if not isinstance(servers, Mapping):
        raise ConfigError('servers are given by name: write {"name": …}')
    return {
        _checked(name): spec_of(entry, key=name)
        for name, entry in servers.items()
        if not is_disabled(entry, key=name)
    }


def _mirror_for(spec: ServerSpec) -> Mirror | None:
    if spec.type not in ("http", "sse"):
        return None
    from mcpclient.protocol.mirror import Mirror  # only HTTP has headers

    return Mirror()


def _check_packages(specs: Mapping[str, ServerSpec]) -> None:
    for name, spec in specs.items():
        if spec.type in ("http", "sse") and find_spec("httpcore2") is None:
            raise ConfigError(
                "servers behind http and https URLs need one more package: "
                "pip install 'mcpclient[http]'",
                key=f"{name}.url",
            )
        if spec.validate == "off":
            continue
        from mcpclient.features import schemas

        if lacking := schemas.missing():
            raise ConfigError(
                f"checking results needs {' and '.join(lacking)}: "
                "pip install 'mcpclient[schema]', or leave it \"off\"",
                key=f"{name}.validate",
            )


def _checked(name: object) -> str:
    if not isinstance(name, str) or not name or not name.isprintable():
        raise ConfigError(f"a server's name is printable text, not {name!r}")
    return name
