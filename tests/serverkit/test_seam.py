"""What transports stand on, and what a server does when a handler returns what cannot be."""

from __future__ import annotations

import json
from typing import Annotated, Any

import anyio
import pytest
from msgspec import Meta

from mcpclient.ground.errors import ConfigError, LocalProtocolError
from mcpclient.serverkit import (
    Frame,
    NotFound,
    Peer,
    Prompt,
    Resource,
    Response,
    Schema,
    Server,
    Tool,
    ToolFailure,
)
from mcpclient.serverkit.incoming import Fault, Reply, Request
from tests.serverkit.talking import HANDSHAKE, PREFIX, STATELESS, Talk, content, opening

META = {f"{PREFIX}protocolVersion": STATELESS, f"{PREFIX}clientCapabilities": {}}

OTHER = {**META, f"{PREFIX}protocolVersion": "x"}


def line(method: str, params: Any = None, id: Any = 1) -> bytes:
    """Return a request."""
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
    return json.dumps(message).encode()


async def replied(server: Server, data: bytes, **options: Any) -> Reply:
    """Return the reply to one message of a new conversation."""
    profile = options.pop("profile", "spec")
    session = server.open(profile=profile)
    [item] = session.receive(data, **options)
    reply = await session.answer(item)
    assert reply is not None
    return reply


def plain() -> Server:
    """Return a server with a tool."""
    server = Server("a", "1")

    @server.tool
    async def echo(text: str = "") -> str:
        return text

    @server.tool
    async def breaks() -> str:
        raise ValueError("bad luck")

    return server


# -- which era, which status ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "claimed", "era"),
    [
        (line("initialize", opening()), None, "handshake"),
        (line("tools/list"), None, "handshake"),
        (line("tools/list"), HANDSHAKE, "handshake"),
        (line("tools/list"), "1999-01-01", "handshake"),
        (line("tools/list"), STATELESS, "stateless"),
        (line("tools/list", {"_meta": META}), None, "stateless"),
        (line("initialize", {**opening(), "_meta": META}), None, "stateless"),
        (line("server/discover"), None, "stateless"),
    ],
)
def test_each_request_says_of_which_era_it_is(data: bytes, claimed: Any, era: str) -> None:
    [item] = plain().open().receive(data, claimed=claimed)
    assert isinstance(item, Request)
    assert item.era.name == era


@pytest.mark.parametrize(
    ("data", "code", "status"),
    [
        (b"{", -32700, 400),
        (b"[]", -32600, 400),
        (line("ping"), None, 200),
        (line("tools/list"), -32600, 200),
        (line("server/discover"), -32602, 400),
        (line("server/discover", {"_meta": META}), None, 200),
        (
            line("server/discover", {"_meta": {**META, f"{PREFIX}protocolVersion": "x"}}),
            -32022,
            400,
        ),
        (line("nope", {"_meta": META}), -32601, 404),
        (line("ping", {"_meta": META}), -32601, 404),
        (line("tools/call", {"name": "nope", "_meta": META}), -32602, 200),
        (line("subscriptions/listen", {"_meta": META}), -32602, 200),
    ],
)
async def test_a_reply_says_which_http_status_goes_with_it(
    data: bytes, code: int | None, status: int
) -> None:
    reply = await replied(plain(), data)
    assert (reply.code, reply.status) == (code, status)


async def test_a_transport_may_refuse_a_request_by_itself() -> None:
    session = plain().open()
    [item] = session.receive(line("tools/list", {"_meta": META}, "x"))
    assert isinstance(item, Request)
    reply = session.refuse(item, -32020, "Mcp-Method is missing", {"a": 1})
    assert json.loads(reply.frame) == {
        "jsonrpc": "2.0",
        "id": "x",
        "error": {"code": -32020, "message": "Mcp-Method is missing", "data": {"a": 1}},
    }
    assert (reply.code, reply.status) == (-32020, 400)


def test_a_tool_says_which_arguments_headers_repeat() -> None:
    server = Server("a", "1")

    class Page(Schema):
        limit: Annotated[int, Meta(extra_json_schema={"x-mcp-header": "Limit"})] = 1

    @server.tool
    async def query(
        region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})],
        page: Page | None = None,
        inner: Page = Page(),  # noqa: B008
    ) -> None: ...

    tool = server.tools["query"]
    assert tool.header_params == {"Region": ("region",), "Limit": ("inner", "limit")}
    assert Tool(name="none").header_params == {}


