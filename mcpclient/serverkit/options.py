"""Every limit of a server has its number here; and what it says it can do. Knows no session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcpclient.ground.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


class KitLimits(Struct, frozen=True, kw_only=True):
    """How much anything may hold. Counts, bytes and seconds.

    Attributes:
        requests: How many requests of one session are answered at the same time.
        batch: How many messages may stand in one array (2025-03-26).
        subscriptions: To how many resources one session, or one listener, may subscribe.
        listeners: How many ``subscriptions/listen`` run at the same time.
        tasks: How many tasks are kept.
        rounds: How often one request may be repeated with answers.
        state: How many bytes the rounds of one request may have to remember.
        state_ttl: For how many seconds a client may take to come back with its answers.
        frame: The longest line accepted on stdio.
        outbox: How many bytes may wait for a client that does not read, on stdio.
    """

    requests: int = 1000
    batch: int = 1000
    subscriptions: int = 1000
    listeners: int = 1000
    tasks: int = 1000
    rounds: int = 16
    state: int = 64 * 1024
    state_ttl: float = 600.0
    frame: int = 64 * 1024 * 1024
    outbox: int = 64 * 1024 * 1024


# What can be declared, with the options of each, in the words of Python and of the wire.
_OPTIONS: dict[str, dict[str, str]] = {
    "tools": {"list_changed": "listChanged"},
    "prompts": {"list_changed": "listChanged"},
    "resources": {"subscribe": "subscribe", "list_changed": "listChanged"},
    "logging": {},
    "completions": {},
    "tasks": {"list": "list", "cancel": "cancel", "requests": "requests"},
}


def checked(capabilities: Mapping[str, Any] | Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the capabilities that somebody declares, as the wire has them.

    Args:
        capabilities: Names; or options by name, such as ``{"resources": {"subscribe": True}}``. An
            option that is not set, or false, is left out.

    Raises:
        ConfigError: There is no such capability, or option.
    """
    given = capabilities if hasattr(capabilities, "items") else dict.fromkeys(capabilities)
    found: dict[str, dict[str, Any]] = {}
    for name, options in given.items():
        if name not in _OPTIONS:
            raise ConfigError(
                f"there is no capability {name!r} (known: {', '.join(_OPTIONS)})", key=name
            )
        found[name] = {}
        for option, value in (options or {}).items():
            wire = _wire(name, option)
            if not wire:
                known = ", ".join(_OPTIONS[name]) or "none"
                raise ConfigError(
                    f"{name} has no option {option!r} (known: {known})", key=f"{name}.{option}"
                )
            if value not in (None, False):
                # Tasks have objects where the others have flags.
                flag = {} if name == "tasks" and value is True else value
                found[name][wire] = flag
    return found


def _wire(name: str, option: str) -> str:
    options = _OPTIONS[name]
    return options.get(option) or (option if option in options.values() else "")
