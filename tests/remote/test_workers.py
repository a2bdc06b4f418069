"""Two workers behind one address, each request to the next of them: nothing is sticky."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import CallLost, Manager, RestartPolicy, ServerDied, ServerSpec
from tests import test_real_asks as asks
from tests.conftest import eventually
from tests.remote.nginx import Nginx, nginx
from tests.remote.programs import Program, program, sdk

POOL = "upstream pool {{ server {}; server {}; }}"


class Workers:
    """Two servers and what stands before them.

    Attributes:
        url: Where they are reached together.
        front: The nginx that distributes what comes.
    """

    def __init__(self, front: Nginx) -> None:
        self.front = front
        self.url = f"{front.origins['pool']}/mcp"


@pytest.fixture(scope="module")
def workers() -> Iterator[Workers]:
    command = sdk()
    if command is None:
        pytest.skip("the official SDK is not set up (`make setup`)")
    with ExitStack() as stack:
        both: list[Program] = [stack.enter_context(program(command)) for _ in range(2)]
        pool = POOL.format(*(one.origin.removeprefix("http://") for one in both))
        # The servers answer only to the name of this machine.
        site = {"to": "http://pool", "rules": "proxy_set_header Host $http_host;"}
        yield Workers(stack.enter_context(nginx({"pool": site}, pool)))


async def test_in_the_stateless_era_it_does_not_matter_who_answers(
    workers: Workers, tmp_path: Path
) -> None:
    host = asks.Host()
    handlers: dict[str, Any] = {"on_sample": host.sample, "on_elicit": host.elicit}
    servers = {"sdk": ServerSpec(url=workers.url)}
    async with Manager(servers, roots=[tmp_path], **handlers) as manager:
        server = manager["sdk"]
        for _ in range(2):
            await asks.check_roots(server, tmp_path)
            await asks.check_a_model(server, host)
            await asks.check_a_form(server, host)
            await asks.check_a_read_and_a_prompt(server, host)
            await asks.check_progress(server)
            host.asked["sdk"].clear()
        assert server.era == "stateless"
        assert server.incidents == []
        texts: list[str] = []

        async def call(number: int) -> None:
            uri = f"demo://resource/dynamic/text/{number}"
            texts.append((await server.read_resource(uri)).text.partition(":")[0])

        async with anyio.create_task_group() as group:
            for number in range(50):
                group.start_soon(call, number)
        assert set(texts) == {f"Resource {number}" for number in range(50)}


async def test_a_session_that_only_one_worker_knows_is_opened_once_more_and_then_given_up(
    workers: Workers, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "mcpclient")
    policy = RestartPolicy(burst=None, first=60, jitter=0)
    before = len(workers.front.requests())
    spec = ServerSpec(url=workers.url, era="handshake", restart=policy)
    async with Manager({"sdk": spec}) as manager:
        server = manager["sdk"]
        with pytest.raises((ServerDied, CallLost)) as caught:
            await server.invoke_tool("get-roots-list")
        assert "the server does not know the session any more" in str(caught.value)
        assert caught.value.maybe_done is False
        await eventually(lambda: server.state == "waiting")
        [first, *_] = server.incidents
        assert "does not know the session any more" in str(first)
        # What was tried is a handful of requests: two openings, and what found the session gone.
        assert len(workers.front.requests()) - before <= 12
