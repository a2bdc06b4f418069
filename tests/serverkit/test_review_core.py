"""Hostile clients and careless handlers: every request has one answer, and the server goes on."""

from __future__ import annotations

import asyncio
import functools
import itertools
import json
import re
import sys
from collections.abc import Callable
from typing import Any

import anyio
import msgspec
import pytest

from mcpclient.serverkit import Frame, Server
from mcpclient.serverkit.incoming import Batch, Fault, Request, read
from mcpclient.serverkit.options import KitLimits
from mcpclient.serverkit.uris import LONGEST, UriTemplate
from tests.conftest import eventually
from tests.serverkit.talking import ALL, ERAS, HANDSHAKE, PREFIX, STATELESS, Talk, content

CONTEXT = {f"{PREFIX}protocolVersion": STATELESS, f"{PREFIX}clientCapabilities": ALL}


def made(**options: Any) -> Server:
    """Return a server without anything."""
    return Server("review", "1.0.0", **options)


# -- handlers that raise what no handler may ----------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("problem", [SystemExit, KeyboardInterrupt])
async def test_a_plain_tool_that_ends_the_program_only_fails(
    era: str, problem: type[BaseException]
) -> None:
    server = made()

    @server.tool
    def leave() -> str:
        raise problem(3)

    async with Talk(server, era) as talk:
        result = await talk.call("leave")
        assert result["isError"] is True
        assert content(result)[0].startswith(f"the handler raised {problem.__name__}, by which")
        if era == HANDSHAKE:
            assert await talk.result("ping") == {}


async def test_an_async_tool_that_exits_only_fails_and_so_do_prompts_resources_and_hooks() -> None:
    server = made()

    @server.tool
    async def leave() -> str:
        sys.exit(3)

    @server.prompt
    async def ask() -> str:
        sys.exit(3)

    @server.resource("page://x")
    async def page() -> str:
        sys.exit(3)

    @server.hook
    async def handle_notification(method: str, params: Any, frame: Frame) -> None:
        sys.exit(3)

    async with Talk(server) as talk:
        assert (await talk.call("leave"))["isError"] is True
        for method, params in (
            ("prompts/get", {"name": "ask"}),
            ("resources/read", {"uri": "page://x"}),
        ):
            error = await talk.error(method, params)
            assert error["code"] == -32603
            assert "raised SystemExit" in error["message"]
        await talk.notify("notifications/anything")
        assert await talk.result("ping") == {}


async def test_a_cancellation_that_nobody_asked_for_is_the_tools_failure() -> None:
    server = made()

    @server.tool
    async def await_what_was_given_up() -> str:
        raise asyncio.CancelledError

    async with Talk(server) as talk:
        with anyio.fail_after(10):
            result = await talk.call("await_what_was_given_up")
        assert content(result)[0].startswith("the handler raised CancelledError, by which")


async def test_a_cancellation_by_the_client_still_gets_no_answer() -> None:
    server = made()
    begun = anyio.Event()
    seen: list[str] = []

    @server.tool
    async def wait() -> str:
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            seen.append("cancelled")

    async with Talk(server) as talk, anyio.create_task_group() as group:
        line = b'{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"wait"}}'
        [item] = talk.session.receive(line)
        scope = anyio.CancelScope()
        replies: list[Any] = []

        async def run() -> None:
            with scope:
                replies.append(await talk.session.answer(item, cancel=scope.cancel))

        group.start_soon(run)
        await begun.wait()
        await talk.notify("notifications/cancelled", {"requestId": 9})
        await eventually(lambda: seen == ["cancelled"])
    assert replies == []
    assert scope.cancelled_caught


async def test_a_plain_function_around_an_async_one_gives_what_that_gives() -> None:
    def decorated(call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def around(*args: Any, **named: Any) -> Any:
            return call(*args, **named)

        return around

    server = made()

    @server.tool
    @decorated
    async def hello(name: str) -> str:
        return f"hello {name}"

    async with Talk(server) as talk:
        assert await talk.text("hello", name="you") == "hello you"


async def test_who_gave_up_a_plain_tool_hears_no_progress_of_it() -> None:
    server = made()
    begun, go, done = anyio.Event(), anyio.Event(), anyio.Event()

    @server.tool
    def work(frame: Frame) -> str:
        anyio.from_thread.run_sync(begun.set)
        anyio.from_thread.run(go.wait)
        frame.progress(1, 2)
        anyio.from_thread.run_sync(done.set)
        return "done"

    async with Talk(server) as talk, anyio.create_task_group() as group:
        params = {"name": "work", "_meta": {"progressToken": "t"}}
        message = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}
        [item] = talk.session.receive(msgspec.json.encode(message))
        scope = anyio.CancelScope()

        async def run() -> None:
            with scope:
                await talk.session.answer(item, cancel=scope.cancel)

        group.start_soon(run)
        await begun.wait()
        await talk.notify("notifications/cancelled", {"requestId": 9})
        go.set()
        await done.wait()
        assert talk.notices("notifications/progress") == []


