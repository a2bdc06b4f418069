"""Reads that fail, and results that are odd: what is raised, and that nothing of it is kept."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpclient import (
    CacheStats,
    Manager,
    RemoteProtocolError,
    ReplyError,
    ServerDied,
)
from tests.conftest import spec
from tests.features.helpers import Readers, hold, puppet, reads, refusal, release, result

COUNTER = "test://counter"


@pytest.mark.parametrize(("name", "code"), [("good_handshake", -32002), ("good_stateless", -32602)])
async def test_a_refusal_is_raised_with_all_its_members_and_not_kept(
    manager: Manager, name: str, code: int
) -> None:
    server = await manager.add("s", spec(name))
    for _ in range(2):
        with pytest.raises(ReplyError) as caught:
            await server.read_resource("other://x")
        assert (caught.value.code, caught.value.message) == (code, "Resource not found")
        assert caught.value.data == {"uri": "other://x"}
        assert (caught.value.method, caught.value.server) == ("resources/read", "s")
    assert await reads(server) == ["other://x", "other://x"]
    assert manager.cache.stats() == CacheStats(misses=2)


async def test_all_who_wait_get_an_error_each(manager: Manager) -> None:
    server = await manager.add("s", puppet())
    await hold(server)
    async with anyio.create_task_group() as group:
        readers = Readers(group, server, manager.cache)
        await readers.begin(3)
        await release(server, error={"code": -32603, "message": "disk", "data": [1]})
    problems = [readers.outcomes[n] for n in range(3)]
    assert [(one.code, one.message, one.data) for one in problems] == [(-32603, "disk", [1])] * 3
    assert len({id(one) for one in problems}) == 3
    await server.read_resource(COUNTER)
    assert await reads(server) == [COUNTER, COUNTER]


async def test_the_death_of_the_server_ends_all_reads_and_keeps_nothing(manager: Manager) -> None:
    server = await manager.add("s", puppet())
    await server.read_resource("test://kept")
    await hold(server)
    async with anyio.create_task_group() as group:
        readers = Readers(group, server, manager.cache)
        await readers.begin(2)
        with pytest.raises(ServerDied):
            await server.call_tool("exit", {"code": 5})
    for number in (0, 1):
        problem = readers.outcomes[number]
        assert isinstance(problem, ServerDied)
        assert (problem.exit.code, problem.method, problem.maybe_done) == (
            5,
            "resources/read",
            True,
        )
    assert manager.cache.stats().entries == 0
    assert (await server.read_resource("test://kept")).text == "1"  # asked of the next life
    assert server.generation == 2


async def test_a_result_that_cannot_be_read_is_an_error_and_not_kept(manager: Manager) -> None:
    good = {"uri": COUNTER, "text": "good"}
    odd: list[Any] = [{}, {"contents": "text"}, {"contents": [{"text": "no uri"}]}, [1], "x", None]
    script = [*({"result": one} for one in odd), result(contents=[good])]
    server = await manager.add("s", puppet({"resources/read": script}))
    for _ in odd:
        with pytest.raises(RemoteProtocolError) as caught:
            await server.read_resource(COUNTER)
        assert "has an unexpected shape" in str(caught.value)
        assert manager.cache.stats().entries == 0
    assert (await server.read_resource(COUNTER)).text == "good"


async def test_contents_are_text_or_bytes_and_keep_what_is_unknown(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    blob = await server.read_resource("test://blob")
    assert blob.contents[0].decode() == bytes(range(256))
    assert (blob.contents[0].mime_type, blob.contents[0].text) == ("application/octet-stream", None)
    assert blob.text == ""
    several = [
        {"uri": "a", "text": "one", "_meta": {"x": 1}},
        {"uri": "b", "blob": "-_8="},
        {"uri": "c", "text": "two"},
    ]
    script = {"resources/read": [result(contents=several, extra=1, _meta={"m": True})]}
    other = await manager.add("other", puppet(script))
    mixed = await other.read_resource(COUNTER)
    assert mixed.text == "one\ntwo"
    assert mixed.contents[1].decode() == b"\xfb\xff"
    assert mixed.contents[2].decode() == b"two"
    assert mixed.raw == {"contents": several, "extra": 1, "_meta": {"m": True}}
    assert mixed.meta == {"m": True}


async def test_a_blob_that_is_not_base64_is_an_error_of_its_own(manager: Manager) -> None:
    spoiled = result(contents=[{"uri": "test://b", "blob": "aGVs*bG8="}])
    server = await manager.add("s", puppet({"resources/read": [spoiled]}))
    found = await server.read_resource("test://b")
    assert found.contents[0].blob == "aGVs*bG8="
    with pytest.raises(RemoteProtocolError) as caught:
        found.contents[0].decode()
    assert str(caught.value).startswith("test://b is not base64: ")


async def test_a_read_that_failed_is_asked_again_each_time(manager: Manager) -> None:
    script = {"resources/read": [refusal(-32000)] * 3 + [result(contents=[])]}
    server = await manager.add("s", puppet(script))
    for _ in range(3):
        with pytest.raises(ReplyError):
            await server.read_resource(COUNTER)
    for _ in range(2):
        assert (await server.read_resource(COUNTER)).raw == {"contents": []}
    assert len(await reads(server)) == 4
