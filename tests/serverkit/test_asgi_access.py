"""Who may come in over HTTP: by a token that is checked here, or as a host outside has found."""

from __future__ import annotations

import hmac
from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.authentication import (
    AuthCredentials,
    AuthenticationBackend,
    BaseUser,
    SimpleUser,
)
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.routing import Mount

from mcpclient.protocol.httprules import challenges
from mcpclient.serverkit import Bearer, HttpLimits, Identity, Server, asgi
from tests.serverkit.test_asgi_posts import Runs, made
from tests.serverkit.web import Exchange, Web

WHERE = "/.well-known/oauth-protected-resource"
ANN = Identity("ann", frozenset({"mail:read"}), {"team": "blue"})


def check(token: str) -> Identity | None:
    """Know one token."""
    return ANN if hmac.compare_digest(token, "good") else None


async def check_later(token: str) -> Identity | None:
    """Know one token, after having asked elsewhere."""
    return check(token)


GUARDED = Bearer(
    check=check,
    servers=["https://auth.example"],
    scopes=["mail:read", "mail:send"],
    needed=["mail:read"],
)


def guarded(runs: Runs | None = None, **options: Any) -> Server:
    """Return a server of which one tool needs a scope."""
    server = made(runs, **options)

    @server.tool(scopes=["mail:send"])
    async def send() -> str:
        raise AssertionError("nobody may")

    return server


def told(one: Exchange) -> dict[str, str]:
    """Return the one challenge of a response."""
    [found] = challenges([one.headers["www-authenticate"]])
    assert found.scheme == "Bearer"
    return found.params


# -- tokens --------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [None, "", "Basic Z29vZA==", "Bearer", "Bearer  ", "good"])
async def test_who_has_no_token_is_told_where_to_get_one(value: str | None) -> None:
    async with Web(asgi(guarded(), auth=GUARDED)) as web:
        one = await web.tool("echo", headers={"authorization": value}).ended()
        assert one.status == 401
        assert told(one) == {
            "resource_metadata": f"http://127.0.0.1:8000{WHERE}/mcp",
            "scope": "mail:read",
        }
        assert one.json()["error"]["message"] == "Unauthorized: a bearer token is needed"


@pytest.mark.parametrize("checked", [check, check_later])
async def test_a_token_that_is_nobodys_is_not_valid(checked: Any) -> None:
    async with Web(asgi(guarded(), auth=Bearer(check=checked))) as web:
        one = await web.tool("echo", headers={"authorization": "Bearer bad"}).ended()
        assert one.status == 401
        assert told(one)["error"] == "invalid_token"


@pytest.mark.parametrize("checked", [check, check_later])
@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
async def test_a_tool_sees_whose_token_it_is_and_not_the_token(checked: Any, scheme: str) -> None:
    async with Web(asgi(guarded(), auth=Bearer(check=checked))) as web:
        one = await web.tool("seen", headers={"authorization": f"{scheme} good"}).ended()
        seen = one.json()["result"]["structuredContent"]
        assert (seen["subject"], seen["scopes"]) == ("ann", ["mail:read"])
        assert "authorization" not in seen["headers"]


@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "PUT", "OPTIONS", "HEAD"])
async def test_without_a_token_no_verb_gets_anywhere(method: str) -> None:
    async with Web(asgi(guarded(), auth=GUARDED)) as web:
        assert (await web.request(method)).status == 401


async def test_every_request_of_a_session_needs_the_token() -> None:
    headers = {"authorization": "Bearer good"}
    async with Web(asgi(guarded(), auth=GUARDED)) as web:
        visitor = await web.open(headers=headers)
        assert (await visitor.post("ping").ended()).status == 401
        assert (await visitor.get().ended()).status == 401
        assert (await visitor.delete().ended()).status == 401
        assert (await visitor.post("ping", headers=headers).ended()).status == 200


async def test_who_lacks_a_scope_is_told_which_in_both_eras() -> None:
    headers = {"authorization": "Bearer good"}
    async with Web(asgi(guarded(), auth=GUARDED)) as web:
        visitor = await web.open(headers=headers)
        stateless = {**headers}
        for one in (
            web.tool("send", headers=stateless),
            visitor.tool("send", headers=headers),
        ):
            await one.ended()
            assert one.status == 403
            assert told(one) == {
                "error": "insufficient_scope",
                "scope": "mail:send",
                "resource_metadata": f"http://127.0.0.1:8000{WHERE}/mcp",
            }
            assert one.json()["error"]["data"] == {"requiredScopes": ["mail:send"]}
        one = await web.call("tools/list", headers=stateless).ended()
        names = [tool["name"] for tool in one.json()["result"]["tools"]]
        assert "send" not in names
        assert "echo" in names


async def test_what_depends_on_who_asks_is_not_to_be_shared() -> None:
    server = guarded(ttl=60.0, cache_scope="public")
    async with Web(asgi(server, auth=GUARDED)) as web:
        one = await web.call("tools/list", headers={"authorization": "Bearer good"}).ended()
        assert one.json()["result"]["cacheScope"] == "private"