# -- what has an answer all the same ------------------------------------------------------------


async def test_a_value_to_be_remembered_that_json_cannot_say_is_refused_and_not_unanswered() -> (
    None
):
    server = made()

    @server.tool
    async def remember(frame: Frame) -> str:
        await frame.once("name", lambda: "half a character: \udc80")
        await frame.roots()
        return ""

    async with Talk(server, STATELESS) as talk:
        error = await talk.error("tools/call", {"name": "remember"})
    assert error["code"] == -32603
    assert "give once() another value" in error["message"]


async def test_arguments_of_any_depth_have_an_answer_in_rounds_too() -> None:
    server = made()

    @server.tool
    async def ask(x: Any, frame: Frame) -> str:
        await frame.roots()
        return ""

    session = server.open(lambda _: None)
    kinds = set()
    for depth in range(1, 1100, 7):
        nested = b"[" * depth + b"]" * depth
        line = (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","arguments":'
            b'{"x":%b},"_meta":%b}}' % (nested, json.dumps(CONTEXT).encode())
        )
        [item] = session.receive(line)
        reply = await session.answer(item)
        assert reply is not None
        kinds.add(reply.code)
    session.close()
    assert None in kinds
    assert kinds <= {None, -32602, -32603, -32700}


async def test_arguments_that_are_too_deep_to_be_read_twice_are_bad_arguments() -> None:
    server = made()

    @server.tool
    async def count(n: int, more: Any = None) -> str:
        return str(n)

    async with Talk(server) as talk:
        kinds = set()
        for depth in range(100, 1000, 10):
            nested = b"[" * depth + b"]" * depth
            reply = await talk.line(
                b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count",'
                b'"arguments":{"n":1.0,"more":%b}}}' % nested
            )
            if "result" not in reply:
                assert reply["error"]["code"] == -32700
                continue
            [text] = content(reply["result"])
            kinds.add(text)
        assert kinds == {"1", "Invalid arguments: arguments: cannot be read as JSON in UTF-8"}


async def test_a_time_to_live_of_any_length_is_bounded() -> None:
    server = made()

    @server.tool(task_support="optional")
    async def work() -> str:
        return "done"

    async with Talk(server) as talk:
        for wish, given in ((b"9" * 400, 3600000), (b"-" + b"9" * 400, 1000), (b"1500", 1500)):
            reply = await talk.line(
                b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"work",'
                b'"task":{"ttl":%b}}}' % wish
            )
            assert reply["result"]["task"]["ttl"] == given


async def test_a_context_that_is_no_object_is_the_clients_mistake() -> None:
    server = made()

    @server.prompt
    def ask(word: str) -> str:
        return word

    @server.completion("prompts", "ask")
    def words(value: str, context: Any) -> list[str]:
        return [context.get("other", value)]

    async with Talk(server) as talk:
        params = {
            "ref": {"type": "ref/prompt", "name": "ask"},
            "argument": {"name": "word", "value": "a"},
        }
        line = {**params, "context": {"arguments": ["x"]}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "completion/complete", "params": line}
        reply = await talk.line(msgspec.json.encode(message))
        assert reply["error"]["code"] == -32602
        found = await talk.result("completion/complete", params)
        assert found["completion"]["values"] == ["a"]


# -- what would take too much -------------------------------------------------------------------


def test_an_array_has_so_many_messages_and_no_more() -> None:
    ping = b'{"jsonrpc":"2.0","method":"ping","id":1}'
    [item] = read(b"[" + b",".join([ping] * 3) + b"]", batches=True, most=3)
    assert isinstance(item, Batch)
    [item] = read(b"[" + b",".join([ping] * 4) + b"]", batches=True, most=3)
    assert isinstance(item, Fault)
    assert b"over 3 messages in one array" in item.reply.frame


