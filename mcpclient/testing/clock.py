"""A clock that a test may turn forward, so that nobody waits for time-outs, pauses or lifetimes.

Turned is ``time.monotonic``, by which asyncio's loops and mcpclient tell the time, and trio's
clock. Time still goes by itself: what waits for a real process gets its answer. It is never turned
back, not even in the end, since nobody expects that of it; and what turns it on and on must not
do so while a real process opens or ends, whose patience is turned too.

Not turned are ``time.time`` and ``time.perf_counter``, functions that were imported out of ``time``
before, what other processes think, waits of threads, and uvloop.
"""

from __future__ import annotations

import math
import sys
import time
import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from mcpclient import loops

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

# How often what is ready is let run before what is left counts as waiting.
_TURNS = 20
# How long a server in another process, or a thread, may take to get on with things: real seconds.
_MOMENT = 0.005

_real = time.monotonic
_turned = 0.0
# Every loop that was seen to tell the time while a clock was in use.
_loops: weakref.WeakSet[asyncio.AbstractEventLoop] = weakref.WeakSet()


def _monotonic() -> float:
    # Only a loop that looks at this clock can be woken when it is turned.
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None and (loop := asyncio._get_running_loop()) is not None:
        _loops.add(loop)
    return _real() + _turned


class Clock:
    """The clock of one test. Use the fixture ``mcp_clock``, or ``with Clock() as clock``."""

    def __init__(self) -> None:
        self._begun = 0.0

    def __enter__(self) -> Clock:
        self._begun = _turned
        time.monotonic = _monotonic
        return self

    def __exit__(self, *problem: object) -> None:
        # Who noted a time while it was turned must never see an earlier one.
        time.monotonic = _monotonic if _turned else _real
        _loops.clear()

    @property
    def turned(self) -> float:
        """How many seconds it was turned."""
        return _turned - self._begun

    def turn(self, seconds: float) -> None:
        """Turn it forward, from any thread; loops in other threads are woken.

        What is due then happens when its loop runs next: see :meth:`advance` for async tests.

        Raises:
            ValueError: It would be turned back.
            RuntimeError: The loop that runs here has another clock: uvloop's, or trio's MockClock.
        """
        global _turned
        # Another clock that was in use within this one may have given time back its own function.
        time.monotonic = _monotonic
        if not (0 <= seconds < math.inf):
            raise ValueError(f"a clock is turned forward by some seconds, not by {seconds!r}")
        _check_loop()
        _turned += seconds
        _turn_trio(seconds)
        for loop in list(_loops):
            try:
                loop.call_soon_threadsafe(_nothing)
            except RuntimeError:
                pass  # it has ended

    async def advance(self, seconds: float) -> None:
        """Turn it forward in an async test, and let happen what is due then.

        One turn: a timer that is set by what happens has its own time before it. To see a chain
        through to its end, use :meth:`until`.
        """
        self.turn(seconds)
        await _settle()

    async def until(
        self, fact: Callable[[], Any], *, within: float = 3600.0, step: float = 0.1
    ) -> Any:
        """Turn it on and on until a fact holds, and return the fact's value.

        Args:
            fact: Called again and again, such as ``lambda: server.state == "up"``.
            within: How far it is turned at most, in seconds.
            step: How far at first; each step is a tenth longer, so that a long wait needs few.

        Raises:
            AssertionError: The fact did not hold in all that time.
        """
        await _settle()
        gone = 0.0
        while not (found := fact()):
            if gone >= within:
                raise AssertionError(f"it did not come true within {within:g} s of turned time")
            step = min(step, within - gone)
            gone += step
            await self.advance(step)
            step *= 1.1
            # Real processes and threads get a moment of real time for each step.
            await _moment()
        return found

    @contextmanager
    def turning(self, *, step: float = 1.0) -> Iterator[None]:
        """Turn it on and on in the background of a ``with`` block, so that a call times out soon.

        Args:
            step: How far at a time; what needs several turns of the loop gets them in between.
        """
        loop = loops.current()
        going = True

        async def turn() -> None:
            while going:
                await self.advance(step)
                await _moment()

        job = loop.job(turn, "clock")
        try:
            yield
        finally:
            going = False
            job.cancel()


async def _settle() -> None:
    loop = loops.current()
    for _ in range(_TURNS):
        await loop.checkpoint()


async def _moment() -> None:
    """Wait for a little real time, whatever the clock says: what is ready runs meanwhile."""
    until = _real() + _MOMENT
    loop = loops.current()
    while _real() < until:
        await loop.checkpoint()
        time.sleep(_MOMENT / 10)  # noqa: ASYNC251 - real time, which no timer of the loop tells


def _nothing() -> None:
    pass


def _check_loop() -> None:
    asyncio = sys.modules.get("asyncio")
    loop = None if asyncio is None else asyncio._get_running_loop()
    if loop is not None and abs(loop.time() - time.monotonic()) > 1.0:
        raise RuntimeError(
            f"{type(loop).__module__} has a clock of its own, which cannot be turned; "
            "run the test on asyncio's own loop"
        )


def _turn_trio(seconds: float) -> None:
    trio = sys.modules.get("trio")
    if trio is None or not trio.lowlevel.in_trio_run():
        return
    clock = trio.lowlevel.current_clock()
    if not isinstance(getattr(clock, "offset", None), float):
        raise RuntimeError(
            f"trio runs by a {type(clock).__name__}; use either that or mcp_clock, not both"
        )
    # Trio's own clock is frozen, but its offset is a mere number, which each look adds anew.
    object.__setattr__(clock, "offset", clock.offset + seconds)
