"""Opening, calls, answers, time-outs, cancellation and progress, the same in every version."""

from __future__ import annotations

import json
from typing import Any

import anyio
import jsonschema
import pytest

from mcpclient import CallCancelled, CallTimedOut, ReplyError, ToolError
from mcpclient.protocol.versions import HANDSHAKE
from tests.behaviour.bench import Bench
from tests.behaviour.server import INFO, INSTRUCTIONS, STATELESS
from tests.conftest import eventually
from tests.protocol.schemas import SPEC


async def journal(server: Any, method: str) -> list[dict[str, Any]]:
    """Return what the server says it received of one method."""
    received = json.loads((await server.call_tool("journal")).text)
    return [one for one in received if one.get("method") == method]


async def told(server: Any, method: str) -> list[dict[str, Any]]:
    """Return what it received of one method, as soon as there is any."""
    with anyio.fail_after(10):
        while not (received := await journal(server, method)):
            await anyio.sleep(0.005)
        return received


async def test_the_opening_finds_the_era_and_agrees_on_the_servers_version(bench: Bench) -> None:
    server = await bench.open()
    assert (server.era, server.protocol_version, server.state) == (None, None, "idle")
    await server.start()
    assert server.state == "up"
    assert server.era == ("stateless" if bench.stateless else "handshake")
    assert server.protocol_version == bench.version
    assert server.info == INFO
    assert server.instructions == INSTRUCTIONS
    assert server.capabilities["resources"] == {"subscribe": True, "listChanged": True}
    assert ("completions" in server.capabilities) == bench.since("2025-03-26")
    assert (server.pid is not None) == (bench.medium == "stdio")
    if bench.stateless:
        assert bench.life.methods == ["server/discover"]
        return
    assert bench.life.methods == ["server/discover", "initialize", "notifications/initialized"]
    # The newest of that era is offered, whatever the server then makes of it.
    assert bench.life.of("initialize")[0]["params"]["protocolVersion"] == HANDSHAKE[-1]


@pytest.mark.parametrize("version", HANDSHAKE)
async def test_a_version_that_is_asked_for_by_name_is_the_one_that_is_offered(
    version: str, medium: str, bench: Bench
) -> None:
    server = await bench.open(spec={"era": version})
    await server.invoke_tool("echo", {"text": "hi"})
    assert server.protocol_version == version
    assert bench.life.methods == ["initialize", "notifications/initialized", "tools/call"]
    assert bench.life.of("initialize")[0]["params"]["protocolVersion"] == version


async def test_a_call_is_answered_whatever_characters_it_holds(bench: Bench) -> None:
    server = await bench.open()
    for text in ("hi", "", 'a "quote" \\ \n \r\n \t', "äß € 🎉 \u2028 \u0000", "x" * 200_000):
        result = await server.invoke_tool("echo", {"text": text})
        assert result.text == text
        assert not result.is_error
        assert not result.has_structured
    # A second request finds the conversation open; no id is used twice.
    ids = [one["id"] for one in bench.life.messages if "id" in one]
    assert ids == list(range(1, len(ids) + 1))
    assert len(bench.life.of("tools/call")) == 5


async def test_structured_content_comes_where_the_version_has_it(bench: Bench) -> None:
    server = await bench.open()
    result = await server.invoke_tool("add", {"a": 1, "b": 2})
    assert result.text == "3"
    assert result.has_structured == bench.since("2025-06-18")
    assert result.structured == ({"sum": 3} if bench.since("2025-06-18") else None)
    if bench.stateless:  # any JSON value, and null is one
        nothing = await server.invoke_tool("nothing")
        assert nothing.has_structured
        assert nothing.structured is None
        assert nothing.raw == {
            "resultType": "complete",
            "content": [],
            "structuredContent": None,
        }


async def test_a_tool_that_failed_raises_unless_it_is_called_plainly(bench: Bench) -> None:
    server = await bench.open()
    with pytest.raises(ToolError) as caught:
        await server.invoke_tool("fail")
    assert str(caught.value) == "it failed\nand here is why"
    assert caught.value.result.is_error
    assert (caught.value.tool, caught.value.server) == ("fail", "peer")
    plain = await server.call_tool("fail")
    assert plain.is_error
    assert plain == caught.value.result


