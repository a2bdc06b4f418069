"""What the managers of the faces share: one portal, one async manager in it, one mail.

Knows how things get from the loop to the host and back; when the host waits is each face's own.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from mcpclient.engine.calls import Call
from mcpclient.engine.facts import Facts, Unborn, documented_as
from mcpclient.engine.mail import Mail
from mcpclient.engine.portal import Portal
from mcpclient.engine.relayed import Relayed
from mcpclient.ground.errors import UseAfterClose
from mcpclient.manager.manager import Manager
from mcpclient.manager.server import INCIDENT, STATE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from mcpclient.features.cache import ReadCache
    from mcpclient.features.notifications import Token
    from mcpclient.manager.server import Server
    from mcpclient.manager.spec import ServerSpec
    from mcpclient.manager.status import Status
    from mcpclient.supervision.incidents import Incident

_log = logging.getLogger("mcpclient")
S = TypeVar("S", bound="ServerFace")


class ServerFace(Facts):
    """A server as the host sees it: the same object as long as the name means the same server."""

    def __init__(self, owner: ManagerFace[Any], name: str) -> None:
        """Made by a manager.

        Args:
            owner: The manager.
            name: The server's name.
        """
        self._owner = owner
        self._bound: Server | None = None
        self._name = name

    @property
    def name(self) -> str:
        """The server's name."""
        return self._name

    def _find(self) -> Server:
        """Return the server itself, on the manager's thread or off it.

        Raises:
            KeyError, UseAfterClose: There is none yet, or none any more.
        """
        if self._bound is None:
            self._bound = self._owner._manager[self.name]
        return self._bound

    @property
    def _present(self) -> Server | Unborn:
        try:
            return self._find()
        except (KeyError, UseAfterClose):
            return Unborn(self.name, self._owner._spec(self.name))

    def __repr__(self) -> str:
        return f"<Server {self.name!r} {self.state}>"

    def __str__(self) -> str:
        return self.name


@documented_as(Manager)
class ManagerFace(Generic[S]):
    """The part of a manager that never waits."""

    # What runs in the portal; a test may have its own.
    _manager_class: type[Relayed] = Relayed

    def __init__(
        self,
        servers: Any,
        *,
        roots: Any,
        on_sample: Callable[..., Any] | None,
        on_elicit: Callable[..., Any] | None,
        **options: Any,
    ) -> None:
        """Take note of the servers; see the async manager."""
        self._manager = manager = self._manager_class(
            servers,
            roots=self._asking(roots) if callable(roots) else roots,
            on_sample=self._asking(on_sample) if on_sample is not None else None,
            on_elicit=self._asking(on_elicit) if on_elicit is not None else None,
            **options,
        )
        manager.left = self._left
        self._portal = Portal(manager.open, manager.close)
        self._mail = Mail(self._portal)
        self._relays: dict[str, Token] = {}
        self._faces: dict[str, S] = {}

    # -- for each face to say --------------------------------------------------------------

    def _face_of(self, name: str) -> S:
        """Return a new face of a server."""
        raise NotImplementedError

    async def _ask(self, handler: Callable[..., Any], *facts: Any) -> Any:
        """Have a handler of asks answer, and return what it returns."""
        raise NotImplementedError

    # -- servers ---------------------------------------------------------------------------

    @property
    def cache(self) -> ReadCache:
        """The reads that are kept; ``cache.stats()`` tells what it did."""
        return self._manager.cache

    def __getitem__(self, name: str) -> S:
        self._portal.check_process()
        with self._portal.lock:
            if (face := self._faces.get(name)) is not None:
                return face
            if name not in self._manager:
                known = ", ".join(map(repr, self._manager)) or "none"
                raise KeyError(f"no server is named {name!r} (known: {known})")
            face = self._faces[name] = self._face_of(name)
            return face

    def __contains__(self, name: object) -> bool:
        return name in self._manager

    def __iter__(self) -> Iterator[str]:
        return iter(self._manager)

    def __len__(self) -> int:
        return len(self._manager)

    def status(self) -> Status:
        return self._manager.status()

    def _face(self, server: Server) -> S:
        """Return the face of a server, on the manager's thread."""
        face = self._faces.get(server.name)
        if face is not None and face._bound is server:
            return face
        with self._portal.lock:
            face = self._faces.get(server.name)
            if face is None or face._bound not in (None, server):
                face = self._face_of(server.name)
                if server.name in self._manager and self._manager[server.name] is server:
                    self._faces[server.name] = face
            face._bound = server
            return face

    def _left(self, server: Server) -> None:
        with self._portal.lock:
            face = self._faces.get(server.name)
            if face is not None:
                del self._faces[server.name]
                face._bound = server
        if face is not None:
            self._mail.forget(face)

    def _spec(self, name: str) -> ServerSpec:
        return self._manager._specs[name]

    # -- notifications ---------------------------------------------------------------------

    def on_notification(self, method: str, handler: Callable[[S, Any], Any]) -> Token:
        self._portal.check_process()
        token, first = self._mail.add(method, handler)
        if first:
            self._portal.post(partial(self._relay, method))
        return token

    def on_state(self, handler: Callable[[S, str], Any]) -> Token:
        return self.on_notification(STATE, handler)

    def on_incident(self, handler: Callable[[S, Incident], Any]) -> Token:
        return self.on_notification(INCIDENT, handler)

    def off_notification(self, token: Token) -> None:
        if self._mail.remove(token):
            self._portal.post(partial(self._relay_no_more, token.method))

    def _relay(self, method: str) -> None:
        if method not in self._relays:
            self._relays[method] = self._manager.on_notification(
                method, partial(self._arrived, method)
            )

    def _relay_no_more(self, method: str) -> None:
        if method in self._relays and not self._mail.wants(method):
            self._manager.off_notification(self._relays.pop(method))

    def _arrived(self, method: str, server: Server, params: Any) -> None:
        self._mail.notice(self._face(server), method, params, server.spec.limits.inbox)

    # -- asks ------------------------------------------------------------------------------

    def _asking(self, handler: Callable[..., Any]) -> Callable[..., Awaitable[Any]]:
        def ask(server: Server, *facts: Any) -> Awaitable[Any]:
            return self._ask(handler, self._face(server), *facts)

        return ask

    def _spawn(self, answer: Awaitable[Any]) -> Callable[[], object]:
        """Await what an async handler returned on the manager's own loop; return how to cancel."""

        async def run() -> None:
            try:
                await answer
            except (Exception, SystemExit):  # the user's code: a task's outer edge
                _log.exception("! a handler raised")

        call = Call(self._portal, run)
        self._portal.submit(call)
        return call.abort
