"""A recorded session is served again: strictly as it was, or leniently by what is asked."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallTimedOut,
    Exit,
    Manager,
    ReplyError,
    Server,
    ServerDied,
    ServerSpec,
    Timeouts,
)
from mcpclient.testing import (
    PlayFault,
    Recorder,
    RecordingError,
    Replay,
    Script,
    connect,
    in_memory,
)
from tests.conftest import QUICK, eventually, real_servers, spec

Serve = Callable[..., ServerSpec]


@pytest.fixture(params=["memory", "process"])
def serve(request: pytest.FixtureRequest) -> Serve:
    """Serve a replay in one of the two ways; it restarts quickly."""

    def made(replay: Replay, **options: Any) -> ServerSpec:
        options.setdefault("restart", QUICK)
        options.setdefault("timeouts", Timeouts(eof=5.0, term=1.0))
        return in_memory(replay, **options) if way == "memory" else replay.spec(**options)

    way = request.param
    return made


async def record(path: Path, source: Any, use: Callable[[Server], Any], **options: Any) -> Any:
    """Record what `use` does with a server, and return what it returned."""
    async with connect(Recorder(path).spec(source), **options) as server:
        return await use(server)


def recorded(path: Path, *messages: tuple[str, dict[str, Any]]) -> Path:
    """Write a recording by hand: of the opening in 2025-11-25, and of these messages."""
    opened = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {}}
    lines: list[tuple[str, dict[str, Any]]] = [
        (">", {"id": 1, "method": "initialize", "params": {}}),
        ("<", {"id": 1, "result": opened}),
        (">", {"method": "notifications/initialized"}),
        *messages,
    ]
    written = ['{"recording":1}', '{"life":1,"t":0,"dir":"+"}']
    for place, (sign, message) in enumerate(lines):
        entry = {"life": 1, "t": place / 100, "dir": sign, "message": message}
        if sign == "x":
            entry = {"life": 1, "t": place / 100, "dir": "x", **message}
        written.append(json.dumps(entry))
    path.write_text("\n".join(written) + "\n")
    return path


def call(id: Any, name: str, arguments: Any = None, **meta: Any) -> tuple[str, dict[str, Any]]:
    params = {"name": name, "arguments": arguments or {}}
    if meta:
        params["_meta"] = meta
    return ">", {"id": id, "method": "tools/call", "params": params}


def text(id: Any, words: str) -> tuple[str, dict[str, Any]]:
    return "<", {"id": id, "result": {"content": [{"type": "text", "text": words}]}}


# -- the real ones -------------------------------------------------------------------------


async def use_time(server: Server) -> Any:
    tools = [tool.name for tool in await server.list_tools()]
    arguments = {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}
    converted = await server.invoke_tool("convert_time", arguments)
    now = await server.invoke_tool("get_current_time", {"timezone": "UTC"})
    return tools, converted.text, now.text


async def use_everything(server: Server) -> Any:
    tools = [tool.name for tool in await server.list_tools()]
    resources = [one.uri for one in await server.list_resources()]
    echo = await server.invoke_tool("echo", {"message": "hello"})
    prompt = await server.get_prompt("simple-prompt")
    read = await server.read_resource(resources[0])
    return tools, resources, echo.text, prompt.raw, read.raw


@pytest.mark.parametrize(
    ("name", "use"),
    [("time", use_time), ("everything", use_everything)],
    ids=["time", "everything"],
)
@pytest.mark.parametrize("strict", [True, False], ids=["strict", "lenient"])
async def test_what_a_real_server_said_is_said_again_when_it_is_gone(
    tmp_path: Path, serve: Serve, name: str, use: Callable[[Server], Any], strict: bool
) -> None:
    command = real_servers().get(name)
    if command is None:
        pytest.skip(f"the server {name!r} is not set up (make real)")
    path = tmp_path / "r.jsonl"
    said = await record(path, command, use)
    replay = Replay(path, strict=strict)
    async with connect(serve(replay)) as server:
        assert await use(server) == said
    replay.check()


@pytest.mark.parametrize("era", ["handshake", "stateless"])
async def test_asks_progress_and_changes_are_played_again(
    tmp_path: Path, serve: Serve, era: str
) -> None:
    script = Script(era=era)
    form = {"message": "How many?", "requestedSchema": {"type": "object", "properties": {}}}
    script.resource("a://b")
    script.on("tools/call", name="a").progress(1, 2).ask("elicitation/create", form).notify(
        "notifications/resources/updated", uri="a://b"
    ).text("thanks")

    async def use(server: Server) -> Any:
        told: list[Any] = []
        async with server.subscribe("a://b") as updates:
            result = await server.invoke_tool("a", on_progress=lambda *what: told.append(what))
            with anyio.fail_after(20):
                async for _ in updates:
                    break
        return result.text, told

    def elicit(server: Any, params: Any) -> Any:
        asked.append(params["message"])
        return {"action": "accept", "content": {}}

    asked: list[str] = []
    path = tmp_path / "r.jsonl"
    said = await record(path, script, use, on_elicit=elicit)
    assert said == ("thanks", [(1, 2, None)])
    for strict in (True, False):
        replay = Replay(path, strict=strict)
        async with connect(serve(replay), on_elicit=elicit) as server:
            assert await use(server) == said
        replay.check()
    assert asked == ["How many?"] * 3


async def test_a_life_that_ended_by_itself_ends_again_in_the_same_way(
    tmp_path: Path, serve: Serve
) -> None:
    async def use(server: Server) -> Any:
        with pytest.raises(ServerDied) as raised:
            await server.invoke_tool("exit", {"code": 7})
        echo = await server.invoke_tool("echo", {"text": "again"}, timeout=30)
        return raised.value.exit, server.generation, echo.text

    path = tmp_path / "r.jsonl"
    said = await record(path, spec("good_handshake"), use)
    assert said == (Exit(code=7), 2, "again")
    for strict in (True, False):
        replay = Replay(path, strict=strict)
        async with connect(serve(replay)) as server:
            assert await use(server) == said
        replay.check()


# -- strict --------------------------------------------------------------------------------


async def test_ids_tokens_and_meta_are_todays(tmp_path: Path, serve: Serve) -> None:
    path = recorded(
        tmp_path / "r.jsonl",
        call("their-7", "a", progressToken="tok", other="x"),
        (
            "<",
            {"method": "notifications/progress", "params": {"progressToken": "tok", "progress": 1}},
        ),
        text("their-7", "a"),
    )
    replay = Replay(path)
    told: list[Any] = []
    async with connect(serve(replay, era="handshake")) as server:
        result = await server.invoke_tool("a", on_progress=lambda *what: told.append(what))
    assert (result.text, told) == ("a", [(1, None, None)])
    replay.check()


async def test_what_differs_is_refused_and_told_with_line_expected_and_got(
    tmp_path: Path, serve: Serve
) -> None:
    path = recorded(
        tmp_path / "r.jsonl", call(2, "a", {"x": 1}), text(2, "a"), call(3, "b"), text(3, "b")
    )
    replay = Replay(path)
    async with connect(serve(replay, era="handshake")) as server:
        with pytest.raises(ReplyError) as raised:
            await server.invoke_tool("a", {"x": 2})
        with pytest.raises(ReplyError, match="not as recorded"):
            await server.invoke_tool("b")
    told = (
        'r.jsonl:6: tools/call {"name": "a", "arguments": {"x": 1}} came otherwise: '
        "arguments.x is 2; recorded was 1"
    )
    assert raised.value.message.startswith("not as recorded: ")
    assert raised.value.message.endswith(told)
    with pytest.raises(AssertionError) as failed:
        replay.check()
    first, second = str(failed.value).splitlines()
    assert first == f"the replay of {path}:"
    assert second.startswith("  life 1: ")
    assert second.endswith(told)


async def test_another_order_another_method_and_more_than_was_recorded_are_told(
    tmp_path: Path,
) -> None:
    path = recorded(tmp_path / "r.jsonl", call(2, "a"), text(2, "a"))

    async def problems(use: Callable[[Server], Any]) -> list[str]:
        replay = Replay(path)
        async with connect(replay, era="handshake") as server:
            with pytest.raises(ReplyError):
                await use(server)
        return [one.replace(str(tmp_path), "") for one in replay.problems()]

    async def more(server: Server) -> None:
        await server.invoke_tool("a")
        await server.invoke_tool("a")

    assert await problems(lambda server: server.list_tools()) == [
        'life 1: /r.jsonl:6: expected tools/call {"name": "a", "arguments": {}}, got tools/list'
    ]
    assert await problems(more) == [
        "life 1: /r.jsonl: the recording of this life ends, and then came "
        'tools/call {"name": "a", "arguments": {}}'
    ]


async def test_what_never_came_is_told_and_so_is_a_life_that_never_began(tmp_path: Path) -> None:
    path = recorded(tmp_path / "r.jsonl", *[call(number, "a") for number in range(2, 9)])
    with path.open("a") as file:
        file.write('{"life":2,"t":0,"dir":"+"}\n')
    replay = Replay(path)
    async with connect(replay, era="handshake"):
        pass
    problems = [one.replace(str(tmp_path), "") for one in replay.problems()]
    assert problems[0] == (
        'life 1: /r.jsonl:6: tools/call {"name": "a", "arguments": {}} never came'
    )
    assert problems[5:] == [
        "life 1: and 2 more never came",
        "life 2 of the recording never began",
    ]


async def test_members_that_may_differ_are_named(tmp_path: Path) -> None:
    path = recorded(tmp_path / "r.jsonl", call(2, "a", {"when": 1, "x": 1}), text(2, "a"))
    for strict in (True, False):
        replay = Replay(path, strict=strict, ignore=["arguments.when"])
        async with connect(replay, era="handshake") as server:
            assert (await server.invoke_tool("a", {"when": 7, "x": 1})).text == "a"
        replay.check()


async def test_another_answer_to_what_was_asked_is_told(tmp_path: Path) -> None:
    path = recorded(
        tmp_path / "r.jsonl",
        call(2, "a"),
        ("<", {"id": "q", "method": "roots/list"}),
        (">", {"id": "q", "result": {"roots": [{"uri": "file:///a"}]}}),
        text(2, "a"),
    )
    replay = Replay(path)
    async with connect(replay, era="handshake", roots=["file:///b"]) as server:
        with pytest.raises(CallTimedOut):  # what followed the answer is not said any more
            await server.invoke_tool("a", timeout=0.5)
    (problem,) = replay.problems()
    assert 'result.roots[0].uri is "file:///b"; recorded was "file:///a"' in problem


async def test_what_was_asked_at_once_is_answered_in_the_recorded_order(
    tmp_path: Path, serve: Serve
) -> None:
    path = recorded(tmp_path / "r.jsonl", call(2, "a"), call(3, "b"), text(3, "b"), text(2, "a"))
    replay = Replay(path)
    recorder = Recorder()
    made = recorder.spec(serve(replay, era="handshake"))
    async with connect(made) as server, anyio.create_task_group() as group:
        for count, name in enumerate("ab", 1):
            group.start_soon(server.invoke_tool, name)
            await eventually(lambda count=count: len(recorder.sent("tools/call")) == count)
    replay.check()
    answers = [one["result"]["content"][0]["text"] for one in recorder.received()[-2:]]
    assert answers == ["b", "a"]


async def test_a_probe_more_or_less_than_was_recorded_is_no_difference(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    script = Script()
    script.on("tools/call", name="a").always().text("a")
    for recorded_era, era in (("auto", "handshake"), ("handshake", "auto")):
        use: Callable[[Server], Any] = lambda server: server.invoke_tool("a")  # noqa: E731
        await record(path, script, use, era=recorded_era)
        replay = Replay(path)
        async with connect(replay, era=era) as server:
            assert (await use(server)).text == "a"
        replay.check()


async def test_a_cancellation_comes_when_it_likes_or_not_at_all(tmp_path: Path) -> None:
    gone = (">", {"method": "notifications/cancelled", "params": {"requestId": 2}})
    messages = [call(2, "slow"), gone, call(3, "a"), text(2, "late"), text(3, "a")]
    path = recorded(tmp_path / "r.jsonl", *messages)
    for patient in (True, False):
        replay = Replay(path)
        async with connect(replay, era="handshake") as server, anyio.create_task_group() as group:
            with anyio.move_on_after(None if patient else 0.01):
                if patient:
                    group.start_soon(server.invoke_tool, "slow")
                    await anyio.wait_all_tasks_blocked()
                else:
                    await server.invoke_tool("slow")
            assert (await server.invoke_tool("a")).text == "a"
        replay.check()


async def test_pings_come_when_they_like(tmp_path: Path) -> None:
    path = recorded(
        tmp_path / "r.jsonl",
        (">", {"id": 2, "method": "ping"}),
        ("<", {"id": 2, "result": {}}),
        call(3, "a"),
        text(3, "a"),
    )
    for strict in (True, False):
        replay = Replay(path, strict=strict)
        async with connect(replay, era="handshake") as server:
            assert (await server.invoke_tool("a")).text == "a"
            await server.request("ping")
        replay.check()


async def test_at_its_recorded_pace_a_slow_answer_is_slow_again(tmp_path: Path) -> None:
    path = recorded(tmp_path / "r.jsonl", call(2, "a"))
    with path.open("a") as file:
        answer = {"life": 1, "t": 600, "dir": "<", "message": text(2, "late")[1]}
        file.write(json.dumps(answer) + "\n")
    for strict in (True, False):
        replay = Replay(path, strict=strict, pace=1)
        async with connect(replay, era="handshake") as server:
            with pytest.raises(CallTimedOut):
                await server.invoke_tool("a", timeout=0.05)
        replay = Replay(path, strict=strict)
        async with connect(replay, era="handshake") as server:
            assert (await server.invoke_tool("a")).text == "late"


async def test_rubbish_and_half_a_line_are_said_again(tmp_path: Path, serve: Serve) -> None:
    script = Script()
    script.on("tools/call", name="a").garbage(b"\xff wild\n").text("a")
    script.on("tools/call", name="b").answer({"content": []}, cut=10).die(3)

    async def use(server: Server) -> Any:
        first = (await server.invoke_tool("a")).text
        with pytest.raises(ServerDied) as raised:
            await server.invoke_tool("b")
        await server.start(timeout=30)
        return first, raised.value.exit

    path = tmp_path / "r.jsonl"
    said = await record(path, in_memory(script, restart=QUICK), use)
    for strict in (True, False):
        replay = Replay(path, strict=strict)
        async with connect(serve(replay)) as server:
            assert await use(server) == said


async def test_a_redacted_recording_is_replayed_to_who_has_the_secret(tmp_path: Path) -> None:
    script = Script()
    script.on("tools/call", name="login").answer(
        lambda params: {"content": [], "structuredContent": {"token": "t-1", "user": "ada"}}
    )

    async def use(server: Server) -> Any:
        return (await server.invoke_tool("login", {"password": "swordfish"})).structured

    path = tmp_path / "r.jsonl"
    await record(path, script, use)
    assert "swordfish" not in path.read_text()
    for strict in (True, False):
        replay = Replay(path, strict=strict)
        async with connect(replay) as server:
            assert await use(server) == {"token": "***", "user": "ada"}
        replay.check()


# -- lenient -------------------------------------------------------------------------------


async def test_leniently_answers_come_in_any_order_and_again(tmp_path: Path, serve: Serve) -> None:
    path = recorded(
        tmp_path / "r.jsonl",
        call(2, "a"),
        text(2, "first"),
        call(3, "b"),
        text(3, "b"),
        call(4, "a"),
        text(4, "second"),
    )
    replay = Replay(path, strict=False)
    async with connect(serve(replay, era="handshake")) as server:
        found = [(await server.invoke_tool(name)).text for name in "baaab"]
    assert found == ["b", "first", "second", "second", "b"]
    replay.check()


async def test_leniently_what_was_never_asked_is_refused_with_the_nearest(
    tmp_path: Path, serve: Serve
) -> None:
    path = recorded(tmp_path / "r.jsonl", call(2, "a", {"x": 1}), text(2, "a"))
    replay = Replay(path, strict=False)
    async with connect(serve(replay, era="handshake")) as server:
        with pytest.raises(ReplyError, match=r"only otherwise \(line 6\): arguments.x is 2"):
            await server.invoke_tool("a", {"x": 2})
        with pytest.raises(ReplyError, match="the recording has no prompts/get"):
            await server.request("prompts/get", {"name": "x"})
        assert (await server.invoke_tool("a", {"x": 1})).text == "a"
    assert len(replay.problems()) == 2
    with pytest.raises(PlayFault, match="recorded was 1"):
        replay.check()


async def test_leniently_questions_of_two_calls_at_once_are_told_apart(tmp_path: Path) -> None:
    def asking(id: int, name: str) -> list[tuple[str, dict[str, Any]]]:
        form = {"message": name, "requestedSchema": {"type": "object", "properties": {}}}
        return [
            call(id, name),
            ("<", {"id": f"q{id}", "method": "elicitation/create", "params": form}),
            (">", {"id": f"q{id}", "result": {"action": "decline"}}),
            text(id, f"{name} thanks"),
        ]

    path = recorded(tmp_path / "r.jsonl", *asking(2, "a"), *asking(3, "b"))
    both = anyio.Event()
    asked: list[str] = []

    async def elicit(server: Any, params: Any) -> Any:
        asked.append(params["message"])
        if len(asked) == 2:
            both.set()
        await both.wait()
        return {"action": "decline"}

    found: list[str] = []
    async with connect(Replay(path, strict=False), era="handshake", on_elicit=elicit) as server:

        async def use(name: str) -> None:
            found.append((await server.invoke_tool(name)).text)

        async with anyio.create_task_group() as group:
            group.start_soon(use, "a")
            group.start_soon(use, "b")
    assert sorted(found) == ["a thanks", "b thanks"]


# -- damaged -------------------------------------------------------------------------------


async def test_a_recording_that_is_cut_off_is_refused_before_it_is_served(tmp_path: Path) -> None:
    path = recorded(tmp_path / "r.jsonl", call(2, "a"), text(2, "a"))
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(RecordingError, match=r"r.jsonl:7: the recording is cut off"):
        Replay(path)


async def test_a_recording_that_is_damaged_later_is_told_by_the_process(tmp_path: Path) -> None:
    path = recorded(tmp_path / "r.jsonl")
    made = Replay(path).spec(restart=QUICK)
    path.write_text("nonsense\n")
    async with Manager({"s": made}) as manager:
        with pytest.raises(Exception, match=r"r.jsonl:1: this is no recording"):
            await manager["s"].start()