async def test_a_refusal_tells_code_words_and_data(bench: Bench) -> None:
    server = await bench.open()
    with pytest.raises(ReplyError) as caught:
        await server.invoke_tool("no such tool")
    assert (caught.value.code, caught.value.data) == (-32602, None)
    assert str(caught.value) == '[-32602] Unknown tool: no such tool (tools/call on "peer")'
    with pytest.raises(ReplyError) as caught:
        await server.call_tool("refuse")
    # A code that means something only to this server: it is handed on and means nothing here.
    assert (caught.value.code, caught.value.message) == (-32001, "not today")
    assert caught.value.data == {"why": ["rain", 1, None]}
    assert (await server.invoke_tool("echo", {"text": "on we go"})).text == "on we go"
    with pytest.raises(ReplyError) as caught:
        await server.read_resource("other://x")
    assert caught.value.code == (-32602 if bench.stateless else -32002)
    assert caught.value.data == {"uri": "other://x"}


async def test_calls_at_the_same_time_get_their_own_answers_in_any_order(bench: Bench) -> None:
    server = await bench.open()
    ended: list[str] = []

    async def hold(key: str) -> None:
        result = await server.invoke_tool("hold", {"key": key})
        assert result.text == f"held {key}"
        ended.append(key)

    async with anyio.create_task_group() as group:
        for key in "abc":
            group.start_soon(hold, key)
        await eventually(lambda: bench.lives and len(bench.life.of("tools/call")) == 3)
        assert (await server.invoke_tool("echo", {"text": "first"})).text == "first"
        assert ended == []
        await server.invoke_tool("release", {"keys": ["c"]})
        await eventually(lambda: ended == ["c"])
        await server.invoke_tool("release", {"keys": ["b", "a"]})
    assert ended[0] == "c"
    assert sorted(ended) == ["a", "b", "c"]  # each backend wakes them in an order of its own
    assert server.status().in_flight == 0


@pytest.mark.parametrize("version", ["2025-03-26"])
async def test_answers_in_one_array_are_answers(version: str, bench: Bench) -> None:
    server = await bench.open()
    texts: dict[str, str] = {}

    async def hold(key: str) -> None:
        texts[key] = (await server.invoke_tool("hold", {"key": key})).text

    async with anyio.create_task_group() as group:
        for key in "ab":
            group.start_soon(hold, key)
        await eventually(lambda: bench.lives and len(bench.life.of("tools/call")) == 2)
        released = await server.invoke_tool("release", {"keys": ["a", "b"], "together": True})
    assert released.text == "released 2"
    assert texts == {"a": "held a", "b": "held b"}
    assert bench.life.got[-1].startswith(b"[")
    assert server.status().noise == 0


async def test_an_answer_after_the_time_out_is_dropped_silently(bench: Bench) -> None:
    server = await bench.open()
    await server.start()
    with pytest.raises(CallTimedOut) as caught:
        await server.invoke_tool("hold", {"key": "late", "stubborn": True}, timeout=0.05)
    assert (caught.value.method, caught.value.server) == ("tools/call", "peer")
    assert caught.value.maybe_done
    assert "no answer within" in str(caught.value)
    # The late answer stands in front of this one.
    assert (await server.invoke_tool("release", {"keys": ["late"]})).text == "released 1"
    status = server.status()
    assert (status.late, status.stray, status.noise, status.in_flight) == (1, 0, 0, 0)
    [held] = [one for one in bench.life.of("tools/call") if one["params"]["name"] == "hold"]
    [cancel] = await journal(server, "notifications/cancelled")
    assert cancel["params"]["requestId"] == held["id"]
    assert cancel["params"]["reason"] == "timed out"


async def test_the_callers_cancellation_reaches_the_server(bench: Bench) -> None:
    server = await bench.open()
    await server.start()
    ended: list[str] = []
    async with anyio.create_task_group() as group:

        async def hold() -> None:
            try:
                await server.invoke_tool("hold", {"key": "gone"})
            finally:
                ended.append("hold")

        group.start_soon(hold)
        await eventually(lambda: bench.life.of("tools/call"))
        with anyio.fail_after(10):  # what was never sent is not cancelled
            while "hold" not in [
                one["params"]["name"] for one in await journal(server, "tools/call")
            ]:
                await anyio.sleep(0.005)
        group.cancel_scope.cancel()
    assert ended == ["hold"]
    [cancel] = await told(server, "notifications/cancelled")
    assert cancel["params"]["requestId"] == bench.life.of("tools/call")[0]["id"]
    # The server gave it up, and nothing of it comes back.
    assert (await server.invoke_tool("release", {"keys": ["gone"]})).text == "released 0"
    assert server.status().late == 0
    assert server.status().in_flight == 0


