"""Streams of events are read to the letter of their page, wherever they are cut."""

from __future__ import annotations

import random

import pytest

from mcpclient.protocol.framing import Oversize
from mcpclient.protocol.sse import Event, EventReader


def events(data: bytes, *, limit: int | None = None, step: int | None = None) -> list[object]:
    reader = EventReader(limit)
    parts = [data] if step is None else [data[i : i + step] for i in range(0, len(data), step)]
    return [event for part in parts for event in reader.feed(part)]


WHOLE = (
    b"\xef\xbb\xbf: hello\n"
    b"data: one\n\n"
    b"event: ping\rdata:two\rid: 7\r\r"
    b"data: a\r\ndata\r\ndata:  b\r\n\r\n"
    b"id: 8\nretry: 250\n\n"
    b"nonsense: x\nevent: late\ndata: \xc3\xbc\xe2\x80\xa8\xf0\x9f\x90\x8d\n\n"
    b"data: cut off by the end\n"
)
TOLD = [
    Event("message", b"one"),
    Event("ping", b"two"),
    Event("message", b"a\n\n b"),
    Event("late", "ü\u2028🐍".encode()),
]


def test_events_are_read_as_their_page_says() -> None:
    reader = EventReader()
    assert reader.feed(WHOLE) == TOLD
    assert (reader.last_id, reader.retry, reader.count) == ("8", 250, 5)


@pytest.mark.parametrize("place", range(len(WHOLE) + 1))
def test_a_cut_at_any_byte_changes_nothing(place: int) -> None:
    reader = EventReader()
    assert reader.feed(WHOLE[:place]) + reader.feed(WHOLE[place:]) == TOLD
    assert (reader.last_id, reader.retry) == ("8", 250)


def test_byte_by_byte_is_the_same() -> None:
    assert events(WHOLE, step=1) == TOLD


def test_rubbish_gives_events_or_nothing() -> None:
    chance = random.Random(7)
    pieces = [b"data", b":", b" ", b"\r", b"\n", b"\r\n", b"id", b"retry", b"\0", b"\xff", b"x" * 9]
    for _ in range(500):
        data = b"".join(chance.choices(pieces, k=40))
        whole = events(data, limit=20)
        assert whole == events(data, limit=20, step=1)
        assert all(isinstance(one, Event | Oversize) for one in whole)


def test_an_id_holds_until_another_and_an_empty_one_takes_it_back() -> None:
    reader = EventReader()
    reader.feed(b"id: 1\ndata: a\n\ndata: b\n\n")
    assert reader.last_id == "1"
    reader.feed(b"id: 2\ndata: half")
    assert reader.last_id == "1"  # the event has not ended
    reader.feed(b"\n\nid\n\n")
    assert reader.last_id is None


@pytest.mark.parametrize("value", [b"x\0y", b"a" * 2000])
def test_an_id_that_cannot_be_sent_back_is_none(value: bytes) -> None:
    reader = EventReader()
    assert reader.feed(b"id: " + value + b"\ndata: a\n\n") == [Event("message", b"a")]
    assert reader.last_id is None


@pytest.mark.parametrize("value", [b"", b"-5", b"1.5", b"soon", b"1_000", b"5 ", b"9" * 20])
def test_a_retry_that_is_no_number_is_left_out(value: bytes) -> None:
    reader = EventReader()
    reader.feed(b"retry:" + value + b"\n\n")
    assert reader.retry is None


def test_a_retry_of_days_is_an_hour() -> None:
    reader = EventReader()
    reader.feed(b"retry: 999999999\n\n")
    assert reader.retry == 3_600_000


def test_an_event_over_the_limit_is_skipped_and_told_with_both_ends() -> None:
    long = b'data: {"id": 5, ' + b"x" * 5000 + b" end}\n\n"
    for step in (None, 1, 100):
        spill, after = events(long + b"data: next\n\n", limit=1000, step=step)
        assert isinstance(spill, Oversize)
        assert spill.head.lstrip().startswith(b'{"id": 5, ')
        assert spill.tail.endswith(b" end}")
        assert spill.length > 5000
        assert after == Event("message", b"next")


def test_many_short_lines_are_one_event_and_bounded_together() -> None:
    many = b"data: 0123456789\n" * 100 + b"\n"
    [spill, after] = events(many + b"data: next\n\n", limit=500)
    assert isinstance(spill, Oversize)
    assert after == Event("message", b"next")
    [whole] = events(many, limit=1100)
    assert whole == Event("message", b"\n".join([b"0123456789"] * 100))


def test_an_event_at_the_limit_passes() -> None:
    assert events(b"data: " + b"x" * 100 + b"\n\n", limit=100) == [Event("message", b"x" * 100)]


def test_a_reader_goes_on_where_another_ended() -> None:
    reader = EventReader(None, "9", 40)
    assert (reader.last_id, reader.retry) == ("9", 40)
