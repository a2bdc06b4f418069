"""What servers write reaches no terminal as it is, and JSON still means the same."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcpclient.cli import masks, safe
from mcpclient.cli.out import aligned
from tests.cli.driving import EVIL, acting

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@given(st.text())
def test_no_character_that_acts_is_left(text: str) -> None:
    assert acting(safe.lines(text)) == set()
    assert acting(safe.line(text)) == set()
    assert acting(safe.brief(text)) == set()
    assert "\n" not in safe.line(text) + safe.brief(text)


def test_what_acts_is_shown_as_an_escape_and_the_rest_as_it_is() -> None:
    assert safe.lines("a\x1b[2Jb\tc\r\nd\re") == "a\\x1b[2Jb\tc\nd\\re"
    assert safe.lines("\u202eabc\u2028\x9b") == "\\u202eabc\\u2028\\x9b"
    assert safe.lines("naïve 日本 👩‍👩‍👧 [bold]") == "naïve 日本 👩‍👩‍👧 [bold]"
    assert safe.lines("\ud83d \U000e0041") == "\\ud83d \\U000e0041"
    assert safe.line("a\nb") == "a\\nb"
    assert safe.brief("  a \n\t b  " * 3) == "a b a b a b"
    assert safe.brief("x" * 600) == "x" * 500 + "…"


@given(values)
def test_json_is_safe_and_means_the_same(value: Any) -> None:
    for text in (
        safe.jsoned(value),
        safe.jsoned(value, indent=2),
        safe.jsoned(value, ascii_only=True),
    ):
        assert acting(text) == set()
        assert json.loads(text) == value
    assert "\n" not in safe.jsoned(value)
    assert safe.jsoned(value, ascii_only=True).isascii()


def test_a_table_is_aligned_by_what_letters_take_and_cut_for_a_terminal() -> None:
    rows = [("日本", "first"), ("ab", EVIL), ("x", "a long description " * 9)]
    head, japanese, evil, long = aligned(("NAME", "WHAT"), rows, None)
    assert (head, japanese) == ("NAME  WHAT", "日本  first")
    assert evil.startswith("ab    \\x1b[2J")
    assert long.endswith("description")
    assert acting(evil) == set()
    narrow = aligned(("NAME", "WHAT"), rows, 40)
    assert narrow[3] == "x     a long description a long descrip…"


def test_secrets_are_masked_by_name_and_by_look() -> None:
    assert masks.masked("GITHUB_TOKEN", "abc") == "••• (3 characters)"
    assert masks.masked("WHATEVER", "ghp_0123456789") == "••• (14 characters)"
    assert masks.masked("DB", "postgres://me:pass@host/db") == "••• (26 characters)"
    assert masks.masked("LANG", "C.UTF-8") == "C.UTF-8"
    assert masks.masked("EMPTY", "") == "(empty)"
    assert masks.address("https://a:b@host/p?api_key=1&x=2") == "https://•••@host/p?api_key=•••&x=2"


def test_a_command_is_shown_without_the_secrets_in_it() -> None:
    argv = ["npx", "-y", "s", "--token", "abc", "--api-key=def", "-e", "AUTH=ghi", "a b"]
    assert masks.command(argv) == "npx -y s --token ••• --api-key=••• -e AUTH=••• 'a b'"
    argv = ["mcp-remote", "https://host", "--header", "Authorization: Bearer jkl", "sk-mno"]
    assert masks.command(argv) == "mcp-remote https://host --header Authorization: ••• •••"
    assert masks.command(["x", "keep-hidden-1"], {"hidden"}) == "x keep-•••-1"


def test_what_is_redacted_are_the_values_and_what_follows_bearer() -> None:
    hidden = masks.secrets_of({"Authorization": "Bearer abcdefgh"}, all_of_them=True)
    assert hidden == {"Bearer abcdefgh", "abcdefgh"}
    assert masks.redacted("said abcdefgh, Bearer abcdefgh", hidden) == "said •••, •••"
    assert masks.secrets_of({"TOKEN": "abc", "LANG": "abcdefgh"}) == set()
