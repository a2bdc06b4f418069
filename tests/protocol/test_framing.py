"""Bytes become the same lines however they are cut; those too long are skipped, within bounds."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpclient.protocol.framing import LineSplitter, Oversize
from tests.protocol import quick

Line = bytes | Oversize

MIXED = (
    b'{"jsonrpc":"2.0","id":1}\n'
    b"\n"
    b"   \r\n"
    b'\xef\xbb\xbf{"text":"\xe2\x80\xa8\xe2\x80\xa9\xc2\x85 \xf0\x9f\x98\x80"}\r\n'
    b"\x0b\x0c\x1c\x1d\x1e\x00\xff\xfe\n"
    b"the rest"
)


def split(chunks: Iterable[bytes], limit: int | None = None) -> list[Line]:
    """Return all lines of some chunks, what stands at the end of the stream included."""
    splitter = LineSplitter(limit)
    lines: list[Line] = []
    for chunk in chunks:
        lines += splitter.feed(chunk)
    return lines + splitter.end()


def expected(data: bytes, limit: int | None = None) -> list[Line]:
    """Return what the lines are by definition."""
    lines = data.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return [
        line
        if limit is None or len(line) <= limit
        else Oversize(len(line), line[:512], line[-512:])
        for line in lines
    ]


@pytest.mark.parametrize("limit", [None, 30])
def test_a_cut_at_any_byte_changes_nothing(limit: int | None) -> None:
    whole = expected(MIXED, limit)
    assert whole[-1] == b"the rest"
    assert split([MIXED], limit) == whole
    for cut in range(len(MIXED) + 1):
        assert split([MIXED[:cut], MIXED[cut:]], limit) == whole
        for second in range(cut, len(MIXED) + 1):
            assert split([MIXED[:cut], MIXED[cut:second], MIXED[second:]], limit) == whole
    assert split((MIXED[i : i + 1] for i in range(len(MIXED))), limit) == whole


@quick
@given(st.binary(max_size=400), st.lists(st.integers(0, 400)), st.integers(1, 40) | st.none())
def test_any_chunking_of_anything_gives_the_same_lines(
    data: bytes, cuts: list[int], limit: int | None
) -> None:
    edges = [0, *sorted(cuts), len(data)]
    chunks = [data[one:other] for one, other in itertools.pairwise(edges)]
    assert split(chunks, limit) == expected(data, limit)


@quick
@given(st.lists(st.sampled_from([b"a", b"\n", b"bb\n", b"\ncc", b"long line", b"\n\n"])))
def test_a_limit_counts_the_line_and_not_the_chunks(chunks: list[bytes]) -> None:
    assert split(chunks, 5) == expected(b"".join(chunks), 5)


def test_only_the_byte_lf_ends_a_line() -> None:
    odd = "a\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei\rj".encode()
    assert LineSplitter().feed(odd + b"\n") == [odd]


def test_lines_come_with_the_chunk_that_ends_them() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"one") == []
    assert splitter.feed(b"") == []
    assert splitter.feed(b"\ntwo\nthr") == [b"one", b"two"]
    assert splitter.feed(b"ee\n") == [b"three"]
    assert splitter.feed(b"\n\n") == [b"", b""]
    assert splitter.end() == []


def test_the_end_gives_what_stands_after_the_last_lf_once() -> None:
    splitter = LineSplitter()
    splitter.feed(b"one\ntw")
    splitter.feed(b"o")
    assert splitter.end() == [b"two"]
    assert splitter.end() == []
    assert splitter.feed(b"three\n") == [b"three"]


def test_a_line_of_exactly_the_limit_is_whole_and_one_byte_more_is_not() -> None:
    for chunks in ([b"x" * 10 + b"\n"], [b"x" * 5, b"x" * 5, b"\n"], [b"x" * 9, b"x\n"]):
        assert split(chunks, 10) == [b"x" * 10]
    too_long = Oversize(11, b"x" * 11, b"x" * 11)
    for chunks in ([b"x" * 11 + b"\n"], [b"x" * 10, b"x", b"\n"], [b"x" * 10, b"x\n"]):
        assert split(chunks, 10) == [too_long]


def test_after_a_line_too_long_the_next_one_is_read_as_usual() -> None:
    splitter = LineSplitter(100)
    assert splitter.feed(b"before\n" + b"y" * 80) == [b"before"]
    for _ in range(50):
        assert splitter.feed(b"y" * 80) == []
    assert splitter.feed(b"yy\nafter\nun") == [
        Oversize(51 * 80 + 2, b"y" * 512, b"y" * 512),
        b"after",
    ]
    assert splitter.feed(b"til\n") == [b"until"]


def test_head_and_tail_of_a_skipped_line_are_its_own() -> None:
    line = b'{"jsonrpc":"2.0","id":7,' + b"z" * 5000 + b',"last":true}'
    for step in (1, 7, 512, 513, 100_000):
        chunks = [line[i : i + step] for i in range(0, len(line), step)]
        assert split([b"x\n", *chunks, b"\ny\n"], 64) == [
            b"x",
            Oversize(len(line), line[:512], line[-512:]),
            b"y",
        ]


def test_a_line_too_long_that_the_end_cuts_off_is_told_too() -> None:
    splitter = LineSplitter(4)
    assert splitter.feed(b"12345") == []
    assert splitter.end() == [Oversize(5, b"12345", b"12345")]
    assert splitter.end() == []


def test_without_a_limit_nothing_is_too_long() -> None:
    line = b"x" * 3_000_000
    assert split([line[:1_000_000], line[1_000_000:], b"\n"]) == [line]


def test_an_endless_line_holds_no_more_than_the_limit() -> None:
    limit = 64 * 1024
    splitter = LineSplitter(limit)
    for _ in range(200):
        assert splitter.feed(bytes(10_000)) == []
        kept = sum(sys.getsizeof(part) for part in splitter._kept)
        assert splitter._held <= limit
        assert kept <= limit + 100 * 50
    spilled = splitter.end()
    assert spilled == [Oversize(2_000_000, bytes(512), bytes(512))]
    assert splitter._kept == []


def test_each_byte_is_joined_once() -> None:
    # The kept chunks are the very ones that came, not copies that grow with each.
    splitter = LineSplitter(1_000_000)
    chunks = [bytes([65 + i]) * 1000 for i in range(20)]
    for chunk in chunks:
        splitter.feed(chunk)
    assert [len(part) for part in splitter._kept] == [1000] * 20
    assert splitter.feed(b"\n") == [b"".join(chunks)]
