"""How one server is to be run, as a frozen value, and what users may write for it.

Starts nothing and reads no file.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from mcpclient.ground.errors import ConfigError
from mcpclient.ground.options import Limits, Timeouts
from mcpclient.protocol.versions import check_era
from mcpclient.supervision.policy import RestartPolicy


class _Options(Struct, frozen=True, kw_only=True):
    env: dict[str, str] = {}
    cwd: str | None = None
    inherit_env: bool = True
    start: str = "lazy"
    restart: RestartPolicy = RestartPolicy()
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()
    era: str = "auto"
    kill_tree: bool = True


class ServerSpec(_Options, frozen=True):
    """How to run one server. All but the command and its arguments are named.

    Attributes:
        command: The program: a name on PATH, or a path.
        args: Its arguments.
        env: Variables set for it, over the host's.
        cwd: Its working directory; None for the host's.
        inherit_env: Whether it also gets the host's variables; without, it has only ``env``.
        start: ``lazy``: at its first use. ``eager``: as soon as the manager opens.
        restart: When it is restarted after it ended.
        timeouts: How long anything may take.
        limits: How much anything may hold.
        era: ``auto`` to find out which protocol it speaks; ``handshake``, ``stateless`` or a
            version to say so.
        kill_tree: Whether all processes it started are ended with it.

    Raises:
        ValueError: A value is out of its range; the text says which are possible.
    """

    command: str
    args: Sequence[str] = ()

    def __post_init__(self) -> None:
        if not self.command:
            raise ValueError(f"command must be a program's name or path, not {self.command!r}")
        if isinstance(self.args, str):
            raise ValueError(f"args must be a list of strings, not the string {self.args!r}")
        words = tuple(os.fspath(word) for word in self.args)
        msgspec.structs.force_setattr(self, "args", words)
        if self.cwd is not None:
            msgspec.structs.force_setattr(self, "cwd", os.fspath(self.cwd))
        parts: list[object] = [self.command, *words, *self.env, *self.env.values()]
        for part in parts:
            if not isinstance(part, str) or "\0" in part:
                raise ValueError(f"command, args and env hold text only, not {part!r}")
        if self.start not in ("lazy", "eager"):
            raise ValueError(f'start must be "lazy" or "eager", not {self.start!r}')
        check_era(self.era)

    @property
    def argv(self) -> tuple[str, ...]:
        """The command with its arguments."""
        return (self.command, *self.args)


# What a mapping may hold: our fields, and what the files of editors call the transport.
_KEYS = (*ServerSpec.__struct_fields__, "type", "disabled")


def spec_of(entry: object, *, key: str = "", path: str = "") -> ServerSpec:
    """Return the spec that an entry means: a spec, an argv list, or a mapping as in a file.

    Args:
        entry: The entry.
        key: Where it stands, for errors.
        path: The file it comes from, for errors.

    Raises:
        ConfigError: It means none; the text names the key and what to write.
    """
    if isinstance(entry, ServerSpec):
        return entry
    if isinstance(entry, str):
        raise ConfigError(
            f"a command is a list of words, not one string: write {entry.split()!r}",
            key=key,
            path=path,
        )
    if isinstance(entry, Sequence):
        if not entry:
            raise ConfigError("the command is empty", key=key, path=path)
        return _made({"command": entry[0], "args": list(entry[1:])}, key, path)
    if isinstance(entry, Mapping):
        return _from_mapping(entry, key, path)
    raise ConfigError(
        f"a server is a ServerSpec, a list of words or a mapping, not {type(entry).__name__}",
        key=key,
        path=path,
    )


def _from_mapping(entry: Mapping[Any, Any], key: str, path: str) -> ServerSpec:
    for name in entry:
        if name not in _KEYS:
            raise ConfigError(_unknown(name), key=f"{key}.{name}" if key else str(name), path=path)
    if "command" not in entry:
        raise ConfigError('"command" is missing', key=key, path=path)
    kind = entry.get("type", "stdio")
    if kind != "stdio":
        raise ConfigError(
            f'"type" must be "stdio", not {kind!r}', key=f"{key}.type" if key else "type", path=path
        )
    fields = {name: value for name, value in entry.items() if name not in ("type", "disabled")}
    return _made(fields, key, path)


def _made(fields: Mapping[str, Any], key: str, path: str) -> ServerSpec:
    plain = {name: _nested(value) for name, value in fields.items() if value is not None}
    try:
        return msgspec.convert(plain, ServerSpec)
    except msgspec.ValidationError as problem:
        raise ConfigError(str(problem), key=key, path=path) from None
    except (ValueError, TypeError) as problem:
        raise ConfigError(str(problem), key=key, path=path) from None


def _nested(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return [_nested(member) for member in value]
    return value


def _unknown(name: object) -> str:
    if name in ("url", "headers"):
        return "servers behind a URL cannot be dialled yet; give the command of a local one"
    import difflib  # only for this sentence

    near = difflib.get_close_matches(str(name), _KEYS, n=1)
    also = f"; did you mean {near[0]!r}?" if near else f" (known: {', '.join(_KEYS)})"
    return f"unknown key {name!r}{also}"
