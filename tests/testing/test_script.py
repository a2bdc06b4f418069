"""A scripted server does what was said, in memory and as a process, and tells what else came."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallTimedOut,
    ConfigError,
    Exit,
    Manager,
    OpeningFailed,
    RemoteProtocolError,
    ReplyError,
    ServerDied,
    ServerSpec,
    Timeouts,
    ToolError,
)
from mcpclient.testing import PlayFault, Script, connect, in_memory
from tests.conftest import QUICK, eventually

Serve = Callable[..., ServerSpec]


@pytest.fixture(params=["memory", "process"])
def serve(request: pytest.FixtureRequest) -> Serve:
    """Serve a script in one of the two ways; it restarts quickly."""

    def made(script: Script, **options: Any) -> ServerSpec:
        options.setdefault("restart", QUICK)
        options.setdefault("timeouts", Timeouts(eof=5.0, term=1.0))
        return in_memory(script, **options) if way == "memory" else script.spec(**options)

    way = request.param
    return made


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


# -- answers -------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ["handshake", "stateless", "both"])
async def test_it_opens_lists_what_its_steps_name_and_answers_as_said(
    serve: Serve, era: str
) -> None:
    script = Script(era=era, name="shop", instructions="Be kind.")
    script.on("tools/call", name="add", arguments={"a": 1}).text("one")
    script.on("tools/call", name="add").answer({"content": [], "structuredContent": {"sum": 5}})
    script.on("tools/call", name="fail").text("no such file", is_error=True)
    script.on("resources/read", uri="a://b").contents("hello")
    script.on("prompts/get", name="greet").answer({"messages": []})
    async with connect(serve(script)) as server:
        assert server.era == ("handshake" if era == "handshake" else "stateless")
        assert server.info["name"] == "shop"
        assert server.instructions == "Be kind."
        assert [tool.name for tool in await server.list_tools()] == ["add", "fail"]
        assert [one.uri for one in await server.list_resources()] == ["a://b"]
        assert [one.name for one in await server.list_prompts()] == ["greet"]
        # The first that fits and has not happened yet: the one for a=1 waits for its own.
        assert (await server.invoke_tool("add", {"a": 2})).structured == {"sum": 5}
        assert (await server.invoke_tool("add", {"a": 1, "b": 2})).text == "one"
        with pytest.raises(ToolError) as raised:
            await server.invoke_tool("fail")
        assert raised.value.result.text == "no such file"
        assert (await server.read_resource("a://b")).text == "hello"
        assert (await server.get_prompt("greet")).messages == []
    script.check()
    assert script.lives == 1
    assert [one["params"]["name"] for one in script.received("tools/call")] == [
        "add",
        "add",
        "fail",
    ]


async def test_tools_resources_templates_and_prompts_can_be_listed_with_all_their_fields(
    serve: Serve,
) -> None:
    script = Script()
    script.tool("add", description="Adds.", inputSchema={"type": "object", "required": ["a"]})
    script.resource("a://b", mimeType="text/plain")
    script.template("a://{name}")
    script.prompt("greet", title="Greeting")
    async with connect(serve(script)) as server:
        (tool,) = await server.list_tools()
        assert (tool.description, tool.input_schema["required"]) == ("Adds.", ["a"])
        assert (await server.list_resources())[0].mime_type == "text/plain"
        assert (await server.list_resource_templates())[0].uri_template == "a://{name}"
        assert (await server.list_prompts())[0].title == "Greeting"
    script.check()


async def test_a_step_happens_once_or_so_often_or_always(serve: Serve) -> None:
    script = Script()
    script.on("tools/call", name="a").text("first")
    script.on("tools/call", name="a").times(2).text("then")
    script.on("tools/call", name="a").always().text("ever")
    async with connect(serve(script)) as server:
        found = [(await server.invoke_tool("a")).text for _ in range(5)]
    assert found == ["first", "then", "then", "ever", "ever"]
    script.check()


async def test_an_answer_may_be_a_function_in_memory_and_what_it_raises_is_told() -> None:
    script = Script()
    script.on("tools/call", name="echo").always().answer(
        lambda params: {"content": [{"type": "text", "text": params["arguments"]["text"]}]}
    )
    async with connect(script) as server:
        assert (await server.invoke_tool("echo", {"text": "hello"})).text == "hello"
        script.check()
        with pytest.raises(ReplyError, match="its answer failed: KeyError"):
            await server.invoke_tool("echo", {})
    with pytest.raises(PlayFault, match="its answer failed: KeyError"):
        script.check()


def test_a_function_cannot_go_to_another_process_and_the_error_says_what_to_do() -> None:
    script = Script()
    script.on("tools/call").answer(lambda params: {})
    with pytest.raises(ConfigError, match=r"step 1 .*serve it by in_memory\(script\)"):
        script.spec()


async def test_an_error_has_its_code_message_and_data(serve: Serve) -> None:
    script = Script()
    script.on("tools/call", name="a").error(-32042, "Not today", {"why": "rain"})
    async with connect(serve(script)) as server:
        with pytest.raises(ReplyError) as raised:
            await server.invoke_tool("a")
    assert (raised.value.code, raised.value.message) == (-32042, "Not today")
    assert raised.value.data == {"why": "rain"}


async def test_the_usual_answer_comes_after_what_is_scripted_before_it(serve: Serve) -> None:
    script = Script()
    script.tool("a")
    script.on("tools/list").stderr("listing\n")
    script.on("initialize").wait(0.01).answer()
    async with connect(serve(script)) as server:
        assert len(await server.list_tools()) == 1
        assert server.stderr_tail() == "listing\n"
    script.check()


# -- beside answers ------------------------------------------------------------------------


async def test_notifications_and_progress_come_before_the_answer(serve: Serve) -> None:
    script = Script()
    script.on("tools/call", name="a").log("info", "half").progress(1, 2, "one").text("done")
    told: list[Any] = []
    async with Manager({"s": serve(script)}) as manager:
        manager.on_notification(
            "notifications/message", lambda _, params: told.append(params["data"])
        )
        result = await manager["s"].invoke_tool("a", on_progress=lambda *what: told.append(what))
        assert result.text == "done"
        await eventually(lambda: len(told) == 2)
    assert "half" in told
    assert (1, 2, "one") in told


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_a_change_of_a_resource_reaches_who_follows_it(serve: Serve, era: str) -> None:
    script = Script(era=era)
    script.resource("a://b")
    script.on("tools/call", name="touch").notify(
        "notifications/resources/updated", uri="a://b"
    ).text("touched")
    async with connect(serve(script)) as server, server.subscribe("a://b") as updates:
        await server.invoke_tool("touch")
        with anyio.fail_after(20):
            async for _ in updates:
                break
    script.check()


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_it_asks_and_goes_on_with_the_answer(serve: Serve, era: str) -> None:
    script = Script(era=era)
    form = {"type": "object", "properties": {"size": {"type": "integer"}}}
    script.on("tools/call", name="a").ask(
        "elicitation/create",
        {"message": "How many?", "requestedSchema": form},
        expect={"action": "accept", "content": {"size": 3}},
    ).text("thanks")

    def asked(server: Any, params: Any) -> Any:
        assert params["message"] == "How many?"
        return {"action": "accept", "content": {"size": 3}}

    async with connect(serve(script), on_elicit=asked) as server:
        assert (await server.invoke_tool("a")).text == "thanks"
    script.check()
    assert script.answers == [{"action": "accept", "content": {"size": 3}}]


async def test_an_answer_that_was_not_expected_fails_the_check_with_the_line(
    serve: Serve,
) -> None:
    script = Script()
    script.on("tools/call", name="a").ask("roots/list", expect={"roots": []}).text("thanks")
    at = line() - 1
    async with connect(serve(script), roots=["/tmp"]) as server:
        assert (await server.invoke_tool("a")).text == "thanks"
    with pytest.raises(PlayFault) as raised:
        script.check()
    assert f"tests/testing/test_script.py:{at}): roots/list was answered" in str(raised.value)
    assert "not {'roots': []}" in str(raised.value)


# -- misbehaviour --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("die", "exit"),
    [
        pytest.param({"code": 7}, Exit(code=7), id="code"),
        pytest.param({"signal": 9}, Exit(signal=9), id="SIGKILL"),
        pytest.param({"signal": 15}, Exit(signal=15), id="SIGTERM"),
    ],
)
async def test_it_dies_as_said_and_its_second_life_is_another(
    serve: Serve, die: dict[str, int], exit: Exit
) -> None:
    script = Script()
    script.tool("a")
    script.life(1).on("tools/call", name="a").stderr("out of memory").die(**die)
    script.life(2).on("tools/call", name="a").text("better")
    async with connect(serve(script)) as server:
        with pytest.raises(ServerDied) as raised:
            await server.invoke_tool("a")
        assert raised.value.exit == exit
        assert raised.value.stderr_tail == "out of memory"
        assert (await server.invoke_tool("a", timeout=30)).text == "better"
        assert server.generation == 2
    script.check()
    assert script.lives == 2


async def test_half_of_an_answer_before_its_death_is_no_answer(serve: Serve) -> None:
    script = Script()
    script.on("tools/call", name="a").answer({"content": []}, cut=20).die(3)
    async with connect(serve(script)) as server:
        with pytest.raises(ServerDied, match="exit code 3"):
            await server.invoke_tool("a")
        assert '{"jsonrpc"' in server.incidents[0].noise
    script.check()


async def test_an_answer_that_comes_byte_by_byte_is_whole_in_the_end(serve: Serve) -> None:
    script = Script()
    script.on("tools/call", name="a").answer(
        {"content": [{"type": "text", "text": "täst"}]}, drip=1
    )
    async with connect(serve(script)) as server:
        assert (await server.invoke_tool("a")).text == "täst"


async def test_garbage_stands_before_an_answer_as_it_is(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    script = Script()
    script.on("tools/call", name="a").garbage(b"\x00\xffwild\n").text("all the same")
    with caplog.at_level(logging.WARNING, "mcpclient"):
        async with connect(serve(script)) as server:
            assert (await server.invoke_tool("a")).text == "all the same"
    assert "wild" in caplog.text


async def test_a_flood_is_one_notification_many_times(serve: Serve) -> None:
    script = Script()
    script.on("tools/call", name="a").flood(
        "notifications/message", 3000, level="info", data="x" * 100
    ).text("done")
    async with connect(serve(script)) as server:
        assert (await server.invoke_tool("a")).text == "done"
    script.check()


async def test_silence_is_scripted_and_times_out(serve: Serve) -> None:
    script = Script()
    script.on("tools/call", name="a").silence()
    async with connect(serve(script)) as server:
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("a", timeout=0.05)
    script.check()


async def test_a_delayed_answer_lets_others_pass(serve: Serve) -> None:
    script = Script()
    script.on("tools/call", name="slow").wait(0.3).text("slow")
    script.on("tools/call", name="quick").text("quick")
    ended = []
    async with connect(serve(script)) as server, anyio.create_task_group() as group:

        async def call(name: str) -> None:
            ended.append((await server.invoke_tool(name)).text)

        group.start_soon(call, "slow")
        await eventually(lambda: script.received("tools/call"))
        group.start_soon(call, "quick")
    assert ended == ["quick", "slow"]


async def test_a_general_delay_comes_before_every_answer(serve: Serve) -> None:
    script = Script(delay=0.2)
    script.on("tools/call", name="a").text("late")
    async with connect(serve(script), era="handshake") as server:
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("a", timeout=0.01)
    script.check()


async def test_one_that_reads_no_more_answers_no_more(serve: Serve) -> None:
    script = Script()
    script.tool("a")
    script.on("tools/call", name="deaf").deafen()
    async with connect(serve(script)) as server:
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("deaf", timeout=0.05)
        with pytest.raises(CallTimedOut):
            await server.list_tools(timeout=0.05)


async def test_one_that_closes_its_stdout_is_ended(serve: Serve) -> None:
    script = Script()
    script.on("tools/call", name="mute").mute()
    spec = serve(script, timeouts=Timeouts(eof=0.1))
    async with connect(spec) as server:
        with pytest.raises(ServerDied, match="closed its stdout"):
            await server.invoke_tool("mute", timeout=20)


async def test_what_it_does_at_its_start_comes_before_any_answer(serve: Serve) -> None:
    script = Script()
    script.start().stderr("no licence\n").die(4)
    async with Manager({"s": serve(script, era="handshake")}) as manager:
        # Its first life dies at once; the second has nothing more to do at its start.
        await manager["s"].start(timeout=30)
        assert manager["s"].generation == 2
        incident = manager["s"].incidents[0]
        assert (incident.exit, incident.stderr_tail) == (Exit(code=4), "no licence\n")
    script.check()


async def test_an_opening_can_be_refused(serve: Serve) -> None:
    script = Script()
    script.on("initialize").error(-32000, "Licence expired")
    async with Manager({"s": serve(script, era="handshake")}) as manager:
        with pytest.raises(OpeningFailed, match="Licence expired"):
            await manager["s"].start()
    script.check()


async def test_a_result_of_the_wrong_shape_goes_out_as_it_is(serve: Serve) -> None:
    script = Script()
    script.on("tools/call", name="a").answer([7])
    async with connect(serve(script)) as server:
        with pytest.raises(RemoteProtocolError):
            await server.invoke_tool("a")


# -- what was not scripted -----------------------------------------------------------------


async def test_what_was_not_scripted_is_refused_and_fails_the_check(serve: Serve) -> None:
    script = Script()
    script.tool("a")
    script.on("tools/call", name="b").times(3).text("b")
    at = line() - 1
    script.life(2).on("tools/call", name="c").text("c")
    async with connect(serve(script)) as server:
        with pytest.raises(ReplyError) as raised:
            await server.invoke_tool("a", {"x": 1})
        assert raised.value.message == "the script has no step for tools/call 'a'"
        await server.invoke_tool("b")
    with pytest.raises(AssertionError) as failed:
        script.check()
    here = "tests/testing/test_script.py"
    assert str(failed.value).splitlines() == [
        "the script 'script':",
        '  life 1: nothing was scripted for tools/call {"name": "a", "arguments": {"x": 1}}',
        f'  step 1 (tools/call {{"name": "b"}}, scripted in {here}:{at}) happened 1 of 3 times',
        f'  step 2 (tools/call {{"name": "c"}}, scripted in {here}:{at + 2}) never happened'
        " in life 2",
    ]


async def test_a_step_that_never_answers_is_a_mistake_of_the_script(serve: Serve) -> None:
    script = Script()
    script.on("tools/call", name="a").log("info", "and then?")
    async with connect(serve(script)) as server:
        with pytest.raises(ReplyError, match=r"never answers: end it with answer\(\)"):
            await server.invoke_tool("a")
    with pytest.raises(PlayFault, match="never answers"):
        script.check()


async def test_a_notification_that_is_answered_is_a_mistake_of_the_script(serve: Serve) -> None:
    script = Script()
    script.on("notifications/initialized").answer({})
    script.tool("a")
    async with connect(serve(script)) as server:
        await server.list_tools()
    with pytest.raises(PlayFault, match="answers, but notifications/initialized is no request"):
        script.check()


def test_a_script_of_an_unknown_era_or_life_or_number_is_refused() -> None:
    with pytest.raises(ValueError, match="era must be one of handshake, stateless, both"):
        Script(era="auto")
    with pytest.raises(ValueError, match="lives are counted from 1, not 0"):
        Script().life(0)
    with pytest.raises(ValueError, match="times must be at least 1, not 0"):
        Script().on("ping").times(0)


def test_only_what_can_be_served_is_served_in_memory() -> None:
    with pytest.raises(TypeError, match="only a Script, a Replay or a kit server"):
        in_memory(Path("x"))


async def test_several_managers_may_be_served_one_script_at_once(serve: Serve) -> None:
    script = Script()
    script.on("tools/call", name="a").always().text("a")
    spec = serve(script)
    async with Manager({"x": spec, "y": spec}) as manager:
        assert (await manager["x"].invoke_tool("a")).text == "a"
        assert (await manager["y"].invoke_tool("a")).text == "a"
    assert script.lives == 2
    script.check()
