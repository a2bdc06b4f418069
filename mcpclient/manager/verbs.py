"""What can be asked of a server, whoever asks: the verbs users type.

Every verb waits for the server if it is not up yet, within the call's own time-out, and raises

* ``ReplyError``: the server answered no;
* ``RemoteProtocolError``: its answer cannot be read;
* ``InputRefused``: it wants input that nothing here gives;
* ``CallTimedOut``, ``ServerDied``, ``CallCancelled``, ``CallLost``: no answer came; ``maybe_done``
  tells whether the request may have been carried out;
* ``ServerUnavailable`` (``SpawnFailed``, ``OpeningFailed``, ``RestartsExhausted``): there is no
  server to ask;
* ``LocalProtocolError``: the arguments are no JSON; nothing was sent.

``timeout`` is in seconds, None for no limit; left out, it is the server's ``Timeouts.call``.
Cancelling a verb cancels the request at the server, if it had reached it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import UNSET

from mcpclient.features import catalog, completion, prompts, tools
from mcpclient.features.following import Subscription
from mcpclient.features.resend import once_more
from mcpclient.features.resources import check_use
from mcpclient.protocol import methods, payload
from mcpclient.protocol.types import (
    Completion,
    Item,
    Prompt,
    PromptResult,
    Resource,
    ResourceResult,
    ResourceTemplate,
    Tool,
    ToolResult,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpclient.connection.caller import Caller, Timeout
    from mcpclient.connection.progress import Progress
    from mcpclient.features.completion import Ref
    from mcpclient.features.loglevel import LogLevel
    from mcpclient.features.resources import Reader
    from mcpclient.features.subscriptions import Subscriptions
    from mcpclient.manager.spec import ServerSpec

I = TypeVar("I", bound=Item)  # noqa: E741 - an item


class Verbs:
    """The verbs of one server.

    Attributes:
        spec: How the server is run.
    """

    def __init__(
        self,
        caller: Caller,
        reader: Reader,
        subscriptions: Subscriptions,
        log_level: LogLevel,
        spec: ServerSpec,
    ) -> None:
        self._reader = reader
        self._subscriptions = subscriptions
        self._log_level = log_level
        self._settle(caller, spec)

    def _settle(self, caller: Caller, spec: ServerSpec) -> None:
        self._caller = caller
        self.spec = spec
        self._pages = spec.limits.pages
        self._resend = spec.resend == "safe"

    @property
    def name(self) -> str:
        """The server's name."""
        return self._caller.name

    async def invoke_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> ToolResult:
        """Call a tool and return its result; a result that says it failed is raised.

        Args:
            name: The tool's name.
            arguments: A JSON object; None means an empty one.
            timeout: Seconds. With ``on_progress``, progress starts them anew, up to
                ``Timeouts.call_max`` in all.
            on_progress: Called with ``(progress, total, message)``, plain or async.

        Raises:
            ToolError: The tool answered ``isError: true``; ``.result`` is the whole result.
        """
        if self._resend:
            return await once_more(
                self._caller,
                timeout,
                lambda left: tools.invoke(self._caller, name, arguments, left, on_progress),
                name,
            )
        return await tools.invoke(self._caller, name, arguments, timeout, on_progress)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> ToolResult:
        """Call a tool and return its result, ``is_error`` or not.

        Arguments as for :meth:`invoke_tool`.
        """
        if self._resend:
            return await once_more(
                self._caller,
                timeout,
                lambda left: tools.call(self._caller, name, arguments, left, on_progress),
                name,
            )
        return await tools.call(self._caller, name, arguments, timeout, on_progress)

    async def read_resource(
        self,
        uri: str,
        *,
        cache: str = "use",
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> ResourceResult:
        """Read a resource, from the cache if it is there.

        Reads of the same URI that overlap share one request; each may time out or be cancelled
        alone. A read with ``on_progress`` has a request of its own.

        Args:
            uri: The URI, exactly as the server wrote it.
            cache: ``use``; ``refresh`` to ask the server and keep the answer; ``bypass`` to ask
                it and leave the cache alone.
            timeout: Seconds.
            on_progress: As for :meth:`invoke_tool`.
        """
        if self._resend:
            return await once_more(
                self._caller,
                timeout,
                lambda left: self._reader.read(self._caller, uri, cache, left, on_progress),
            )
        return await self._reader.read(self._caller, uri, cache, timeout, on_progress)

    def invalidate_resource(self, uri: str) -> None:
        """Forget what is cached of a resource. A read under way is answered, but not kept."""
        self._reader.invalidate(self._caller.name, uri)

    def subscribe(self, uri: str, *, timeout: Timeout = UNSET) -> Subscription:
        """Follow a resource: ``async with server.subscribe(uri) as updates``, then iterate.

        Entering waits until the server agreed, within ``timeout`` seconds; what the server then
        says has changed is dropped from the cache first. The subscription lives on over restarts
        of the server.

        Raises:
            LocalProtocolError: On entering: the server offers no subscription to this.
        """
        return Subscription(uri, self._caller, self._subscriptions, timeout, self.spec.limits.inbox)

    async def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: Timeout = UNSET,
    ) -> PromptResult:
        """Get a prompt with its arguments filled in.

        Args:
            name: The prompt's name.
            arguments: Text by name; the protocol knows no other values here.
            timeout: Seconds.
        """
        if self._resend:
            return await once_more(
                self._caller,
                timeout,
                lambda left: prompts.get(self._caller, name, arguments, left),
            )
        return await prompts.get(self._caller, name, arguments, timeout)

    async def complete(
        self,
        ref: Ref,
        argument: str,
        value: str,
        *,
        context: Mapping[str, str] | None = None,
        timeout: Timeout = UNSET,
    ) -> Completion:
        """Ask what an argument may be completed to; nothing if the server does not complete.

        Args:
            ref: What has the argument: a :class:`Prompt` or :class:`ResourceTemplate` of a list,
                a prompt's name, a template's URI, or the protocol's own mapping with ``type``.
            argument: The argument's name.
            value: What was typed so far.
            context: The arguments that are chosen already, text by name. Left out where the
                server's version of the protocol does not have it.
            timeout: Seconds.
        """
        if self._resend:
            return await once_more(
                self._caller,
                timeout,
                lambda left: completion.complete(self._caller, ref, argument, value, context, left),
            )
        return await completion.complete(self._caller, ref, argument, value, context, timeout)

    async def set_log_level(self, level: str | None, *, timeout: Timeout = UNSET) -> None:
        """Have the server log from a level on, in this life and the later ones.

        What it logs comes as ``notifications/message``; see :meth:`Manager.on_notification`.

        Args:
            level: ``debug``, ``info``, ``notice``, ``warning``, ``error``, ``critical``, ``alert``
                or ``emergency``. None has a stateless server be silent; one of the handshake era
                goes on as it does, but is not told again after a restart.
            timeout: Seconds.

        Raises:
            LocalProtocolError: There is no such level, or the server did not declare ``logging``.
        """
        await self._log_level.set(self._caller, level, timeout)

    async def list_tools(self, *, cache: str = "use", timeout: Timeout = UNSET) -> list[Tool]:
        """List the tools, all pages; none if the server offers no tools.

        A list ends where a server repeats a cursor, or after ``Limits.pages`` pages; of items
        with the same name the first counts. Pages are kept as long as the server says, or for
        the manager's ``cache_ttl``, unless it tells of a change.

        Args:
            cache: ``use``, ``refresh`` or ``bypass``, as for :meth:`read_resource`.
            timeout: Seconds, for all pages together.
        """
        return await self._list(methods.TOOLS_LIST, Tool, cache, timeout)

    async def list_resources(
        self, *, cache: str = "use", timeout: Timeout = UNSET
    ) -> list[Resource]:
        """List the resources, all pages. As :meth:`list_tools`."""
        return await self._list(methods.RESOURCES_LIST, Resource, cache, timeout)

    async def list_resource_templates(
        self, *, cache: str = "use", timeout: Timeout = UNSET
    ) -> list[ResourceTemplate]:
        """List the resource templates, all pages. As :meth:`list_tools`."""
        return await self._list(methods.TEMPLATES_LIST, ResourceTemplate, cache, timeout)

    async def list_prompts(self, *, cache: str = "use", timeout: Timeout = UNSET) -> list[Prompt]:
        """List the prompts, all pages. As :meth:`list_tools`."""
        return await self._list(methods.PROMPTS_LIST, Prompt, cache, timeout)

    async def _list(self, method: str, kind: type[I], cache: str, timeout: Timeout) -> list[I]:
        check_use(cache)
        shelf = self._reader
        if self._resend:
            return await once_more(
                self._caller,
                timeout,
                lambda left: catalog.listed(
                    self._caller, method, kind, left, self._pages, shelf, cache
                ),
            )
        return await catalog.listed(self._caller, method, kind, timeout, self._pages, shelf, cache)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> Any:
        """Send any request and return its result as plain values, translated in no way.

        Args:
            method: The method.
            params: Its params, or None to send none.
            timeout: Seconds.
            on_progress: As for :meth:`invoke_tool`.
        """
        result = await self._caller.request(method, params, timeout, on_progress)
        return payload.value(result)

    async def notify(
        self,
        method: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = UNSET,
    ) -> None:
        """Send any notification. It is on its way when this returns; no answer will come."""
        connection, _ = await self._caller.line(timeout, method)
        connection.notify(method, params)
