"""What a server lists, kept until it may have changed, for whoever must not wait.

Works over a server of the async manager and over one of the blocking manager: what is done is
written once, as a coroutine. Where the verbs do not await, it never waits and is run to its end
on the spot.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Coroutine
from typing import Any, TypeVar

from msgspec import Struct

from mcpclient import loops
from mcpclient.ground.errors import LocalProtocolError, McpClientError
from mcpclient.protocol.types import Item
from mcpclient.repl import person

T = TypeVar("T")

# How long a person who presses Tab is kept waiting, and for how long a server that did not answer
# then is not asked again.
PATIENCE = 2.0
_PAUSE = 5.0

# Each kind of list: the verb that reads it, and what it is known by.
VERBS = {
    "tools": ("list_tools", "name"),
    "prompts": ("list_prompts", "name"),
    "resources": ("list_resources", "uri"),
    "templates": ("list_resource_templates", "uri_template"),
}
# Which lists a notice makes old.
NOTICES = {
    "notifications/tools/list_changed": ("tools",),
    "notifications/prompts/list_changed": ("prompts",),
    "notifications/resources/list_changed": ("resources", "templates"),
}


class _Kept(Struct):
    items: dict[str, Any]
    generation: int
    fresh: bool = True


class Lists:
    """The lists of one server.

    Attributes:
        server: The server of the manager.
        awaits: Whether its verbs are to be awaited.
    """

    def __init__(self, server: Any) -> None:
        self.server = server
        self.awaits = inspect.iscoroutinefunction(server.list_tools)
        self._kept: dict[str, _Kept] = {}
        self._notices = dict.fromkeys(VERBS, 0)
        self._asking: set[str] = set()
        self._silent_until = 0.0

    def run(self, work: Coroutine[Any, Any, T]) -> Any:
        """Return the coroutine where one awaits, else what it returns."""
        if self.awaits:
            return work
        try:
            work.send(None)
        except StopIteration as end:
            return end.value
        finally:
            work.close()
        raise AssertionError("a verb of the blocking face waited for a loop")

    async def ask(self, verb: str, *args: Any, **options: Any) -> Any:
        """Call a verb of the server, whichever its face."""
        answer = getattr(self.server, verb)(*args, **options)
        return await answer if self.awaits else answer

    def changed(self, kinds: tuple[str, ...]) -> None:
        """Take note that lists are old. May be called from any thread."""
        for kind in kinds:
            self._notices[kind] += 1
            if (kept := self._kept.get(kind)) is not None:
                kept.fresh = False

    def kept(self, kind: str) -> dict[str, Any] | None:
        """Return a list as it was last read, old or not, by what its items are known by."""
        kept = self._kept.get(kind)
        return None if kept is None else kept.items

    def fresh(self, kind: str) -> dict[str, Any] | None:
        """Return a list if nothing says that it may have changed since."""
        kept = self._kept.get(kind)
        if kept is None or not kept.fresh or kept.generation != self.server.generation:
            return None
        return kept.items

    async def read(self, kind: str, *, cache: str = "use", **options: Any) -> dict[str, Any]:
        """Return a list, asking the server if it may have changed. Raises as the verb does."""
        known = self.fresh(kind)
        if known is not None and cache == "use":
            return known
        verb, key = VERBS[kind]
        before = self._notices[kind]
        found: list[Item] = await self.ask(verb, cache=cache, **options)
        items = {getattr(item, key): item for item in found}
        # A notice that came meanwhile makes it old before it is kept.
        fresh = before == self._notices[kind]
        self._kept[kind] = _Kept(items, self.server.generation, fresh)
        return items

    def soon(self, kind: str) -> dict[str, Any]:
        """Return a list for someone who must not wait long, and never an error.

        The blocking face is asked for at most ``PATIENCE`` seconds. With the async one the
        server is asked aside, for the next time.
        """
        known = self.fresh(kind)
        if known is None and time.monotonic() >= self._silent_until:
            try:
                if self.awaits:
                    self._ask_aside(kind)
                else:
                    with person.unasked(self.server):
                        self.run(self.read(kind, timeout=PATIENCE))
            except McpClientError:
                self._silent_until = time.monotonic() + _PAUSE
        return self.kept(kind) or {}

    def values(self, ref: Any, argument: str, typed: str, context: dict[str, str]) -> list[str]:
        """Return what the server offers for an argument, for someone who must not wait long."""
        if self.awaits or time.monotonic() < self._silent_until:
            return []  # nobody here can wait for a loop
        try:
            asked = self.ask("complete", ref, argument, typed, context=context, timeout=PATIENCE)
            with person.unasked(self.server):
                found: list[str] = self.run(asked).values
        except McpClientError:
            self._silent_until = time.monotonic() + _PAUSE
            return []
        return found

    def _ask_aside(self, kind: str) -> None:
        if kind in self._asking:
            return
        try:
            loop = loops.current()
        except LocalProtocolError:
            return  # at a prompt between two cells no loop runs

        async def ask() -> None:
            try:
                await self.read(kind)
            except McpClientError:
                self._silent_until = time.monotonic() + _PAUSE
            finally:
                self._asking.discard(kind)

        self._asking.add(kind)
        loop.job(ask, f"lists of {self.server.name}")
