"""A call ends exactly once, whatever arrives, is cancelled, is late or dies: seeded courses."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    CallTimedOut,
    Limits,
    ReplyError,
    ServerDied,
    Timeouts,
    UseAfterClose,
)
from mcpclient.connection.connection import Connection
from mcpclient.ground.exits import Exit
from tests.connection.peer import Peer, conversation


class Course:
    """One random conversation."""

    def __init__(self, chance: random.Random, connection: Connection, peer: Peer) -> None:
        self.chance = chance
        self.connection = connection
        self.peer = peer
        self.scopes: list[anyio.CancelScope] = []
        self.endings: list[list[str]] = []
        self.watched: list[list[str]] = []

    def call(self, group: Any) -> None:
        """Begin a call in a task of its own."""
        scope = anyio.CancelScope()
        ends: list[str] = []
        timeout = self.chance.choice([0.005, 0.02, 0.05, 30.0, None])
        handler = self.chance.choice([None, lambda *facts: None])

        async def run() -> None:
            with scope:
                try:
                    await self.connection.request(
                        "tools/call", {"name": "a", "n": 1}, timeout, handler
                    )
                    ends.append("answered")
                except anyio.get_cancelled_exc_class():
                    ends.append("cancelled")
                    raise
                except (ReplyError, CallTimedOut, ServerDied, CallCancelled) as problem:
                    ends.append(type(problem).__name__)
                except UseAfterClose:
                    ends.append("refused")

        self.scopes.append(scope)
        self.endings.append(ends)
        group.start_soon(run)

    def watch(self) -> None:
        """Begin a call that has a watch in place of a task."""
        if self.connection.over:
            return
        ends: list[str] = []
        self.watched.append(ends)
        timeout = self.chance.choice([0.005, 30.0])
        self.connection.begin(
            "tools/call",
            {"name": "a"},
            timeout,
            watch=lambda outcome: ends.append(type(outcome).__name__),
        )

    def speak(self) -> None:
        """Let the peer say something, mostly about a request it got, true or not."""
        peer, chance = self.peer, self.chance
        requests = peer.of("tools/call")
        request = chance.choice(requests) if requests else 3
        what = chance.random()
        if what < 0.55:
            peer.answer(request, n=1)
        elif what < 0.65:
            peer.refuse(request, -32000, "no")
        elif what < 0.75:
            peer.progress(request["id"] if isinstance(request, dict) else 1, 1)
        elif what < 0.8:
            peer.answer(chance.randrange(1000), stray=True)
        elif what < 0.85:
            peer.write(chance.choice([b"noise\n", b'{"jsonrpc":"2.0","id":', b"\n\n", b"[]\n"]))
        elif what < 0.9:
            peer.say(id=chance.randrange(5), method="ping")
        else:
            peer.say(method="notifications/x")


@pytest.mark.parametrize("seed", range(20))
async def test_a_call_ends_once_whatever_comes(seed: int) -> None:
    chance = random.Random(seed)
    timeouts, limits = Timeouts(call_max=0.1), Limits(retired=10)
    async with conversation(timeouts=timeouts, limits=limits) as (connection, peer, _):
        course = Course(chance, connection, peer)
        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                for _step in range(150):
                    what = chance.random()
                    if what < 0.35:
                        course.call(group)
                    elif what < 0.4:
                        course.watch()
                    elif what < 0.75:
                        course.speak()
                    elif what < 0.85 and course.scopes:
                        chance.choice(course.scopes).cancel()
                    else:
                        await anyio.sleep(chance.choice([0, 0, 0.001, 0.006]))
                    connection.inflight.check()
                if seed % 3 == 0:
                    peer.die(Exit(signal=9))
                elif seed % 3 == 1:
                    await connection.close()
                else:
                    for request in peer.of("tools/call"):
                        peer.answer(request)
                    for scope in course.scopes:
                        if chance.random() < 0.5:
                            scope.cancel()
                    await peer.quiet()
                    await connection.close()
        books = connection.inflight
        books.check()
        assert len(books) == 0
        counts = Counter(len(ends) for ends in course.endings)
        # A task whose scope was cancelled before it ran may have asked for nothing at all.
        assert set(counts) <= {0, 1}, course.endings
        for scope, ends in zip(course.scopes, course.endings, strict=True):
            assert ends or scope.cancel_called
        assert all(len(ends) == 1 for ends in course.watched), course.watched
        asked = [request["id"] for request in peer.of("tools/call")]
        assert len(asked) == len(set(asked)), "an id is used once"
        assert max(Counter(peer.cancels).values(), default=1) == 1, "a call is cancelled once"
        assert set(peer.cancels) <= set(asked)
