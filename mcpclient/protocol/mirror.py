"""Arguments of tools that are repeated in headers, as their schemas say by ``x-mcp-header``.

It learns from the lists of tools, tells which of them may not be shown, and gives the headers of a
call. Only of use over HTTP, and only in the stateless era.

https://modelcontextprotocol.io/specification/2026-07-28/server/tools
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.ground.text import printable
from mcpclient.protocol.httprules import encoded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpclient.protocol.httprules import Header

MARK = "x-mcp-header"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_KINDS = ("string", "integer", "boolean")
# What every JSON reader can tell apart.
_SAFE = 2**53 - 1
# Schemas with more parts than this are not searched to their end; no real one comes near it.
_PARTS = 100_000
# Of so many tools it is remembered that they were warned of.
_TOLD = 1000

Path = tuple[str, ...]


class Mirror:
    """Which arguments of which tools are repeated, by what was learnt last.

    Attributes:
        active: Whether the era that the server speaks repeats them at all.
    """

    __slots__ = ("_told", "_tools", "active")

    def __init__(self) -> None:
        self.active = False
        self._tools: dict[str, dict[str, Path]] = {}
        self._told: dict[str, str] = {}

    def learn(self, name: str, schema: Any) -> str | None:
        """Take a tool's input schema in; return why the tool may not be used, if so.

        Args:
            name: The tool's name.
            schema: Its schema, decoded.
        """
        try:
            found = marks(schema)
        except ValueError as problem:
            self._tools.pop(name, None)
            return str(problem)
        if found:
            self._tools[name] = found
        else:
            self._tools.pop(name, None)
        return None

    def news(self, name: str, problem: str) -> bool:
        """Return whether this was not said of a tool the last time: a warning is given once."""
        before = self._told.get(name)
        if len(self._told) < _TOLD:
            self._told[name] = problem
        return before != problem

    def headers(self, params: Any) -> list[Header]:
        """Return the headers of a call with these params; none for a tool that is not known.

        Raises:
            LocalProtocolError: A value cannot be repeated: an integer is out of the safe range.
        """
        if not self._tools or not isinstance(params, dict):
            return []
        tool = params.get("name")
        paths = self._tools.get(tool) if isinstance(tool, str) else None
        if paths is None:
            return []
        arguments = params.get("arguments")
        headers = []
        for name, path in paths.items():
            value = _at(arguments, path)
            text = None if value is None else _text(name, value)
            if text is not None:
                headers.append((b"mcp-param-" + name.encode(), encoded(text)))
        return headers


def marks(schema: Any) -> dict[str, Path]:
    """Return the paths of the arguments that a schema wants repeated, by the name of the header.

    Raises:
        ValueError: The schema marks what may not be marked; the text says what.
    """
    found: dict[str, Path] = {}
    seen: set[str] = set()
    for path, part in _walk(schema):
        name = part[MARK]
        where = "/".join(map(str, path)) or "its root"
        if not isinstance(name, str) or not _TOKEN.fullmatch(name):
            raise ValueError(f"{MARK} at {where} is no name of a header: {_shown(name)}")
        if name.lower() in seen:
            raise ValueError(f"{MARK} {name!r} stands twice")
        seen.add(name.lower())
        keys = _property(path)
        if keys is None:
            raise ValueError(f"{MARK} {name!r} at {where} is at no plain property")
        if not _is_primitive(part.get("type")):
            raise ValueError(
                f"{MARK} {name!r} at {where} is on the type {_shown(part.get('type'))}, "
                "not on string, integer or boolean"
            )
        found[name] = keys
    return found


def _walk(schema: Any) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Give every part of a schema that holds the mark, wherever it is (HDR-09)."""
    todo: list[tuple[tuple[Any, ...], Any]] = [((), schema)]
    count = 0
    while todo and count < _PARTS:
        path, part = todo.pop()
        count += 1
        if isinstance(part, dict):
            # Under `properties` a key is a property's name, whatever it is called.
            named = bool(path) and path[-1] == "properties" and _names_properties(path)
            if MARK in part and not named:
                yield path, part
            for key, member in part.items():
                if named or key not in ("const", "enum", "default", "examples"):
                    todo.append(((*path, key), member))
        elif isinstance(part, list):
            todo += [((*path, place), member) for place, member in enumerate(part)]


def _names_properties(path: tuple[Any, ...]) -> bool:
    """Return whether the last ``properties`` of a path is the keyword, not a property's name."""
    run = 0
    for key in reversed(path):
        if key != "properties":
            break
        run += 1
    return run % 2 == 1


def _property(path: tuple[Any, ...]) -> Path | None:
    """Return the names of the properties that a path goes through, if it goes through no more."""
    if not path or len(path) % 2 or any(key != "properties" for key in path[::2]):
        return None
    return tuple(str(key) for key in path[1::2])


def _is_primitive(kind: Any) -> bool:
    # Nullable ones are not spoken of; null has no header, so nothing can go wrong.
    kinds = [one for one in kind if one != "null"] if isinstance(kind, list) else [kind]
    return len(kinds) == 1 and kinds[0] in _KINDS


def _at(arguments: Any, path: Path) -> Any:
    for key in path:
        if not hasattr(arguments, "get"):
            return None
        arguments = arguments.get(key)
    return arguments


def _text(name: str, value: Any) -> str | None:
    """Return a value as text; None if it is of a kind that no header can be made of (HDR-18)."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        if abs(value) > _SAFE:
            raise LocalProtocolError(
                f"the argument for the header Mcp-Param-{name} must be within ±(2^53 − 1)"
            )
        return str(value)
    return value if isinstance(value, str) else None


def _shown(value: Any) -> str:
    nested = isinstance(value, dict | list)
    return "an object or array" if nested else printable(repr(value), 100)
