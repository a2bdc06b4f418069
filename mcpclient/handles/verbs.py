"""What can be asked of a server, by a host that cannot wait. Each verb is the async one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import UNSET

from mcpclient.engine.facts import documented_as
from mcpclient.handles.operation import Operation
from mcpclient.handles.subscription import Subscription
from mcpclient.manager.verbs import Verbs as Original

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcpclient.connection.caller import Timeout
    from mcpclient.connection.progress import Progress
    from mcpclient.features.completion import Ref
    from mcpclient.handles.handle import Handle
    from mcpclient.handles.manager import Manager
    from mcpclient.protocol.types import (
        Completion,
        Prompt,
        PromptResult,
        Resource,
        ResourceResult,
        ResourceTemplate,
        Tool,
        ToolResult,
    )

T = TypeVar("T")


@documented_as(Original)
class Verbs:
    """The verbs of one server. Each returns a handle at once.

    Arguments are copied: the caller may change them afterwards. What is wrong with them is told by
    the handle, as is everything else; a handler of progress is called in ticks.
    """

    def __init__(self, home: Manager, name: str, find: Callable[[], Original]) -> None:
        """Made by a server.

        Args:
            home: The manager.
            name: The server's name.
            find: Returns the async verbs, on the manager's thread.
        """
        self._home = home
        self._name = name
        self._find_verbs = find

    @property
    def name(self) -> str:
        return self._name

    def _begin(self, verb: str, work: Callable[[Original], Awaitable[T]]) -> Handle[T]:
        return self._home._begin(verb, lambda: work(self._find_verbs()), self.name)

    def _teller(self, on_progress: Progress | None) -> Progress | None:
        return None if on_progress is None else self._home._mail.teller(on_progress)

    def invoke_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> Handle[ToolResult]:
        given, tell = _copied(arguments), self._teller(on_progress)
        return self._begin(
            "invoke_tool",
            lambda verbs: verbs.invoke_tool(name, given, timeout=timeout, on_progress=tell),
        )

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> Handle[ToolResult]:
        given, tell = _copied(arguments), self._teller(on_progress)
        return self._begin(
            "call_tool",
            lambda verbs: verbs.call_tool(name, given, timeout=timeout, on_progress=tell),
        )

    def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> Handle[Operation]:
        given, tell = _copied(arguments), self._teller(on_progress)

        async def start(verbs: Original) -> Operation:
            started = await verbs.start_tool(
                name, given, ttl=ttl, timeout=timeout, on_progress=tell
            )
            return Operation(self._home, started)

        return self._begin("start_tool", start)

    def operation(self, id: str) -> Handle[Operation]:
        async def pick_up(verbs: Original) -> Operation:
            return Operation(self._home, verbs.operation(id))

        return self._begin("operation", pick_up)

    def list_operations(self, *, timeout: Timeout = UNSET) -> Handle[list[Operation]]:
        async def listed(verbs: Original) -> list[Operation]:
            found = await verbs.list_operations(timeout=timeout)
            return [Operation(self._home, one) for one in found]

        return self._begin("list_operations", listed)

    def read_resource(
        self,
        uri: str,
        *,
        cache: str = "use",
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> Handle[ResourceResult]:
        tell = self._teller(on_progress)
        return self._begin(
            "read_resource",
            lambda verbs: verbs.read_resource(uri, cache=cache, timeout=timeout, on_progress=tell),
        )

    def invalidate_resource(self, uri: str) -> Handle[None]:
        async def invalidate(verbs: Original) -> None:
            verbs.invalidate_resource(uri)

        return self._begin("invalidate_resource", invalidate)

    def subscribe(self, uri: str, *, timeout: Timeout = UNSET) -> Subscription:
        """Follow a resource: ``subscribe(uri).open()``, or ``async with`` where a loop runs.

        Opening takes until the server agreed, within ``timeout`` seconds; what the server then
        says has changed is dropped from the cache first. The subscription lives on over restarts
        of the server.
        """
        return Subscription(
            self._home,
            self.name,
            uri,
            lambda: self._find_verbs().subscribe(uri, timeout=timeout),
        )

    def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: Timeout = UNSET,
    ) -> Handle[PromptResult]:
        given = _copied(arguments)
        return self._begin(
            "get_prompt", lambda verbs: verbs.get_prompt(name, given, timeout=timeout)
        )

    def complete(
        self,
        ref: Ref,
        argument: str,
        value: str,
        *,
        context: Mapping[str, str] | None = None,
        timeout: Timeout = UNSET,
    ) -> Handle[Completion]:
        given = _copied(context)
        return self._begin(
            "complete",
            lambda verbs: verbs.complete(ref, argument, value, context=given, timeout=timeout),
        )

    def set_log_level(self, level: str | None, *, timeout: Timeout = UNSET) -> Handle[None]:
        return self._begin(
            "set_log_level", lambda verbs: verbs.set_log_level(level, timeout=timeout)
        )

    def list_tools(self, *, cache: str = "use", timeout: Timeout = UNSET) -> Handle[list[Tool]]:
        return self._begin(
            "list_tools", lambda verbs: verbs.list_tools(cache=cache, timeout=timeout)
        )

    def list_resources(
        self, *, cache: str = "use", timeout: Timeout = UNSET
    ) -> Handle[list[Resource]]:
        return self._begin(
            "list_resources", lambda verbs: verbs.list_resources(cache=cache, timeout=timeout)
        )

    def list_resource_templates(
        self, *, cache: str = "use", timeout: Timeout = UNSET
    ) -> Handle[list[ResourceTemplate]]:
        return self._begin(
            "list_resource_templates",
            lambda verbs: verbs.list_resource_templates(cache=cache, timeout=timeout),
        )

    def list_prompts(self, *, cache: str = "use", timeout: Timeout = UNSET) -> Handle[list[Prompt]]:
        return self._begin(
            "list_prompts", lambda verbs: verbs.list_prompts(cache=cache, timeout=timeout)
        )

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> Handle[Any]:
        given, tell = _copied(params), self._teller(on_progress)
        return self._begin(
            "request",
            lambda verbs: verbs.request(method, given, timeout=timeout, on_progress=tell),
        )

    def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = UNSET,
    ) -> Handle[None]:
        given = _copied(params)
        return self._begin("notify", lambda verbs: verbs.notify(method, given, timeout=timeout))


def _copied(given: Any) -> Any:
    """Return a copy as JSON will have it; what is no JSON as it is, for the verb to refuse."""
    if given is None:
        return None
    try:
        return msgspec.to_builtins(given, str_keys=True)
    except (TypeError, ValueError, RecursionError):
        return given
