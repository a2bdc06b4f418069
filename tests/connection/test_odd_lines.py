"""Answers for nobody, noise, rubbish and frames too long: counted, shown, and no call suffers."""

from __future__ import annotations

import logging

import anyio
import pytest

from mcpclient import Limits, RemoteProtocolError
from tests.conftest import eventually
from tests.connection.peer import Outcomes, conversation

# -- answers for nobody, and noise ---------------------------------------------------------


async def test_a_second_answer_is_dropped_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    async with conversation() as (connection, peer, _), anyio.create_task_group() as group:
        outcomes = Outcomes()
        group.start_soon(outcomes.keep, "call", connection.request("tools/list", None, 5))
        (request,) = await peer.get("tools/list")
        peer.answer(request, answer=1)
        peer.answer(request, answer=2)
        peer.refuse(request, -1, "three")
        await peer.quiet()
        assert outcomes.of == {"call": {"answer": 1}}
        assert connection.inflight.stray == 2
        assert connection.noise.count == 0
        assert [r for r in caplog.records if r.levelno >= logging.WARNING] == []


async def test_an_answer_to_what_was_never_asked_is_noise() -> None:
    async with conversation() as (connection, peer, _):
        peer.answer(4711, x=1)
        peer.refuse(0, -1, "nobody")
        await peer.quiet()
        assert connection.inflight.stray == 2
        assert connection.noise.count == 2
        assert "an answer to id 4711, which was never asked" in connection.noise.text()


async def test_noise_is_counted_sampled_and_hurts_no_call() -> None:
    limits = Limits(noise=100)
    async with conversation(limits=limits) as (connection, peer, _):
        async with anyio.create_task_group() as group:
            outcomes = Outcomes()
            group.start_soon(outcomes.keep, "call", connection.request("tools/list", None, 5))
            (request,) = await peer.get("tools/list")
            for number in range(1000):
                peer.write(b"INFO line number %d\n" % number)
            peer.answer(request, x=1)
        assert outcomes.of == {"call": {"x": 1}}
        assert connection.noise.count == 1000
        assert connection.noise.text().startswith("INFO line number 0\nINFO line number 1\n")
        assert len(connection.noise.text()) <= 110


async def test_noise_is_logged_at_first_and_then_rarely(caplog: pytest.LogCaptureFixture) -> None:
    async with conversation() as (connection, peer, _):
        for _ in range(2000):
            peer.write(b"noise \x1b[31mred\n")
        await eventually(lambda: connection.noise.count == 2000)
        told = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
        assert len(told) == 12
        assert told[0].startswith("peer#1 ! not a message (1 so far")
        assert not any("\x1b" in line for line in told)


async def test_rubbish_of_any_kind_ends_no_conversation() -> None:
    rubbish = [
        b"\n",
        b"\x00\xff\xfe\n",
        b"{\n",
        b"[]\n",
        b"[1,2]\n",
        b"null\n",
        b"42\n",
        b'"text"\n',
        b"{}\n",
        b'{"jsonrpc":"2.0"}\n',
        b'{"jsonrpc":"2.0","id":null,"result":{}}\n',
        b'{"jsonrpc":"2.0","id":{"a":1},"result":{}}\n',
        b'{"jsonrpc":"2.0","method":17}\n',
        b'{"jsonrpc":"2.0","id":"x","result":{}}\n',
        b"[" * 5000 + b"\n",
        b'{"a":' * 5000 + b"\n",
    ]
    async with conversation() as (connection, peer, _):
        for line in rubbish:
            peer.write(line)
        async with anyio.create_task_group() as group:
            outcomes = Outcomes()
            group.start_soon(outcomes.keep, "call", connection.request("tools/list", None, 5))
            (request,) = await peer.get("tools/list")
            peer.answer(request, fine=True)
        assert outcomes.of == {"call": {"fine": True}}
        assert not connection.over


# -- frames over the limit -----------------------------------------------------------------


async def test_a_frame_over_the_limit_fails_the_call_it_answers_and_no_other() -> None:
    async with conversation(limits=Limits(frame=1000)) as (connection, peer, _):
        async with anyio.create_task_group() as group:
            outcomes = Outcomes()
            for name in ("big", "small"):
                group.start_soon(outcomes.keep, name, connection.request(name, None, 5))
            (big,) = await peer.get("big")
            (small,) = await peer.get("small")
            peer.answer(big, text="x" * 2000)
            peer.answer(small, text="y")
        problem = outcomes.of["big"]
        assert type(problem) is RemoteProtocolError
        assert "the server sent a message of 2.1 kB; the limit is 1.0 kB (Limits.frame)" in str(
            problem
        )
        assert outcomes.of["small"] == {"text": "y"}
        assert connection.counts.oversize == 1


async def test_a_frame_over_the_limit_without_an_id_fails_the_only_call_there_is() -> None:
    async with conversation(limits=Limits(frame=1000)) as (connection, peer, _):
        async with anyio.create_task_group() as group:
            outcomes = Outcomes()
            group.start_soon(outcomes.keep, "call", connection.request("tools/list", None, 5))
            await peer.get("tools/list")
            peer.write(b'{"x":"' + b"x" * 2000 + b'"}\n')
        assert type(outcomes.of["call"]) is RemoteProtocolError
        assert "Limits.frame" in str(outcomes.of["call"])


async def test_a_notification_over_the_limit_fails_no_call() -> None:
    async with conversation(limits=Limits(frame=1000)) as (connection, peer, ears):
        async with anyio.create_task_group() as group:
            outcomes = Outcomes()
            group.start_soon(outcomes.keep, "call", connection.request("tools/list", None, 5))
            (request,) = await peer.get("tools/list")
            peer.say(method="notifications/message", params={"data": "x" * 2000})
            await peer.quiet()
            assert outcomes.of == {}
            peer.answer(request, x=1)
        assert outcomes.of == {"call": {"x": 1}}
        assert ears.notices == []
        assert connection.counts.oversize == 1


# -- the outer edge ------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["notifications/x", "roots/list"])
async def test_an_owner_that_raises_costs_a_line_and_not_the_conversation(
    method: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with conversation() as (connection, peer, ears):

        def fault(*facts: object) -> bool:
            raise RuntimeError("a fault of the owner")

        ears.noticed = ears.asked = fault  # type: ignore[assignment,method-assign]
        peer.say(method=method, **({"id": 1} if method == "roots/list" else {}))
        async with anyio.create_task_group() as group:
            outcomes = Outcomes()
            group.start_soon(outcomes.keep, "call", connection.request("tools/list", None, 5))
            (request,) = await peer.get("tools/list")
            peer.answer(request, fine=True)
        assert outcomes.of == {"call": {"fine": True}}
        assert "peer#1 ! a line could not be handled" in [r.getMessage() for r in caplog.records]
