"""Many servers under their names, for threads that wait."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Self, TypeVar

from anyio import CapacityLimiter, to_thread

from mcpclient.blocking.server import Server
from mcpclient.engine.face import ManagerFace
from mcpclient.engine.facts import documented_as
from mcpclient.features.asks import Refuse
from mcpclient.ground.options import Limits
from mcpclient.ground.version import VERSION
from mcpclient.manager.manager import Manager as Original

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable, Mapping
    from threading import Event
    from types import TracebackType

    from mcpclient.features.asks import Roots
    from mcpclient.features.notifications import TickReport
    from mcpclient.manager.manager import Reload
    from mcpclient.protocol.trace import Trace

_log = logging.getLogger("mcpclient")
T = TypeVar("T")
# Threads that answer asks, of all servers; one whose ask was withdrawn is not free before its
# handler is done.
_ANSWERING = 40
# What becomes of a SystemExit there: it would end the loop.
_LEAVING = "a handler wanted to leave the program, which only the main thread can"


@documented_as(Original)
class Manager(ManagerFace[Server]):
    """Runs MCP servers and answers calls to them, from any thread.

    ``with Manager({"git": ["mcp-server-git"]}) as manager`` opens it; :meth:`open` and
    :meth:`close` do the same. What was not closed is closed when the interpreter ends.

    Handlers of notifications are called on one thread that is kept for them, handlers of asks
    (``roots``, ``on_sample``, ``on_elicit``) on a thread each, and those of progress on the thread
    that waits for the call. All of them may use the manager. An async one is awaited on the
    manager's own loop, where no blocking verb may be used; there ``trace`` is called too.

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

        The arguments are those of :class:`mcpclient.Manager`.
        """
        if dispatch not in ("auto", "manual"):
            raise ValueError(f'dispatch must be "auto" or "manual", not {dispatch!r}')
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
        self._answering = 0
        self._threads: CapacityLimiter | None = None
        self._waits: Event | None = None
        if dispatch == "auto":
            self._mail.set_wakeup(self._deliver_soon)

    @classmethod
    def from_config(cls, path: str | os.PathLike[str], **options: Any) -> Self:
        from mcpclient.manager import config  # only who has a file needs it

        return cls(config.load(path), **options)

    # -- life ------------------------------------------------------------------------------

    def open(self) -> None:
        """Open the manager, and begin to start its eager servers.

        Raises:
            ConfigError: A server needs packages that are not installed.
            UseAfterClose: It was closed. A manager is opened once.
        """
        opened = self._portal.open()
        try:
            opened.wait()
        except BaseException:  # Ctrl-C: nobody would close it
            self._portal.close()
            raise
        opened.take()

    def close(self) -> None:
        """Stop all servers, at the same time, and wait until their processes are gone.

        Takes at most as long as the slowest of them. Twice is no fault.
        """
        self._portal.check_thread()
        self._portal.close().wait()
        self._portal.join()
        if self._waits is not None:
            self._waits.set()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    # -- servers ---------------------------------------------------------------------------

    def add(self, name: str, entry: Any) -> Server:
        return self._face(self._portal.run(lambda: self._manager.add(name, entry)))

    def remove(self, name: str) -> None:
        self._portal.run(lambda: self._manager.remove(name))

    def reload(self, servers: Mapping[str, Any] | str | os.PathLike[str]) -> Reload:
        return self._portal.run(lambda: self._manager.reload(servers))

    def roots_changed(self) -> None:
        async def tell() -> None:
            self._manager.roots_changed()

        self._portal.run(tell)

    # -- notifications ---------------------------------------------------------------------

    def tick(self, max_items: int | None = None, budget: float | None = None) -> TickReport:
        """Deliver the notifications that wait, in the order of arrival, on this very stack.

        For ``dispatch="manual"``; arguments and report are those of
        :meth:`mcpclient.Manager.tick`.
        """
        self._portal.check()
        return self._mail.tick(max_items, budget, self._finish)

    def _deliver_soon(self) -> None:
        """Have the thread of notifications look; it begins with the first of them."""
        with self._portal.lock:
            waits = self._waits
            if waits is None:
                import threading

                waits = self._waits = threading.Event()
                courier = threading.Thread(
                    target=self._deliver, args=[waits], name="mcpclient notifications", daemon=True
                )
                courier.start()
        waits.set()

    def _deliver(self, waits: Event) -> None:
        while not self._portal.over:
            waits.wait()
            waits.clear()
            try:
                self._mail.tick(None, None, self._finish)
            except BaseException:  # the thread's outer edge: sys.exit() in a handler, say, which
                _log.exception("! a handler raised")  # must not keep the others from theirs

    # -- inside ----------------------------------------------------------------------------

    def _face_of(self, name: str) -> Server:
        return Server(self, name)

    def _finish(self, answer: Awaitable[Any]) -> None:
        """Wait for what an async handler returned."""

        async def finish() -> None:
            await answer

        try:
            self._portal.run(finish)
        except Exception:  # the user's code; the other handlers must run
            _log.exception("! a handler raised")

    async def _ask(self, handler: Callable[..., Any], *facts: Any) -> Any:
        with self._portal.lock:
            if self._answering >= _ANSWERING:
                raise Refuse("too many requests at once", code=-32603)
            self._answering += 1
        begun = False

        def call() -> Any:
            nonlocal begun
            begun = True
            try:
                return handler(*facts)
            except SystemExit as leaving:
                raise RuntimeError(_LEAVING) from leaving
            finally:
                self._answered()

        if self._threads is None:
            self._threads = CapacityLimiter(_ANSWERING)
        try:
            answer = await to_thread.run_sync(call, abandon_on_cancel=True, limiter=self._threads)
        finally:
            if not begun:
                self._answered()
        try:
            return await answer if hasattr(answer, "__await__") else answer
        except SystemExit as leaving:
            raise RuntimeError(_LEAVING) from leaving

    def _answered(self) -> None:
        with self._portal.lock:
            self._answering -= 1
