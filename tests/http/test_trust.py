"""Who gets in, and who gets the credentials: headers, challenges, redirects, proxies, secrets."""

from __future__ import annotations

import logging
from typing import Any

import anyio
import pytest

from mcpclient import (
    AccessRefused,
    CallLost,
    ConfigError,
    HttpError,
    Manager,
    OpeningFailed,
    ServerSpec,
)
from mcpclient.manager import config
from tests.http.helpers import reached, web
from tests.http.peer import Exchange, Handshake, serving, stateless


def guarded(token: str, seen: list[str | None] | None = None) -> Any:
    """Return a handler that lets in whoever has the token."""

    async def handler(exchange: Exchange) -> None:
        given = exchange.request.headers.get("authorization")
        if seen is not None:
            seen.append(given)
        if given == f"Bearer {token}":
            await stateless(exchange)
        else:
            challenge = 'Bearer resource_metadata="https://as.example/x", error="invalid_token"'
            await exchange.send(401, b"no entry", WWW_Authenticate=challenge)

    return handler


async def test_headers_of_the_configuration_go_with_each_request() -> None:
    document = {
        "mcpServers": {
            "web": {"type": "http", "url": "http://x", "headers": {"Authorization": "Bearer ${T}"}}
        }
    }
    headers = config.parse(document, env={"T": "hunter2"})["web"].headers
    peer = Handshake()
    async with reached(peer, headers=headers) as (served, server):
        await server.invoke_tool("echo", {})
        await server.stop()
        assert {one.headers["authorization"] for one in served.requests} == {"Bearer hunter2"}
        assert "DELETE" in served.rpcs
        assert "GET" in served.rpcs


async def test_a_name_and_password_in_the_url_are_sent_as_a_header() -> None:
    async with serving(stateless) as served, Manager() as manager:
        url = served.url.replace("http://", "http://me:hunter2@")
        server = await manager.add("web", web(url))
        await server.invoke_tool("echo", {})
        assert served.requests[0].headers["authorization"] == "Basic bWU6aHVudGVyMg=="


async def test_a_refusal_carries_the_challenge_and_is_final() -> None:
    async with reached(guarded("hunter2")) as (served, server):
        for _ in range(2):
            with pytest.raises(AccessRefused) as caught:
                await server.invoke_tool("echo", {})
            [challenge] = caught.value.challenges
            assert challenge.scheme == "Bearer"
            assert challenge.params == {
                "resource_metadata": "https://as.example/x",
                "error": "invalid_token",
            }
            assert (caught.value.status, caught.value.body) == (401, "no entry")
            assert str(caught.value) == (
                'server "web": HTTP 401 to server/discover (Bearer '
                'resource_metadata="https://as.example/x", error="invalid_token"): give it '
                'credentials by "headers", such as {"Authorization": "Bearer ..."}, or by auth='
            )
        assert server.state == "failed"
        assert len(served.requests) == 1
        served.handler = stateless
        await server.start()
        assert server.state == "up"


async def test_a_refusal_of_one_call_is_its_own() -> None:
    async def partly(exchange: Exchange) -> None:
        if exchange.message.get("params", {}).get("name") == "secret":
            await exchange.send(403, WWW_Authenticate='Bearer error="insufficient_scope"')
        else:
            await stateless(exchange)

    async with reached(partly) as (_, server):
        with pytest.raises(AccessRefused, match="these credentials do not allow it") as caught:
            await server.invoke_tool("secret", {})
        assert caught.value.method == "tools/call"
        assert (await server.invoke_tool("echo", {})).text == "{}"
        assert (server.state, server.generation) == ("up", 1)


@pytest.mark.parametrize("plain", [True, False])
async def test_auth_is_asked_before_each_request(plain: bool) -> None:
    asked: list[tuple[str, Any]] = []
    seen: list[str | None] = []

    def now(server: str, challenge: Any) -> dict[str, str]:
        asked.append((server, challenge))
        return {"Authorization": "Bearer hunter2"}

    async def later(server: str, challenge: Any) -> dict[str, str]:
        await anyio.sleep(0)
        return now(server, challenge)

    async with reached(guarded("hunter2", seen), auth=now if plain else later) as (_, server):
        await server.invoke_tool("echo", {})
        assert asked == [("web", None)] * 2
        assert seen == ["Bearer hunter2"] * 2


async def test_auth_is_asked_once_more_with_the_challenge() -> None:
    tokens = {"current": "old"}
    challenged: list[Any] = []

    def auth(server: str, challenge: Any) -> dict[str, str]:
        if challenge is not None:
            challenged.append(challenge.params["error"])
            tokens["current"] = "new"
        return {"Authorization": f"Bearer {tokens['current']}"}

    async with reached(guarded("new"), auth=auth, headers={"authorization": "x"}) as (
        served,
        server,
    ):
        assert (await server.invoke_tool("echo", {})).text == "{}"
        assert challenged == ["invalid_token"]
        sent = [one.headers["authorization"] for one in served.requests]
        assert sent == ["Bearer old", "Bearer new", "Bearer new"]


