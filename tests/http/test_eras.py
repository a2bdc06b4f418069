"""Which era a server behind a URL is of: the decision table of HTTP, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from mcpclient import AccessRefused, Manager, OpeningFailed, ServerUnavailable, Timeouts
from tests.conftest import eventually
from tests.http.helpers import reached, web
from tests.http.peer import STATELESS, Exchange, Handler, Handshake, serving, stateless


def first(probe: Handler, rest: Handler | None = None) -> Handler:
    """Return a handler that answers the first probe in one way, and all else in another."""
    after = rest or Handshake()
    count = [0]

    async def handler(exchange: Exchange) -> None:
        if exchange.request.rpc == "server/discover" and not count[0]:
            count[0] += 1
            await probe(exchange)
        else:
            await after(exchange)

    return handler


def status(code: int, body: bytes = b"", kind: str = "", **headers: str) -> Handler:
    async def handler(exchange: Exchange) -> None:
        await exchange.send(code, body, kind, **headers)

    return handler


def refuses(code: int, http: int, *, named: bool = True, data: Any = None) -> Handler:
    async def handler(exchange: Exchange) -> None:
        error = {"code": code, "message": "no", **({} if data is None else {"data": data})}
        id = exchange.message["id"] if named else None
        await exchange.json({"jsonrpc": "2.0", "id": id, "error": error}, http)

    return handler


async def test_a_valid_answer_means_stateless() -> None:
    async with reached(stateless) as (served, server):
        await server.wait_ready()
        assert (server.era, server.protocol_version) == ("stateless", STATELESS)
        [probe] = served.requests
        assert probe.headers["mcp-protocol-version"] == STATELESS
        assert probe.headers["mcp-method"] == "server/discover"
        assert probe.headers["accept"] == "application/json, text/event-stream"
        assert probe.headers["content-type"] == "application/json"


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("code", [-32020, -32021, -32022])
async def test_an_error_of_the_stateless_era_is_asked_again_and_never_falls_back(
    code: int, named: bool
) -> None:
    data = {"supported": [STATELESS], "requested": "?"}
    handler = first(refuses(code, 400, named=named, data=data), stateless)
    async with reached(handler) as (served, server):
        await server.wait_ready()
        assert server.era == "stateless"
        assert served.rpcs == ["server/discover", "server/discover"]


async def test_a_stateless_server_that_names_no_version_of_ours_is_refused_for_good() -> None:
    data = {"supported": ["2099-01-01"]}
    async with reached(refuses(-32022, 400, data=data)) as (_, server):
        with pytest.raises(OpeningFailed, match="the server speaks 2099-01-01") as caught:
            await server.wait_ready()
        assert caught.value.final
        assert server.state == "failed"


@pytest.mark.parametrize(
    "probe",
    [
        refuses(-32601, 404),
        refuses(-32601, 200),
        refuses(-32000, 400),
        refuses(-32000, 400, named=False),
        refuses(-32602, 200),
        status(404),
        status(405),
        status(400, b"<html>", "text/html"),
        status(410, b"gone"),
        status(200, b"{}", "application/json"),
        status(202),
    ],
)
async def test_what_a_stateless_server_would_not_say_means_initialize(probe: Handler) -> None:
    async with reached(first(probe)) as (served, server):
        await server.wait_ready()
        assert server.era == "handshake"
        assert served.rpcs[:2] == ["server/discover", "initialize"]


@pytest.mark.parametrize("code", [408, 425, 429, 500, 502, 503])
async def test_what_tells_of_the_moment_tells_of_no_era(code: int) -> None:
    async with reached(first(status(code), stateless)) as (served, server):
        await server.wait_ready()
        assert server.era == "stateless"
        assert served.rpcs == ["server/discover", "server/discover"]
        [incident] = server.incidents
        assert f"HTTP {code}" in str(incident)
        assert server.generation == 2


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (413, "HTTP 413: the message is too large"),
        (431, "HTTP 431: the headers are too large"),
        (
            302,
            "HTTP 302: the server redirects to where it may not be followed, http://127.0.0.1:9/x",
        ),
    ],
)
async def test_what_will_be_the_same_the_next_time_is_final_and_no_era(
    code: int, said: str
) -> None:
    handler = status(code, Location="http://127.0.0.1:9/x")
    async with reached(handler) as (served, server):
        with pytest.raises(OpeningFailed) as caught:
            await server.wait_ready()
        assert said in str(caught.value)
        assert server.state == "failed"
        assert served.rpcs == ["server/discover"]


@pytest.mark.parametrize("code", [401, 403])
async def test_a_server_that_wants_credentials_is_of_no_era(code: int) -> None:
    handler = status(code, b"who?", WWW_Authenticate='Bearer scope="a b"')
    async with reached(handler) as (served, server):
        with pytest.raises(AccessRefused) as caught:
            await server.wait_ready()
        assert caught.value.status == code
        assert server.state == "failed"
        assert served.rpcs == ["server/discover"]


async def test_a_silent_server_is_of_no_era() -> None:
    async def silent(exchange: Exchange) -> None:
        await exchange.hung_up()

    times = Timeouts(open=1.5, probe=0.1, call=20, eof=1)
    async with reached(silent, timeouts=times) as (served, server):
        server.begin()
        await eventually(lambda: server.incidents)
        assert set(served.rpcs) == {"server/discover"}
        assert "the server did not open within 1.5 s (Timeouts.open; it is at http://" in str(
            server.incidents[0]
        )


async def test_an_exchange_that_breaks_tells_of_no_era() -> None:
    async def breaking(exchange: Exchange) -> None:
        exchange.drop()

    async with reached(first(breaking, stateless)) as (_, server):
        await server.wait_ready()
        assert (server.era, server.generation) == ("stateless", 2)


async def test_a_server_that_advertises_only_old_versions_is_opened_by_initialize() -> None:
    data = {"supported": ["2025-06-18"]}
    async with reached(first(refuses(-32022, 400, data=data))) as (served, server):
        await server.wait_ready()
        assert server.era == "handshake"
        [asked] = served.of("initialize")
        assert asked.message["params"]["protocolVersion"] == "2025-06-18"


async def test_a_page_at_the_url_is_told_and_not_asked_again() -> None:
    async with reached(status(200, b"<html>hello", "text/html")) as (served, server):
        with pytest.raises(OpeningFailed) as caught:
            await server.wait_ready()
        assert "the answer is of the type text/html" in str(caught.value)
        assert "<html>hello" in str(caught.value)
        assert server.state == "failed"
        assert served.rpcs == ["server/discover", "initialize"]


async def test_what_is_found_out_is_known_to_all_who_use_the_url() -> None:
    peer = Handshake()
    async with serving(peer) as served, Manager() as manager:
        one = await manager.add("one", web(served.url))
        two = await manager.add("two", web(served.url))
        await one.wait_ready()
        await two.wait_ready()
        assert served.rpcs.count("server/discover") == 1
        await one.restart()
        assert served.rpcs.count("server/discover") == 1
        # Another path of the origin is another server, as it is behind a gateway.
        other = await manager.add("other", web(f"{served.origin}/other"))
        await other.wait_ready()
        assert served.rpcs.count("server/discover") == 2


async def test_a_server_that_changed_its_era_between_two_lives_is_probed_again() -> None:
    async with reached(Handshake()) as (served, server):
        await server.wait_ready()
        assert server.era == "handshake"

        async def upgraded(exchange: Exchange) -> None:
            if exchange.request.rpc == "initialize":
                data = {"supported": [STATELESS], "requested": "2025-11-25"}
                await refuses(-32022, 400, data=data)(exchange)
            else:
                await stateless(exchange)

        served.handler = upgraded
        await server.restart()
        assert server.era == "stateless"


@pytest.mark.parametrize(("era", "asked"), [("handshake", "initialize"), ("2025-06-18", None)])
async def test_an_era_that_is_set_is_not_probed_for(era: str, asked: str | None) -> None:
    async with reached(Handshake("2025-06-18"), era=era) as (served, server):
        await server.wait_ready()
        assert served.rpcs[0] == "initialize"
        assert server.protocol_version == "2025-06-18"


async def test_a_set_stateless_era_does_not_fall_back() -> None:
    async with reached(status(404), era="stateless") as (served, server):
        with pytest.raises(ServerUnavailable, match='set era="auto"'):
            await server.wait_ready()
        assert served.rpcs == ["server/discover"]
