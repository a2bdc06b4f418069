"""A connection over the memory pair, and a peer whose frames the test writes by hand."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
from msgspec import Raw

from mcpclient import Limits, Timeouts, loops
from mcpclient.connection.connection import Connection
from mcpclient.ground.exits import Exit
from mcpclient.protocol.envelope import Outgoing
from mcpclient.protocol.eras import Identity, Terms
from mcpclient.protocol.events import Ask
from mcpclient.protocol.framing import Oversize
from mcpclient.protocol.session import Session
from mcpclient.transports.memory import MemoryTransport, pair

IDENTITY = Identity("tests", "1")


class Ears:
    """The owner of a connection: keeps what it is told; answers no ask itself."""

    def __init__(self) -> None:
        self.notices: list[tuple[str, Any]] = []
        self.asks: list[Ask] = []
        self.unasks: list[object] = []
        self.answers_asks = False

    def noticed(self, method: str, params: Raw) -> None:
        self.notices.append((method, json.loads(bytes(params)) if params else None))

    def asked(self, connection: Connection, ask: Ask) -> bool:
        self.asks.append(ask)
        return self.answers_asks

    def unasked(self, ask_id: object) -> None:
        self.unasks.append(ask_id)


class Peer:
    """The server's end: all it received, and ways to say anything.

    ``respond``, if set, is called with each request in the turn in which it arrives.
    """

    def __init__(self, transport: MemoryTransport) -> None:
        self._transport = transport
        self.received: list[dict[str, Any]] = []
        self.lines: list[bytes] = []
        self.exit: Exit | None = None
        self._arrival = anyio.Event()
        self.respond: Callable[[dict[str, Any]], None] | None = None
        transport.start(self)

    # As a sink.

    def frame(self, line: bytes) -> None:
        self.lines.append(line)
        message = json.loads(line)
        self.received.append(message)
        self._arrival.set()
        if self.respond is not None and "id" in message and "method" in message:
            self.respond(message)

    def rest(self, line: bytes) -> None:
        raise AssertionError("we send whole lines")

    def oversize(self, spill: Oversize) -> None:
        raise AssertionError("we send nothing that long")

    def stalled(self, waited: float) -> None:
        raise AssertionError("a memory pair takes everything")

    def gone(self, exit: Exit, reason: str) -> None:
        self.exit = exit

    # For the test.

    def of(self, method: str) -> list[dict[str, Any]]:
        """Return what was received of one method."""
        return [message for message in self.received if message.get("method") == method]

    @property
    def cancels(self) -> list[Any]:
        """The ids of the requests that were cancelled, in order."""
        return [message["params"]["requestId"] for message in self.of("notifications/cancelled")]

    async def get(self, method: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until so many of one method were received and return them."""
        with anyio.move_on_after(10):
            while len(self.of(method)) < count:
                self._arrival = anyio.Event()
                await self._arrival.wait()
        found = self.of(method)
        assert len(found) >= count, f"{count} of {method!r} did not come, but {self.received}"
        return found

    def say(self, **message: Any) -> None:
        """Send a message."""
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def write(self, data: bytes) -> None:
        """Send any bytes."""
        self._transport.send(Outgoing(data))

    def answer(self, request: dict[str, Any] | int, **result: Any) -> None:
        id = request if isinstance(request, int) else request["id"]
        self.say(id=id, result=result)

    def refuse(self, request: dict[str, Any] | int, code: int, message: str, **more: Any) -> None:
        id = request if isinstance(request, int) else request["id"]
        self.say(id=id, error={"code": code, "message": message, **more})

    def progress(self, token: Any, progress: Any, **more: Any) -> None:
        params = {"progressToken": token, "progress": progress, **more}
        self.say(method="notifications/progress", params=params)

    def die(self, exit: Exit = Exit(code=1)) -> None:  # noqa: B008 - frozen
        self._transport.crash(exit)

    async def quiet(self) -> None:
        """Let all that is under way arrive."""
        loop = loops.current()
        for _ in range(4):
            await loop.checkpoint()


def unopened(
    *,
    timeouts: Timeouts = Timeouts(),  # noqa: B008 - frozen
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> tuple[Connection, Peer, Ears]:
    """Return a connection that listens and has said nothing yet."""
    loop = loops.current()
    ours, theirs = pair(loop, limits.frame)
    ears = Ears()
    connection = Connection(
        Session(IDENTITY),
        ours,
        loop=loop,
        timeouts=timeouts,
        limits=limits,
        server="peer",
        generation=1,
        owner=ears,
    )
    connection.start()
    return connection, Peer(theirs), ears


@asynccontextmanager
async def conversation(
    era: str = "handshake", **options: Any
) -> AsyncIterator[tuple[Connection, Peer, Ears]]:
    """An open connection; after it the books must balance."""
    connection, peer, ears = unopened(**options)
    session = connection.session
    if era == "handshake":
        session.initialize("2025-11-25")
        session.agree_handshake(Terms(version="2025-11-25"))
    else:
        session.probe("2026-07-28")
        session.agree_stateless(Terms(version="2026-07-28"))
    try:
        yield connection, peer, ears
    finally:
        await connection.close()
        connection.inflight.check()
        assert len(connection.inflight) == 0


def value(result: Raw) -> Any:
    """Return a result as plain values."""
    return json.loads(bytes(result))


class Outcomes:
    """What became of calls made in a task group, by name."""

    def __init__(self) -> None:
        self.of: dict[Any, Any] = {}

    async def keep(self, name: Any, call: Awaitable[Raw]) -> None:
        try:
            self.of[name] = value(await call)
        except Exception as problem:
            assert name not in self.of
            self.of[name] = problem