async def test_auth_that_has_nothing_new_ends_in_the_refusal() -> None:
    async with reached(guarded("new"), auth=lambda *_: None) as (served, server):
        with pytest.raises(AccessRefused):
            await server.invoke_tool("echo", {})
        assert len(served.requests) == 1


async def test_auth_that_raises_fails_the_call_and_sends_nothing(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken = [False]

    def auth(server: str, challenge: Any) -> None:
        if broken[0]:
            raise RuntimeError("no keychain")

    async with reached(stateless, auth=auth) as (served, server):
        await server.wait_ready()
        broken[0] = True
        with pytest.raises(CallLost, match="auth raised RuntimeError") as caught:
            await server.invoke_tool("echo", {})
        assert caught.value.maybe_done is False
        assert "no keychain" in caplog.text
        assert len(served.requests) == 1
        broken[0] = False
        assert (await server.invoke_tool("echo", {})).text == "{}"


async def test_credentials_never_go_to_another_origin() -> None:
    seen: list[dict[str, str]] = []

    async def thief(exchange: Exchange) -> None:
        seen.append(exchange.request.headers)
        await stateless(exchange)

    async with serving(thief) as other:

        async def moving(exchange: Exchange) -> None:
            if exchange.message.get("method") == "tools/call":
                await exchange.send(307, Location=other.url)
            else:
                await stateless(exchange)

        headers = {"Authorization": "Bearer hunter2"}
        async with reached(moving, headers=headers) as (_, server):
            with pytest.raises(HttpError) as caught:
                await server.invoke_tool("echo", {})
            assert caught.value.status == 307
            assert f"redirects to where it may not be followed, {other.url};" in str(caught.value)
    assert seen == []


@pytest.mark.parametrize("status", [301, 302, 303])
async def test_a_redirect_that_would_make_a_post_a_get_is_not_followed(status: int) -> None:
    async def moving(exchange: Exchange) -> None:
        await exchange.send(status, Location="/mcp/")

    async with reached(moving) as (served, server):
        with pytest.raises(OpeningFailed, match=rf"HTTP {status}.*put the right url") as caught:
            await server.wait_ready()
        assert f"{served.origin}/mcp/" in str(caught.value)
        assert [one.method for one in served.requests] == ["POST"]


async def test_redirects_without_end_are_given_up() -> None:
    async def circling(exchange: Exchange) -> None:
        await exchange.send(307, Location=exchange.request.target + "x")

    async with reached(circling) as (served, server):
        with pytest.raises(OpeningFailed, match="HTTP 307"):
            await server.wait_ready()
        assert len(served.requests) == 6


async def test_proxies_of_the_environment_are_used_but_not_for_this_machine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving(stateless) as proxy, Manager() as manager:
        monkeypatch.setenv("http_proxy", proxy.origin.replace("//", "//me:hunter2@"))
        monkeypatch.setenv("no_proxy", "")
        server = await manager.add("web", web("http://far.example/mcp?key=1"))
        assert (await server.invoke_tool("echo", {"a": 1})).text == '{"a": 1}'
        assert {one.target for one in proxy.requests} == {"http://far.example/mcp?key=1"}
        assert proxy.requests[0].headers["host"] == "far.example"
        assert proxy.requests[0].headers["proxy-authorization"] == "Basic bWU6aHVudGVyMg=="
        async with serving(stateless) as near:
            local = await manager.add("near", web(near.url))
            await local.invoke_tool("echo", {})
            assert near.requests[0].target == "/mcp"


async def test_no_secret_reaches_a_log_an_error_or_a_repr(
    caplog: pytest.LogCaptureFixture, tmp_path: Any
) -> None:
    caplog.set_level(logging.DEBUG)
    wire = tmp_path / "wire.log"

    async def failing(exchange: Exchange) -> None:
        if exchange.message.get("method") == "tools/call":
            await exchange.send(500, b"out of order")
        else:
            await stateless(exchange)

    async with serving(failing) as served, Manager() as manager:
        url = served.origin.replace("//", "//me:hunter2@") + "/mcp?key=hunter3"
        spec = web(url, headers={"X-Key": "hunter4"}, wire_log=str(wire))
        server = await manager.add("web", spec)
        with pytest.raises(HttpError) as caught:
            await server.invoke_tool("echo", {"secret": "hunter5"})
        served.handler = stateless
        await server.invoke_tool("echo", {"text": "hunter4"})
        texts = [str(caught.value), repr(spec), repr(server), str(manager.status()), spec.address]
        ours = [one.getMessage() for one in caplog.records if one.name == "mcpclient"]
        for text in (*texts, *ours, wire.read_text()):
            assert not any(f"hunter{n}" in text for n in "2345"), text
        assert spec.address == f"{served.origin}/mcp?…"
        assert f"url='{served.origin}/mcp?…', headers={{'X-Key': '***'}}" in repr(spec)


async def test_a_server_without_its_package_is_refused_when_the_manager_opens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mcpclient.manager.manager.find_spec", lambda name: None)
    manager = Manager({"web": ServerSpec(url="http://host/mcp")})
    with pytest.raises(ConfigError) as caught:
        await manager.open()
    assert str(caught.value) == (
        "web.url: servers behind http and https URLs need one more package: "
        "pip install 'mcpclient[http]'"
    )
