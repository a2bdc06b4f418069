"""What handlers return, as the protocol writes it. Knows no request.

A bare value is enough nearly always; a :class:`Response` says more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import msgspec
from msgspec import Struct

from mcpclient.ground.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Response:
    """A result that is put together step by step; each method returns the response itself.

    ``Response().text("done").image(png, "image/png").structured({"n": 1})`` in a tool,
    ``Response().user("Review this.").assistant("Gladly.")`` in a prompt,
    ``Response().text("hello").blob(data)`` in a resource.
    """

    def __init__(self) -> None:
        self._content: list[dict[str, Any]] = []
        self._messages: list[dict[str, Any]] = []
        self._structured: Any = _ABSENT
        self._failed = False
        self._meta: dict[str, Any] = {}
        self._description: str | None = None

    # -- content ---------------------------------------------------------------------------

    def text(self, text: str, **annotations: Any) -> Self:
        """Add a piece of text. ``annotations`` are ``audience``, ``priority`` and the like."""
        return self._add(_annotated({"type": "text", "text": text}, annotations))

    def image(self, data: bytes | str, mime_type: str, **annotations: Any) -> Self:
        """Add an image: its bytes, or base64 text."""
        return self._add(_annotated(media("image", data, mime_type), annotations))

    def audio(self, data: bytes | str, mime_type: str, **annotations: Any) -> Self:
        """Add a sound: its bytes, or base64 text."""
        return self._add(_annotated(media("audio", data, mime_type), annotations))

    def embed(self, uri: str, value: Any, mime_type: str | None = None, **annotations: Any) -> Self:
        """Add a resource with its contents: text, bytes, or any JSON value."""
        inner = contents(uri, value, mime_type)
        return self._add(_annotated({"type": "resource", "resource": inner}, annotations))

    def link(self, uri: str, name: str, **more: Any) -> Self:
        """Add a link to a resource; ``title``, ``description``, ``mimeType``, ``size`` …"""
        return self._add({"type": "resource_link", "uri": uri, "name": name, **more})

    def block(self, block: Mapping[str, Any]) -> Self:
        """Add a content block as it is."""
        return self._add(dict(block))

    def blob(self, data: bytes, mime_type: str = "application/octet-stream") -> Self:
        """Add bytes: contents of the resource that is read."""
        return self._add({"type": "blob", "blob": base64(data), "mimeType": mime_type})

    # -- what stands around it -------------------------------------------------------------

    def structured(self, value: Any) -> Self:
        """Give the result as a value too, by the tool's output schema."""
        self._structured = plain(value)
        return self

    def error(self, text: str | None = None) -> Self:
        """Say that the tool failed, with this text if there is one."""
        self._failed = True
        return self if text is None else self.text(text)

    def meta(self, **meta: Any) -> Self:
        """Add members to the result's ``_meta``."""
        self._meta |= meta
        return self

    def description(self, text: str) -> Self:
        """Say what a prompt is for, this time."""
        self._description = text
        return self

    # -- messages --------------------------------------------------------------------------

    def user(self, content: Any) -> Self:
        """Add a message of the user: a text, or a content block."""
        return self._say("user", content)

    def assistant(self, content: Any) -> Self:
        """Add a message of the assistant: a text, or a content block."""
        return self._say("assistant", content)

    # -- as results ------------------------------------------------------------------------

    def as_tool(self) -> dict[str, Any]:
        """Return it as the result of a tool."""
        if self._messages:
            raise LocalProtocolError("messages belong into prompts, not into a tool's result")
        found: dict[str, Any] = {"content": [_portable(part) for part in self._content]}
        if self._structured is not _ABSENT:
            found["structuredContent"] = self._structured
            if not self._content:
                found["content"] = [_text(_json(self._structured))]
        if self._failed:
            found["isError"] = True
        return self._with_meta(found)

    def as_prompt(self) -> dict[str, Any]:
        """Return it as a prompt's messages."""
        for part in self._content:
            self._say("user", part)
        self._content = []
        found: dict[str, Any] = {"messages": self._messages}
        if self._description is not None:
            found["description"] = self._description
        return self._with_meta(found)

    def as_resource(self, uri: str, mime_type: str | None) -> dict[str, Any]:
        """Return it as the contents of a resource."""
        found: list[dict[str, Any]] = []
        for part in self._content:
            if part["type"] == "text":
                found.append(contents(uri, part["text"], mime_type))
            elif part["type"] == "blob":
                found.append({"uri": uri, "mimeType": part["mimeType"], "blob": part["blob"]})
            elif part["type"] == "resource":
                found.append(part["resource"])
            else:
                raise LocalProtocolError(f"a resource cannot hold a block of {part['type']}")
        return self._with_meta({"contents": found})

    def _with_meta(self, found: dict[str, Any]) -> dict[str, Any]:
        return {**found, "_meta": self._meta} if self._meta else found

    def _add(self, part: dict[str, Any]) -> Self:
        self._content.append(part)
        return self

    def _say(self, role: str, content: Any) -> Self:
        self._messages.append({"role": role, "content": one_block(content)})
        return self