async def test_a_call_that_was_answered_is_never_cancelled(bench: Bench) -> None:
    server = await bench.open()
    with anyio.CancelScope() as scope:
        await server.invoke_tool("echo", {"text": "done"})
        scope.cancel()
    assert await journal(server, "notifications/cancelled") == []


async def test_progress_is_told_in_order_and_only_to_who_asked(bench: Bench) -> None:
    server = await bench.open()
    told: list[tuple[float, float | None, str | None]] = []
    await server.invoke_tool("progress", {"n": 3}, on_progress=lambda *facts: told.append(facts))
    words = ["step 1", "step 2", "step 3"] if bench.since("2025-03-26") else [None] * 3
    assert told == [(n, 3, word) for n, word in enumerate(words, 1)]
    await server.invoke_tool("progress", {"n": 3})
    asked, plain = bench.life.of("tools/call")
    assert asked["params"]["_meta"]["progressToken"] == asked["id"]
    assert "progressToken" not in plain["params"].get("_meta", {})
    assert len(told) == 3


async def test_a_stop_ends_the_calls_and_a_start_begins_anew(bench: Bench) -> None:
    server = await bench.open()
    await server.start()
    async with anyio.create_task_group() as group:

        async def hold() -> None:
            with pytest.raises(CallCancelled) as caught:
                await server.invoke_tool("hold", {"key": "stopped"})
            assert caught.value.maybe_done or not bench.piped  # it may be connecting

        group.start_soon(hold)
        await eventually(lambda: bench.life.of("tools/call"))
        await server.stop()
    assert server.state == "idle"
    assert server.incidents == []
    await server.start()
    assert (await server.invoke_tool("echo", {"text": "again"})).text == "again"
    assert server.generation == 2
    assert server.protocol_version == bench.version


async def test_who_asks_is_said_as_the_era_says_it(bench: Bench) -> None:
    server = await bench.open(client_name="tester", client_version="7")
    await server.invoke_tool("echo", {"text": "hi"})
    await server.list_tools()
    whose = {"name": "tester", "version": "7"}
    if not bench.stateless:
        assert bench.life.of("initialize")[0]["params"]["clientInfo"] == whose
        assert bench.life.of("initialize")[0]["params"]["capabilities"] == {}
        assert all("_meta" not in (m.get("params") or {}) for m in bench.life.messages[1:])
        return
    for message in bench.life.messages:  # the probe and every page too
        meta = message["params"]["_meta"]
        assert meta == {
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientInfo": whose,
            "io.modelcontextprotocol/clientCapabilities": {},
        }


@pytest.mark.odd_frames("one is to be found")
@pytest.mark.parametrize("medium", ["memory"])
async def test_a_frame_that_no_schema_allows_would_fail_its_test(medium: str, bench: Bench) -> None:
    server = await bench.open()
    await server.invoke_tool("echo", {"text": "hi"})
    if SPEC.is_dir():
        bench.check()
        await server.notify("notifications/cancelled", {"requestId": 1, "reason": 2})
        with pytest.raises(jsonschema.ValidationError, match="2 is not of type 'string'"):
            bench.check()
    bench.life.sent.clear()
    bench.life.got.clear()


async def test_calls_with_a_time_of_their_own_outlive_the_usual_one(bench: Bench) -> None:
    server = await bench.open()
    await server.start()
    async with anyio.create_task_group() as group:
        texts: list[str] = []

        async def hold() -> None:
            texts.append((await server.invoke_tool("hold", {"key": "k"}, timeout=None)).text)

        group.start_soon(hold)
        await eventually(lambda: bench.life.of("tools/call"))
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("hold", {"key": "other"}, timeout=0.05)
        assert texts == []
        await server.invoke_tool("release", {"keys": ["k"]})
    assert texts == ["held k"]
