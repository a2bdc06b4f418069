"""Progress of a call, from the notice to the caller's handler. Knows no deadline.

https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/progress
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.protocol import payload

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpclient.loops.base import Loop

    Progress = Callable[[float, float | None, str | None], Any]

_log = logging.getLogger("mcpclient")
# Progress that waits for an async handler to be done with the last, per call; the newest counts.
_UNTOLD = 100


class Told(Struct, gc=False, rename={"token": "progressToken"}):
    """What a notice says, whatever its members are."""

    token: Any = None
    progress: Any = None
    total: Any = None
    message: Any = None

    @property
    def id(self) -> int | None:
        """The id of the call it belongs to: our tokens are ids, by exact type (B143)."""
        return self.token if type(self.token) is int else None


def heard(params: Raw) -> Told | None:
    """Return what a notice says, or None if it cannot be read."""
    try:
        return payload.decode(params, Told)
    except RemoteProtocolError:
        return None


class Teller:
    """Tells one handler of progress. An async one is told again when it is done with the last."""

    __slots__ = ("_handler", "_label", "_loop", "_untold")

    def __init__(self, handler: Progress, loop: Loop, label: str) -> None:
        self._handler = handler
        self._loop = loop
        self._label = label
        self._untold: deque[tuple[Any, ...]] | None = None

    def tell(self, told: Told) -> None:
        """Hand a notice on; one without a number is none."""
        if not isinstance(told.progress, int | float):
            return
        total = told.total if isinstance(told.total, int | float) else None
        message = told.message if isinstance(told.message, str) else None
        facts = (told.progress, total, message)
        if self._untold is not None:
            self._untold.append(facts)
        elif (answer := self._told(facts)) is not None:
            self._untold = deque(maxlen=_UNTOLD)
            self._loop.job(lambda: self._go_on(answer), f"progress of {self._label}")

    async def _go_on(self, answer: Awaitable[Any] | None) -> None:
        untold = self._untold
        assert untold is not None
        while True:
            try:
                if answer is not None:
                    await answer
            except Exception:  # the user's code; the next progress is told all the same
                self._faulted()
            if not untold:
                break
            answer = self._told(untold.popleft())
        self._untold = None

    def _told(self, facts: tuple[Any, ...]) -> Awaitable[Any] | None:
        try:
            answer: Awaitable[Any] | None = self._handler(*facts)
        except Exception:  # the user's code; the reader must live on
            self._faulted()
            return None
        return answer if hasattr(answer, "__await__") else None

    def _faulted(self) -> None:
        _log.exception("%s ! a progress handler raised", self._label)


class Tellers:
    """Who is still told of progress though the call was answered: its task goes on (PRG-06)."""

    __slots__ = ("_by_id", "_limit")

    def __init__(self, limit: int) -> None:
        self._by_id: dict[int, Teller] = {}
        self._limit = limit

    def get(self, id: int) -> Teller | None:
        """Return who is told of this call's progress."""
        return self._by_id.get(id)

    def keep(self, id: int, teller: Teller | None) -> None:
        """Tell on, until it is dropped or too many others are kept."""
        if teller is not None:
            self._by_id[id] = teller
            if len(self._by_id) > self._limit:
                del self._by_id[next(iter(self._by_id))]

    def drop(self, id: int) -> None:
        """Tell no more."""
        self._by_id.pop(id, None)
