"""Names of servers become names of Python, one each and always the same."""

from __future__ import annotations

import keyword

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpclient.repl.names import identifier, identifiers, nearest


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("git_status", "git_status"),
        ("git-status", "git_status"),
        ("files.read/all", "files_read_all"),
        ("from", "from_"),
        ("None", "None_"),
        ("match", "match"),
        ("2fa", "_2fa"),
        ("", "_"),
        ("größe", "größe"),
        ("ﬁle", "file"),
        ("\u0301x", "_\u0301x"),
        ("a\x1b[2J", "a__2J"),
        ("x" * 200, "x" * 100),
    ],
)
def test_a_name_becomes_a_name_of_python(name: str, word: str) -> None:
    assert identifier(name) == word


def test_where_two_names_become_one_the_unchanged_keeps_it_and_the_others_are_numbered() -> None:
    found = identifiers(["a-b", "a b", "a_b", "a_b_2", "c", "c"])
    assert found == {"a_b_3": "a-b", "a_b_4": "a b", "a_b": "a_b", "a_b_2": "a_b_2", "c": "c"}
    assert list(found.values()) == ["a-b", "a b", "a_b", "a_b_2", "c"]


@given(st.lists(st.text(max_size=8), max_size=12))
def test_whatever_the_names_each_gets_a_name_of_its_own_that_python_takes(names: list[str]) -> None:
    found = identifiers(names)
    assert list(found.values()) == list(dict.fromkeys(names))
    for word in found:
        assert word.isidentifier()
        assert not keyword.iskeyword(word)


def test_a_sentence_about_an_unknown_name_names_the_nearest_or_all() -> None:
    assert nearest("ech", ["echo", "add"]) == "; did you mean 'echo'?"
    assert nearest("zzz", ["echo", "add"]) == " (known: echo, add)"
    assert nearest("zzz", []) == " (known: none)"
    many = [f"tool{number}" for number in range(30)]
    assert nearest("zzz", many).endswith("tool19, … (30 in all))")
    assert nearest("x", ["x\x1b[2J"]) == " (known: x\\x1b[2J)"
