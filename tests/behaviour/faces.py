"""The other faces in the shape of the async one, so that the suite's tests run on them unchanged.

A blocking call is made from a worker thread; a handle is awaited, and ticked in the test's loop.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Self

import anyio
from anyio import to_thread

from mcpclient import Server, blocking, handles, loops
from mcpclient.engine.calls import Call


def manager(face: str, manager_class: type[Any], servers: Any, options: dict[str, Any]) -> Any:
    """Return a manager of a face, to be used as if it were the async one.

    Args:
        face: ``async``, ``blocking`` or ``handles``.
        manager_class: The async manager itself, or the one in the face.
        servers: As for any manager.
        options: As for any manager.
    """
    if face == "async":
        return manager_class(servers, **options)
    home = Blocked() if face == "blocking" else Handled(options.pop("dispatch", "auto") == "auto")
    for name in ("roots", "on_sample", "on_elicit"):
        if callable(options.get(name)):
            options[name] = home.handler(options[name])
    base = {"blocking": blocking.Manager, "handles": handles.Manager}[face]
    made = type("Face", (base,), {"_manager_class": manager_class})
    home.wrap(made(servers, **options))
    return home


def awaited(name: str) -> bool:
    """Return whether a server's method is awaited in the async face."""
    return inspect.iscoroutinefunction(getattr(Server, name, None))


class FaceManager:
    """A manager of another face, used as if it were the async one."""

    face: Any

    def wrap(self, face: Any) -> None:
        self.face = face

    def __getattr__(self, name: str) -> Any:
        return getattr(self.face, name)

    def __getitem__(self, name: str) -> FaceServer:
        return self.server(self.face[name])

    def server(self, face: Any) -> FaceServer:
        return FaceServer(self, face)

    def on_notification(self, method: str, handler: Callable[..., Any]) -> Any:
        return self.face.on_notification(method, self.handler(handler))

    async def open(self) -> None:
        await self.call(self.face.open)

    async def close(self) -> None:
        await self.call(self.face.close)

    async def settled(self) -> None:
        """Wait until the manager has done what it was given before."""
        raise NotImplementedError

    async def call(self, verb: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a verb of the face and wait for it; cancelling that cancels the call."""
        raise NotImplementedError

    def handler(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """Return a handler for the face, which calls one of the test's."""
        raise NotImplementedError

    def subscription(self, face: Any) -> Any:
        raise NotImplementedError


class FaceServer:
    """A server of another face, used as if it were the async one."""

    def __init__(self, home: FaceManager, face: Any) -> None:
        self._home = home
        self._face = face

    def __getattr__(self, name: str) -> Any:
        member = getattr(self._face, name)
        if name == "subscribe":
            return lambda *args, **options: self._home.subscription(member(*args, **options))
        return partial(self._verb, member) if awaited(name) else member

    async def _verb(self, verb: Callable[..., Any], *args: Any, **options: Any) -> Any:
        if "on_progress" in options:
            options["on_progress"] = self._home.teller(options["on_progress"])
        return await self._home.call(verb, *args, **options)


class Handled(FaceManager):
    """A manager whose handles are awaited."""

    def __init__(self, ticks: bool) -> None:
        self._ticks = ticks

    def wrap(self, face: handles.Manager) -> None:
        super().wrap(face)
        loop = loops.current()

        def tick() -> None:
            face.tick()

        if self._ticks:
            face.set_wakeup(lambda: loop.from_thread(tick))

    async def settled(self) -> None:
        async def nothing() -> None:
            pass

        await self.face._begin("nothing", nothing)

    async def call(self, verb: Callable[..., Any], *args: Any, **options: Any) -> Any:
        handle = verb(*args, **options)
        try:
            try:
                return await handle
            finally:
                if self._ticks:  # what came before the answer
                    self.face.tick(None, None)
        except anyio.get_cancelled_exc_class():
            handle.cancel()
            with anyio.CancelScope(shield=True):
                await self.settled()
            raise

    def handler(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        return lambda face, *facts: handler(self.server(face), *facts)

    def teller(self, handler: Any) -> Any:
        return handler

    def subscription(self, face: handles.Subscription) -> handles.Subscription:
        return face  # it has the shape already


class Blocked(FaceManager):
    """A manager whose verbs are called from worker threads."""

    def __init__(self) -> None:
        import asyncio

        self._loop = asyncio.get_running_loop()
        self._mine = threading.local()

    def wrap(self, face: blocking.Manager) -> None:
        super().wrap(face)
        portal = face._portal
        submit = portal.submit

        def noting(call: Call[Any]) -> None:
            if (mine := getattr(self._mine, "calls", None)) is not None:
                mine.append(call)
            submit(call)

        portal.submit = noting  # type: ignore[method-assign]  # to abort what Ctrl-C would

    async def settled(self) -> None:
        async def nothing() -> None:
            pass

        await to_thread.run_sync(self.face._portal.run, nothing)

    async def call(self, verb: Callable[..., Any], *args: Any, **options: Any) -> Any:
        calls: list[Call[Any]] = []

        def work() -> Any:
            self._mine.calls = calls
            try:
                return verb(*args, **options)
            finally:
                self._mine.calls = None

        try:
            return await to_thread.run_sync(work, abandon_on_cancel=True)
        except anyio.get_cancelled_exc_class():
            for call in calls:
                call.abort()
            with anyio.CancelScope(shield=True):
                await self.settled()
            raise

    def handler(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        def called(face: blocking.Server, *facts: Any) -> Any:
            return self.teller(handler)(self.server(face), *facts)

        return called

    def teller(self, handler: Callable[..., Any]) -> Callable[..., Any]:
        """Have what an async handler of the test returns run in the test's loop."""

        def told(*facts: Any) -> Any:
            answer = handler(*facts)
            return self._forward(answer) if hasattr(answer, "__await__") else answer

        return told

    async def _forward(self, answer: Awaitable[Any]) -> Any:
        import asyncio

        async def run() -> Any:
            return await answer

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run(), self._loop))

    def subscription(self, face: blocking.Subscription) -> BlockedSubscription:
        return BlockedSubscription(self, face)


class BlockedSubscription:
    """A blocking subscription in the shape of the async one."""

    def __init__(self, home: Blocked, face: blocking.Subscription) -> None:
        self._home = home
        self._face = face

    async def __aenter__(self) -> Self:
        await self._home.call(self._face.__enter__)
        return self

    async def __aexit__(self, *facts: object) -> None:
        await self._home.call(self._face.__exit__, None, None, None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        if (update := await self._home.call(self._face.next)) is None:
            raise StopAsyncIteration
        return update
