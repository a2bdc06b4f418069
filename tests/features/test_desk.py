"""Requests of a server in the handshake era: answered beside all else, once, or refused."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    CallTimedOut,
    Limits,
    Manager,
    Refuse,
    RestartPolicy,
    RestartsExhausted,
    Server,
    ServerDied,
    Timeouts,
)
from tests.cases import inline
from tests.conftest import eventually, spec

SAMPLE, ELICIT = "sampling/createMessage", "elicitation/create"
SAID = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}


class Model:
    """A model that answers when it is told to, and tells who asked and who gave up."""

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.stopped = 0
        self.answer = anyio.Event()

    async def __call__(self, server: Server, params: Any) -> Any:
        self.asked.append(params)
        try:
            await self.answer.wait()
        except BaseException:
            self.stopped += 1
            raise
        return SAID


@asynccontextmanager
async def asking(
    on_sample: Callable[..., Any] | None = None, *args: str, **options: Any
) -> AsyncIterator[Server]:
    """Open a manager of one server that asks; ``on_elicit`` and ``roots`` are the manager's."""
    mine = {name: options.pop(name) for name in ("on_elicit", "roots") if name in options}
    servers = {"s": spec("asks_handshake", *args, **options)}
    async with Manager(servers, on_sample=on_sample, **mine) as manager:
        yield manager["s"]


def hasty(**times: float) -> Timeouts:
    return Timeouts(eof=1.0, term=0.5, **times)


async def told(server: Server, tool: str, **arguments: Any) -> Any:
    """Return what a tool of the server tells, read from JSON."""
    return json.loads((await server.invoke_tool(tool, arguments)).text)


async def ask(server: Server, method: str = SAMPLE, **arguments: Any) -> dict[str, Any]:
    """Let the server ask once, and return the client's whole reply."""
    [reply] = await told(server, "ask", method=method, **arguments)
    assert isinstance(reply, dict)
    return reply


async def call(group: Any, server: Server, tool: str, **arguments: Any) -> list[Any]:
    """Begin a call that may take long; what comes of it stands in the list."""
    found: list[Any] = []

    async def run() -> None:
        try:
            found.append(await server.invoke_tool(tool, arguments))
        except Exception as problem:
            found.append(problem)

    group.start_soon(run)
    return found


def sample(server: Server, params: Any) -> Any:
    return SAID


# -- ids -----------------------------------------------------------------------------------

IDS: list[Any] = [0, -3, 1, 2**70, "1", "", "ü\u2028\x1b", "x" * 10_000, 1.5]


@pytest.mark.parametrize("id", IDS, ids=lambda id: repr(id)[:20])
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


# -- the end of the server -----------------------------------------------------------------


async def test_a_server_that_dies_while_somebody_is_asked_ends_the_question_too() -> None:
    model = Model()
    async with (
        asking(model, limits=Limits(asks=1)) as server,
        anyio.create_task_group() as group,
    ):
        waiting = await call(group, server, "ask_and_exit", method=SAMPLE, code=5)
        await eventually(lambda: len(model.asked) == 1)
        await server.notify("test/gone")
        await eventually(lambda: waiting)
        assert isinstance(waiting[0], ServerDied)
        assert waiting[0].exit.code == 5
        await eventually(lambda: model.stopped == 1)
        # Its place is free for the next life, though the id may be the same.
        model.answer.set()
        reply = await ask(server)
        assert (reply["id"], reply["result"]) == ("ask-1", SAID)
        assert server.generation == 2


async def test_an_answer_for_an_earlier_life_is_not_given_to_the_next() -> None:
    late = anyio.Event()
    asked: list[int] = []

    async def stubborn(server: Server, params: Any) -> Any:
        asked.append(server.generation)
        if len(asked) == 1:
            with anyio.CancelScope(shield=True):
                await late.wait()
        return SAID

    async with asking(stubborn) as server, anyio.create_task_group() as group:
        waiting = await call(group, server, "ask_and_exit", method=SAMPLE)
        await eventually(lambda: asked)
        await server.notify("test/gone")
        await eventually(lambda: waiting)
        assert (await ask(server, id="other"))["result"] == SAID
        late.set()
        assert (await ask(server, "ping"))["result"] == {}
        assert [one["id"] for one in await told(server, "replies")] == ["other", "ask-2"]
    assert asked == [1, 2]


@pytest.mark.parametrize("end", ["stop", "remove", "restart"])
async def test_a_stop_ends_the_question_and_the_call_that_waits_for_it(end: str) -> None:
    model = Model()
    servers = {"s": spec("asks_handshake")}
    async with Manager(servers, on_sample=model) as manager, anyio.create_task_group() as group:
        server = manager["s"]
        waiting = await call(group, server, "ask", method=SAMPLE)
        await eventually(lambda: len(model.asked) == 1)
        await (manager.remove("s") if end == "remove" else getattr(server, end)())
        await eventually(lambda: waiting and model.stopped)
        assert isinstance(waiting[0], CallCancelled)
    assert model.stopped == 1


