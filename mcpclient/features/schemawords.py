"""The validators of JSON Schema's dialects, made so that no step goes unwatched.

The package ``jsonschema`` walks schema and value. What is replaced of it: the way down, which
looks at the clock here and makes each part's validator once; and the keywords whose own work can
grow without bound, or whose messages would hold the whole value.

https://json-schema.org/draft/2020-12/json-schema-validation
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from math import inf, isfinite
from types import FrameType
from typing import Any

import jsonschema
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing.jsonschema import UnknownDialect, lookup_recursive_ref, specification_with

from mcpclient.features.patterns import Pattern

NEWEST = "https://json-schema.org/draft/2020-12/schema"
DIALECTS: dict[str, Any] = {
    NEWEST: jsonschema.Draft202012Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema.Draft201909Validator,
    "http://json-schema.org/draft-07/schema": jsonschema.Draft7Validator,
    "http://json-schema.org/draft-06/schema": jsonschema.Draft6Validator,
    "http://json-schema.org/draft-04/schema": jsonschema.Draft4Validator,
}


# How many calls are left to what does not count its own: below the validators is native code that
# does not merely raise if Python's limit is hit in it.
_RESERVE = 200


class Overrun(Exception):
    """The time is over."""


class TooDeep(Exception):
    """There is no room for more calls within calls."""


class _Watch(threading.local):
    """What one thread is about. Checks never wait, so it is one at a time."""

    end = inf
    room = 0

    def __init__(self) -> None:
        self.made: dict[Any, Any] = {}


watch = _Watch()


def step() -> None:
    """Look at the clock.

    Raises:
        Overrun: The time is over.
    """
    if time.monotonic() > watch.end:
        raise Overrun


def room() -> int:
    """Return how many calls within calls may still be made from here."""
    used = 0
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        used += 1
        frame = frame.f_back
    return sys.getrecursionlimit() - used - _RESERVE


def search(pattern: str, text: str) -> bool:
    """Return whether a pattern is found in a text.

    Raises:
        Overrun: It cannot be told in time.
        ValueError: It is no pattern.
    """
    left = watch.end - time.monotonic()
    if left <= 0:
        raise Overrun
    try:
        return made(pattern).found_in(text, min(left, 1e6))
    except TimeoutError:
        raise Overrun from None


def made(pattern: str) -> Pattern:
    """Return a pattern, ready to be searched for. Raises ValueError if it is none."""
    found: Pattern | None = watch.made.get(pattern)
    if found is None:
        found = watch.made[pattern] = Pattern(pattern)
    return found


def dialect(schema: object) -> str:
    """Return the dialect that a schema says it is in; it need not say.

    Raises:
        UnknownDialect: It is none that is supported.
    """
    said = schema.get("$schema", NEWEST) if isinstance(schema, dict) else NEWEST
    # That of the oldest ends in "#", which means nothing; and some write it with https.
    old = "http://json-schema.org/draft-0"
    uri = str(said).removesuffix("#").replace("https://json-schema.org/draft-0", old)
    if uri not in DIALECTS:
        raise UnknownDialect(said)
    return uri


@cache
def guarded(uri: str) -> Any:
    """Return the validator class of a dialect."""
    base = DIALECTS[uri]
    ours = {word: _KEYWORDS[word] for word in _KEYWORDS.keys() & base.VALIDATORS.keys()}
    kind: Any = extend(base, ours)  # type: ignore[no-untyped-call]  # its stubs lag behind
    plain = kind.iter_errors
    create = specification(kind).create_resource

    def evolve(self: Any, **changes: Any) -> Any:
        """Return the validator of a part: every way down leads through here."""
        step()
        schema = changes.get("schema", self.schema)
        resolver = changes.get("_resolver", self._resolver)
        kind = type(self)
        if isinstance(schema, dict) and "$schema" in schema:
            # A part may be in a dialect of its own; its validator must be one of ours as well.
            kind = guarded(dialect(schema))
        # By identity: as long as the schema lives, so do its parts.
        known = watch.made.get(id(schema))
        if known is None or known._resolver is not resolver or type(known) is not kind:
            known = kind(schema, registry=self._registry, _resolver=resolver)
            watch.made[id(schema)] = known
        return known

    def descend(
        self: Any,
        instance: Any,
        schema: Any,
        path: Any = None,
        schema_path: Any = None,
        resolver: Any = None,
    ) -> Iterator[ValidationError]:
        """Check a part of the value against a part of the schema."""
        if schema is True:
            return
        if schema is False:
            # The package forgets the path here.
            yield ValidationError("", "false", () if path is None else (path,))
            return
        if resolver is None:
            resolver = self._resolver
            if "$id" in schema or "id" in schema:
                resolver = resolver.in_subresource(create(schema))
        inside = self.evolve(schema=schema, _resolver=resolver)
        watch.room -= 2
        try:
            if watch.room < 0:
                raise TooDeep
            for check, word, wanted in inside._validators:
                for error in check(inside, wanted, instance, schema) or ():
                    error._set(
                        validator=word,
                        validator_value=wanted,
                        instance=instance,
                        schema=schema,
                        type_checker=inside.TYPE_CHECKER,
                    )
                    if path is not None:
                        error.path.appendleft(path)
                    yield error
        finally:
            watch.room += 2

    def iter_errors(self: Any, instance: Any) -> Iterator[ValidationError]:
        step()
        watch.room -= 4  # with those that lead here
        try:
            if watch.room < 0:
                raise TooDeep
            yield from plain(self, instance)
        finally:
            watch.room += 4

    kind.evolve = evolve
    kind.descend = descend
    kind.iter_errors = iter_errors
    return kind


def specification(kind: Any) -> Any:
    """Return how a validator's dialect names and holds parts."""
    return specification_with(kind.ID_OF(kind.META_SCHEMA))


