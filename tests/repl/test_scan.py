"""What stands before the cursor is found in half-written code, and in no other text."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpclient.repl.scan import Argument, Attribute, Key, Path, Spot, spot

TOOLS = Path("git", ((".", "tools"),))
STATUS = Path("git", ((".", "tools"), (".", "status")))
ODD = Path("git", ((".", "tools"), ("[", 'o"dd')))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("git.", Attribute(Path("git"), "", 4)),
        ("git.tools.st", Attribute(TOOLS, "st", 10)),
        ("x = await git . tools .st", Attribute(TOOLS, "st", 23)),
        ("f(1, [git.tools.st", Attribute(TOOLS, "st", 16)),
        ("'it''s'; git.tools.", Attribute(TOOLS, "", 19)),
        ('git.tools["o\\"dd"].', Attribute(ODD, "", 19)),
        ("git.tools[", Key(TOOLS, "", 10, "")),
        ("git.tools[ ", Key(TOOLS, "", 11, "")),
        ("git.tools['a/b", Key(TOOLS, "a/b", 10, "'")),
        ('git.tools["', Key(TOOLS, "", 10, '"')),
        ("git.tools.status(", Argument(STATUS, "", 17, "", None, 0)),
        ("git.tools.status(pa", Argument(STATUS, "pa", 17, "", None, 0)),
        ("git.tools.status(-1.5", Argument(STATUS, "-1.5", 17, "", None, 0)),
        ("git.tools.status('a', ", Argument(STATUS, "", 22, "", None, 1, {0: "a"})),
        ("git.tools.status(x, ", Argument(STATUS, "", 20, "", None, 1, {})),
        (
            "git.tools.status(n=2, mode=\n  'a b",
            Argument(STATUS, "a b", 30, "'", "mode", 0, {"n": 2}, frozenset({"n"})),
        ),
        ("git.tools.status(n=f(1, 2), m=", Argument(
            STATUS, "", 30, "", "m", 0, {}, frozenset({"n"}))),
        ("git.tools.status((1, 2), [3, {4: 5}], ", Argument(
            STATUS, "", 38, "", None, 2, {0: (1, 2), 1: [3, {4: 5}]})),
        ("git.tools.status() # git.", None),
        ("# a note\ngit.", Attribute(Path("git"), "", 13)),
        ("'open\ngit.", Attribute(Path("git"), "", 10)),
        ('"""git.', None),
        ('x = "git.', None),
        ('f"{git.', None),
        ("r'git.", None),
        ("", None),
        ("git", None),
        ("git.tools.status", Attribute(TOOLS, "status", 10)),
        ("f().tools.", None),
        ("x[0].tools.", None),
        ("'text'.", None),
        ("1.", None),
        ("git.tools[x", None),
        ("git.tools['a' 'b", None),
        ("f(x)(", None),
        ("git.tools.status(a + 'b", None),
        ("git.tools.status(a b", None),
        ("git.tools.status(*a.b[0]", None),
        ("git.tools.status(mode==", None),
        ("(git.tools.status)(", None),
        ("{'a': ", None),
        (")]}git.", None),
        (")\ngit.", Attribute(Path("git"), "", 6)),
    ],
)  # fmt: skip
def test_what_stands_before_the_cursor_is_found(text: str, found: Spot | None) -> None:
    assert spot(text) == found


WHOLE = (
    "async for x in git.subscribe('a'): print(x, end='')\n"
    'y = await git.tools["o\\"dd"].status(1, "two", mode=\'th\\\'ree\', flag=True, n={"a": [1, 2]})'
    " # done.\nz = f'{y!r}' + r'\\' + '''tri'ple''' + git.resources[\"file:///a.txt\"].text"
)


def test_code_that_is_cut_anywhere_gives_a_spot_within_it_or_none() -> None:
    found = 0
    for length in range(len(WHOLE) + 1):
        here = spot(WHOLE[:length])
        if here is not None:
            found += 1
            assert 0 <= here.start <= length
            assert WHOLE[here.start : length].endswith(here.typed)
    assert found > 60


@given(st.text("git.tools['\"(){}[],=# \n\\ab1"))
def test_rubbish_gives_a_spot_within_it_or_none(text: str) -> None:
    here = spot(text)
    assert here is None or text[here.start :].endswith(here.typed)


def test_a_long_text_takes_no_long_time() -> None:
    begun = time.monotonic()
    for text in ("a" * 100_000 + ".", "(" * 100_000, "'a'" * 33_000 + ".", "f(" + "a," * 49_000,
                 ".a" * 50_000, "['a']" * 19_000 + ".", "git.x" * 20_001):  # fmt: skip
        spot(text)
    assert time.monotonic() - begun < 20
    assert spot("x" * 100_000 + " git.") is None
