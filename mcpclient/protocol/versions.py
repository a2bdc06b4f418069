"""Which protocol versions exist and which we speak. Knows no message.

https://modelcontextprotocol.io/specification/2026-07-28/basic/versioning
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

# Oldest first. Versions are compared by their place here and never as text: a string that is
# not in a list is unknown, not newer (ERA-12).
HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = ("2026-07-28",)


def newest(ours: tuple[str, ...], theirs: Iterable[object]) -> str | None:
    """Return the newest version of ours that they name too, or None."""
    named = [version for version in theirs if isinstance(version, str)]
    return next((version for version in reversed(ours) if version in named), None)


def since(first: str, version: str) -> bool:
    """Return whether a version of the handshake era is this one or a later one."""
    return version in HANDSHAKE and HANDSHAKE.index(version) >= HANDSHAKE.index(first)


def is_stateless(era: str) -> bool:
    """Return whether a setting names the stateless era or a version of it."""
    return era == "stateless" or era in STATELESS


def check_era(era: str) -> str:
    """Return the setting if it names an era or a version we speak.

    Raises:
        ValueError: It names neither.
    """
    if era in ("auto", "handshake", "stateless", *HANDSHAKE, *STATELESS):
        return era
    known = ", ".join((*HANDSHAKE, *STATELESS))
    raise ValueError(f'era must be "auto", "handshake", "stateless" or one of {known}, not {era!r}')
