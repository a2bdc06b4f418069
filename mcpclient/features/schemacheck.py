"""Whether a JSON value fits a JSON Schema that nobody vouches for. Knows no tool and no server.

Nothing is ever fetched, and all of it is bounded in time. What a value holds is never put into a
sentence, only where it is wrong: it may be a secret, and sentences end up in logs.

https://json-schema.org/draft/2020-12/json-schema-core
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from math import inf
from reprlib import Repr
from typing import Any

from jsonschema.exceptions import ValidationError
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # no stubs
from referencing import Registry
from referencing.exceptions import InvalidAnchor, NoSuchAnchor, PointerToNowhere, Unresolvable
from referencing.jsonschema import UnknownDialect

from mcpclient.features import schemawords
from mcpclient.features.schemawords import (
    DIALECTS,
    Overrun,
    TooDeep,
    dialect,
    specification,
    step,
    watch,
)
from mcpclient.ground.errors import McpClientError
from mcpclient.ground.text import printable, seconds

# Whoever reads so many has understood.
_MOST = 10
_SHOWN = Repr()
_SHOWN.maxstring = _SHOWN.maxother = _SHOWN.maxlong = 60
# What a broken schema, or a value of an odd size, makes the validator stumble over.
_STUMBLES = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError)


class Unusable(McpClientError):
    """Nothing can be told.

    Attributes:
        reason: ``schema``: it is no schema. ``dialect``: it is in one that is not supported.
            ``reference``: it refers to what is not in it. ``bounds``: it, or the value, is too
            large, too deep or too slow.
        problem: The same as a sentence about the schema.
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
            schema: The schema, as plain values; nobody may change them later.
            limit: How many seconds that may take.

        Raises:
            Unusable: It cannot be used.
        """
        if not isinstance(schema, dict | bool):
            raise Unusable("schema", f"it is {_kind(schema)}, and a schema is an object")
        self._made: dict[Any, Any] = {}
        with _bounded(limit, self._made):
            kind = schemawords.guarded(dialect(schema))
            meta = kind(kind.META_SCHEMA, registry=Registry())
            wrong = next(meta.iter_errors(schema), None)
            if wrong is not None:
                raise Unusable("schema", f"it is no schema: {_sentence(wrong)}")
            self._made.clear()
            _look_through(schema, kind)
            self._validator = kind(schema, registry=Registry())

    def fits(self, value: object, limit: float) -> bool:
        """Return whether a value fits. Arguments and errors as for :meth:`problems`."""
        with _bounded(limit, self._made):
            return next(self._validator.iter_errors(value), None) is None

    def problems(self, value: object, limit: float) -> list[str]:
        """Return why a value does not fit, one sentence each; none if it fits.

        Args:
            value: Any JSON value.
            limit: How many seconds that may take.

        Raises:
            Unusable: It cannot be told.
        """
        found: list[str] = []
        with _bounded(limit, self._made, found):
            wrong = self._validator.iter_errors(value)
            found.extend(map(_sentence, islice(wrong, _MOST)))
            if next(wrong, None) is not None:
                found.append("and more")
        return found


@contextmanager
def _bounded(limit: float, made: dict[Any, Any], found: list[str] | None = None) -> Iterator[None]:
    """Give what is done in here so many seconds, and say in one way how it went wrong.

    With problems ``found`` until then, the end of the time is no error: one is enough.
    """
    watch.end, watch.made, watch.room = time.monotonic() + limit, made, schemawords.room()
    try:
        yield
    except Overrun:
        if not found:
            raise Unusable("bounds", f"checking it takes longer than {seconds(limit)}") from None
        found.append("and perhaps more")
    except (TooDeep, RecursionError):
        raise Unusable("bounds", "it is nested too deeply, or without end") from None
    except Unresolvable as problem:
        raise _unresolved(problem.ref, problem) from None
    except UnknownDialect as problem:
        known = ", ".join(one.split("/")[-2] for one in DIALECTS)
        uri = printable(str(problem.uri), 200)
        raise Unusable(
            "dialect", f"its dialect {uri!r} is not supported; those of {known} are"
        ) from None
    except _STUMBLES as problem:
        said = f"{type(problem).__name__}: {printable(str(problem), 200)}"
        raise Unusable("schema", f"it cannot be worked with ({said})") from None
    finally:
        watch.end, watch.made = inf, {}


def _unresolved(ref: str, problem: Unresolvable) -> Unusable:
    inside = isinstance(problem, PointerToNowhere | NoSuchAnchor | InvalidAnchor)
    why = "which leads nowhere" if inside else "which is not part of it, and nothing is fetched"
    return Unusable("reference", f"it refers to {printable(ref, 200)!r}, {why}")


# -- reading a schema ----------------------------------------------------------------------


def _look_through(schema: Any, kind: Any) -> None:
    """Find what a validator would find only when a value leads it there (SCH-06)."""
    create = specification(kind).create_resource
    refs = {"$ref", "$dynamicRef", "$recursiveRef"} & kind.VALIDATORS.keys()
    made = create(schema)
    todo = [(made, REGISTRY.resolver_with_root(made))]
    seen: set[int] = set()
    straight: set[int] = set()
    while todo:
        step()
        part, resolver = todo.pop()
        contents = part.contents
        if not isinstance(contents, Mapping) or id(contents) in seen:
            continue
        seen.add(id(contents))
        dialect(contents)
        for keyword in refs:
            if isinstance(ref := contents.get(keyword), str):
                try:
                    target = resolver.lookup(ref)
                except Unresolvable as problem:
                    raise _unresolved(ref, problem) from None
                todo.append((create(target.contents), target.resolver))
                if keyword == "$ref":
                    _refuse_ring(ref, target, straight)
        patterns = [contents["pattern"]] if "pattern" in contents else []
        for pattern in (*patterns, *contents.get("patternProperties", ())):
            try:
                schemawords.made(pattern)
            except ValueError as problem:
                shown = printable(pattern, 100)
                raise Unusable("schema", f"its pattern {shown!r} is none: {problem}") from None
        todo += ((each, resolver.in_subresource(each)) for each in part.subresources())


def _refuse_ring(ref: str, target: Any, straight: set[int]) -> None:
    """Refuse a reference to a reference … to itself: it says nothing, and has no end (B173)."""
    passed: set[int] = set()
    while isinstance(target.contents, Mapping) and "$ref" in target.contents:
        step()
        place = id(target.contents)
        if place in passed:
            raise Unusable("reference", f"it refers to {printable(ref, 200)!r}, which is itself")
        if place in straight:
            break
        passed.add(place)
        target = target.resolver.lookup(target.contents["$ref"])
    straight |= passed


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
        names: Any = [wanted] if isinstance(wanted, str) else wanted
        return f"must be of the type {' or '.join(map(str, names))}"
    if word == "required":
        return f"lacks a member: {printable(error.message, 100)}"
    if word in ("false", "None"):
        return "is not allowed"
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
