"""Who follows which resources, and how a server is told. Knows no version: the era plans.

What is wanted is kept here over all lives of a server; what is active is what the present life
agreed to. One job at a time makes the one equal to the other, after a restart as well.

https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/subscriptions
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from mcpclient.ground.errors import (
    CallLost,
    LocalProtocolError,
    McpClientError,
)
from mcpclient.ground.text import printable
from mcpclient.protocol.eras import Listen, Wanted
from mcpclient.protocol.methods import LISTEN

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpclient.connection.connection import Connection
    from mcpclient.connection.inflight import Call
    from mcpclient.loops.base import Loop, Stop

_log = logging.getLogger("mcpclient")
# Pauses before a stream that the server ended is asked for again, in seconds. One that lasted for
# longer than the longest of them begins with the shortest again.
_FIRST, _CAP = 0.1, 30.0


class Follower(Protocol):
    """Who follows a resource."""

    uri: str

    def put(self, params: Any) -> None:
        """Take an update in."""

    def wake(self) -> None:
        """Something was agreed or refused."""

    def end(self) -> None:
        """There will be no more."""


class Subscriptions:
    """The subscriptions to one server."""

    def __init__(
        self,
        name: str,
        loop: Loop,
        patience: float | None,
        missed: Callable[[Wanted], None] = lambda wanted: None,
    ) -> None:
        """Begin with none.

        Args:
            name: The server's name.
            loop: The loop that runs this code.
            patience: How long the server may take to agree, in seconds.
            missed: Told what was not heard of for a while, since a stream had ended.
        """
        self._name = name
        self._loop = loop
        self._patience = patience
        self._missed = missed
        self._followers: dict[str, list[Follower]] = {}
        self._lists: frozenset[str] = frozenset()
        self._tasks: frozenset[str] = frozenset()
        self._active = Wanted()
        self._refused: dict[str, McpClientError] = {}
        self._connection: Connection | None = None
        self._stream: _Stream | None = None
        self._job: Stop | None = None
        # When a stream that ended may be asked for again, and the pause after that.
        self._due = 0.0
        self._pause = _FIRST
        # Whether what was missed is to be made good: by a stream, or by the followers alone.
        self._lapsed = False
        self._again = False

    # -- what is wanted --------------------------------------------------------------------

    def follow(self, subscription: Follower) -> None:
        """Want a resource for one more follower."""
        uri = subscription.uri
        followers = self._followers.setdefault(uri, [])
        if not followers and self._refused.pop(uri, None) is not None:
            # Whoever was refused has left; this is another attempt.
            active = self._active
            self._active = Wanted(active.uris - {uri}, active.lists, active.tasks)
        followers.append(subscription)
        self._kick()

    def unfollow(self, subscription: Follower) -> None:
        """Want it for one less."""
        followers = self._followers.get(subscription.uri, [])
        if subscription in followers:
            followers.remove(subscription)
            if not followers:
                del self._followers[subscription.uri]
                self._kick()

    def want_lists(self, lists: frozenset[str]) -> None:
        """Want to be told when these lists change (``tools``, ``prompts``, ``resources``)."""
        if lists != self._lists:
            self._lists = lists
            self._kick()

    def want_tasks(self, tasks: frozenset[str]) -> None:
        """Want to be told of these tasks, where they must be asked for."""
        if tasks != self._tasks:
            self._tasks = tasks
            self._kick()

    def state_of(self, uri: str) -> McpClientError | bool:
        """Return whether a resource is followed by now, or why it is not."""
        return self._refused.get(uri) or uri in self._active.uris

    @property
    def up(self) -> bool:
        """Whether there is a server to agree to anything."""
        return self._connection is not None

    @property
    def followed(self) -> bool:
        """Whether anybody follows a resource."""
        return bool(self._followers)

    @property
    def lasting(self) -> int:
        """How many requests are open that nobody waits for: the stream, where there is one."""
        return int(self._stream is not None and self._stream.going)

    # -- what happens ----------------------------------------------------------------------

    def went_up(self, connection: Connection) -> None:
        """A life began: what is wanted is asked for anew."""
        self._connection = connection
        self._active = Wanted()
        self._refused.clear()
        self._due = 0.0
        self._pause = _FIRST
        self._lapsed = False
        self._kick()

    def went_down(self) -> None:
        """It is over."""
        self._connection = None
        self._stream = None
        self._active = Wanted()
        self._again = bool(self._followers)
        if self._job is not None:
            self._job.cancel()
            self._job = None
        self._wake()

    def close(self) -> None:
        """End all subscriptions: the server is removed."""
        for followers in list(self._followers.values()):
            for follower in list(followers):
                follower.end()
        self._followers.clear()

    def deliver(self, uri: str, params: Any) -> None:
        """Hand an update to all who follow the resource, or one above it (SUB-12)."""
        for known, followers in list(self._followers.items()):
            if uri == known or uri.startswith(known.rstrip("/") + "/"):
                for follower in list(followers):
                    follower.put(params)

    def acknowledged(self, params: Any) -> None:
        """A stream is live, for what the server names."""
        if self._stream is not None:
            self._stream.acknowledge(params)

    def belongs(self, key: object) -> bool:
        """Return whether a notice's subscription is ours, by exact type (SUB-02)."""
        stream = self._stream
        return key is None or (stream is not None and type(key) is int and key in stream.ids)

    def cancelled(self, id: object) -> None:
        """The server gave a stream up."""
        stream = self._stream
        if stream is not None and type(id) is int and id == stream.call_id:
            stream.over()

    def lapsed(self) -> None:
        """What was agreed to holds, but for a while nothing of it was heard."""
        for uri in self._active.uris:
            if uri not in self._refused:
                self.deliver(uri, {"uri": uri})

    # -- the job ---------------------------------------------------------------------------

    @property
    def _wanted(self) -> Wanted:
        return Wanted(frozenset(self._followers), self._lists, self._tasks)

    def _kick(self) -> None:
        if self._connection is not None and self._job is None and self._wanted != self._active:
            connection = self._connection
            self._job = self._loop.job(
                lambda: self._run(connection), f"subscriptions to {self._name}"
            )

    async def _run(self, connection: Connection) -> None:
        try:
            while self._connection is connection:
                wanted = self._wanted
                if wanted == self._active:
                    return
                if (early := self._due - time.monotonic()) > 0:
                    await anyio.sleep(early)
                elif await self._agree(connection, wanted):
                    self._catch_up(wanted)
                else:
                    self._postpone()
        finally:
            # Of another life there is another job.
            if self._connection is connection:
                self._job = None

    async def _agree(self, connection: Connection, wanted: Wanted) -> bool:
        """Make one plan real; return False if it is to be tried again."""
        terms = connection.session.terms
        capabilities = terms.capabilities if terms is not None else {}
        plan = connection.session.era.subscribing(self._active, wanted, capabilities)
        if isinstance(plan, Listen):
            return await self._listen(connection, wanted, plan)
        refused: dict[str, McpClientError] = {}
        for uri in plan.refused:
            refused[uri] = LocalProtocolError(_NOT_OFFERED.format(self._name))
        for method, params in plan.requests:
            uri = params["uri"]
            if uri not in wanted.uris and uri in self._refused:
                continue  # never agreed to, so there is nothing to take back
            try:
                await connection.request(method, params, self._patience)
            except McpClientError as problem:
                if uri in wanted.uris:
                    refused[uri] = problem
        self._become(wanted, {**self._refused, **refused})
        return True

    async def _listen(self, connection: Connection, wanted: Wanted, plan: Listen) -> bool:
        old = self._stream
        if plan.params is None:
            self._stream = None
            if old is not None:
                old.leave()
            self._become(wanted, {})
            return True
        # The new one first, then the old one is ended: no update falls between (SUB-14).
        stream = _Stream(connection, old.ids if old is not None else set(), self._ended)
        self._stream = stream
        stream.open(plan.params)
        with anyio.move_on_after(self._patience):
            await stream.settled.wait()
        if stream.live:
            if old is not None:
                old.leave()
            unheard = wanted.uris.difference(stream.honoured)
            problem = LocalProtocolError(_NOT_OFFERED.format(self._name))
            self._become(wanted, dict.fromkeys(unheard, problem))
            return True
        stream.leave()
        self._stream = old if old is not None and old.live else None
        if stream.problem is None:
            return False
        # It is refused as a whole; what is there already must not suffer from what is new.
        spared = self._active.uris if self._stream is not None else frozenset()
        refused = dict.fromkeys(wanted.uris - spared, stream.problem)
        self._become(wanted, {**self._refused, **refused})
        return True

    def _ended(self, stream: _Stream) -> None:
        """A live stream ended: ask for another."""
        if self._stream is stream:
            self._stream = None
            self._active = Wanted()
            self._lapsed = True
            if time.monotonic() - stream.since > _CAP:
                self._pause = _FIRST
            self._postpone()
            self._kick()

    def _postpone(self) -> None:
        """The server ended a stream, or does not answer: not again at once (SUB-09)."""
        self._due = time.monotonic() + self._pause
        self._pause = min(self._pause * 2, _CAP)

    def _become(self, wanted: Wanted, refused: dict[str, McpClientError]) -> None:
        for uri, problem in refused.items():
            if self._refused.get(uri) is not problem:
                shown = printable(uri, 200)
                _log.warning("%s ! %s is not followed: %s", self._name, shown, problem)
        # Of what nobody wants any more nothing is remembered.
        self._refused = {uri: refused[uri] for uri in refused if uri in wanted.uris}
        self._active = wanted
        self._wake()

    def _catch_up(self, wanted: Wanted) -> None:
        """Nobody knows what was missed while nothing was agreed on (SUB-11)."""
        lapsed, again = self._lapsed, self._again or self._lapsed
        self._lapsed = self._again = False
        if lapsed:
            self._missed(wanted)
        for uri in wanted.uris if again else ():
            if uri not in self._refused:
                self.deliver(uri, {"uri": uri})

    def _wake(self) -> None:
        for followers in list(self._followers.values()):
            for follower in list(followers):
                follower.wake()


