"""Sessions over HTTP and in stores: requests that got no answer, and stores that fail."""

from __future__ import annotations

import contextlib
import http.client
import logging
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import msgspec
import pytest

from mcpclient.serverkit import (
    Bearer,
    Frame,
    HttpLimits,
    Identity,
    MemoryStore,
    Server,
    SqliteStore,
    asgi,
)
from tests.serverkit.talking import HANDSHAKE, Talk, opening
from tests.serverkit.test_asgi_posts import Runs, made
from tests.serverkit.test_asgi_sessions import asking, text_of
from tests.serverkit.web import META, Web


async def test_a_request_of_the_other_era_leaves_nothing_behind_in_the_session_it_names() -> None:
    server = made()
    async with Web(asgi(server)) as web:
        visitor = await web.open("2025-03-26")
        session = server.sessions[visitor.id or ""]
        one = visitor.send(
            {"jsonrpc": "2.0", "id": 77, "method": "tools/list", "params": {"_meta": META}},
            headers={"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"},
        )
        await one.ended()
        bare = {"jsonrpc": "2.0", "id": 77, "method": "tools/list", "params": {"_meta": META}}
        await visitor.send(bare).ended()
        assert session._announced == set()
        # So what gives it up gives up nothing, and the next request of that id has its answer.
        told = await visitor.notify("notifications/cancelled", {"requestId": 77}).ended()
        assert told.status == 202
        again = visitor.send({"jsonrpc": "2.0", "id": 77, "method": "ping"})
        assert (await again.answer("ping", "2025-03-26"))["result"] == {}


async def test_a_tool_that_exits_has_an_answer_over_http_and_the_server_goes_on() -> None:
    server = Server("leaving", "1")

    @server.tool
    async def leave() -> str:
        raise SystemExit(1)

    async with Web(asgi(server)) as web:
        found = await web.tool("leave").answer("tools/call")
        assert found["result"]["isError"] is True
        visitor = await web.open()
        found = await visitor.tool("leave").answer("tools/call", HANDSHAKE)
        assert found["result"]["isError"] is True
    async with Web(asgi(server, profile="gateway")) as web:
        body = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"leave"}}'
        one = await web.request(body=body)
        assert one.status == 200
        assert one.json()["result"]["content"][0]["text"].startswith("leave: the handler raised")


async def test_the_session_of_one_person_is_none_of_anothers_whatever_they_call_themselves() -> (
    None
):
    def check(token: str) -> Identity:
        return Identity(token)

    server = made()
    async with Web(asgi(server, auth=Bearer(check=check))) as web:
        visitor = await web.open(headers={"authorization": "Bearer ann"})
        for other in ("bob", "ann:", "ann:x", "an", "", "ann "):
            given = f"Bearer {other or '?'}"
            status = (await visitor.post("ping", headers={"authorization": given}).ended()).status
            assert status == (200 if other == "ann " else 404), other
        name = visitor.id
        visitor.id = f"ann:{name}"
        assert (
            await visitor.post("ping", headers={"authorization": "Bearer bob"}).ended()
        ).status == 404


class Broken(MemoryStore):
    """A store that fails when it is told to."""

    failing = ""

    async def save(self, id: str, state: dict[str, Any]) -> None:
        """Fail, or keep it."""
        if "save" in self.failing:
            raise OSError("no space left on device")
        await super().save(id, state)

    async def load(self, id: str) -> dict[str, Any] | None:
        """Fail, or return it."""
        if "load" in self.failing:
            raise OSError("the file is locked")
        return await super().load(id)

    async def delete(self, id: str) -> None:
        """Fail, or forget it."""
        if "delete" in self.failing:
            raise OSError("the file is locked")
        await super().delete(id)


async def test_a_full_disk_takes_no_result_away(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)
    store = Broken()
    async with Web(asgi(asking(store=store))) as web:
        store.failing = "save"
        visitor = await web.open()
        assert await text_of(visitor.tool("remember", {"word": "one"})) == "nothing"
        # It goes on in this process; and as soon as there is room it is kept.
        assert await text_of(visitor.tool("remember", {"word": "two"})) == "one"
        assert await store.active() == []
        store.failing = ""
        assert await text_of(visitor.tool("remember", {"word": "three"})) == "two"
        assert await store.active() == [visitor.id]


async def test_a_locked_store_is_told_as_busy_only_where_it_must_be_asked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.CRITICAL)
    store = Broken()
    async with Web(asgi(asking(store=store))) as web:
        visitor = await web.open()
        store.failing = "load delete"
        assert (await visitor.post("ping").answer("ping", HANDSHAKE))["result"] == {}
        one = await visitor.delete().ended()
        assert one.status == 503
        assert one.json()["error"]["message"] == "Busy: the session cannot be forgotten now"
        # It is over here, and whether it is elsewhere cannot be known.
        one = await visitor.post("ping").ended()
        assert one.status == 503
        assert one.json()["error"]["message"] == "Busy: the session cannot be looked up now"


async def test_a_session_that_another_worker_ended_is_not_brought_back_by_what_still_runs() -> None:
    store = MemoryStore()
    runs = Runs()
    async with Web(asgi(made(runs, store=store))) as here, Web(asgi(made(store=store))) as there:
        visitor = await here.open()
        running = visitor.tool("wait")
        await runs.begun.wait()
        visitor._web = there
        assert (await visitor.delete().ended()).status == 204
        runs.go.set()
        await running.ended()
        assert await store.active() == []
        visitor._web = here
        assert (await visitor.post("ping").ended()).status == 404


