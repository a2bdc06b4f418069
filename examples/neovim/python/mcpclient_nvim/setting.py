"""Which servers the editor runs, from what was given to ``setup``. Starts nothing.

A project's own file is read only if it is named: opening an editor in a folder that somebody else
wrote must not make it run their commands.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpclient import ConfigError
from mcpclient.cli.problems import Failure
from mcpclient.cli.sources import VARIABLE, read
from mcpclient.ground.text import printable
from mcpclient.manager import config

if TYPE_CHECKING:
    from mcpclient import ServerSpec

_NONE = 'no servers: name some by require("mcpclient").setup{servers = {…}}, or a file by config = '
# Tables that Lua, if they are empty, cannot tell from lists.
_TABLES = ("env", "headers", "restart", "timeouts", "limits")


class Setting:
    """What was set up.

    Attributes:
        specs: How each server is run.
        roots: What servers may be told of folders, or None.
        broken: Why others cannot be run, by name.
        failure: Why there are none at all, or None.
    """

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        """Read the options, and the file that they name.

        Args:
            options: ``servers``, a table as in a file; or ``config``, a path; ``roots``, a list.
        """
        self.specs: dict[str, ServerSpec] = {}
        self.broken: dict[str, str] = {}
        self.failure: Failure | None = None
        options = options or {}
        self.roots: list[str] | None = options.get("roots") or None
        try:
            if options.get("servers"):
                self._take(options["servers"])
            else:
                self._read(options.get("config"))
        except (ConfigError, Failure) as problem:
            self.failure = Failure(str(problem))

    @property
    def problems(self) -> list[str]:
        """What is wrong, one line each."""
        found = [] if self.failure is None else [str(self.failure)]
        return [printable(one) for one in [*found, *self.broken.values()]]

    def _take(self, servers: dict[str, Any]) -> None:
        for name, entry in sorted(servers.items()):  # Lua's tables have no order
            if isinstance(entry, dict):
                entry = {
                    key: {} if key in _TABLES and value == [] else value
                    for key, value in entry.items()
                }
            try:
                self.specs |= config.parse({"servers": {name: entry}})
            except ConfigError as problem:
                self.broken[name] = str(problem)

    def _read(self, path: str | None) -> None:
        if path is None:
            path = os.environ.get(VARIABLE) or str(_home() / "mcpclient" / "config.json")
            if not os.path.exists(path):
                raise Failure(f'{_NONE}"…"')
        source = read(os.path.expanduser(path), os.environ)
        self.specs = source.specs
        self.broken = {name: str(problem) for name, problem in source.problems.items()}


def _home() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME", "")
    return Path(home) if home.startswith("/") else Path("~/.config").expanduser()
