"""Openings cut short by a death, a close or a cancel, or disturbed by what else is said."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from mcpclient.connection.opening import DiedOnProbe
from mcpclient.ground.exits import Exit
from tests.conftest import eventually
from tests.connection.openings import discovered, initialized, opening

# -- the end comes first -------------------------------------------------------------------


async def test_a_death_at_the_probe_asks_for_a_fresh_process() -> None:
    async with opening() as run:
        await run.next("server/discover")
        run.peer.die(Exit(code=1))
        assert type(await run.ended()) is DiedOnProbe


async def test_a_death_at_the_probe_is_a_failure_where_there_is_no_other_way() -> None:
    async with opening("stateless") as run:
        await run.next("server/discover")
        run.peer.die(Exit(code=3))
        problem = await run.failed()
        assert (problem.exit, problem.final) == (Exit(code=3), False)
        assert str(problem) == 'server "peer": the server ended while it was opened (exit code 3)'


async def test_a_death_at_initialize_is_told_with_the_exit_and_the_noise() -> None:
    async with opening("handshake") as run:
        await run.next("initialize")
        run.peer.write(b"Usage: server [--stdio]\n")
        run.peer.die(Exit(code=2))
        problem = await run.failed()
        assert (problem.exit, problem.final) == (Exit(code=2), False)
        assert "(not a message of the protocol: 'Usage: server [--stdio]')" in str(problem)
        assert problem.noise == "Usage: server [--stdio]"


async def test_a_death_during_the_probe_after_silence_fails_the_handshake() -> None:
    async with opening(probe_time=0.02) as run:
        await run.next("initialize")
        run.peer.die(Exit(signal=9))
        problem = await run.failed()
        assert problem.exit == Exit(signal=9)


async def test_a_close_during_the_opening_is_told_as_such() -> None:
    async with opening("handshake") as run:
        await run.next("initialize")
        await run.connection.close()
        problem = await run.failed()
        assert "the server was closed while it was opened" in str(problem)
        assert problem.exit is None


@pytest.mark.parametrize(
    ("era", "method", "result"),
    [("auto", "server/discover", discovered), ("handshake", "initialize", initialized)],
)
async def test_a_server_that_answers_and_ends_at_once_is_not_up(
    era: str, method: str, result: Callable[[], dict[str, Any]]
) -> None:
    async with opening(era) as run:
        run.peer.answer(await run.next(method), **result())
        run.peer.die(Exit(code=7))  # in the same turn
        problem = await run.failed()
        assert (problem.exit, problem.final) == (Exit(code=7), False)
        assert "the server ended while it was opened (exit code 7)" in str(problem)


async def test_a_server_that_refuses_the_probe_and_ends_gets_a_fresh_process() -> None:
    async with opening() as run:
        run.peer.refuse(await run.next("server/discover"), -32601, "what?")
        run.peer.die(Exit(code=1))
        assert type(await run.ended()) is DiedOnProbe


# -- beside the opening --------------------------------------------------------------------


async def test_a_cancelled_opening_says_nothing_more() -> None:
    async with opening() as run:
        await run.next("server/discover")
        run.scope.cancel()
        await run.ended()
        await run.peer.quiet()
        assert run.sent == ["server/discover"], "an opening is never cancelled on the wire"


async def test_noise_and_notices_before_the_answer_do_not_disturb() -> None:
    async with opening() as run:
        probe = await run.next("server/discover")
        run.peer.write(b"Starting up...\n")
        run.peer.say(method="notifications/tools/list_changed")
        run.peer.say(id=99, result={})
        run.peer.refuse(probe, -32601, "Method not found")
        initialize = await run.next("initialize")
        run.peer.write(b"Ready!\n")
        run.peer.say(method="notifications/message", params={"level": "info", "data": "x"})
        run.peer.answer(initialize, **initialized())
        assert await run.ended() is None


async def test_what_is_asked_during_the_opening_is_answered_by_the_rules_of_the_era() -> None:
    async with opening() as run:
        probe = await run.next("server/discover")
        run.peer.say(id="early", method="ping")
        await eventually(lambda: run.connection.counts.asks == 1)
        run.peer.refuse(probe, -32601, "Method not found")
        run.peer.answer(await run.next("initialize"), **initialized())
        assert await run.ended() is None
        await eventually(
            lambda: {"jsonrpc": "2.0", "id": "early", "result": {}} in run.peer.received
        )
    async with opening() as run:
        probe = await run.next("server/discover")
        run.peer.say(id="early", method="ping")
        run.peer.answer(probe, **discovered())
        assert await run.ended() is None
        await run.peer.quiet()
        assert run.sent == ["server/discover"]
        assert run.connection.counts.ignored == 1
