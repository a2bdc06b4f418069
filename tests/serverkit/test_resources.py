"""Resources, templates, and who is told of their changes."""

from __future__ import annotations

from typing import Any

import pytest

from mcpclient.ground.errors import ConfigError
from mcpclient.serverkit import Frame, NotFound, Resource, Response, Server
from mcpclient.serverkit.uris import UriTemplate
from tests.serverkit.talking import ERAS, HANDSHAKE, STATELESS, Talk


class Greeting(Resource):
    """A greeting."""

    uri_template = "greet://{name}"

    async def read(self, uri: str, variables: dict[str, str], frame: Frame) -> Any:
        return f"hello {variables['name']}" if variables["name"] != "nobody" else None


def server() -> Server:
    """Return a server with resources of each form."""
    server = Server("a", "1", components=[Greeting])

    @server.resource("greet://ada")
    async def ada() -> str:
        """For Ada alone."""
        return "hello, dear Ada"

    @server.resource("greet://{name}", name="z_late")
    async def late(name: str, uri: str) -> str:
        if name == "nobody at all":
            raise NotFound(uri)
        return f"late {name}"

    @server.resource("data://json", mime_type="application/json", size=9)
    async def json() -> dict[str, int]:
        return {"a": 1}

    @server.resource("data://untyped")
    async def untyped() -> list[int]:
        return [1]

    @server.resource("data://bytes")
    def data() -> bytes:
        return b"\x00\xff"

    @server.resource("data://several")
    async def several() -> Response:
        return Response().text("a").blob(b"b").embed("data://other", "c")

    return server


async def read(talk: Talk, uri: str) -> list[dict[str, Any]]:
    """Return the contents of a resource."""
    found = (await talk.result("resources/read", {"uri": uri}))["contents"]
    assert isinstance(found, list)
    return found


@pytest.mark.parametrize("version", ERAS)
async def test_contents_are_text_json_or_bytes(version: str) -> None:
    async with Talk(server(), version) as talk:
        assert await read(talk, "greet://ada") == [
            {"uri": "greet://ada", "mimeType": "text/plain", "text": "hello, dear Ada"}
        ]
        assert await read(talk, "data://json") == [
            {"uri": "data://json", "mimeType": "application/json", "text": '{"a":1}'}
        ]
        assert await read(talk, "data://untyped") == [
            {"uri": "data://untyped", "mimeType": "application/json", "text": "[1]"}
        ]
        assert await read(talk, "data://bytes") == [
            {"uri": "data://bytes", "mimeType": "application/octet-stream", "blob": "AP8="}
        ]
        assert [(one["uri"], "blob" in one) for one in await read(talk, "data://several")] == [
            ("data://several", False),
            ("data://several", True),
            ("data://other", False),
        ]


async def test_the_default_kind_is_plain_text_and_lists_say_all_of_an_item() -> None:
    async with Talk(server()) as talk:
        listed = (await talk.result("resources/list"))["resources"]
        templates = (await talk.result("resources/templates/list"))["resourceTemplates"]
    assert listed[0] == {
        "uri": "greet://ada",
        "name": "ada",
        "title": "ada",
        "description": "For Ada alone.",
        "mimeType": "text/plain",
    }
    assert {one["name"]: one.get("size") for one in listed}["json"] == 9
    assert [(one["name"], one["uriTemplate"]) for one in templates] == [
        ("greeting", "greet://{name}"),
        ("z_late", "greet://{name}"),
    ]


@pytest.mark.parametrize("version", ERAS)
async def test_a_static_uri_wins_then_templates_are_tried_by_name_until_one_knows_it(
    version: str,
) -> None:
    async with Talk(server(), version) as talk:
        assert (await read(talk, "greet://ada"))[0]["text"] == "hello, dear Ada"
        assert (await read(talk, "greet://bob"))[0]["text"] == "hello bob"
        assert (await read(talk, "greet://nobody"))[0]["text"] == "late nobody"
        assert (await read(talk, "greet://a%20%C3%A4%2F"))[0]["text"] == "hello a ä/"


@pytest.mark.parametrize(("version", "code"), [(HANDSHAKE, -32002), (STATELESS, -32602)])
@pytest.mark.parametrize("uri", ["nope://", "greet://", "greet://a/b", "GREET://a"])
async def test_what_nobody_knows_is_not_found_and_named(version: str, code: int, uri: str) -> None:
    async with Talk(server(), version) as talk:
        error = await talk.error("resources/read", {"uri": uri})
    assert error == {"code": code, "message": f"Resource not found: {uri}", "data": {"uri": uri}}


async def test_when_the_last_template_does_not_know_it_either_it_is_not_found() -> None:
    only = Server("a", "1", components=[Greeting])
    async with Talk(only) as talk:
        error = await talk.error("resources/read", {"uri": "greet://nobody"})
        assert error["code"] == -32002


async def test_a_crash_of_a_resource_is_an_error_and_no_more() -> None:
    server = Server("a", "1")

    @server.resource("x://broken")
    async def broken() -> str:
        raise OSError("the disk is on fire")

    async with Talk(server) as talk:
        error = await talk.error("resources/read", {"uri": "x://broken"})
        # What is inside a server is nobody's business.
        assert error == {"code": -32603, "message": "Internal error: OSError"}
        assert await talk.result("ping") == {}


