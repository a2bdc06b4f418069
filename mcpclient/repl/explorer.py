"""Servers as Python objects: tools, prompts and resources behind a dot or in brackets.

A thin layer over a manager, asynchronous or blocking: it sends nothing that a verb would not.
Nothing here prints, and none of it knows which prompt it stands in.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from mcpclient.ground.text import printable
from mcpclient.repl.functions import ReadFunction
from mcpclient.repl.lists import NOTICES, VERBS, Lists
from mcpclient.repl.mistakes import NoSuchKey, NoSuchName
from mcpclient.repl.names import identifiers, nearest
from mcpclient.repl.offered import Explored, Prompts, Resources, Templates, Tools
from mcpclient.repl.tables import Table, first_line


class Explorer(Explored):
    """One server: its tools, prompts, resources and templates, and all verbs of the library.

    What is not named here is the server's own: ``git.state``, ``git.restart()``, ``git.incidents``,
    ``git.invoke_tool(…)``.

    Attributes:
        tools: ``git.tools.git_status(repo_path=".")``, or ``git.tools["git_status"]``.
        prompts: ``git.prompts.review(code="…")``.
        resources: ``git.resources["file:///a.txt"]`` reads it.
        templates: ``git.templates["file:///{path}"](path="a.txt")`` reads it.
        read: ``git.read("file:///a.txt")`` reads it.
        server: The server of the manager.
    """

    def __init__(self, server: Any, path: str) -> None:
        """Made by :func:`~mcpclient.repl.explore`; nothing is asked.

        Args:
            server: A server of an open manager, asynchronous or blocking.
            path: How it is written in Python.
        """
        self.server = server
        self._lists = Lists(server)
        self._path = path
        self.tools = Tools(self._lists, f"{path}.tools")
        self.prompts = Prompts(self._lists, f"{path}.prompts")
        self.resources = Resources(self._lists, f"{path}.resources")
        self.templates = Templates(self._lists, f"{path}.templates")
        self.read = ReadFunction(self._lists, f"{path}.read")

    def refresh(self) -> Any:
        """Read all its lists anew; over the async manager this is to be awaited."""
        return self._lists.run(self._refresh())

    async def _refresh(self) -> None:
        for kind in VERBS:
            await self._lists.read(kind, cache="refresh")

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return getattr(self.server, name)
        except AttributeError:
            known = self._names()
            raise NoSuchName(
                f"{self._path} has no {printable(name, 100)!r}{nearest(name, known)}"
            ) from None

    def __dir__(self) -> list[str]:
        own = [name for name in vars(self) if not name.startswith("_")]
        verbs = [name for name in dir(self.server) if not name.startswith("_")]
        return sorted({*own, "refresh", *verbs})

    def _names(self) -> list[str]:
        return self.__dir__()

    def __repr__(self) -> str:
        return str(self._table())

    def _repr_html_(self) -> str:
        return self._table().html()

    def _table(self) -> Table:
        server, info = self.server, self.server.info
        said = " ".join(str(info[word]) for word in ("name", "version") if info.get(word))
        rows: list[tuple[object, ...]] = [("state", server.state)]
        if said:
            rows.append(("server", said))
        if server.protocol_version:
            rows.append(("protocol", f"{server.protocol_version} ({server.era})"))
        for kind in VERBS:
            if (known := self._lists.kept(kind)) is not None:
                rows.append((kind, len(known)))
        if server.instructions:
            rows.append(("says", first_line(server.instructions)))
        return Table(f'server "{server.name}"', ("", ""), rows)


class Servers(Explored):
    """All servers of a manager, by name: ``servers.git`` or ``servers["git"]``. Shown, a table."""

    def __init__(self, manager: Any) -> None:
        """Made by :func:`~mcpclient.repl.explore`; nothing is asked.

        Args:
            manager: An open manager, asynchronous or blocking.
        """
        self._manager = manager
        self._made: dict[str, Explorer] = {}
        # Not to be held by a manager that outlives it: a notebook explores again and again.
        mine = weakref.ref(self)

        def listen(method: str) -> None:
            def changed(server: Any, params: Any) -> None:
                if (here := mine()) is None:
                    manager.off_notification(token)
                elif (explorer := here._made.get(server.name)) is not None:
                    explorer._lists.changed(NOTICES[method])

            token = manager.on_notification(method, changed)

        for method in NOTICES:
            listen(method)

    def __getitem__(self, name: str) -> Explorer:
        if name not in self._manager:
            raise NoSuchKey(f"no server is named {name!r}{nearest(str(name), self._manager)}")
        server = self._manager[name]
        known = self._made.get(name)
        # One that was removed and added again is another.
        if known is None or known.server is not server:
            words = {wire: word for word, wire in identifiers(self._manager).items()}
            known = self._made[name] = Explorer(server, words[name])
        return known

    def __getattr__(self, name: str) -> Explorer:
        if name.startswith("_"):
            raise AttributeError(f"Servers has no {name!r}")
        words = identifiers(self._manager)
        if name not in words:
            raise NoSuchName(f"no server is named {name!r}{nearest(name, words)}")
        return self[words[name]]

    def __iter__(self) -> Iterator[str]:
        return iter(self._manager)

    def __len__(self) -> int:
        return len(self._manager)

    def __contains__(self, name: object) -> bool:
        return name in self._manager

    def __dir__(self) -> list[str]:
        return self._names()

    def __repr__(self) -> str:
        return str(self._table())

    def _repr_html_(self) -> str:
        return self._table().html()

    def _ipython_key_completions_(self) -> list[str]:
        return self._keys()

    def _names(self) -> list[str]:
        return [name for name in identifiers(self._manager) if not name.startswith("_")]

    def _keys(self) -> list[str]:
        return list(self._manager)

    def _attribute(self, name: str) -> Any:
        wire = identifiers(self._manager).get(name)
        return None if wire is None else self[wire]

    def _item(self, key: str) -> Any:
        return self[key] if key in self._manager else None

    def _table(self) -> Table:
        head = ("server", "state", "protocol", "life", "restarts", "calls", "last incident")
        rows = [
            (
                one.name,
                one.state,
                f"{one.version} ({one.era})" if one.version else None,
                one.generation,
                one.restarts,
                one.calls,
                one.last_incident,
            )
            for one in self._manager.status().servers
        ]
        return Table("", head, rows, "" if rows else "no servers")
