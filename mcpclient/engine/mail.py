"""What waits for delivery to a host, in one order of arrival: notices, answers, progress, asks.

Put in by any thread, delivered on the thread that ticks. Knows handlers, and no loop. Where a tick
and the manager's thread meet there is no lock, since who waits for a lock waits for its holder to
be given the interpreter as well, which takes 5 ms; single steps of deques and heaps are atomic.
"""

from __future__ import annotations

import itertools
import logging
from collections import deque
from heapq import heappop, heappush
from math import inf
from typing import TYPE_CHECKING, Any

from mcpclient.features.notifications import (
    Delivery,
    Handlers,
    TickReport,
    Token,
    arrival,
    deliver,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mcpclient.engine.portal import Portal
    from mcpclient.features.notifications import Deliverable

_log = logging.getLogger("mcpclient")
# Progress that waits for delivery, per call; the newest counts.
_UNTOLD = 100


class Turn:
    """Some functions of the user's that are called one after the other.

    Attributes:
        failed: How many of them raised.
    """

    def __init__(self, what: str, calls: Iterable[Callable[[], Any]]) -> None:
        self.failed = 0
        self._what = what
        self._calls: Iterator[Callable[[], Any]] = iter(calls)

    def step(self) -> Any:
        """Call them until one returns an awaitable; return that, or None at the end."""
        for call in self._calls:
            try:
                answer = call()
            except Exception:  # the user's code; the others must run
                self.failed += 1
                _log.exception("! %s raised", self._what)
                continue
            if hasattr(answer, "__await__"):
                return answer
        return None


class _Box:
    """The notifications of one server: put in by one thread, taken out by others."""

    __slots__ = ("dropped", "entries", "server")

    def __init__(self, server: Any) -> None:
        self.server = server
        self.dropped = 0
        self.entries: deque[tuple[int, str, Any]] = deque()

    @property
    def first(self) -> float:
        """The number of the oldest, beyond all if there is none."""
        try:
            return self.entries[0][0]
        except IndexError:
            return inf


class Mail:
    """What waits for delivery."""

    def __init__(self, portal: Portal) -> None:
        """Begin empty; what has to be locked is locked by the portal's lock."""
        self._portal = portal
        self._handlers = Handlers()
        # When each method got its present first handler: what is older is not for it.
        self._since: dict[str, int] = {}
        self._boxes: dict[Any, _Box] = {}
        self._items: list[tuple[int, int, Deliverable]] = []
        self._numbers = itertools.count()
        self._wakeup: Callable[[], Any] | None = None
        # Whether the host knows that something waits.
        self._told = False
        self._dropped = 0

    # -- put in ----------------------------------------------------------------------------

    def notice(self, server: Any, method: str, params: Any, limit: int) -> None:
        """Take a notification in, if anybody handles it; if there are too many, drop the oldest.

        Args:
            server: What handlers get.
            method: Its method.
            params: Its params.
            limit: How many may wait, of this server.
        """
        if not self._handlers.wants(method):
            return
        box = self._boxes.get(server)
        if box is None:
            box = self._boxes[server] = _Box(server)
        if len(box.entries) >= limit:
            try:
                box.entries.popleft()
                box.dropped += 1
            except IndexError:
                pass  # they were taken just now
        box.entries.append((arrival(), method, params))
        self._tell()

    def put(self, item: Deliverable, number: int | None = None) -> None:
        """Take anything else in.

        Args:
            item: What to deliver.
            number: When it arrived; None: now.
        """
        number = arrival() if number is None else number
        heappush(self._items, (number, next(self._numbers), item))
        self._tell()

    def teller(self, handler: Callable[..., Any]) -> Callable[..., None]:
        """Return a handler of progress that has another one called at delivery."""
        untold: deque[tuple[Any, ...]] = deque(maxlen=_UNTOLD)

        def call() -> Any:
            with self._portal.lock:
                facts = untold.popleft()
            return handler(*facts)

        def tell(*facts: Any) -> None:
            with self._portal.lock:
                full = len(untold) == _UNTOLD
                untold.append(facts)
            if not full:  # else the oldest gave way, and one too few is never delivered
                self.put(Turn("a progress handler", [call]))

        return tell

    # -- handlers --------------------------------------------------------------------------

    def add(self, method: str, handler: Callable[[Any, Any], Any]) -> tuple[Token, bool]:
        """Register a handler; return its token, and whether it is the first of its method."""
        with self._portal.lock:
            first = not self._handlers.wants(method)
            if first:
                self._since[method] = arrival()
            return self._handlers.add(method, handler), first

    def remove(self, token: Token) -> bool:
        """Remove a handler; with the last of its method drop what waits. Return if it was that."""
        with self._portal.lock:
            return self._handlers.remove(token)

    def wants(self, method: str) -> bool:
        """Return whether anybody handles a method."""
        return self._handlers.wants(method)

    def forget(self, server: Any) -> None:
        """Drop what waits of a server: it was removed."""
        box = self._boxes.pop(server, None)
        if box is not None:
            self._dropped += box.dropped

    # -- delivered -------------------------------------------------------------------------

    def set_wakeup(self, wakeup: Callable[[], Any] | None) -> None:
        """Have a function called when something waits; see the face that offers it."""
        with self._portal.lock:
            self._wakeup = wakeup
            self._told = False
        if self._left:
            self._tell()

    def tick(
        self, max_items: int | None, budget: float | None, spawn: Callable[[Any], object]
    ) -> TickReport:
        """Deliver what waits, in the order of arrival, within a budget, on this very stack.

        Args:
            max_items: How many at most, or None.
            budget: After so many seconds no further one is begun, or None.
            spawn: Takes what asynchronous handlers return, to run it.
        """
        try:
            delivered, failed = deliver(self._take, max_items, budget, spawn)
        finally:  # Ctrl-C in a handler too must not leave the host untold for ever
            self._told = False  # before the look: what comes after it tells by itself
            left = self._left
            if left:
                self._tell()
        dropped = self._dropped + sum(box.dropped for box in list(self._boxes.values()))
        return TickReport(delivered=delivered, left=left, dropped=dropped, failed=failed)

    @property
    def _left(self) -> int:
        boxes = list(self._boxes.values())
        return len(self._items) + sum(len(box.entries) for box in boxes)

    def _take(self) -> Deliverable | None:
        while True:
            boxes = list(self._boxes.values())
            box = min(boxes, key=_first, default=None)
            items = self._items
            try:
                if items and (box is None or items[0][0] < box.first):
                    return heappop(items)[2]
                if box is None or not box.entries:
                    return None
                number, method, params = box.entries.popleft()
            except IndexError:
                continue  # another thread took it
            if self._handlers.wants(method) and number > self._since[method]:
                return Delivery(box.server, method, params, self._handlers)

    def _tell(self) -> None:
        """Have the host know, with no lock held, if it does not know yet."""
        wakeup = self._wakeup
        if wakeup is None or self._told or not self._first_to_tell():
            return
        try:
            wakeup()
        except Exception:  # the user's code; what put the item in must go on
            _log.exception("! the wake-up function raised")

    def _first_to_tell(self) -> bool:
        with self._portal.lock:
            told, self._told = self._told, True
        return not told


def _first(box: _Box) -> float:
    return box.first
