"""Requests of a server that dies, stops or never opens; the time that they take; and roots."""

from __future__ import annotations

import json
import logging
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallCancelled,
    CallTimedOut,
    Limits,
    Manager,
    RestartPolicy,
    RestartsExhausted,
    Server,
    ServerDied,
)
from tests.cases import inline
from tests.conftest import eventually, spec
from tests.features.askers import SAID, SAMPLE, Model, ask, asking, call, hasty, sample, told

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


async def test_a_server_that_waits_for_an_answer_is_not_idle() -> None:
    code = """if True:
        import _wire
        for message in _wire.messages():
            _wire.reply(message)
            if message.get("method") == "notifications/initialized":
                _wire.send(_wire.request(1, "sampling/createMessage"))
            elif message.get("id") == 1 and "result" in message:
                _wire.send(_wire.notification("test/answered"))
    """
    model = Model()
    answered: list[Any] = []
    async with Manager({"s": inline(code, idle_stop=0.1)}, on_sample=model) as manager:
        manager.on_notification("test/answered", lambda server, params: answered.append(params))
        server = manager["s"]
        await server.start()
        await eventually(lambda: model.asked)
        await anyio.sleep(0.3)
        assert (server.state, model.stopped) == ("up", 0)
        model.answer.set()
        await eventually(lambda: answered)
        await eventually(lambda: server.state == "idle")  # and now it is


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
            texts.append((await server.read_resource("test://asking", timeout=1.0)).text)

        for _ in range(2):
            group.start_soon(read)
        await eventually(lambda: person.asked)
        await anyio.sleep(1.3)  # more than the read has, and more than one look at the clock
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


async def test_roots_that_cannot_be_told_are_a_failure_of_ours() -> None:
    async with asking(None, roots=lambda server: ["https://example.com/"]) as server:
        assert (await ask(server, "roots/list"))["error"] == {
            "code": -32603,
            "message": "the client's handler failed",
        }


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