async def test_what_belongs_to_a_request_goes_its_own_way() -> None:
    server = plain()

    @server.tool
    async def tell(frame: Frame) -> str:
        frame.log("error", "mine")
        server.add(Tool(name="new"))
        frame.close_stream()
        return "told"

    general: list[str] = []
    own: list[str] = []
    closed: list[bool] = []
    session = server.open(lambda item: general.append(item.method))
    await server.handle(line("initialize", opening()), session)
    await server.handle(b'{"jsonrpc":"2.0","method":"notifications/initialized"}', session)
    [item] = session.receive(line("tools/call", {"name": "tell"}, 2))
    await session.answer(
        item, send=lambda item: own.append(item.method), drop=lambda: closed.append(True)
    )
    assert own == ["notifications/message"]
    assert general == ["notifications/tools/list_changed"]
    assert closed == [True]
    # Where there is no way, nothing is sent; and nothing can be closed.
    session.send = None
    [item] = session.receive(line("tools/call", {"name": "tell"}, 3))
    assert await session.answer(item) is not None
    assert (len(own), len(general), closed) == (1, 1, [True])


async def test_news_of_a_page_are_of_2025_11_25() -> None:
    server = plain()

    @server.tool
    async def done(frame: Frame) -> str:
        frame.elicitation_complete("e1")
        return str(frame.meta.get("a"))

    for version, count in ((HANDSHAKE, 1), ("2025-06-18", 0), (STATELESS, 0)):
        async with Talk(server, version) as talk:
            await talk.result("tools/call", {"name": "done"}, meta={"a": 1})
            assert len(talk.sent) == count


async def test_a_broken_hook_of_notices_costs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    server = plain()

    @server.hook
    def handle_notification(*_: Any) -> None:
        raise KeyError("x")

    async with Talk(server) as talk:
        assert await talk.text("echo", text="still here") == "still here"
    assert "! handle_notification failed on notifications/initialized" in caplog.text


async def test_an_application_that_has_no_hook_is_told_so() -> None:
    server = plain()
    with pytest.raises(LocalProtocolError, match="there is no hook handle_info"):
        await server.inform(1)
    with pytest.raises(LocalProtocolError, match="there is no hook handle_call"):
        await server.open().call(1)
    with pytest.raises(LocalProtocolError, match="there is no hook handle_cast"):
        await server.open().cast(1)
    with pytest.raises(ConfigError, match='profile must be "spec" or "gateway"'):
        server.open(profile="loose")
    assert repr(server) == "<Server 'a' 1>"


async def test_cancelling_an_array_cancels_all_of_it() -> None:
    server = plain()
    ended: list[str] = []

    @server.tool
    async def forever() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("cancelled")

    async with Talk(server, "2025-03-26") as talk:
        calls = [json.loads(line("tools/call", {"name": "forever"}, id)) for id in (1, 2)]
        async with anyio.create_task_group() as group:
            group.start_soon(talk.line, json.dumps(calls).encode())
            with anyio.fail_after(10):
                while len(talk.session.exchanges) < 2:
                    await anyio.sleep(0.001)
            group.cancel_scope.cancel()
        with anyio.fail_after(10):
            while len(ended) < 2:
                await anyio.sleep(0.001)


# -- what handlers return and cannot -------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (lambda: Response().user("a"), "messages belong into prompts, not into a tool's result"),
        (lambda: Response().blob(b"a"), "a tool gives bytes by embed(), image() or audio()"),
        (lambda: {1: object()}, "object"),
    ],
)
async def test_a_tool_that_returns_what_it_cannot_is_told_so(value: Any, problem: str) -> None:
    server = Server("a", "1")

    @server.tool
    async def odd() -> Any:
        return value()

    async with Talk(server) as talk:
        found = await talk.call("odd")
    assert found["isError"] is True
    assert problem in content(found)[0]


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ([{"role": "system", "content": "a"}], 'a message has a "role" (user or assistant)'),
        (["a"], 'a message has a "role" (user or assistant)'),
        ([{"role": "user", "content": 5}], "int is no text and no content block"),
    ],
)
async def test_a_prompt_that_returns_what_it_cannot_is_told_so(value: Any, problem: str) -> None:
    server = Server("a", "1")

    @server.prompt
    async def odd() -> Any:
        return value

    async with Talk(server) as talk:
        error = await talk.error("prompts/get", {"name": "odd"})
    assert error["code"] == -32603
    assert problem in error["message"]


