"""All tasks that a server lists, page by page, bounded as any list is (PAG-08)."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct

from mcpclient.ground.errors import CallTimedOut, RemoteProtocolError, timed_out
from mcpclient.protocol import payload
from mcpclient.protocol.methods import TASKS_LIST

if TYPE_CHECKING:
    from mcpclient.connection.connection import Connection
    from mcpclient.protocol.eras.tasks import Task, Tasks

_log = logging.getLogger("mcpclient")


class _Page(Struct, gc=False, rename={"cursor": "nextCursor"}):
    tasks: list[Raw] | None = None
    cursor: Any = None


async def tasks(
    connection: Connection, rules: Tasks, timeout: float | None, pages: int
) -> list[Task]:
    """Return the tasks; those that cannot be read are left out.

    Args:
        connection: The connection to the server.
        rules: How it runs tasks.
        timeout: For all pages together.
        pages: How many pages to ask for at the most.
    """
    end = None if timeout is None else time.monotonic() + timeout
    found: dict[str, Task] = {}
    seen: set[str | None] = set()
    cursor: str | None = None
    while cursor not in seen and len(seen) < pages:
        seen.add(cursor)
        left = None if end is None else end - time.monotonic()
        if left is not None and left <= 0:
            problem = timed_out(timeout or 0.0, "for all pages of the list")
            raise CallTimedOut(problem, method=TASKS_LIST, server=connection.server)
        params = None if cursor is None else {"cursor": cursor}
        page = payload.decode(await connection.request(TASKS_LIST, params, left), _Page)
        for one in page.tasks or ():
            try:
                task = rules.told(one)
            except RemoteProtocolError as problem:
                _log.warning("%s ! a task was left out: %s", connection.label, problem)
            else:
                found.setdefault(task.id, task)
        if not isinstance(page.cursor, str):
            return list(found.values())
        cursor = page.cursor
    _log.warning("%s ! %s does not end (Limits.pages)", connection.label, TASKS_LIST)
    return list(found.values())
