"""Results and listed items as the caller sees them: typed views over the bytes received.

Every view keeps its bytes: ``raw`` is the whole JSON object, unknown members included, decoded
anew at each use, so that nobody's change reaches anybody else. Members that are null, or absent,
are None; a member of the wrong type is treated as absent where the item can do without it.

https://modelcontextprotocol.io/specification/2026-07-28/schema
"""

from __future__ import annotations

from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec
from msgspec import Raw, Struct

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.protocol import payload
from mcpclient.protocol.content import Content, ResourceContents, TextContent, block, blocks

_BROKEN = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_EMPTY: Any = Raw(b"")


class Result:
    """A result as received. ``raw`` gives all of it, ``meta`` its ``_meta``."""

    __slots__ = ("_data",)

    def __init__(self, data: Raw | bytes) -> None:
        self._data = data

    @property
    def raw(self) -> dict[str, Any]:
        """The whole result, a fresh copy each time."""
        return payload.decode(self._data, dict[str, Any])

    @property
    def meta(self) -> dict[str, Any]:
        """The result's ``_meta``, empty if there is none."""
        found = self.raw.get("_meta")
        return found if isinstance(found, dict) else {}

    @property
    def size(self) -> int:
        """How many bytes of JSON the result has."""
        return len(memoryview(self._data))

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.raw == other.raw

    __hash__ = None  # type: ignore[assignment]  # equal by value, so not hashable


class _ToolWire(Struct, gc=False, rename={"structured": "structuredContent", "flag": "isError"}):
    content: Raw = _EMPTY
    structured: Raw = _EMPTY
    flag: Any = False


_decode_tool = msgspec.json.Decoder(_ToolWire).decode


class ToolResult(Result):
    """What a tool answered.

    Attributes:
        is_error: Whether the tool says that it failed. Only a JSON ``true`` says so.
    """

    __slots__ = ("_wire", "is_error")

    def __init__(self, data: Raw | bytes) -> None:
        self._data = data
        try:
            # On the path of every call: straight, without the look-up of a decoder.
            wire = _decode_tool(data)
        except _BROKEN:
            wire = payload.decode(data, _ToolWire, "the tool's result")
        self._wire = wire
        self.is_error = wire.flag is True

    @property
    def content(self) -> list[Content]:
        """The content blocks in order; unknown kinds as :class:`UnknownContent`."""
        return blocks(self._wire.content)

    @property
    def has_structured(self) -> bool:
        """Whether there is structured content: it may be null, which is not absence."""
        return bool(self._wire.structured)

    @property
    def structured(self) -> Any:
        """The structured content: any JSON value, or None if there is none."""
        return payload.value(self._wire.structured)

    @property
    def text(self) -> str:
        """The text blocks joined by newlines; without any, the structured content as JSON."""
        parts = [part.text for part in self.content if isinstance(part, TextContent)]
        if not parts and self._wire.structured:
            return bytes(self._wire.structured).decode("utf-8", "replace")
        return "\n".join(parts)

    @property
    def error_text(self) -> str:
        """The message of a failed call, in the words editors show."""
        wire = bytes(self._wire.content)
        if wire[:1] != b"[":
            return "tool errored (no content provided)"
        parts = self.content
        if not parts:
            return "tool errored (empty content)"
        return "\n".join(
            part.text if isinstance(part, TextContent) else "[non-text content omitted]"
            for part in parts
        )

    def __repr__(self) -> str:
        flag = ", is_error=True" if self.is_error else ""
        return f"ToolResult({self.text[:200]!r}{flag})"


class _ReadWire(Struct, gc=False):
    contents: list[ResourceContents]


class ResourceResult(Result):
    """What a resource holds: one or several contents."""

    __slots__ = ("_contents",)

    def __init__(self, data: Raw | bytes) -> None:
        super().__init__(data)
        self._contents = payload.decode(data, _ReadWire, "the resource").contents

    @property
    def contents(self) -> list[ResourceContents]:
        """The contents, each text or blob."""
        return list(self._contents)

    @property
    def text(self) -> str:
        """The text contents joined by newlines."""
        return "\n".join(part.text for part in self._contents if part.text is not None)

    def __repr__(self) -> str:
        return f"ResourceResult({len(self._contents)} contents, {self.size} bytes)"