_ABSENT = object()


def tool_result(value: Any, *, structured: bool) -> dict[str, Any]:
    """Return the result that a tool's return value means.

    Args:
        value: A Response; or None, text, a number, a boolean, a list, a mapping, a struct or a
            dataclass; or a list of content blocks.
        structured: Whether the tool declares an output schema.
    """
    if type(value) is str:
        found: dict[str, Any] = {"content": [_text(value)]}
        if structured:
            found["structuredContent"] = value
        return found
    if isinstance(value, Response):
        return value.as_tool()
    if value is None and not structured:
        return {"content": []}
    value = plain(value)
    if _is_blocks(value):
        return {"content": value}
    found = {"content": [_text(value if isinstance(value, str) else _json(value))]}
    if structured or isinstance(value, dict):
        found["structuredContent"] = value
    return found


def prompt_result(value: Any) -> dict[str, Any]:
    """Return the messages that a prompt's return value means: text, messages, or a Response."""
    if isinstance(value, Response):
        return value.as_prompt()
    if isinstance(value, str):
        return {"messages": [{"role": "user", "content": _text(value)}]}
    if isinstance(value, list | tuple):
        return {"messages": [_message(one) for one in value]}
    raise LocalProtocolError(
        f"a prompt returns text, a list of messages or a Response, not {type(value).__name__}"
    )


def resource_result(value: Any, uri: str, mime_type: str | None) -> dict[str, Any]:
    """Return the contents that a resource's return value means: text, bytes, JSON, a Response."""
    if isinstance(value, Response):
        return value.as_resource(uri, mime_type)
    return {"contents": [contents(uri, value, mime_type)]}


def contents(uri: str, value: Any, mime_type: str | None) -> dict[str, Any]:
    """Return one resource's contents: text as it is, bytes as base64, all else as JSON."""
    if isinstance(value, str):
        return {"uri": uri, "mimeType": mime_type or "text/plain", "text": value}
    if isinstance(value, bytes | bytearray | memoryview):
        kind = mime_type if mime_type not in (None, "text/plain") else "application/octet-stream"
        return {"uri": uri, "mimeType": kind, "blob": base64(bytes(value))}
    kind = mime_type if mime_type not in (None, "text/plain") else "application/json"
    return {"uri": uri, "mimeType": kind, "text": _json(plain(value))}


def media(kind: str, data: bytes | str, mime_type: str) -> dict[str, Any]:
    """Return a block of an image or a sound: bytes, or base64 text."""
    written = data if isinstance(data, str) else base64(data)
    return {"type": kind, "data": written, "mimeType": mime_type}


def one_block(content: Any) -> dict[str, Any]:
    """Return one content block: text, a block, or a Response that has one."""
    if isinstance(content, str):
        return _text(content)
    if isinstance(content, Response):
        [only] = content._content or [_text("")]
        return only
    content = plain(content)
    if isinstance(content, dict) and isinstance(content.get("type"), str):
        return content
    raise LocalProtocolError(f"{type(content).__name__} is no text and no content block")


def plain(value: Any) -> Any:
    """Return a value as JSON has it: structs, dataclasses, dates and the like turned plain."""
    if type(value) in (str, int, float, bool, type(None)):
        return value
    return msgspec.to_builtins(value, str_keys=True)


def base64(data: bytes) -> str:
    """Return bytes as base64 text."""
    from base64 import b64encode  # few results hold any

    return b64encode(data).decode()


def _message(one: Any) -> dict[str, Any]:
    message = plain(one) if isinstance(one, Struct) else one
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant"):
        raise LocalProtocolError('a message has a "role" (user or assistant) and a "content"')
    return {**message, "content": one_block(message.get("content"))}


def _is_blocks(value: Any) -> bool:
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(one, dict) and one.get("type") in _KINDS for one in value)
    )


_KINDS = frozenset({"text", "image", "audio", "resource", "resource_link"})


def _portable(part: dict[str, Any]) -> dict[str, Any]:
    if part["type"] == "blob":
        raise LocalProtocolError("a tool gives bytes by embed(), image() or audio(), not by blob()")
    return part


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _annotated(block: dict[str, Any], annotations: dict[str, Any]) -> dict[str, Any]:
    return {**block, "annotations": annotations} if annotations else block


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
