"""Many servers under their names, for hosts that own their loop."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Self, TypeVar

from mcpclient.engine.face import ManagerFace
from mcpclient.engine.facts import documented_as
from mcpclient.ground.errors import LocalProtocolError
from mcpclient.ground.options import Limits
from mcpclient.ground.version import VERSION
from mcpclient.handles.asking import Asking
from mcpclient.handles.handle import Handle
from mcpclient.handles.server import Server
from mcpclient.manager.manager import Manager as Original

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, Mapping
    from types import TracebackType

    from mcpclient.engine.calls import Call
    from mcpclient.features.asks import Roots
    from mcpclient.features.notifications import TickReport
    from mcpclient.manager.manager import Reload
    from mcpclient.protocol.trace import Trace

_log = logging.getLogger("mcpclient")
T = TypeVar("T")


@documented_as(Original)
class Manager(ManagerFace[Server]):
    """Runs MCP servers and answers calls to them, without ever blocking its host.

    :meth:`open` and :meth:`close` return handles too, and servers may be used as soon as
    :meth:`open` was called. What was not closed is closed when the interpreter ends. Leaving
    ``with Manager(...)`` is the one thing that waits, until all servers are gone.

    All handlers are called in :meth:`tick`, on the thread that calls it: those of notifications,
    of progress, of asks (``roots``, ``on_sample``, ``on_elicit``), and the callbacks of handles.
    An ask may be answered later: its handler then returns a ``concurrent.futures.Future`` or an
    awaitable. Async handlers run on the loop in which the host ticks, or on the manager's own if
    there is none. ``trace`` is called on the manager's own thread.

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
        limits: Limits = Limits(),  # noqa: B008 - frozen
        cache_ttl: float | None = None,
        stale_if_error: float | None = None,
        client_name: str = "mcpclient",
        client_version: str = VERSION,
    ) -> None:
        """Take note of the servers. Nothing starts before the manager is opened.

        The arguments are those of :class:`mcpclient.Manager`; there is no ``dispatch``, since
        everything waits for :meth:`tick`.
        """
        super().__init__(
            servers,
            roots=roots,
            on_sample=on_sample,
            on_elicit=on_elicit,
            extensions=extensions,
            trace=trace,
            limits=limits,
            cache_ttl=cache_ttl,
            stale_if_error=stale_if_error,
            client_name=client_name,
            client_version=client_version,
        )

    @classmethod
    def from_config(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        from mcpclient.manager import config  # only who has a file needs it

        return cls(config.load(path), **options)

    # -- life ------------------------------------------------------------------------------

    def open(self) -> Handle[None]:
        """Open the manager, and begin to start its eager servers.

        Raises:
            UseAfterClose: It was closed. A manager is opened once.
        """
        return self._follow("open", self._portal.open())

    def close(self) -> Handle[None]:
        """Stop all servers, at the same time; done when their processes are gone."""
        return self._follow("close", self._portal.close())

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close().result()
        self._portal.join()

    # -- servers ---------------------------------------------------------------------------

    def add(self, name: str, entry: Any) -> Handle[Server]:
        async def add() -> Server:
            return self._face(await self._manager.add(name, entry))

        return self._begin("add", add)

    def remove(self, name: str) -> Handle[None]:
        return self._begin("remove", lambda: self._manager.remove(name))

    def reload(self, servers: Mapping[str, Any] | str | os.PathLike[str]) -> Handle[Reload]:
        return self._begin("reload", lambda: self._manager.reload(servers))

    def roots_changed(self) -> Handle[None]:
        async def tell() -> None:
            self._manager.roots_changed()

        return self._begin("roots_changed", tell)

    # -- delivery --------------------------------------------------------------------------

    def tick(self, max_items: int | None = 100, budget: float | None = 0.002) -> TickReport:
        """Deliver what waits, in the order of arrival, on this very stack; never wait for more.

        What arrived first is delivered first: completions of handles that have callbacks,
        notifications, progress and asks stand in one order, over all servers. A tick in a tick
        goes on where the outer one is.

        Args:
            max_items: How many at most; None for all.
            budget: After so many seconds none is begun any more; None for no limit. One is
                always delivered.

        Returns:
            What was delivered, and what is left.

        It works before the manager is open and after it was closed: there may be something left.
        """
        self._portal.check_process()
        return self._mail.tick(max_items, budget, self._spawn)

    def set_wakeup(self, wakeup: Callable[[], Any] | None) -> None:
        """Have a function called when there is something to take, so that nobody need poll.

        It is called from any thread, with no lock held: once when the first thing comes, and
        again at the end of a tick that left something. It must not tick itself, but have the
        host's own loop do so: ``loop.call_soon_threadsafe(manager.tick)``, a byte to a pipe, an
        event. If something waits already, it is called at once. None: none any more.
        """
        self._mail.set_wakeup(wakeup)

    # -- inside ----------------------------------------------------------------------------

    def _begin(self, verb: str, work: Callable[[], Awaitable[T]], server: str = "") -> Handle[T]:
        handle = Handle(self._portal, work, self._mail, verb, server)
        self._portal.submit(handle)
        return handle

    def _follow(self, verb: str, call: Call[None]) -> Handle[None]:
        handle: Handle[None] = Handle(self._portal, None, self._mail, verb)

        def ended() -> None:
            handle.end(None, call.error)

        if call.watch(ended):
            ended()
        return handle

    def _face_of(self, name: str) -> Server:
        return Server(self, name)

    async def _ask(self, handler: Callable[..., Any], *facts: Any) -> Any:
        return await Asking(self._portal, self._mail, self._spawn, handler, facts).answer()

    def _spawn(self, answer: Awaitable[Any]) -> Callable[[], object]:
        """Await what an async handler returned: where the host ticks, if a loop runs there."""
        from mcpclient import loops

        if isinstance(answer, Handle):
            return answer.cancel  # it runs already

        async def finish() -> None:
            await answer

        try:
            loop = loops.current()
        except LocalProtocolError:
            return super()._spawn(answer)
        return loop.job(finish, "handler").cancel
