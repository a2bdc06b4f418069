"""What the main thread does for others while it waits for a call. Knows no server.

Some things can be done on that thread only: reading what a person types, above all, since Ctrl-C
and a notebook's input are its own. While it waits for a call without a limit of its own, it has
the time for them.
"""

from __future__ import annotations

import threading
from _thread import RLock, get_ident
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcpclient.engine.calls import Call


class Errand(Protocol):
    """Something to do on the main thread."""

    def do(self) -> None:
        """Do it. What it raises, the wait raises."""

    def drop(self) -> None:
        """Take note that nobody will do it: the wait is over."""


class Errands:
    """The errands of the main thread."""

    def __init__(self) -> None:
        # One that a thread may take twice: a signal handler may come in between.
        self._lock = RLock()
        self._due: deque[Errand] = deque()
        self._wakes: list[Callable[[], object]] = []
        self._aloof = 0

    @property
    def here(self) -> bool:
        """Whether this thread takes errands now."""
        return get_ident() == threading.main_thread().ident and not self._aloof

    def give(self, errand: Errand) -> bool:
        """Have something done, from any thread; return False if the main thread does not wait.

        If it is taken, it is either done or dropped.
        """
        with self._lock:
            if not self._wakes or self._aloof:
                return False
            self._due.append(errand)
            self._wakes[-1]()
            return True

    def do(self) -> None:
        """Do what is due, on the main thread."""
        while self._due:
            self._due.popleft().do()

    @contextmanager
    def aloof(self) -> Iterator[None]:
        """Within this the main thread takes none, though it may wait: it must not take long."""
        self._aloof += 1
        try:
            yield
        finally:
            self._aloof -= 1

    @contextmanager
    def taken(self, wake: Callable[[], object]) -> Iterator[None]:
        """Within this the main thread waits, and does what is due when it was woken.

        Args:
            wake: Wakes it, from any thread; it must neither raise nor wait.
        """
        with self._lock:
            self._wakes.append(wake)
        left: list[Errand] = []
        try:
            yield
        finally:
            with self._lock:
                self._wakes.remove(wake)
                if not self._wakes:
                    left += self._due
                    self._due.clear()
            for errand in left:
                errand.drop()

    def wait(self, call: Call[Any]) -> None:
        """Wait for the end of a call, on the main thread, and do what is due meanwhile."""
        from queue import SimpleQueue  # only where errands are taken

        bell: SimpleQueue[bool] = SimpleQueue()  # whether the call has ended

        def ended() -> None:
            bell.put(True)

        with self.taken(lambda: bell.put(False)):
            if call.watch(ended):
                return
            try:
                while not bell.get():
                    self.do()
            finally:
                call.unwatch(ended)
