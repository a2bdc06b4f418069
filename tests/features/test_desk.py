"""Requests of a server in the handshake era: answered beside all else, once, or refused."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from mcpclient import CallTimedOut, Limits, Manager, Refuse, Server
from tests.cases import inline
from tests.conftest import eventually
from tests.features.askers import SAID, SAMPLE, Model, ask, asking, call, hasty, sample, told

# -- ids -----------------------------------------------------------------------------------

IDS: list[Any] = [0, -3, 1, 2**70, "1", "", "ü\u2028\x1b", "x" * 10_000]
FRACTION = pytest.param(1.5, marks=pytest.mark.odd_frames("the server's id is a fraction"))


@pytest.mark.parametrize("id", [*IDS, FRACTION], ids=lambda id: repr(id)[:20])
async def test_an_answer_has_the_id_of_the_question_as_it_came(id: Any) -> None:
    async with asking(sample) as server:
        reply = await ask(server, id=id)
        assert reply == {"jsonrpc": "2.0", "id": id, "result": SAID}
        assert type(reply["id"]) is type(id)


async def test_of_two_questions_under_one_id_the_first_is_answered_and_the_second_refused() -> None:
    async with asking(sample) as server:
        for _ in range(2):  # and then the id is free again
            second, first = await told(server, "ask_twice", method=SAMPLE)
            assert second["error"] == {
                "code": -32603,
                "message": "a request with this id is being answered",
            }
            assert first["result"] == SAID
            assert first["id"] == second["id"] == "twice"


async def test_one_and_true_and_the_text_one_are_different_ids() -> None:
    model = Model()
    async with asking(model) as server, anyio.create_task_group() as group:
        answered = await call(group, server, "ask", method=SAMPLE, id=1)
        await eventually(lambda: len(model.asked) == 1)
        for other in (True, "1", [1], {"id": 1}, None, "ask-1"):
            await server.invoke_tool("take_back", {"id": other})
        assert model.stopped == 0
        model.answer.set()
        await eventually(lambda: answered)
        assert json.loads(answered[0].text)[0]["result"] == SAID


# -- beside everything else ----------------------------------------------------------------


async def test_other_calls_go_on_while_somebody_is_asked() -> None:
    model = Model()
    async with asking(model) as server, anyio.create_task_group() as group:
        waiting = await call(group, server, "ask", method=SAMPLE, params={"messages": [1]})
        await eventually(lambda: model.asked == [{"messages": [1]}])
        assert await told(server, "replies") == []
        assert (await ask(server, "ping"))["result"] == {}
        assert (await server.read_resource("test://a")).text == "1"
        assert waiting == []
        model.answer.set()
    assert json.loads(waiting[0].text)[0]["result"] == SAID


async def test_a_handler_may_call_the_server_whose_answer_asks_again() -> None:
    deep: list[int] = []

    async def deeper(server: Server, params: Any) -> Any:
        deep.append(len(deep))
        if len(deep) < 4:
            assert (await ask(server))["result"] == SAID
        return SAID

    async with asking(deeper) as server:
        assert (await ask(server))["result"] == SAID
    assert deep == [0, 1, 2, 3]


async def test_so_many_questions_are_answered_at_once_and_no_more() -> None:
    model = Model()
    async with (
        asking(model, limits=Limits(asks=3)) as server,
        anyio.create_task_group() as group,
    ):
        waiting = await call(group, server, "ask", method=SAMPLE, n=40)
        await eventually(lambda: len(model.asked) == 3)
        refused = [one["error"] for one in await told(server, "replies")]
        assert refused == [{"code": -32603, "message": "too many requests at once"}] * 37
        model.answer.set()
        await eventually(lambda: waiting)
        assert sum("result" in one for one in json.loads(waiting[0].text)) == 3
        assert (await ask(server))["result"] == SAID
        assert server.status().asks == 41


async def test_a_server_that_asks_but_never_reads_fills_no_memory() -> None:
    code = """if True:
        import _wire
        for message in _wire.messages():
            _wire.reply(message)
            if message["method"] == "notifications/initialized":
                break
        for number in range(20_000):
            _wire.send(_wire.request(number, "ping"))
        _wire.send(_wire.notification("test/done"))
        for line in _wire.lines():
            pass
    """
    done: list[Any] = []
    server_spec = inline(code, limits=Limits(outbox=5_000))
    async with Manager({"s": server_spec}) as manager:
        manager.on_notification("test/done", lambda server, params: done.append(params))
        await manager["s"].start()
        await eventually(lambda: done)
        status = manager["s"].status()
        # Some hundreds fit into the pipe and the limit; nobody reads the rest anyway.
        assert status.asks == 20_000
        assert 10_000 < status.ignored < 20_000


# -- what handlers do ----------------------------------------------------------------------


async def test_a_handler_that_raises_costs_its_question_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(server: Server, params: Any) -> Any:
        raise ZeroDivisionError("a secret of the host")

    async with asking(fail) as server:
        for _ in range(2):
            assert (await ask(server))["error"] == {
                "code": -32603,
                "message": "the client's handler failed",
            }
        assert server.generation == 1
    assert "s#1 ! the handler of sampling/createMessage raised" in caplog.text
    assert "ZeroDivisionError: a secret of the host" in caplog.text


async def test_a_handlers_refusal_is_told_in_its_words() -> None:
    async def refuse(server: Server, params: Any) -> Any:
        raise Refuse("not for you")

    async with asking(refuse) as server:
        assert (await ask(server))["error"] == {"code": -1, "message": "not for you"}


async def test_a_handler_that_takes_too_long_is_stopped_and_the_server_hears_of_it() -> None:
    model = Model()
    async with asking(model, timeouts=hasty(ask=0.05)) as server:
        assert (await ask(server))["error"] == {
            "code": -32603,
            "message": "the client did not answer in time",
        }
        assert model.stopped == 1


RUBBISH: list[Any] = [None, 5, "hi", ["a"], object(), {"role": "x"}, {**SAID, "more": float("nan")}]


@pytest.mark.parametrize("rubbish", RUBBISH, ids=lambda one: repr(one)[:20])
async def test_what_a_handler_must_not_return_is_never_sent(rubbish: Any) -> None:
    async with asking(lambda server, params: rubbish) as server:
        reply = await ask(server)
        assert set(reply) == {"jsonrpc", "id", "error"}
        assert reply["error"]["code"] == -32603
        assert (await ask(server, "ping"))["result"] == {}


@pytest.mark.parametrize("params", [None, [1], "text", 5, {}], ids=repr)
async def test_a_handler_gets_a_mapping_whatever_the_server_sent(params: Any) -> None:
    asked: list[Any] = []

    def keep(server: Server, params: Any) -> Any:
        asked.append(params)
        return SAID

    async with asking(keep) as server:
        assert (await ask(server, params=params))["result"] == SAID
    assert asked == [{}]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_handler_that_is_cancelled_by_others_leaves_no_server_waiting() -> None:
    import asyncio

    async def give_up(server: Server, params: Any) -> Any:
        raise asyncio.CancelledError  # as one gets that awaits a task which was cancelled

    async with asking(give_up) as server:
        for _ in range(2):
            assert (await ask(server))["error"] == {
                "code": -32603,
                "message": "the client's handler was cancelled",
            }


# -- what the server takes back ------------------------------------------------------------


async def test_what_is_taken_back_is_stopped_and_not_answered() -> None:
    model = Model()
    async with asking(model) as server, anyio.create_task_group() as group:
        waiting = await call(group, server, "ask", method=SAMPLE, id=7)
        await eventually(lambda: len(model.asked) == 1)
        await server.invoke_tool("take_back", {"id": 7})
        await eventually(lambda: model.stopped == 1)
        await server.invoke_tool("take_back", {"id": 7})  # nothing is left to take back
        assert (await ask(server, "ping"))["result"] == {}
        assert [one["id"] for one in await told(server, "replies")] == ["ask-2"]
        group.cancel_scope.cancel()
    assert waiting == []


@pytest.mark.parametrize("answers", ["at once", "later"])
async def test_what_is_taken_back_at_once_leaves_nothing_behind(answers: str) -> None:
    model = Model()
    async with asking(
        sample if answers == "at once" else model, limits=Limits(asks=1), timeouts=hasty()
    ) as server:
        # More often than there are places for questions.
        for _ in range(3):
            await server.invoke_tool("withdraw", {"method": SAMPLE})
        assert await told(server, "replies") == []
        model.answer.set()
        assert (await ask(server))["result"] == SAID
        # Nor does it hold up any call's time-out for ever.
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("ask_and_exit", {"method": "ping"}, timeout=0.05)
