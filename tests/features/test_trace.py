"""Trace context from the host's callback stands in ``_meta`` of each request, in both eras."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from mcpclient import LocalProtocolError, Manager
from tests.conftest import spec
from tests.features.helpers import journal
from tests.features.taskers import ERAS, ON, SOON, TASKERS
from tests.protocol.schemas import check_sent, needs_spec
from tests.protocol.test_schemas import copied, sent

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
TOLD = {"traceparent": PARENT, "tracestate": "a=1", "baggage": "user=ada"}
GOOD = {"handshake": "good_handshake", "stateless": "good_stateless"}
OPENING = ("initialize", "server/discover")


class Tracing:
    """A host's callback: gives the same each time, and keeps what it was asked."""

    def __init__(self, told: Any = None) -> None:
        self.told = TOLD if told is None else told
        self.asked: list[tuple[str, str]] = []

    def __call__(self, server: str, method: str) -> Any:
        self.asked.append((server, method))
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


def traced(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what each request but the opening ones says of its trace."""
    found = []
    for message in messages:
        if "id" in message and message.get("method", "answer") not in (*OPENING, "answer"):
            meta = (message.get("params") or {}).get("_meta") or {}
            found.append({key: meta[key] for key in TOLD if key in meta})
    return found


@ERAS
async def test_each_request_carries_what_the_host_gives_for_it(era: str, tmp_path: Path) -> None:
    tracing = Tracing()
    one = copied(tmp_path / "sent", spec(GOOD[era]))
    async with Manager({"s": one}, trace=tracing) as manager:
        server = manager["s"]
        await server.invoke_tool("echo", {"text": "a"}, on_progress=lambda *facts: None)
        await server.read_resource("test://a")
        await server.list_prompts()
        await server.request("tools/list")
        await server.notify("notifications/x", {"a": 1})
        async with server.subscribe("test://a"):
            pass
    messages = sent(tmp_path / "sent")
    found = traced(messages)
    assert len(found) >= 5
    assert all(one == TOLD for one in found)
    asked = [("s", one["method"]) for one in messages if one.get("method") not in (*OPENING, None)]
    asked = [one for one in asked if not one[1].startswith("notifications/")]
    # What ends the subscription may come too late for the server to read it.
    assert tracing.asked[: len(asked)] == asked
    # The requests that open, and the notices, carry none.
    for message in messages:
        if message.get("method") in OPENING or "id" not in message:
            assert PARENT not in str(message)
    [call] = [one for one in messages if one.get("method") == "tools/call"]
    assert call["params"]["_meta"]["progressToken"] == call["id"]


@needs_spec
@ERAS
async def test_what_is_sent_is_as_the_schema_says(era: str, tmp_path: Path) -> None:
    one = copied(tmp_path / "sent", spec(GOOD[era], era=era))
    async with Manager({"s": one}, trace=Tracing()) as manager:
        server = manager["s"]
        await server.invoke_tool("echo", {"text": "a"})
        await server.list_resources()
        await server.get_prompt("greet", {"name": "Ada"})
        version = server.protocol_version
    assert version is not None
    methods = [check_sent(version, message) for message in sent(tmp_path / "sent")]
    assert methods[-3:] == ["tools/call", "resources/list", "prompts/get"]


@ERAS
async def test_what_is_asked_about_a_task_is_traced_too(era: str) -> None:
    tracing = Tracing({"traceparent": PARENT})
    async with Manager({"s": spec(TASKERS[era])}, trace=tracing, extensions=ON) as manager:
        await manager["s"].invoke_tool(SOON[era])
        asked = await journal(manager["s"], "tasks/get")
        assert asked
        assert all(one["params"]["_meta"]["traceparent"] == PARENT for one in asked)
        assert ("s", "tasks/get") in tracing.asked


@ERAS
async def test_without_a_callback_there_is_no_trace(era: str) -> None:
    async with Manager({"s": spec(GOOD[era])}) as manager:
        await manager["s"].invoke_tool("echo", {"text": "a"})
        assert not any(traced(await journal(manager["s"])))
        if era == "handshake":
            for call in await journal(manager["s"], "tools/call"):
                assert "_meta" not in call["params"]


@pytest.mark.parametrize("told", [{}, {"tracestate": "a=1"}, {"traceparent": "x"}])
@ERAS
async def test_a_host_that_gives_nothing_of_use_changes_nothing(era: str, told: Any) -> None:
    async with Manager({"s": spec(GOOD[era])}, trace=Tracing(told)) as manager:
        assert (await manager["s"].invoke_tool("echo", {"text": "a"})).text == "a"
        assert traced(await journal(manager["s"], "tools/call")) == [{}, {}]


@ERAS
async def test_a_callback_may_give_none(era: str) -> None:
    async with Manager({"s": spec(GOOD[era])}, trace=lambda server, method: None) as manager:
        assert (await manager["s"].invoke_tool("echo", {"text": "a"})).text == "a"
        assert traced(await journal(manager["s"], "tools/call")) == [{}, {}]


async def test_what_is_of_another_shape_is_left_out_and_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    told = {**TOLD, "baggage": "no baggage", "x-trace": "1"}
    with caplog.at_level(logging.WARNING, "mcpclient"):
        async with Manager({"s": spec("good_stateless")}, trace=Tracing(told)) as manager:
            assert (await manager["s"].invoke_tool("echo", {"text": "a"})).text == "a"
            [first, _] = traced(await journal(manager["s"], "tools/call"))
    assert first == {"traceparent": PARENT, "tracestate": "a=1"}
    assert "s ! baggage of tools/call is no trace context; left out" in caplog.text
    assert "s ! x-trace of tools/call is no trace context; left out" in caplog.text


@pytest.mark.parametrize("told", [ValueError("oops"), 3, "text", ["traceparent"]])
async def test_a_callback_that_fails_costs_no_request(
    told: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with Manager({"s": spec("good_handshake")}, trace=Tracing(told)) as manager:
        assert (await manager["s"].invoke_tool("echo", {"text": "a"})).text == "a"
        assert traced(await journal(manager["s"], "tools/call")) == [{}, {}]
    assert "the trace callback raised at tools/call" in caplog.text


@ERAS
async def test_a_request_s_own_trace_counts_more(era: str) -> None:
    own = PARENT.replace("01", "00")
    async with Manager({"s": spec(GOOD[era])}, trace=Tracing()) as manager:
        params = {"_meta": {"traceparent": own, "com.example/a": 1}}
        await manager["s"].request("tools/list", params)
        [listed] = await journal(manager["s"], "tools/list")
        meta = listed["params"]["_meta"]
        assert (meta["traceparent"], meta["com.example/a"]) == (own, 1)
        assert meta["baggage"] == "user=ada"


async def test_params_that_cannot_be_written_are_still_refused() -> None:
    async with Manager({"s": spec("good_handshake")}, trace=Tracing()) as manager:
        with pytest.raises(LocalProtocolError, match="cannot be written as JSON"):
            await manager["s"].invoke_tool("echo", {"text": object()})
