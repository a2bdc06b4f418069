"""How tools are listed, called, checked and failed."""

from __future__ import annotations

import dataclasses
import threading
from typing import Annotated, Any, Literal

import anyio
import pytest
from msgspec import Meta, Struct

from mcpclient.ground.errors import ConfigError
from mcpclient.serverkit import Frame, Peer, Response, RpcError, Schema, Server, Tool, ToolFailure
from tests.serverkit.talking import ERAS, HANDSHAKE, STATELESS, Talk, content


class Point(Struct):
    """A point."""

    x: float
    y: float = 0


class Full(Tool):
    """All that a tool can say."""

    title = "Full"
    output = Point
    annotations = {"readOnlyHint": True}  # noqa: RUF012
    icons = [{"src": "https://example.com/i.png"}]  # noqa: RUF012
    meta = {"example.com/a": 1}  # noqa: RUF012
    task_support = "optional"

    class Arguments(Schema):
        x: Annotated[float, Meta(ge=0, description="How far.")]
        kind: Literal["a", "b"] = "a"

    async def run(self, args: Arguments, frame: Frame) -> Point:
        return Point(args.x)


INPUT = {
    "type": "object",
    "properties": {
        "x": {"type": "number", "minimum": 0, "description": "How far."},
        "kind": {"type": "string", "enum": ["a", "b"], "default": "a"},
    },
    "required": ["x"],
}
OUTPUT = {
    "type": "object",
    "properties": {"x": {"type": "number"}, "y": {"type": "number", "default": 0}},
    "required": ["x"],
    "description": "A point.",
}


# -- the item ------------------------------------------------------------------------------


async def test_an_item_says_all_that_a_tool_says() -> None:
    async with Talk(Server("a", "1", components=[Full])) as talk:
        [item] = (await talk.result("tools/list"))["tools"]
    assert item == {
        "name": "full",
        "title": "Full",
        "description": "All that a tool can say.",
        "inputSchema": INPUT,
        "outputSchema": OUTPUT,
        "annotations": {"readOnlyHint": True},
        "icons": [{"src": "https://example.com/i.png"}],
        "_meta": {"example.com/a": 1},
        "execution": {"taskSupport": "optional"},
    }


async def test_an_item_leaves_out_what_is_not_there() -> None:
    server = Server("a", "1")

    @server.tool
    async def bare() -> None: ...

    async with Talk(server) as talk:
        [item] = (await talk.result("tools/list"))["tools"]
    assert item == {
        "name": "bare",
        "title": "bare",
        "inputSchema": {"type": "object", "properties": {}, "required": []},
    }


@pytest.mark.parametrize(
    ("version", "absent"),
    [
        ("2024-11-05", {"title", "outputSchema", "icons", "_meta", "execution", "annotations"}),
        ("2025-03-26", {"title", "outputSchema", "icons", "_meta", "execution"}),
        ("2025-06-18", {"icons", "execution"}),
        ("2026-07-28", {"execution"}),
    ],
)
async def test_an_older_version_is_not_told_what_it_does_not_have(
    version: str, absent: set[str]
) -> None:
    async with Talk(Server("a", "1", components=[Full]), version) as talk:
        [item] = (await talk.result("tools/list"))["tools"]
    everything = {
        *("name", "title", "description", "inputSchema", "outputSchema"),
        *("annotations", "icons", "_meta", "execution"),
    }
    assert set(item) == everything - absent


# -- arguments -----------------------------------------------------------------------------


def typed() -> Server:
    """Return a server with one tool of typed arguments, which returns them."""
    server = Server("a", "1")

    @server.tool
    async def typed(
        text: str,
        number: float = 0.5,
        whole: Annotated[int, Meta(le=10)] = 1,
        flags: list[str] = [],  # noqa: B006
        point: Point | None = None,
    ) -> dict[str, Any]:
        return {"text": text, "number": number, "whole": whole, "flags": flags, "point": point}

    return server


