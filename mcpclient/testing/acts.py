"""What a played server does to the outside, and who performs a life. Knows no pipe and no loop."""

from __future__ import annotations

import json
from typing import Any, Protocol

from msgspec import Struct


class Write(Struct, frozen=True, gc=False):
    """Write these bytes to stdout, in one write."""

    data: bytes


class Complained(Struct, frozen=True, gc=False):
    """Write these bytes to stderr."""

    data: bytes


class End(Struct, frozen=True, gc=False):
    """End the process; of exit code and signal one is given."""

    code: int | None = None
    signal: int | None = None


class Deaf(Struct, frozen=True, gc=False):
    """Read no more."""


class Dumb(Struct, frozen=True, gc=False):
    """Close stdout."""


Act = Write | Complained | End | Deaf | Dumb


class Part(Protocol):
    """One life of a played server. Time comes in as an argument; nothing here waits."""

    @property
    def due(self) -> float | None:
        """When :meth:`tick` is to be called; None: not before something arrives."""

    def begin(self, now: float) -> list[Act]:
        """The life begins."""

    def receive(self, line: bytes, now: float) -> list[Act]:
        """A line arrived."""

    def tick(self, now: float) -> list[Act]:
        """Time has passed."""


class Casting(Protocol):
    """A played server: it has a part for each life."""

    def part(self) -> Part:
        """Return the part of the next life."""


def frame(message: dict[str, Any]) -> bytes:
    """Return the line of a message."""
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"


def parsed(line: bytes) -> dict[str, Any] | None:
    """Return the message of a line, or None if it is none."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def as_mapping(value: object) -> dict[str, Any]:
    """Return a mapping, or an empty one for anything else."""
    return value if isinstance(value, dict) else {}
