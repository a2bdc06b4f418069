"""One named server: its verbs, its state, and the joint of supervision and features."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from mcpclient.features.notifications import Inbox
from mcpclient.ground.errors import RemoteProtocolError, ServerUnavailable
from mcpclient.manager.status import ServerStatus
from mcpclient.manager.verbs import Verbs
from mcpclient.protocol import methods, payload
from mcpclient.supervision.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from msgspec import Raw

    from mcpclient.connection.caller import Timeout
    from mcpclient.connection.connection import Connection, Progress
    from mcpclient.features.notifications import Handlers
    from mcpclient.features.resources import Reader
    from mcpclient.loops.base import Loop
    from mcpclient.manager.spec import ServerSpec
    from mcpclient.protocol.eras import Terms
    from mcpclient.supervision.incidents import Incident
    from mcpclient.supervision.supervisor import Dial


class Server(Verbs):
    """One server of a manager, over all the lives of its process.

    Its verbs stand in :class:`~mcpclient.manager.verbs.Verbs`.

    Attributes:
        spec: How it is run.
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
        """
        self._supervisor = Supervisor(
            name, dialer, self, spec.restart, loop=loop, remembered=spec.limits.incidents
        )
        super().__init__(_Caller(self._supervisor, spec.timeouts.call), reader, spec.limits)
        self.spec = spec
        self.inbox = Inbox(self, handlers, spec.limits.inbox)
        self._announce = announce
        self._last: Connection | None = None
        self._before = ServerStatus(name)

    # -- life ------------------------------------------------------------------------------

    async def start(self, *, timeout: Timeout = UNSET) -> None:
        """Start the server and wait until it is up; a stop or a failure before is forgotten."""
        self._supervisor.start()
        await self.wait_ready(timeout=timeout)

    async def wait_ready(self, *, timeout: Timeout = UNSET) -> None:
        """Wait until the server is up, starting it if it is idle."""
        limit = self.spec.timeouts.call if timeout is UNSET else timeout
        await self._supervisor.ready(limit)

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
        caller = _Impatient(self._supervisor, self.spec.timeouts.call)
        return Verbs(caller, self._reader, self.spec.limits)

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
    def instructions(self) -> str | None:
        """Its hint for models, or None."""
        return self._terms.instructions if self._terms is not None else None

    @property
    def incidents(self) -> list[Incident]:
        """The deaths nobody asked for, oldest first, at most ``Limits.incidents``."""
        return list(self._supervisor.incidents)

    def stderr_tail(self) -> str:
        """The last of what its present or last process wrote to stderr."""
        if self._last is not None:
            return self._last.transport.stderr_tail()
        incidents = self._supervisor.incidents
        return incidents[-1].stderr_tail if incidents else ""

    @property
    def _terms(self) -> Terms | None:
        return self._last.session.terms if self._last is not None else None

    def begin(self) -> None:
        """Start the server without waiting for it."""
        self._supervisor.start()

    def halt(self) -> None:
        """Begin to stop the server without waiting for it; :meth:`stop` waits."""
        self._supervisor.halt()

    def status(self) -> ServerStatus:
        """Return a snapshot of what it does and did, over all its lives."""
        supervisor = self._supervisor
        now = self._before.copy()
        if self._last is not None and not self._last.over:
            now.add(self._last)
        now.state = supervisor.phase
        now.era = self.era
        now.version = self.protocol_version
        now.generation = supervisor.generation
        now.restarts = supervisor.restarts
        now.pid = supervisor.pid
        now.dropped = self.inbox.dropped
        now.last_incident = str(supervisor.incidents[-1]) if supervisor.incidents else ""
        return now

    def __repr__(self) -> str:
        return f"<Server {self.name!r} {self.state}>"

    def __str__(self) -> str:
        return self.name

    # -- told by the supervisor and the connection -----------------------------------------

    def went_up(self, connection: Connection) -> None:
        """See :class:`~mcpclient.supervision.supervisor.Keeper`."""
        self._last = connection

    def went_down(self) -> None:
        """See :class:`~mcpclient.supervision.supervisor.Keeper`."""
        if self._last is not None:
            self._before.add(self._last)
        self._reader.forget(self.name)

    def noticed(self, method: str, params: Raw) -> None:
        """See :class:`~mcpclient.connection.connection.Owner`."""
        # The cache first, then the handlers: one that reads again must not get the old text.
        if method == methods.RESOURCE_UPDATED:
            uri = _uri(params)
            if uri is not None:
                self._reader.updated(self.name, uri)
        elif method == methods.RESOURCES_CHANGED:
            self._reader.forget(self.name)
        if self.inbox.put(method, params):
            self._announce(self)


class _Caller:
    """Asks the present life of a server, waiting for it if it is not up."""

    def __init__(self, supervisor: Supervisor, timeout: float | None) -> None:
        self._supervisor = supervisor
        self._timeout = timeout
        self.name = supervisor.name

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: Timeout,
        on_progress: Progress | None = None,
    ) -> Coroutine[Any, Any, Raw]:
        """See :class:`~mcpclient.connection.caller.Caller`."""
        # No coroutine of its own where there is nothing to wait for.
        connection = self._supervisor.connection
        if connection is None or connection.over:
            return self._late(method, params, timeout, on_progress)
        if timeout is UNSET:
            timeout = self._timeout
        return connection.request(method, params, timeout, on_progress)

    async def line(
        self,
        timeout: Timeout,
        method: str,
    ) -> tuple[Connection, float | None]:
        """See :class:`~mcpclient.connection.caller.Caller`."""
        limit = self._timeout if timeout is UNSET else timeout
        connection = self._supervisor.connection
        if connection is not None and not connection.over:
            return connection, limit
        begun = time.monotonic()
        connection = await self._supervisor.ready(limit, method)
        return connection, None if limit is None else max(begun + limit - time.monotonic(), 0.001)

    async def _late(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        timeout: Timeout,
        on_progress: Progress | None,
    ) -> Raw:
        connection, left = await self.line(timeout, method)
        return await connection.request(method, params, left, on_progress)


class _Impatient(_Caller):
    """Asks the present life of a server, and refuses if there is none."""

    async def line(
        self,
        timeout: Timeout,
        method: str,
    ) -> tuple[Connection, float | None]:
        """See :class:`~mcpclient.connection.caller.Caller`."""
        connection = self._supervisor.connection
        if connection is None or connection.over:
            raise self._supervisor.refusal() or ServerUnavailable(
                f"it is not up but {self._supervisor.phase}; wait_ready() waits for it",
                server=self.name,
            )
        return connection, self._timeout if timeout is UNSET else timeout


def _uri(params: Raw) -> str | None:
    try:
        found = payload.value(params)
    except RemoteProtocolError:
        return None
    uri = found.get("uri") if isinstance(found, dict) else None
    return uri if isinstance(uri, str) else None