@pytest.mark.parametrize("version", ERAS)
async def test_missing_arguments_are_an_empty_object(version: str) -> None:
    server = Server("a", "1")

    @server.tool
    async def optional(text: str = "default") -> str:
        return text

    async with Talk(server, version) as talk:
        for params in ({}, {"arguments": None}, {"arguments": {}}):
            found = await talk.result("tools/call", {"name": "optional", **params})
            assert content(found) == ["default"]


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "arguments: Object missing required field `text`"),
        ({"text": 1}, "arguments.text: Expected `str`, got `int`"),
        ({"text": "a", "number": "b"}, "arguments.number: Expected `float`, got `str`"),
        ({"text": "a", "whole": 11}, "arguments.whole: Expected `int` <= 10"),
        ({"text": "a", "whole": 1.5}, "arguments.whole: Expected `int`, got `float`"),
        ({"text": "a", "flags": ["b", 1]}, "arguments.flags[1]: Expected `str`, got `int`"),
        ({"text": "a", "point": {}}, "arguments.point: Object missing required field `x`"),
    ],
)
async def test_bad_arguments_are_a_result_that_names_the_place_and_the_reason(
    version: str, arguments: Any, problem: str
) -> None:
    async with Talk(typed(), version) as talk:
        found = await talk.result("tools/call", {"name": "typed", "arguments": arguments})
    assert found["isError"] is True
    assert content(found) == [f"Invalid arguments: {problem}"]


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("arguments", [[], "text", 5, True])
async def test_arguments_that_are_no_object_are_invalid_params(
    version: str, arguments: Any
) -> None:
    async with Talk(typed(), version) as talk:
        error = await talk.error("tools/call", {"name": "typed", "arguments": arguments})
    assert error == {"code": -32602, "message": "Invalid params: arguments must be an object"}


@pytest.mark.parametrize("version", ERAS)
async def test_a_number_takes_integers_and_floats_and_unknown_keys_are_dropped(
    version: str,
) -> None:
    async with Talk(typed(), version) as talk:
        for number in (2, 2.0):
            found = await talk.call("typed", text="a", number=number, whole=3.0, extra={"b": 1})
            assert found["structuredContent"] == {
                "text": "a",
                "number": 2.0,
                "whole": 3,
                "flags": [],
                "point": None,
            }
        found = await talk.call("typed", text="a", point={"x": 1, "z": 3})
        assert found["structuredContent"]["point"] == {"x": 1.0, "y": 0}


async def test_defaults_stand_in_the_schema() -> None:
    async with Talk(typed()) as talk:
        [item] = (await talk.result("tools/list"))["tools"]
    properties = item["inputSchema"]["properties"]
    assert {name: one.get("default", "-") for name, one in properties.items()} == {
        "text": "-",
        "number": 0.5,
        "whole": 1,
        "flags": [],
        "point": None,
    }
    assert item["inputSchema"]["required"] == ["text"]
    assert properties["whole"]["maximum"] == 10


async def test_a_default_that_can_be_changed_is_each_calls_own() -> None:
    server = Server("a", "1")

    @server.tool
    async def grow(
        names: list[str] = ["a"],  # noqa: B006
        point: Point = Point(1.0),  # noqa: B008
        more: dict[str, int] = {},  # noqa: B006
    ) -> list[Any]:
        names.append("b")
        point.x += 1
        more["c"] = 1
        return [names, point, more]

    async with Talk(server) as talk:
        for _ in range(2):
            assert content(await talk.call("grow")) == ['[["a","b"],{"x":2.0,"y":0},{"c":1}]']
        [item] = (await talk.result("tools/list"))["tools"]
    assert {name: one["default"] for name, one in item["inputSchema"]["properties"].items()} == {
        "names": ["a"],
        "point": {"x": 1.0, "y": 0},
        "more": {},
    }


