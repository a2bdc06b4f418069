"""Which servers a command is about: a file's, or the one whose command follows ``--``.

Reads one file and starts nothing. The first of these that exists wins as a whole, nothing is
merged: ``-c``, ``MCPCLIENT_CONFIG``, then the usual places.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcpclient.cli.problems import Failure
from mcpclient.ground.errors import ConfigError
from mcpclient.manager import config
from mcpclient.manager.spec import ServerSpec, is_disabled, spec_of

VARIABLE = "MCPCLIENT_CONFIG"
# In the working folder; an editor's own files, so that a project needs no other.
_HERE = (".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json")
_URL = re.compile(r"(?:https?|unix|tcp):", re.IGNORECASE)
# What runs a program that is named after it.
_LAUNCHERS = re.compile(r"(?:npx|bunx|uvx|pipx|uv|node|deno|bun|docker|sh|bash|env|python[\d.]*)$")
_VERBS = ("run", "exec", "x", "tool")


@dataclass
class Source:
    """Where servers come from.

    Attributes:
        path: The file, or None.
        why: How it was found: ``-c``, the variable's name, ``found``, or ``--`` for a command.
        others: Files that exist in the usual places and were not read.
        table: What the file calls its table of servers.
        entries: All its entries, as written.
        specs: How each server is run, those left out that are disabled or cannot be meant.
        problems: Why an entry cannot be meant, by its name.
        disabled: The names of those that are not to be used.
    """

    path: str | None = None
    why: str = "--"
    others: list[str] = field(default_factory=list)
    table: str = ""
    entries: dict[str, Any] = field(default_factory=dict)
    specs: dict[str, ServerSpec] = field(default_factory=dict)
    problems: dict[str, ConfigError] = field(default_factory=dict)
    disabled: list[str] = field(default_factory=list)

    def chosen(self, names: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names, or those of all servers if none is given.

        Raises:
            Failure: There is none of such a name.
        """
        usable = [name for name in self.entries if name not in self.disabled]
        for name in names:
            if name in self.disabled:
                raise Failure(f'server "{name}" is disabled in {self.path}')
            if name not in usable and _URL.match(name):
                raise Failure(f'"{name}" is a URL: it stands behind the --, at the end')
            if name not in usable:
                raise Failure(unknown("server", name, usable, f"in {self.path}"))
        if not usable:
            raise Failure(f"{self.path} names no server")
        return names or tuple(usable)


def unknown(what: str, name: str, known: list[str], where: str) -> str:
    """Return the sentence about a name that there is not, with the nearest ones."""
    import difflib  # only for this sentence

    near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    hint = f"did you mean {_either(near)}?" if near else f"known: {', '.join(known[:20]) or 'none'}"
    return f'no {what} is named "{name}" {where}; {hint}'


def ad_hoc(words: list[str]) -> Source:
    """Return the one server that a command line ends with: a command, or a URL."""
    if not words:
        raise Failure("nothing follows --: give the server's command or URL")
    name = _named(words)
    entry: Any = words
    if _URL.match(words[0]):
        if len(words) > 1:
            raise Failure(f'"{words[1]}" follows a URL: options and arguments stand before the --')
        entry = {"url": words[0]}
    return Source(entries={name: entry}, specs={name: spec_of(entry, key=name)})


def find(option: str | None, env: Mapping[str, str]) -> tuple[str, str, list[str]]:
    """Return the file that wins, why, and which others exist.

    Raises:
        Failure: There is none, or one that was only come across belongs to somebody else.
    """
    usual = [path for path in places(env) if os.path.exists(path)]
    if option is not None:
        return option, "-c", usual
    if env.get(VARIABLE):
        return env[VARIABLE], VARIABLE, usual
    if not usual:
        raise Failure(
            "no servers: name some in ./.mcp.json or a file given with -c, or give a command, "
            "as in: mcpclient tools -- npx -y some-server"
        )
    _check_owner(usual[0])
    return usual[0], "found", usual[1:]


def places(env: Mapping[str, str]) -> list[str]:
    """Return the usual places, first the one that wins."""
    # A relative path there is to be ignored, says the XDG specification.
    home = env.get("XDG_CONFIG_HOME", "")
    here = [f"./{name}" for name in _HERE]
    try:
        base = Path(home) if home.startswith("/") else Path("~/.config").expanduser()
    except RuntimeError:
        return here  # this user has no home, as in a container that does not know them
    return [*here, str(base / "mcpclient" / "config.json")]


def read(option: str | None, env: Mapping[str, str]) -> Source:
    """Return the servers of the file that wins, each entry judged by itself.

    Args:
        option: The path given with ``-c``, or None.
        env: The variables that entries may refer to.

    Raises:
        ConfigError: The file cannot be read, or is none of this kind.
        Failure: As :func:`find`.
    """
    path, why, others = find(option, env)
    table, entries = config.entries_of(config.read(path), path=path)
    source = Source(path, why, others, table, dict(entries))
    for name, entry in entries.items():
        try:
            if is_disabled(entry, key=f"{table}.{name}", path=path):
                source.disabled.append(name)
            else:
                source.specs |= config.parse({table: {name: entry}}, path=path, env=env)
        except ConfigError as problem:
            source.problems[name] = problem
    return source


def _check_owner(path: str) -> None:
    """Refuse to run what somebody else may have put into our way."""
    found = os.stat(path)
    if found.st_uid not in (os.geteuid(), 0):
        raise Failure(f"{path} belongs to another user; read it, then name it: -c {path}")
    if found.st_mode & stat.S_IWOTH:
        raise Failure(f"{path} can be written by anybody: chmod o-w {path}")


def _named(words: list[str]) -> str:
    """Return a name for a command: that of its program, or of what a launcher runs."""
    if words[0].lower().startswith("unix:"):
        words = [words[0].removesuffix(".sock")]
    elif _URL.match(words[0]):
        host = re.sub(r"^\w+:/*(?:[^/@]*@)?", "", words[0]).split("/")[0].split("?")[0]
        return host or "server"
    plain = [word for word in words if not word.startswith("-")] or words
    if _LAUNCHERS.search(plain[0].rsplit("/", 1)[-1]):
        plain = [word for word in plain[1:] if word not in _VERBS] or plain
    name = re.sub(r"(?<=.)@.*$|\.(?:py|js|mjs|ts|sh)$", "", plain[0].rstrip("/").rsplit("/", 1)[-1])
    return name if name and name.isprintable() else "server"


def _either(names: list[str]) -> str:
    return " or ".join(f'"{name}"' for name in names)
