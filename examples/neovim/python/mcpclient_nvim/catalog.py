"""What one server offers, as far as completion needs it: read in the background, shown at once.

Names that cannot be typed, since they hold control characters, are left out.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from mcpclient.cli.schema import arguments

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.handles import Handle, Server

# Nobody completes among more.
_MOST = 2000


class Catalog:
    """The lists of one server as they were read last."""

    def __init__(self, server: Server, tell: Callable[[], None]) -> None:
        """Begin with nothing known.

        Args:
            server: The server.
            tell: Called when there is something new.
        """
        self._server = server
        self._tell = tell
        self._known: dict[str, list[Any]] = {}
        self._missing = 0
        self._again = False

    def read(self) -> None:
        """Read all lists; while they are being read, once more afterwards."""
        if self._missing:
            self._again = True
            return
        server = self._server
        lists: dict[str, Handle[Any]] = {
            "tools": server.list_tools(),
            "prompts": server.list_prompts(),
            "resources": server.list_resources(),
            "templates": server.list_resource_templates(),
        }
        self._missing = len(lists)
        for name, handle in lists.items():
            handle.add_done_callback(partial(self._was_read, name))

    def shown(self) -> dict[str, list[Any]]:
        """Return what is known: ``tools`` and ``prompts`` with their arguments, ``uris``."""
        known = self._known
        return {
            "tools": [
                {"name": one.name, "arguments": list(map(_argument, arguments(one.input_schema)))}
                for one in known.get("tools", ())
            ],
            "prompts": [
                {"name": one.name, "arguments": [each.name for each in one.arguments or ()]}
                for one in known.get("prompts", ())
            ],
            "uris": [
                *(one.uri for one in known.get("resources", ())),
                *(one.uri_template for one in known.get("templates", ())),
            ],
        }

    def _was_read(self, name: str, handle: Handle[Any]) -> None:
        # A list that cannot be had leaves what was known: the command itself says what is wrong.
        if handle.exception() is None:
            named = [one for one in handle.result() if _name(one).isprintable()]
            self._known[name] = named[:_MOST]
        self._missing -= 1
        if not self._missing:
            self._tell()
            if self._again:
                self._again = False
                self.read()


def _name(one: Any) -> str:
    for attribute in ("uri", "uri_template"):
        if (found := getattr(one, attribute, None)) is not None:
            return str(found)
    return str(one.name)


def _argument(one: Any) -> dict[str, Any]:
    choices = one.choices or (one.item.choices if one.many and one.item else ())
    return {
        "name": one.name,
        "sign": ":=" if one.verbatim else "=",
        "text": not one.types or "string" in one.types,
        "many": one.many,
        "choices": [
            choice if isinstance(choice, str) else str(choice).lower()
            for choice in (choices or ((True, False) if one.types == {"boolean"} else ()))
        ],
    }
