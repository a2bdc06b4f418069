"""Blobs, URIs and updates of resources: exact, typed, and never stale."""

from __future__ import annotations

import base64
from typing import Any

import anyio
import pytest

from mcpclient import Manager, RemoteProtocolError, ResourceContents
from tests.cases import case
from tests.conftest import eventually, spec
from tests.features import test_invalidation as kept
from tests.features.followers import heard
from tests.features.helpers import hold, journal, puppet, reads, release, result, say

UPDATED = "notifications/resources/updated"
BOTH = pytest.mark.parametrize("name", ["good_handshake", "good_stateless"])


async def blob(manager: Manager, text: Any) -> ResourceContents:
    """Return the contents of a resource that has this blob."""
    script = [result(contents=[{"uri": "test://blob", "blob": text}])]
    server = await manager.add("s", puppet({"resources/read": script}))
    [found] = (await server.read_resource("test://blob")).contents
    return found


@case("B180")
async def test_either_alphabet_of_base64_is_read(manager: Manager) -> None:
    data = bytes(range(256)) + b"\xfb\xff\xfe"
    for number, text in enumerate(
        (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode())
    ):
        script = [result(contents=[{"uri": "test://blob", "blob": text}])]
        server = await manager.add(f"s{number}", puppet({"resources/read": script}))
        [found] = (await server.read_resource("test://blob")).contents
        assert found.decode() == data
        assert found.blob == text


@case("B182")
async def test_lines_in_base64_are_no_part_of_it(manager: Manager) -> None:
    data = b"x" * 58
    text = base64.b64encode(data).decode()
    found = await blob(manager, f" {text[:76]}\r\n{text[76:]}\r\n\t")
    assert found.decode() == data


@case("B183", "B180")
@pytest.mark.parametrize("odd", ["aGVs*bG8=", "aGVsbG8", "aGVsbG8==", "a", "aGVs bG8=!", "äöü"])
async def test_what_is_not_base64_is_an_error_that_names_the_resource(
    manager: Manager, odd: str
) -> None:
    found = await blob(manager, odd)
    if odd == "aGVsbG8":  # only the padding is missing, which leaves no doubt
        assert found.decode() == b"hello"
        return
    with pytest.raises(RemoteProtocolError) as caught:
        found.decode()
    assert str(caught.value).startswith("test://blob is not base64: ")
    assert found.blob == odd


@case("B185")
@BOTH
async def test_a_uri_taken_from_the_list_is_read_as_it_is(manager: Manager, name: str) -> None:
    server = await manager.add("s", spec(name))
    for one in await server.list_resources():
        assert type(one.uri) is str
        for _ in range(2):
            [found] = (await server.read_resource(one.uri)).contents
            assert found.uri == one.uri
    assert await reads(server) == [one.uri for one in await server.list_resources()]


@case("B186")
async def test_no_uri_is_made_any_nicer(manager: Manager) -> None:
    uris = [
        "https://example.com",
        "demo://a",
        "DEMO://A/../b",
        "file:///a//b",
        "x",
        "a b%20ü",
        "https://example.com:443/?",
    ]
    server = await manager.add("s", puppet())
    for uri in uris:
        await server.read_resource(uri)
        await server.read_resource(uri)
    assert await reads(server) == uris
    assert manager.cache.stats().hits == len(uris)


@case("B188")
@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_what_was_outdated_while_it_was_read_is_returned_but_not_kept(
    manager: Manager, era: str
) -> None:
    contents = [{"uri": "test://a", "text": "old"}], [{"uri": "test://a", "text": "new"}]
    script = [result(contents=one, ttlMs=60_000) for one in contents]
    server = await manager.add("s", puppet({"resources/read": script}, era=era))
    await hold(server)
    got: list[str] = []

    async def read() -> None:
        got.append((await server.read_resource("test://a")).text)

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await eventually(lambda: manager.cache.stats().misses == 1)
        await say(server, UPDATED, {"uri": "test://a"})
        await release(server)
    for _ in range(2):
        await read()
    assert got == ["old", "new", "new"]


# Shown by an heir that holds the old pipe and talks on.
case("B189")(kept.test_a_notice_out_of_an_earlier_life_touches_nothing_of_the_next)


@case("B191")
async def test_an_update_that_nobody_subscribed_to_still_counts(manager: Manager) -> None:
    server = await manager.add("s", puppet(capabilities={"resources": {}}))
    assert (await server.read_resource("test://a")).text == "1"
    assert (await server.read_resource("test://b")).text == "2"
    await say(server, UPDATED, {"uri": "test://a"})
    assert (await server.read_resource("test://a")).text == "3"
    assert (await server.read_resource("test://b")).text == "2"
    assert manager.status().servers[0].noise == 0


@case("B192")
@BOTH
async def test_an_update_reaches_its_follower_and_the_handlers_end_to_end(
    manager: Manager, name: str
) -> None:
    server = await manager.add("s", spec(name))
    handled: list[str] = []
    manager.on_notification(UPDATED, lambda server, params: handled.append(params["uri"]))
    async with server.subscribe("test://a") as one, server.subscribe("test://b") as other:
        await server.invoke_tool("notify", {"uri": "test://b"})
        await server.invoke_tool("notify", {"uri": "test://a"})
        assert (await heard(one))["uri"] == "test://a"
        told = await heard(other)
        assert told["uri"] == "test://b"
        await eventually(lambda: handled == ["test://b", "test://a"])
    if name == "good_stateless":
        *_, listen = await journal(server, "subscriptions/listen")
        ids = [m["id"] for m in await journal(server, "subscriptions/listen")]
        assert told["_meta"]["io.modelcontextprotocol/subscriptionId"] in ids
        assert listen["params"]["notifications"]["resourceSubscriptions"]
