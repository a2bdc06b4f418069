"""Python parameters out of a JSON Schema. Checks no value: that is the server's to do.

What of a schema cannot be told in Python's words becomes ``Any``; a schema may be hostile, so
only a bounded part of it is looked at, and nothing outside of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import reduce
from operator import or_
from types import GenericAlias, NoneType
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from mcpclient.repl.names import identifiers

if TYPE_CHECKING:
    from mcpclient.protocol.types import Prompt, ResourceTemplate

# How many parts of one schema are looked at, how deep, and how many parameters there may be.
_PARTS = 500
_DEPTH = 8
_MOST = 250
# More values than these are a catalogue, not an annotation; completion offers all the same.
_ANNOTATED = 20
_OFFERED = 1000

_TYPES: dict[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": NoneType,
}
# The expressions of a URI template whose variables may be left out, and all expressions.
_OPTIONAL = re.compile(r"\{[?&]([^{}]*)\}")


class Parameter(Struct, frozen=True):
    """One argument of a tool, a prompt or a template.

    Attributes:
        name: Its name in Python.
        wire: Its name as the server wrote it.
        required: Whether it must be given.
        annotation: Its type, as far as Python has words for it.
        default: What the server takes if it is left out; ``...`` if it does not say.
        description: What it is for, as the server says.
        values: The values it may have, if they are few enough to be listed.
    """

    name: str
    wire: str
    required: bool = False
    annotation: Any = Any
    default: Any = ...
    description: str = ""
    values: tuple[Any, ...] = ()


class Parameters(Struct, frozen=True):
    """All that may be given, those first that must be, each kind in the server's order.

    Attributes:
        listed: The arguments that are named.
        open: Whether others are accepted as well.
    """

    listed: tuple[Parameter, ...] = ()
    open: bool = False


def of_schema(schema: Mapping[str, Any]) -> Parameters:
    """Return the parameters that a tool's input schema describes."""
    reader = _Reader(schema)
    properties: dict[str, Any] = {}
    required: set[str] = set()
    named = False
    open_ = False
    for part, certain in reader.parts(schema):
        members = part.get("properties")
        if isinstance(members, Mapping):
            named = True
            for name, member in members.items():
                properties.setdefault(name, member)
        wanted = part.get("required")
        if certain and isinstance(wanted, list):
            required.update(name for name in wanted if isinstance(name, str))
        more = part.get("additionalProperties")
        open_ = open_ or more is True or isinstance(more, Mapping)
    for name in sorted(required - properties.keys()):
        properties[name] = {}
    found = [
        reader.parameter(name, wire, properties[wire], wire in required)
        for name, wire in identifiers(list(properties)[:_MOST]).items()
    ]
    many = len(properties) > _MOST
    return Parameters(_required_first(found), open_ or many or not named)


def of_prompt(prompt: Prompt) -> Parameters:
    """Return the parameters of a prompt; all of them are text."""
    declared = {one.name: one for one in reversed(prompt.arguments or ())}
    order = dict.fromkeys(one.name for one in prompt.arguments or ())
    found = [
        Parameter(
            name,
            wire,
            bool(declared[wire].required),
            str,
            description=declared[wire].description or declared[wire].title or "",
        )
        for name, wire in identifiers(list(order)[:_MOST]).items()
    ]
    return Parameters(_required_first(found), open=len(order) > _MOST)


def of_template(template: ResourceTemplate) -> Parameters:
    """Return the variables of a URI template; those of its query may be left out.

    Raises:
        LocalProtocolError: It is no template.
    """
    optional = " ".join(_OPTIONAL.findall(template.uri_template))
    may = set(re.findall(r"[^\s,*:]+", optional))
    found = [
        Parameter(name, wire, wire not in may, str)
        for name, wire in identifiers(template.variables[:_MOST]).items()
    ]
    return Parameters(_required_first(found))


def spelled(annotation: Any) -> str:
    """Return a type as people write it: ``list[str]``, ``Literal['a', 'b'] | None``."""
    if isinstance(annotation, type):
        return "None" if annotation is NoneType else annotation.__name__
    text = str(annotation).replace("typing.", "")
    return text.replace("NoneType", "None")


