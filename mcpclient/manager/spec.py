"""How one server is to be run or reached, as a frozen value, and what users may write for it.

Starts nothing and reads no file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from mcpclient.ground.errors import ConfigError
from mcpclient.ground.options import Limits, Timeouts
from mcpclient.manager.remote import check_remote, kind_of
from mcpclient.protocol.versions import check_era
from mcpclient.supervision.policy import PATIENT, RestartPolicy

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpclient.loops.base import Loop
    from mcpclient.transports.base import Transport

_DEFAULT = RestartPolicy()


class _Options(Struct, frozen=True, kw_only=True):
    env: dict[str, str] = {}
    cwd: str | None = None
    inherit_env: bool = True
    start: str = "lazy"
    restart: RestartPolicy = _DEFAULT
    timeouts: Timeouts = Timeouts()
    limits: Limits = Limits()
    era: str = "auto"
    kill_tree: bool = True
    idle_stop: float | None = None
    resend: str = "never"
    validate: str = "off"
    ping: float | None = None
    ping_misses: int = 3
    stderr_file: str | None = None
    wire_log: str | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    auth: Any = None
    type: str | None = None


class ServerSpec(_Options, frozen=True):
    """How to run one server, or reach one. All but the command and its arguments are named.

    Either ``command`` or ``url`` is given. What is said of processes below means nothing for a
    server behind a URL.

    Attributes:
        command: The program: a name on PATH, or a path.
        args: Its arguments.
        env: Variables set for it, over the host's.
        cwd: Its working directory; None for the host's.
        inherit_env: Whether it also gets the host's variables; without, it has only ``env``.
        start: ``lazy``: at its first use. ``eager``: as soon as the manager opens.
        restart: When it is restarted after it ended, or dialled again after it was lost. Behind a
            URL the default goes on for ever (``RestartPolicy(burst=None)``): only a final no,
            such as missing credentials, makes it ``failed``.
        timeouts: How long anything may take.
        limits: How much anything may hold.
        era: ``auto`` to find out which protocol it speaks; ``handshake``, ``stateless`` or a
            version to say so.
        kill_tree: Whether all processes it started are ended with it.
        idle_stop: After so many seconds without a call it is stopped until the next one; None:
            never.
        resend: What is asked again, once, if the server or the connection died of or during it.
            ``never``: nothing. ``safe``: what never reached it, lists, reads, prompts, and tools
            that it declares read-only or idempotent.
        validate: Whether what ``invoke_tool`` returns is checked against the output schema that
            the tool declares. ``off``: no. ``warn``: what is wrong is logged. ``strict``: it is
            raised as :class:`OutputInvalid`. All but ``off`` need ``mcpclient[schema]``.
        ping: Every so many seconds without a call it is asked whether it is well, if its era
            knows how to; None: never.
        ping_misses: After so many unanswered pings in a row it is ended as hung.
        stderr_file: Where all it writes to stderr is kept, up to ``Limits.log``; None: only the
            end of it, in memory.
        wire_log: Where all messages are written down, up to ``Limits.log``, without secrets.
        url: Where it is reached: ``http://``, ``https://``, ``unix:///path`` or ``tcp://host:port``.
            The first two need ``mcpclient[http]``.
        headers: Sent with each HTTP request, such as ``{"Authorization": "Bearer …"}``.
        auth: Asked before each HTTP request for headers that change: called with ``(server,
            challenge)``, plain or async, returns a mapping or None. After a 401 or 403 it is
            asked once more, with the server's :class:`Challenge`, which else is None; with
            headers that differ the request is then sent once more. Only from Python.
        type: ``stdio``, ``http`` or ``stream``, told from the others; ``sse`` begins with the
            HTTP transport of 2024-11-05, which is else found out.

    Raises:
        ValueError: A value is out of its range; the text says which are possible.
    """

    command: str = ""
    args: Sequence[str] = ()

    def __post_init__(self) -> None:
        if self.command and self.url is not None:
            raise ValueError("give a command or a url, not both")
        if self.url is None and not self.command:
            raise ValueError(f"command must be a program's name or path, not {self.command!r}")
        _check_text(self.command, "command")
        check_remote(self.url, self.headers, self.auth, self.args)
        msgspec.structs.force_setattr(self, "type", kind_of(self.type, self.url))
        if self.url is not None and self.restart is _DEFAULT:
            msgspec.structs.force_setattr(self, "restart", PATIENT)
        if not isinstance(self.args, list | tuple):
            raise ValueError(f"args must be a list of strings, not {self.args!r}")
        words = tuple(_plain(word) for word in self.args)
        for place, word in enumerate(words):
            _check_text(word, f"args[{place}]")
        msgspec.structs.force_setattr(self, "args", words)
        if self.cwd is not None:
            msgspec.structs.force_setattr(self, "cwd", _plain(self.cwd))
            _check_text(self.cwd, "cwd")
        for option, kind in _KINDS.items():
            value = getattr(self, option)
            if not isinstance(value, kind):
                shown = type(value).__name__ if option == "env" else repr(value)
                raise ValueError(f"{option} must be of the type {kind.__name__}, not {shown}")
        variables: Mapping[Any, Any] = self.env
        for name, text in variables.items():
            if not isinstance(name, str) or not name or "=" in name or "\0" in name:
                raise ValueError(f"env: {name!r} cannot be the name of a variable")
            _check_text(text, f"env.{name}", secret=True)
        if self.start not in ("lazy", "eager"):
            raise ValueError(f'start must be "lazy" or "eager", not {self.start!r}')
        if self.resend not in ("never", "safe"):
            raise ValueError(f'resend must be "never" or "safe", not {self.resend!r}')
        if self.validate not in ("off", "warn", "strict"):
            raise ValueError(f'validate must be "off", "warn" or "strict", not {self.validate!r}')
        for name in ("idle_stop", "ping"):
            span = getattr(self, name)
            if span is not None and not span > 0:
                raise ValueError(f"{name} must be above 0 seconds, not {span!r}")
        if self.ping_misses < 1:
            raise ValueError(f"ping_misses must be at least 1, not {self.ping_misses!r}")
        check_era(self.era)

    @property
    def argv(self) -> tuple[str, ...]:
        """The command with its arguments."""
        return (self.command, *self.args)

    @property
    def address(self) -> str:
        """What may be shown of its URL: no name, password or query; empty if it has none."""
        if self.url is None:
            return ""
        from mcpclient.transports.urls import shown

        return shown(self.url)

    def dial(
        self, loop: Loop, connect: Callable[[ServerSpec], Awaitable[Transport]]
    ) -> Awaitable[Transport] | None:
        """Return what gives a transport for one life, for a server that is reached in a way of its
        own; None: by its command or url. Overridden in :mod:`mcpclient.testing`.

        Args:
            loop: The loop that runs this code.
            connect: Reaches another server in the usual way.
        """
        return None

    def __repr__(self) -> str:
        # Values of variables and headers are secrets more often than not.
        hidden = {
            "env": dict.fromkeys(self.env, "***"),
            "headers": dict.fromkeys(self.headers, "***"),
            "url": self.url and self.address,
        }
        fields = [
            f"{name}={hidden.get(name, value)!r}"
            for name in self.__struct_fields__
            if (value := getattr(self, name)) not in (None, "", (), {})
        ]
        return f"ServerSpec({', '.join(fields)})"


# Checked by hand: a struct checks the types only of what is converted into it.
_KINDS: dict[str, type] = {
    "env": Mapping,
    "inherit_env": bool,
    "restart": RestartPolicy,
    "timeouts": Timeouts,
    "limits": Limits,
    "kill_tree": bool,
}


def _plain(word: Any) -> Any:
    return os.fspath(word) if isinstance(word, os.PathLike) else word


def _check_text(value: object, name: str, *, secret: bool = False) -> None:
    if not isinstance(value, str):
        shown = type(value).__name__ if secret else repr(value)
        raise ValueError(f"{name} must be text, not {shown}")
    if "\0" in value:
        raise ValueError(f"{name} must not hold a null character")


# What a mapping may hold: our fields, and what the files of editors call the transport.
_KEYS = (*ServerSpec.__struct_fields__, "disabled")
_NESTED = {"restart": RestartPolicy, "timeouts": Timeouts, "limits": Limits}
# How msgspec says where something is wrong.
_PLACE = re.compile(r" - at `\$\.?(?P<place>[^`]*)`$")


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


def is_disabled(entry: object, *, key: str = "", path: str = "") -> bool:
    """Return whether an entry says that it is not to be used. Arguments as for :func:`spec_of`.

    Raises:
        ConfigError: It says neither yes nor no.
    """
    said = entry.get("disabled", False) if isinstance(entry, Mapping) else False
    if not isinstance(said, bool):
        raise ConfigError(
            f"must be true or false, not {said!r}", key=_below(key, "disabled"), path=path
        )
    return said


def _from_mapping(entry: Mapping[Any, Any], key: str, path: str) -> ServerSpec:
    _check_keys(entry, _KEYS, key, path)
    command, url = entry.get("command"), entry.get("url")
    if command is None and url is None:
        raise ConfigError(
            '"command" is missing, or "url" for a server that runs elsewhere', key=key, path=path
        )
    if command is not None and url is not None:
        raise ConfigError('give "command" or "url", not both', key=_below(key, "url"), path=path)
    for name, check in (
        ("url", lambda: check_remote(url, {}, None, ())),
        ("type", lambda: kind_of(entry.get("type"), url)),
    ):
        try:
            check()
        except ValueError as problem:
            raise ConfigError(str(problem), key=_below(key, name), path=path) from None
    if isinstance(entry.get("auth"), str):
        raise ConfigError(
            'is a function, given from Python; in a file, write "headers" with ${NAME} for the '
            "secret",
            key=_below(key, "auth"),
            path=path,
        )
    if is_disabled(entry, key=key, path=path):
        raise ConfigError('it is disabled; leave "disabled" out to run it', key=key, path=path)
    for name, struct in _NESTED.items():
        if isinstance(entry.get(name), Mapping):
            _check_keys(entry[name], struct.__struct_fields__, _below(key, name), path)
    fields = {name: value for name, value in entry.items() if name != "disabled"}
    return _made(fields, key, path)


def _made(fields: Mapping[str, Any], key: str, path: str) -> ServerSpec:
    for table in ("env", "headers"):
        members = fields.get(table)
        for name, value in members.items() if isinstance(members, Mapping) else ():
            # By name, which msgspec would not tell; and not the value, which may be a secret.
            if not isinstance(value, str):
                raise ConfigError(
                    f"must be text, not {type(value).__name__}: write it in quotes",
                    key=_below(key, f"{table}.{name}"),
                    path=path,
                )
    plain = {name: _nested(value) for name, value in fields.items() if value is not None}
    try:
        return msgspec.convert(plain, ServerSpec)
    except msgspec.ValidationError as problem:
        place = _PLACE.search(str(problem))
        text = str(problem)[: place.start()] if place else str(problem)
        raise ConfigError(
            text, key=_below(key, place["place"]) if place else key, path=path
        ) from None
    except (ValueError, TypeError) as problem:
        raise ConfigError(str(problem), key=key, path=path) from None


def _nested(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, list | tuple):
        return [_nested(member) for member in value]
    return value


def _below(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _check_keys(entry: Mapping[Any, Any], known: Sequence[str], key: str, path: str) -> None:
    for name in entry:
        if name not in known:
            raise ConfigError(_unknown(name, known), key=_below(key, str(name)), path=path)


def _unknown(name: object, known: Sequence[str]) -> str:
    import difflib  # only for this sentence

    near = difflib.get_close_matches(str(name), known, n=1)
    also = f"; did you mean {near[0]!r}?" if near else f" (known: {', '.join(known)})"
    return f"unknown key {name!r}{also}"