_NOT_OFFERED = 'the server "{}" offers no subscription to this; read it again when needed'


class _Stream:
    """One long request whose answers are notifications.

    Attributes:
        settled: Set once it is live, or is known not to become so.
        live: Whether the server agreed, and goes on.
        since: When it agreed.
        honoured: The resources it agreed to.
        problem: Why it never became live, if the server said.
        ids: Its subscription's id, and that of the stream it took over from.
    """

    def __init__(
        self, connection: Connection, ids: set[int], ended: Callable[[_Stream], None]
    ) -> None:
        self._connection = connection
        self._call: Call | None = None
        self._ended = ended
        self.ids = set(ids)
        self.settled = anyio.Event()
        self.live = False
        self.since = 0.0
        self.honoured: list[str] = []
        self.problem: McpClientError | None = None

    @property
    def call_id(self) -> int | None:
        return self._call.id if self._call is not None else None

    @property
    def going(self) -> bool:
        return self._call is not None and self._call.ending is None

    def open(self, params: Mapping[str, Any]) -> None:
        # No time-out: it lasts as long as it is wanted (TMO-06).
        try:
            self._call = self._connection.begin(LISTEN, params, None, watch=self._outcome)
        except McpClientError as problem:
            self._fail(problem)
            return
        self._connection.counts.own += 1
        self.ids = {max(self.ids, default=self._call.id), self._call.id}

    def acknowledge(self, params: Any) -> None:
        meta = params.get("_meta") if isinstance(params, dict) else None
        key = meta.get(SUBSCRIPTION_KEY) if isinstance(meta, dict) else None
        if type(key) is not int or key != self.call_id:
            return
        agreed = params.get("notifications")
        uris = agreed.get("resourceSubscriptions") if isinstance(agreed, dict) else None
        listed = uris if isinstance(uris, list) else []
        self.honoured = [one for one in listed if isinstance(one, str)]
        self.live = True
        self.since = time.monotonic()
        self.settled.set()

    def over(self) -> None:
        """It ended, by a result, an error or a cancellation; each settles it once (SUB-08)."""
        if self._call is not None:
            self._connection.forget(self._call)
        self.settled.set()
        if self.live:
            self.live = False
            self._ended(self)

    def leave(self) -> None:
        """End it from this side."""
        self.live = False
        if self._call is not None:
            self._connection.abandon(self._call, "no longer wanted")

    def _outcome(self, outcome: Any) -> None:
        if not self.live and self._call is not None:
            try:
                self._connection.read(self._call, outcome)
            except McpClientError as problem:
                self._fail(problem)
        self.over()

    def _fail(self, problem: McpClientError) -> None:
        if not isinstance(problem, CallLost):  # which is no refusal
            self.problem = problem
        self.settled.set()


SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