async def test_closing_the_manager_ends_the_question() -> None:
    model = Model()
    waiting: list[Any] = []
    async with anyio.create_task_group() as group:
        async with asking(model) as server:
            waiting = await call(group, server, "ask", method=SAMPLE)
            await eventually(lambda: len(model.asked) == 1)
        await eventually(lambda: waiting and model.stopped)
    assert isinstance(waiting[0], CallCancelled)


# -- before it is up -----------------------------------------------------------------------


async def test_a_server_may_ask_before_it_opens() -> None:
    def elicit(server: Server, params: Any) -> Any:
        assert server.state == "opening"
        return {"action": "accept", "content": {"name": "Ada"}}

    async with asking(None, "early", on_elicit=elicit) as server:
        [reply] = await told(server, "replies")
        assert reply["result"] == {"action": "accept", "content": {"name": "Ada", "size": 3}}


async def test_nobody_is_asked_for_a_server_that_did_not_open() -> None:
    model = Model()
    async with asking(
        None,
        "early",
        on_elicit=model,
        timeouts=hasty(open=0.3),
        restart=RestartPolicy(when="never"),
    ) as server:
        with pytest.raises(RestartsExhausted):
            await server.start()
        assert len(model.asked) == 1
        await eventually(lambda: model.stopped == 1)


# -- time ----------------------------------------------------------------------------------


async def test_a_read_does_not_time_out_while_a_person_is_asked() -> None:
    person = Model()
    texts: list[str] = []
    async with (
        asking(None, on_elicit=person) as server,
        anyio.create_task_group() as group,
    ):
        await server.start()

        async def read() -> None:
            texts.append((await server.read_resource("test://asking", timeout=0.05)).text)

        for _ in range(2):
            group.start_soon(read)
        await eventually(lambda: person.asked)
        await anyio.sleep(0.3)  # more than the read has, and more than one look at the clock
        assert texts == []
        person.answer.set()
    # What the person said is no elicitation's answer, so it is not sent; but it was waited for.
    assert [json.loads(text)["error"]["code"] for text in texts] == [-32603] * 2
    assert len(person.asked) == 1  # the two shared one request


async def test_after_the_answer_the_time_of_a_call_goes_on() -> None:
    person = Model()
    async with asking(person) as server, anyio.create_task_group() as group:
        await server.start()
        problems: list[Any] = []

        async def wait() -> None:
            try:
                await server.invoke_tool("ask_and_exit", {"method": SAMPLE}, timeout=0.1)
            except CallTimedOut as problem:
                problems.append(problem)

        group.start_soon(wait)
        await eventually(lambda: person.asked)
        await anyio.sleep(0.25)
        assert problems == []
        person.answer.set()
        await eventually(lambda: problems)
        assert problems[0].maybe_done


# -- roots ---------------------------------------------------------------------------------


async def test_servers_that_were_offered_roots_are_told_of_a_change() -> None:
    roots = ["file:///one"]
    servers = {"asks": spec("asks_handshake"), "stateless": spec("good_stateless")}
    async with Manager(servers, roots=lambda server: roots) as manager:
        manager.roots_changed()  # nobody is up, and nobody is started for it
        assert [server.state for server in map(manager.__getitem__, manager)] == ["idle", "idle"]
        server, other = manager["asks"], manager["stateless"]
        await other.start()
        assert (await ask(server, "roots/list"))["result"] == {"roots": [{"uri": "file:///one"}]}
        roots = ["file:///two"]
        manager.roots_changed()
        assert (await ask(server, "roots/list"))["result"] == {"roots": [{"uri": "file:///two"}]}
        changed = "notifications/roots/list_changed"
        assert [m for m in await told(server, "journal") if m.get("method") == changed] == [
            {"jsonrpc": "2.0", "method": changed}
        ]
        assert changed not in [m.get("method") for m in await told(other, "journal")]


async def test_who_was_offered_no_roots_is_told_of_no_change() -> None:
    async with Manager({"s": spec("asks_handshake")}, on_sample=sample) as manager:
        server = manager["s"]
        await server.start()
        manager.roots_changed()
        methods = [message.get("method") for message in await told(server, "journal")]
        assert "notifications/roots/list_changed" not in methods


async def test_a_line_that_tells_of_what_is_taken_back_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="mcpclient")
    async with asking(sample) as server:
        await server.invoke_tool("take_back", {"id": "no such\x1b[2J"})
        await server.invoke_tool("take_back", {"id": [1]})
    lines = [record.getMessage() for record in caplog.records]
    assert "s#1 < notifications/cancelled no such\\x1b[2J" in lines
    assert "s#1 < notifications/cancelled what has no such id" in lines