async def test_requests_that_come_together_find_one_session_and_not_two() -> None:
    class Slow(MemoryStore):
        async def load(self, id: str) -> dict[str, Any] | None:
            await anyio.lowlevel.checkpoint()
            return await super().load(id)

    store = Slow()
    async with Talk(made(store=store), id="s") as talk:
        await talk.result("ping")
    server = made(store=store)
    found: list[Any] = []

    async def resume() -> None:
        found.append(await server.resume("s"))

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(resume)
    assert found[0] is not None
    assert all(one is found[0] for one in found)
    server.close()


async def test_a_session_that_was_accepted_and_not_kept_yet_is_not_over_for_the_next_request() -> (
    None
):
    server = made(store=MemoryStore())

    @server.hook
    async def session_expired(id: str, peer: Any) -> str:
        return "accept"

    first = await server.resume("s")
    assert first is not None
    assert await server.resume("s") is first
    assert not first.closed
    server.close()


# -- the file ----------------------------------------------------------------------------------


async def test_a_file_that_another_process_writes_to_is_read_at_once(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    await store.save("a", {"x": 1})
    other = sqlite3.connect(tmp_path / "s.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        assert await store.load("a") == {"x": 1}
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            await store.save("a", {"x": 2})
        other.execute("ROLLBACK")
        await store.save("a", {"x": 2})
        assert await store.load("a") == {"x": 2}
    finally:
        other.close()
        store.close()


async def test_names_of_sessions_are_read_by_their_owner_alone(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    await store.save("a", {})
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600, path.name
    store.close()
    in_memory = SqliteStore(":memory:")
    await in_memory.save("a", {})
    assert await in_memory.active() == ["a"]
    in_memory.close()


def test_a_store_may_be_made_in_one_thread_and_used_in_another(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    found: list[Any] = []

    async def use() -> None:
        await store.save("a", {"x": 1})
        found.append(await store.load("a"))

    thread = threading.Thread(target=lambda: anyio.run(use))
    thread.start()
    thread.join()
    store.close()
    assert found == [{"x": 1}]


@pytest.mark.parametrize("name", ["'; DROP TABLE sessions; --", '"', "%", "_", "\x00", "ü" * 300])
async def test_a_name_is_a_name_and_no_sql(tmp_path: Path, name: str) -> None:
    store = SqliteStore(tmp_path / "s.db")
    await store.save("a", {"x": 1})
    await store.save(name, {"x": 2})
    assert await store.load(name) == {"x": 2}
    await store.delete(name)
    assert await store.active() == ["a"]
    store.close()


async def test_what_one_frame_keeps_another_session_does_not_see_nor_its_events() -> None:
    server = asking()
    async with Web(asgi(server)) as web:
        one, two = await web.open(), await web.open()
        assert await text_of(one.tool("remember", {"word": "secret"})) == "nothing"
        assert await text_of(two.tool("remember", {"word": "x"})) == "nothing"
        # An event of one session is none of the other's.
        stream = await one.get().began()
        first = await stream.event()
        refused = await two.get(last=first["id"].replace("-1", "-9")).ended()
        assert refused.status == 400


async def test_kept_sessions_that_come_back_are_no_more_than_may_be_open() -> None:
    store = MemoryStore()
    limits = HttpLimits(sessions=3)
    names = []
    async with Web(asgi(asking(store=store), limits=limits)) as web:
        for _ in range(8):
            names.append(await web.open())
        assert len(web.app.server.sessions) == 3
        assert len(await store.active()) == 8
        for visitor in names:
            # Each goes on where it was, in the place of one that is idle.
            assert await text_of(visitor.tool("remember", {"word": "x"})) == "nothing"
            assert len(web.app.server.sessions) == 3
        streams = [await visitor.get().began() for visitor in names[-3:]]
        assert [one.status for one in streams] == [200] * 3
        refused = await names[0].post("ping").ended()
        assert refused.status == 503
        assert len(web.app.server.sessions) == 3


async def test_an_opening_that_failed_may_be_tried_again() -> None:
    server = made()
    problems = [RuntimeError("not yet")]

    @server.hook
    async def init(client_info: dict[str, Any], frame: Frame) -> None:
        if problems:
            raise problems.pop()

    talk = Talk(server)
    error = await talk.error("initialize", opening())
    assert error["code"] == -32603
    assert (await talk.error("tools/list"))["message"] == "Server not initialized"
    assert (await talk.result("initialize", opening()))["protocolVersion"] == HANDSHAKE
    talk.session.close()


def test_ctrl_c_ends_a_server_whose_tool_does_not(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn", reason="serving alone needs uvicorn")
    program = tmp_path / "blocked.py"
    program.write_text(
        "import time\n"
        "from mcpclient.serverkit import Server\n"
        "from mcpclient.serverkit.http import serve_http\n"
        "server = Server('blocked', '1')\n"
        "@server.tool\n"
        "def block() -> str:\n"
        "    print('blocks', flush=True)\n"
        "    time.sleep(300)\n"
        "    return ''\n"
        "serve_http(server, profile='gateway', ready=lambda url: print(url, flush=True))\n"
    )
    with subprocess.Popen(
        [sys.executable, str(program)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().strip().split(":")[2].partition("/")[0])
            call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "block"}}
            with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port)) as connection:
                connection.request("POST", "/mcp", msgspec.json.encode(call))
                assert process.stdout.readline() == "blocks\n"
                process.send_signal(signal.SIGINT)
                assert process.wait(30) == 130
        finally:
            process.kill()
