"""Lists over all their pages, bounded however a server turns its cursors.

Cursors are opaque; ``""`` is one, only an absent cursor ends a list (PAG-01, PAG-02). A cursor
that comes a second time, or too many pages, end it too: what was read until then is the list.

https://modelcontextprotocol.io/specification/2026-07-28/server/utilities/pagination
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

from mcpclient.ground.errors import CallTimedOut, ReplyError, timed_out
from mcpclient.protocol import methods
from mcpclient.protocol.types import Item, Page, Prompt, Resource, ResourceTemplate, Tool, page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcpclient.connection.caller import Caller, Timeout
    from mcpclient.connection.connection import Connection
    from mcpclient.features.resources import Reader

I = TypeVar("I", bound=Item)  # noqa: E741 - an item

_log = logging.getLogger("mcpclient")
# How an item is told from another: a server that cannot page sends the same ones again.
_KEY = {Tool: "name", Prompt: "name", Resource: "uri", ResourceTemplate: "uri_template"}


class _Shelved(Struct, Generic[I]):
    page: Page[I]
    size: int


async def listed(
    caller: Caller,
    method: str,
    kind: type[I],
    timeout: Timeout,
    pages: int,
    shelf: Reader | None = None,
    cache: str = "use",
) -> list[I]:
    """Return all items of a list; empty if the server does not offer any of the kind.

    Args:
        caller: Who asks.
        method: A list method.
        kind: What it lists.
        timeout: For the whole list, all pages together.
        pages: How many pages to ask for at the most.
        shelf: Where pages are kept as long as the server says they are good, or None.
        cache: ``use``, ``refresh`` or ``bypass``.
    """
    connection, left = await caller.line(timeout, method)
    terms = connection.session.terms
    declared = terms.capabilities if terms is not None else {}
    # Asking for what was not declared is answered with errors, by some in their logs too (B151).
    # A server that declared nothing at all may have forgotten to.
    if declared and methods.DECLARED_BY[method] not in declared:
        return []
    deadlines = connection.deadlines
    # Time in which the server waits for this side does not count.
    end = None if left is None else time.monotonic() + left - deadlines.held
    found: dict[str, I] = {}
    seen: set[str] = set()
    cursor: str | None = None
    restarted = False
    key = _KEY[kind]
    for _ in range(pages):
        if connection.over:
            # Between two pages; no cursor outlives its session (PAG-05).
            raise connection.lost(method, maybe_done=True)
        left = None if end is None else end + deadlines.held - time.monotonic()
        if left is not None and left <= 0:
            # Each page may come in time and the list be without end all the same.
            raise CallTimedOut(
                timed_out(caller.limit(timeout) or 0.0, "for all pages of the list"),
                method=method,
                server=caller.name,
            )
        try:
            part = await _page(connection, method, kind, cursor, left, shelf, cache)
        except ReplyError as problem:
            if problem.code == methods.METHOD_NOT_FOUND and cursor is None:
                return []
            if problem.code == methods.INVALID_PARAMS and cursor is not None and not restarted:
                # The cursor went stale under us: from the beginning, once (PAG-06).
                restarted = True
                cache = "refresh" if cache == "use" else cache  # kept pages name that very cursor
                found.clear()
                seen.clear()
                cursor = None
                continue
            raise
        for why in part.skipped:
            _log.warning("%s ! an item of %s was left out: %s", caller.name, method, why)
        for item in part.items:
            found.setdefault(getattr(item, key), item)
        cursor = part.next_cursor
        if cursor is None:
            break
        if cursor in seen:
            _log.warning("%s ! %s repeats a cursor; the list ends here", caller.name, method)
            break
        seen.add(cursor)
    else:
        _log.warning("%s ! %s has over %d pages (Limits.pages)", caller.name, method, pages)
    return list(found.values())


def kept(shelf: Reader, server: str, method: str) -> Iterator[Any]:
    """Give the items of a list as far as its pages are kept. Nobody is asked."""
    cursor: str | None = None
    seen: set[str | None] = set()
    while cursor not in seen:
        seen.add(cursor)
        found: _Shelved[Any] | None = shelf.cache.peek(_place(server, method, cursor))
        if found is None:
            return
        yield from found.page.items
        if found.page.next_cursor is None:
            return
        cursor = found.page.next_cursor


def _place(server: str, method: str, cursor: str | None) -> tuple[str, str, str]:
    # "" is a cursor, so the first page needs a name that is none.
    return (server, method, "first" if cursor is None else f"at {cursor}")


async def _page(
    connection: Connection,
    method: str,
    kind: type[I],
    cursor: str | None,
    timeout: float | None,
    shelf: Reader | None,
    use: str,
) -> Page[I]:
    """Return one page, from the shelf if it is there; pages expire one by one (CACHE-12)."""
    key = _place(connection.server, method, cursor)
    if shelf is not None and use == "use":
        kept: _Shelved[I] | None = shelf.cache.get(key)
        if kept is not None:
            await connection.loop.checkpoint()
            return kept.page
    epoch = shelf.cache.epoch(connection.server) if shelf is not None else 0
    try:
        result = await connection.request(
            method, None if cursor is None else {"cursor": cursor}, timeout
        )
    except CallTimedOut:
        # Who would not take a fresh one does not want an old one.
        if shelf is not None and use == "use":
            old: _Shelved[I] | None = shelf.cache.stale(key)
            if old is not None:
                return old.page
        raise
    part = page(result, kind)
    # A notice that came meanwhile makes it old before it is kept.
    if shelf is not None and use != "bypass" and epoch == shelf.cache.epoch(connection.server):
        lifetime = connection.session.era.lifetime(result)
        shelved = _Shelved(part, len(memoryview(result)))
        shelf.cache.put(key, shelved, shelf.lists_ttl if lifetime is None else lifetime)
    return part
