"""Keeps one server alive as its policy says, and lets callers wait for it.

One job at a time runs the lives of a server; it belongs to no caller, so that nobody's
cancellation ends a server, and a stop, from whatever task, always reaches it.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from mcpclient.connection.incoming import Owner
from mcpclient.ground.errors import (
    CallTimedOut,
    McpClientError,
    OpeningFailed,
    RestartsExhausted,
    ServerUnavailable,
    UseAfterClose,
    last_words,
)
from mcpclient.ground.text import seconds
from mcpclient.supervision.incidents import Incident
from mcpclient.supervision.phases import PHASE
from mcpclient.supervision.policy import GiveUp, Rest, Restart, RestartPolicy, decide

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.connection.connection import Connection
    from mcpclient.loops.base import Loop, Waiter

_log = logging.getLogger("mcpclient")


class Dial(Protocol):
    """Starts one life. See :meth:`mcpclient.connection.dialing.Dialer.dial`."""

    async def dial(
        self, generation: int, owner: Owner, started: Callable[[Connection], None]
    ) -> Connection:
        """Return an open connection, or raise a ServerUnavailable that says why there is none."""


class Keeper(Owner, Protocol):
    """Who is told of lives. Its methods never raise and never wait."""

    def born(self, connection: Connection) -> None:
        """There is a new process; whether it comes up is open."""

    def went_up(self, connection: Connection) -> None:
        """A life is up; calls may be made."""

    def went_down(self) -> None:
        """It is over. Told before any caller is."""

    def moved(self, phase: str) -> None:
        """The server is in another phase."""

    def recorded(self, incident: Incident) -> None:
        """A life ended that nobody asked to end, or did not come about."""


def _memory(policy: RestartPolicy, wanted: int) -> int:
    """Return how many deaths to remember, for the policy to decide by."""
    return max(wanted, (policy.burst or 1) + 1)


class Supervisor:
    """The lives of one server.

    Attributes:
        name: The server's name.
        phase: A state of :data:`mcpclient.supervision.phases.PHASE`.
        generation: The number of the present or last life, from 1; 0 before the first.
        connection: The open connection, or None unless ``up``.
        incidents: The deaths nobody asked for, oldest first.
        restarts: How many lives were begun by the policy.
        halted: Whether it was stopped, so that no call may start it.
        retired: Whether it was stopped for good.
    """

    def __init__(
        self,
        name: str,
        dialer: Dial,
        keeper: Keeper,
        policy: RestartPolicy,
        *,
        loop: Loop,
        remembered: int,
    ) -> None:
        self.name = name
        self.phase = PHASE.start
        self.generation = 0
        self.connection: Connection | None = None
        self.incidents: deque[Incident] = deque(maxlen=_memory(policy, remembered))
        self.restarts = 0
        self._dialer = dialer
        self._keeper = keeper
        self._policy = policy
        self._loop = loop
        self._scope: anyio.CancelScope | None = None
        self._failure: ServerUnavailable | None = None
        self._life: Connection | None = None
        self._opening: Connection | None = None
        self._hurry: anyio.Event | None = None
        self._told_up = False
        self._muted = False
        self.halted = False
        self.retired = False
        self._again = False
        self._ready: set[Waiter] = set()
        self._ended: set[Waiter] = set()
        self._up_since = 0.0
        self._decision: Restart | Rest | GiveUp = Rest()

    @property
    def pid(self) -> int | None:
        """The process id of the present life, open or not; None as soon as it was reaped."""
        newest = self._opening
        return None if newest is None or newest.over else newest.transport.pid

    # -- for callers -----------------------------------------------------------------------

    def start(self) -> None:
        """Start the server unless it is started, forgetting a stop, a failure or a pause.

        Raises:
            UseAfterClose: It was retired.
        """
        if self.retired:
            raise self._gone()
        self.halted = False
        self._failure = None
        # The job of the last life may be about to end, or to stop: then once more after it.
        self._again = self._scope is not None and self.phase in ("idle", "stopping", "failed")
        if self.phase == "waiting" and self._hurry is not None:
            self._hurry.set()
        self._wake()

    def refusal(self) -> McpClientError | None:
        """Return why the server may not be started for a call, or None if it may."""
        if self.retired:
            return self._gone()
        if self._failure is not None:
            return self._failure.again()
        if self.halted:
            return ServerUnavailable("it was stopped; call start() first", server=self.name)
        return None

    async def ready(self, timeout: float | None, method: str = "") -> Connection:
        """Return the open connection, starting the server if need be.

        Raises:
            ServerUnavailable: It was stopped, or failed for good. A subclass says how.
            UseAfterClose: It was retired.
            CallTimedOut: It was not up within ``timeout`` seconds.
        """
        begun = time.monotonic()
        while self.connection is None or self.connection.over:
            refusal = self.refusal()
            if refusal is not None:
                raise refusal
            self._wake()
            left = None if timeout is None else begun + timeout - time.monotonic()
            if left is not None and left <= 0:
                raise self._too_late(timeout or 0.0, method)
            await self._wait(left)
        return self.connection

    def halt(self) -> None:
        """Have the server stopped. A stop wins in every phase; :meth:`ended` waits for it."""
        self.halted = True
        self._again = False
        self._failure = None
        self.connection = None
        self._move("stop")
        if self._scope is not None:
            self._scope.cancel()
        else:
            self._settle(self._ready)

    def retire(self) -> None:
        """Have the server stopped for good: whoever would stop it again is going away."""
        self.retired = True
        self.halt()

    def pause(self) -> None:
        """Have a server that is up stopped as if it had never been started: a call wakes it."""
        if self.phase == "up" and self._scope is not None:
            self.connection = None
            self._move("pause")
            self._scope.cancel()

    def renew(self) -> None:
        """Have the present life ended and another one begun. A stop still wins, also meanwhile."""
        if self._scope is not None and self.phase in ("starting", "opening", "up", "waiting"):
            self.connection = None
            self._again = True
            self._move("stop")
            self._scope.cancel()

    def rearm(self) -> None:
        """Forget a stop or a failure without starting: the next call does."""
        self.halted = False
        self._failure = None
        if self.phase == "failed":
            self._move("stop")

    def redirect(self, dialer: Dial, policy: RestartPolicy) -> None:
        """Have the next life started in another way."""
        self._dialer = dialer
        self._policy = policy
        self.incidents = deque(self.incidents, maxlen=_memory(policy, self.incidents.maxlen or 0))

    async def ended(self) -> None:
        """Wait until no process is left. Cancelling does not shorten it."""
        if self._scope is not None:
            waiter = self._loop.waiter()
            self._ended.add(waiter)
            await self._loop.outlast(waiter)

    # -- the job ---------------------------------------------------------------------------

    def _wake(self) -> None:
        if self._scope is None and not self.halted and self._failure is None:
            self._scope = anyio.CancelScope()
            self._move("start")
            self._loop.job(self._run, f"server {self.name}")

    async def _run(self) -> None:
        scope = self._scope
        assert scope is not None
        try:
            with scope:
                await self._lives()
            if self._life is not None:
                await self._life.close()
        except Exception as problem:  # the job's outer edge; a fault here is a fault of ours
            _log.exception("%s ! the supervisor failed", self.name)
            self._failure = ServerUnavailable(
                f"a fault in mcpclient itself: {problem!r}", server=self.name
            )
        finally:
            if self._life is not None:
                # The loop ends and has cancelled everything: no time to be polite, nobody's fault,
                # and nobody there any more to be told.
                self._told_up = False
                self._muted = True
                self._move("stop")
                self._life.kill()
            self._scope = None
            if self.phase == "stopping":
                self._move("stopped")
            elif self._failure is not None and PHASE.allows(self.phase, "give_up"):
                self._move("give_up")
            self._settle(self._ended)
            self._settle(self._ready)
            if self._again:
                self._again = False
                self._wake()

    async def _lives(self) -> None:
        while True:
            self.generation += 1
            await self._live()
            decision = self._decision
            if not isinstance(decision, Restart):
                return
            self._hurry = anyio.Event()
            with anyio.move_on_after(decision.delay):
                await self._hurry.wait()
            if self.phase == "stopping":
                return
            self.restarts += 1
            self._move("start")

    async def _live(self) -> None:
        """Run one life from its start to its end, and leave the decision about the next.

        A stop may come in the very turn of the loop in which something else ended an await: then
        the cancellation only comes with the next one.
        """
        try:
            connection = await self._dialer.dial(self.generation, self._keeper, self._spawned)
        except ServerUnavailable as problem:
            if self.phase != "stopping":
                self._failed_to_open(problem)
            else:
                self._decision = Rest()
            return
        self._life = connection
        self._up_since = time.monotonic()
        connection.on_over = self._went_down
        if self.phase == "stopping":
            self._decision = Rest()
            return
        if connection.over:
            self._went_down()
            return
        self._move("opened")
        self.connection = connection
        self._told_up = True
        self._keeper.went_up(connection)
        self._settle(self._ready)
        await connection.ended.wait()

    def _spawned(self, connection: Connection) -> None:
        self._opening = connection
        self._keeper.born(connection)
        if self.phase != "stopping":
            self._move("spawned")

    def _failed_to_open(self, problem: ServerUnavailable) -> None:
        opening = problem if isinstance(problem, OpeningFailed) else None
        if not problem.server:
            problem.server = self.name
        self._record(
            Incident(
                generation=self.generation,
                at=time.monotonic(),
                phase=self.phase,
                exit=opening.exit if opening else None,
                # Whoever shows an incident names the server and its last words itself.
                problem=opening.problem if opening else str(problem),
                stderr_tail=opening.stderr_tail if opening else "",
                noise=opening.noise if opening else "",
            ),
            # A command that is not there, or a server that refuses us, will not change its mind.
            final=problem if problem.final else None,
            least=problem.retry_after or 0.0,
        )

    def _went_down(self) -> None:
        """Take note of the end of a life at once, before any of its callers is told."""
        connection = self._life
        assert connection is not None
        self._life = self.connection = None
        now = time.monotonic()
        phase = self.phase
        if self._told_up:
            self._told_up = False
            self._keeper.went_down()
        if phase in ("stopping", "idle"):
            return  # somebody asked for it
        self._record(
            Incident(
                generation=self.generation,
                at=now,
                phase=phase,
                uptime=now - self._up_since if phase == "up" else 0.0,
                exit=connection.exit,
                problem=connection.reason,
                stderr_tail=connection.transport.stderr_tail(),
                noise=connection.noise.text(),
            )
        )

    def _record(
        self, incident: Incident, final: ServerUnavailable | None = None, least: float = 0.0
    ) -> None:
        self.incidents.append(incident)
        _log.warning("%s ! %s", self.name, incident)
        self._keeper.recorded(incident)
        decision: Restart | Rest | GiveUp
        if final is not None:
            decision = GiveUp("")
            self._failure = final
        else:
            import random  # only restarts need it

            decision = decide(self._policy, self.incidents, incident.at, random.uniform(-1.0, 1.0))
        match decision:
            case Restart(delay=delay):
                decision = Restart(max(delay, least))
                self._move("retry")
            case Rest():
                self._move("rest")
            case GiveUp(problem=problem):
                if final is None:
                    self._failure = RestartsExhausted(
                        f"{problem}; last, {incident}", tuple(self.incidents), server=self.name
                    )
                self._move("give_up")
        self._decision = decision

    # -- waiting ---------------------------------------------------------------------------

    async def _wait(self, timeout: float | None) -> None:
        """Wait for the next thing that may change a waiting caller's mind."""
        waiter = self._loop.waiter()

        def wake() -> None:
            if not waiter.done():
                waiter.set_result(None)

        timer = None if timeout is None else self._loop.later(timeout, wake)
        self._ready.add(waiter)
        try:
            await waiter
        finally:
            self._ready.discard(waiter)
            if timer is not None:
                timer.cancel()

    def _settle(self, waiters: set[Any]) -> None:
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        waiters.clear()

    def _gone(self) -> UseAfterClose:
        return UseAfterClose(f'the server "{self.name}" was removed, or its manager closed')

    def _too_late(self, timeout: float, method: str) -> CallTimedOut:
        words = f"; last, {self.incidents[-1]}" if self.incidents else ""
        if self.phase == "opening" and (opening := self._opening) is not None:
            # What it says while it opens tells most (B69).
            words = opening.aside() + last_words(opening.transport.stderr_tail()) or words
        return CallTimedOut(
            f"the server was not up within {seconds(timeout)} (it is {self.phase}){words}",
            method=method or "start",
            server=self.name,
            maybe_done=False,
        )

    def _move(self, event: str) -> None:
        before = self.phase
        self.phase = PHASE.after(before, event)
        if self.phase != before:
            _log.info("%s#%d = %s → %s", self.name, self.generation, before, self.phase)
            if not self._muted:
                self._keeper.moved(self.phase)
