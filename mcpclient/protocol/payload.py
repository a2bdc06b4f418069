"""A payload's raw bytes as a typed value. Knows no method; tolerates what has a clear meaning."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.protocol.oddlines import repaired

T = TypeVar("T")


def decode(payload: Raw | bytes, type: type[T], what: str = "the result") -> T:
    """Return a payload as a value of the given type.

    Raises:
        RemoteProtocolError: It is not JSON, or has another shape; the text says where.
    """
    decoder: msgspec.json.Decoder[T] = _decoder(type)  # type: ignore[arg-type]
    try:
        return decoder.decode(payload)
    except msgspec.ValidationError as problem:
        raise RemoteProtocolError(f"{what} has an unexpected shape: {problem}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        pass
    # Not JSON, or text that is not Unicode. Raw puts the check of the text off until here.
    try:
        return decoder.decode(repaired(bytes(payload)))
    except (msgspec.MsgspecError, RecursionError) as problem:
        raise RemoteProtocolError(f"{what} has an unexpected shape: {problem}") from None


def value(payload: Raw | bytes) -> Any:
    """Return a payload as plain Python values; an absent one (no bytes) as None."""
    return decode(payload, object) if payload else None


def told(payload: Raw | bytes) -> Any:
    """Return a payload as plain Python values, or as its text if it cannot be read.

    For what is only shown or looked into, such as the data of an error: it costs no outcome.
    """
    try:
        return value(payload)
    except RemoteProtocolError:
        return bytes(payload).decode("utf-8", "replace")


@cache
def _decoder(type: Any) -> Any:
    # To msgspec, object is any type and no constraint.
    return msgspec.json.Decoder(Any if type is object else type)
