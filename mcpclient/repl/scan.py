"""What stands before the cursor in half-written Python: a name, a key, or an argument, and of what.

Reads text and runs none of it. What it does not understand is not its business: then there is
no spot, and nothing is offered.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from msgspec import Struct, field

# A cell is short; what is longer was pasted.
_LENGTH = 100_000
# How far back from its end an expression may begin.
_BACK = 2000

_STEP = re.compile(
    r"""\s*\.\s*(?P<name>[^\W\d]\w*)|\[\s*(?P<key>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')\s*\]"""
)
_PATH = re.compile(
    rf"(?<!\w)(?P<first>[^\W\d]\w*)(?P<steps>(?:{_STEP.pattern})*)\s*\Z".replace(
        "(?P<name>", "(?:"
    ).replace("(?P<key>", "(?:")
)
_DOTTED = re.compile(r"\.\s*(?P<typed>(?:[^\W\d]\w*)?)\Z")
_KEYWORD = re.compile(r"\s*(?P<name>[^\W\d]\w*)\s*=(?!=)\s*")
_PREFIX = re.compile(r"[A-Za-z]{0,2}\Z")
_OPEN, _CLOSE = "([{", ")]}"


class Path(Struct, frozen=True):
    """An expression such as ``git.tools["odd"]``: a name, then attributes and keys.

    Attributes:
        first: The name it begins with.
        steps: Each an attribute ``(".", name)`` or a key ``("[", text)``.
    """

    first: str
    steps: tuple[tuple[str, str], ...] = ()


class Attribute(Struct, frozen=True):
    """Behind a dot. ``start`` is where ``typed``, the part of a name, begins."""

    of: Path
    typed: str
    start: int


class Key(Struct, frozen=True):
    """In brackets. ``quote`` is the one that is open, or an empty string.

    ``start`` is where the quote stands, ``typed`` what follows it.
    """

    of: Path
    typed: str
    start: int
    quote: str


class Argument(Struct, frozen=True):
    """Between the parentheses of a call.

    Attributes:
        of: What is called.
        typed: What was written of this argument's value, or of its name, without the quote.
        start: Where that begins, or its quote.
        quote: The quote that is open, or an empty string.
        name: Its name, if ``name=`` stands before it.
        place: Which of the arguments without a name it would be.
        values: The arguments before it that are plain values: by name, or by place.
        named: The names of all before it that have one.
    """

    of: Path
    typed: str
    start: int
    quote: str
    name: str | None
    place: int
    values: dict[str | int, Any] = field(default_factory=dict)
    named: frozenset[str] = frozenset()


Spot = Attribute | Key | Argument


class _Bracket(Struct):
    kind: str
    at: int
    commas: list[int]


def spot(text: str) -> Spot | None:
    """Return what stands at the end of a text, or None if nothing here knows it."""
    if len(text) > _LENGTH:
        return None
    brackets: list[_Bracket] = []
    at = 0
    while at < len(text):
        mark = text[at]
        if mark in "\"'":
            quote = text[at : at + 3] if text[at : at + 3] in ('"""', "'''") else mark
            end = _end_of_string(text, at, quote)
            if end is None:
                return _in_string(text, brackets, at, quote)
            at = end
            continue
        if mark == "#":
            end = text.find("\n", at)
            if end < 0:
                return None
            at = end
        elif mark in _OPEN:
            brackets.append(_Bracket(mark, at, []))
        elif mark in _CLOSE and brackets:
            brackets.pop()
        elif mark == "," and brackets:
            brackets[-1].commas.append(at)
        at += 1
    if dotted := _DOTTED.search(text, max(0, len(text) - _BACK)):
        of = _path(text[: dotted.start()])
        return Attribute(of, dotted["typed"], dotted.start("typed")) if of is not None else None
    if not brackets:
        return None
    inner = brackets[-1]
    if inner.kind == "(":
        return _argument(text, inner, len(text), "")
    if inner.kind == "[" and not text[inner.at + 1 :].strip():
        of = _path(text[: inner.at])
        return Key(of, "", len(text), "") if of is not None else None
    return None


def _end_of_string(text: str, at: int, quote: str) -> int | None:
    """Return the place behind a string, or None if it is still open."""
    place = at + len(quote)
    while place < len(text):
        if text[place] == "\\":
            place += 2
        elif text.startswith(quote, place):
            return place + len(quote)
        elif text[place] == "\n" and len(quote) == 1:
            return place  # an error of the user's; what follows is code again
        else:
            place += 1
    return None


def _in_string(text: str, brackets: list[_Bracket], at: int, quote: str) -> Spot | None:
    prefix = _PREFIX.search(text, max(0, at - 2), at)
    if len(quote) != 1 or (prefix is not None and prefix.group()) or not brackets:
        return None
    inner = brackets[-1]
    if inner.kind == "(":
        return _argument(text, inner, at, quote)
    if inner.kind == "[" and not text[inner.at + 1 : at].strip():
        of = _path(text[: inner.at])
        return Key(of, text[at + 1 :], at, quote) if of is not None else None
    return None


def _argument(text: str, call: _Bracket, end: int, quote: str) -> Argument | None:
    """Return the argument that a text ends in; a string in it begins at ``end``."""
    of = _path(text[: call.at])
    if of is None:
        return None
    begins = [call.at + 1, *(comma + 1 for comma in call.commas)]
    values: dict[str | int, Any] = {}
    named = set()
    place = 0
    for begin, stop in zip(begins, call.commas, strict=False):
        piece = text[begin:stop]
        keyword = _KEYWORD.match(piece)
        if keyword is not None:
            named.add(keyword["name"])
            found = _value(piece[keyword.end() :])
            if found is not ...:
                values[keyword["name"]] = found
        elif piece.strip():
            found = _value(piece)
            if found is not ...:
                values[place] = found
            place += 1
    piece = text[begins[-1] : end]
    keyword = _KEYWORD.match(piece)
    written = piece[keyword.end() :] if keyword is not None else piece.lstrip()
    if quote:
        if written:
            return None  # something else, and then a string
        typed, start = text[end + 1 :], end
    else:
        if written and not re.fullmatch(r"[\w.+-]+", written):
            return None
        typed, start = written, end - len(written)
    name = keyword["name"] if keyword is not None else None
    return Argument(of, typed, start, quote, name, place, values, frozenset(named))


def _value(text: str) -> Any:
    """Return the plain value that some code is, or ``...``."""
    try:
        return ast.literal_eval(text.strip()) if len(text) <= _BACK else ...
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return ...


def _path(text: str) -> Path | None:
    """Return the expression that a text ends in, if it is of names and keys alone."""
    tail = text[-_BACK:]
    found = _PATH.search(tail)
    if found is None:
        return None
    ahead = tail[: found.start()]
    if ahead.rstrip(" \t")[-1:] in tuple(")]}\"'") or ahead.rstrip()[-1:] == ".":
        return None  # it goes on with something that is no name
    steps = []
    for step in _STEP.finditer(found["steps"]):
        if step["name"] is not None:
            steps.append((".", step["name"]))
        elif isinstance(key := _value(step["key"]), str):
            steps.append(("[", key))
    return Path(found["first"], tuple(steps))
