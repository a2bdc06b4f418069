"""What the engine asks of an event loop, on its own thread but for one thing, which says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator


class Waiter(Protocol):
    """One value that one task waits for. The backend's own future, or the like of it."""

    def done(self) -> bool:
        """Whether there is nothing more to wait for: a value came, or the task was cancelled."""

    def set_result(self, value: Any, /) -> None:
        """Give the value. Only if not :meth:`done`."""

    def __await__(self) -> Generator[Any, Any, Any]:
        """Wait for the value. If the waiting task is cancelled, the waiter is used up."""


class Stop(Protocol):
    """A timer or a watch that can be given up. Twice is no fault."""

    def cancel(self) -> object:
        """Give it up: its function is not called again."""


class Loop(Protocol):
    """One running event loop."""

    def waiter(self) -> Waiter:
        """Return a new waiter."""

    def soon(self, call: Callable[[], None], /) -> object:
        """Call a function after what is ready now."""

    def from_thread(self, call: Callable[[], None]) -> None:
        """Call a function soon, asked from any thread; not at all if the loop has ended."""

    def later(self, delay: float, call: Callable[[], None]) -> Stop:
        """Call a function once, in ``delay`` seconds."""

    def readable(self, fd: int, call: Callable[[], None]) -> Stop:
        """Call a function whenever a descriptor can be read. Cancel before closing it."""

    def writable(self, fd: int, call: Callable[[], None]) -> Stop:
        """Call a function whenever a descriptor can be written. Cancel before closing it."""

    def job(self, run: Callable[[], Coroutine[Any, Any, None]], name: str) -> Stop:
        """Run a coroutine in a task that belongs to no caller and no cancel scope.

        It ends by itself, or is cancelled, at the latest when the loop ends; an exception is
        logged.
        """

    async def checkpoint(self) -> None:
        """Let the others run once."""

    async def outlast(self, waiter: Waiter) -> None:
        """Wait for a waiter even if the caller is cancelled; the cancellation comes after."""
