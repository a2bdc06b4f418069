"""Pages, completions, log levels and progress."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from mcpclient.ground.errors import ConfigError
from mcpclient.serverkit import Frame, Peer, Prompt, Resource, Schema, Server, Tool
from tests.serverkit.talking import ERAS, HANDSHAKE, PREFIX, STATELESS, Talk


class Plain(Tool):
    """A tool."""

    async def run(self, args: Any, frame: Frame) -> str:
        return "plain"


def many(count: int, **options: Any) -> Server:
    """Return a server with so many tools."""
    return Server("a", "1", components=[Plain(name=f"t{n:02}") for n in range(count)], **options)


async def pages(talk: Talk, method: str = "tools/list", kind: str = "tools") -> list[list[str]]:
    """Return the names on each page of a list."""
    found: list[list[str]] = []
    params: dict[str, Any] = {}
    while True:
        page = await talk.result(method, params)
        found.append([one["name"] for one in page[kind]])
        if "nextCursor" not in page:
            return found
        params = {"cursor": page["nextCursor"]}


# -- pages ---------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("count", "size", "lengths"),
    [(0, 3, [0]), (3, 3, [3]), (4, 3, [3, 1]), (7, 3, [3, 3, 1]), (5, None, [5])],
)
async def test_a_list_comes_in_pages_of_the_given_size(
    version: str, count: int, size: int | None, lengths: list[int]
) -> None:
    kit = many(count, page_size=size, capabilities=["tools"])
    async with Talk(kit, version) as talk:
        found = await pages(talk)
    assert [len(page) for page in found] == lengths
    assert [name for page in found for name in page] == [f"t{n:02}" for n in range(count)]


async def test_a_session_may_have_pages_of_its_own_size() -> None:
    kit = many(4, page_size=3)

    @kit.tool
    async def resize(frame: Frame, size: int | None) -> str:
        frame.page_size = size
        return f"{frame.page_size}"

    async with Talk(kit) as talk, Talk(kit) as other:
        assert await talk.text("resize", size=2) == "2"
        assert [len(page) for page in await pages(talk)] == [2, 2, 1]
        assert [len(page) for page in await pages(other)] == [3, 2]
        found = await talk.call("resize", size=0)
        assert found["content"][0]["text"] == "page_size must be at least 1, or None, not 0"


async def test_what_changes_between_two_pages_neither_repeats_nor_loses_what_was_there() -> None:
    kit = many(6, page_size=2)
    async with Talk(kit) as talk:
        one = await talk.result("tools/list")
        kit.remove("tools", "t01")
        kit.add(Plain(name="t00a"))
        two = await talk.result("tools/list", {"cursor": one["nextCursor"]})
        assert [tool["name"] for tool in two["tools"]] == ["t02", "t03"]


def forged(*parts: Any) -> str:
    """Return a cursor that looks like one of ours."""
    import json

    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    "cursor",
    ["", "x", "!!!", "é", "A" * 1000, forged("prompts", "t00"), forged("tools"), forged(1, 2), 5],
)
async def test_a_bad_cursor_is_invalid_params(version: str, cursor: Any) -> None:
    async with Talk(many(4, page_size=2), version) as talk:
        error = await talk.error("tools/list", {"cursor": cursor})
        assert error["code"] == -32602
        if isinstance(cursor, str):
            assert error["message"] == "Invalid cursor: it is not one that this list gave"
        # A cursor of null is none.
        assert len((await talk.result("tools/list", {"cursor": None}))["tools"]) == 2


async def test_resources_of_one_name_are_all_listed() -> None:
    class Page(Resource):
        uri = "x://0"

        async def read(self, uri: str, variables: dict[str, str], frame: Frame) -> str:
            return uri

    listed = [Page(uri=f"x://{n}", name="p") for n in range(3)]
    kit = Server("a", "1", page_size=1, components=listed)
    async with Talk(kit) as talk:
        assert await pages(talk, "resources/list", "resources") == [["p"], ["p"], ["p"]]


# -- completion ----------------------------------------------------------------------------


class Greet(Prompt):
    """A prompt that completes."""

    class Arguments(Schema):
        name: str

    async def get_messages(self, args: Arguments, frame: Frame) -> str:
        return args.name

    async def complete(self, argument: str, value: str, context: Any, frame: Frame) -> Any:
        found = [name for name in ("Ada", "Alan", "Bob") if name.startswith(value)]
        if argument == "many":
            return [f"{n}" for n in range(250)]
        if argument == "total":
            return found, 40
        if argument == "mapping":
            return {"values": found, "total": 3, "hasMore": False}
        if argument == "context":
            return [f"{key}={text}" for key, text in context.items()]
        if argument == "odd":
            return [1, 2]
        return found


def completing() -> Server:
    """Return a server that completes in each way."""
    kit = Server("a", "1", components=[Greet])

    @kit.resource("x://{name}", name="template")
    async def template(name: str) -> str:
        return name

    @kit.completion("templates", "template")
    def names(value: str) -> list[str]:
        return [f"{value}1", f"{value}2"]

    @kit.resource("x://fixed", name="fixed")
    async def fixed() -> str:
        return ""

    return kit


GREET = {"type": "ref/prompt", "name": "greet"}


async def completed(talk: Talk, ref: Any, name: str, value: str, **more: Any) -> dict[str, Any]:
    """Return a completion."""
    params = {"ref": ref, "argument": {"name": name, "value": value}, **more}
    found = (await talk.result("completion/complete", params))["completion"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("version", ERAS)
async def test_an_argument_is_completed_to_texts_with_a_total_and_whether_there_are_more(
    version: str,
) -> None:
    async with Talk(completing(), version) as talk:
        assert await completed(talk, GREET, "name", "A") == {"values": ["Ada", "Alan"]}
        assert await completed(talk, GREET, "name", "Z") == {"values": []}
        assert await completed(talk, GREET, "total", "A") == {
            "values": ["Ada", "Alan"],
            "total": 40,
            "hasMore": True,
        }
        assert await completed(talk, GREET, "mapping", "") == {
            "values": ["Ada", "Alan", "Bob"],
            "total": 3,
            "hasMore": False,
        }
        found = await completed(talk, GREET, "many", "")
        assert (len(found["values"]), found["total"], found["hasMore"]) == (100, 250, True)
        ref = {"type": "ref/resource", "uri": "x://{name}"}
        assert await completed(talk, ref, "name", "a") == {"values": ["a1", "a2"]}
        chosen = {"arguments": {"a": "b"}}
        assert await completed(talk, GREET, "context", "", context=chosen) == {"values": ["a=b"]}
        # What is there and completes nothing gives nothing.
        ref = {"type": "ref/resource", "uri": "x://fixed"}
        assert await completed(talk, ref, "name", "a") == {"values": []}


@pytest.mark.parametrize(
    ("ref", "argument"),
    [
        ({"type": "ref/prompt", "name": "nope"}, {"name": "name", "value": ""}),
        ({"type": "ref/resource", "uri": "nope:"}, {"name": "name", "value": ""}),
        ({"type": "ref/tool", "name": "greet"}, {"name": "name", "value": ""}),
        ({}, {"name": "name", "value": ""}),
        (GREET, {}),
        (GREET, {"name": "name", "value": 5}),
        ("greet", {"name": "name", "value": ""}),
    ],
)
async def test_what_cannot_be_completed_is_invalid_params(ref: Any, argument: Any) -> None:
    async with Talk(completing()) as talk:
        error = await talk.error("completion/complete", {"ref": ref, "argument": argument})
        assert error["code"] == -32602


async def test_values_that_are_no_text_are_the_servers_fault() -> None:
    async with Talk(completing()) as talk:
        params = {"ref": GREET, "argument": {"name": "odd", "value": ""}}
        assert (await talk.error("completion/complete", params))["code"] == -32603


async def test_one_hook_may_complete_what_does_not_complete_itself() -> None:
    kit = completing()

    @kit.hook
    async def handle_completion(ref: Any, argument: Any, frame: Frame) -> Any:
        return [f"{ref['uri']} {argument['name']} {argument['value']}"], 1

    async with Talk(kit) as talk:
        ref = {"type": "ref/resource", "uri": "x://fixed"}
        assert await completed(talk, ref, "n", "v") == {
            "values": ["x://fixed n v"],
            "total": 1,
            "hasMore": False,
        }
        assert (await completed(talk, GREET, "name", "B"))["values"] == ["Bob"]


async def test_completions_are_declared_if_something_completes() -> None:
    state = Server("a", "1").open().state
    assert "completions" not in many(1).capabilities(state)
    assert completing().capabilities(state)["completions"] == {}
    params = {
        "protocolVersion": "2024-11-05",
        "capabilities": {},
        "clientInfo": {"name": "a", "version": "1"},
    }
    found = await Talk(completing(), "2024-11-05").result("initialize", params)
    assert "completions" not in found["capabilities"]


def test_a_completion_of_nothing_or_with_odd_parameters_is_refused() -> None:
    kit = completing()
    with pytest.raises(ConfigError, match="there is no 'nope' among the prompts"):
        kit.completion("prompts", "nope")
    with pytest.raises(ConfigError, match='what has arguments is "prompts" or "templates"'):
        kit.completion("tools", "greet")
    with pytest.raises(ConfigError, match="a completion takes argument, value, context and frame"):

        @kit.completion("prompts", "greet")
        async def odd(colour: str) -> None: ...


async def test_a_completion_may_need_scopes() -> None:
    kit = Server("a", "1", components=[Greet(scopes=["x"])])
    async with Talk(kit, peer=Peer(scopes=frozenset())) as talk:
        params = {"ref": GREET, "argument": {"name": "name", "value": ""}}
        assert (await talk.error("completion/complete", params))["code"] == -32010


# -- logging -------------------------------------------------------------------------------


def logging_server() -> Server:
    """Return a server whose tool logs at every level."""
    kit = Server("a", "1")

    @kit.tool
    async def all_levels(frame: Frame) -> str:
        for level in (
            "debug",
            "info",
            "notice",
            "warning",
            "error",
            "critical",
            "alert",
            "emergency",
        ):
            frame.log(level, {"said": level}, "me")
        frame.log("emergency", "bare")
        return "logged"

    @kit.tool
    async def odd(frame: Frame) -> str:
        frame.log("loud", 1)
        return "never"

    return kit


async def test_the_level_that_was_set_is_a_filter() -> None:
    async with Talk(logging_server()) as talk:
        await talk.call("all_levels")
        told = talk.notices("notifications/message")
        assert [one["level"] for one in told][:2] == ["info", "notice"]
        assert told[0] == {"level": "info", "logger": "me", "data": {"said": "info"}}
        assert told[-1] == {"level": "emergency", "data": "bare"}
        for level, count in (("debug", 9), ("error", 5), ("emergency", 2)):
            talk.sent.clear()
            assert await talk.result("logging/setLevel", {"level": level}) == {}
            await talk.call("all_levels")
            assert len(talk.notices("notifications/message")) == count


async def test_an_unknown_level_is_refused_from_either_side() -> None:
    async with Talk(logging_server()) as talk:
        for params in ({"level": "loud"}, {"level": 5}, {}):
            assert (await talk.error("logging/setLevel", params))["code"] == -32602
        found = await talk.call("odd")
        assert found["content"][0]["text"].startswith("no such level: 'loud' (known: debug, ")


async def test_without_a_level_of_its_own_a_stateless_request_is_not_logged_to() -> None:
    async with Talk(logging_server(), STATELESS) as talk:
        await talk.call("all_levels")
        assert talk.sent == []
        params = {"name": "all_levels", "arguments": {}}
        await talk.result("tools/call", params, meta={f"{PREFIX}logLevel": "alert"})
        told = [one["level"] for one in talk.notices("notifications/message")]
        assert told == ["alert", "emergency", "emergency"]


# -- progress ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["2024-11-05", HANDSHAKE, STATELESS])
@pytest.mark.parametrize("token", [7, 0, "", "token"])
async def test_progress_is_sent_from_inside_the_running_tool_with_the_requests_token(
    version: str, token: Any
) -> None:
    kit = Server("a", "1")
    told_at: list[int] = []

    @kit.tool
    async def work(frame: Frame) -> str:
        frame.progress(0.5)
        told_at.append(len(talk.sent))
        frame.progress(1, 2, "half")
        told_at.append(len(talk.sent))
        return "done"

    async with Talk(kit, version) as talk:
        params = {"name": "work", "arguments": {}}
        await talk.result("tools/call", params, meta={"progressToken": token})
        half = {"progressToken": token, "progress": 1, "total": 2}
        if version != "2024-11-05":
            half["message"] = "half"
        assert talk.notices("notifications/progress") == [
            {"progressToken": token, "progress": 0.5},
            half,
        ]
        assert told_at == [1, 2]


@pytest.mark.parametrize("token", [None, 1.5, True, [], {}])
async def test_without_a_token_there_is_no_progress(token: Any) -> None:
    kit = Server("a", "1")

    @kit.tool
    async def work(frame: Frame) -> str:
        frame.progress(1, 2)
        return "done"

    async with Talk(kit) as talk:
        meta = {"progressToken": token} if token is not None else {}
        params = {"name": "work", "_meta": meta}
        line = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params}
        assert await talk.server.handle(line, talk.session) is not None
        assert talk.sent == []