async def test_a_type_that_holds_itself_keeps_its_references() -> None:
    server = Server("a", "1")

    @server.tool
    async def walk(tree: Tree) -> int:
        return 1 + len(tree.children)

    async with Talk(server) as talk:
        [item] = (await talk.result("tools/list"))["tools"]
        assert await talk.text("walk", tree={"children": [{"children": []}]}) == "2"
    tree = item["inputSchema"]["properties"]["tree"]
    assert tree["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}
    assert set(item["inputSchema"]["$defs"]) == {"Tree"}


class Tree(Struct):
    """A tree."""

    children: list[Tree] = []


async def test_a_schema_by_hand_is_shown_as_it_is_and_the_tool_gets_a_mapping() -> None:
    server = Server("a", "1")
    schema = {"type": "object", "$anchor": "x", "allOf": [{}], "required": ["a"]}

    @server.tool(input_schema=schema)
    async def raw(arguments: dict[str, Any]) -> dict[str, Any]:
        return arguments

    async with Talk(server) as talk:
        [item] = (await talk.result("tools/list"))["tools"]
        assert item["inputSchema"] == schema
        found = await talk.call("raw", a=1, b={"c": None})
        assert found["structuredContent"] == {"a": 1, "b": {"c": None}}
        refused = await talk.call("raw", b=1)
        assert content(refused) == [
            "Invalid arguments: arguments: Object missing required field `a`"
        ]


# -- the order of checks -------------------------------------------------------------------


class Guarded(Tool):
    """Needs a scope, is a task, and takes a number."""

    scopes = ("may",)
    task_support = "required"

    class Arguments(Schema):
        number: int

    async def run(self, args: Arguments, frame: Frame) -> int:
        return args.number


async def test_a_call_is_checked_by_existence_scopes_tasks_and_arguments_in_this_order() -> None:
    server = Server("a", "1", components=[Guarded])
    without, allowed = Peer(scopes=frozenset()), Peer(scopes=frozenset({"may"}))
    async with Talk(server) as talk:
        wrong: dict[str, Any] = {"name": "nothing", "arguments": {"number": "x"}}
        error = await talk.error("tools/call", wrong, peer=without)
        assert error == {"code": -32602, "message": "Tool not found: nothing"}
        wrong["name"] = "guarded"
        error = await talk.error("tools/call", wrong, peer=without)
        assert error["code"] == -32010
        error = await talk.error("tools/call", wrong, peer=allowed)
        assert error == {"code": -32601, "message": "Tool guarded only runs as a task"}
        wrong["task"] = {}
        found = await talk.result("tools/call", wrong, peer=allowed)
        assert content(found) == ["Invalid arguments: arguments.number: Expected `int`, got `str`"]


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize("name", ["", "nope", "typed "])
async def test_an_unknown_tool_is_not_found(version: str, name: str) -> None:
    async with Talk(typed(), version) as talk:
        error = await talk.error("tools/call", {"name": name})
    assert error == {"code": -32602, "message": f"Tool not found: {name}"}


@pytest.mark.parametrize("name", [None, 1, []])
async def test_a_name_that_is_no_text_is_refused(name: Any) -> None:
    async with Talk(typed()) as talk:
        error = await talk.error("tools/call", {"name": name})
    assert error["code"] == -32602


# -- outcomes ------------------------------------------------------------------------------


@dataclasses.dataclass
class Pair:
    """Two values."""

    one: int
    two: str


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        ("words", "words", None),
        ("", "", None),
        (3, "3", None),
        (1.5, "1.5", None),
        (True, "true", None),
        ({"a": 1}, '{"a":1}', {"a": 1}),
        ([1, "b"], '[1,"b"]', None),
        (Point(1.0), '{"x":1.0,"y":0}', {"x": 1.0, "y": 0}),
        (Pair(1, "b"), '{"one":1,"two":"b"}', {"one": 1, "two": "b"}),
    ],
)
async def test_a_bare_value_is_a_text_and_a_mapping_is_a_value_too(
    version: str, value: Any, text: str, structured: Any
) -> None:
    server = Server("a", "1")

    @server.tool
    async def give() -> Any:
        return value

    async with Talk(server, version) as talk:
        found = await talk.call("give")
    assert found["content"] == [{"type": "text", "text": text}]
    assert found.get("structuredContent") == structured
    assert "isError" not in found


async def test_none_is_an_empty_content() -> None:
    server = Server("a", "1")

    @server.tool
    async def nothing() -> None: ...

    async with Talk(server) as talk:
        assert await talk.call("nothing") == {"content": []}


async def test_content_blocks_in_a_list_are_the_content() -> None:
    server = Server("a", "1")

    @server.tool
    async def blocks() -> Any:
        return [{"type": "text", "text": "a"}, {"type": "resource_link", "uri": "x:", "name": "b"}]

    async with Talk(server) as talk:
        found = await talk.call("blocks")
    assert [block["type"] for block in found["content"]] == ["text", "resource_link"]


async def test_a_response_is_built_step_by_step() -> None:
    server = Server("a", "1")

    @server.tool
    async def built() -> Response:
        return (
            Response()
            .text("a", priority=0.5)
            .image(b"\x00\xff", "image/png")
            .audio("AAAA", "audio/wav")
            .link("x:1", "one", title="One")
            .embed("x:2", {"b": 1})
            .embed("x:3", b"\x01")
            .block({"type": "text", "text": "raw"})
            .structured(Point(2.0))
            .meta(example=1)
        )

    async with Talk(server) as talk:
        found = await talk.call("built")
    assert found == {
        "content": [
            {"type": "text", "text": "a", "annotations": {"priority": 0.5}},
            {"type": "image", "data": "AP8=", "mimeType": "image/png"},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "x:1", "name": "one", "title": "One"},
            {
                "type": "resource",
                "resource": {"uri": "x:2", "mimeType": "application/json", "text": '{"b":1}'},
            },
            {
                "type": "resource",
                "resource": {"uri": "x:3", "mimeType": "application/octet-stream", "blob": "AQ=="},
            },
            {"type": "text", "text": "raw"},
        ],
        "structuredContent": {"x": 2.0, "y": 0},
        "_meta": {"example": 1},
    }


