"""Servers behind nginx: streams that it buffers, and what is idle that it cuts.

By itself it cuts what was silent for 60 s, and the official SDK's server speaks before that. Here
it cuts after one second, which is the same to us: nothing on our side knows the number. A stream
that lasted is asked for again at once, one that did not after a pause.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import CallLost, CallTimedOut, HttpError, Manager, Server, ServerSpec, Timeouts
from tests import test_real_asks as asks
from tests.conftest import eventually
from tests.features.followers import heard
from tests.remote.nginx import Nginx, nginx
from tests.remote.programs import everything, program, sdk

RESOURCE = "demo://resource/dynamic/text/1"
IDLE = "proxy_read_timeout 1s;"
# The servers ask for their streams not to be buffered; some proxies do not listen to that.
DEAF = "proxy_ignore_headers X-Accel-Buffering;"
LONG = "trigger-long-running-operation"
BOTH = pytest.mark.parametrize("name", ["sdk", "everything"])


@pytest.fixture(scope="module")
def proxied() -> Iterator[Nginx]:
    """Give nginx before both servers, in three ways each."""
    commands = {"sdk": sdk(), "everything": everything("streamableHttp")}
    with ExitStack() as stack:
        sites: dict[str, dict[str, str]] = {}
        for name, command in commands.items():
            if command is not None:
                to = stack.enter_context(program(command)).origin
                sites[f"{name} usual"] = {"to": to, "rules": ""}
                sites[f"{name} idle"] = {"to": to, "rules": IDLE}
                sites[f"{name} deaf"] = {"to": to, "rules": f"{DEAF} {IDLE}"}
        yield stack.enter_context(nginx(sites))


@asynccontextmanager
async def reached(
    proxied: Nginx, name: str, way: str, timeouts: Timeouts | None = None, **options: Any
) -> AsyncIterator[Server]:
    origin = proxied.origins.get(f"{name} {way}")
    if origin is None:
        pytest.skip(f"the {name} server is not set up: run `make setup`")
    spec = ServerSpec(url=f"{origin}/mcp", timeouts=timeouts or Timeouts())
    async with Manager({name: spec}, **options) as manager:
        yield manager[name]
        [status] = manager.status().servers
        assert (status.noise, status.generation) == (0, 1)
        # When a stream is resumed, one of them repeats what it has said on all others as well.
        assert status.stray == 0 or (name, way) == ("everything", "idle")


@BOTH
async def test_behind_a_proxy_as_it_comes_all_is_as_without(
    proxied: Nginx, name: str, tmp_path: Path
) -> None:
    host = asks.Host()
    handlers: dict[str, Any] = {"on_sample": host.sample, "on_elicit": host.elicit}
    async with reached(proxied, name, "usual", roots=[tmp_path], **handlers) as server:
        await asks.check_roots(server, tmp_path)
        await asks.check_a_model(server, host)
        await asks.check_a_form(server, host)
        await asks.check_progress(server)
        async with server.subscribe(RESOURCE) as updates:
            await server.read_resource(RESOURCE)
            await server.invoke_tool("toggle-subscriber-updates")
            assert (await heard(updates))["uri"] == RESOURCE


@BOTH
async def test_a_stream_that_is_cut_while_idle_is_asked_for_again_and_nobody_is_told(
    proxied: Nginx, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mcpclient")

    def cuts() -> int:
        return proxied.errors().count("upstream timed out")

    async with reached(proxied, name, "idle") as server, server.subscribe(RESOURCE) as updates:
        await server.read_resource(RESOURCE)
        before, began = cuts(), time.monotonic()
        await eventually(lambda: cuts() >= before + 2, within=30)
        # Not in a storm: each was silent for a second, and then there was a pause.
        assert cuts() - before <= 1 + (time.monotonic() - began)
        assert [one.message for one in caplog.records if one.levelno >= logging.WARNING] == []
        assert server.incidents == []
        # Whatever is told between two streams is made good for; what comes on the next one, comes.
        if name == "sdk":
            with anyio.fail_after(30):
                while set(await heard(updates)) != {"uri", "_meta"}:
                    await server.read_resource(RESOURCE)
                    await server.invoke_tool("toggle-subscriber-updates")
        else:
            await server.invoke_tool("toggle-subscriber-updates")
            assert (await heard(updates))["uri"] == RESOURCE


async def test_a_call_that_is_silent_for_too_long_is_told_what_became_of_it(
    proxied: Nginx,
) -> None:
    async with reached(proxied, "sdk", "idle") as server:
        with pytest.raises(HttpError) as caught:
            await server.invoke_tool(LONG, {"duration": 60, "steps": 1})
        assert (caught.value.status, caught.value.maybe_done) == (504, True)
        assert "HTTP 504, the server or a proxy before it failed" in str(caught.value)
        assert "Gateway" in str(caught.value.body)
        # One that tells of its progress is not silent.
        done = await server.invoke_tool(
            LONG, {"duration": 1.5, "steps": 5}, on_progress=lambda *facts: None
        )
        assert done.text.startswith("Long running operation completed.")


async def test_a_proxy_that_buffers_delays_progress_and_loses_none(proxied: Nginx) -> None:
    async with reached(proxied, "sdk", "deaf") as server:
        await asks.check_progress(server)
        assert len(await server.list_tools()) > 7


async def test_asks_as_results_pass_a_proxy_that_buffers(proxied: Nginx, tmp_path: Path) -> None:
    host = asks.Host()
    handlers: dict[str, Any] = {"on_sample": host.sample, "on_elicit": host.elicit}
    async with reached(proxied, "sdk", "deaf", roots=[tmp_path], **handlers) as server:
        await asks.check_roots(server, tmp_path)
        await asks.check_a_model(server, host)
        await asks.check_a_form(server, host)


async def test_a_subscription_that_a_proxy_swallows_is_told_and_costs_nothing_else(
    proxied: Nginx,
) -> None:
    async with reached(proxied, "sdk", "deaf", Timeouts(call=2.5)) as server:
        with pytest.raises(CallTimedOut, match="did not agree to the subscription in time"):
            async with server.subscribe(RESOURCE):
                pass
        assert (await server.read_resource(RESOURCE)).text.startswith("Resource 1: ")
        assert server.incidents == []


async def test_the_streams_of_the_handshake_era_may_be_swallowed_and_calls_go_on(
    proxied: Nginx,
) -> None:
    async with reached(proxied, "everything", "deaf") as server:
        await asks.check_progress(server)
        assert (await server.invoke_tool("echo", {"message": "hi"})).text == "Echo: hi"
        assert server.incidents == []


async def test_a_question_that_a_proxy_swallows_ends_its_call_and_nothing_else(
    proxied: Nginx,
) -> None:
    """In the handshake era it comes on the stream of the call, which is held back."""
    host = asks.Host()
    async with reached(proxied, "everything", "deaf", on_sample=host.sample) as server:
        with pytest.raises(CallLost) as caught:
            await server.invoke_tool("trigger-sampling-request", {"prompt": "say hi"})
        assert caught.value.maybe_done is True
        assert host.asked["everything"] == []
        assert (await server.invoke_tool("echo", {"message": "hi"})).text == "Echo: hi"
        assert server.incidents == []