def _required_first(found: list[Parameter]) -> tuple[Parameter, ...]:
    return tuple(sorted(found, key=lambda one: not one.required))


class _Reader:
    """Reads one schema, and only so much of it."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _PARTS

    def parts(
        self, schema: Any, depth: int = 0, *, certain: bool = True
    ) -> Iterator[tuple[Mapping[str, Any], bool]]:
        """Give all that a schema is put together of, and whether each part always holds."""
        self._left -= 1
        if not isinstance(schema, Mapping) or depth > _DEPTH or self._left < 0:
            return
        yield schema, certain
        if "$ref" in schema:
            yield from self.parts(self._referred(schema["$ref"]), depth + 1, certain=certain)
        for word in ("allOf", "anyOf", "oneOf"):
            members = _listed(schema.get(word))
            for member in members:
                sure = certain and (word == "allOf" or len(members) == 1)
                yield from self.parts(member, depth + 1, certain=sure)

    def parameter(self, name: str, wire: str, schema: Any, required: bool) -> Parameter:
        """Return the parameter that a property's schema describes."""
        description = ""
        default: Any = ...
        for part, certain in self.parts(schema):
            if not certain:
                continue  # what one of several alternatives says is not said of the argument
            told = part.get("description")  # a title is mostly the name once more
            if not description and isinstance(told, str):
                description = told
            if default is ... and "default" in part:
                default = part["default"]
        return Parameter(
            name,
            wire,
            required,
            self.annotation(schema),
            default,
            description,
            tuple(self.values(schema))[:_OFFERED],
        )

    def annotation(self, schema: Any, depth: int = 0) -> Any:
        """Return the type of the values that a schema accepts, or of more."""
        self._left -= 1
        if not isinstance(schema, Mapping) or depth > _DEPTH or self._left < 0:
            return Any
        if "const" in schema:
            return _literal([schema["const"]])
        if isinstance(schema.get("enum"), list):
            return _literal(schema["enum"])
        if "$ref" in schema:
            return self.annotation(self._referred(schema["$ref"]), depth + 1)
        for word in ("anyOf", "oneOf"):
            if members := _listed(schema.get(word)):
                return _union([self.annotation(member, depth + 1) for member in members])
        kind = schema.get("type")
        if isinstance(kind, list):
            return _union([self._named(one, schema, depth) for one in kind])
        if kind is not None:
            return self._named(kind, schema, depth)
        for member in _listed(schema.get("allOf")):
            found = self.annotation(member, depth + 1)
            if found is not Any:
                return found  # each narrows the others; any of them is true
        return dict if "properties" in schema else Any

    def _named(self, kind: object, schema: Mapping[str, Any], depth: int) -> Any:
        found = _TYPES.get(kind, Any) if isinstance(kind, str) else Any
        if found is list and (inner := self.annotation(schema.get("items"), depth + 1)) is not Any:
            return GenericAlias(list, (inner,))
        return found

    def values(self, schema: Any) -> Iterator[Any]:
        """Give the values that a schema lists, through all its alternatives."""
        for part, _ in self.parts(schema):
            if "const" in part:
                yield part["const"]
            elif "enum" in part:
                yield from _listed(part["enum"])
            elif part.get("type") == "boolean" or "boolean" in _listed(part.get("type")):
                yield from (True, False)

    def _referred(self, reference: object) -> Any:
        """Return what a reference within the schema leads to, or None."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None  # nothing outside is ever looked at
        place: Any = self._root
        for step in reference[1:].split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            place = place.get(step) if isinstance(place, Mapping) else None
        return place


def _listed(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _literal(values: list[Any]) -> Any:
    plain = [one for one in values if isinstance(one, str | int | bool | NoneType)]
    if 0 < len(plain) == len(values) <= _ANNOTATED:
        return Literal[tuple(plain)]
    return _union([type(one) for one in values[:_OFFERED]]) if values else Any


def _union(kinds: list[Any]) -> Any:
    """Return the union of types; an integer is a number as well."""
    kinds = list(dict.fromkeys(kinds))
    if not kinds or Any in kinds:
        return Any
    return reduce(or_, (kind for kind in kinds if kind is not int or float not in kinds))