@pytest.mark.parametrize(
    ("version", "kinds"),
    [
        ("2024-11-05", ["text", "text", "text"]),
        ("2025-03-26", ["text", "audio", "text"]),
        ("2025-06-18", ["text", "audio", "resource_link"]),
    ],
)
async def test_an_older_version_gets_blocks_it_does_not_have_as_text(
    version: str, kinds: list[str]
) -> None:
    server = Server("a", "1")

    @server.tool
    async def new() -> Response:
        return Response().text("a").audio("AAAA", "audio/wav").link("x:1", "one").structured({})

    async with Talk(server, version) as talk:
        found = await talk.call("new")
    assert [block["type"] for block in found["content"]] == kinds
    assert ("structuredContent" in found) is (version == "2025-06-18")
    if version == "2024-11-05":
        assert content(found) == ["a", "[audio, audio/wav]", "[x:1]"]


@pytest.mark.parametrize("version", ERAS)
async def test_a_tool_may_fail_refuse_or_break(version: str) -> None:
    server = Server("a", "1")

    @server.tool
    async def end(how: str) -> Any:
        if how == "fail":
            raise ToolFailure("cannot")
        if how == "fail richly":
            raise ToolFailure(Response().text("a").text("b"))
        if how == "error":
            return Response().error("said so").structured({"code": 7})
        if how == "refuse":
            raise RpcError(-32001, "refused", {"a": 1})
        raise LookupError

    async with Talk(server, version) as talk:
        found = await talk.call("end", how="fail")
        assert (found["isError"], content(found)) == (True, ["cannot"])
        assert content(await talk.call("end", how="fail richly")) == ["a", "b"]
        found = await talk.call("end", how="error")
        assert (found["isError"], found["structuredContent"]) == (True, {"code": 7})
        error = await talk.error("tools/call", {"name": "end", "arguments": {"how": "refuse"}})
        assert error == {"code": -32001, "message": "refused", "data": {"a": 1}}
        # An error without a text has at least a name.
        assert content(await talk.call("end", how="break")) == ["LookupError"]


@pytest.mark.parametrize("version", ERAS)
async def test_what_a_task_group_wraps_is_what_it_is(version: str) -> None:
    server = Server("a", "1")

    @server.tool
    async def group(how: str) -> str:
        async def end(problem: Exception) -> None:
            raise problem

        async with anyio.create_task_group() as tasks:
            if how == "fail":
                tasks.start_soon(end, ToolFailure("cannot"))
            elif how == "refuse":
                tasks.start_soon(end, RpcError(-32001, "refused"))
            else:
                tasks.start_soon(end, KeyError("one"))
                tasks.start_soon(end, KeyError("two"))
        return "never"

    async with Talk(server, version) as talk:
        assert content(await talk.call("group", how="fail")) == ["cannot"]
        error = await talk.error("tools/call", {"name": "group", "arguments": {"how": "refuse"}})
        assert error == {"code": -32001, "message": "refused"}
        [text] = content(await talk.call("group", how="break"))
        assert sorted(text.split("; ")) == ["'one'", "'two'"]


@pytest.mark.parametrize("version", ERAS)
async def test_what_a_tool_prepares_is_there_when_it_runs_and_may_fail(version: str) -> None:
    class Careful(Tool):
        """Prepares."""

        class Arguments(Schema):
            good: bool

        async def prepare(self, args: Any, frame: Frame) -> str:
            if not args.good:
                raise ToolFailure("not prepared")
            return "prepared"

        async def run(self, args: Any, frame: Frame) -> str:
            return str(frame.prepared)

    async with Talk(Server("a", "1", components=[Careful]), version) as talk:
        assert await talk.text("careful", good=True) == "prepared"
        found = await talk.call("careful", good=False)
        assert (found["isError"], content(found)) == (True, ["not prepared"])


# -- the output schema ---------------------------------------------------------------------


