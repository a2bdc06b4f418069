"""Results as people want to see them: text as text, JSON in lines, images in a notebook.

Each is the result of the library with another ``repr``, so everything else about it is the same.
Nothing that controls a terminal is let through, and no HTML or script of a server is handed to a
notebook: what is HTML here was escaped, or made here.
"""

from __future__ import annotations

import json
from base64 import b64encode
from html import escape
from typing import Any, Self

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.ground.text import printable, printable_lines, size
from mcpclient.protocol.content import (
    AudioContent,
    Content,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    UnknownContent,
    unbase64,
)
from mcpclient.protocol.types import PromptResult, ResourceResult, Result, ToolResult

# Characters of one result; more are in ``.text``. No terminal is better for a megabyte.
_SHOWN = 100_000
# Longer texts are not looked at for being JSON.
_PRETTY = 1_000_000
# What a notebook shows by itself. SVG is not among them: it may hold scripts.
_IMAGES = ("image/png", "image/jpeg", "image/gif")
# What is put into HTML as an image or a sound, where no script in it runs.
_EMBEDDED = (*_IMAGES, "image/webp", "image/svg+xml")
_SOUNDS = ("audio/wav", "audio/mpeg", "audio/ogg", "audio/webm", "audio/flac", "audio/mp4")

Part = Content | ResourceContents


class _Shown(Result):
    __slots__ = ()

    @classmethod
    def of(cls, result: Result) -> Self:
        """Return a result that shows itself to people."""
        return cls(result._data)

    def _parts(self) -> list[Part]:
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n".join(filter(None, map(described, self._parts()))) or "(nothing)"

    def __str__(self) -> str:
        return repr(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return bundle(self._parts(), repr(self))


class ShownTool(_Shown, ToolResult):
    """What a tool answered."""

    __slots__ = ()

    def _parts(self) -> list[Part]:
        found: list[Part] = list(self.content)
        if self.has_structured and not any(isinstance(one, TextContent) for one in found):
            found.insert(0, TextContent(self.text if not found else _json(self.structured)))
        return found


class ShownResource(_Shown, ResourceResult):
    """What a resource holds."""

    __slots__ = ()

    def _parts(self) -> list[Part]:
        return list(self.contents)


class ShownPrompt(_Shown, PromptResult):
    """A prompt, its messages each under the name of who says it."""

    __slots__ = ()

    def _parts(self) -> list[Part]:
        found: list[Part] = []
        for message in self.messages:
            found += [TextContent(f"{message.role}:"), message.content]
        return found


def described(part: Part) -> str:
    """Return a part of a result as text that is safe to print."""
    match part:
        case TextContent():
            return _text(part.text)
        case ImageContent() | AudioContent():
            return f"[{printable(part.mime_type, 100)}, {_weight(part.data)}]"
        case ResourceLink():
            name = part.title or part.name
            words = (part.uri, f'"{name}"' if name else "", part.mime_type or "")
            return printable(f"[link {' '.join(filter(None, words))}]")
        case EmbeddedResource():
            return f"[resource {printable(part.resource.uri)}]\n{described(part.resource)}"
        case ResourceContents():
            if part.blob is not None:
                kind = part.mime_type or "application/octet-stream"
                return f"[{printable(kind, 100)}, {_weight(part.blob)}]"
            return _text(part.text or "")
        case UnknownContent():
            return f"[{printable(part.type or 'unknown', 100)}]\n{_json(part.data)}"


def bundle(parts: list[Part], text: str) -> dict[str, Any]:
    """Return parts of a result as a notebook takes them, by their kind.

    One image alone is that image. Several parts, or one that is Markdown, are HTML, with the
    first image beside it for who shows no HTML. All have a form as text.
    """
    found: dict[str, Any] = {"text/plain": text}
    media = [one for one in map(_media, parts) if one is not None]
    images = [one for one in media if one[0] in _IMAGES]
    if images:
        found[images[0][0]] = images[0][1]
    pages = [_page(part) for part in parts]
    if any(page is not None for page in pages) and not (images and len(parts) == 1):
        found["text/html"] = "\n".join(
            page or f"<pre>{escape(described(part))}</pre>"
            for page, part in zip(pages, parts, strict=True)
        )
    return found


def _media(part: Part) -> tuple[str, str] | None:
    """Return the kind and the base64 text of an image or a sound, if it is one."""
    match part:
        case ImageContent() | AudioContent():
            kind, data = part.mime_type, part.data
        case EmbeddedResource():
            return _media(part.resource)
        case ResourceContents(mime_type=str(), blob=str()):
            kind, data = part.mime_type or "", part.blob or ""
        case _:
            return None
    if kind not in _EMBEDDED + _SOUNDS:
        return None
    try:
        return kind, b64encode(unbase64(data, kind)).decode()
    except RemoteProtocolError:
        return None  # shown by its name


def _page(part: Part) -> str | None:
    """Return a part as HTML, if it is more than text."""
    if (media := _media(part)) is not None:
        kind, data = media
        if kind in _SOUNDS:
            return f'<audio controls src="data:{kind};base64,{data}"></audio>'
        return f'<img src="data:{kind};base64,{data}">'
    inner = part.resource if isinstance(part, EmbeddedResource) else part
    if isinstance(inner, ResourceContents) and inner.text and _is_markdown(inner.mime_type):
        return _markdown(inner.text)
    return None


def _is_markdown(kind: str | None) -> bool:
    return (kind or "").partition(";")[0].strip().lower() in ("text/markdown", "text/x-markdown")


def _markdown(text: str) -> str | None:
    """Return Markdown as HTML, without what it may not bring along; None if nothing here can.

    Notebooks would render it themselves, but with all the HTML and script that stands in it.
    """
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        return None
    reader = MarkdownIt("commonmark", {"html": False}).enable("table").disable("image")
    return str(reader.render(text[:_SHOWN]))


def _text(text: str) -> str:
    return printable_lines(_pretty(text).replace("\r\n", "\n"), _SHOWN)


def _pretty(text: str) -> str:
    """Return a text that is a JSON object or array in lines, any other as it is."""
    if text.strip()[:1] not in ("{", "[") or len(text) > _PRETTY:
        return text
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2, allow_nan=False)
    except (ValueError, RecursionError):
        return text


def _json(value: Any) -> str:
    try:
        return _text(json.dumps(value, ensure_ascii=False, default=str))
    except (ValueError, RecursionError):
        return printable_lines(repr(value), _SHOWN)


def _weight(data: str) -> str:
    try:
        return size(len(unbase64(data, "it")))
    except RemoteProtocolError:
        return "not base64"
