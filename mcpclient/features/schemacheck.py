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
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from functools import cache
from itertools import islice
from math import inf, isfinite
from reprlib import Repr
from typing import Any, NoReturn

import jsonschema
import referencing.jsonschema
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry, Resource
from referencing.exceptions import NoSuchResource, Unresolvable
from referencing.jsonschema import lookup_recursive_ref, specification_with

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
            raise Unusable("schema", f"it is a {_kind(schema)}, and a schema is an object")
        with _bounded(limit):
            kind = _guarded(_dialect(schema, NEWEST))
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
        with _bounded(limit, found):
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
def _bounded(limit: float, found: list[str] | None = None) -> Iterator[None]:
    """Give what is done in here so many seconds, and say in one way how it went wrong.

    With what is ``found`` until then, the time being over is no error: one problem is enough.
    """
    _watch.end = time.monotonic() + limit
    try:
        yield
    except _Overrun:
        if not found:
            raise Unusable("bounds", f"checking it takes longer than {seconds(limit)}") from None
        found.append("and perhaps more")
    except RecursionError:
        raise Unusable("bounds", "it is nested too deeply, or without end") from None
    except Unresolvable as problem:
        raise _unresolved(str(problem.ref), problem) from None
    except _STUMBLES as problem:
        said = f"{type(problem).__name__}: {printable(str(problem), 200)}"
        raise Unusable("schema", f"it cannot be worked with ({said})") from None
    finally:
        _watch.end = inf
        _watch.patterns.clear()


def _unresolved(ref: str, problem: Exception) -> Unusable:
    where = (
        "which is not in the schema; nothing is fetched"
        if isinstance(problem, NoSuchResource)
        else "which leads nowhere"
    )
    return Unusable("reference", f"it refers to {printable(ref, 200)!r}, {where}")


# -- reading a schema ----------------------------------------------------------------------


def _dialect(schema: object, default: str) -> str:
    """Return the dialect that a schema, or a part of one, says it is in."""
    said = schema.get("$schema") if isinstance(schema, Mapping) else None
    if said is None:
        return default
    if not isinstance(said, str):
        raise Unusable("schema", f'its "$schema" is a {_kind(said)}, and should be a URI')
    # The oldest end in "#", which means nothing; and some write their URIs with https.
    found = said.removesuffix("#")
    if found not in DIALECTS:
        found = found.replace("https://json-schema.org/draft-0", "http://json-schema.org/draft-0")
    if found not in DIALECTS:
        known = ", ".join(name.split("/")[-2] for name in DIALECTS)
        raise Unusable(
            "dialect", f"its dialect {printable(said, 200)!r} is not supported (known: {known})"
        )
    return found


def _look_through(schema: Any, kind: Any) -> None:
    """Find what would be wrong with a schema later: references that lead nowhere, patterns.

    A validator finds that only when it comes there, which depends on the value (SCH-06).
    """
    made = specification_with(_id_of(kind)).create_resource(schema)
    root = referencing.jsonschema.EMPTY_REGISTRY.combine(_standard()).resolver_with_root(made)
    todo: list[tuple[Resource[Any], Any]] = [(made, root)]
    seen: set[int] = set()
    while todo:
        _step()
        part, resolver = todo.pop()
        contents = part.contents
        if not isinstance(contents, Mapping) or id(contents) in seen:
            continue
        seen.add(id(contents))
        _dialect(contents, NEWEST)
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            ref = contents.get(keyword)
            if not isinstance(ref, str):
                continue
            target = resolver.lookup(ref)
            if keyword == "$ref":
                _refuse_rings(ref, target)
            found = specification_with(_id_of(kind)).create_resource(target.contents)
            todo.append((found, target.resolver))
        if isinstance(pattern := contents.get("pattern"), str):
            _compiled(pattern)
        if isinstance(named := contents.get("patternProperties"), Mapping):
            for pattern in named:
                _compiled(pattern)
        todo += ((each, resolver.in_subresource(each)) for each in part.subresources())
