"""One named server: its verbs, its state, and the joint of supervision and features."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Raw

from mcpclient.connection.pulse import Pulse
from mcpclient.features.calm import Calm
from mcpclient.features.desk import Desk
from mcpclient.features.loglevel import LogLevel
from mcpclient.features.notifications import Inbox
from mcpclient.features.operations import Operations
from mcpclient.features.subscriptions import SUBSCRIPTION_KEY, Subscriptions
from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.manager.calls import Calls, ImpatientCalls
from mcpclient.manager.status import ServerStatus
from mcpclient.manager.verbs import Verbs
from mcpclient.protocol import methods, payload
from mcpclient.supervision.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.connection.caller import Timeout
    from mcpclient.connection.connection import Connection
    from mcpclient.features.asks import Asks
    from mcpclient.features.notifications import Handlers
    from mcpclient.features.resources import Reader
    from mcpclient.loops.base import Loop, Stop
    from mcpclient.manager.spec import ServerSpec
    from mcpclient.protocol.eras import Terms, Wanted
    from mcpclient.protocol.events import Ask
    from mcpclient.protocol.mirror import Mirror
    from mcpclient.supervision.incidents import Incident
    from mcpclient.supervision.supervisor import Dial


_log = logging.getLogger("mcpclient")
# What the manager's own news are called, among the servers' notifications.
STATE = "mcpclient/state"
INCIDENT = "mcpclient/incident"
_LISTS = {
    "tools": methods.TOOLS_CHANGED,
    "prompts": methods.PROMPTS_CHANGED,
    "resources": methods.RESOURCES_CHANGED,
}
# How often a server is looked at before it counts as idle.
_LOOKS = 4


class Server(Verbs):
    """One server of a manager, over all the lives of its process.

    Its verbs stand in :class:`~mcpclient.manager.verbs.Verbs`.
    """

    def __init__(
        self,
        name: str,
        spec: ServerSpec,
        dialer: Dial,
        *,
        loop: Loop,
        reader: Reader,
        handlers: Handlers,
        announce: Callable[[Server], None],
        asks: Asks,
        mirror: Mirror | None = None,
    ) -> None:
        """Made by the manager; nothing starts yet.

        Args:
            name: The server's name.
            spec: How it is run.
            dialer: Starts a life.
            loop: The loop that runs this code.
            reader: The manager's reads.
            handlers: The manager's handlers of notifications.
            announce: Told when a notification waits for delivery.
            asks: The manager's handlers of what servers ask.
            mirror: Learns which arguments go into headers, where there are headers; else None.
        """
        self._supervisor = Supervisor(
            name, dialer, self, spec.restart, loop=loop, remembered=spec.limits.incidents
        )
        self._asks = asks
        followed = Subscriptions(name, loop, spec.timeouts.call, self._missed)
        operations = self._operations = Operations(self, loop, asks, followed)
        calls = self._calls(spec, mirror)
        super().__init__(calls, reader, followed, LogLevel(), operations, spec, mirror)
        self._desk = Desk(self, asks, spec.limits.asks, spec.timeouts.ask)
        self.inbox = Inbox(self, handlers, spec.limits.inbox)
        self._loop = loop
        self._handlers = handlers
        self._announce = announce
        self._calm = Calm(loop, spec.timeouts.settle, self._deliver)
        # The last life that was up tells what the server is; the newest process what it does.
        self._last: Connection | None = None
        self._newest: Connection | None = None
        self._pulse: Pulse | None = None
        self._idle: Stop | None = None
        self._before = ServerStatus(name)
        self._warned = False
        self.want_lists()

    # -- life ------------------------------------------------------------------------------

    async def start(self, *, timeout: Timeout = UNSET) -> None:
        """Start the server and wait until it is up; a stop or a failure before is forgotten.

        Raises:
            UseAfterClose: It was removed, or its manager closed.
        """
        self._supervisor.start()
        await self.wait_ready(timeout=timeout)

    async def wait_ready(self, *, timeout: Timeout = UNSET) -> None:
        """Wait until the server is up, starting it if it is idle."""
        await self._supervisor.ready(self._caller.limit(timeout))

    async def stop(self) -> None:
        """Stop the server and wait until its processes are gone.

        A stop wins in every state: also while the server starts, and between two lives. Calls in
        flight end as ``CallCancelled``; later ones are refused until :meth:`start`. It takes at
        most ``Timeouts.eof`` + ``Timeouts.term`` and moments more; cancelling does not shorten it.
        """
        self._supervisor.halt()
        await self._supervisor.ended()

    async def restart(self, *, timeout: Timeout = UNSET) -> None:
        """Stop the server, start it again, and wait until it is up."""
        await self.stop()
        await self.start(timeout=timeout)

    @property
    def no_wait(self) -> Verbs:
        """The same verbs, but refused with ``ServerUnavailable`` at once unless it is up."""
        caller = ImpatientCalls(self, self._supervisor, self._asks, self._operations, self.spec)
        verbs = Verbs(
            caller,
            self._reader,
            self._subscriptions,
            self._log_level,
            self._operations,
            self.spec,
            self._mirror,
        )
        verbs._checker = self._checker  # told of changes here
        return verbs

    # -- state -----------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """``idle``, ``starting``, ``opening``, ``up``, ``stopping``, ``waiting`` or ``failed``."""
        return self._supervisor.phase

    @property
    def generation(self) -> int:
        """The number of its present or last life, from 1; 0 before the first."""
        return self._supervisor.generation

    @property
    def pid(self) -> int | None:
        """Its process id, or None while there is no process."""
        return self._supervisor.pid

    @property
    def era(self) -> str | None:
        """``handshake`` or ``stateless``, as last found out; None before the first life."""
        return self._last.session.era.name if self._last is not None else None

    @property
    def protocol_version(self) -> str | None:
        """The protocol version last spoken with it, or None."""
        return self._terms.version if self._terms is not None else None

    @property
    def info(self) -> dict[str, Any]:
        """What it says of itself: ``name``, ``version`` and the like. Not to be relied on."""
        return dict(self._terms.info) if self._terms is not None else {}

    @property
    def capabilities(self) -> dict[str, Any]:
        """What it declared, as received."""
        return dict(self._terms.capabilities) if self._terms is not None else {}

    @property
    def extensions(self) -> dict[str, Any]:
        """The extensions it declared, by id, each with its settings as received (EXT-06)."""
        declared = self.capabilities.get("extensions")
        return dict(declared) if isinstance(declared, dict) else {}

    @property
    def instructions(self) -> str | None:
        """Its hint for models, or None."""
        return self._terms.instructions if self._terms is not None else None

    @property
    def incidents(self) -> list[Incident]:
        """The deaths nobody asked for, oldest first, at most ``Limits.incidents``."""
        return list(self._supervisor.incidents)

    def stderr_tail(self) -> str:
        """The last of what its present or last process wrote to stderr."""
        if self._newest is not None:
            return self._newest.transport.stderr_tail()
        incidents = self._supervisor.incidents
        return incidents[-1].stderr_tail if incidents else ""

    def _calls(self, spec: ServerSpec, mirror: Mirror | None) -> Calls:
        calls: Calls
        if mirror is None:
            calls = Calls(self, self._supervisor, self._asks, self._operations, spec)
        else:
            from mcpclient.manager.webcalls import WebCalls

            calls = WebCalls(self, self._supervisor, self._asks, self._operations, spec)
        self._operations.serve(calls, spec.timeouts, spec.limits)
        return calls

    @property
    def _terms(self) -> Terms | None:
        return self._last.session.terms if self._last is not None else None

    def begin(self) -> None:
        """Start the server without waiting for it."""
        self._supervisor.start()

    def halt(self) -> None:
        """Begin to stop the server without waiting for it; :meth:`stop` waits."""
        self._supervisor.halt()

    def rerun(self, spec: ServerSpec, dialer: Dial, mirror: Mirror | None = None) -> None:
        """Run the server in another way from now on, under the same name and the same object.

        The old process is gone before a new one starts. A server that was running runs again;
        :meth:`ended` waits for the end of the old process.
        """
        supervisor = self._supervisor
        # At once, and only then does the old life end: whatever happens meanwhile, a stop or
        # another change, the next life is what was said last.
        supervisor.redirect(dialer, spec.restart)
        self._mirror = mirror
        self._settle(self._calls(spec, mirror), spec)
        self._desk.clear()
        self._desk = Desk(self, self._asks, spec.limits.asks, spec.timeouts.ask)
        self.want_lists()
        self.inbox.limit = spec.limits.inbox
        self._calm.interval = spec.timeouts.settle
        if supervisor.halted:
            return  # a stop wins
        if supervisor.phase not in ("idle", "failed"):
            supervisor.renew()
        elif spec.start == "eager":
            supervisor.start()
        else:
            supervisor.rearm()

    async def ended(self) -> None:
        """Wait until the process that is being ended, if one is, is gone."""
        if self._supervisor.phase == "stopping":
            await self._supervisor.ended()

    def roots_changed(self) -> None:
        """Tell the server so, if it is up and was offered to be told (ROOT-02)."""
        connection = self._supervisor.connection
        if connection is not None and not connection.over and self._asks.answers("roots/list"):
            if connection.session.era.server_may_ask:
                connection.notify(methods.ROOTS_CHANGED, None)

    def retire(self) -> None:
        """Begin to stop the server for good; what it left in cache and inbox is dropped."""
        self._supervisor.retire()
        self._reader.forget(self.name)
        self.inbox.clear()
        self._operations.close()
        self._subscriptions.close()

    def status(self) -> ServerStatus:
        """Return a snapshot of what it does and did, over all its lives."""
        supervisor = self._supervisor
        now = self._before.copy()
        if self._newest is not None:
            now.add(self._newest)
        now.in_flight -= min(now.in_flight, self._subscriptions.lasting)
        now.state = supervisor.phase
        now.era = self.era
        now.version = self.protocol_version
        now.generation = supervisor.generation
        now.restarts = supervisor.restarts
        now.pid = supervisor.pid
        now.dropped = self.inbox.dropped
        now.merged = self._calm.merged
        now.last_incident = str(supervisor.incidents[-1]) if supervisor.incidents else ""
        return now

    def __repr__(self) -> str:
        return f"<Server {self.name!r} {self.state}>"

    def __str__(self) -> str:
        return self.name

    # -- told by the supervisor and the connection -----------------------------------------

    def born(self, connection: Connection) -> None:
        """See :class:`~mcpclient.supervision.supervisor.Keeper`."""
        if self._newest is not None:
            self._before.add(self._newest)
        self._newest = connection

    def went_up(self, connection: Connection) -> None:
        """See :class:`~mcpclient.supervision.supervisor.Keeper`."""
        self._last = connection
        era = connection.session.era
        if self._mirror is not None:
            self._mirror.active = era.mirrors
        if (old := era.deprecated & self._asks.offers) and not self._warned:
            self._warned = True
            names = ", ".join(sorted(old))
            _log.warning("%s ! %s has deprecated %s", self.name, era.version, names)
        self._operations.went_up(connection)
        self._log_level.went_up(connection, self.spec.timeouts.call)
        self._subscriptions.went_up(connection)
        if self.spec.ping is not None:
            self._pulse = Pulse(connection, self.spec.ping, self.spec.ping_misses)
            self._pulse.start()
        if self.spec.idle_stop is not None:
            self._watch_idle(connection, self.spec.idle_stop / _LOOKS, connection.calls, 0)

    def went_down(self) -> None:
        """See :class:`~mcpclient.supervision.supervisor.Keeper`."""
        if self._pulse is not None:
            self._pulse.stop()
        if self._idle is not None:
            self._idle.cancel()
        self._pulse = self._idle = None
        self._calm.flush()
        self._desk.clear()
        self._subscriptions.went_down()
        self._operations.went_down()
        if self._checker is not None:
            self._checker.forget()
        if not self._supervisor.retired:  # else the name, and the cache, may be another's by now
            self._reader.forget(self.name)

    def moved(self, phase: str) -> None:
        """See :class:`~mcpclient.supervision.supervisor.Keeper`."""
        if phase not in ("opening", "up"):
            self._desk.clear()  # whoever asked stops, or ended before it was up
        self._deliver(STATE, phase)

    def recorded(self, incident: Incident) -> None:
        """See :class:`~mcpclient.supervision.supervisor.Keeper`."""
        self._deliver(INCIDENT, incident)

    def noticed(self, method: str, params: Raw) -> None:
        """See :class:`~mcpclient.connection.connection.Owner`."""
        if self._supervisor.retired:
            return
        if method == methods.ACKNOWLEDGED:
            self._subscriptions.acknowledged(_mapping(params))
            return
        if method in (methods.TASK_STATUS, methods.TASKS_NOTICE):
            self._operations.noticed(_mapping(params))
        # The cache first, then the handlers: one that reads again must not get the old text.
        if method == methods.RESOURCE_UPDATED or method.endswith("/list_changed"):
            told = _mapping(params)
            ours = self._subscriptions.belongs(_subscription(told))
            if method != methods.RESOURCE_UPDATED:
                self._reader.list_changed(self.name, method)
                self._operations.forget_tools()
                if method == methods.TOOLS_CHANGED and self._checker is not None:
                    self._checker.forget()
            elif isinstance(uri := told.get("uri"), str):
                self._reader.updated(self.name, uri)
                if ours:
                    self._subscriptions.deliver(uri, told)
            if not ours:
                return  # of a stream that is not ours, or is no more
        if self._handlers.wants(method):
            self._calm.offer(method, params)

    def _missed(self, wanted: Wanted) -> None:
        """For a while nothing was heard of these: whatever is kept of them may be old."""
        for uri in wanted.uris:
            self._reader.updated(self.name, uri)
        for name in wanted.lists:
            self.noticed(_LISTS[name], Raw(b"{}"))

    def asked(self, connection: Connection, ask: Ask) -> bool:
        """See :class:`~mcpclient.connection.connection.Owner`."""
        return self._desk.take(connection, ask)

    def unasked(self, ask_id: object) -> None:
        """See :class:`~mcpclient.connection.connection.Owner`."""
        self._desk.withdraw(ask_id)
        self._subscriptions.cancelled(ask_id)

    def lapsed(self) -> None:
        """See :class:`~mcpclient.connection.connection.Owner`."""
        if self._supervisor.retired:
            return
        self._reader.forget(self.name)
        for name, method in _LISTS.items():
            declared = self.capabilities.get(name)
            if isinstance(declared, dict) and declared.get("listChanged") is True:
                self.noticed(method, Raw(b"{}"))
        self._subscriptions.lapsed()

    def want_lists(self) -> None:
        """Have the server tell of the lists whose changes matter here, if it must be told."""
        wanted = {name for name, method in _LISTS.items() if self._handlers.wants(method)}
        if self._checker is not None:
            wanted.add("tools")  # schemas are among what changes
        self._subscriptions.want_lists(frozenset(wanted))

    def _deliver(self, method: str, params: Any) -> None:
        if self.inbox.put(method, params):
            self._announce(self)

    def _watch_idle(self, connection: Connection, pause: float, calls: int, looks: int) -> None:
        """Look now and then whether a call was made; after enough looks without, stop."""

        def look() -> None:
            lasting = self._subscriptions.lasting
            used = len(connection.inflight) > lasting or connection.calls != calls
            # Who follows a resource would hear nothing of it while the server sleeps; and a
            # person who is asked would be asked for nothing.
            used = used or self._subscriptions.followed or self._desk.busy
            seen = 0 if used else looks + 1
            if seen >= _LOOKS:
                self._idle = None
                self._supervisor.pause()
            elif not connection.over:
                self._watch_idle(connection, pause, connection.calls, seen)

        self._idle = self._loop.later(pause, look)


def _mapping(params: Raw) -> dict[str, Any]:
    try:
        found = payload.value(params)
    except RemoteProtocolError:
        return {}
    return found if isinstance(found, dict) else {}


def _subscription(params: dict[str, Any]) -> object:
    meta = params.get("_meta")
    return meta.get(SUBSCRIPTION_KEY) if isinstance(meta, dict) else None