@pytest.mark.parametrize("version", ERAS)
async def test_a_result_that_is_not_as_declared_is_the_servers_error(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("a", "1")

    @server.tool(output=Point)
    async def lie(how: str) -> Any:
        if how == "error":
            return Response().error("no point").structured({"x": "not a number"})
        return {"good": {"x": 1}, "bad": {"x": "a"}, "text": "words"}[how]

    async with Talk(server, version) as talk:
        assert (await talk.call("lie", how="good"))["structuredContent"] == {"x": 1}
        found = await talk.call("lie", how="bad")
        assert found["isError"] is True
        assert content(found) == [
            "the server's fault: structuredContent.x: Expected `float`, got `str`"
        ]
        assert (await talk.call("lie", how="text"))["isError"] is True
        # What says that it failed is not checked.
        assert content(await talk.call("lie", how="error")) == ["no point"]
    assert "its result is not as it declares" in caplog.text


@pytest.mark.parametrize("version", ERAS)
async def test_structured_content_of_any_kind_is_told_only_where_it_may_be(version: str) -> None:
    server = Server("a", "1")

    @server.tool(output=list[int])
    async def numbers() -> list[int]:
        return [1, 2]

    async with Talk(server, version) as talk:
        [item] = (await talk.result("tools/list"))["tools"]
        found = await talk.call("numbers")
    assert content(found) == ["[1,2]"]
    if version == STATELESS:
        assert item["outputSchema"] == {"type": "array", "items": {"type": "integer"}}
        assert found["structuredContent"] == [1, 2]
    else:
        assert "outputSchema" not in item
        assert "structuredContent" not in found


async def test_a_struct_that_a_function_returns_is_its_output_schema() -> None:
    server = Server("a", "1")

    @server.tool
    async def where() -> Point:
        return Point(1.0)

    async with Talk(server) as talk:
        [item] = (await talk.result("tools/list"))["tools"]
        assert item["outputSchema"] == OUTPUT
        assert (await talk.call("where"))["structuredContent"] == {"x": 1.0, "y": 0}


# -- functions -----------------------------------------------------------------------------


async def test_a_plain_function_runs_in_a_thread_and_blocks_nobody() -> None:
    server = Server("a", "1")
    entered, leave = threading.Event(), threading.Event()

    @server.tool
    def block(frame: Frame) -> str:
        frame.progress(1, 2, "in a thread")
        entered.set()
        leave.wait(30)
        return threading.current_thread().name

    @server.tool
    async def quick() -> str:
        return "quick"

    async with Talk(server) as talk:
        async with anyio.create_task_group() as group:
            found: list[dict[str, Any]] = []

            async def call() -> None:
                params = {"name": "block"}
                found.append(await talk.result("tools/call", params, meta={"progressToken": 7}))

            group.start_soon(call)
            await anyio.to_thread.run_sync(entered.wait, 30)
            assert await talk.text("quick") == "quick"
            assert not found
            leave.set()
        assert content(found[0]) != [threading.current_thread().name]
        assert talk.notices("notifications/progress") == [
            {"progressToken": 7, "progress": 1, "total": 2, "message": "in a thread"}
        ]


def test_a_function_with_open_ended_parameters_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"open: \*anything has no place in a schema"):

        @Server("a", "1").tool
        async def open(*anything: str) -> None: ...


async def test_an_annotation_may_name_a_class_of_the_function_around() -> None:
    class Local(Struct):
        x: int

    server = Server("a", "1")

    @server.tool
    async def take(one: Local, more: list[Local] | None = None) -> Local:
        return Local(one.x + 1)

    async with Talk(server) as talk:
        assert (await talk.call("take", one={"x": 1}))["structuredContent"] == {"x": 2}


def test_a_mistake_in_an_annotation_shows_when_the_server_is_checked() -> None:
    server = Server("a", "1")

    @server.tool
    async def wrong(value: Nonsense) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(ConfigError, match="wrong: an annotation has no meaning"):
        server.check()


def test_an_unknown_task_support_is_refused() -> None:
    with pytest.raises(ConfigError, match='must be "forbidden", "optional" or "required"'):
        Full(task_support="maybe")


@pytest.mark.parametrize("version", ERAS)
async def test_what_clients_may_keep_is_said_by_the_component_or_the_server(version: str) -> None:
    server = Server("a", "1", ttl=10.0, cache_scope="public")

    @server.tool(ttl=2.5)
    async def short() -> None: ...

    @server.tool
    async def usual() -> None: ...

    async with Talk(server, version) as talk:
        listed = await talk.result("tools/list")
        if version == HANDSHAKE:
            assert set(listed) == {"tools"}
            return
        assert (listed["ttlMs"], listed["cacheScope"]) == (2500, "public")
        server.remove("tools", "short")
        listed = await talk.result("tools/list")
        assert (listed["ttlMs"], listed["cacheScope"]) == (10_000, "public")
        server.tools["usual"].cache_scope = "private"
        assert (await talk.result("tools/list"))["cacheScope"] == "private"
        # What depends on who asks is for nobody else, whatever is said.
        server.tools["usual"].cache_scope = "public"
        listed = await talk.result("tools/list", peer=Peer(subject="ada", scopes=frozenset()))
        assert listed["cacheScope"] == "private"
