"""What servers announce, delivered in the order of arrival. Knows no server and no loop.

Only methods that somebody handles are queued. All handlers of one notification run before the
next one; the handlers are those registered when its turn comes, so registering and removing
inside a handler is safe: one added first sees the next notification, one removed sees no more.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Raw, Struct

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.protocol import payload

if TYPE_CHECKING:
    from collections.abc import Callable

    Handler = Callable[[Any, Any], Any]

_log = logging.getLogger("mcpclient")
_arrivals = itertools.count()


def arrival() -> int:
    """Return the number of what arrives just now: one order for all that is to be delivered."""
    return next(_arrivals)


class Token(Struct, frozen=True, gc=False):
    """What a registered handler is removed by."""

    method: str
    number: int


class TickReport(Struct, frozen=True, kw_only=True, gc=False):
    """What one tick did.

    Attributes:
        delivered: Notifications delivered.
        left: Notifications still waiting.
        dropped: Notifications dropped since the manager began, because an inbox was full.
        failed: Handlers that raised in this tick; each is logged.
    """

    delivered: int
    left: int
    dropped: int
    failed: int


class _Entry(Struct):
    number: int
    method: str
    params: Any


class Handlers:
    """Who wants to know what."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._by_method: dict[str, dict[int, Handler]] = {}

    def add(self, method: str, handler: Handler) -> Token:
        """Register a handler, after those there are; the same one twice is called twice."""
        token = Token(method, next(self._numbers))
        self._by_method.setdefault(method, {})[token.number] = handler
        return token

    def remove(self, token: Token) -> bool:
        """Remove a handler; return whether it was the last of its method."""
        handlers = self._by_method.get(token.method)
        if handlers is None or handlers.pop(token.number, None) is None:
            return False
        if handlers:
            return False
        del self._by_method[token.method]
        return True

    def wants(self, method: str) -> bool:
        """Return whether anybody handles a method."""
        return method in self._by_method

    def snapshot(self, method: str) -> list[tuple[int, Handler]]:
        """Return a method's handlers in the order of registration."""
        return list(self._by_method.get(method, {}).items())

    def has(self, method: str, number: int) -> bool:
        """Return whether a handler is still registered."""
        return number in self._by_method.get(method, {})


class Inbox:
    """One server's notifications on their way to the handlers.

    Attributes:
        server: What handlers get as their first argument.
        dropped: How many were dropped because it was full, the oldest first.
        limit: How many it holds.
    """

    def __init__(self, server: Any, handlers: Handlers, limit: int) -> None:
        self.server = server
        self.dropped = 0
        self._handlers = handlers
        self.limit = limit
        self._entries: deque[_Entry] = deque()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def first(self) -> int:
        """The number of the oldest, over all inboxes in the order of arrival."""
        return self._entries[0].number

    def put(self, method: str, params: Any) -> bool:
        """Queue a notification if anybody handles it; return whether it was.

        Params that came from the server are Raw until a handler gets them.
        """
        if not self._handlers.wants(method):
            return False
        if len(self._entries) >= self.limit:
            self._entries.popleft()
            self.dropped += 1
        self._entries.append(_Entry(arrival(), method, params))
        return True

    def drop(self, method: str) -> None:
        """Drop what is queued of a method: nobody handles it any more."""
        self._entries = deque(entry for entry in self._entries if entry.method != method)

    def clear(self) -> None:
        """Drop all that is queued."""
        self._entries.clear()

    def deliver(self) -> Delivery:
        """Take the oldest notification out, to be delivered."""
        entry = self._entries.popleft()
        params = entry.params
        try:
            if isinstance(params, Raw):
                params = payload.value(params)
        except RemoteProtocolError as problem:
            _log.warning("! the params of %s cannot be read: %s", entry.method, problem)
            params = None
        return Delivery(self.server, entry.method, params, self._handlers)


class Delivery:
    """One notification and the handlers it goes to, one after the other.

    Attributes:
        failed: How many of them raised.
    """

    def __init__(self, server: Any, method: str, params: Any, handlers: Handlers) -> None:
        self.failed = 0
        self._server = server
        self._method = method
        self._params = params
        self._handlers = handlers
        self._left = deque(handlers.snapshot(method))

    def step(self) -> Any:
        """Call handlers until one returns an awaitable; return that, or None at the end."""
        while self._left:
            number, handler = self._left.popleft()
            if not self._handlers.has(self._method, number):
                continue  # removed by one before it
            try:
                answer = handler(self._server, self._params)
            except Exception:  # the user's code; the other handlers must run
                self.fail()
                continue
            if hasattr(answer, "__await__"):
                return answer
        return None

    def fail(self) -> None:
        """Take note of the exception that a handler just raised."""
        self.failed += 1
        _log.exception("! a handler of %s raised", self._method)


def tick(
    inboxes: list[Inbox],
    max_items: int | None,
    budget: float | None,
    spawn: Callable[[Any], object],
) -> TickReport:
    """Deliver what waits, oldest first over all inboxes, within a budget.

    Args:
        inboxes: The inboxes to deliver from.
        max_items: How many notifications at most, or None.
        budget: After so many seconds no further one is begun, or None.
        spawn: Takes what asynchronous handlers return, to run it.
    """

    def take() -> Delivery | None:
        waiting = [inbox for inbox in inboxes if inbox]
        return min(waiting, key=lambda inbox: inbox.first).deliver() if waiting else None

    delivered, failed = deliver(take, max_items, budget, spawn)
    return TickReport(
        delivered=delivered,
        left=sum(len(inbox) for inbox in inboxes),
        dropped=sum(inbox.dropped for inbox in inboxes),
        failed=failed,
    )


class Deliverable(Protocol):
    """Anything that a tick can deliver, in steps."""

    failed: int

    def step(self) -> Any:
        """See :class:`Delivery`."""


def deliver(
    take: Callable[[], Deliverable | None],
    max_items: int | None,
    budget: float | None,
    spawn: Callable[[Any], object],
) -> tuple[int, int]:
    """Deliver one after the other within a budget; return how many, and how many handlers raised.

    Args:
        take: Takes the next one out, or returns None.
        max_items: As for :func:`tick`.
        budget: As for :func:`tick`.
        spawn: As for :func:`tick`.
    """
    end = None if budget is None else time.monotonic() + budget
    delivered = failed = 0
    while max_items is None or delivered < max_items:
        if end is not None and delivered and time.monotonic() >= end:
            break
        if (delivery := take()) is None:
            break
        delivered += 1
        while (answer := delivery.step()) is not None:
            spawn(answer)
        failed += delivery.failed
    return delivered, failed
