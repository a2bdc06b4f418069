"""Files that name servers, as editors write them, read into specs. Starts nothing.

``{"mcpServers": {name: entry}}`` and VS Code's ``{"servers": {name: entry}}``, comments and
trailing commas allowed. In any text of an entry ``${VAR}``, ``${env:VAR}`` and
``${VAR:-default}`` stand for variables of the environment.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mcpclient.ground.errors import ConfigError
from mcpclient.manager.spec import ServerSpec, is_disabled, spec_of

_TABLES = ("mcpServers", "servers")
# Text first, so that what looks like a comment inside it is left alone.
_COMMENT = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r'"(?:[^"\\\n]|\\.)*"|,(?=\s*[}\]])')
_VARIABLE = re.compile(r"\$\{(?P<kind>env:)?(?P<name>[^}:]*)(?P<rest>:-[^}]*|:[^}]*)?\}")


def load(
    path: str | os.PathLike[str], env: Mapping[str, str] | None = None
) -> dict[str, ServerSpec]:
    """Return the servers that a file names, without those it disables.

    Args:
        path: A JSON file.
        env: The variables; the process's own if not given.

    Raises:
        ConfigError: The file cannot be read, or an entry cannot be meant; the text names the
            file, the key and the next step.
    """
    return parse(read(path), path=os.fspath(path), env=env)


def read(path: str | os.PathLike[str]) -> object:
    """Return what a file says, comments and trailing commas left out. Errors as :func:`load`."""
    name = os.fspath(path)
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as problem:
        raise ConfigError(f"the file cannot be read: {problem.strerror}", path=name) from None
    except UnicodeDecodeError:
        raise ConfigError("the file is not UTF-8", path=name) from None
    try:
        # Comments become blanks, newlines stay: the places in error messages are right.
        return json.loads(_strip(text))
    except (ValueError, RecursionError) as problem:
        raise ConfigError(f"the file is not JSON: {problem}", path=name) from None


def parse(
    document: object, *, path: str = "", env: Mapping[str, str] | None = None
) -> dict[str, ServerSpec]:
    """Return the servers that a document names. Arguments and errors as for :func:`load`."""
    variables = os.environ if env is None else env
    table, entries = entries_of(document, path=path)
    specs = {}
    for name, entry in entries.items():
        key = f"{table}.{name}"
        if is_disabled(entry, key=key, path=path):
            continue
        specs[name] = spec_of(_expanded(entry, variables, key, path), key=key, path=path)
    return specs


def entries_of(document: object, *, path: str = "") -> tuple[str, Mapping[str, Any]]:
    """Return the name of a document's table of servers, and its entries as they are written.

    Raises:
        ConfigError: It has none, or two.
    """
    if not isinstance(document, Mapping):
        raise ConfigError('the file must hold an object with "mcpServers"', path=path)
    named = [table for table in _TABLES if table in document]
    if len(named) != 1:
        problem = "both" if named else "neither"
        raise ConfigError(
            f'the file has {problem} of "mcpServers" and "servers"; it needs one', path=path
        )
    table = named[0]
    entries = document[table]
    if not isinstance(entries, Mapping):
        raise ConfigError("must be an object of servers by name", key=table, path=path)
    return table, entries


def variables_of(entry: object) -> dict[str, str | None]:
    """Return the variables that an entry refers to, each with its default if it gives one."""
    if isinstance(entry, str):
        return {
            found["name"]: rest[2:] if (rest := found["rest"] or "").startswith(":-") else None
            for found in _VARIABLE.finditer(entry)
        }
    members: Iterable[object] = ()
    if isinstance(entry, Mapping):
        members = entry.values()
    elif isinstance(entry, list):
        members = entry
    return {name: text for member in members for name, text in variables_of(member).items()}


def _expanded(value: Any, env: Mapping[str, str], key: str, path: str) -> Any:
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _variable(found, env, key, path), value)
    if isinstance(value, Mapping):
        return {
            name: _expanded(member, env, f"{key}.{name}", path) for name, member in value.items()
        }
    if isinstance(value, list):
        return [
            _expanded(member, env, f"{key}[{place}]", path) for place, member in enumerate(value)
        ]
    return value


def _variable(found: re.Match[str], env: Mapping[str, str], key: str, path: str) -> str:
    name, rest = found["name"], found["rest"] or ""
    if rest and not rest.startswith(":-"):
        raise ConfigError(
            f"{found.group()} cannot be resolved here: only variables of the environment can, "
            f"as ${{NAME}}, ${{env:NAME}} or ${{NAME:-default}}",
            key=key,
            path=path,
        )
    # As in a shell, :- also replaces a variable that is set to nothing.
    if name in env and (env[name] or not rest):
        return env[name]
    if rest:
        return rest[2:]
    raise ConfigError(
        f"the variable {name!r} is not set; set it, or write ${{{name}:-default}}",
        key=key,
        path=path,
    )


def _strip(text: str) -> str:
    """Return JSON without comments and trailing commas, each replaced by blanks."""

    def blanked(found: re.Match[str]) -> str:
        part = found.group()
        return part if part[0] == '"' else re.sub(r"[^\n]", " ", part)

    return _TRAILING.sub(blanked, _COMMENT.sub(blanked, text))
