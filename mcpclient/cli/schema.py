"""What a tool's input schema says of each argument, as far as a command line needs it.

Reads schemas that may be wrong, cyclic or hostile, and never fails for them: what it does not
understand may be anything.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

# How far references and alternatives are followed, and how many choices are kept.
_DEPTH = 8
_ALTERNATIVES = 50
_CHOICES = 50
_KNOWN = ("string", "integer", "number", "boolean", "array", "object", "null")
_INTEGER = re.compile(r"-?\d{1,1000}")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,4})?")
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")


class Unfit(Exception):
    """A text cannot be what the schema wants; the exception's text says what that is."""


@dataclass(frozen=True)
class Argument:
    """One argument of a tool.

    Attributes:
        name: Its name.
        types: The JSON types it may have; empty if it may have any.
        required: Whether the tool wants it.
        choices: The only values it may have, or empty.
        item: What an array is made of, if it says so.
        default: Its default, as JSON, or an empty text.
        description: What it is for.
    """

    name: str
    types: frozenset[str] = frozenset()
    required: bool = False
    choices: tuple[Any, ...] = ()
    item: Argument | None = None
    default: str = ""
    description: str = ""

    @property
    def many(self) -> bool:
        """Whether it is an array of what can be written one by one."""
        if "array" not in self.types or "string" in self.types:
            return False
        return self.item is not None and not self.item.types & {"array", "object"}

    @property
    def verbatim(self) -> bool:
        """Whether only JSON can say it."""
        return bool(self.types) and self.types <= {"array", "object"} and not self.many

    @property
    def kind(self) -> str:
        """What it wants, in a few letters: ``STRING``, ``red|green``, ``INTEGER…``."""
        if self.choices:
            shown = "|".join(_plain(one) for one in self.choices[:6])
            return shown + ("|…" if len(self.choices) > 6 else "")
        if self.many:
            assert self.item is not None
            return f"{self.item.kind}…"
        names = [one.upper() for one in _KNOWN if one in self.types and one != "null"]
        return "|".join(names) or "VALUE"

    @property
    def usage(self) -> str:
        """How it is written, in brackets if it may be left out."""
        text = f"{self.name}{':=JSON' if self.verbatim else f'={self.kind}'}"
        return text if self.required else f"[{text}]"

    def convert(self, text: str) -> Any:
        """Return the JSON value that a text means here.

        Raises:
            Unfit: It means none that fits.
        """
        if self.choices:
            for one in self.choices:
                if text == _plain(one):
                    return one
            raise Unfit(f"one of {', '.join(_plain(one) for one in self.choices[:20])}")
        if not self.types or "string" in self.types:
            return text
        if self.many:
            assert self.item is not None
            return self.item.convert(text)
        for kind in _KNOWN:
            if kind in self.types and (found := _READ[kind](text)) is not _NO:
                return found
        raise Unfit(_wanted(self.types))


def arguments(schema: Mapping[str, Any]) -> list[Argument]:
    """Return the arguments that an input schema names, those it requires first."""
    found: dict[str, Any] = {}
    required: set[str] = set()
    for part in _parts(schema, schema):
        properties = part.get("properties")
        if isinstance(properties, Mapping):
            found |= {name: one for name, one in properties.items() if name not in found}
        if isinstance(wanted := part.get("required"), list):
            required |= {name for name in wanted if isinstance(name, str)}
    listed = [_argument(name, one, schema, name in required) for name, one in found.items()]
    return sorted(listed, key=lambda one: not one.required)


def closed(schema: Mapping[str, Any]) -> bool:
    """Return whether a name that the schema does not have is a mistake, as far as can be told.

    By the letter a schema that does not close itself takes any name. One that names some means
    just these; one that names none may have been left empty.
    """
    more = schema.get("additionalProperties")
    if schema.get("patternProperties"):
        return False
    return more is False or (more is None and bool(arguments(schema)))


def _argument(name: str, schema: Any, root: Any, required: bool, depth: int = 0) -> Argument:
    types: set[str] = set()
    choices: list[Any] = []
    item: Argument | None = None
    free = False  # whether an alternative leaves the choice
    for part in _parts(schema, root):
        said = part.get("type")
        named = {one for one in (said if isinstance(said, list) else [said]) if one in _KNOWN}
        types |= named
        if isinstance(listed := part.get("enum"), list):
            choices += listed[: _CHOICES - len(choices)]
        elif "const" in part:
            choices.append(part["const"])
        elif named - {"null"}:
            free = True
        if "items" in part and item is None and depth < 2:
            item = _argument(name, part["items"], root, True, depth + 1)
    if free:
        choices = []
    members = schema if isinstance(schema, Mapping) else {}
    told = members.get("description") or members.get("title")
    default = json.dumps(members["default"], ensure_ascii=False) if "default" in members else ""
    return Argument(
        name,
        frozenset(types),
        required,
        tuple(choices),
        item,
        default[:100],
        told if isinstance(told, str) else "",
    )


def _parts(schema: Any, root: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema, what it refers to and its alternatives, each once and not too many."""
    todo = [(schema, 0)]
    seen: set[int] = set()
    while todo and len(seen) < _ALTERNATIVES:
        one, depth = todo.pop(0)
        if not isinstance(one, Mapping) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        if depth >= _DEPTH:
            continue
        for word in ("anyOf", "oneOf", "allOf"):
            if isinstance(listed := one.get(word), list):
                todo += [(each, depth + 1) for each in listed[:_ALTERNATIVES]]
        if isinstance(reference := one.get("$ref"), str) and reference.startswith("#"):
            todo.append((_referred(root, reference), depth + 1))


def _referred(root: Any, reference: str) -> Any:
    found = root
    for step in reference[1:].split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


_NO: Any = object()


def _integer(text: str) -> Any:
    if _INTEGER.fullmatch(text):
        return int(text)
    number = _number(text)
    return int(number) if number is not _NO and number == int(number) else _NO


def _number(text: str) -> Any:
    if _INTEGER.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text) and (found := float(text)) not in (float("inf"), -float("inf")):
        return found
    return _NO


def _boolean(text: str) -> Any:
    word = text.lower()
    return True if word in _TRUE else False if word in _FALSE else _NO


def _json(kind: type) -> Any:
    def read(text: str) -> Any:
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return _NO
        return found if isinstance(found, kind) else _NO

    return read


_READ: dict[str, Any] = {
    "string": lambda text: text,
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _json(list),
    "object": _json(dict),
    "null": lambda text: None if text == "null" else _NO,
}


def _wanted(types: frozenset[str]) -> str:
    words = {
        "integer": "a whole number",
        "number": "a number",
        "boolean": "true or false",
        "array": "a JSON array",
        "object": "a JSON object",
        "null": "null",
    }
    return " or ".join(words[kind] for kind in _KNOWN if kind in types and kind in words)


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