async def test_a_batch_of_a_million_is_refused_by_one_line() -> None:
    server = made(limits=KitLimits(batch=10))
    async with Talk(server, "2025-03-26") as talk:
        reply = await talk.line(b"[" + b"1," * 500_000 + b"1]")
        assert reply["error"]["code"] == -32600
        replies = await talk.line(b"[" + b"1," * 9 + b"1]")
        assert len(replies) == 10


async def test_a_uri_that_names_nothing_is_not_remembered() -> None:
    server = made()

    @server.resource("page://{x}")
    async def page(x: str) -> str:
        return x

    async with Talk(server) as talk:
        error = await talk.error("resources/subscribe", {"uri": "page://" + "x" * LONGEST})
        assert error["code"] == -32602
        assert error["message"] == f"Invalid params: the URI has over {LONGEST} characters"
        assert talk.session.state.subscriptions == set()
        await talk.result("resources/subscribe", {"uri": "page://" + "x" * (LONGEST - 7)})
        assert len(talk.session.state.subscriptions) == 1


_MATCHES = {"": r"([^/?#,]+)", "+": r"(.+)", "#": r"#(.*)"}
_TEMPLATES = (
    "f:{a}-{b}-{c}",
    "f:///{+a}/x/{+b}",
    "{a}",
    "{+a}",
    "x{#a}",
    "a{x}aa{+y}a{#z}",
    "{a}ab{b}",
    "fixed",
    "{+a}-{b}#-{c}",
)


def test_a_template_matches_as_the_regular_expression_that_it_stands_for() -> None:
    for text in _TEMPLATES:
        parts = re.split(r"\{([+#]?)([a-z])\}", text)
        pattern = re.escape(parts[0])
        for sign, literal in zip(parts[1::3], parts[3::3], strict=True):
            pattern += _MATCHES[sign] + re.escape(literal)
        template = UriTemplate(text)
        alphabet = sorted(set("".join(parts[::3])) | set("a#/"))[-5:]
        uris = [
            parts[0] + "".join(one)
            for n in range(6)
            for one in itertools.product(alphabet, repeat=n)
        ]
        uris += [
            "f:a-b-c-d",
            "axaaya#z",
            "axaaaab#",
            "aaaaaaaa#aa#",
            "f:a--b-c",
            "f:///a/x/b/x/c",
            "fixed",
            "a-b#-c",
            "a-b-a#-#-c",
        ]
        hits = 0
        for uri in uris:
            wanted = re.fullmatch(pattern, uri, re.DOTALL)
            found = template.match(uri)
            assert (found is None) == (wanted is None), (text, uri)
            if wanted is not None:
                hits += 1
                assert tuple(found.values()) == wanted.groups(), (text, uri)  # type: ignore[union-attr]
        assert hits, text


def test_a_uri_that_divides_in_countless_ways_is_read_at_once() -> None:
    # By a regular expression each of these takes longer than anybody lives.
    template = UriTemplate("f:" + "-".join(f"{{v{n}}}" for n in range(12)))
    assert template.match("f:" + "-" * 4000 + "/") is None
    found = template.match("f:" + "-" * 4000)
    assert found is not None
    assert found["v0"] == "-" * (4000 - 22)
    wide = UriTemplate("f:{+a}x{+b}x{+c}x{+d}y")
    assert wide.match("f:" + "x" * 8000) is None


# -- what is no message -------------------------------------------------------------------------


@pytest.mark.parametrize("end", [b"\xbf", b"\xef\xbb\xbf", b"\xef", b"\x00", b"\x0b", b"{}"])
def test_bytes_behind_a_message_make_it_none(end: bytes) -> None:
    [item] = read(b'{"jsonrpc":"2.0","method":"ping","id":1}' + end)
    assert isinstance(item, Fault)
    assert item.reply.code == -32700


def test_a_mark_of_byte_order_before_a_message_is_no_fault() -> None:
    [item] = read(b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"ping","id":1}\r\n')
    assert isinstance(item, Request)


@pytest.mark.parametrize("space", [b"\x0b", b"\x0c", b"\x1c"])
async def test_what_is_no_space_in_json_is_none_for_a_gateway_either(space: bytes) -> None:
    session = made().open(profile="gateway")
    [item] = session.receive(space + b'{"jsonrpc":"2.0","method":"ping","id":1}')
    assert isinstance(item, Fault)
    assert item.reply.code == -32700
    session.close()
