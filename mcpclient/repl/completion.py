"""What Tab offers, in whichever shell. Asks no shell and prints nothing.

Only what this package made is looked into: other objects are left to the shell, whose own
completion knows them as well. Whatever is asked of a server is asked for a bounded time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from mcpclient.ground.errors import McpClientError
from mcpclient.repl.functions import Function
from mcpclient.repl.mistakes import Mistake
from mcpclient.repl.offered import Explored
from mcpclient.repl.scan import Argument, Key, Path, spot
from mcpclient.repl.schema import Parameter

_PLAIN = bool | int | float | None
# More than these no person reads.
_MOST = 500


class Offer(Struct, frozen=True):
    """What may stand in place of the text from ``start`` to the cursor."""

    start: int
    texts: tuple[str, ...]


def offers(text: str, namespace: Mapping[str, Any], after: str = "") -> Offer | None:
    """Return what may be typed at the end of a text; None if nothing here knows that place.

    Args:
        text: The code before the cursor.
        namespace: The names that it is run with.
        after: The code behind the cursor: a quote that stands there is not offered again.
    """
    place = spot(text)
    if place is None:
        return None
    try:
        thing = resolved(place.of, namespace)
        if isinstance(place, Argument):
            found = _arguments(place, thing, after) if isinstance(thing, Function) else None
        elif not isinstance(thing, Explored):
            found = None
        elif isinstance(place, Key):
            found = _texts(thing._keys(), place.typed, place.quote, after, only_text=True)
        else:
            found = tuple(name for name in thing._names() if name.startswith(place.typed))[:_MOST]
    except (Mistake, McpClientError):
        return None  # closed, or gone meanwhile
    return Offer(place.start, found) if found is not None else None


def resolved(path: Path, namespace: Mapping[str, Any]) -> Any:
    """Return what an expression stands for, if all on the way to it was made by this package."""
    thing = namespace.get(path.first)
    for kind, name in path.steps:
        if not isinstance(thing, Explored):
            return None
        thing = thing._attribute(name) if kind == "." else thing._item(name)
    return thing


def _arguments(place: Argument, function: Function, after: str) -> tuple[str, ...]:
    listed = function.parameters.listed
    by_name = {one.wire: one for one in listed} | {one.name: one for one in listed}
    given = {
        (listed[key].wire if key < len(listed) else "") if isinstance(key, int) else key: value
        for key, value in place.values.items()
    }
    given = {by_name[key].wire if key in by_name else key: one for key, one in given.items()}
    texts: list[str] = []
    if place.name is not None:
        one = by_name.get(place.name)
    else:
        one = listed[place.place] if place.place < len(listed) and not place.named else None
        if not place.quote:
            taken = {by_name[name].wire for name in place.named if name in by_name}
            taken |= {one.wire for one in listed[: place.place]}
            texts += [
                f"{one.name}="
                for one in listed
                if one.wire not in taken and one.name.startswith(place.typed)
            ]
    if one is not None:
        values = _values(one, function, place, given)
        texts += _texts(values, place.typed, place.quote, after)
    return tuple(texts[:_MOST])


def _values(
    one: Parameter, function: Function, place: Argument, given: Mapping[str, Any]
) -> list[Any]:
    # Nobody who has only opened the parenthesis wants a server asked yet.
    asks = place.quote or place.name is not None
    found = function.values(one, place.typed, given) if asks else list(one.values)
    default = [] if one.default is ... or one.required else [one.default]
    return [*found, *(value for value in default if value not in found)]


def _texts(
    values: list[Any], typed: str, quote: str, after: str, *, only_text: bool = False
) -> tuple[str, ...]:
    """Return values as code, those that begin with what is typed."""
    end = "" if quote and after.startswith(quote) else quote
    found: dict[str, None] = {}
    for value in values:
        if isinstance(value, str):
            inner = _escaped(value, quote or '"')
            if quote and inner.startswith(typed):
                found[f"{quote}{inner}{end}"] = None
            elif not quote and (only_text or not typed):
                found[f'"{inner}"'] = None
        elif not quote and not only_text and isinstance(value, _PLAIN):
            if (text := repr(value)).startswith(typed):
                found[text] = None
    return tuple(list(found)[:_MOST])


def _escaped(text: str, quote: str) -> str:
    """Return a text as it stands between quotes; nothing in it controls a terminal."""
    marks = {"\\": "\\\\", quote: f"\\{quote}"}
    return "".join(
        marks.get(mark) or (mark if mark.isprintable() else ascii(mark)[1:-1]) for mark in text
    )
