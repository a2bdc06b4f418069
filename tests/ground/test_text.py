"""Text from outside becomes one harmless line, and sizes and times read as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpclient.ground.text import printable, printable_lines, sample, seconds, size

quick = settings(derandomize=True, deadline=None, max_examples=300)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, naïve — 日本 🎉", "plain text, naïve — 日本 🎉"),
        ("x\x1b[2J\x1b]0;t\x07", "x\\x1b[2J\\x1b]0;t\\x07"),
        ("two\nlines\r\n", "two\\nlines\\r\\n"),
        ("a\tb", "a\tb"),
        ("\x00\x7f", "\\x00\\x7f"),
        ("\x85\x9b31m", "\\x85\\x9b31m"),
        ("a\u2028b\u2029c", "a\\u2028b\\u2029c"),
        ("safe\u202etxt.exe\u2066\u200f", "safe\\u202etxt.exe\\u2066\\u200f"),
        ("half \ud83d of a pair", "half \\ud83d of a pair"),
        ("", ""),
    ],
)
def test_controls_become_escapes_and_the_rest_stays(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_long_text_is_cut_and_its_length_told() -> None:
    assert printable("x" * 2000) == "x" * 2000
    assert printable("x" * 2001) == "x" * 2000 + "… (2001 characters)"
    assert printable("abcdef", 3) == "abc… (6 characters)"
    assert printable_lines("ab\ncdef", 4) == "ab\nc… (7 characters)"


def test_newlines_can_be_kept_while_other_controls_are_not() -> None:
    assert printable_lines("one\ntwo\r\n\x1b[0m\\n") == "one\ntwo\\r\n\\x1b[0m\\n"


@quick
@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_whatever_the_text_it_is_one_line_that_can_be_encoded(text: str) -> None:
    shown = printable(text)
    assert len(shown.splitlines()) <= 1
    shown.encode()
    assert not any(ord(one) < 32 and one != "\t" for one in shown)
    assert printable(shown) == shown


def test_a_sample_of_bytes_survives_what_is_no_text() -> None:
    assert sample(b"log \xff line\x07") == "log � line\\x07"
    assert sample(b"x" * 200) == "x" * 200
    assert sample(b"x" * 4321) == "x" * 200 + "… (4.3 kB)"
    assert sample("é".encode() * 3, 3) == "é�… (6 B)"


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (1234, "1.2 kB"),
        (64 * 1024 * 1024, "67.1 MB"),
        (3_500_000_000, "3.5 GB"),
    ],
)
def test_sizes(count: int, shown: str) -> None:
    assert size(count) == shown


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        (0, "0 ms"),
        (0.25, "250 ms"),
        (1, "1 s"),
        (1.5, "1.5 s"),
        (2.345, "2.35 s"),
        (60.0, "60 s"),
        (600.0, "600 s"),
        (3600.0, "3600 s"),
        (86_400.4, "86400 s"),
    ],
)
def test_spans_of_time(amount: float, shown: str) -> None:
    assert seconds(amount) == shown
