"""Progress, told on the thread that waits for the call. Knows no server."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcpclient.connection.progress import Progress
    from mcpclient.engine.calls import Call
    from mcpclient.engine.errands import Errands

T = TypeVar("T")
_log = logging.getLogger("mcpclient")
# Progress that waits for a slow handler, per call; the newest counts.
_UNTOLD = 100


class Telling:
    """The way of one call's progress to its handler."""

    def __init__(self, handler: Progress, finish: Callable[[Awaitable[Any]], object]) -> None:
        """Begin with nothing to tell.

        Args:
            handler: The user's.
            finish: Waits for what an async one returned.
        """
        from queue import Empty, SimpleQueue  # only who wants progress needs it

        self._handler = handler
        self._finish = finish
        self._empty = Empty
        self._facts: SimpleQueue[tuple[Any, ...] | None] = SimpleQueue()

    def tell(self, *facts: Any) -> None:
        """Hand progress on to the thread that waits."""
        if self._facts.qsize() >= _UNTOLD:
            try:
                self._facts.get_nowait()
            except self._empty:
                pass  # it was taken just now
        self._facts.put(facts)

    def wait(self, call: Call[T]) -> None:
        """Call the handler until the call has ended, and all was told that came before."""

        def ended() -> None:
            self._facts.put(None)

        if call.watch(ended):
            ended()
        errands = call.errands
        if errands is None:
            self._tell_all(None)
        else:
            with errands.taken(lambda: self._facts.put(())):
                self._tell_all(errands)

    def _tell_all(self, errands: Errands | None) -> None:
        while (facts := self._facts.get()) is not None:
            if errands is not None:
                errands.do()
            if not facts:
                continue  # it only woke this thread, for an errand
            try:
                answer = self._handler(*facts)
                if hasattr(answer, "__await__"):
                    self._finish(answer)
            except Exception:  # the user's code; the call must go on
                _log.exception("! a progress handler raised")
