"""Rounds and who answers them: faults of handlers, time, cancellation, death, reads and prompts."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallTimedOut,
    InputRefused,
    LocalProtocolError,
    Manager,
    Refuse,
    Server,
    ServerDied,
    Timeouts,
)
from mcpclient.ground.exits import Exit
from tests.conftest import eventually, spec
from tests.features.helpers import puppet
from tests.features.rounds import ADA, ASK, ELICIT, SAID, SAMPLE, asking, rounds, sample, step, told

# -- handlers ------------------------------------------------------------------------------


async def test_a_handler_that_refuses_ends_the_call_in_its_words() -> None:
    def refuse(server: Server, params: Any) -> Any:
        raise Refuse("not for you")

    async with asking(refuse) as server:
        with pytest.raises(InputRefused) as caught:
            await rounds(server, step({"a": ASK}))
        assert caught.value.reason == "not for you"
        assert str(caught.value) == (
            'tools/call on "s": the server asks for sampling/createMessage; not for you'
        )


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_person_who_declines_is_told_of_and_the_call_goes_on(action: str) -> None:
    async with asking(on_elicit=lambda server, params: {"action": action}) as server:
        assert (await server.read_resource("test://asking/a")).text == json.dumps(
            {"action": action}
        )


async def test_a_handler_that_raises_ends_the_call_and_says_what_it_raised() -> None:
    def fail(server: Server, params: Any) -> Any:
        raise ZeroDivisionError("a secret of the host")

    async with asking(fail) as server:
        with pytest.raises(InputRefused, match="the handler raised ZeroDivisionError") as caught:
            await rounds(server, step({"a": ASK}))
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
        assert "secret" not in str(caught.value)


async def test_an_error_of_another_server_is_no_error_of_this_one() -> None:
    async def elsewhere(server: Server, params: Any) -> Any:
        raise ServerDied(Exit(code=1), method="x", server="other")

    async with asking(elsewhere, resend="safe") as server:
        with pytest.raises(InputRefused, match="the handler raised ServerDied"):
            await rounds(server, step({"a": ASK}))
        calls = [m for m in await told(server, "journal") if m["method"] == "tools/call"]
        assert len(calls) == 1 + 1  # nor is the call made once more


async def test_a_handler_that_takes_too_long_is_stopped_and_ends_the_call() -> None:
    stopped: list[bool] = []

    async def wait(server: Server, params: Any) -> Any:
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(True)

    async with asking(wait, timeouts=Timeouts(eof=1, term=0.5, ask=0.05)) as server:
        with anyio.fail_after(10), pytest.raises(InputRefused, match="nobody answered in time"):
            await rounds(server, step({"a": ASK, "b": ASK}))
    assert stopped == [True]


@pytest.mark.parametrize(
    "rubbish", [None, 5, object(), {"role": "x"}, {**SAID, "x": {1, object()}}]
)
async def test_what_a_handler_must_not_return_ends_the_call(rubbish: Any) -> None:
    async with asking(lambda server, params: rubbish) as server:
        with pytest.raises(InputRefused):
            await rounds(server, step({"a": ASK}))
        assert await rounds(server, step(requestState="s"), key="2") == [{}, {"requestState": "s"}]


async def test_an_answer_that_is_no_json_is_not_sent() -> None:
    async with asking(lambda server, params: {**SAID, "x": float("nan")}) as server:
        with pytest.raises(LocalProtocolError, match="NaN"):
            await rounds(server, step({"a": ASK}))


async def test_a_handler_may_call_the_server_that_waits_for_it() -> None:
    deep: list[int] = []

    async def deeper(server: Server, params: Any) -> Any:
        deep.append(len(deep))
        if len(deep) < 4:
            await told(server, "ask", **ASK)
        return SAID

    async with asking(deeper) as server:
        assert await told(server, "ask", **ASK) == SAID
    assert deep == [0, 1, 2, 3]


# -- time, cancellation, death -------------------------------------------------------------


class Person:
    """Somebody who answers when told to."""

    def __init__(self) -> None:
        self.asked = 0
        self.stopped = 0
        self.answer = anyio.Event()

    async def __call__(self, server: Server, params: Any) -> Any:
        self.asked += 1
        try:
            await self.answer.wait()
        except BaseException:
            self.stopped += 1
            raise
        return {"action": "accept", "content": {"name": "Ada"}}


async def test_waiting_for_a_person_is_no_part_of_the_calls_time() -> None:
    person = Person()
    found: list[Any] = []
    async with asking(on_elicit=person) as server, anyio.create_task_group() as group:
        await server.start()

        async def get() -> None:
            found.append((await server.get_prompt("asking", timeout=1.0)).text)

        group.start_soon(get)
        await eventually(lambda: person.asked)
        await anyio.sleep(1.3)
        assert found == []
        assert server.status().in_flight == 0  # the request that asks has ended
        person.answer.set()
    assert json.loads(found[0]) == ADA


async def test_a_call_that_is_cancelled_while_a_person_is_asked_stops_asking() -> None:
    person = Person()
    async with asking(on_elicit=person) as server, anyio.create_task_group() as group:
        group.start_soon(server.get_prompt, "asking")
        await eventually(lambda: person.asked)
        group.cancel_scope.cancel()
    assert person.stopped == 1
    async with asking() as server:
        assert json.loads((await server.get_prompt("asking")).text) == ADA


async def test_a_round_that_is_answered_while_the_server_restarts_goes_to_its_next_life() -> None:
    person = Person()
    found: list[Any] = []
    async with asking(on_elicit=person) as server, anyio.create_task_group() as group:

        async def get() -> None:
            found.append((await server.get_prompt("asking")).text)

        group.start_soon(get)
        await eventually(lambda: person.asked)
        await server.restart()
        person.answer.set()
    assert json.loads(found[0]) == ADA
    assert server.generation == 2


async def test_a_server_that_dies_of_the_answer_ends_the_call() -> None:
    async with asking() as server:
        with pytest.raises(ServerDied) as caught:
            await server.invoke_tool("exit_after", {"code": 3})
        assert (caught.value.exit.code, caught.value.maybe_done) == (3, True)
        assert await told(server, "ask", **ASK) == SAID


async def test_each_round_has_the_time_out_of_the_call() -> None:
    script = {"tools/call": [{"result": step({"a": ASK})}]}
    async with Manager({"s": puppet(script, era="stateless")}, on_sample=sample) as manager:
        server = manager["s"]
        await server.start()

        async def silence(server: Server, params: Any) -> Any:
            await server.notify("puppet/hold", {"method": "tools/call"})
            return SAID

        manager._asks._handlers[SAMPLE] = silence
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("sin", timeout=0.1)


# -- reads and prompts ---------------------------------------------------------------------


async def test_reads_that_overlap_each_ask_for_their_own_and_nothing_is_kept() -> None:
    names = iter(["Ada", "Bob", "Cy"])

    async def elicit(server: Server, params: Any) -> Any:
        await anyio.lowlevel.checkpoint()
        return {"action": "accept", "content": {"name": next(names), "size": 1}}

    servers = {"s": spec("asks_stateless_rounds")}
    texts: list[str] = []
    async with Manager(servers, on_elicit=elicit) as manager:
        server = manager["s"]

        async def read() -> None:
            text = (await server.read_resource("test://asking/a")).text
            texts.append(json.loads(text)["content"]["name"])

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            group.start_soon(read)
        await read()  # a minute was allowed, but not for what a person had a part in (MRTR-15)
        asked = [
            m["params"] for m in await told(server, "journal") if m["method"] == "resources/read"
        ]
        stats = manager.cache.stats()
    assert sorted(texts) == ["Ada", "Bob", "Cy"]
    # The first request was shared; it did not say whose answer it wanted.
    assert [sorted(one) for one in asked] == [
        ["_meta", "uri"],
        *[["_meta", "inputResponses", "requestState", "uri"]] * 2,
        ["_meta", "uri"],
        ["_meta", "inputResponses", "requestState", "uri"],
    ]
    assert {one.get("requestState") for one in asked} == {None, "state of test://asking/a"}
    assert (stats.entries, stats.hits, stats.joins) == (0, 0, 1)


@pytest.mark.parametrize("use", ["use", "refresh", "bypass"])
async def test_a_read_is_answered_however_the_cache_is_used(use: str) -> None:
    async with asking() as server:
        assert json.loads((await server.read_resource("test://asking/a", cache=use)).text) == ADA


async def test_a_read_that_nobody_answers_is_refused_to_each_reader_by_itself() -> None:
    problems: list[InputRefused] = []
    async with Manager({"s": spec("asks_stateless_rounds")}) as manager:

        async def read() -> None:
            with pytest.raises(InputRefused) as caught:
                await manager["s"].read_resource("test://asking/a")
            problems.append(caught.value)

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            group.start_soon(read)
    assert [one.asks for one in problems] == [(ELICIT,)] * 2
    assert problems[0] is not problems[1]
