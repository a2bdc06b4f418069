"""A tool, a prompt or a template as something to call: with signature, help and completion.

Each also knows what to offer where a person types its arguments.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Self

from mcpclient.ground.text import printable
from mcpclient.protocol.types import Prompt, ResourceTemplate, Tool
from mcpclient.repl import calling, schema
from mcpclient.repl.mistakes import Mistake, NoSuchName, WrongCall
from mcpclient.repl.names import identifiers, nearest
from mcpclient.repl.results import ShownPrompt, ShownResource, ShownTool
from mcpclient.repl.schema import Parameter, Parameters

if TYPE_CHECKING:
    from mcpclient.repl.lists import Lists

_HINTS = {
    "readOnlyHint": "it changes nothing",
    "destructiveHint": "it may destroy something",
    "idempotentHint": "twice is as once",
    "openWorldHint": "it reaches outside",
}


class Function:
    """Something that a server does, to be called with Python's arguments.

    ``help(it)``, ``inspect.signature(it)`` and a prompt's ``it?`` tell about it.
    """

    kind = ""
    _known_options: tuple[str, ...] = ("timeout", "on_progress")
    _returns: Any = Any
    _item: Any = None

    def __init__(
        self, lists: Lists, path: str, wire: str, options: Mapping[str, Any] | None = None
    ) -> None:
        """Made by the collections; nothing is asked.

        Args:
            lists: The server's lists.
            path: How it is written, such as ``git.tools.git_status``.
            wire: What the server calls it.
            options: What is given to the verb with each call.
        """
        self._lists = lists
        self._path = path
        self._wire = wire
        self._options = dict(options or {})
        for option in self._options:
            if option not in self._known_options:
                raise WrongCall(
                    f"a call has no option {option!r}{nearest(option, self._known_options)}"
                )
        self.__name__ = self.__qualname__ = path.rpartition(".")[2]
        known = lists.kept(self.kind)
        self._learn(None if known is None else known.get(wire))

    def using(self, **options: Any) -> Self:
        """Return the same with options for the call itself.

        Args:
            options: ``timeout`` in seconds; but for prompts also ``on_progress``, called with
                ``(progress, total, message)``.

        Raises:
            WrongCall: There is no such option.
        """
        return type(self)(self._lists, self._path, self._wire, {**self._options, **options})

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self._item is not None and self._lists.fresh(self.kind) is not None:
            self._bound(args, kwargs)  # so that a mistake is told by the call, not by the await
        return self._lists.run(self._called(args, kwargs))

    async def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        await self._current()
        return await self._send(self._bound(args, kwargs))

    async def _current(self) -> None:
        """Learn what the server says of it now."""
        options = {"timeout": self._options["timeout"]} if "timeout" in self._options else {}
        found = await self._lists.read(self.kind, **options)
        if self._wire not in found:
            # Before the list was read it could not be told that this is Python's name for it.
            self._wire = identifiers(found).get(self._wire, self._wire)
        if self._wire not in found:
            known = found if self.kind != "templates" else ()
            raise NoSuchName(
                f"{printable(self._lists.server.name)} has no {self.kind[:-1]} "
                f"{printable(self._wire, 200)!r}{nearest(self._wire, known)}"
            )
        if found[self._wire] is not self._item:
            self._learn(found[self._wire])

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        return calling.bind(self.__name__, self._parameters, args, kwargs)

    async def _send(self, arguments: dict[str, Any]) -> Any:
        raise NotImplementedError

    def _learn(self, item: Any) -> None:
        self._item = item
        if item is None:
            self._parameters = Parameters(open=True)
            self.__doc__ = f"{printable(self._wire)}: not read yet; it is when it is called."
        else:
            self._parameters = self._described(item)
            title = printable(item.title or self._wire)
            self.__doc__ = calling.documented(
                self._parameters, title, item.description or "", self._closing(item)
            )
        self.__signature__ = calling.signature(self._parameters, self._returns)

    def _described(self, item: Any) -> Parameters:
        raise NotImplementedError

    def _closing(self, item: Any) -> list[str]:
        return []

    def __repr__(self) -> str:
        return f"{printable(self._path)}{calling.brief(self._parameters)}"

    # -- completion ------------------------------------------------------------------------

    @property
    def parameters(self) -> Parameters:
        """What it takes, as far as that is known."""
        return self._parameters

    def values(self, one: Parameter, typed: str, given: Mapping[str, Any]) -> list[Any]:
        """Return what may be offered as an argument's value; it may ask, but not for long.

        Args:
            one: The argument.
            typed: What is there of it.
            given: The other arguments, by the server's names, as far as they are plain values.
        """
        return list(one.values)


class ToolFunction(Function):
    """A tool."""

    kind = "tools"
    _returns = ShownTool

    async def _send(self, arguments: dict[str, Any]) -> ShownTool:
        result = await self._lists.ask("invoke_tool", self._wire, arguments, **self._options)
        return ShownTool.of(result)

    def start(self, /, *args: Any, **kwargs: Any) -> Any:
        """Begin the call and return its handle at once: ``await`` it, or ask for ``result()``.

        Only over the blocking manager: over the async one each call is to be awaited as it is.

        Raises:
            Mistake: It is not over the blocking manager.
            WrongCall: The arguments are not those of the tool.
        """
        lists, wire, options = self._lists, self._wire, self._options
        if lists.awaits:
            raise Mistake("over the async manager each call is awaited: asyncio.create_task(…)")
        from mcpclient.handles import Handle

        lists.run(self._current())
        arguments = self._bound(args, kwargs)
        server = lists.server
        home = server._home

        async def work() -> ShownTool:
            return ShownTool.of(await server._find().invoke_tool(wire, arguments, **options))

        # The engine of the blocking face is that of the handles; only its verbs wait.
        handle = Handle(home._portal, work, home._mail, wire, server.name)
        home._portal.submit(handle)
        return handle

    def _described(self, item: Tool) -> Parameters:
        return schema.of_schema(item.input_schema)

    def _closing(self, item: Tool) -> list[str]:
        hints = item.annotations
        said = [text for hint, text in _HINTS.items() if hints.get(hint) is True]
        return [f"The server says: {', '.join(said)}."] if said else []


class PromptFunction(Function):
    """A prompt. Its arguments are text."""

    kind = "prompts"
    _known_options = ("timeout",)
    _returns = ShownPrompt

    async def _send(self, arguments: dict[str, Any]) -> ShownPrompt:
        result = await self._lists.ask("get_prompt", self._wire, arguments, **self._options)
        return ShownPrompt.of(result)

    def _described(self, item: Prompt) -> Parameters:
        return schema.of_prompt(item)

    def values(self, one: Parameter, typed: str, given: Mapping[str, Any]) -> list[Any]:
        """See :meth:`Function.values`."""
        return _asked(self._lists, self._item, one, typed, given)


class TemplateFunction(Function):
    """A family of resources: called with its variables, it reads one of them."""

    kind = "templates"
    _returns = ShownResource

    async def _send(self, arguments: dict[str, Any]) -> ShownResource:
        uri = self._item.expand(**arguments)
        return ShownResource.of(await self._lists.ask("read_resource", uri, **self._options))

    def _described(self, item: ResourceTemplate) -> Parameters:
        return schema.of_template(item)

    def values(self, one: Parameter, typed: str, given: Mapping[str, Any]) -> list[Any]:
        """See :meth:`Function.values`."""
        return _asked(self._lists, self._item, one, typed, given)


class ReadFunction(Function):
    """Reads a resource by its URI, listed or not.

    Args:
        uri: The URI, exactly as the server wrote it.
        cache: ``use`` what is kept, ``refresh`` it, or ``bypass`` it.
    """

    kind = "resources"

    def __init__(self, lists: Lists, path: str, options: Mapping[str, Any] | None = None) -> None:
        """Made by the explorer; nothing is asked."""
        super().__init__(lists, path, "", options)

    def using(self, **options: Any) -> Self:
        """See :meth:`Function.using`."""
        return type(self)(self._lists, self._path, {**self._options, **options})

    async def _current(self) -> None:
        pass  # any URI will do

    async def _send(self, arguments: dict[str, Any]) -> ShownResource:
        uri = arguments.pop("uri")
        options = {**self._options, **arguments}
        return ShownResource.of(await self._lists.ask("read_resource", uri, **options))

    def _learn(self, item: Any) -> None:
        uses = Literal["use", "refresh", "bypass"]
        self._parameters = Parameters(
            (
                Parameter("uri", "uri", True, str),
                Parameter("cache", "cache", False, uses, "use", values=uses.__args__),  # type: ignore[attr-defined]  # a special form
            )
        )
        self.__doc__ = type(self).__doc__
        self.__signature__ = calling.signature(self._parameters, ShownResource)

    def values(self, one: Parameter, typed: str, given: Mapping[str, Any]) -> list[Any]:
        """See :meth:`Function.values`."""
        return list(one.values) if one.values else list(self._lists.soon("resources"))


def _asked(
    lists: Lists, item: Any, one: Parameter, typed: str, given: Mapping[str, Any]
) -> list[Any]:
    if item is None:
        return []
    context = {name: value for name, value in given.items() if isinstance(value, str)}
    return lists.values(item, one.wire, typed, context)