class PromptMessage(Struct, gc=False, frozen=True):
    """One message of a prompt: who says it, and what."""

    role: str
    content: Content


class _MessageWire(Struct, gc=False):
    content: Raw
    role: str = ""


class _PromptWire(Struct, gc=False):
    messages: list[_MessageWire] = []
    description: Any = None


class PromptResult(Result):
    """A prompt with its arguments filled in.

    Attributes:
        description: What it is for, or None.
        messages: Its messages in order.
    """

    __slots__ = ("description", "messages")

    def __init__(self, data: Raw | bytes) -> None:
        super().__init__(data)
        wire = payload.decode(data, _PromptWire, "the prompt")
        self.description = wire.description if isinstance(wire.description, str) else None
        self.messages = [PromptMessage(m.role, block(m.content)) for m in wire.messages]

    @property
    def text(self) -> str:
        """The text of all messages joined by newlines."""
        parts = (message.content for message in self.messages)
        return "\n".join(part.text for part in parts if isinstance(part, TextContent))

    def __repr__(self) -> str:
        return f"PromptResult({self.text[:200]!r})"


class _CompletionWire(Struct, gc=False):
    completion: Any = None


class Completion(Result):
    """What an argument may be completed to.

    Attributes:
        values: The texts, as many as the server gave; the protocol allows it a hundred.
        total: How many there are in all, or None if the server did not say.
        has_more: Whether the server says that there are more than it gave.
    """

    __slots__ = ("has_more", "total", "values")

    def __init__(self, data: Raw | bytes = b'{"completion":{"values":[]}}') -> None:
        super().__init__(data)
        # A result with parts missing is still worth what is there (CPL-01).
        found = payload.decode(data, _CompletionWire, "the completion").completion
        told: dict[str, Any] = found if isinstance(found, dict) else {}
        values: Any = told.get("values")
        listed = values if isinstance(values, list) else []
        self.values: list[str] = [value for value in listed if isinstance(value, str)]
        total: Any = told.get("total")
        whole = type(total) is int or (isinstance(total, float) and total.is_integer())
        self.total: int | None = int(total) if whole and total >= 0 else None
        self.has_more: bool = told.get("hasMore") is True

    def __repr__(self) -> str:
        more = ", has_more=True" if self.has_more else ""
        return f"Completion({self.values!r}, total={self.total}{more})"


class Item(Struct, gc=False, rename="camel", kw_only=True, frozen=True):
    """Something a server lists. Made only from what the server sent."""

    _source: Raw = msgspec.field(default=_EMPTY, name="§source")

    @property
    def raw(self) -> dict[str, Any]:
        """The whole item as received, a fresh copy each time."""
        return payload.decode(self._source, dict[str, Any])

    @classmethod
    def from_wire(cls, source: Raw) -> Self:
        """Return the item that some JSON describes.

        Raises:
            RemoteProtocolError: It is no object, or lacks what it cannot do without.
        """
        try:
            item = payload.decode(source, cls, "an item")
        except RemoteProtocolError:
            item = cls._without_odd_members(source)
        msgspec.structs.force_setattr(item, "_source", source)
        return item

    @classmethod
    def _without_odd_members(cls, source: Raw) -> Self:
        # A description of the wrong type must not cost the tool, and a tool must not cost the
        # list: drop the member that does not fit, as long as there is one to drop.
        members = payload.decode(source, dict[str, Any], "an item")
        while True:
            try:
                return payload.decode(msgspec.json.encode(members), cls, "an item")
            except RemoteProtocolError as problem:
                odd = [key for key in members if f"`$.{key}" in str(problem)]
                if not odd:
                    raise
                del members[odd[0]]

    def __repr__(self) -> str:
        fields = (name for name in self.__struct_fields__ if name != "_source")
        shown = ((name, getattr(self, name)) for name in fields)
        body = ", ".join(
            f"{name}={value!r}" for name, value in shown if value and not isinstance(value, Raw)
        )
        return f"{type(self).__name__}({body})"


