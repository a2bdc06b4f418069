"""What a server answered, as a person reads it, and its binary parts as files.

Text is shown as text. What is not becomes a line that tells its kind and size, unless ``-o`` names
a file for it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, assert_never

from mcpclient.cli import safe
from mcpclient.cli.problems import Failure
from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.ground.text import size
from mcpclient.protocol.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
    UnknownContent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcpclient.cli.out import Out
    from mcpclient.protocol.content import Content
    from mcpclient.protocol.types import ResourceResult, ToolResult

Binary = ImageContent | AudioContent | ResourceContents


def show_result(out: Out, result: ToolResult, file: str | None) -> None:
    """Show a tool's result.

    Args:
        out: Where to.
        result: The result.
        file: What ``-o`` says.
    """
    content = result.content
    saved = _save(out, list(_binaries(content)), file)
    if file == "-":
        return None  # the bytes and nothing else
    if out.json:
        return out.document(result.raw)
    if not content and result.has_structured:
        return out.text(safe.jsoned(result.structured, indent=2))
    for part in content:
        show(out, part, saved)
    return None


def show_contents(out: Out, result: ResourceResult, file: str | None) -> None:
    """Show what a resource holds; with ``-o`` all of it goes there, text too."""
    if file is not None:
        _save(out, list(result.contents), file)
    if out.json and file != "-":
        return out.document(result.raw)
    if file is None:
        for part in result.contents:
            if part.text is not None:
                if part.text:  # nothing is nothing, not an empty line
                    out.text(part.text)
            else:
                out.text(_told("blob", part.mime_type, part))
    return None


def show(out: Out, part: Content, saved: dict[int, str] | None = None) -> None:
    """Show one block."""
    match part:
        case TextContent():
            out.text(part.text)
        case ImageContent():
            out.text((saved or {}).get(id(part)) or _told("image", part.mime_type, part))
        case AudioContent():
            out.text((saved or {}).get(id(part)) or _told("audio", part.mime_type, part))
        case EmbeddedResource():
            inner = part.resource
            if inner.text is not None:
                out.text(inner.text)
            else:
                told = (saved or {}).get(id(inner))
                out.text(told or _told(f"blob {inner.uri}", inner.mime_type, inner))
        case ResourceLink():
            words = (part.title or part.name, part.mime_type or "")
            out.text(" ".join(["[link]", part.uri, *filter(None, map(safe.brief, words))]))
        case UnknownContent():
            out.text(f"[{part.type or 'unknown'}] {safe.jsoned(part.data)}")
        case _:
            assert_never(part)


def _binaries(content: Iterable[Content]) -> Iterable[Binary]:
    for part in content:
        if isinstance(part, ImageContent | AudioContent):
            yield part
        elif isinstance(part, EmbeddedResource) and part.resource.blob is not None:
            yield part.resource


def _told(kind: str, mime: str | None, part: Binary) -> str:
    try:
        much = size(len(part.decode()))
    except RemoteProtocolError as problem:
        much = str(problem)
    return f"[{kind}] {mime or 'unknown type'}, {much}; -o FILE saves it"


def _save(out: Out, parts: list[Binary], file: str | None) -> dict[int, str]:
    """Write parts to the file, and to others beside it if there are several.

    Returns:
        What is shown of each part instead of it, by its identity.

    Raises:
        Failure: There is nothing to write, or it cannot be written.
    """
    if file is None:
        return {}
    if not parts:
        raise Failure("there is nothing to save: all of the result is text", type="NothingToSave")
    if file == "-":
        if out.terminal:
            raise Failure("bytes would spoil this terminal: give -o a file, or pipe it on")
        for part in parts:
            out.raw(part.decode())
        return {}
    shown = {}
    stem, ending = os.path.splitext(file)
    paths = [file, *(f"{stem}-{number}{ending}" for number in range(2, len(parts) + 1))]
    for path in paths[1:]:
        if os.path.lexists(path):  # how many there are, the server says
            raise Failure(f"{path} is there already, and only {file} was named: remove it first")
    for number, (path, part) in enumerate(zip(paths, parts, strict=True)):
        data = part.decode()
        try:
            with open(path, "xb" if number else "wb") as stream:
                stream.write(data)
        except OSError as problem:
            raise Failure(f"{path} cannot be written: {problem.strerror}") from None
        shown[id(part)] = f"[saved] {path}, {size(len(data))}"
        if isinstance(part, ResourceContents):
            out.note(shown[id(part)])
    return shown
