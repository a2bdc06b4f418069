"""Every fact about calls in flight, and the only place where they change. Checks its books.

A call is filed before its frame is written, so that the fastest answer finds it. It ends once:
answered, refused, abandoned (timed out or cancelled) or lost (the server is gone). Ids of
abandoned calls are remembered for a while, since their answers may still come and mean nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcpclient.ground.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcpclient.connection.progress import Teller
    from mcpclient.loops.base import Waiter
    from mcpclient.protocol.envelope import Outgoing

CALL = Table(
    "call",
    {
        "queued": {"write": "sent", "abandon": "abandoned", "lose": "lost"},
        "sent": {
            "answer": "answered",
            "refuse": "refused",
            "abandon": "abandoned",
            "lose": "lost",
        },
        "answered": {},
        "refused": {},
        # What still comes for it is dropped without a word (CAN-02).
        "abandoned": {"answer": "abandoned", "refuse": "abandoned"},
        "lost": {},
    },
)


class Call(Struct, eq=False):
    """One request on its way.

    Attributes:
        id: Its JSON-RPC id.
        method: Its method.
        item: Its frame, which tells whether it was written.
        waiter: Who gets the outcome, or None.
        watch: What is called with it otherwise, or None.
        begun: When its time began, if it times out.
        deadline: When it times out, or None.
        timeout: The span it may be idle, or None.
        hard: When it times out whatever its progress, or None.
        teller: Tells its progress to who wants to know, or None.
        ending: The state it ended in, or None.
    """

    id: int
    method: str
    item: Outgoing
    waiter: Waiter | None = None
    watch: Callable[[Any], None] | None = None
    begun: float = 0.0
    deadline: float | None = None
    timeout: float | None = None
    hard: float | None = None
    teller: Teller | None = None
    ending: str | None = None

    @property
    def state(self) -> str:
        """A state of :data:`CALL`."""
        return self.ending or ("sent" if self.item.written else "queued")


class Inflight:
    """The calls of one connection.

    Attributes:
        late: How many answers came for abandoned calls.
        stray: How many answers came for ids that no open or abandoned call has.
    """

    __slots__ = ("_filed", "_open", "_retired", "_tally", "late", "limit", "stray")

    def __init__(self, retired: int) -> None:
        self._open: dict[int, Call] = {}
        self._retired: dict[int, None] = {}
        self._filed = 0
        self._tally = {"answered": 0, "refused": 0, "abandoned": 0, "lost": 0}
        self.limit = retired
        self.late = 0
        self.stray = 0

    def __len__(self) -> int:
        return len(self._open)

    def __iter__(self) -> Iterator[Call]:
        return iter(tuple(self._open.values()))

    def get(self, id: int) -> Call | None:
        """Return the open call with this id."""
        return self._open.get(id)

    @property
    def filed(self) -> int:
        """How many calls there ever were."""
        return self._filed

    def file(self, call: Call) -> None:
        """Take a new call in. Before its frame is written."""
        if call.id in self._open:
            raise AssertionError(f"two calls in flight with id {call.id}")
        self._open[call.id] = call
        self._filed += 1

    def settle(self, id: int, move: str, outcome: Any) -> Call | None:
        """End the call that an answer names and hand it the outcome.

        Args:
            id: The answer's id.
            move: ``answer`` or ``refuse``.
            outcome: What the call's waiter gets.

        Returns:
            The call, or None if no open call has this id: a late answer or a stray one.
        """
        call = self._open.get(id)
        if call is None:
            if id in self._retired:
                del self._retired[id]
                self.late += 1
            else:
                self.stray += 1
            return None
        # A server that answers before it can have read the request is mad, but it is answered:
        # a partly flushed pipe may well look so.
        self._end(call, "sent", move)
        _hand(call, outcome)
        return call

    def abandon(self, call: Call, outcome: Any = None) -> bool:
        """End a call that nobody waits for any more; with an outcome, tell its waiter.

        Returns:
            False if it had ended already, so that there is nothing to tell the server.
        """
        if call.ending is not None:
            return False
        written = call.item.written
        self._end(call, call.state, "abandon")
        if written:
            self._retired[call.id] = None
            if len(self._retired) > self.limit:
                del self._retired[next(iter(self._retired))]
        if outcome is not None:
            _hand(call, outcome)
        return True

    def fail(self, call: Call, outcome: Any) -> None:
        """End one open call whose answer will not come, and hand its waiter the reason."""
        self._end(call, call.state, "lose")
        _hand(call, outcome)

    def lose(self, outcome: Callable[[Call], Any]) -> int:
        """End all calls, each with its own outcome; return how many there were."""
        lost = tuple(self._open.values())
        for call in lost:
            self._end(call, call.state, "lose")
            _hand(call, outcome(call))
        return len(lost)

    def due(self, now: float) -> list[Call]:
        """Return the open calls whose time is over."""
        return [
            call
            for call in self._open.values()
            if call.deadline is not None and call.deadline <= now
        ]

    def next_deadline(self) -> float | None:
        """Return when the next open call times out, or None."""
        deadlines = [c.deadline for c in self._open.values() if c.deadline is not None]
        return min(deadlines, default=None)

    def check(self) -> None:
        """Prove that the books balance: every call filed is open or ended once."""
        ended = sum(self._tally.values())
        if self._filed != ended + len(self._open):
            raise AssertionError(
                f"{self._filed} calls filed, but {len(self._open)} open and {ended} ended"
            )
        closed = [call.id for call in self._open.values() if call.ending is not None]
        if closed or len(self._retired) > self.limit:
            raise AssertionError(f"ended calls still open: {closed}")

    def _end(self, call: Call, state: str, move: str) -> None:
        call.ending = ending = CALL.moves[state][move]
        call.item.settled = True
        del self._open[call.id]
        self._tally[ending] += 1


def _hand(call: Call, outcome: Any) -> None:
    waiter = call.waiter
    if waiter is not None:
        # It may be used up: its task was cancelled but has not run yet to say so.
        if not waiter.done():
            waiter.set_result(outcome)
    elif call.watch is not None:
        call.watch(outcome)
