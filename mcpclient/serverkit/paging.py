"""Long lists in pages. A cursor names the last item given, so that changes between two pages
neither repeat nor lose an item that was there all the time. Knows no component.

https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from mcpclient.serverkit.errors import INVALID_PARAMS, RpcError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def page(
    items: list[T], key: Callable[[T], str], size: int | None, what: str, cursor: str | None
) -> tuple[list[T], str | None]:
    """Return one page of a sorted list, and the cursor of the next one.

    Args:
        items: All items, sorted by their keys.
        key: An item's key.
        size: How many items a page has; None for all.
        what: The list's name: a cursor is good for one list only.
        cursor: Where the last page ended, or None to begin.

    Raises:
        RpcError: The cursor is none of ours.
    """
    if cursor is not None:
        last = _read(cursor, what)
        items = [item for item in items if key(item) > last]
    if size is None or len(items) <= size:
        return items, None
    items = items[:size]
    return items, _written(what, key(items[-1]))


def _written(what: str, last: str) -> str:
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(msgspec.json.encode((what, last))).decode().rstrip("=")


def _read(cursor: str, what: str) -> str:
    from base64 import urlsafe_b64decode

    try:
        data = urlsafe_b64decode(cursor.encode() + b"=" * (-len(cursor) % 4))
        listed, last = msgspec.json.decode(data, type=tuple[str, str])
    except (ValueError, msgspec.MsgspecError):
        listed, last = "", ""
    if listed != what:
        raise RpcError(INVALID_PARAMS, "Invalid cursor: it is not one that this list gave")
    return last
