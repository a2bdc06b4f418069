"""Python types as JSON Schemas, and values checked against the very same types. Asks nobody.

What msgspec knows of a type is the one source of both, so they cannot drift apart: annotations
and ``msgspec.Meta`` (``ge``, ``le``, ``pattern``, ``description``, ``extra_json_schema`` …). A
number takes integers and floats, an integer takes 3.0, unknown members are dropped, defaults
stand in the schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from mcpclient.serverkit.errors import RpcError
from mcpclient.serverkit.incoming import BROKEN, told

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

T = TypeVar("T")
_PREFIX = "#/$defs/"


class Schema(Struct):
    """The base of argument classes: ``class Arguments(Schema): text: str``."""


class Invalid(Exception):
    """A value is not of its type. The text names the place and the reason."""


class Checked(Generic[T]):
    """One type, and values of it from JSON.

    Args:
        type: Anything that msgspec understands: a Struct, a dataclass, a TypedDict, ``float``,
            ``list[str]``, ``Annotated[int, Meta(ge=1)]`` …
        lax: Whether text may stand for numbers and booleans, as in a prompt's arguments.
    """

    __slots__ = ("_decode", "_lax", "type")

    def __init__(self, type: type[T], *, lax: bool = False) -> None:
        self.type = type
        self._lax = lax
        self._decode = msgspec.json.Decoder(type, strict=not lax).decode

    def read(self, raw: Raw | bytes, what: str) -> T:
        """Return the value that some JSON is.

        Args:
            raw: The JSON.
            what: What to call it in the text of an error.

        Raises:
            Invalid: It is not of the type.
        """
        try:
            return self._decode(raw)
        except msgspec.ValidationError as problem:
            if "got `float`" not in str(problem):
                raise Invalid(told(problem, what)) from None
        except BROKEN:
            raise Invalid(f"{what}: cannot be read as JSON in UTF-8") from None
        try:
            # JSON has one kind of number: 3.0 is an integer there.
            value = _integral(msgspec.json.decode(raw))
        except BROKEN:
            raise Invalid(f"{what}: cannot be read as JSON in UTF-8") from None
        return self.check(value, what)

    def check(self, value: Any, what: str) -> T:
        """Return a plain value as one of the type. Raises as :meth:`read` does."""
        try:
            return msgspec.convert(value, self.type, strict=not self._lax)
        except msgspec.ValidationError as problem:
            raise Invalid(told(problem, what)) from None


def json_schema(type: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type; what it refers to stands where it is referred to.

    Only a type that contains itself keeps references, into ``$defs``.
    """
    whole = msgspec.json.schema(type)
    definitions = whole.pop("$defs", {})
    kept: dict[str, Any] = {}
    found = _inlined(whole, definitions, (), kept)
    assert isinstance(found, dict)
    if kept:
        found["$defs"] = kept
    return found


def arguments_schema(type: Any) -> dict[str, Any]:
    """Return the schema of a tool's arguments: an object, without the name of its class."""
    found = json_schema(type)
    found.pop("title", None)
    return {"type": "object", **found}


def properties_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of an object's schema."""
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def header_paths(
    schema: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return the names that ``x-mcp-header`` gives to properties, each with its path (HDR-02)."""
    for name, one in properties_of(schema).items():
        if not isinstance(one, dict):
            continue
        if isinstance(header := one.get("x-mcp-header"), str):
            yield header, (*path, name)
        yield from header_paths(one, (*path, name))


def is_object(type: Any) -> bool:
    """Return whether a type's values are JSON objects with named members, which have a schema."""
    return isinstance(type, type_of_types) and (
        issubclass(type, Struct)
        or hasattr(type, "__dataclass_fields__")
        or hasattr(type, "__total__")
    )


type_of_types = type


def refused(problem: Invalid) -> RpcError:
    """Return the error for params that are not as they must be."""
    from mcpclient.serverkit.errors import INVALID_PARAMS

    return RpcError(INVALID_PARAMS, f"Invalid params: {problem}")


def _inlined(
    node: Any, definitions: dict[str, Any], inside: tuple[str, ...], kept: dict[str, Any]
) -> Any:
    if isinstance(node, list):
        return [_inlined(member, definitions, inside, kept) for member in node]
    if not isinstance(node, dict):
        return node
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith(_PREFIX):
        name = reference[len(_PREFIX) :]
        if name in inside:
            if name not in kept:
                kept[name] = {}  # before it is filled: it refers to itself
                kept[name] = _inlined(definitions[name], definitions, (name,), kept)
            return dict(node)
        beside = {key: value for key, value in node.items() if key != "$ref"}
        target = _inlined(definitions[name], definitions, (*inside, name), kept)
        return {**target, **beside}
    found = {key: _inlined(value, definitions, inside, kept) for key, value in node.items()}
    options = found.get("enum")
    if isinstance(options, list) and "type" not in found:
        # Forms must say it, and models read it more easily.
        if all(isinstance(option, str) for option in options):
            found = {"type": "string", **found}
        elif all(type_of_types(option) is int for option in options):
            found = {"type": "integer", **found}
    return found


def _integral(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_integral(member) for member in value]
    if isinstance(value, dict):
        return {key: _integral(member) for key, member in value.items()}
    return value
