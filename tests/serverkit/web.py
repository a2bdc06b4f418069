"""A host of one ASGI application, in memory, on asyncio and trio; and what clients say to it."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping
from types import TracebackType
from typing import Any, Self

import anyio
import anyio.abc
import msgspec

from tests.serverkit.talking import HANDSHAKE, PREFIX, STATELESS, check_answer, opening

BOTH = "application/json, text/event-stream"
EVENTS = "text/event-stream"
META = {
    f"{PREFIX}protocolVersion": STATELESS,
    f"{PREFIX}clientInfo": {"name": "web", "version": "1"},
    f"{PREFIX}clientCapabilities": {},
}
_NAMED = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/cancel": "taskId",
}


class Exchange:
    """One request and what came back so far.

    Attributes:
        status: The status, once the response began.
        headers: Its headers.
        body: What came of the body.
        done: Whether it ended as it should.
        over: Whether the application is through with it.
        asked: How often the application asked for more of the request.
    """

    def __init__(self, chunks: list[bytes], endless: bool, slow: bool) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.body = b""
        self.done = False
        self.over = False
        self.asked = 0
        self._chunks = chunks
        self._endless = endless
        self._slow = slow
        self._left = anyio.Event()
        self._news = anyio.Event()
        self._read = 0

    def leave(self) -> None:
        """Be gone."""
        self._left.set()
        self._tell()

    def read_on(self) -> None:
        """Take from now on what is sent."""
        self._slow = False
        self._tell()

    async def until(self, fact: Any) -> None:
        """Wait until something holds of it."""
        with anyio.fail_after(10):
            while not fact():
                await self._news.wait()

    async def began(self) -> Self:
        """Wait until the response began."""
        await self.until(lambda: self.status)
        return self

    async def ended(self) -> Self:
        """Wait until the application is through with it."""
        await self.until(lambda: self.over)
        return self

    def json(self) -> Any:
        """Return the body of JSON."""
        assert self.headers["content-type"].startswith("application/json"), self.body
        assert self.headers["content-length"] == str(len(self.body))
        return msgspec.json.decode(self.body)

    async def event(self) -> dict[str, str]:
        """Return the next event, by its fields; comments are under an empty name."""
        with anyio.fail_after(10):
            while (end := self.body.find(b"\n\n", self._read)) < 0:
                assert not self.over, f"no further event after {self.body!r}"
                await self._news.wait()
        raw = self.body[self._read : end].decode()
        self._read = end + 2
        fields = (line.partition(":") for line in raw.split("\n"))
        return {name: value.removeprefix(" ") for name, _, value in fields}

    async def message(self) -> Any:
        """Return the next message of the stream."""
        while not (found := (await self.event()).get("data")):
            pass
        return msgspec.json.decode(found)

    async def answer(self, method: str, version: str = STATELESS) -> Any:
        """Return the whole answer to a request, of JSON or of events, held to the schema."""
        await self.began()
        if self.headers["content-type"] == EVENTS:
            while "method" in (found := await self.message()):
                pass
        else:
            await self.ended()
            found = self.json()
        check_answer(version, method, found)
        return found

    # -- for the application ---------------------------------------------------------------

    async def receive(self) -> dict[str, Any]:
        self.asked += 1
        self._tell()
        if self._chunks and not self._left.is_set():
            chunk = self._chunks.pop(0)
            more = bool(self._chunks) or self._endless
            return {"type": "http.request", "body": chunk, "more_body": more}
        await self._left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: dict[str, Any]) -> None:
        await anyio.lowlevel.checkpoint()
        if self._left.is_set():
            raise OSError("the client is gone")
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            while self._slow and not self._left.is_set():
                await self._news.wait()
            self.body += message["body"]
            self.done = not message.get("more_body", False)
        self._tell()

    def _tell(self) -> None:
        self._news.set()
        self._news = anyio.Event()


class Web:
    """Clients of one application; all that still runs is left at the end.

    Args:
        app: The application.
        more: What else the scope of each request says.
    """

    def __init__(self, app: Any, **more: Any) -> None:
        self.app = app
        self._more = more
        self._group: anyio.abc.TaskGroup | None = None
        self._open: list[Exchange] = []

    async def __aenter__(self) -> Self:
        self._group = anyio.create_task_group()
        await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._group is not None
        for one in self._open:
            one.leave()
        if kind is not None:
            self._group.cancel_scope.cancel()
        await self._group.__aexit__(kind, value, trace)
        close = getattr(self.app, "close", None)
        if close is not None:
            await close()

    def begin(
        self,
        method: str = "POST",
        path: str = "/mcp",
        body: bytes | list[bytes] = b"",
        headers: Mapping[str, str] = {},
        *,
        endless: bool = False,
        slow: bool = False,
        **more: Any,
    ) -> Exchange:
        """Send a request; what comes back is gathered."""
        assert self._group is not None
        chunks = [body] if isinstance(body, bytes) else list(body)
        one = Exchange(chunks, endless, slow)
        self._open.append(one)
        given = {"host": "127.0.0.1:8000", **headers}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "http",
            "method": method,
            "path": path,
            "root_path": "",
            "query_string": b"",
            "headers": [(name.lower().encode(), value.encode()) for name, value in given.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
            **self._more,
            **more,
        }

        async def run() -> None:
            try:
                await self.app(scope, one.receive, one.send)
            finally:
                one.over = True
                one._tell()

        self._group.start_soon(run)
        return one

    async def request(self, *args: Any, **options: Any) -> Exchange:
        """Send a request and return what came back, once it ended."""
        return await self.begin(*args, **options).ended()

    # -- the stateless era -----------------------------------------------------------------

    def call(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        id: Any = 1,
        meta: Mapping[str, Any] = {},
        headers: Mapping[str, str | None] = {},
        **options: Any,
    ) -> Exchange:
        """Send a request of the stateless era; a header that is None is left out."""
        given = {**(params or {}), "_meta": {**META, **meta}}
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": given}
        found: dict[str, str | None] = {
            "content-type": "application/json",
            "accept": BOTH,
            "mcp-protocol-version": STATELESS,
            "mcp-method": method,
        }
        if method in _NAMED and _NAMED[method] in given:
            found["mcp-name"] = given[_NAMED[method]]
        found |= headers
        sent = {name: value for name, value in found.items() if value is not None}
        return self.begin(body=msgspec.json.encode(message), headers=sent, **options)

    def tool(self, name: str, arguments: Mapping[str, Any] = {}, **options: Any) -> Exchange:
        """Call a tool in the stateless era."""
        return self.call("tools/call", {"name": name, "arguments": arguments}, **options)

    # -- the handshake era -----------------------------------------------------------------

    async def open(self, version: str = HANDSHAKE, **options: Any) -> Visitor:
        """Open a session."""
        visitor = Visitor(self, version)
        await visitor.open(**options)
        return visitor


class Visitor:
    """A client with a session.

    Attributes:
        id: The session's id.
    """

    def __init__(self, web: Web, version: str) -> None:
        self._web = web
        self.version = version
        self.id: str | None = None
        self._next = 0

    async def open(self, can: Mapping[str, Any] = {}, **options: Any) -> Any:
        """Say ``initialize``, and that we are ready; return the result."""
        params = {**opening(self.version), "capabilities": can}
        one = await self.post("initialize", params, **options).ended()
        assert one.status == 200, one.body
        self.id = one.headers["mcp-session-id"]
        answer = await one.answer("initialize", self.version)
        assert (await self.notify("notifications/initialized", **options).ended()).status == 202
        return answer["result"]

    def send(self, message: Any, **options: Any) -> Exchange:
        """Post any message."""
        body = message if isinstance(message, bytes) else msgspec.json.encode(message)
        headers = {"content-type": "application/json", "accept": BOTH, **self._headers()}
        headers |= options.pop("headers", {})
        return self._web.begin(body=body, headers=headers, **options)

    def post(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        meta: Mapping[str, Any] = {},
        **options: Any,
    ) -> Exchange:
        """Post a request."""
        self._next += 1
        given = {**(params or {}), **({"_meta": meta} if meta else {})}
        message = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": given}
        return self.send(message, **options)

    def notify(
        self, method: str, params: Mapping[str, Any] | None = None, **options: Any
    ) -> Exchange:
        """Post a notification."""
        return self.send({"jsonrpc": "2.0", "method": method, "params": params or {}}, **options)

    def tool(self, name: str, arguments: Mapping[str, Any] = {}, **options: Any) -> Exchange:
        """Call a tool."""
        return self.post("tools/call", {"name": name, "arguments": arguments}, **options)

    def get(self, last: str | None = None, **options: Any) -> Exchange:
        """Open the stream of the session, or come back for one."""
        headers = {"accept": EVENTS, **self._headers()}
        if last is not None:
            headers["last-event-id"] = last
        headers |= options.pop("headers", {})
        return self._web.begin("GET", headers=headers, **options)

    def delete(self, **options: Any) -> Exchange:
        """End the session."""
        return self._web.begin("DELETE", headers=self._headers(), **options)

    def _headers(self) -> dict[str, str]:
        headers = {}
        if self.id is not None:
            headers["mcp-session-id"] = self.id
            if self.version >= "2025-06-18":
                headers["mcp-protocol-version"] = self.version
        return headers


@contextlib.asynccontextmanager
async def living(app: Any) -> AsyncIterator[list[str]]:
    """Run an application's lifespan; give what it said."""
    said: list[str] = []
    stop = anyio.Event()
    steps = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, Any]:
        kind = next(steps)
        if kind == "lifespan.shutdown":
            await stop.wait()
        return {"type": kind}

    async def send(message: dict[str, Any]) -> None:
        said.append(message["type"])

    async with anyio.create_task_group() as group:
        group.start_soon(app, {"type": "lifespan", "asgi": {"version": "3.0"}}, receive, send)
        try:
            yield said
        finally:
            stop.set()
