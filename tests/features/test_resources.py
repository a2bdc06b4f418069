"""Reads: from the cache, shared with others who read the same, or from the server."""

from __future__ import annotations

import anyio
import pytest

from mcpclient import (
    CacheStats,
    CallTimedOut,
    Limits,
    Manager,
    ResourceResult,
)
from tests.conftest import eventually, spec
from tests.features.helpers import Readers, hold, journal, puppet, reads, release, result

COUNTER = "test://counter"


# -- hits ----------------------------------------------------------------------------------


async def test_the_second_read_is_answered_from_the_cache(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    assert (await server.read_resource(COUNTER)).text == "1"
    assert (await server.read_resource(COUNTER)).text == "1"
    assert await reads(server) == [COUNTER]
    stats = manager.cache.stats()
    assert stats.bytes > 0
    stats.bytes = 0
    assert stats == CacheStats(hits=1, misses=1, entries=1)


async def test_a_hit_is_equal_and_independent(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    first = await server.read_resource(COUNTER)
    whole = {"contents": [{"uri": COUNTER, "mimeType": "text/plain", "text": "1"}]}
    assert first.raw == whole
    first.raw["contents"][0]["text"] = "spoiled"
    first.contents.clear()
    with pytest.raises(AttributeError):
        first.contents[0].text = "spoiled"  # type: ignore[misc]
    second = await server.read_resource(COUNTER)
    assert second == first
    assert second.raw == whole
    assert [part.text for part in second.contents] == ["1"]


async def test_a_loop_over_cached_reads_lets_the_others_run(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    await server.read_resource(COUNTER)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(other)
        for _ in range(100):
            await server.read_resource(COUNTER)
        group.cancel_scope.cancel()
    assert turns >= 99
    assert manager.cache.stats().hits == 100


async def test_uris_are_compared_and_sent_exactly_as_written(manager: Manager) -> None:
    server = await manager.add("s", puppet())
    uris = ["https://example.com", "https://example.com/", "demo://A", "demo://a", "a b%20ü"]
    for turn in range(2):
        for number, uri in enumerate(uris, 1):
            assert (await server.read_resource(uri)).text == str(number), turn
    assert await reads(server) == uris


async def test_two_servers_share_nothing_under_the_same_uri(manager: Manager) -> None:
    one = await manager.add("one", puppet())
    other = await manager.add("other", puppet({"resources/read": [result(contents=[])]}))
    assert (await one.read_resource(COUNTER)).text == "1"
    assert (await other.read_resource(COUNTER)).contents == []
    assert (await one.read_resource(COUNTER)).text == "1"


async def test_the_managers_limits_bound_the_cache_over_all_its_servers() -> None:
    servers = {"one": puppet(), "other": puppet()}
    async with Manager(servers, limits=Limits(cache_entries=2)) as manager:
        await manager["one"].read_resource("test://a")
        await manager["one"].read_resource("test://b")
        await manager["other"].read_resource("test://c")
        assert (manager.cache.stats().entries, manager.cache.stats().evictions) == (2, 1)
        assert (await manager["one"].read_resource("test://b")).text == "2"
        assert (await manager["one"].read_resource("test://a")).text == "3"


async def test_a_result_over_the_limit_of_bytes_is_returned_but_not_kept() -> None:
    large = {"uri": COUNTER, "text": "x" * 1000}
    server = puppet({"resources/read": [result(contents=[large])]})
    async with Manager({"s": server}, limits=Limits(cache_bytes=1000)) as manager:
        assert (await manager["s"].read_resource(COUNTER)).text == "x" * 1000
        assert manager.cache.stats() == CacheStats(misses=1)


# -- the three uses of the cache -----------------------------------------------------------


async def test_refresh_asks_the_server_and_keeps_the_answer(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    await server.read_resource(COUNTER)
    assert (await server.read_resource(COUNTER, cache="refresh")).text == "2"
    assert (await server.read_resource(COUNTER)).text == "2"
    assert (manager.cache.stats().misses, manager.cache.stats().hits) == (2, 1)


async def test_bypass_asks_the_server_and_leaves_the_cache_alone(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    assert (await server.read_resource(COUNTER, cache="bypass")).text == "1"
    assert manager.cache.stats() == CacheStats()
    assert (await server.read_resource(COUNTER)).text == "2"
    assert (await server.read_resource(COUNTER, cache="bypass")).text == "3"
    assert (await server.read_resource(COUNTER)).text == "2"


async def test_a_refresh_does_not_join_what_was_asked_before_it(manager: Manager) -> None:
    server = await manager.add("s", puppet())
    await hold(server)
    async with anyio.create_task_group() as group:
        readers = Readers(group, server, manager.cache)
        await readers.begin(1)
        await readers.begin(1, cache="refresh")
        await readers.begin(1)  # joins the newer one
        await release(server)
    assert {n: found.text for n, found in readers.outcomes.items()} == {0: "1", 1: "2", 2: "2"}
    assert (await server.read_resource(COUNTER)).text == "2"


async def test_an_unknown_use_of_the_cache_is_refused_by_name(manager: Manager) -> None:
    server = await manager.add("s", puppet())
    with pytest.raises(ValueError) as caught:
        await server.read_resource(COUNTER, cache="reload")
    assert str(caught.value) == "cache must be one of use, refresh, bypass, not 'reload'"
    assert server.state == "idle"  # nothing was started for it


async def test_a_read_with_progress_has_a_request_of_its_own(manager: Manager) -> None:
    server = await manager.add("s", puppet())
    await hold(server)
    got: list[ResourceResult] = []

    async def alone() -> None:
        got.append(await server.read_resource(COUNTER, on_progress=lambda *facts: None))

    async with anyio.create_task_group() as group:
        readers = Readers(group, server, manager.cache)
        await readers.begin(1)
        group.start_soon(alone)
        while len(await reads(server)) < 2:
            pass
        await release(server)
    assert (readers.outcomes[0].text, got[0].text) == ("1", "2")
    asked = await journal(server, "resources/read")
    tokens = [one["params"].get("_meta", {}).get("progressToken") for one in asked]
    assert tokens == [None, asked[1]["id"]]


# -- joins ---------------------------------------------------------------------------------


async def test_ten_overlapping_reads_are_one_request_on_the_wire(manager: Manager) -> None:
    server = await manager.add("s", spec("good_handshake"))
    texts: list[str] = []

    async def read() -> None:
        texts.append((await server.read_resource(COUNTER)).text)

    # Ten before the server is even started, ten of another resource while it is up.
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(read)
    assert texts == ["1"] * 10
    stats = manager.cache.stats()
    assert (stats.misses, stats.joins, stats.hits) == (1, 9, 0)
    server.invalidate_resource(COUNTER)
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(read)
    assert texts == ["1"] * 10 + ["2"] * 10
    stats = manager.cache.stats()
    assert (stats.misses, stats.joins, stats.hits) == (2, 18, 0)
    assert await reads(server) == [COUNTER, COUNTER]


async def test_reads_of_different_resources_are_not_joined(manager: Manager) -> None:
    server = await manager.add("s", puppet())
    await hold(server)
    async with anyio.create_task_group() as group:
        readers = Readers(group, server, manager.cache)
        await readers.begin(1, "test://a")
        await readers.begin(1, "test://b")
        await readers.begin(1, "test://a")
        await release(server)
    assert {n: found.text for n, found in readers.outcomes.items()} == {0: "1", 1: "2", 2: "1"}
    assert await reads(server) == ["test://a", "test://b"]


async def test_a_reader_who_is_cancelled_leaves_the_others_theirs(manager: Manager) -> None:
    server = await manager.add("s", puppet())
    await hold(server)
    async with anyio.create_task_group() as group:
        readers = Readers(group, server, manager.cache)
        await readers.begin(3)
        readers.scopes[0].cancel()  # the one who asked first
        await eventually(lambda: 0 in readers.outcomes)
        await release(server)
    assert readers.outcomes[0] == "cancelled"
    assert [readers.outcomes[n].text for n in (1, 2)] == ["1", "1"]
    assert (await server.read_resource(COUNTER)).text == "1"
    assert await journal(server, "notifications/cancelled") == []


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_the_last_who_is_cancelled_cancels_the_request(manager: Manager, era: str) -> None:
    server = await manager.add("s", puppet(era=era))
    await hold(server)
    async with anyio.create_task_group() as group:
        readers = Readers(group, server, manager.cache)
        await readers.begin(2)
        readers.scopes[0].cancel()
        await eventually(lambda: 0 in readers.outcomes)
        assert await journal(server, "notifications/cancelled") == []
        readers.scopes[1].cancel()
    assert readers.outcomes == {0: "cancelled", 1: "cancelled"}
    asked = await journal(server, "resources/read")
    told = await journal(server, "notifications/cancelled")
    assert [one["params"]["requestId"] for one in told] == [asked[0]["id"]]
    # The late answer is dropped without a word, and without being kept.
    await release(server)
    assert (await server.read_resource(COUNTER)).text == "2"
    status = manager.status().servers[0]
    assert (status.late, status.stray, status.noise) == (1, 0, 0)


async def test_after_the_last_one_left_a_new_reader_asks_anew(manager: Manager) -> None:
    server = await manager.add("s", puppet())
    await hold(server)
    async with anyio.create_task_group() as group:
        readers = Readers(group, server, manager.cache)
        await readers.begin(1)
        readers.scopes[0].cancel()
        await eventually(lambda: 0 in readers.outcomes)
        await readers.begin(1)
        await release(server)
    assert readers.outcomes[1].text == "2"
    assert await reads(server) == [COUNTER, COUNTER]


async def test_each_reader_has_a_time_out_of_its_own(manager: Manager) -> None:
    server = await manager.add("s", puppet())
    await hold(server)
    async with anyio.create_task_group() as group:
        readers = Readers(group, server, manager.cache)
        await readers.begin(1, timeout=0.05)
        await readers.begin(1, timeout=60)
        await readers.begin(1, timeout=None)
        problem = await eventually(lambda: readers.outcomes.get(0))
        assert isinstance(problem, CallTimedOut)
        assert (problem.method, problem.server, problem.maybe_done) == ("resources/read", "s", True)
        assert str(problem).startswith('resources/read on "s": no answer within ')
        assert str(problem).endswith("; the server may have carried it out")
        assert set(readers.outcomes) == {0}
        await release(server)
    assert [readers.outcomes[n].text for n in (1, 2)] == ["1", "1"]
    assert await journal(server, "notifications/cancelled") == []


async def test_the_last_who_times_out_cancels_the_request(manager: Manager) -> None:
    server = await manager.add("s", puppet())
    await hold(server)
    async with anyio.create_task_group() as group:
        readers = Readers(group, server, manager.cache)
        await readers.begin(2, timeout=0.05)
    assert [type(readers.outcomes[n]) for n in (0, 1)] == [CallTimedOut, CallTimedOut]
    assert readers.outcomes[0] is not readers.outcomes[1]
    asked = await journal(server, "resources/read")
    told = await journal(server, "notifications/cancelled")
    assert [one["params"]["requestId"] for one in told] == [asked[0]["id"]]
    assert manager.cache.stats().entries == 0
