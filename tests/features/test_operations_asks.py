"""What tasks of the extension ask, and how it is answered: each question once."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from mcpclient import InputRefused, Manager, Server, Timeouts
from mcpclient.features.asks import Refuse
from tests.conftest import eventually
from tests.features.helpers import journal, refusal, result
from tests.features.taskers import ON, People, count, odd_tasker, tasker, told, until_asked


async def updates(server: Server) -> list[dict[str, Any]]:
    """Return the answers that a server was given, in order."""
    return [one["params"]["inputResponses"] for one in await journal(server, "tasks/update")]


async def test_each_question_is_asked_once_and_answered_once_however_often_it_shows() -> None:
    people = People()
    async with tasker("stateless", "--lag", 4, on_elicit=people) as server:
        assert (await server.invoke_tool("ask")).text == "Ada likes tea"
        assert people.asked == ["Who are you?", "What do you like, Ada?"]
        # Answered by updates; the call itself is made once (TSK-11, TSK-13, TSK-15).
        assert await updates(server) == [
            {"name": {"action": "accept", "content": {"name": "Ada"}}},
            {"likes": {"action": "accept", "content": {"likes": "tea"}}},
        ]
        calls = [one["params"]["name"] for one in await journal(server, "tools/call")]
        assert calls.count("ask") == 1
        assert await count(server, "tasks/get") >= 8


async def test_a_person_who_is_asked_before_the_task_takes_none_of_its_time() -> None:
    people = People()
    people.hold = anyio.Event()
    async with (
        tasker("stateless", on_elicit=people) as server,
        anyio.create_task_group() as group,
    ):

        async def invoke() -> None:
            assert (await server.invoke_tool("rounds", timeout=1.0)).text == "Ada"

        group.start_soon(invoke)
        await eventually(lambda: people.asked)
        await anyio.sleep(1.3)  # longer than the call may take
        people.hold.set()


async def test_a_model_can_be_asked_as_well() -> None:
    def sample(server: Server, params: dict[str, Any]) -> dict[str, Any]:
        assert params["maxTokens"] == 10
        return {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hi"}}

    async with tasker("stateless", on_sample=sample) as server:
        assert (await server.invoke_tool("sample")).text == "it said hi"


async def test_a_refusal_ends_the_call_and_cancels_the_task() -> None:
    def sample(server: Server, params: dict[str, Any]) -> dict[str, Any]:
        raise Refuse("not today")

    async with tasker("stateless", on_sample=sample) as server:
        with pytest.raises(InputRefused) as caught:
            await server.invoke_tool("sample")
        assert caught.value.reason == "not today"
        assert (caught.value.method, caught.value.server) == ("tools/call", "s")
        await until_asked(server, "tasks/cancel")
        assert await count(server, "tasks/update") == 0


async def test_a_person_who_declines_is_an_answer() -> None:
    async with tasker("stateless", on_elicit=lambda *_: {"action": "decline"}) as server:
        assert (await server.invoke_tool("ask")).text == "nobody likes nothing"


async def test_a_handler_that_fails_refuses() -> None:
    def elicit(server: Server, params: dict[str, Any]) -> dict[str, Any]:
        raise ZeroDivisionError("oops")

    async with tasker("stateless", on_elicit=elicit) as server:
        started = await server.start_tool("ask")
        with pytest.raises(InputRefused, match="the handler raised ZeroDivisionError") as caught:
            await started.result()
        assert caught.value.asks == ("elicitation/create",)
        assert await count(server, "tasks/cancel") == 0, "whoever waits decides"


async def test_an_answer_that_takes_too_long_is_none() -> None:
    timeouts = Timeouts(eof=1.0, term=0.5, ask=0.1)

    async def elicit(server: Server, params: dict[str, Any]) -> dict[str, Any]:
        await anyio.sleep_forever()
        raise AssertionError

    async with tasker("stateless", on_elicit=elicit, timeouts=timeouts) as server:
        with pytest.raises(InputRefused, match=r"nobody answered in time \(Timeouts.ask\)"):
            await server.invoke_tool("ask")


async def test_several_questions_at_once_get_one_update() -> None:
    def question(name: str) -> dict[str, Any]:
        schema = {"type": "object", "properties": {name: {"type": "string"}}}
        return {
            "method": "elicitation/create",
            "params": {"message": name, "requestedSchema": schema},
        }

    both = {"a": question("name"), "b": question("likes")}
    one = odd_tasker(
        told("input_required", inputRequests=both),
        told("input_required", inputRequests={"b": question("likes")}),
        told("completed", result={"content": []}),
        tasks_update=[result()],
    )
    people = People()
    async with Manager({"p": one}, on_elicit=people, extensions=ON) as manager:
        await manager["p"].invoke_tool("sin")
        assert [sorted(one) for one in await updates(manager["p"])] == [["a", "b"]]
        assert people.asked == ["name", "likes"]


async def test_an_answer_that_did_not_arrive_is_sent_again_without_asking_again() -> None:
    asks = told(
        "input_required",
        inputRequests={"a": {"method": "roots/list"}},
    )
    one = odd_tasker(
        asks,
        asks,
        told("completed", result={"content": []}),
        tasks_update=[refusal(-32603, "busy"), result()],
    )
    asked: list[Server] = []

    def roots(server: Server) -> list[str]:
        asked.append(server)
        return ["file:///w"]

    async with Manager({"p": one}, roots=roots, extensions=ON) as manager:
        await manager["p"].invoke_tool("sin")
        wanted = {"a": {"roots": [{"uri": "file:///w"}]}}
        assert await updates(manager["p"]) == [wanted, wanted]
        assert len(asked) == 1


@pytest.mark.parametrize(
    "request_",
    [{"method": "elicitation/create"}, {"method": "x/y"}, {"method": ["x"]}, {}],
)
async def test_what_nothing_here_answers_is_refused(request_: dict[str, Any]) -> None:
    one = odd_tasker(told("input_required", inputRequests={"a": request_}), tasks_cancel=[result()])
    async with Manager({"p": one}, roots=["/tmp"], extensions=ON) as manager:
        with pytest.raises(InputRefused):
            await manager["p"].invoke_tool("sin")
        await until_asked(manager["p"], "tasks/cancel")
        assert await updates(manager["p"]) == []
