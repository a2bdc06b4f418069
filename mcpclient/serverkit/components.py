"""What a server offers: tools, prompts and resources, declared as classes. Knows no session.

A component's name is the one given where it is added, else its own ``name``, else the class's in
snake_case. Decorated functions become components in ``functions``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, ClassVar

from mcpclient.ground.errors import ConfigError
from mcpclient.serverkit.errors import INVALID_PARAMS, RpcError
from mcpclient.serverkit.schema import (
    Checked,
    Invalid,
    arguments_schema,
    header_paths,
    json_schema,
    properties_of,
)
from mcpclient.serverkit.uris import UriTemplate

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mcpclient.serverkit.frame import Frame
    from mcpclient.serverkit.incoming import Params

TOOLS = "tools"
PROMPTS = "prompts"
RESOURCES = "resources"
TEMPLATES = "templates"
KINDS = (TOOLS, PROMPTS, RESOURCES, TEMPLATES)

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SUPPORT = ("forbidden", "optional", "required")
_CACHE_SCOPES = ("public", "private")


class Component:
    """What tools, prompts and resources have in common. Every attribute may be a property.

    Attributes:
        name: What it is called on the wire.
        title: Its name for people.
        description: What it is for; else the class's docstring.
        scopes: What a caller must have to see and use it, where there is authorization.
        icons: As the protocol has them.
        annotations: Hints, as the protocol has them for its kind; ``title`` wins over ``title``.
        meta: Its ``_meta``.
        ttl: For how many seconds a client may keep what it says; None: as the server says.
        cache_scope: ``public`` or ``private``: whether others may be given it; None: as the server.
    """

    kind: ClassVar[str] = ""
    name: str = ""
    title: str | None = None
    description: str | None = None
    scopes: Iterable[str] = ()
    icons: Sequence[Mapping[str, Any]] | None = None
    annotations: Mapping[str, Any] | None = None
    meta: Mapping[str, Any] | None = None
    ttl: float | None = None
    cache_scope: str | None = None

    def __init__(self, *, name: str | None = None, **options: Any) -> None:
        """Take options over the class's own attributes.

        Raises:
            ConfigError: There is no such option, or it is not what it must be.
        """
        for key, value in options.items():
            if key.startswith("_") or not hasattr(type(self), key) or key in ("kind", "scope_set"):
                raise ConfigError(f"{type(self).__name__} has no option {key!r}", key=key)
            setattr(self, key, value)
        chosen: Any = name or self.name or snake_case(type(self).__name__)
        if not isinstance(chosen, str) or not chosen.isprintable():
            raise ConfigError(f"a component's name is printable text, not {chosen!r}", key="name")
        if chosen != self.name:
            self.name = chosen
        self.scope_set = frozenset(self.scopes)
        if self.cache_scope not in (None, *_CACHE_SCOPES):
            raise ConfigError(
                f'must be "public" or "private", not {self.cache_scope!r}', key="cache_scope"
            )

    @property
    def key(self) -> str:
        """What it is looked up by: its name, or a resource's URI."""
        return self.name

    def documented(self) -> str | None:
        """Return its description: its own, else its docstring."""
        own = self.description  # once: it may be a property that counts
        if own is not None:
            return own
        words = type(self).__doc__
        if not words or type(self).__module__.startswith("mcpclient.serverkit"):
            return None
        import inspect  # to take the indents out of a docstring

        return inspect.cleandoc(words)

    def describe(self) -> dict[str, Any]:
        """Return the item as lists have it, evaluated anew each time."""
        return {
            "name": self.name,
            "title": self.label,
            "description": self.documented(),
            "icons": self.icons,
            "_meta": self.meta,
        }

    @property
    def label(self) -> str:
        """Its name for people: the annotations' title, else its title, else its name."""
        hinted = (self.annotations or {}).get("title")
        return hinted if isinstance(hinted, str) else self.title or self.name

    async def complete(
        self, argument: str, value: str, context: Mapping[str, str], frame: Frame
    ) -> Any:
        """Return what an argument may be completed to; overridden where there is something.

        Args:
            argument: The argument's name.
            value: What was typed so far.
            context: The arguments that are chosen already.
            frame: The frame.

        Returns:
            The texts; or ``(texts, total)``, or a mapping with ``values``, ``total`` and
            ``hasMore``.
        """
        return []

    @property
    def completes(self) -> bool:
        """Whether it completes anything."""
        return "complete" in vars(self) or type(self).complete is not Component.complete


