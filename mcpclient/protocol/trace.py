"""Trace context as it may stand in ``_meta``: bare keys, values of the W3C's shape (META-11).

What has another shape is left out: a receiver would have to drop it, or worse, would not.

https://www.w3.org/TR/trace-context/, https://www.w3.org/TR/baggage/
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

Trace = Callable[[str, str], Mapping[str, str] | None]
"""Called with the server's name and the method of each request."""

_PARENT = re.compile(
    r"(?P<version>[0-9a-f]{2})-(?P<trace>[0-9a-f]{32})-(?P<span>[0-9a-f]{16})-[0-9a-f]{2}"
    r"(?P<more>-.*)?"
)
_SIMPLE = r"[a-z][a-z0-9_\-*/]{0,255}"
_TENANT = r"[a-z0-9][a-z0-9_\-*/]{0,240}@[a-z][a-z0-9_\-*/]{0,13}"
# The value is printable ASCII without comma and equals sign, and does not end with a space.
_STATE = re.compile(
    rf"(?:{_SIMPLE}|{_TENANT})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{{0,255}}[\x21-\x2b\x2d-\x3c\x3e-\x7e]"
)
_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_OCTETS = r"[\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]*"
_MEMBER = re.compile(
    rf"{_TOKEN}[ \t]*=[ \t]*{_OCTETS}(?:[ \t]*;[ \t]*{_TOKEN}(?:[ \t]*=[ \t]*{_OCTETS})?)*"
)
_MOST_STATES = 32
_STATE_LIMIT = 512
_BAGGAGE_LIMIT = 8192


def context(told: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """Return the members for ``_meta`` of what a host tells, and the keys that are left out."""
    kept = {
        key: told[key]
        for key, fits in _FITS.items()
        if isinstance(told.get(key), str) and fits(told[key])
    }
    # A state means nothing without the parent it belongs to.
    if "traceparent" not in kept:
        kept.pop("tracestate", None)
    return kept, [key for key in told if key not in kept]


def _is_parent(text: str) -> bool:
    found = _PARENT.fullmatch(text)
    if found is None or found["version"] == "ff" or (found["version"] == "00" and found["more"]):
        return False
    return found["trace"].strip("0") != "" and found["span"].strip("0") != ""


def _is_state(text: str) -> bool:
    members = [one.strip(" \t") for one in text.split(",")]
    named = [one for one in members if one]  # empty members are legal
    return (
        len(text) <= _STATE_LIMIT
        and 0 < len(named) <= _MOST_STATES
        and all(_STATE.fullmatch(one) for one in named)
        and len({one.split("=")[0] for one in named}) == len(named)
    )


def _is_baggage(text: str) -> bool:
    members = [one.strip(" \t") for one in text.split(",")]
    return len(text) <= _BAGGAGE_LIMIT and all(_MEMBER.fullmatch(one) for one in members)


_FITS: dict[str, Callable[[str], bool]] = {
    "traceparent": _is_parent,
    "tracestate": _is_state,
    "baggage": _is_baggage,
}