# -- templates -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("template", "uri", "variables"),
    [
        ("a://{x}", "a://one", {"x": "one"}),
        ("a://{x}", "a://one/two", None),
        ("a://{x}", "a://", None),
        ("a://{x}", "b://one", None),
        ("a://{x}", "a://one?q", None),
        ("a://{+x}", "a://one/two?q#f", {"x": "one/two?q#f"}),
        ("a://{+x}", "a://one\ntwo", {"x": "one\ntwo"}),
        ("a://page{#x}", "a://page#top", {"x": "top"}),
        ("a://page{#x}", "a://page#", {"x": ""}),
        ("a://page{#x}", "a://page", None),
        ("a://{x}/{y}.txt", "a://1/2.txt", {"x": "1", "y": "2"}),
        ("a://{x}-{+y}", "a://1-2-3", {"x": "1-2", "y": "3"}),
        ("a.b://{x}", "aXb://1", None),
        ("a://{x}", "a://%E4%F6", {"x": "��"}),
        ("a://{x}", "a://100%", {"x": "100%"}),
        ("a://{x}", "a://%2e%2E%2f", {"x": "../"}),
        ("a://fixed", "a://fixed", {}),
    ],
)
def test_a_template_reads_a_uri_backwards(
    template: str, uri: str, variables: dict[str, str] | None
) -> None:
    assert UriTemplate(template).match(uri) == variables


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("a://{x}/{x}", "names the variable 'x' twice"),
        ("a://{x}{y}", "text must stand between two variables"),
        ("a://{x,y}", "only {v}, {+v} and {#v} are understood"),
        ("a://{/x}", "only {v}, {+v} and {#v} are understood"),
        ("a://{x*}", "only {v}, {+v} and {#v} are understood"),
        ("a://{x:3}", "only {v}, {+v} and {#v} are understood"),
        ("a://{x", 'a "{" has no partner'),
        ("a://{}", "is no name"),
    ],
)
def test_a_template_that_cannot_be_read_backwards_is_refused_at_definition(
    template: str, problem: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        Greeting(uri_template=template)
    assert problem in str(caught.value)


def test_a_uri_that_is_too_long_is_of_no_template() -> None:
    template = UriTemplate("a://{+x}")
    assert template.match("a://" + "x" * 8188) is not None
    assert template.match("a://" + "x" * 8189) is None


def test_a_resource_has_a_uri_or_a_template() -> None:
    for given in ({}, {"uri": "a:", "uri_template": "a://{x}"}):
        with pytest.raises(ConfigError, match="must have either uri or uri_template"):
            Resource(**given)


def test_a_parameter_that_is_no_variable_is_refused_at_definition() -> None:
    with pytest.raises(
        ConfigError, match=r"'path' is no variable of 'a://\{x\}' \(possible: uri, x\)"
    ):

        @Server("a", "1").resource("a://{x}")
        async def wrong(path: str) -> None: ...


# -- subscriptions -------------------------------------------------------------------------


async def test_an_update_is_told_only_to_the_sessions_that_subscribed() -> None:
    kit = server()
    async with Talk(kit) as one, Talk(kit) as other:
        assert await one.result("resources/subscribe", {"uri": "greet://ada"}) == {}
        kit.resource_updated("greet://ada")
        kit.resource_updated("greet://bob")
        assert one.notices("notifications/resources/updated") == [{"uri": "greet://ada"}]
        assert other.sent == []
        assert await one.result("resources/unsubscribe", {"uri": "greet://ada"}) == {}
        kit.resource_updated("greet://ada")
        assert len(one.sent) == 1


async def test_who_subscribed_to_a_folder_is_told_of_what_is_in_it() -> None:
    kit = server()
    async with Talk(kit) as talk:
        await talk.result("resources/subscribe", {"uri": "file:///a"})
        for uri in ("file:///a", "file:///a/b", "file:///ab", "file:///"):
            kit.resource_updated(uri)
        assert [one["uri"] for one in talk.notices("notifications/resources/updated")] == [
            "file:///a",
            "file:///a/b",
        ]


async def test_a_session_may_not_subscribe_without_bound() -> None:
    from mcpclient.serverkit import KitLimits

    kit = Server("a", "1", components=[Greeting], limits=KitLimits(subscriptions=2))
    async with Talk(kit) as talk:
        for uri in ("a", "b", "a"):
            await talk.result("resources/subscribe", {"uri": uri})
        error = await talk.error("resources/subscribe", {"uri": "c"})
        assert error == {"code": -32000, "message": "more than 2 subscriptions at once"}


async def test_a_frame_tells_of_an_update_too() -> None:
    kit = server()

    @kit.tool
    def change(frame: Frame) -> str:
        frame.resource_updated("data://json")
        return "changed"

    async with Talk(kit) as talk:
        await talk.result("resources/subscribe", {"uri": "data://json"})
        assert await talk.text("change") == "changed"
        assert talk.notices("notifications/resources/updated") == [{"uri": "data://json"}]


@pytest.mark.parametrize("version", ERAS)
async def test_a_component_says_how_long_its_contents_may_be_kept(version: str) -> None:
    kit = Server("a", "1", ttl=1.0)

    @kit.resource("x://kept", ttl=60.0, cache_scope="public")
    async def kept() -> str:
        return "kept"

    @kit.resource("x://usual")
    async def usual() -> str:
        return "usual"

    async with Talk(kit, version) as talk:
        found = await talk.result("resources/read", {"uri": "x://kept"})
        if version == HANDSHAKE:
            assert set(found) == {"contents"}
            return
        assert (found["ttlMs"], found["cacheScope"]) == (60_000, "public")
        found = await talk.result("resources/read", {"uri": "x://usual"})
        assert (found["ttlMs"], found["cacheScope"]) == (1000, "private")
        # Of a list, what is the shortest, and private if one is.
        found = await talk.result("resources/list")
        assert (found["ttlMs"], found["cacheScope"]) == (1000, "private")