# -- keywords ------------------------------------------------------------------------------
# A problem's message is made elsewhere, from the keyword and the place.


def _type(validator: Any, types: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    for one in [types] if isinstance(types, str) else types:
        if validator.is_type(instance, one):
            return
    yield ValidationError("")


def _enum(validator: Any, options: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    sought = _frozen(instance)
    if not any(sought == _frozen(one) for one in options):
        yield ValidationError("")


def _const(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    return _enum(validator, [wanted], instance, schema)


def _unique(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if wanted and isinstance(instance, list):
        if len({_frozen(one) for one in instance}) < len(instance):
            yield ValidationError("")


def _frozen(value: Any) -> Any:
    """Return something equal, with the same hash, for equal JSON values only: 1 is 1.0, not true.

    The package compares each with each, which takes hours for long lists.
    """
    step()
    if isinstance(value, list):
        return ("list", *map(_frozen, value))
    if isinstance(value, dict):
        return frozenset((name, _frozen(member)) for name, member in value.items())
    return ("bool", value) if isinstance(value, bool) else value


def _multiple(validator: Any, of: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    # With floats 19.99 is no multiple of 0.01. What was written is meant.
    if validator.is_type(instance, "number"):
        endless = isinstance(instance, float) and not isfinite(instance)
        if endless or Fraction(str(instance)) % Fraction(str(of)):
            yield ValidationError("")


def _pattern(validator: Any, one: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not search(one, instance):
        yield ValidationError("")


def _pattern_properties(
    validator: Any, parts: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, part in parts.items():
            for name, value in instance.items():
                if search(pattern, name):
                    yield from validator.descend(value, part, path=name, schema_path=pattern)


def _additional(validator: Any, part: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        known = schema.get("properties", ())
        patterns = schema.get("patternProperties", ())
        for name, one in instance.items():
            if name not in known and not any(search(other, name) for other in patterns):
                yield from validator.descend(one, part, path=name)


def _unevaluated_properties(
    validator: Any, part: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        seen = _evaluated(validator, instance, schema, top=True)
        for name in instance:
            if name not in seen:
                yield from validator.descend(instance[name], part, path=name)


def _unevaluated_items(
    validator: Any, part: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, list):
        seen = _evaluated(validator, instance, schema, top=True)
        for place, one in enumerate(instance):
            if place not in seen:
                yield from validator.descend(one, part, path=place)


def _evaluated(validator: Any, instance: Any, schema: Any, top: bool = False) -> set[Any]:
    """Return the names, or the places, that a schema speaks of: those of the instance alone.

    At the ``top`` stands the keyword that asks, which does not count itself.
    """
    step()
    watch.room -= 2
    try:
        if watch.room < 0:
            raise TooDeep
        return _collected(validator, instance, schema, top)
    finally:
        watch.room += 2


def _collected(validator: Any, instance: Any, schema: Any, top: bool) -> set[Any]:
    found: set[Any] = set()
    if not isinstance(schema, dict):
        return found
    resolver = validator._resolver
    refs = [word for word in ("$ref", "$dynamicRef") if word in validator.VALIDATORS]
    targets = [resolver.lookup(schema[word]) for word in refs if word in schema]
    if "$recursiveRef" in schema and "$recursiveRef" in validator.VALIDATORS:
        targets.append(lookup_recursive_ref(resolver))
    for target in targets:
        inside = validator.evolve(schema=target.contents, _resolver=target.resolver)
        found |= _evaluated(inside, instance, target.contents)
    parts = [part for word in ("allOf", "anyOf", "oneOf") for part in schema.get(word, ())]
    if isinstance(instance, dict):
        needs = schema.get("dependentSchemas", {})
        parts += [part for name, part in needs.items() if name in instance]
    if "if" in schema:
        fits = _inside(validator, schema["if"]).is_valid(instance)
        parts += [
            schema[word] for word in (("if", "then") if fits else ("else",)) if word in schema
        ]
    for part in parts:
        inside = _inside(validator, part)
        if inside.is_valid(instance):
            found |= _evaluated(inside, instance, part)
    if isinstance(instance, dict):
        found |= _names(instance, schema, top)
    else:
        found |= _places(validator, instance, schema, top)
    return found


def _names(instance: dict[str, Any], schema: dict[str, Any], top: bool) -> set[Any]:
    if "additionalProperties" in schema or (not top and "unevaluatedProperties" in schema):
        return set(instance)
    patterns = schema.get("patternProperties", ())
    known = schema.get("properties", ())
    return {one for one in instance if one in known or any(search(p, one) for p in patterns)}


def _places(validator: Any, instance: list[Any], schema: dict[str, Any], top: bool) -> set[Any]:
    items = schema.get("items")
    rest = "additionalItems" in schema and isinstance(items, list)
    if isinstance(items, dict | bool) or rest or (not top and "unevaluatedItems" in schema):
        return set(range(len(instance)))
    found = set(range(len(items if isinstance(items, list) else schema.get("prefixItems", ()))))
    if "contains" in schema and "prefixItems" in validator.VALIDATORS:
        inside = _inside(validator, schema["contains"])
        found |= {place for place, one in enumerate(instance) if inside.is_valid(one)}
    return found


def _inside(validator: Any, part: Any) -> Any:
    made = specification(validator).create_resource(part)
    return validator.evolve(schema=part, _resolver=validator._resolver.in_subresource(made))


_KEYWORDS: dict[str, Any] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "uniqueItems": _unique,
    "multipleOf": _multiple,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "unevaluatedProperties": _unevaluated_properties,
    "unevaluatedItems": _unevaluated_items,
}
