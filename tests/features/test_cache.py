"""What the cache of reads keeps, for how long, and what it drops when it is full."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpclient import CacheStats, ResourceResult
from mcpclient.features.cache import Key, ReadCache

FOREVER = float("inf")


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def read(text: str = "", size: int | None = None) -> ResourceResult:
    """Return a result, of exactly so many bytes of JSON if they are given."""
    wire: dict[str, Any] = {"contents": [{"uri": "test://x", "text": text}]}
    if size is not None:
        wire["contents"][0]["text"] = text + "." * (size - len(msgspec.json.encode(wire)))
    found = ResourceResult(msgspec.json.encode(wire))
    assert size in (None, found.size)
    return found


def key(name: object, server: str = "s") -> Key:
    return (server, f"test://{name}")


def test_an_empty_cache_has_nothing_and_counts_no_hit() -> None:
    cache = ReadCache(10, 10_000)
    assert cache.get(key("a")) is None
    cache.drop(key("a"))
    cache.drop_where(lambda key: True)
    assert cache.stats() == CacheStats()


def test_what_was_put_is_found_under_its_exact_key_only() -> None:
    cache = ReadCache(10, 10_000)
    cache.put(key("a"), read("one"), FOREVER)
    found = cache.get(key("a"))
    assert found is not None
    assert found.text == "one"
    assert cache.get(key("a/")) is None
    assert cache.get(key("A")) is None
    assert cache.get(key("a", server="other")) is None
    assert cache.stats() == CacheStats(hits=1, entries=1, bytes=read("one").size)


def test_the_least_recently_used_entry_makes_room_when_there_are_too_many() -> None:
    cache = ReadCache(2, 10_000)
    for name in "ab":
        cache.put(key(name), read(name), FOREVER)
    assert cache.get(key("a")) is not None  # now b is the older one
    cache.put(key("c"), read("c"), FOREVER)
    assert cache.get(key("b")) is None
    assert cache.get(key("a")) is not None
    assert cache.get(key("c")) is not None
    assert (cache.stats().entries, cache.stats().evictions) == (2, 1)


def test_the_least_recently_used_entries_make_room_when_there_are_too_many_bytes() -> None:
    cache = ReadCache(10, 1000)
    for name in "abc":
        cache.put(key(name), read(name, size=300), FOREVER)
    assert cache.stats().bytes == 900
    cache.get(key("a"))
    cache.put(key("d"), read("d", size=600), FOREVER)
    assert [name for name in "abcd" if cache.get(key(name))] == ["a", "d"]
    assert (cache.stats().bytes, cache.stats().evictions) == (900, 2)


def test_a_result_larger_than_the_whole_cache_is_not_kept_and_drops_nothing() -> None:
    cache = ReadCache(10, 1000)
    cache.put(key("small"), read("s"), FOREVER)
    cache.put(key("fits"), read("f", size=1000 - read("s").size), FOREVER)
    cache.put(key("large"), read("l", size=1001), FOREVER)
    assert cache.get(key("large")) is None
    assert (cache.stats().entries, cache.stats().evictions, cache.stats().bytes) == (2, 0, 1000)


def test_a_newer_result_replaces_the_older_one_without_an_eviction() -> None:
    cache = ReadCache(1, 1000)
    cache.put(key("a"), read("old", size=200), FOREVER)
    cache.put(key("a"), read("new", size=500), FOREVER)
    found = cache.get(key("a"))
    assert found is not None
    assert found.text.startswith("new")
    assert cache.stats() == CacheStats(hits=1, entries=1, bytes=500)


def test_an_entry_is_fresh_before_its_lifetime_is_over_and_never_after() -> None:
    clock = Clock()
    cache = ReadCache(10, 10_000, clock)
    cache.put(key("a"), read("a"), 60.0)
    clock.now += 59.999
    assert cache.get(key("a")) is not None
    clock.now += 0.001
    assert cache.get(key("a")) is None
    # It is gone, not only hidden: a clock that goes back does not bring it back.
    clock.now -= 30
    assert cache.get(key("a")) is None
    assert cache.stats() == CacheStats(hits=1)


def test_an_entry_without_a_lifetime_is_fresh_for_ever() -> None:
    clock = Clock()
    cache = ReadCache(10, 10_000, clock)
    cache.put(key("a"), read("a"), FOREVER)
    clock.now += 1e15
    assert cache.get(key("a")) is not None


def test_being_used_does_not_make_an_entry_live_longer() -> None:
    clock = Clock()
    cache = ReadCache(10, 10_000, clock)
    cache.put(key("a"), read("a"), 10.0)
    for _ in range(9):
        clock.now += 1
        assert cache.get(key("a")) is not None
    clock.now += 1
    assert cache.get(key("a")) is None


@pytest.mark.parametrize("lifetime", [0.0, -1.0, float("-inf")])
def test_a_result_without_a_future_is_not_kept(lifetime: float) -> None:
    cache = ReadCache(10, 10_000)
    cache.put(key("a"), read("a"), lifetime)
    assert cache.stats() == CacheStats()


def test_a_newer_result_that_is_not_kept_takes_the_older_one_away() -> None:
    cache = ReadCache(10, 1000, grace=60.0)
    for newer, lifetime in ((read("zero"), 0.0), (read("large", size=1001), FOREVER)):
        cache.put(key("a"), read("old"), FOREVER)
        cache.put(key("a"), newer, lifetime)
        assert cache.get(key("a")) is None
        assert cache.stale(key("a")) is None
    assert (cache.stats().entries, cache.stats().evictions) == (0, 0)


def test_a_result_past_its_time_is_remembered_for_its_grace_but_is_no_hit() -> None:
    clock = Clock()
    cache = ReadCache(10, 10_000, clock, grace=5.0)
    cache.put(key("a"), read("old"), 10.0)
    clock.now += 10
    assert cache.get(key("a")) is None
    assert cache.stale(key("a")).text == "old"
    clock.now += 4.999
    assert cache.get(key("a")) is None
    assert cache.stale(key("a")).text == "old"
    clock.now += 0.001
    assert cache.stale(key("a")) is None
    assert cache.get(key("a")) is None  # and now it is forgotten
    assert cache.stats() == CacheStats(stale=2)


def test_entries_are_dropped_one_by_one_or_by_what_their_key_is() -> None:
    cache = ReadCache(10, 10_000)
    for server in ("s", "t"):
        for name in "abc":
            cache.put(key(name, server), read(name), FOREVER)
    cache.drop(key("a", "s"))
    cache.drop(key("a", "s"))
    cache.drop_where(lambda key: key[0] == "t" and key[1] != "test://b")
    left = [(s, n) for s in ("s", "t") for n in "abc" if cache.get(key(n, s))]
    assert left == [("s", "b"), ("s", "c"), ("t", "b")]
    assert (cache.stats().entries, cache.stats().evictions) == (3, 0)


def test_misses_and_joins_are_counted_by_who_makes_them() -> None:
    cache = ReadCache(10, 10_000)
    cache.count_miss()
    cache.count_join()
    cache.count_join()
    assert cache.stats() == CacheStats(misses=1, joins=2)


def test_the_numbers_are_of_their_moment() -> None:
    cache = ReadCache(10, 10_000)
    before = cache.stats()
    cache.put(key("a"), read("a"), FOREVER)
    cache.count_miss()
    before.hits = 99
    assert before == CacheStats(hits=99)
    assert cache.stats() == CacheStats(misses=1, entries=1, bytes=read("a").size)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "get", "drop", "wait"]),
            st.integers(0, 6),
            st.integers(60, 400),
            st.sampled_from([0.0, 1.0, 2.0, FOREVER]),
        ),
        max_size=60,
    )
)
def test_whatever_is_done_to_it_it_stays_within_its_bounds_and_never_lies(
    moves: list[tuple[str, int, int, float]],
) -> None:
    clock = Clock()
    cache = ReadCache(3, 700, clock)
    truth: dict[Key, tuple[str, float]] = {}  # what would be right to find, if anything is
    for number, (move, name, size, lifetime) in enumerate(moves):
        if move == "put":
            cache.put(key(name), read(f"{number} ", size=size), lifetime)
            truth[key(name)] = (f"{number} ", clock.now + lifetime)
        elif move == "drop":
            cache.drop(key(name))
            truth.pop(key(name), None)
        elif move == "wait":
            clock.now += 1
        elif (found := cache.get(key(name))) is not None:
            text, end = truth[key(name)]
            assert found.text.startswith(text)
            assert clock.now < end
        stats = cache.stats()
        assert stats.entries <= 3
        assert stats.bytes <= 700
