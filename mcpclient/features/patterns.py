"""Patterns that strangers wrote, as JSON Schema has them: ECMAScript's, run within a time.

Python's own matcher cannot be stopped, and a hostile pattern keeps it busy for ever. That of the
package ``regex`` takes a time-out; what it might fill the memory with is refused before.

https://json-schema.org/draft/2020-12/json-schema-core#section-6.4
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import regex

# How long a pattern may be, and how many characters it may stand for with its repetitions
# written out, as the matcher does: (a{1000}){1000} would be a million.
_MOST = 4096
_MOST_WRITTEN = 50_000
# From so many characters on, other threads run meanwhile.
_LONG = 10_000

_CLASSES = {
    "d": "0-9",
    "w": "A-Za-z0-9_",
    "s": r"\t\n\v\f\r \xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff",
}
# What one part of a pattern looks like; the last is any character.
_PART = re.compile(
    r"""
    \\(?:
        u\{(?P<point>[0-9A-Fa-f]{1,6})\}
      | (?P<pair>u[Dd][89ABab][0-9A-Fa-f]{2}\\u[Dd][C-Fc-f][0-9A-Fa-f]{2})
      | c(?P<control>[A-Za-z])
      | (?P<known>x[0-9A-Fa-f]{2} | u[0-9A-Fa-f]{4} | [pP]\{[^{}]*\})
      | k<(?P<name>[A-Za-z_]\w*)>
      | (?P<number>[0-9]+)
      | (?P<escaped>.)
    )
    | (?P<open>\((?:\?(?:[:=!] | <[=!] | P?<[A-Za-z_]\w*> | [ims]+\) | [ims]*-?[ims]+:))?)
    | (?P<close>\))
    | (?P<times>[*+?]\??\+? | \{(?P<least>[0-9]{1,9})(?:,[0-9]{0,9})?\}\??)
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


class Pattern:
    """A pattern that can be searched for."""

    def __init__(self, pattern: str) -> None:
        """Read a pattern.

        Raises:
            ValueError: It is none, or too large; the text says why.
        """
        if len(pattern) > _MOST:
            raise ValueError(f"it has {len(pattern)} characters, which is too long")
        try:
            self._made = regex.compile(_translated(pattern), regex.V0, cache_pattern=False)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
        except regex.error as problem:
            raise ValueError(str(problem)) from None

    def found_in(self, text: str, seconds: float) -> bool:
        """Return whether the pattern matches anywhere.

        Raises:
            TimeoutError: It cannot be told within so many seconds.
        """
        concurrent = len(text) >= _LONG
        return self._made.search(text, timeout=seconds, concurrent=concurrent) is not None


def _translated(pattern: str) -> str:
    """Return an ECMAScript pattern as one of the package."""
    made: list[str] = []
    # How many characters each open group stands for, and the part before in it.
    written, before = [0], [0]
    opened = False
    parts = _PART.finditer(pattern)
    for part in parts:
        text = part.group()
        size = 1
        if opened and part["times"]:
            # Groups that call themselves, and what else the package has and ECMAScript has not.
            raise ValueError("it has a group of an unknown kind")
        opened = bool(part["open"])
        if part["open"]:
            made.append(text)
            if text[-1] != ")":  # else it sets flags and holds nothing
                written.append(0)
                before.append(0)
            continue
        if part["close"] and len(written) > 1:
            size = written.pop()
            before.pop()
        elif part["times"]:
            size = before[-1] * max(int(part["least"] or 1) - 1, 0)
        elif text == "[":
            text = _set(parts)
        elif text == "$":
            text = r"\Z"
        elif text == ".":
            text = r"[^\n\r\u2028\u2029]"
        elif text in "]{}":
            text = "\\" + text
        elif text[0] == "\\":
            text = _escape(part)
            if (kind := part["escaped"]) and kind.lower() in _CLASSES:
                text = f"[{'^' if kind.isupper() else ''}{_CLASSES[kind.lower()]}]"
        made.append(text)
        before[-1] = size
        written[-1] += size
        if written[-1] > _MOST_WRITTEN:
            raise ValueError("its repetitions are too many")
    return "".join(made)


def _set(parts: Iterator[re.Match[str]]) -> str:
    """Return a set of characters, from behind its bracket to its end."""
    members: list[str] = []
    negated = False
    for part in parts:
        text = part.group()
        # What is one part elsewhere is single characters here.
        for one in [text] if text[0] == "\\" else text:
            if one == "]":
                # An empty set matches nothing, and its opposite everything.
                if not members:
                    return r"[\s\S]" if negated else "(?!)"
                return f"[{'^' if negated else ''}{''.join(members)}]"
            if one == "^" and not members and not negated:
                negated = True
            elif part["escaped"] in _CLASSES:
                # A class is no end of a range: a dash beside it means itself.
                if members and members[-1] == "-":
                    members[-1] = r"\-"
                members.append(_CLASSES[part["escaped"]])
            elif one == "-" and members and members[-1] in _CLASSES.values():
                members.append(r"\-")
            elif one[0] == "\\":
                members.append(r"\x08" if one == r"\b" else _escape(part))
            else:
                # Among these are signs that the package knows and ECMAScript does not.
                members.append("\\" + one if one in "[&|~^" else one)
    raise ValueError("a set of characters has no end")


def _escape(part: re.Match[str]) -> str:
    """Return what stands for an escape, alone or in a set."""
    if part["point"]:
        return _character(int(part["point"], 16))
    if part["pair"]:
        high, low = int(part["pair"][1:5], 16), int(part["pair"][7:], 16)
        return _character(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
    if part["control"]:
        return _character(ord(part["control"]) % 32)
    if part["name"]:
        return f"(?P={part['name']})"
    if part["number"]:
        return r"\x00" if part["number"] == "0" else part.group()
    escaped: Any = part["escaped"]
    if escaped is None or escaped in "dwsDWSbBnrtvf" or not escaped.isalpha():
        return part.group()
    return str(escaped)  # a letter that means itself to ECMAScript, and much to the package


def _character(point: int) -> str:
    if point > 0x10FFFF:
        raise ValueError(f"there is no character {point:x}")
    return rf"\U{point:08x}"
