"""What results are made of: text, images, audio, links, embedded resources. Views, not owners.

Unknown kinds are kept as they came (TOOL-11); unknown members are found in ``raw`` of the
result that holds them.

https://modelcontextprotocol.io/specification/2026-07-28/server/tools
"""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.protocol import payload


class _Block(
    Struct,
    gc=False,
    frozen=True,
    repr_omit_defaults=True,
    tag_field="type",
    rename="camel",
    omit_defaults=True,
):
    pass


class TextContent(_Block, tag="text", frozen=True):
    """A piece of text."""

    text: str
    annotations: Raw = Raw(b"")


class ImageContent(_Block, tag="image", frozen=True):
    """An image; ``data`` is base64 text, :meth:`decode` its bytes."""

    data: str
    mime_type: str
    annotations: Raw = Raw(b"")

    def decode(self) -> bytes:
        """Return the image's bytes. Raises RemoteProtocolError if they are not base64."""
        return unbase64(self.data, "an image")


class AudioContent(_Block, tag="audio", frozen=True):
    """A sound; ``data`` is base64 text, :meth:`decode` its bytes."""

    data: str
    mime_type: str
    annotations: Raw = Raw(b"")

    def decode(self) -> bytes:
        """Return the sound's bytes. Raises RemoteProtocolError if they are not base64."""
        return unbase64(self.data, "a sound")


class ResourceLink(_Block, tag="resource_link", frozen=True):
    """A resource that can be read, whether or not any list names it (TOOL-12)."""

    uri: str
    name: str = ""
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    annotations: Raw = Raw(b"")


class ResourceContents(Struct, gc=False, frozen=True, repr_omit_defaults=True, rename="camel"):
    """The contents of a resource: ``text``, or ``blob`` as base64 text, never both."""

    uri: str
    mime_type: str | None = None
    text: str | None = None
    blob: str | None = None

    def decode(self) -> bytes:
        """Return the contents as bytes, whichever form they came in.

        Raises:
            RemoteProtocolError: The blob is not base64.
        """
        if self.blob is not None:
            return unbase64(self.blob, self.uri)
        return (self.text or "").encode("utf-8", "replace")


class EmbeddedResource(_Block, tag="resource", frozen=True):
    """A resource whose contents came along."""

    resource: ResourceContents
    annotations: Raw = Raw(b"")


class UnknownContent(Struct, gc=False, frozen=True, repr_omit_defaults=True):
    """A block of a kind that this version does not know, or that lacks what its kind needs.

    Attributes:
        type: The kind it names, or an empty string.
        data: The block as received.
    """

    type: str
    data: Any


KnownContent = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource
Content = KnownContent | UnknownContent

T = TypeVar("T")
_decode_known = msgspec.json.Decoder(list[KnownContent]).decode
_BROKEN = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def blocks(content: Raw) -> list[Content]:
    """Return content as typed blocks; anything but an array gives none (B161)."""
    try:
        return _decode_known(content)  # type: ignore[return-value]  # list is invariant
    except _BROKEN:
        pass
    try:
        parts = payload.decode(content, list[Raw])
    except RemoteProtocolError:
        return []
    return [block(part) for part in parts]


def block(part: Raw) -> Content:
    """Return one block, of the unknown kind if it is none we know."""
    try:
        return payload.decode(part, KnownContent)  # type: ignore[arg-type]  # a union is no type
    except RemoteProtocolError:
        pass
    try:
        fields = payload.value(part)
    except RemoteProtocolError:
        return UnknownContent("", bytes(part).decode("utf-8", "replace"))
    kind = fields.get("type") if isinstance(fields, dict) else None
    return UnknownContent(kind if isinstance(kind, str) else "", fields)


_WHITE = re.compile(r"[ \t\r\n\f]+")


def unbase64(text: str, what: str) -> bytes:
    """Return the bytes of base64 text in either alphabet, line breaks allowed.

    Raises:
        RemoteProtocolError: It is not base64; nothing is dropped silently (B183).
    """
    import base64  # few results hold any

    compact = _WHITE.sub("", text).replace("-", "+").replace("_", "/")
    compact += "=" * (-len(compact) % 4)
    try:
        return base64.b64decode(compact, validate=True)
    except ValueError as problem:
        raise RemoteProtocolError(f"{what} is not base64: {problem}") from None
