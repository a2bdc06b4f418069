"""What a server offers, and what it therefore declares: the components, and how they get there.

Knows no message and no session; is told by nobody, and tells of changes by ``_list_changed``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from mcpclient.ground.errors import ConfigError
from mcpclient.serverkit import functions, hooks
from mcpclient.serverkit.components import (
    KINDS,
    PROMPTS,
    RESOURCES,
    TEMPLATES,
    TOOLS,
    Component,
    Prompt,
    Resource,
    Tool,
    made,
)
from mcpclient.serverkit.frame import Frame
from mcpclient.serverkit.functions import FunctionPrompt, FunctionResource, FunctionTool
from mcpclient.serverkit.options import checked
from mcpclient.serverkit.tasks import TaskOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from mcpclient.serverkit.eras import Route
    from mcpclient.serverkit.exchange import Exchange
    from mcpclient.serverkit.state import State

F = TypeVar("F", bound="Callable[..., Any]")


class Offering:
    """Components, hooks, methods of one's own, and the capabilities that follow from them.

    Attributes:
        tasks: How tasks are run.
        hooks: The hooks, by name.
        methods: Methods of its own, by name.
    """

    def __init__(
        self,
        capabilities: Mapping[str, Any] | Iterable[str] | None,
        extensions: Mapping[str, Mapping[str, Any]] | None,
        tasks: TaskOptions,
    ) -> None:
        self.tasks = tasks
        self.hooks: dict[str, Callable[..., Any]] = {}
        self.methods: dict[str, Route] = {}
        self._declared = None if capabilities is None else checked(capabilities)
        self._extensions = {id: dict(settings) for id, settings in (extensions or {}).items()}
        self._components: dict[str, dict[str, Component]] = {kind: {} for kind in KINDS}
        # What is derived from the components, until they change.
        self._known: dict[str, dict[str, Any]] | None = None

    def _list_changed(self, kind: str) -> None:
        """Tell whoever wants to know that a list changed."""

    def add(self, component: Any, *, name: str | None = None) -> Any:
        """Offer a component to everybody: a class, or an instance. One of the same name goes.

        Returns:
            What was given, so that it may be used as a decorator of classes.

        Raises:
            ConfigError: It is no component.
        """
        one = made(component, name)
        self._known = None
        self._components[one.kind][one.key] = one
        self._list_changed(one.kind)
        return component

    def remove(self, kind: str, key: str) -> bool:
        """Offer a component no more; return whether there was one.

        Args:
            kind: ``tools``, ``prompts``, ``resources`` or ``templates``.
            key: The name, or a resource's URI.
        """
        gone = self._components[kind].pop(key, None) is not None
        self._known = None
        if gone:
            self._list_changed(kind)
        return gone

    def components(self, kind: str, state: State | None = None) -> dict[str, Component]:
        """Return what is offered of a kind, by name or URI, to a session if one is given."""
        if state is None or not state.added[kind]:
            return self._components[kind]
        return {**self._components[kind], **state.added[kind]}

    @property
    def tools(self) -> dict[str, Tool]:
        """The tools that everybody is offered, by name."""
        return {name: one for name, one in self._components[TOOLS].items() if isinstance(one, Tool)}

    def check(self) -> None:
        """Make every schema now, so that a mistake shows in a test and not at the first call."""
        for kind in KINDS:
            for component in self._components[kind].values():
                component.describe()

    @overload
    def tool(self, call: F, /) -> F: ...
    @overload
    def tool(self, /, *, name: str | None = None, **options: Any) -> Callable[[F], F]: ...
    def tool(self, call: Any = None, /, *, name: str | None = None, **options: Any) -> Any:
        """Offer a function, or a :class:`Tool` class, as a tool.

        Args:
            call: A plain function runs in a thread, an async one on the loop. Its parameters are
                the arguments, its docstring is the description.
            name: The tool's name; by default the function's.
            options: Attributes of :class:`Tool`.
        """
        return self._decorator(call, name, options, FunctionTool, Tool)

    @overload
    def prompt(self, call: F, /) -> F: ...
    @overload
    def prompt(self, /, *, name: str | None = None, **options: Any) -> Callable[[F], F]: ...
    def prompt(self, call: Any = None, /, *, name: str | None = None, **options: Any) -> Any:
        """Offer a function, or a :class:`Prompt` class, as a prompt. Arguments as for a tool."""
        return self._decorator(call, name, options, FunctionPrompt, Prompt)

    def resource(self, uri: str, /, *, name: str | None = None, **options: Any) -> Any:
        """Offer a function as a resource, or as a family of them if the URI is a template.

        Args:
            uri: ``file:///motd``, or ``file:///{+path}``: then the function takes ``path``.
            name: Its name; by default the function's.
            options: Attributes of :class:`Resource`.
        """
        options["uri_template" if "{" in uri else "uri"] = uri
        return self._decorator(None, name, options, FunctionResource, Resource)

    def _decorator(
        self,
        call: Any,
        name: str | None,
        options: dict[str, Any],
        function: type[Any],
        kind: type[Component],
    ) -> Any:
        def decorate(target: Any) -> Any:
            if isinstance(target, type):
                if not issubclass(target, kind):
                    raise ConfigError(f"{target.__name__} is no {kind.__name__}")
                self.add(target(name=name, **options))
            else:
                self.add(function(target, name=name, **options))
            return target

        return decorate if call is None else decorate(call)

    def completion(self, kind: str, key: str) -> Callable[[F], F]:
        """Complete the arguments of a prompt, or the variables of a template, by a function.

        Args:
            kind: ``prompts`` or ``templates``.
            key: The component's name.
        """
        if kind not in (PROMPTS, TEMPLATES):
            raise ConfigError(f'what has arguments is "prompts" or "templates", not {kind!r}')
        component = self._components[kind].get(key)
        if component is None:
            raise ConfigError(f"there is no {key!r} among the {kind}")

        def decorate(call: F) -> F:
            functions.completing(component, call)
            self._known = None
            return call

        return decorate

    def method(self, name: str, *, cacheable: bool = False) -> Callable[[F], F]:
        """Answer a method of one's own by a function of ``params`` and ``frame``.

        It returns the result. The protocol's own methods win.

        Args:
            name: The method.
            cacheable: Whether the result says how long it may be kept (2026-07-28).
        """

        def decorate(call: F) -> F:
            function = functions.Function(call)

            async def run(exchange: Exchange) -> dict[str, Any]:
                assert exchange.request is not None
                known = {"params": exchange.request.params.whole()}
                given = {key: known[key] for key in function.parameters}
                result: dict[str, Any] = await function(given, Frame(exchange))
                return exchange.era.cacheable(exchange, result, []) if cacheable else result

            self.methods[name] = run
            return call

        return decorate

    def hook(self, call: F) -> F:
        """Take part by a function that is named like a hook; see :mod:`mcpclient.serverkit.hooks`.

        Raises:
            ConfigError: No hook has its name.
        """
        name, run = hooks.hook(call)
        self.hooks[name] = run
        self._known = None
        return call

    # -- what it declares ------------------------------------------------------------------

    def capabilities(self, state: State) -> dict[str, dict[str, Any]]:
        """Return what is declared to a client: by what was given, or by what there is."""
        if self._declared is not None:
            found = {name: dict(options) for name, options in self._declared.items()}
        elif any(state.added.values()):
            found = self._derived(state)
        else:
            if self._known is None:
                self._known = self._derived(state)
            found = {name: dict(options) for name, options in self._known.items()}
        if self._extensions:
            found["extensions"] = {id: dict(one) for id, one in self._extensions.items()}
        return found

    def _derived(self, state: State) -> dict[str, dict[str, Any]]:
        there = {kind: self.components(kind, state) for kind in KINDS}
        found: dict[str, dict[str, Any]] = {"logging": {}}
        if there[TOOLS]:
            found["tools"] = {"listChanged": True}
        if there[PROMPTS]:
            found["prompts"] = {"listChanged": True}
        if there[RESOURCES] or there[TEMPLATES]:
            found["resources"] = {"subscribe": True, "listChanged": True}
        completing = (one for kind in (PROMPTS, TEMPLATES) for one in there[kind].values())
        if "handle_completion" in self.hooks or any(one.completes for one in completing):
            found["completions"] = {}
        tools = there[TOOLS].values()
        if any(one.task_support != "forbidden" for one in tools if isinstance(one, Tool)):
            found["tasks"] = {"requests": {"tools": {"call": {}}}}
            for option in ("list", "cancel"):
                if getattr(self.tasks, option):
                    found["tasks"][option] = {}
        return found

    def declares(self, state: State, *path: str) -> bool:
        """Return whether a capability, or an option of it, is declared."""
        found: Any = self._declared or self._known
        if found is None or any(state.added.values()):
            found = self.capabilities(state)
        for name in path:
            if not isinstance(found, dict) or name not in found:
                return False
            found = found[name]
        return found is not False
