"""What can be asked of a server, by a thread that waits for it. Each verb is the async one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import UNSET

from mcpclient.blocking.operation import Operation
from mcpclient.blocking.subscription import Subscription
from mcpclient.blocking.telling import Telling
from mcpclient.engine.facts import documented_as
from mcpclient.manager.verbs import Verbs as Original

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from mcpclient.blocking.manager import Manager
    from mcpclient.connection.caller import Timeout
    from mcpclient.connection.progress import Progress
    from mcpclient.features.completion import Ref
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
    """The verbs of one server. They block the thread that calls, and no other.

    A handler of progress is called on that very thread.
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

    def _wait(self, work: Callable[[Original], Awaitable[T]]) -> T:
        return self._home._portal.run(lambda: work(self._find_verbs()))

    def _tell(
        self,
        on_progress: Progress | None,
        work: Callable[[Original, Progress | None], Awaitable[T]],
    ) -> T:
        if on_progress is None:
            return self._wait(lambda verbs: work(verbs, None))
        told = Telling(on_progress, self._home._finish)
        return self._home._portal.run(lambda: work(self._find_verbs(), told.tell), told.wait)

    def invoke_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> ToolResult:
        return self._tell(
            on_progress,
            lambda verbs, tell: verbs.invoke_tool(
                name, arguments, timeout=timeout, on_progress=tell
            ),
        )

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> ToolResult:
        return self._tell(
            on_progress,
            lambda verbs, tell: verbs.call_tool(name, arguments, timeout=timeout, on_progress=tell),
        )

    def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> Operation:
        # It tells on when this has returned: like a notification, then.
        tell = None if on_progress is None else self._home._mail.teller(on_progress)
        started = self._wait(
            lambda verbs: verbs.start_tool(
                name, arguments, ttl=ttl, timeout=timeout, on_progress=tell
            )
        )
        return Operation(self._home._portal, started)

    def operation(self, id: str) -> Operation:
        async def pick_up(verbs: Original) -> Any:
            return verbs.operation(id)

        return Operation(self._home._portal, self._wait(pick_up))

    def list_operations(self, *, timeout: Timeout = UNSET) -> list[Operation]:
        listed = self._wait(lambda verbs: verbs.list_operations(timeout=timeout))
        return [Operation(self._home._portal, one) for one in listed]

    def read_resource(
        self,
        uri: str,
        *,
        cache: str = "use",
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> ResourceResult:
        return self._tell(
            on_progress,
            lambda verbs, tell: verbs.read_resource(
                uri, cache=cache, timeout=timeout, on_progress=tell
            ),
        )

    def invalidate_resource(self, uri: str) -> None:
        async def invalidate(verbs: Original) -> None:
            verbs.invalidate_resource(uri)

        self._wait(invalidate)

    def subscribe(self, uri: str, *, timeout: Timeout = UNSET) -> Subscription:
        """Follow a resource: ``with server.subscribe(uri) as updates``, then iterate.

        Entering waits until the server agreed, within ``timeout`` seconds; what the server then
        says has changed is dropped from the cache first. The subscription lives on over restarts
        of the server.

        Raises:
            LocalProtocolError: On entering: the server offers no subscription to this.
        """
        return Subscription(
            self._home._portal, uri, lambda: self._find_verbs().subscribe(uri, timeout=timeout)
        )

    def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: Timeout = UNSET,
    ) -> PromptResult:
        return self._wait(lambda verbs: verbs.get_prompt(name, arguments, timeout=timeout))

    def complete(
        self,
        ref: Ref,
        argument: str,
        value: str,
        *,
        context: Mapping[str, str] | None = None,
        timeout: Timeout = UNSET,
    ) -> Completion:
        return self._wait(
            lambda verbs: verbs.complete(ref, argument, value, context=context, timeout=timeout)
        )

    def set_log_level(self, level: str | None, *, timeout: Timeout = UNSET) -> None:
        self._wait(lambda verbs: verbs.set_log_level(level, timeout=timeout))

    def list_tools(self, *, cache: str = "use", timeout: Timeout = UNSET) -> list[Tool]:
        return self._wait(lambda verbs: verbs.list_tools(cache=cache, timeout=timeout))

    def list_resources(self, *, cache: str = "use", timeout: Timeout = UNSET) -> list[Resource]:
        return self._wait(lambda verbs: verbs.list_resources(cache=cache, timeout=timeout))

    def list_resource_templates(
        self, *, cache: str = "use", timeout: Timeout = UNSET
    ) -> list[ResourceTemplate]:
        return self._wait(lambda verbs: verbs.list_resource_templates(cache=cache, timeout=timeout))

    def list_prompts(self, *, cache: str = "use", timeout: Timeout = UNSET) -> list[Prompt]:
        return self._wait(lambda verbs: verbs.list_prompts(cache=cache, timeout=timeout))

    def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> Any:
        return self._tell(
            on_progress,
            lambda verbs, tell: verbs.request(method, params, timeout=timeout, on_progress=tell),
        )

    def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = UNSET,
    ) -> None:
        self._wait(lambda verbs: verbs.notify(method, params, timeout=timeout))
