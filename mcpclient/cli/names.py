"""What servers offer by name, kept on disk, so that a shell completes it without starting any.

Written when lists are fetched. One small file for each entry as it stands in its configuration,
variables not filled in: no secret is written, and none is needed to find it.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mcpclient.cli import safe
from mcpclient.cli.schema import arguments

if TYPE_CHECKING:
    from mcpclient.protocol.types import Prompt, Resource, ResourceTemplate, Tool

# What one file keeps, and how many files there are; nobody completes among more.
_ITEMS = 1000
_BYTES = 4 * 1024 * 1024
_FILES = 200


def folder(env: Mapping[str, str]) -> Path:
    """Return where the files are.

    Raises:
        OSError: This user has no home.
    """
    home = env.get("XDG_CACHE_HOME", "")
    if home.startswith("/"):
        base = Path(home)
    else:
        try:
            base = Path("~/.cache").expanduser()
        except RuntimeError as lacking:  # as in a container, for a user it does not know
            raise FileNotFoundError(str(lacking)) from None
    return base / "mcpclient"


def path_of(name: str, entry: Any, env: Mapping[str, str]) -> Path:
    """Return the file of one server."""
    text = json.dumps([name, entry], sort_keys=True, default=str)
    return folder(env) / f"{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:32]}.json"


def load(name: str, entry: Any, env: Mapping[str, str]) -> dict[str, Any]:
    """Return what is known of a server: ``tools``, ``prompts``, ``resources``, ``templates``.

    Nothing if nothing is known, or if what is written cannot be read.
    """
    try:
        with open(path_of(name, entry, env), "rb") as file:
            found = json.loads(file.read(_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def store(name: str, entry: Any, env: Mapping[str, str], **lists: Sequence[Any]) -> None:
    """Keep lists that were just fetched, beside those that are known. Never raises."""
    try:
        path = path_of(name, entry, env)
    except OSError:
        return
    known = load(name, entry, env)
    fresh = {kind: [_ITEM[kind](one) for one in items[:_ITEMS]] for kind, items in lists.items()}
    if all(known.get(kind) == items for kind, items in fresh.items()):
        return
    data = json.dumps({**known, **fresh}).encode()
    if len(data) > _BYTES:
        return
    with contextlib.suppress(OSError):  # a home that cannot be written costs only completion
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd, draft = tempfile.mkstemp(dir=path.parent, suffix=".new")
        try:
            with os.fdopen(fd, "wb") as file:
                file.write(data)
            os.replace(draft, path)  # a shell that reads at this moment reads the whole old one
        except OSError:
            os.unlink(draft)
            raise
        _prune(path.parent)


def _prune(place: Path) -> None:
    files = sorted(place.glob("*.json"), key=lambda one: one.stat().st_mtime)
    for one in files[:-_FILES]:
        one.unlink(missing_ok=True)


def _tool(tool: Tool) -> dict[str, Any]:
    listed = arguments(tool.input_schema)[:100]
    return {
        "name": tool.name,
        "help": _help(tool.description or tool.label),
        "arguments": [
            {
                "name": one.name,
                "sign": ":=" if one.verbatim else "=",
                "many": one.many,
                "values": _values(one.choices, one.types),
                "help": _help(one.description),
            }
            for one in listed
        ],
    }


def _values(choices: Sequence[Any], types: frozenset[str]) -> list[str]:
    if not choices and types and types <= {"boolean", "null"}:
        return ["true", "false"]
    return [one if isinstance(one, str) else json.dumps(one) for one in choices]


def _prompt(prompt: Prompt) -> dict[str, Any]:
    return {
        "name": prompt.name,
        "help": _help(prompt.description or prompt.title or ""),
        "arguments": [
            {"name": one.name, "sign": "=", "help": _help(one.description or one.title or "")}
            for one in prompt.arguments or ()
        ],
    }


def _resource(resource: Resource) -> dict[str, Any]:
    return {"name": resource.uri, "help": _help(resource.title or resource.name)}


def _template(template: ResourceTemplate) -> dict[str, Any]:
    return {"name": template.uri_template, "help": _help(template.title or template.name)}


def _help(text: str) -> str:
    return safe.brief(text, 80)


_ITEM: dict[str, Any] = {
    "tools": _tool,
    "prompts": _prompt,
    "resources": _resource,
    "templates": _template,
}