# -- the protected resource document -------------------------------------------------------


@pytest.mark.parametrize("path", [WHERE, f"{WHERE}/mcp", f"{WHERE}/mcp/"])
async def test_the_document_tells_who_gives_tokens(path: str) -> None:
    async with Web(asgi(guarded(), auth=GUARDED)) as web:
        one = await web.request("GET", path)
        assert (one.status, one.headers["content-type"]) == (200, "application/json")
        assert one.json() == {
            "resource": "http://127.0.0.1:8000/mcp",
            "authorization_servers": ["https://auth.example"],
            "scopes_supported": ["mail:read", "mail:send"],
            "bearer_methods_supported": ["header"],
        }


async def test_the_document_is_below_the_mount_and_names_what_it_is_told_to() -> None:
    bearer = Bearer(check=check, resource="https://mcp.example/api")
    async with Web(asgi(guarded(), auth=bearer)) as web:
        one = await web.request("GET", f"/api{WHERE}", root_path="/api")
        assert one.json() == {
            "resource": "https://mcp.example/api",
            "bearer_methods_supported": ["header"],
        }
        one = await web.tool("echo", path="/api/mcp", root_path="/api").ended()
        assert told(one)["resource_metadata"] == f"http://127.0.0.1:8000/api{WHERE}/mcp"


async def test_the_document_is_only_read() -> None:
    async with Web(asgi(guarded(), auth=GUARDED)) as web:
        one = await web.request("POST", WHERE)
        assert (one.status, one.headers["allow"]) == (405, "GET")


async def test_without_tokens_there_is_no_document() -> None:
    async with Web(asgi(guarded())) as web:
        assert (await web.request("GET", WHERE)).status == 404


async def test_a_host_with_quotes_in_its_name_breaks_no_challenge() -> None:
    async with Web(asgi(guarded(), auth=GUARDED, allowed_hosts=["*"])) as web:
        one = await web.tool("echo", headers={"host": 'a", error="x\\'}).ended()
        assert told(one)["resource_metadata"] == f'http://a", error="x\\{WHERE}/mcp'


# -- identity from outside -----------------------------------------------------------------


async def test_whom_a_host_names_the_tool_sees() -> None:
    async with Web(asgi(guarded()), **{"mcpclient.identity": ANN}) as web:
        seen = (await web.tool("seen").ended()).json()["result"]["structuredContent"]
        assert (seen["subject"], seen["scopes"]) == ("ann", ["mail:read"])


async def test_the_host_may_say_in_its_own_way_who_somebody_is() -> None:
    def identity(scope: Any) -> Identity | None:
        return Identity(scope["gateway.user"])

    app = asgi(guarded(), identity=identity)
    async with Web(app, **{"gateway.user": "carol"}) as web:
        seen = (await web.tool("seen").ended()).json()["result"]["structuredContent"]
        assert (seen["subject"], seen["scopes"]) == ("carol", None)


class Named(BaseUser):
    """A user who has an identity, unlike Starlette's own."""

    is_authenticated = True
    display_name = "Ann"
    identity = "ann@example.com"


class Backend(AuthenticationBackend):
    """Knows two users by a header."""

    async def authenticate(self, conn: HTTPConnection) -> tuple[AuthCredentials, BaseUser] | None:
        match conn.headers.get("x-user"):
            case "ann":
                return AuthCredentials(["mail:read"]), Named()
            case "bob":
                return AuthCredentials(), SimpleUser("bob")
            case _:
                return None


@pytest.mark.parametrize(
    ("user", "subject", "scopes"),
    [("ann", "ann@example.com", ["mail:read"]), ("bob", "bob", []), (None, None, None)],
)
async def test_mounted_in_starlette_the_tool_sees_starlettes_user(
    user: str | None, subject: str | None, scopes: list[str] | None
) -> None:
    middleware = [Middleware(AuthenticationMiddleware, backend=Backend())]
    routes = [Mount("/api", app=asgi(guarded()))]
    async with Web(Starlette(routes=routes, middleware=middleware)) as web:
        headers = {"x-user": user}
        one = await web.tool("seen", path="/api/mcp", headers=headers).ended()
        seen = one.json()["result"]["structuredContent"]
        assert (seen["subject"], seen["scopes"]) == (subject, scopes)


async def test_mounted_in_starlette_who_leaves_still_cancels_the_tool() -> None:
    runs = Runs()
    app = asgi(guarded(runs), limits=HttpLimits(quick=0.0))
    async with Web(Starlette(routes=[Mount("/api", app=app)])) as web:
        one = web.tool("wait", path="/api/mcp")
        await runs.begun.wait()
        one.leave()
        await one.ended()
        assert runs.cancelled.is_set()


def test_an_identity_can_be_kept_as_json() -> None:
    assert msgspec.json.decode(msgspec.json.encode(ANN), type=Identity) == ANN
