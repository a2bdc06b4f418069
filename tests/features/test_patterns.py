"""Patterns of JSON Schema: read as ECMAScript has them, bounded whatever a stranger wrote."""

from __future__ import annotations

import random

import pytest

from mcpclient.features.patterns import Pattern

# A pattern, a text it is found in, and one it is not found in.
MEANINGS: list[tuple[str, str, str]] = [
    ("^abc$", "abc", "abc\n"),
    ("b", "abc", "ac"),
    (r"^\d+$", "042", "٤٢"),
    (r"^\D$", "٤", "4"),
    (r"^\w+$", "a_9", "é"),
    (r"^\W$", "é", "e"),
    (r"^[\w-.]+$", "a-b.c", "a b"),
    (r"^[.-\w]+$", "a-b.c", "a,b"),
    (r"^[\d-]+$", "1-2", "1a"),
    (r"^[^\d]+$", "ab", "a1"),
    (r"^\s$", "\ufeff", "\x1f"),
    (r"^\S$", "\x1f", "\u2003"),
    ("^.$", "é", "\u2028"),
    (r"^\cC$", "\x03", "C"),
    (r"^\u00e9$", "é", "e"),
    (r"^\u{1F600}$", "😀", "u"),
    (r"^\ud83d\ude00$", "😀", "\ud83d"),
    (r"^\x41$", "A", "x41"),
    (r"^\0$", "\0", "0"),
    (r"^\p{L}+$", "naïve", "a1"),
    (r"^\P{L}+$", "12", "a"),
    (r"^\/\-\_\@$", "/-_@", "x"),
    (r"^[\b]$", "\b", "b"),
    (r"\bcat\b", "a cat!", "concat"),
    (r"^(?<year>\d{4})-\k<year>$", "2026-2026", "2026-2027"),
    (r"^(a|b)\1$", "bb", "ab"),
    ("^(?!foo)ba[rz]", "bar", "foobar"),
    ("(?<=a)b(?!c)", "ab", "bc"),
    ("^(?:ab){2,3}?$", "abab", "ab"),
    ("^a{,2}$", "a{,2}", "aa"),  # to ECMAScript this is no repetition
    ("^a{e<=1}$", "a{e<=1}", "b"),  # nor has it a fuzzy one
    ("^[[:alpha:]]$", ":]", "x"),  # nor such classes
    ("^[^]$", "]", ""),
    ("^[a&&b|~]+$", "a&|~", "c"),
    (r"^\Aa\Z$", "AaZ", "a"),  # nor these anchors
    ("(?i)^abc$", "ABC", "abd"),  # this is of newer ones, and of Python
    ("(?P<x>a)b", "ab", "b"),
]


@pytest.mark.parametrize(("pattern", "fitting", "other"), MEANINGS, ids=lambda part: repr(part))
def test_a_pattern_means_what_ecmascript_says(pattern: str, fitting: str, other: str) -> None:
    made = Pattern(pattern)
    assert made.found_in(fitting, 5)
    assert not made.found_in(other, 5)


def test_an_empty_set_is_found_nowhere() -> None:
    assert not Pattern("[]").found_in("x]", 5)


BROKEN: list[tuple[str, str]] = [
    ("[a", "a set of characters has no end"),
    ("(a", "missing )"),
    ("a)", "unbalanced parenthesis"),
    ("*a", "nothing to repeat"),
    ("a**", "multiple repeat"),
    ("[z-a]", "bad character range"),
    ("\\", "bad escape"),
    (r"\p{Nonsense}", "unknown property"),
    (r"\u{110000}", "there is no character 110000"),
    ("(?R)", "it has a group of an unknown kind"),
    ("(?>a)", "it has a group of an unknown kind"),
    ("(*FAIL)", "it has a group of an unknown kind"),
]


@pytest.mark.parametrize(("pattern", "why"), BROKEN)
def test_what_is_no_pattern_is_refused_with_the_reason(pattern: str, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        Pattern(pattern)
    assert str(caught.value).startswith(why)


HUGE: list[tuple[str, str]] = [
    ("x" * 5000, "it has 5000 characters, which is too long"),
    ("(?:(?:a{60000}){60000}){60000}", "its repetitions are too many"),
    ("(?:a{300}){300}", "its repetitions are too many"),
    ("a{99999}", "its repetitions are too many"),
    ("(" * 1500 + "a" + ")" * 1500, "it is nested too deeply"),
]


@pytest.mark.parametrize(("pattern", "why"), HUGE, ids=[one[0][:20] for one in HUGE])
def test_a_pattern_that_would_fill_the_memory_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(ValueError) as caught:
        Pattern(pattern)
    assert str(caught.value) == why


def test_repetitions_of_an_ordinary_size_are_fine() -> None:
    uuid = "^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
    many = Pattern("|".join([uuid] * 20))
    assert many.found_in("01234567-89ab-cdef-0123-456789abcdef", 5)
    assert Pattern("^[0-9a-f]{128}$").found_in("0" * 128, 5)
    assert Pattern("^.{1,65535}$").found_in("x" * 60_000, 5)


def test_a_search_that_takes_too_long_is_given_up() -> None:
    text = "".join(random.Random(1).choices("01", k=200_000))
    with pytest.raises(TimeoutError):
        Pattern("1[01]{600}2").found_in(text, 0.02)


def test_what_keeps_pythons_matcher_busy_for_ever_is_told_or_given_up() -> None:
    for pattern, text in [
        ("^(a+)+$", "a" * 50 + "!"),
        ("(a|a)*b", "a" * 60),
        ("(?=a+)a*a*a*a*a*b", "a" * 3000),
        (r"(a*)*\1b", "a" * 3000),
        ("((a{1,99}){1,99}){1,99}b", "a" * 1000),
    ]:
        try:
            assert not Pattern(pattern).found_in(text, 0.05)
        except TimeoutError:
            pass


def test_rubbish_is_a_pattern_or_a_value_error() -> None:
    chance = random.Random(7)
    signs = "ab01\\()[]{}?*+|^$.,-<>=!:dDwWsSbBpPuxck&~P"
    for _ in range(3000):
        rubbish = "".join(chance.choices(signs, k=chance.randint(1, 12)))
        try:
            Pattern(rubbish).found_in("ab01ab", 1)
        except ValueError:
            pass


def test_each_beginning_of_a_pattern_is_a_pattern_or_a_value_error() -> None:
    whole = r"^(?:\p{L}[\w\-\]]{2,3}|(?<n>\u{1F600})\k<n>|[^\cA\x41]+?)(?=a$)"
    for place in range(len(whole) + 1):
        try:
            Pattern(whole[:place]).found_in("ab", 1)
        except ValueError:
            pass