class Tool(Component):
    """A tool. A subclass has ``Arguments`` and ``run``.

    Attributes:
        Arguments: A type whose fields are the arguments.
        input_schema: A JSON Schema to show instead; then ``run`` gets a mapping that only has what
            the schema's top level requires.
        output: A type, or a JSON Schema, that the structured result keeps to; None: none is
            declared.
        task_support: ``forbidden``, ``optional`` or ``required``: whether it runs as a task.
    """

    kind = TOOLS
    Arguments: Any = None
    input_schema: Mapping[str, Any] | None = None
    output: Any = None
    task_support: str = "forbidden"

    def __init__(self, *, name: str | None = None, **options: Any) -> None:
        super().__init__(name=name, **options)
        if self.task_support not in _SUPPORT:
            raise ConfigError(
                f'must be "forbidden", "optional" or "required", not {self.task_support!r}',
                key="task_support",
            )
        self._checked: Checked[Any] | None = None
        self._out: Checked[Any] | None = None
        # Made when they are first needed, and once: types do not change.
        self._made: dict[str, Any] = {}

    async def run(self, args: Any, frame: Frame) -> Any:
        """Do what the tool does, with its checked arguments.

        Returns:
            A bare value, or a Response.
        """
        raise NotImplementedError

    async def prepare(self, args: Any, frame: Frame) -> Any:
        """Do what must be done first, and before a task is made, such as asking.

        ``frame.prepared`` is what it returns.
        """

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema of its arguments."""
        if self.input_schema is not None:
            return dict(self.input_schema)
        if "input" not in self._made:
            known = self.Arguments is not None
            self._made["input"] = arguments_schema(self.Arguments) if known else dict(_NOTHING)
        found = self._made["input"]
        assert isinstance(found, dict)
        return found

    @property
    def output_schema(self) -> Any:
        """The JSON Schema of its structured result, or None."""
        if self.output is None or isinstance(self.output, dict | bool):
            return self.output
        if "output" not in self._made:
            self._made["output"] = found = json_schema(self.output)
            found.pop("title", None)
        return self._made["output"]

    @property
    def header_params(self) -> dict[str, tuple[str, ...]]:
        """The names that ``x-mcp-header`` gives to arguments, with the path of each."""
        return dict(header_paths(self.schema))

    def read(self, params: Params) -> Any:
        """Return the arguments of a call, checked.

        Raises:
            Invalid: They are not as they must be; the text names the place and the reason.
            RpcError: They are no object: that is the client's mistake, not a model's.
        """
        raw = params.get("arguments") or b"{}"
        if bytes(memoryview(raw)[:1]) != b"{":
            raise RpcError(INVALID_PARAMS, "Invalid params: arguments must be an object")
        if self._checked is None:
            own = self.Arguments if self.input_schema is None else None
            self._checked = Checked(own if own is not None else dict[str, Any])
        found = self._checked.read(raw, "arguments")
        for name in (self.input_schema or {}).get("required", ()):
            if name not in found:
                raise Invalid(f"arguments: Object missing required field `{name}`")
        return found

    def check_output(self, value: Any) -> str | None:
        """Return what is wrong with a structured result, or None. A schema by hand is trusted."""
        if self.output is None or isinstance(self.output, dict | bool):
            return None
        if self._out is None:
            self._out = Checked(self.output)
        try:
            self._out.check(value, "structuredContent")
        except Invalid as problem:
            return str(problem)
        return None

    def describe(self) -> dict[str, Any]:
        """See :class:`Component`."""
        found = super().describe()
        found["inputSchema"] = self.schema
        found["outputSchema"] = self.output_schema
        found["annotations"] = self.annotations
        if self.task_support != "forbidden":
            found["execution"] = {"taskSupport": self.task_support}
        return found


class Prompt(Component):
    """A prompt. A subclass has ``get_messages``, and ``Arguments`` or ``arguments``.

    Attributes:
        Arguments: A type whose fields are the arguments; text becomes what the field is.
        arguments: Instead, written by hand: mappings of ``name``, ``description``, ``required``;
            then ``get_messages`` gets a mapping.
    """

    kind = PROMPTS
    Arguments: Any = None
    arguments: Sequence[Mapping[str, Any]] = ()

    def __init__(self, *, name: str | None = None, **options: Any) -> None:
        super().__init__(name=name, **options)
        self._checked: Checked[Any] | None = None
        self._shown: list[dict[str, Any]] | None = None

    async def get_messages(self, args: Any, frame: Frame) -> Any:
        """Return the messages: text, a list, a Response, or ``(messages, frame)``."""
        raise NotImplementedError

    def read(self, params: Params) -> Any:
        """Return the arguments of a request, checked.

        Raises:
            Invalid: One is missing, or not as it must be.
        """
        raw = params.get("arguments") or b"{}"
        if self._checked is None:
            if self.Arguments is None:
                self._checked = Checked(dict[str, str])
            else:
                self._checked = Checked(self.Arguments, lax=True)
        found = self._checked.read(raw, "arguments")
        if self.Arguments is None:
            for one in self.arguments:
                if one.get("required") and one["name"] not in found:
                    raise Invalid(f"arguments: Object missing required field `{one['name']}`")
        return found

    def described_arguments(self) -> list[dict[str, Any]]:
        """Return the arguments as lists have them."""
        if self.Arguments is None:
            return [dict(one) for one in self.arguments]
        if self._shown is None:
            self._shown = list(self._derived())
        return self._shown

    def _derived(self) -> Iterable[dict[str, Any]]:
        schema = arguments_schema(self.Arguments)
        required = schema.get("required", [])
        for name, one in properties_of(schema).items():
            yield _without_none(
                {
                    "name": name,
                    "title": one.get("title"),
                    "description": one.get("description"),
                    "required": name in required,
                }
            )

    def describe(self) -> dict[str, Any]:
        """See :class:`Component`."""
        found = super().describe()
        found["arguments"] = self.described_arguments() or None
        return found


class Resource(Component):
    """A resource, or a family of them. A subclass has ``uri`` or ``uri_template``, and ``read``.

    Attributes:
        uri: The URI of the one resource; it wins over every template.
        uri_template: An RFC 6570 template, levels 1 and 2.
        mime_type: Of what kind its contents are, unless they say so themselves.
        size: In bytes, or None.
    """

    uri: str = ""
    uri_template: str = ""
    mime_type: str = "text/plain"
    size: int | None = None

    def __init__(self, *, name: str | None = None, **options: Any) -> None:
        super().__init__(name=name, **options)
        if bool(self.uri) == bool(self.uri_template):
            raise ConfigError(
                f"resource {self.name!r} must have either uri or uri_template", key="uri"
            )
        self.template = UriTemplate(self.uri_template) if self.uri_template else None

    @property
    def kind(self) -> str:  # type: ignore[override]  # two lists share one class
        """``resources``, or ``templates``."""
        return TEMPLATES if self.uri_template else RESOURCES

    @property
    def key(self) -> str:
        """Its URI; a template's name, by which templates are tried in order."""
        return self.uri or self.name

    async def read(self, uri: str, variables: dict[str, str], frame: Frame) -> Any:
        """Return the contents: text, bytes, any JSON value, or a Response.

        A template that knows nothing of the URI returns None, or raises NotFound: the next one is
        tried.
        """
        raise NotImplementedError

    def describe(self) -> dict[str, Any]:
        """See :class:`Component`."""
        found = super().describe()
        where = "uriTemplate" if self.uri_template else "uri"
        found[where] = self.uri_template or self.uri
        found["mimeType"] = self.mime_type
        hints = {key: hint for key, hint in (self.annotations or {}).items() if key != "title"}
        found["annotations"] = hints or None
        if not self.uri_template:
            found["size"] = self.size
        return found


_NOTHING = {"type": "object", "properties": {}}


def made(component: Any, name: str | None = None) -> Component:
    """Return the component that a class or an instance is.

    Raises:
        ConfigError: It is none.
    """
    one: Any = component(name=name) if _is_kind(component) else component
    if not isinstance(one, Component):
        raise ConfigError(
            f"{component!r} is no component: give a Tool, Prompt or Resource, as a class or an "
            "instance, or decorate a function"
        )
    if name is not None and name != one.name:
        one.name = name
    return one


def _is_kind(component: Any) -> bool:
    return isinstance(component, type) and issubclass(component, Component)


def snake_case(name: str) -> str:
    """Return a class's name as components are called: ``CodeReview`` is ``code_review``."""
    return _WORD.sub("_", name).lower()


def _without_none(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if value is not None}
