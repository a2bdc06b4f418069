"""One JSON-RPC message: its envelope read, its line written. Never looks into a payload.

https://modelcontextprotocol.io/specification/2026-07-28/basic
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType

from mcpclient.ground.errors import LocalProtocolError

if TYPE_CHECKING:
    from collections.abc import Mapping

NOTHING = Raw(b"")


class Envelope(Struct, gc=False):
    """Any message as it arrives. A member that is absent is empty, not null."""

    jsonrpc: str | None = None
    id: int | str | float | UnsetType | None = UNSET
    method: str | None = None
    params: Raw = NOTHING
    result: Raw = NOTHING
    error: Raw = NOTHING


class Outgoing(Struct, gc=False):
    """A message on its way out: the frame, and what a transport may need to know about it.

    Attributes:
        frame: The line, its LF included.
        method: The method, or an empty string for an answer.
        params: What was asked, for transports that repeat parts of it outside the frame.
        version: The protocol version of the conversation.
        written: Whether any byte of it may have reached the server.
        id: The request's id, or None for a notification or an answer.
        settled: Whether a request has its outcome, so that nobody waits for its answer any more.
    """

    frame: bytes
    method: str = ""
    params: Any = None
    version: str = ""
    written: bool = False
    id: int | None = None
    settled: bool = False


class _Message(Struct, tag_field="jsonrpc", tag="2.0"):
    pass


class _Request(_Message):
    id: int
    method: str
    params: Any


class _BareRequest(_Message):
    id: int
    method: str


class _Notification(_Message):
    method: str
    params: Any


class _BareNotification(_Message):
    method: str


class _Answer(_Message):
    id: Any
    result: Any


class _ErrorBody(Struct):
    code: int
    message: str
    data: Any = UNSET


class _Refusal(_Message):
    id: Any
    error: _ErrorBody


decode_envelope = msgspec.json.Decoder(Envelope).decode
_encode = msgspec.json.Encoder().encode


def request(id: int, method: str, params: Mapping[str, Any] | None) -> bytes:
    """Return the line of a request. ``params=None`` leaves the member out.

    Raises:
        LocalProtocolError: The params cannot be written as JSON.
    """
    if params is None:
        return _line(_BareRequest(id, method))
    return _line(_Request(id, method, params))


def notification(method: str, params: Mapping[str, Any] | None) -> bytes:
    """Return the line of a notification, as :func:`request` does."""
    if params is None:
        return _line(_BareNotification(method))
    return _line(_Notification(method, params))


def answer(id: Any, result: Any) -> bytes:
    """Return the line that answers a server's request, its id given back as it came."""
    return _line(_Answer(id, result))


def refusal(id: Any, code: int, message: str, data: Any = None) -> bytes:
    """Return the line that refuses the peer's request, its id given back as it came.

    ``data=None`` leaves the member out.
    """
    return _line(_Refusal(id, _ErrorBody(code, message, UNSET if data is None else data)))


def _line(message: Struct) -> bytes:
    try:
        try:
            data = _encode(message)
        except UnicodeEncodeError:
            data = _escaped_whole(message)
        if not data.isascii():
            data = _NON_ASCII.sub(_escaped, data.decode()).encode("ascii")
        # msgspec writes NaN and infinities as null; the server would be told something else
        # than the caller said. The walk is paid only where a null stands in the frame at all.
        if b"null" in data and _has_nan(_plain(message)):
            raise LocalProtocolError("the params hold NaN or an infinity, which JSON cannot say")
        # A line break can only come from a Raw that the caller put in (STD-01: one message, one
        # line; readers of text take a CR for a line break too).
        if b"\n" in data or b"\r" in data:
            data = msgspec.json.format(data, indent=-1)
    except (TypeError, ValueError, OverflowError, RecursionError) as problem:
        raise LocalProtocolError(f"the params cannot be written as JSON: {problem}") from None
    return data + b"\n"


# ASCII only: then one message is one line even for a server that splits at U+2028 or NEL.
_NON_ASCII = re.compile("[^\x00-\x7f]+")


def _escaped(found: re.Match[str]) -> str:
    import json  # plain ASCII needs none of it

    return json.dumps(found.group())[1:-1]


def _escaped_whole(message: Struct) -> bytes:
    # A lone surrogate, which a server may have sent and a caller may send back.
    import json

    text = json.dumps(_plain(message), separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def _plain(message: Struct) -> Any:
    return msgspec.to_builtins(message, enc_hook=_unpacked)


def _unpacked(value: Any) -> Any:
    if isinstance(value, Raw):
        return msgspec.json.decode(value)
    raise TypeError(f"objects of type {type(value).__name__} are no JSON")


def _has_nan(value: Any) -> bool:
    # Not by recursion: what can be encoded may be nested deeper than Python calls may.
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, float):
            if not math.isfinite(one):
                return True
        elif isinstance(one, dict):
            todo += one.values()
        elif isinstance(one, list | tuple):
            todo += one
    return False
