"""Functions as components: what a signature says becomes the schema. Knows no session.

A parameter that is annotated ``Frame``, or called ``frame``, gets the frame. A plain function
runs in a worker thread, so that it blocks nobody; an async one on the loop.
"""

from __future__ import annotations

import copy
import functools
import inspect
import re
import sys
import typing
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from mcpclient.ground.errors import ConfigError, LocalProtocolError
from mcpclient.serverkit.components import Component, Prompt, Resource, Tool
from mcpclient.serverkit.response import plain
from mcpclient.serverkit.schema import Schema, is_object, properties_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpclient.serverkit.frame import Frame

_PACKAGE = "mcpclient.serverkit"
_WORD = re.compile(r"[^\W\d]\w*")


class Function:
    """One function: what it takes, and how it is called.

    Attributes:
        call: The function.
        is_async: Whether calling it gives something to await.
        frame: The name of the parameter that gets the frame, or None.
        parameters: The others, with their annotations and defaults.
        returns: What it is annotated to return, or None.
    """

    def __init__(self, call: Any) -> None:
        if not callable(call) or isinstance(call, type):
            raise ConfigError(f"{call!r} is no function")
        self.call = call
        self.is_async = inspect.iscoroutinefunction(call) or inspect.iscoroutinefunction(
            getattr(call, "__call__", None)  # noqa: B004 - an object that is called may be async
        )
        self.frame: str | None = None
        self.parameters: dict[str, tuple[Any, Any]] = {}
        for name, parameter in inspect.signature(call).parameters.items():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise ConfigError(f"{self.name}: *{name} has no place in a schema")
            if name == "frame" or _is_frame(parameter.annotation):
                self.frame = name
                continue
            default = UNSET if parameter.default is parameter.empty else parameter.default
            self.parameters[name] = (parameter.annotation, default)
        self._nearby = _nearby(call)

    @property
    def name(self) -> str:
        """The function's name."""
        return getattr(self.call, "__name__", type(self.call).__name__)

    @property
    def doc(self) -> str | None:
        """Its docstring."""
        return inspect.getdoc(self.call)

    @functools.cached_property
    def hints(self) -> dict[str, Any]:
        """Its annotations, resolved when they are first needed."""
        target = self.call if inspect.isroutine(self.call) else type(self.call).__call__
        try:
            return typing.get_type_hints(target, localns=self._nearby, include_extras=True)
        except (NameError, TypeError) as problem:
            raise ConfigError(f"{self.name}: an annotation has no meaning: {problem}") from None

    def arguments(self) -> type[Any]:
        """Return a type whose fields are the parameters."""
        fields: list[Any] = []
        for name, (_, default) in self.parameters.items():
            kind = self.hints.get(name, Any)
            if default is UNSET:
                fields.append((name, kind))
            elif isinstance(default, list | dict | set | msgspec.Struct):
                # Each call has its own: what one changes, no other must see.
                made = functools.partial(copy.deepcopy, default)
                fields.append((name, kind, msgspec.field(default_factory=made)))
            else:
                fields.append((name, kind, default))
        # Those with a default last, as a struct wants it; they are passed by name anyway.
        fields.sort(key=len)
        return msgspec.defstruct(self.name, fields, bases=(Schema,))

    async def __call__(self, arguments: Mapping[str, Any], frame: Frame | None) -> Any:
        """Call it: an async one here, a plain one in a worker thread.

        Cancelling leaves a thread to itself: its result is dropped.
        """
        given = dict(arguments)
        if self.frame is not None:
            given[self.frame] = frame
        return await kept_in(functools.partial(self.call, **given), here=self.is_async)


async def called(method: Callable[..., Any], *arguments: Any) -> Any:
    """Call a component's method: an async one here, a plain one in a worker thread.

    Raises:
        LocalProtocolError: It raised what would have ended the server, or left the request
            without an answer.
    """
    here = inspect.iscoroutinefunction(method)
    return await kept_in(functools.partial(method, *arguments), here=here)


async def kept_in(call: Callable[[], Any], *, here: bool) -> Any:
    """Call somebody's code, ``here`` or in a worker thread. Raises as :func:`called` does."""
    try:
        found = call() if here else await in_thread(call)
        # A plain function may wrap an async one.
        return await found if inspect.isawaitable(found) else found
    except BaseException as problem:  # somebody's code may raise what would end the program
        if not _is_stray(problem):
            raise
        raise _stray(problem) from problem


async def in_thread(call: Callable[[], Any]) -> Any:
    """Call something that may block. Cancelling leaves the thread to itself."""
    from anyio import to_thread  # only what blocks needs a thread

    def run() -> tuple[Any]:
        try:
            return (call(),)  # trio takes no coroutine out of a thread
        except KeyboardInterrupt as problem:  # Ctrl-C itself only ever comes to the main thread
            raise _stray(problem) from problem

    (found,) = await to_thread.run_sync(run, abandon_on_cancel=True)
    return found


def _is_stray(problem: BaseException) -> bool:
    """Return whether a handler raised by itself what only the loop, or the program, may raise."""
    if isinstance(problem, SystemExit):
        return True
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not isinstance(problem, asyncio.CancelledError):
        return False
    # Such as that of a future which somebody else gave up: nobody cancelled what runs here.
    task = asyncio.current_task() if asyncio._get_running_loop() is not None else None
    return task is None or not task.cancelling()


def _stray(problem: BaseException) -> LocalProtocolError:
    return LocalProtocolError(
        f"the handler raised {type(problem).__name__}, by which it ends neither the server nor "
        "the request; raise ToolFailure or RpcError, or return"
    )