async def test_content_alone_is_a_message_of_the_user_and_a_value_alone_its_own_text() -> None:
    server = Server("a", "1")

    @server.prompt
    async def words() -> Response:
        return Response().text("words")

    @server.tool
    async def value() -> Response:
        return Response().structured([1])

    @server.resource("x://link")
    async def link() -> Response:
        return Response().link("y:", "y")

    async with Talk(server) as talk:
        found = await talk.result("prompts/get", {"name": "words"})
        assert found["messages"] == [{"role": "user", "content": {"type": "text", "text": "words"}}]
        assert content(await talk.call("value")) == ["[1]"]
        error = await talk.error("resources/read", {"uri": "x://link"})
        assert error["message"] == "Internal error: a resource cannot hold a block of resource_link"


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: Tool(name="a\nb"), "a component's name is printable text"),
        (lambda: Tool(name="a", cache_scope="all"), 'must be "public" or "private", not \'all\''),
        (lambda: Server("a", "1").tool(Prompt), "Prompt is no Tool"),
        (lambda: Server("a", "1").tool("echo"), "'echo' is no function"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_definition(make: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        make()
    assert problem in str(caught.value)


async def test_a_component_that_does_nothing_yet_says_so() -> None:
    server = Server("a", "1", components=[Tool(name="t"), Prompt(name="p"), Resource(uri="x:")])
    async with Talk(server) as talk:
        assert content(await talk.call("t")) == ["NotImplementedError"]
        assert (await talk.error("prompts/get", {"name": "p"}))["code"] == -32603
        assert (await talk.error("resources/read", {"uri": "x:"}))["code"] == -32603


async def test_the_methods_of_a_component_may_be_plain() -> None:
    import threading

    here = threading.get_ident()

    class Blocking(Tool):
        def run(self, args: Any, frame: Frame) -> str:  # type: ignore[override]
            return f"elsewhere: {threading.get_ident() != here}"

    class Words(Prompt):
        def get_messages(self, args: Any, frame: Frame) -> str:  # type: ignore[override]
            return "plain words"

        def complete(self, argument: str, value: str, context: Any, frame: Frame) -> Any:
            return ["plain"]

    class Page(Resource):
        uri = "x:"

        def read(self, uri: str, variables: Any, frame: Frame) -> str:  # type: ignore[override]
            return "plain page"

    async with Talk(Server("a", "1", components=[Blocking, Words, Page])) as talk:
        assert await talk.text("blocking") == "elsewhere: True"
        found = await talk.result("prompts/get", {"name": "words"})
        assert found["messages"][0]["content"]["text"] == "plain words"
        found = await talk.result("resources/read", {"uri": "x:"})
        assert found["contents"][0]["text"] == "plain page"
        ref = {"type": "ref/prompt", "name": "words"}
        params = {"ref": ref, "argument": {"name": "a", "value": ""}}
        found = await talk.result("completion/complete", params)
        assert found["completion"] == {"values": ["plain"]}


async def test_an_instance_may_be_added_under_another_name() -> None:
    tool = Tool(name="old")
    server = Server("a", "1")
    server.add(tool, name="new")
    assert list(server.tools) == ["new"]
    assert str(ToolFailure("a")) == "a"
    assert NotFound("x:").data == {"uri": "x:"}


# -- the gateway's profile, as a function --------------------------------------------------


@pytest.mark.parametrize(
    ("data", "code", "status", "id"),
    [
        (b"", -32700, 400, None),
        (b"{}{}", -32700, 400, None),
        (b"[]", -32700, 400, None),
        (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600, 400, 7),
        (line("nope"), -32601, 200, 1),
        (line("prompts/list"), -32601, 200, 1),
        (line("tools/call", {"name": ""}), -32602, 200, 1),
        (line("tools/call"), -32602, 200, 1),
        (line("tools/call", {"name": "echo", "arguments": []}), -32602, 200, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}', -32602, 200, 1),
        (line("ping"), None, 200, 1),
        (line("tools/call", {"name": "echo", "arguments": None}), None, 200, 1),
    ],
)
async def test_the_gateway_profile_is_a_pure_function_too(
    data: bytes, code: int | None, status: int, id: Any
) -> None:
    reply = await replied(plain(), data, profile="gateway")
    assert (reply.code, reply.status) == (code, status)
    assert json.loads(reply.frame)["id"] == id


async def test_the_gateway_profile_agrees_to_everything_and_remembers_nothing() -> None:
    server = plain()
    session = server.open(profile="gateway")
    for params, version in (
        ({"protocolVersion": "1999-01-01"}, "1999-01-01"),
        ({}, "2024-11-05"),
        ({"protocolVersion": 5}, "2024-11-05"),
    ):
        found: Any = await server.handle(json.loads(line("initialize", params)), session)
        assert found["result"]["protocolVersion"] == version
        assert found["result"]["capabilities"] == {"tools": {"listChanged": False}}
    for silent in (
        b'{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"echo"}}',
        b'{"jsonrpc":"2.0","method":"initialized"}',
        line("initialized"),
        line("notifications/initialized"),
    ):
        assert await server.handle(silent, session) is None
    found = await server.handle(json.loads(line("tools/call", {"name": "breaks"})), session)
    assert found["result"] == {
        "isError": True,
        "content": [{"type": "text", "text": "breaks: bad luck"}],
    }
    found = await server.handle(json.loads(line("tools/call", {"name": "no"})), session)
    assert found["error"]["message"] == "Tool not found: no (available: breaks, echo)"
    empty: Any = await replied(Server("a", "1"), line("tools/list"), profile="gateway")
    assert json.loads(empty.frame)["result"] == {"tools": []}


async def test_a_fault_is_answered_as_it_is() -> None:
    session = plain().open(peer=Peer(subject="ada"))
    [item] = session.receive(b"{")
    assert isinstance(item, Fault)
    assert await session.answer(item) is item.reply
