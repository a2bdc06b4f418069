"""Extensions of the protocol that a host opted in to: their ids, and what each may add.

Nothing is on by itself (EXT-04). Ids are matched exactly: what breaks an extension comes under a
new one (EXT-07).

https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct

TASKS = "io.modelcontextprotocol/tasks"
TASK = "task"

# The ids below a reserved prefix that are not ours to make up, but may be spoken.
_OFFICIAL = frozenset({TASKS})
_RESERVED = frozenset({"modelcontextprotocol", "mcp"})
_CORE = frozenset({"complete", "input_required"})
_LABEL = r"[A-Za-z](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
# The grammar of a key in _meta; the prefix may not be left out (META-07, EXT-01).
_ID = re.compile(rf"(?P<prefix>{_LABEL}(?:\.{_LABEL})*)/[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


class Extension(Struct, frozen=True, kw_only=True):
    """An extension that servers are told of, with every request of the stateless era.

    Attributes:
        settings: Its settings, a JSON object.
        result_types: The ``resultType`` values it adds. Results of these are given by
            ``server.request()`` as they came; of no other kind is any accepted.
    """

    settings: Mapping[str, Any] = {}
    result_types: tuple[str, ...] = ()


def checked(extensions: Mapping[str, Any] | None) -> dict[str, Extension]:
    """Return the extensions that a host names, each a mapping of settings or an Extension.

    Raises:
        ValueError: An id, or what it stands for, is none.
    """
    return {check_id(id): _extension(id, one) for id, one in (extensions or {}).items()}


def check_id(id: str) -> str:
    """Return an id that a host may name.

    Raises:
        ValueError: It is no key with a prefix, or the prefix is the protocol's own.
    """
    found = _ID.fullmatch(str(id))
    if found is None:
        raise ValueError(
            f"an extension's id has a prefix, as in com.example/thing; {id!r} is no such id"
        )
    if id not in _OFFICIAL and _RESERVED & set(found["prefix"].split(".")[:2]):
        known = ", ".join(sorted(_OFFICIAL))
        raise ValueError(
            f"the prefix of {id!r} is reserved (known is {known}); use one of your own"
        )
    return id


def settings_of(extensions: Mapping[str, Extension]) -> dict[str, Any]:
    """Return the ``extensions`` member of our capabilities."""
    return {id: dict(one.settings) for id, one in extensions.items()}


def kinds_of(extensions: Mapping[str, Extension]) -> frozenset[str]:
    """Return the kinds of results that the extensions add (EXT-03)."""
    added = {kind for one in extensions.values() for kind in one.result_types}
    return frozenset(added | {TASK}) if TASKS in extensions else frozenset(added)


def _extension(id: str, one: Any) -> Extension:
    if not isinstance(one, Extension):
        one = Extension(settings=one)
    try:
        settings = msgspec.to_builtins(one.settings, str_keys=True)
    except (TypeError, ValueError, RecursionError) as problem:
        raise ValueError(f"the settings of {id} are no JSON: {problem}") from None
    if not isinstance(settings, dict):
        raise ValueError(f"the settings of {id} must be a mapping, {{}} for none")
    for kind in one.result_types:
        if not isinstance(kind, str) or not kind or kind in _CORE or kind == TASK:
            raise ValueError(f"{kind!r} is no result type that {id} may add")
    return Extension(settings=settings, result_types=tuple(one.result_types))