def _nearby(call: Any) -> dict[str, Any]:
    """Return what the annotations of a function inside a function may mean.

    Annotations that are put off are text, and only the function around knows its own classes: as
    in a test that makes a server of its own.
    """
    texts = [one for one in getattr(call, "__annotations__", {}).values() if isinstance(one, str)]
    if not texts or "<locals>" not in getattr(call, "__qualname__", ""):
        return {}
    around = sys._getframe(1)
    while around.f_back is not None and around.f_globals["__name__"].startswith(_PACKAGE):
        around = around.f_back
    words = set(_WORD.findall(" ".join(texts)))
    return {word: around.f_locals[word] for word in words if word in around.f_locals}


def _is_frame(annotation: Any) -> bool:
    # As text where annotations are put off; then nothing is looked up for it.
    named = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return str(named).rpartition(".")[2] == "Frame"


class FunctionTool(Tool):
    """A tool that is a function."""

    def __init__(self, call: Callable[..., Any], *, name: str | None = None, **options: Any):
        self._function = Function(call)
        super().__init__(name=name or options.pop("name", None) or self._function.name, **options)
        self._resolved = self.input_schema is not None or "Arguments" in options
        self._own_output = "output" in options

    @property
    def schema(self) -> dict[str, Any]:
        """See :class:`Tool`."""
        self._resolve()
        found = super().schema
        for name, one in properties_of(found).items():
            # One that is made anew for each call does not stand in the schema by itself.
            _, default = self._function.parameters.get(name, (None, UNSET))
            if default is not UNSET and self.input_schema is None and "default" not in one:
                one["default"] = plain(default)
        return found

    @property
    def output_schema(self) -> Any:
        """See :class:`Tool`."""
        self._resolve()
        return super().output_schema

    def read(self, params: Any) -> Any:
        """See :class:`Tool`."""
        self._resolve()
        return super().read(params)

    def _resolve(self) -> None:
        # When it is first needed: a server with many tools must be up at once.
        if not self._resolved:
            self._resolved = True
            self.Arguments = self._function.arguments()
            if not self._own_output:
                returns = self._function.hints.get("return")
                # Only a type that says what the result holds is worth declaring.
                self.output = returns if is_object(returns) else None

    def documented(self) -> str | None:
        """See :class:`Component`."""
        return self.description if self.description is not None else self._function.doc

    async def run(self, args: Any, frame: Frame) -> Any:
        """See :class:`Tool`."""
        function = self._function
        if isinstance(args, dict):
            if set(function.parameters) == {"arguments"}:
                return await function({"arguments": args}, frame)
            return await function(args, frame)
        return await function({name: getattr(args, name) for name in function.parameters}, frame)


class FunctionPrompt(Prompt):
    """A prompt that is a function."""

    def __init__(self, call: Callable[..., Any], *, name: str | None = None, **options: Any):
        self._function = Function(call)
        super().__init__(name=name or self._function.name, **options)
        self._by_hand = bool(self.arguments)

    def _resolve(self) -> None:
        if not self._by_hand and self.Arguments is None:
            self.Arguments = self._function.arguments()

    def read(self, params: Any) -> Any:
        """See :class:`Prompt`."""
        self._resolve()
        return super().read(params)

    def described_arguments(self) -> list[dict[str, Any]]:
        """See :class:`Prompt`."""
        self._resolve()
        return super().described_arguments()

    def documented(self) -> str | None:
        """See :class:`Component`."""
        return self.description if self.description is not None else self._function.doc

    async def get_messages(self, args: Any, frame: Frame) -> Any:
        """See :class:`Prompt`."""
        if isinstance(args, dict):
            return await self._function(args, frame)
        return await self._function(
            {name: getattr(args, name) for name in self._function.parameters}, frame
        )


class FunctionResource(Resource):
    """A resource that is a function of the template's variables, or of nothing, or of ``uri``."""

    def __init__(self, call: Callable[..., Any], *, name: str | None = None, **options: Any):
        self._function = Function(call)
        super().__init__(name=name or self._function.name, **options)
        known = {"uri", *(self.template.variables if self.template is not None else ())}
        unknown = set(self._function.parameters) - known
        if unknown:
            raise ConfigError(
                f"{self.name}: the parameter {min(unknown)!r} is no variable of "
                f"{self.uri_template or self.uri!r} (possible: {', '.join(sorted(known))})"
            )

    def documented(self) -> str | None:
        """See :class:`Component`."""
        return self.description if self.description is not None else self._function.doc

    async def read(self, uri: str, variables: dict[str, str], frame: Frame) -> Any:
        """See :class:`Resource`."""
        given = {"uri": uri, **variables}
        return await self._function(
            {name: given[name] for name in self._function.parameters}, frame
        )


def completing(component: Component, call: Callable[..., Any]) -> None:
    """Have a function complete a component's arguments.

    It is called with those of ``argument``, ``value``, ``context`` and ``frame`` that it names.
    """
    function = Function(call)

    async def complete(argument: str, value: str, context: Any, frame: Frame) -> Any:
        given = {"argument": argument, "value": value, "context": context}
        return await function({name: given[name] for name in function.parameters}, frame)

    unknown = set(function.parameters) - {"argument", "value", "context"}
    if unknown:
        raise ConfigError(
            f"{function.name}: a completion takes argument, value, context and frame, "
            f"not {min(unknown)!r}"
        )
    component.complete = complete  # type: ignore[method-assign]  # this one instance
