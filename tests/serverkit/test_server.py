"""What a server is, what it declares, and what it takes part in."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mcpclient.ground.errors import ConfigError
from mcpclient.serverkit import NEXT, Frame, Prompt, Resource, Server, Tool
from tests.conftest import eventually
from tests.serverkit.talking import ERAS, HANDSHAKE, STATELESS, Talk, opening


class Plain(Tool):
    """A plain tool."""

    async def run(self, args: Any, frame: Frame) -> str:
        return "plain"


class HTTPServerName(Plain):
    """A tool whose class has a name with capitals in a row."""


class Words(Prompt):
    """Some words."""

    async def get_messages(self, args: Any, frame: Frame) -> str:
        return "words"


class Page(Resource):
    """A page."""

    uri = "page://one"

    async def read(self, uri: str, variables: dict[str, str], frame: Frame) -> str:
        return "page"


# -- name and version ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({}, "name: a server must have a name and a version"),
        ({"name": "a"}, "version: a server must have a version"),
        ({"version": "1"}, "name: a server must have a name"),
        ({"name": "", "version": ""}, "name: a server must have a name and a version"),
    ],
)
def test_a_server_without_name_or_version_is_refused_by_what_is_missing(
    given: dict[str, str], problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Server(**given)
    assert str(caught.value) == problem


@pytest.mark.parametrize("version", ERAS)
async def test_instructions_are_told_and_left_out_when_there_are_none(version: str) -> None:
    method = "initialize" if version == HANDSHAKE else "server/discover"
    params = opening(version)
    silent = await Talk(Server("a", "1"), version).result(method, params)
    assert "instructions" not in silent
    told = await Talk(Server("a", "1", instructions="Do."), version).result(method, params)
    assert told["instructions"] == "Do."


# -- versions ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("offered", "agreed"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("", "2025-11-25"),
    ],
)
async def test_the_client_gets_the_version_it_offers_or_else_the_newest(
    offered: str, agreed: str
) -> None:
    talk = Talk(Server("a", "1"), agreed)
    params = opening(offered)
    assert (await talk.result("initialize", params))["protocolVersion"] == agreed


async def test_a_server_of_some_versions_offers_its_newest_of_those() -> None:
    server = Server("a", "1", versions=["2024-11-05", "2025-03-26"])
    found = await Talk(server, "2025-03-26").result("initialize", opening("2025-11-25"))
    assert found["protocolVersion"] == "2025-03-26"
    error = await Talk(server, STATELESS).error("server/discover")
    assert error["code"] == -32022
    assert error["data"] == {"supported": ["2024-11-05", "2025-03-26"], "requested": STATELESS}


async def test_a_stateless_server_refuses_initialize_and_names_its_versions() -> None:
    talk = Talk(Server("a", "1", versions=[STATELESS]), HANDSHAKE)
    error = await talk.error("initialize", {"protocolVersion": HANDSHAKE})
    assert error["code"] == -32022
    assert error["data"] == {"supported": [STATELESS], "requested": HANDSHAKE}


def test_an_unknown_version_is_refused_at_definition() -> None:
    with pytest.raises(ConfigError, match=r"versions must be some of 2024-11-05, .*not \['1'\]"):
        Server("a", "1", versions=["1"])


async def test_discovery_names_all_versions_the_newest_first() -> None:
    found = await Talk(Server("a", "1"), STATELESS).result("server/discover")
    assert found["supportedVersions"] == [
        "2026-07-28",
        "2025-11-25",
        "2025-06-18",
        "2025-03-26",
        "2024-11-05",
    ]
    assert found["_meta"] == {"io.modelcontextprotocol/serverInfo": {"name": "a", "version": "1"}}


async def test_an_unknown_version_in_meta_gets_the_versions_that_are_spoken() -> None:
    talk = Talk(Server("a", "1"), STATELESS)
    meta = {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}
    error = await talk.error("tools/list", meta=meta)
    assert (error["code"], error["data"]) == (
        -32022,
        {"supported": [STATELESS], "requested": "2030-01-01"},
    )


@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("protocolVersion", 1),
        ("clientCapabilities", None),
        ("clientCapabilities", []),
        ("clientInfo", "me"),
        ("logLevel", "loud"),
    ],
)
async def test_bad_members_of_meta_are_invalid_params_and_named(member: str, value: Any) -> None:
    talk = Talk(Server("a", "1"), STATELESS)
    key = f"io.modelcontextprotocol/{member}"
    error = await talk.error("server/discover", meta={key: value})
    assert error["code"] == -32602
    assert error["message"].startswith(f"Invalid params: _meta['{key}'] must be ")


async def test_a_request_without_client_info_is_served() -> None:
    talk = Talk(Server("a", "1"), STATELESS)
    meta = {
        "io.modelcontextprotocol/protocolVersion": STATELESS,
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    message = {"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}}
    reply = await talk.server.handle(message, talk.session)
    assert reply is not None
    assert "result" in reply


async def test_both_eras_are_served_in_one_conversation() -> None:
    server = Server("a", "1", components=[Plain])
    async with Talk(server, HANDSHAKE) as talk:
        assert await talk.text("plain") == "plain"
        talk.version = STATELESS
        assert await talk.text("plain") == "plain"
        talk.version = HANDSHAKE
        assert await talk.text("plain") == "plain"


# -- capabilities --------------------------------------------------------------------------


async def test_what_is_declared_follows_from_what_there_is() -> None:
    server = Server("a", "1")
    assert set(server.capabilities(server.open().state)) == {"logging"}
    server.add(Plain)
    server.add(Words)
    server.add(Page)
    assert server.capabilities(server.open().state) == {
        "logging": {},
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
    }


async def test_an_option_that_is_not_set_leaves_its_key_out() -> None:
    given = {"tools": {}, "resources": {"subscribe": True, "list_changed": False}, "logging": None}
    server = Server("a", "1", capabilities=given)
    async with Talk(server) as talk:
        found = talk.server.capabilities(talk.session.state)
    assert found == {"tools": {}, "resources": {"subscribe": True}, "logging": {}}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["tools", "magic"], "magic: there is no capability 'magic' (known: tools, prompts, "),
        ({"tools": {"subscribe": True}}, "tools.subscribe: tools has no option 'subscribe'"),
        ({"logging": {"loud": True}}, "logging.loud: logging has no option 'loud' (known: none)"),
    ],
)
def test_an_unknown_capability_is_refused_at_definition(given: Any, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Server("a", "1", capabilities=given)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize("version", ERAS)
@pytest.mark.parametrize(
    ("method", "capability"),
    [
        ("tools/list", "tools"),
        ("tools/call", "tools"),
        ("prompts/list", "prompts"),
        ("prompts/get", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resources"),
        ("resources/read", "resources"),
        ("completion/complete", "completions"),
    ],
)
async def test_a_method_of_an_undeclared_capability_is_not_found(
    version: str, method: str, capability: str
) -> None:
    server = Server("a", "1", capabilities=[], components=[Plain, Words, Page])
    async with Talk(server, version) as talk:
        error = await talk.error(method, {"name": "plain", "uri": "page://one"})
    assert error == {
        "code": -32601,
        "message": f"Method not found: {method} (the server declares no {capability})",
    }


async def test_subscriptions_and_levels_are_not_found_unless_declared() -> None:
    server = Server("a", "1", capabilities={"resources": {}}, components=[Page])
    async with Talk(server) as talk:
        for method, missing in (
            ("resources/subscribe", "resources.subscribe"),
            ("resources/unsubscribe", "resources.subscribe"),
            ("logging/setLevel", "logging"),
        ):
            error = await talk.error(method, {"uri": "page://one", "level": "info"})
            assert error["code"] == -32601
            assert error["message"].endswith(f"(the server declares no {missing})")


# -- components ----------------------------------------------------------------------------


@pytest.mark.parametrize("version", ERAS)
async def test_lists_are_sorted_by_name_and_the_same_on_every_call(version: str) -> None:
    server = Server("a", "1")
    for name in ("zebra", "apple", "mango"):
        server.add(Plain(name=name))
        server.add(Words(name=name))
        server.add(Page(name=name, uri=f"page://{name}"))
    async with Talk(server, version) as talk:
        for method, kind in (
            ("tools/list", "tools"),
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
        ):
            found = await talk.result(method)
            assert [one["name"] for one in found[kind]] == ["apple", "mango", "zebra"]
            assert await talk.result(method) == found


def test_a_name_is_the_given_one_or_the_components_or_the_class_in_snake_case() -> None:
    server = Server("a", "1")
    server.add(Plain)
    server.add(HTTPServerName)
    server.add(Plain, name="given")
    server.add(type("Own", (Plain,), {"name": "own"}))
    server.add(type("Both", (Plain,), {"name": "lost"}), name="won")
    assert sorted(server.tools) == ["given", "http_server_name", "own", "plain", "won"]


@pytest.mark.parametrize("wrong", [object(), dict, "tool", None, lambda: 1])
def test_what_is_no_component_is_refused_at_definition(wrong: Any) -> None:
    with pytest.raises(ConfigError, match="is no component: give a Tool, Prompt or Resource"):
        Server("a", "1", components=[wrong])


def test_an_option_that_a_component_does_not_have_is_refused() -> None:
    with pytest.raises(ConfigError, match="Plain has no option 'colour'"):
        Plain(colour="red")


def test_a_component_of_the_same_name_takes_the_place_of_the_first() -> None:
    server = Server("a", "1", components=[Plain(title="first"), Plain(title="second")])
    assert [one.title for one in server.tools.values()] == ["second"]


@pytest.mark.parametrize("version", ERAS)
async def test_a_title_is_that_of_the_annotations_or_its_own_or_the_name(version: str) -> None:
    server = Server("a", "1")
    for kind, more in ((Plain, {}), (Words, {}), (Page, {"uri": "page://"})):
        for name, options in (
            ("a", {"annotations": {"title": "hinted"}, "title": "own"}),
            ("b", {"title": "own"}),
            ("c", {}),
        ):
            uri = {"uri": f"page://{name}"} if more else {}
            server.add(kind(name=name, **options, **uri))
    async with Talk(server, version) as talk:
        for method, kind_name in (
            ("tools/list", "tools"),
            ("prompts/list", "prompts"),
            ("resources/list", "resources"),
        ):
            listed = (await talk.result(method))[kind_name]
            assert [one["title"] for one in listed] == ["hinted", "own", "c"]


# -- the gate ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["tools/list", "logging/setLevel", "tasks/get", "what/ever"])
async def test_before_initialize_only_ping_and_initialize_are_answered(method: str) -> None:
    talk = Talk(Server("a", "1", components=[Plain]))
    assert await talk.result("ping") == {}
    error = await talk.error(method)
    assert error == {"code": -32600, "message": "Server not initialized"}
    params = opening(HANDSHAKE)
    await talk.result("initialize", params)
    assert [one["name"] for one in (await talk.result("tools/list"))["tools"]] == ["plain"]


async def test_initializing_twice_is_refused() -> None:
    async with Talk(Server("a", "1")) as talk:
        error = await talk.error("initialize", {"protocolVersion": HANDSHAKE})
        assert error["code"] == -32600


async def test_initialize_without_a_version_is_refused() -> None:
    error = await Talk(Server("a", "1")).error("initialize", {"capabilities": {}})
    assert error == {"code": -32602, "message": "Missing parameter: protocolVersion"}


@pytest.mark.parametrize(
    "method", ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/result"]
)
async def test_what_the_stateless_era_has_no_more_is_not_found(method: str) -> None:
    talk = Talk(Server("a", "1", components=[Plain, Page]), STATELESS)
    error = await talk.error(method, {"uri": "page://one"})
    assert error == {"code": -32601, "message": f"Method not found: {method}"}


# -- hooks ---------------------------------------------------------------------------------


def hooked() -> tuple[Server, list[Any]]:
    """Return a server with every hook, and what they note."""
    server, noted = Server("a", "1", components=[Plain]), []

    @server.hook
    async def init(client_info: dict[str, Any], frame: Frame) -> None:
        noted.append(("init", client_info["name"], frame.protocol_version))
        frame.assign(seen=client_info["name"])

    @server.hook
    def handle_request(method: str, params: dict[str, Any], frame: Frame) -> Any:
        return {"mine": params.get("a")} if method == "my/own" else NEXT

    @server.hook
    def handle_notification(method: str, params: dict[str, Any], frame: Frame) -> None:
        noted.append((method, params, frame.assigns.get("seen")))

    @server.hook
    async def handle_info(event: Any, frame: Frame) -> None:
        frame.notify("notifications/message", {"level": "info", "data": event})

    @server.hook
    async def handle_call(request: Any, frame: Frame) -> Any:
        return request, frame.assigns["seen"]

    @server.hook
    async def handle_cast(request: Any, frame: Frame) -> None:
        frame.assign(cast=request)

    @server.hook
    async def terminate(reason: str, frame: Frame) -> None:
        noted.append(("terminate", reason, frame.assigns["seen"]))

    return server, noted


async def test_the_init_hook_gets_the_client_and_a_frame_that_lasts() -> None:
    server, noted = hooked()
    async with Talk(server) as talk:
        assert noted[0] == ("init", "talk", HANDSHAKE)
        assert talk.session.state.assigns == {"seen": "talk"}


async def test_in_the_stateless_era_the_init_hook_begins_each_request() -> None:
    server, noted = hooked()
    async with Talk(server, STATELESS) as talk:
        await talk.text("plain")
        await talk.text("plain")
    assert noted == [("init", "talk", STATELESS)] * 2


@pytest.mark.parametrize("version", ERAS)
async def test_the_request_hook_goes_before_the_routes_or_leaves_it_to_them(version: str) -> None:
    server, _ = hooked()
    async with Talk(server, version) as talk:
        assert (await talk.result("my/own", {"a": 5}))["mine"] == 5
        assert await talk.text("plain") == "plain"


async def test_the_notification_hook_gets_every_notification_but_cancellations() -> None:
    server, noted = hooked()
    async with Talk(server) as talk:
        await talk.notify("notifications/roots/list_changed", {"a": 1})
        await talk.notify("notifications/cancelled", {"requestId": 99})
    assert noted[1:3] == [
        ("notifications/initialized", {}, "talk"),
        ("notifications/roots/list_changed", {"a": 1}, "talk"),
    ]


async def test_an_event_of_the_application_becomes_a_notification_in_each_session() -> None:
    server, _ = hooked()
    async with Talk(server) as one, Talk(server) as other:
        await server.inform({"temperature": 40})
        for talk in (one, other):
            assert talk.notices("notifications/message") == [
                {"level": "info", "data": {"temperature": 40}}
            ]


async def test_the_application_can_ask_a_session_and_have_it_do_something() -> None:
    server, _ = hooked()
    async with Talk(server) as talk:
        assert await talk.session.call("how are you?") == ("how are you?", "talk")
        await talk.session.cast("remember me")
        assert talk.session.state.assigns["cast"] == "remember me"


async def test_the_end_of_a_session_is_told_with_its_reason() -> None:
    server, noted = hooked()
    async with Talk(server) as talk:
        talk.session.close("the client left")
        talk.session.close("again")
    last = await eventually(lambda: noted[-1] if noted[-1][0] == "terminate" else None)
    assert last == ("terminate", "the client left", "talk")
    assert [one[0] for one in noted].count("terminate") == 1


def test_a_hook_of_an_unknown_name_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no hook 'handle_everything' \\(known: init, "):

        @Server("a", "1").hook
        def handle_everything() -> None: ...


async def test_a_hook_that_breaks_costs_its_own_request_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = Server("a", "1", components=[Plain])

    @server.hook
    def handle_request(method: str, params: Any, frame: Frame) -> Any:
        if method == "my/broken":
            raise KeyError("secret")
        return NEXT

    async with Talk(server) as talk:
        error = await talk.error("my/broken")
        assert error == {"code": -32603, "message": "Internal error: KeyError"}
        assert await talk.text("plain") == "plain"
    assert "! my/broken failed" in caplog.text


# -- failures ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ERAS)
async def test_a_tools_crash_is_its_result_and_is_logged_with_the_trace(
    version: str, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server("a", "1")

    @server.tool
    async def divide(a: float, b: float) -> float:
        return a / b

    with caplog.at_level(logging.ERROR, "mcpclient.serverkit"):
        async with Talk(server, version) as talk:
            found = await talk.call("divide", a=1, b=0)
    assert found["isError"] is True
    assert found["content"] == [{"type": "text", "text": "float division by zero"}]
    [record] = caplog.records
    assert record.getMessage() == "! tool divide failed"
    assert record.exc_info is not None


async def test_a_method_of_ones_own_is_answered_in_both_eras() -> None:
    server = Server("a", "1")

    @server.method("my/sum", cacheable=True)
    async def total(params: dict[str, Any], frame: Frame) -> dict[str, Any]:
        return {"sum": sum(params["numbers"]), "era": frame.era}

    async with Talk(server) as talk:
        assert await talk.result("my/sum", {"numbers": [1, 2]}) == {"sum": 3, "era": "handshake"}
        talk.version = STATELESS
        found = await talk.result("my/sum", {"numbers": [1, 2]})
        assert (found["sum"], found["era"], found["ttlMs"]) == (3, "stateless", 0)