class Tool(Item, kw_only=True, frozen=True):
    """A tool that a server offers."""

    name: str
    title: str | None = None
    description: str | None = None
    _input: Raw = msgspec.field(default=_EMPTY, name="inputSchema")
    _output: Raw = msgspec.field(default=_EMPTY, name="outputSchema")
    _annotations: Raw = msgspec.field(default=_EMPTY, name="annotations")
    _execution: Raw = msgspec.field(default=_EMPTY, name="execution")

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments; ``{"type": "object"}`` if none was given (B171)."""
        return _mapping(self._input) or {"type": "object"}

    @property
    def output_schema(self) -> Any:
        """The JSON Schema of the structured content, or None."""
        return payload.value(self._output)

    @property
    def annotations(self) -> dict[str, Any]:
        """The server's hints, such as ``readOnlyHint``. Untrusted, as the server is (TOOL-01)."""
        return _mapping(self._annotations)

    @property
    def task_support(self) -> str:
        """Whether it runs as a task (2025-11-25): ``forbidden``, ``optional`` or ``required``."""
        told = _mapping(self._execution).get("taskSupport") if self._execution else None
        return told if told in ("optional", "required") else "forbidden"

    @property
    def label(self) -> str:
        """The name for people: title, else the annotations' title, else name (TOOL-13)."""
        hinted = self.annotations.get("title")
        return self.title or (hinted if isinstance(hinted, str) else "") or self.name


class Resource(Item, kw_only=True, frozen=True):
    """A resource that a server offers. ``uri`` is text, exactly as the server wrote it."""

    uri: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None


class ResourceTemplate(Item, kw_only=True, frozen=True):
    """A family of resources: ``uri_template`` is an RFC 6570 template."""

    uri_template: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None

    @property
    def variables(self) -> list[str]:
        """The names that :meth:`expand` takes, in order. Raises as that does."""
        from mcpclient.protocol import templates  # most programs never expand one

        return templates.variables(self.uri_template)

    def expand(self, /, **variables: object) -> str:
        """Return the URI of one resource of the family, for ``read_resource``.

        Args:
            variables: Text, numbers, booleans, or lists or mappings of these. Those left out, or
                None, vanish from the URI.

        Raises:
            LocalProtocolError: The server's template is none, or a value cannot stand in it.
        """
        from mcpclient.protocol import templates

        return templates.expand(self.uri_template, variables)


class PromptArgument(Struct, gc=False, frozen=True):
    """An argument that a prompt takes; its value is always text."""

    name: str
    title: str | None = None
    description: str | None = None
    required: bool | None = None


class Prompt(Item, kw_only=True, frozen=True):
    """A prompt that a server offers."""

    name: str
    title: str | None = None
    description: str | None = None
    arguments: tuple[PromptArgument, ...] | None = None


I = TypeVar("I", bound=Item)  # noqa: E741 - an item


class Page(Struct, Generic[I], gc=False):
    """One page of a list.

    Attributes:
        items: The items, those left out that cannot be read.
        skipped: Why each of those was left out.
        next_cursor: The cursor of the next page, or None at the end. ``""`` is a cursor.
    """

    items: list[I]
    skipped: list[str]
    next_cursor: str | None

    MEMBER: ClassVar[dict[type[Item], str]] = {
        Tool: "tools",
        Resource: "resources",
        ResourceTemplate: "resourceTemplates",
        Prompt: "prompts",
    }


class _Cursor(Struct, gc=False, rename={"cursor": "nextCursor"}):
    cursor: Any = None


def page(result: Raw, kind: type[I]) -> Page[I]:
    """Return one page of a list as typed items; null instead of an array gives none.

    Raises:
        RemoteProtocolError: The result is no object.
    """
    members = payload.decode(result, dict[str, Raw])
    sources = members.get(Page.MEMBER[kind])
    items: list[I] = []
    skipped: list[str] = []
    listed = payload.decode(sources, list[Raw] | None, "the list") if sources else None  # type: ignore[arg-type]
    for source in listed or ():
        try:
            items.append(kind.from_wire(source))
        except RemoteProtocolError as problem:
            skipped.append(str(problem))
    cursor = payload.decode(result, _Cursor).cursor
    return Page(items, skipped, cursor if isinstance(cursor, str) else None)


def _mapping(data: Raw) -> dict[str, Any]:
    found = payload.value(data)
    return found if isinstance(found, dict) else {}
