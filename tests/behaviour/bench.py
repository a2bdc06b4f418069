"""The bench of the behaviour suite: a manager over any medium that copies every frame."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mcpclient import Manager, Server, ServerSpec, Timeouts, loops
from mcpclient.engine.relayed import Relayed
from mcpclient.ground.exits import Exit
from mcpclient.protocol.envelope import Outgoing
from mcpclient.protocol.framing import Oversize
from mcpclient.transports.base import Sink, Transport
from mcpclient.transports.memory import MemoryTransport, pair
from mcpclient.transports.streams import HUNG_UP
from tests.behaviour import faces
from tests.behaviour.server import STATELESS, encoded
from tests.behaviour.server import Server as Peer
from tests.conftest import QUICK
from tests.protocol.schemas import SPEC, allowed, by_method, check, check_sent, definitions
from tests.relays import Relay

SCRIPT = Path(__file__).with_name("server.py")
# What answers a method, where the schemas name it; all else is an empty result.
RESULTS = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
    "subscriptions/listen": "SubscriptionsListenResult",
}


def endings(server: Server, code: int) -> tuple[Exit, ...]:
    """Return how a life may have ended whose server exited with a code, as far as it shows."""
    if server.spec.url is None:
        return (Exit(code=code),)
    # With something unread, a socket is reset.
    return (HUNG_UP, Exit(words="the connection broke (Connection reset by peer)"))


class Host:
    """Runs the server at the other end of a memory pair, as a process would."""

    def __init__(self, transport: MemoryTransport, peer: Peer) -> None:
        self._transport = transport
        self._peer = peer
        transport.start(self)

    def frame(self, line: bytes) -> None:
        try:
            for message in self._peer.handle(json.loads(line)):
                self._transport.send(Outgoing(encoded(message)))
        except SystemExit as end:
            self._transport.crash(Exit(code=int(str(end.code))))

    def rest(self, line: bytes) -> None:
        raise AssertionError("we send whole lines")

    def oversize(self, spill: Oversize) -> None:
        raise AssertionError("we send nothing that long")

    def stalled(self, waited: float) -> None:
        raise AssertionError("a memory pair takes everything")

    def gone(self, exit: Exit, reason: str) -> None:
        pass


class Life:
    """A transport that keeps a copy of what another one carries.

    Attributes:
        sent: The client's frames.
        got: The server's lines.
    """

    def __init__(self, transport: Transport) -> None:
        self._inner = transport
        self._sink: Sink | None = None
        self.sent: list[bytes] = []
        self.got: list[bytes] = []
        self.stderr_tail = transport.stderr_tail
        self.destroy = transport.destroy
        self.close = transport.close
        self.kill = transport.kill

    @property
    def pid(self) -> int | None:
        return self._inner.pid

    @property
    def waiting(self) -> int:
        return self._inner.waiting

    def start(self, sink: Sink) -> None:
        self._sink = sink
        self.rest, self.oversize = sink.rest, sink.oversize
        self.stalled, self.gone = sink.stalled, sink.gone
        self.failed, self.lapsed = sink.failed, sink.lapsed
        self._inner.start(self)

    def send(self, item: Outgoing) -> None:
        self.sent.append(item.frame)
        self._inner.send(item)

    def send_soon(self, item: Outgoing) -> None:
        self.sent.append(item.frame)
        self._inner.send_soon(item)

    def withdraw(self, item: Outgoing) -> bool:
        gone = self._inner.withdraw(item)
        if gone and not item.written:  # over HTTP it may be called back from the wire too
            self.sent.remove(item.frame)
        return gone

    def frame(self, line: bytes) -> None:
        assert self._sink is not None
        self.got.append(line)
        self._sink.frame(line)

    def reply(self, item: Outgoing, body: bytes) -> bool:
        assert self._sink is not None
        taken = self._sink.reply(item, body)
        if taken:
            self.got.append(body)
        return taken

    # For the test.

    @property
    def messages(self) -> list[dict[str, Any]]:
        """What the client sent."""
        return [json.loads(frame) for frame in self.sent]

    def of(self, method: str) -> list[dict[str, Any]]:
        """Return what the client sent of one method."""
        return [one for one in self.messages if one.get("method") == method]

    @property
    def methods(self) -> list[str]:
        """The methods of what the client sent, in order; answers and refusals by their kind."""
        return [
            one.get("method") or ("answer" if "result" in one else "refusal")
            for one in self.messages
        ]

    def agreed(self) -> int:
        """Return how many streams of notices the server has acknowledged."""
        return sum(b"subscriptions/acknowledged" in line for line in self.got)


class Bench:
    """A manager with one server, and what went over the wire in each of its lives.

    Attributes:
        face: ``async``, ``blocking`` or ``handles``: whose manager it is.
        version: The version that the server speaks.
        medium: ``memory``, ``stdio`` or ``unix``; over HTTP ``http``, or what a proxy does to it.
        lives: One for each process, or what stands for one.
        lawful: Whether the server keeps the rules, so that its frames are checked too.
        peer: Makes the server of a life in memory.
        relay: Serves a script on a socket.
        url: Where the server is, over HTTP.
    """

    def __init__(self, version: str, medium: str, relay: Callable[..., Relay], face: str) -> None:
        self.face = face
        self.version = version
        self.medium = medium
        self.relay = relay
        self.url = ""
        self.lives: list[Life] = []
        self.lawful = True
        self.peer: Callable[[str], Peer] = Peer
        self.manager: Any = Manager()

    @property
    def stateless(self) -> bool:
        return self.version == STATELESS

    @property
    def piped(self) -> bool:
        """Whether all goes over one pipe, in order. Over HTTP, each exchange has its own way."""
        return not self.url

    @property
    def life(self) -> Life:
        """The present or last life."""
        return self.lives[-1]

    def since(self, version: str) -> bool:
        """Return whether the server speaks this version or a later one."""
        return self.version >= version

    async def open(self, *, spec: Mapping[str, Any] | None = None, **options: Any) -> Server:
        """Open a manager with these options, and return its server, which is not started.

        Args:
            spec: Options of the server's spec.
            options: Of the manager.
        """
        bench = self

        class Copying(Manager if self.face == "async" else Relayed):  # type: ignore[misc]
            async def _connect(self, *how: Any, **more: Any) -> Transport:
                if bench.medium == "memory":
                    inner, far = pair(loops.current())
                    Host(far, bench.peer(bench.version))
                    life = Life(inner)
                else:
                    life = Life(await super()._connect(*how, **more))
                bench.lives.append(life)
                return life

        usual = {"restart": QUICK, "timeouts": Timeouts(eof=1.0, term=0.5, settle=0.01)}
        if self.url:
            where: dict[str, Any] = {"url": self.url}
        elif self.medium == "unix":
            where = {"url": self.relay("unix", str(SCRIPT), self.version).url}
        else:
            where = {
                "command": sys.executable,
                "args": ["-I", "-S", str(SCRIPT), self.version],
            }
        entry = ServerSpec(**{**where, **usual, **(spec or {})})
        self.manager = faces.manager(self.face, Copying, {"peer": entry}, options)
        await self.manager.open()
        server: Server = self.manager["peer"]
        return server

    def check(self) -> None:
        """Hold every frame against the schema of the version that is spoken."""
        if SPEC.is_dir():
            for life in self.lives:
                asked = self._check_sent(life)
                if self.lawful:
                    self._check_got(life, asked)

    def _check_sent(self, life: Life) -> dict[Any, str]:
        asked: dict[Any, str] = {}
        for frame in life.sent:
            assert frame.endswith(b"\n")
            assert frame.count(b"\n") == 1
            message = json.loads(frame.decode("utf-8"))
            assert isinstance(message, dict)  # never an array (BASE-17)
            method = message.get("method")
            if method == "server/discover":
                check_sent(STATELESS, message)
            elif method == "initialize":
                check_sent(message["params"]["protocolVersion"], message)
            else:
                check_sent(self.version, message)
            if method is not None and "id" in message:
                assert message["id"] not in asked
                asked[message["id"]] = method
        return asked

    def _check_got(self, life: Life, asked: dict[Any, str]) -> None:
        for line in life.got:
            found = json.loads(line)
            for message in found if isinstance(found, list) else [found]:
                method = message.get("method")
                if method is not None:
                    name = by_method(self.version)[method]
                    union = "ServerRequest" if "id" in message else "ServerNotification"
                    assert name in allowed(self.version, union)
                    check(self.version, name, message)
                elif "result" in message:
                    name = RESULTS.get(asked[message["id"]], "EmptyResult")
                    if message["result"].get("resultType") == "input_required":
                        name = "InputRequiredResult"
                    check(self.version, name, message["result"])
                else:
                    plain = "JSONRPCError" in definitions(self.version)
                    name = "JSONRPCError" if plain else "JSONRPCErrorResponse"
                    check(self.version, name, message)
