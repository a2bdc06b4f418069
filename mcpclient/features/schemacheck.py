"""Whether a JSON value fits a JSON Schema that nobody vouches for. Knows no tool and no server.

The package ``jsonschema`` walks schema and value; what is added here bounds it. Nothing is ever
fetched; every step looks at the clock; keywords whose own work can grow without bound, or whose
messages would hold the whole value, are replaced. What a value holds is never put into a
sentence, only where it is wrong: it may be a secret, and sentences end up in logs.

https://json-schema.org/draft/2020-12/json-schema-core
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from itertools import islice
from math import inf, isfinite
from reprlib import Repr
from typing import Any

import jsonschema
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from jsonschema_specifications import REGISTRY
from referencing import Registry
from referencing.exceptions import InvalidAnchor, NoSuchAnchor, PointerToNowhere, Unresolvable
from referencing.jsonschema import UnknownDialect, lookup_recursive_ref, specification_with

from mcpclient.features.patterns import Pattern
from mcpclient.ground.errors import McpClientError
from mcpclient.ground.text import printable, seconds

NEWEST = "https://json-schema.org/draft/2020-12/schema"
DIALECTS: dict[str, Any] = {
    NEWEST: jsonschema.Draft202012Validator,
    "https://json-schema.org/draft/2019-09/schema": jsonschema.Draft201909Validator,
    "http://json-schema.org/draft-07/schema": jsonschema.Draft7Validator,
    "http://json-schema.org/draft-06/schema": jsonschema.Draft6Validator,
    "http://json-schema.org/draft-04/schema": jsonschema.Draft4Validator,
}

_OLD = "http://json-schema.org/draft-0"

# Whoever reads so many has understood.
_MOST = 10
_SHOWN = Repr()
_SHOWN.maxstring = _SHOWN.maxother = _SHOWN.maxlong = 60
# What a broken schema, or a value of an odd size, makes the validator stumble over.
_STUMBLES = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError)


class Unusable(McpClientError):
    """Nothing can be told.

    Attributes:
        reason: ``schema``: it is no schema; ``dialect``: it is in one that is not supported;
            ``reference``: it refers to what is not in it; ``bounds``: it is, or the value is, too
            large, too deep or too slow.
        problem: The same as a sentence.
    """

    def __init__(self, reason: str, problem: str) -> None:
        super().__init__(problem)
        self.reason = reason
        self.problem = problem


class Schema:
    """A schema that values can be checked against, on any thread."""

    def __init__(self, schema: object, limit: float) -> None:
        """Read a schema.

        Args:
            schema: The schema, as plain values.
            limit: How many seconds that may take.

        Raises:
            Unusable: It cannot be used.
        """
        if not isinstance(schema, dict | bool):
            raise Unusable("schema", f"it is {_kind(schema)}, and a schema is an object")
        self._patterns: dict[str, Pattern] = {}
        with _bounded(limit, self._patterns):
            kind = _guarded(_dialect(schema))
            meta = kind(kind.META_SCHEMA, registry=Registry())
            wrong = next(meta.iter_errors(schema), None)
            if wrong is not None:
                raise Unusable("schema", f"it is no schema: {_sentence(wrong)}")
            _look_through(schema, kind)
            self._validator = kind(schema, registry=Registry())

    def problems(self, value: object, limit: float) -> list[str]:
        """Return why a value does not fit, one sentence each; none if it fits.

        Args:
            value: Any JSON value.
            limit: How many seconds that may take.

        Raises:
            Unusable: It cannot be told.
        """
        found: list[str] = []
        with _bounded(limit, self._patterns, found):
            wrong = self._validator.iter_errors(value)
            found.extend(map(_sentence, islice(wrong, _MOST)))
            if next(wrong, None) is not None:
                found.append("and more")
        return found


# -- bounds --------------------------------------------------------------------------------


class _Watch(threading.local):
    """What one thread is about: checks never wait, so it is one at a time."""

    end = inf

    def __init__(self) -> None:
        self.patterns: dict[str, Pattern] = {}


_watch = _Watch()


class _Overrun(Exception):
    """The time is over."""


def _step() -> None:
    if time.monotonic() > _watch.end:
        raise _Overrun


@contextmanager
def _bounded(
    limit: float, patterns: dict[str, Pattern], found: list[str] | None = None
) -> Iterator[None]:
    """Give what is done in here so many seconds, and say in one way how it went wrong.

    With what is ``found`` until then, the time being over is no error: one problem is enough.
    """
    _watch.end, _watch.patterns = time.monotonic() + limit, patterns
    try:
        yield
    except _Overrun:
        if not found:
            raise Unusable("bounds", f"checking it takes longer than {seconds(limit)}") from None
        found.append("and perhaps more")
    except RecursionError:
        raise Unusable("bounds", "it is nested too deeply, or without end") from None
    except Unresolvable as problem:
        raise _unresolved(problem) from None
    except UnknownDialect as problem:
        raise _unsupported(problem.uri) from None
    except _STUMBLES as problem:
        said = f"{type(problem).__name__}: {printable(str(problem), 200)}"
        raise Unusable("schema", f"it cannot be worked with ({said})") from None
    finally:
        _watch.end, _watch.patterns = inf, {}


def _unresolved(problem: Unresolvable) -> Unusable:
    inside = isinstance(problem, PointerToNowhere | NoSuchAnchor | InvalidAnchor)
    why = "which leads nowhere" if inside else "which is not part of it, and nothing is fetched"
    return Unusable("reference", f"it refers to {printable(problem.ref, 200)!r}, {why}")


# -- reading a schema ----------------------------------------------------------------------


def _dialect(schema: object) -> str:
    """Return the dialect that a schema says it is in."""
    said = schema.get("$schema", NEWEST) if isinstance(schema, Mapping) else NEWEST
    if not isinstance(said, str):
        raise Unusable("schema", f'its "$schema" is {_kind(said)}, and should be a URI')
    # That of the oldest ends in "#", which means nothing; and some write it with https.
    uri = said.removesuffix("#").replace("https://json-schema.org/draft-0", _OLD)
    if uri not in DIALECTS:
        raise _unsupported(said)
    return uri


def _unsupported(uri: object) -> Unusable:
    known = ", ".join(one.split("/")[-2].removeprefix("draft-") for one in DIALECTS)
    shown = printable(str(uri), 200)
    return Unusable("dialect", f"its dialect {shown!r} is not supported; those of {known} are")


def _look_through(schema: Any, kind: Any) -> None:
    """Find what a validator would find only when a value leads it there (SCH-06)."""
    specification = _specification(kind)
    made = specification.create_resource(schema)
    todo = [(made, REGISTRY.resolver_with_root(made))]
    seen: set[int] = set()
    straight: set[int] = set()
    while todo:
        _step()
        part, resolver = todo.pop()
        contents = part.contents
        if not isinstance(contents, Mapping) or id(contents) in seen:
            continue
        seen.add(id(contents))
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if isinstance(ref := contents.get(keyword), str):
                target = resolver.lookup(ref)
                todo.append((specification.create_resource(target.contents), target.resolver))
                if keyword == "$ref":
                    _refuse_ring(ref, target, straight)
        patterns = [contents["pattern"]] if "pattern" in contents else []
        for pattern in (*patterns, *contents.get("patternProperties", ())):
            _pattern_of(pattern)
        todo += ((each, resolver.in_subresource(each)) for each in part.subresources())


def _refuse_ring(ref: str, target: Any, straight: set[int]) -> None:
    """Refuse a reference to a reference … to itself: it says nothing, and has no end (B173)."""
    passed: set[int] = set()
    while isinstance(target.contents, Mapping) and "$ref" in target.contents:
        _step()
        place = id(target.contents)
        if place in passed:
            raise Unusable("reference", f"it refers to {printable(ref, 200)!r}, which is itself")
        if place in straight:
            break
        passed.add(place)
        target = target.resolver.lookup(target.contents["$ref"])
    straight |= passed


def _pattern_of(pattern: str) -> Pattern:
    try:
        found = _watch.patterns.get(pattern)
        if found is None:
            found = _watch.patterns[pattern] = Pattern(pattern)
    except ValueError as problem:
        shown = printable(pattern, 100)
        raise Unusable("schema", f"its pattern {shown!r} cannot be used: {problem}") from None
    return found


# -- the validators ------------------------------------------------------------------------


@cache
def _guarded(uri: str) -> Any:
    """Return the validator of a dialect, made so that no step goes unwatched."""
    base = DIALECTS[uri]
    ours = {word: _KEYWORDS[word] for word in _KEYWORDS.keys() & base.VALIDATORS.keys()}
    kind: Any = extend(base, ours)  # type: ignore[no-untyped-call]  # its stubs lag behind
    plain = kind.iter_errors

    def evolve(self: Any, **changes: Any) -> Any:
        """Return the validator of a part: every way down leads through here."""
        _step()
        schema = changes.get("schema", self.schema)
        # A part may be in a dialect of its own; its validator must be one of ours as well.
        other = isinstance(schema, dict) and "$schema" in schema
        made = _guarded(_dialect(schema)) if other else type(self)
        resolver = changes.get("_resolver", self._resolver)
        return made(schema, registry=self._registry, _resolver=resolver)

    def iter_errors(self: Any, instance: Any) -> Iterator[ValidationError]:
        _step()
        return plain(self, instance)  # type: ignore[no-any-return]

    kind.evolve = evolve
    kind.iter_errors = iter_errors
    return kind


def _specification(kind: Any) -> Any:
    return specification_with(kind.ID_OF(kind.META_SCHEMA))


def _search(pattern: str, text: str) -> bool:
    left = _watch.end - time.monotonic()
    if left <= 0:
        raise _Overrun
    try:
        return _pattern_of(pattern).found_in(text, min(left, 1e6))
    except TimeoutError:
        raise _Overrun from None


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
    _step()
    if isinstance(value, list):
        return ("list", *map(_frozen, value))
    if isinstance(value, dict):
        return frozenset((name, _frozen(member)) for name, member in value.items())
    return ("bool", value) if isinstance(value, bool) else value


def _multiple(validator: Any, of: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    # With floats 19.99 is no multiple of 0.01. What was written is meant.
    if validator.is_type(instance, "number"):
        if not isfinite(instance) or Fraction(str(instance)) % Fraction(str(of)):
            yield ValidationError("")


def _pattern(validator: Any, one: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not _search(one, instance):
        yield ValidationError("")


def _pattern_properties(
    validator: Any, parts: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for pattern, part in parts.items():
            for name, value in instance.items():
                if _search(pattern, name):
                    yield from validator.descend(value, part, path=name, schema_path=pattern)


def _additional(validator: Any, part: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        known = schema.get("properties", ())
        patterns = schema.get("patternProperties", ())
        others = (
            name
            for name in instance
            if name not in known and not any(_search(one, name) for one in patterns)
        )
        yield from _none_of(others, validator, part, instance)


def _unevaluated_properties(
    validator: Any, part: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        seen = _evaluated(validator, instance, schema, top=True)
        yield from _none_of(
            (name for name in instance if name not in seen), validator, part, instance
        )


def _unevaluated_items(
    validator: Any, part: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if isinstance(instance, list):
        seen = _evaluated(validator, instance, schema, top=True)
        others = (place for place in range(len(instance)) if place not in seen)
        yield from _none_of(others, validator, part, instance)


def _none_of(
    places: Iterable[Any], validator: Any, part: Any, instance: Any
) -> Iterator[ValidationError]:
    """Check the members that nothing else speaks of."""
    for place in places:
        if part is False:
            yield ValidationError("", path=[place])
        else:
            yield from validator.descend(instance[place], part, path=place)


def _evaluated(validator: Any, instance: Any, schema: Any, top: bool = False) -> set[Any]:
    """Return the names, or the places, that a schema speaks of: those of the instance alone.

    At the ``top`` stands the keyword that asks, which does not count itself.
    """
    _step()
    found: set[Any] = set()
    if not isinstance(schema, dict):
        return found
    resolver = validator._resolver
    targets = [resolver.lookup(schema[word]) for word in ("$ref", "$dynamicRef") if word in schema]
    if "$recursiveRef" in schema:
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
    return {one for one in instance if one in known or any(_search(p, one) for p in patterns)}


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
    made = _specification(validator).create_resource(part)
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


# -- sentences -----------------------------------------------------------------------------


def _sentence(error: ValidationError) -> str:
    """Return what is wrong where, without the value."""
    where = _where(error)
    context = error.context or ()
    # Of the many ways not to fit a choice, the one that came farthest is most likely meant.
    near = max(context, key=lambda one: len(one.absolute_path), default=None)
    hint = f" ({_where(near)} {_broken(near)})" if near is not None else ""
    return f"{where} {_broken(error)}{hint}"


def _where(error: ValidationError) -> str:
    path = list(error.absolute_path)
    steps = (str(step).replace("~", "~0").replace("/", "~1") for step in path)
    return printable("".join(f"/{step}" for step in steps), 200) if path else "the value"


def _broken(error: ValidationError) -> str:
    word, wanted = str(error.validator), error.validator_value
    if word == "type":
        names = [wanted] if isinstance(wanted, str) else wanted
        return f"must be of the type {' or '.join(map(str, names))}"
    if word == "required":
        return f"lacks a member: {printable(error.message, 100)}"
    if word in ("None", "additionalProperties", "unevaluatedProperties", "unevaluatedItems"):
        return "must not be there"
    if word in ("anyOf", "oneOf", "not", "if", "contains"):
        more = word == "oneOf" and not error.context
        return "fits more than one of oneOf" if more else f"does not fit {word}"
    if word == "uniqueItems":
        return "must not hold the same twice"
    try:
        shown = printable(_SHOWN.repr(wanted), 100)
    except ValueError:  # an integer of thousands of digits
        shown = "…"
    return f"does not fit {word} {shown}"


def _kind(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a number", str: "a text"}
    return names.get(type(value), "null" if value is None else "a list")
