"""What a server offers of one kind, by name: tools, prompts, templates, resources.

Behind a dot stand Python's names, in brackets the server's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mcpclient.ground.errors import McpClientError
from mcpclient.ground.text import printable, size
from mcpclient.repl import schema
from mcpclient.repl.functions import PromptFunction, ReadFunction, TemplateFunction, ToolFunction
from mcpclient.repl.lists import Lists
from mcpclient.repl.mistakes import NoSuchKey, NoSuchName
from mcpclient.repl.names import identifier, identifiers, nearest
from mcpclient.repl.tables import Table, first_line

# How long a table that is shown waits for its list, in seconds; a call waits as long as it says.
_PATIENCE = 20.0


class Explored:
    """What completion may look into: to do so runs no code of anybody else."""

    def _names(self) -> list[str]:
        """Return what may stand behind a dot; it may ask, but not for long."""
        return [name for name in dir(self) if not name.startswith("_")]

    def _keys(self) -> list[str]:
        """Return what may stand in brackets; it may ask, but not for long."""
        return []

    def _attribute(self, name: str) -> Any:
        """Return what is behind a dot, if it is of this package; as :meth:`_names`."""
        return vars(self).get(name)

    def _item(self, key: str) -> Any:
        """Return what is in brackets, if it is of this package; as :meth:`_keys`."""
        return None


class Collection(Explored):
    """What a server offers of one kind, by name. It has no names of its own that could clash."""

    _kind = ""
    _head: tuple[str, ...] = ()

    def __init__(self, lists: Lists, path: str) -> None:
        self._lists = lists
        self._path = path

    def __getattr__(self, name: str) -> Any:
        # A name with an underscore is asked for by the shells, and would be answered by a tool.
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__} has no {name!r}")
        known = self._listed()
        if known is None:
            return self._made(f"{self._path}.{name}", name)
        words = identifiers(known)
        if name not in words:
            raise NoSuchName(
                f"{printable(self._lists.server.name)} has no {self._kind[:-1]} "
                f"{printable(name, 200)!r}{nearest(name, words)}"
            )
        return self._made(f"{self._path}.{name}", words[name])

    def __getitem__(self, name: str) -> Any:
        known = self._listed()
        if known is not None and name not in known:
            raise NoSuchKey(
                f"{printable(self._lists.server.name)} has no {self._kind[:-1]} "
                f"{printable(str(name), 200)!r}{nearest(str(name), known)}"
            )
        return self._made(f"{self._path}.{identifier(name)}", name)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._listed() or ()))

    def __len__(self) -> int:
        return len(self._listed() or ())

    def __contains__(self, name: object) -> bool:
        return name in (self._listed() or ())

    def __dir__(self) -> list[str]:
        return self._names()

    def __repr__(self) -> str:
        return str(self._table())

    def _repr_html_(self) -> str:
        return self._table().html()

    def _ipython_key_completions_(self) -> list[str]:
        return self._keys()

    def _names(self) -> list[str]:
        found = identifiers(self._lists.soon(self._kind))
        return [name for name in found if not name.startswith("_")]

    def _keys(self) -> list[str]:
        return list(self._lists.soon(self._kind))

    def _attribute(self, name: str) -> Any:
        wire = identifiers(self._lists.soon(self._kind)).get(name)
        return None if wire is None else self._made(f"{self._path}.{name}", wire)

    def _item(self, key: str) -> Any:
        known = self._lists.soon(self._kind)
        return self._made(f"{self._path}.{identifier(key)}", key) if key in known else None

    def _listed(self) -> dict[str, Any] | None:
        """Return the list: read now where that can be waited for, else as far as it is known."""
        lists = self._lists
        if lists.awaits:
            lists.soon(self._kind)
            return lists.fresh(self._kind)
        found: dict[str, Any] = lists.run(lists.read(self._kind))
        return found

    def _made(self, path: str, wire: str) -> Any:
        raise NotImplementedError

    def _table(self) -> Table:
        lists, title = self._lists, f"{self._kind} of {self._lists.server.name}"
        if lists.awaits:
            known = lists.soon(self._kind) if lists.kept(self._kind) is None else None
            known = known or lists.kept(self._kind)
            if known is None:
                name = printable(self._path.rpartition(".")[0])
                return Table(title, (), [], f"not read yet: await {name}.refresh()")
        else:
            try:
                known = lists.run(lists.read(self._kind, timeout=_PATIENCE))
            except McpClientError as problem:
                return Table(title, (), [], str(problem))
        words = {wire: word for word, wire in identifiers(known).items()}
        rows = [self._row(words[wire], item) for wire, item in known.items()]
        return Table(title, self._head, rows, "" if rows else "none")

    def _row(self, word: str, item: Any) -> tuple[object, ...]:
        raise NotImplementedError


class Tools(Collection):
    """The tools of a server."""

    _kind = "tools"
    _head = ("tool", "arguments", "description")

    def _made(self, path: str, wire: str) -> ToolFunction:
        return ToolFunction(self._lists, path, wire)

    def _row(self, word: str, item: Any) -> tuple[object, ...]:
        arguments = _arguments(schema.of_schema(item.input_schema))
        return (_called(word, item.name), arguments, first_line(item.description or item.title))


class Prompts(Collection):
    """The prompts of a server."""

    _kind = "prompts"
    _head = ("prompt", "arguments", "description")

    def _made(self, path: str, wire: str) -> PromptFunction:
        return PromptFunction(self._lists, path, wire)

    def _row(self, word: str, item: Any) -> tuple[object, ...]:
        arguments = _arguments(schema.of_prompt(item))
        return (_called(word, item.name), arguments, first_line(item.description or item.title))


class Templates(Collection):
    """The families of resources of a server, by template: ``templates["file:///{path}"](path=…)``."""

    _kind = "templates"
    _head = ("template", "type", "description")

    def _made(self, path: str, wire: str) -> TemplateFunction:
        return TemplateFunction(self._lists, path, wire)

    def _names(self) -> list[str]:
        return []

    def _row(self, word: str, item: Any) -> tuple[object, ...]:
        return (item.uri_template, item.mime_type, first_line(item.description or item.title))


class Resources(Collection):
    """The resources of a server: ``resources[uri]`` reads one, listed or not."""

    _kind = "resources"
    _head = ("resource", "name", "type", "size", "description")

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f'resources are read by their URI in brackets: resources["…"], '
            f"not .{printable(name, 100)}"
        )

    def __getitem__(self, uri: str) -> Any:
        return ReadFunction(self._lists, self._path)(uri)

    def _names(self) -> list[str]:
        return []

    def _item(self, key: str) -> Any:
        return None  # it would be read

    def _row(self, word: str, item: Any) -> tuple[object, ...]:
        weight = size(item.size) if isinstance(item.size, int) and item.size >= 0 else None
        told = first_line(item.description or item.title)
        return (item.uri, item.name, item.mime_type, weight, told)


def _called(word: str, wire: str) -> str:
    return f'["{wire}"]' if word.startswith("_") else word


def _arguments(parameters: schema.Parameters) -> str:
    """Return the arguments without types: there is a table around them, and help has all."""
    parts = [one.name if one.required else f"[{one.name}]" for one in parameters.listed]
    return " ".join([*parts, *(["…"] if parameters.open else [])])
