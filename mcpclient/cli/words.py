"""A call's arguments, from the words of a command line to JSON values.

``k=v`` becomes what the schema says, ``k:=json`` is JSON to the letter, ``-`` reads an object from
stdin. Knows no server.
"""

from __future__ import annotations

import json
import re
import sys
from typing import TYPE_CHECKING, Any

from mcpclient.cli.problems import Failure
from mcpclient.cli.schema import Unfit, arguments, closed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_PAIR = re.compile(r"(?P<name>[^=]+?)(?P<sign>:?=)(?P<text>.*)", re.DOTALL)
# More than that is no call's arguments.
_STDIN = 64 * 1024 * 1024


def pairs(words: Sequence[str]) -> list[tuple[str, str, str]]:
    """Return the words as (name, sign, text).

    Raises:
        Failure: One is none.
    """
    found = []
    for word in words:
        pair = _PAIR.fullmatch(word)
        if pair is None:
            raise Failure(f'"{word}" is no argument: write NAME=VALUE, or NAME:=JSON')
        found.append((pair["name"], pair["sign"], pair["text"]))
    return found


def texts(words: Sequence[str]) -> dict[str, str]:
    """Return the words as texts by name, for what takes nothing else.

    Raises:
        Failure: One is no ``k=v``.
    """
    found = {}
    for name, sign, text in pairs(words):
        if sign == ":=":
            raise Failure(f'"{name}" can only be text here: write {name}=VALUE')
        found[name] = text
    return found


def from_stdin(words: list[str]) -> tuple[list[str], dict[str, Any] | None]:
    """Return the words without ``-``, and the object that stdin holds if there was one.

    Raises:
        Failure: It holds none.
    """
    if "-" not in words:
        return words, None
    rest = [word for word in words if word != "-"]
    if sys.stdin is None:
        raise Failure("stdin is closed; - reads the arguments from it")
    data = sys.stdin.buffer.read(_STDIN + 1)
    if len(data) > _STDIN:
        raise Failure("stdin holds more than 64 MiB; no call takes that")
    return rest, _object(data, "stdin")


def converted(words: Sequence[str], schema: Mapping[str, Any] | None, usage: str) -> dict[str, Any]:
    """Return the arguments that the words mean to a tool.

    Args:
        words: ``k=v`` and ``k:=json``.
        schema: The tool's input schema, or None if nobody knows it: then ``k=v`` is text.
        usage: How the tool is called, for errors.

    Raises:
        Failure: A name is wrong, a value does not fit, or one that is required is missing.
    """
    known = {one.name: one for one in arguments(schema)} if schema is not None else {}
    strict = schema is not None and closed(schema)
    found: dict[str, Any] = {}
    many: set[str] = set()
    for name, sign, text in pairs(words):
        argument = known.get(name)
        if argument is None and strict:
            raise Failure(f"{_unknown(name, list(known))}\n{usage}")
        if name in found and name not in many:
            raise Failure(f'"{name}" is given twice\n{usage}')
        if sign == ":=":
            found[name] = _value(name, text)
            continue
        if argument is None:
            found[name] = text
            continue
        whole = argument.many and text.lstrip().startswith("[") and name not in found
        try:
            if argument.many and not whole:
                many.add(name)
                found.setdefault(name, []).append(argument.convert(text))
            else:
                found[name] = _value(name, text) if whole else argument.convert(text)
        except Unfit as unfit:
            raise Failure(f'"{name}" must be {unfit}, not "{text}"\n{usage}') from None
    missing = [one.name for one in known.values() if one.required and one.name not in found]
    if missing:
        listed = ", ".join(f'"{name}"' for name in missing)
        raise Failure(f"{listed} {'is' if len(missing) == 1 else 'are'} missing\n{usage}")
    return found


def _unknown(name: str, known: list[str]) -> str:
    import difflib  # only for this sentence

    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        hint = "; did you mean " + " or ".join(f'"{one}"' for one in near) + "?"
    else:
        hint = "" if known else ": it takes none"
    return f'there is no argument "{name}"{hint}'


def _value(name: str, text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:
        raise Failure(
            f'"{name}:=" takes JSON, and {text[:100]!r} is none ({problem}); '
            f"for text write {name}={text[:100]}"
        ) from None


def _object(data: bytes, where: str) -> dict[str, Any]:
    try:
        found = json.loads(data, parse_constant=_no_constant)
    except (ValueError, RecursionError) as problem:
        raise Failure(f"{where} holds no JSON: {problem}") from None
    if not isinstance(found, dict):
        raise Failure(f'{where} must hold a JSON object, such as {{"name": "value"}}')
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
