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
from mcpclient.protocol.eras import OtherResult
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
    from collections.abc import Awaitable, Callable, Mapping

    from mcpclient.connection.caller import Caller, Timeout
    from mcpclient.connection.progress import Progress
    from mcpclient.features.completion import Ref
    from mcpclient.features.loglevel import LogLevel
    from mcpclient.features.operation import Operation
    from mcpclient.features.operations import Operations
    from mcpclient.features.resources import Reader
    from mcpclient.features.schemas import Checker
    from mcpclient.features.subscriptions import Subscriptions
    from mcpclient.manager.spec import ServerSpec
    from mcpclient.protocol.mirror import Mirror

I = TypeVar("I", bound=Item)  # noqa: E741 - an item
R = TypeVar("R")


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
        operations: Operations,
        spec: ServerSpec,
        mirror: Mirror | None = None,
    ) -> None:
        self._mirror = mirror
        self._reader = reader
        self._subscriptions = subscriptions
        self._log_level = log_level
        self._operations = operations
        self._settle(caller, spec)

    def _settle(self, caller: Caller, spec: ServerSpec) -> None:
        self._caller = caller
        self.spec = spec
        self._pages = spec.limits.pages
        self._resend = spec.resend == "safe"
        self._checker: Checker | None = None
        if spec.validate != "off":
            from mcpclient.features.schemas import Checker  # only who checks needs it

            self._checker = Checker(spec.validate, self._reader, spec.timeouts, spec.limits)

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
            OutputInvalid: With ``ServerSpec.validate="strict"``: the result is not as the tool
                declares; ``.result`` is the whole result.
        """
        if self._checker is not None:
            return await self._checked(self._checker, name, arguments, timeout, on_progress)
        if self._resend:
            return await once_more(
                self._caller,
                timeout,
                lambda left: tools.invoke(self._caller, name, arguments, left, on_progress),
                name,
            )
        return await tools.invoke(self._caller, name, arguments, timeout, on_progress)

    async def _checked(
        self,
        checker: Checker,
        name: str,
        arguments: Mapping[str, Any] | None,
        timeout: Timeout,
        on_progress: Progress | None,
    ) -> ToolResult:
        def attempt(left: Timeout) -> Awaitable[ToolResult]:
            return tools.invoke(self._caller, name, arguments, left, on_progress)

        def call(left: Timeout) -> Awaitable[ToolResult]:
            if self._resend:
                return once_more(self._caller, left, attempt, name)
            return attempt(left)

        return await checker.invoke(self._caller, name, call, timeout)

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> ToolResult:
        """Call a tool and return its result, ``is_error`` or not, and never checked.

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

    async def start_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        ttl: float | None = None,
        timeout: Timeout = UNSET,
        on_progress: Progress | None = None,
    ) -> Operation:
        """Begin a tool that runs as a task, and return at once what is to be known of it.

        :meth:`invoke_tool` does all of it in one await. A server of the stateless era decides by
        itself whether the call becomes a task, if it and the manager (``extensions=``) have
        turned that on; if it answers at once, the operation has ended already.

        Args:
            name: The tool's name.
            arguments: A JSON object; None means an empty one.
            ttl: For how many seconds the server is asked to keep the task, if it can be asked.
            timeout: Seconds, until the task is made.
            on_progress: As for :meth:`invoke_tool`; told as long as the task runs.

        Raises:
            LocalProtocolError: The server, or this tool, runs nothing as a task.
        """
        started = await self._operations.start(
            self._caller, name, arguments, ttl, timeout, on_progress
        )
        started.checked_by(self._check_later(name))
        return started

    def operation(self, id: str) -> Operation:
        """Return the operation of a task by its id, which the host may have stored.

        Nothing is sent; the server is asked when the operation is.
        """
        return self._operations.pick_up(id)

    async def list_operations(self, *, timeout: Timeout = UNSET) -> list[Operation]:
        """List the tasks that a server of version 2025-11-25 still knows, all pages.

        Raises:
            LocalProtocolError: The server lists none; with the extension no server does.
        """
        return await self._operations.listed(self._caller, timeout)

    def _check_later(self, name: str) -> Callable[..., Awaitable[ToolResult]] | None:
        checker = self._checker
        if checker is None:
            return None
        return lambda call, left: checker.invoke(self._caller, name, call, left)

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
        return await self._asking(
            timeout, lambda left: self._reader.read(self._caller, uri, cache, left, on_progress)
        )

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
            arguments: Text by name; the protocol knows no other values here. If the list of
                prompts is kept, one that it says is required must be there.
            timeout: Seconds.
        """
        known = catalog.kept(self._reader, self.name, methods.PROMPTS_LIST)
        return await self._asking(
            timeout, lambda left: prompts.get(self._caller, name, arguments, left, known)
        )

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
        return await self._asking(
            timeout,
            lambda left: completion.complete(self._caller, ref, argument, value, context, left),
        )

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
        epoch = self._operations.epoch
        listed = self._list(methods.TOOLS_LIST, Tool, cache, timeout)
        found = await (listed if self._checker is None else self._checker.listing(listed))
        self._operations.learn(found, epoch)
        if self._mirror is None:
            return found
        from mcpclient.features.marked import usable  # only HTTP has headers

        return usable(found, self._mirror, self.name)

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
        return await self._asking(
            timeout,
            lambda left: catalog.listed(
                self._caller, method, kind, left, self._pages, shelf, cache
            ),
        )

    def _asking(self, timeout: Timeout, attempt: Callable[[Timeout], Awaitable[R]]) -> Awaitable[R]:
        """Ask for what harms nobody: once more if the server died of it and the user opted in."""
        if self._resend:
            return once_more(self._caller, timeout, attempt)
        if self._mirror is not None:
            # Behind a URL the first who calls learns that it is gone: he waits, as others do.
            return once_more(self._caller, timeout, attempt, unsent=True)
        return attempt(timeout)

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
        try:
            result = await self._caller.request(method, params, timeout, on_progress)
        except OtherResult as other:
            result = other.result  # whoever named the extension knows what to do with it
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
