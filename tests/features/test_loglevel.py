"""Log levels: told by a request in one era, in each request in the other; restarts keep them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from mcpclient import (
    LocalProtocolError,
    Manager,
    ReplyError,
    Server,
    ServerUnavailable,
)
from mcpclient.features.loglevel import LEVELS
from mcpclient.protocol import versions
from mcpclient.protocol.methods import SET_LEVEL
from tests.conftest import spec
from tests.features.helpers import hold, journal, puppet, refusal, result
from tests.protocol.schemas import check_sent, needs_spec

MESSAGE = "notifications/message"
KEY = "io.modelcontextprotocol/logLevel"
LOGGING: dict[str, Any] = {"tools": {}, "logging": {}}
ERAS = {"handshake": "good_handshake", "stateless": "good_stateless"}
both = pytest.mark.parametrize("era", ERAS)


class Log:
    """A server whose log messages wait until they are taken."""

    def __init__(self, manager: Manager, server: Server) -> None:
        self.server = server
        self._manager = manager
        self._heard: list[Any] = []
        manager.on_notification(MESSAGE, lambda server, params: self._heard.append(params))

    async def of(self, level: str, n: int = 1) -> list[Any]:
        """Let the server log something and return what came, once all of it is there."""
        answer = await self.server.call_tool("notify", {"log": level, "n": n})
        # What was sent before the answer has arrived before it.
        self._manager.tick()
        heard, self._heard = self._heard, []
        assert answer.text == f"sent {len(heard)}"
        return heard


@pytest.fixture
async def manager() -> AsyncIterator[Manager]:
    """A manager that delivers notifications when it is told to."""
    async with Manager(dispatch="manual") as opened:
        yield opened


async def levels(server: Server) -> list[str | None]:
    """Return the level in each request that a server received, in order."""
    requests = [one for one in await journal(server) if "id" in one]
    return [(one.get("params") or {}).get("_meta", {}).get(KEY) for one in requests]


async def orders(server: Server) -> list[Any]:
    """Return the params of each ``logging/setLevel`` that a server received."""
    return [one["params"] for one in await journal(server, SET_LEVEL)]


# -- levels --------------------------------------------------------------------------------


@both
async def test_a_server_logs_from_the_level_on(manager: Manager, era: str) -> None:
    log = Log(manager, await manager.add("s", spec(ERAS[era])))
    for place, level in enumerate(LEVELS):
        await log.server.set_log_level(level)
        for other, said in enumerate(LEVELS):
            expected = [{"level": said, "logger": "fixture", "data": {"message": 1}}]
            assert await log.of(said) == (expected if other >= place else [])


@both
async def test_a_level_that_is_none_is_refused_before_a_server_is_started(
    manager: Manager, era: str
) -> None:
    server = await manager.add("s", spec(ERAS[era]))
    for level in ("warn", "INFO", "", 3, ["info"], True):
        with pytest.raises(LocalProtocolError) as caught:
            await server.set_log_level(level)  # type: ignore[arg-type]
        assert str(caught.value) == (
            "a level is one of debug, info, notice, warning, error, critical, alert, emergency, "
            f"not {level!r}"
        )
    assert server.state == "idle"


@both
async def test_a_restarted_server_is_told_again_before_any_call(manager: Manager, era: str) -> None:
    log = Log(manager, await manager.add("s", spec(ERAS[era])))
    server = log.server
    await server.set_log_level("debug")
    with pytest.raises(Exception, match="the server died"):
        await server.call_tool("exit", {"code": 3})
    assert len(await log.of("debug", n=3)) == 3
    assert server.generation == 2
    await server.restart()
    assert len(await log.of("debug", n=2)) == 2
    assert server.generation == 3
    # The level of the later lives is no call of the user's.
    assert server.status().calls == (4 if era == "handshake" else 3)
    if era == "handshake":
        received = [one.get("method") for one in await journal(server)]
        assert received.index(SET_LEVEL) == received.index("notifications/initialized") + 1
        assert await orders(server) == [{"level": "debug"}]


# -- the handshake era ---------------------------------------------------------------------


async def test_by_itself_nothing_is_asked_for_and_messages_come_all_the_same(
    manager: Manager,
) -> None:
    log = Log(manager, await manager.add("s", spec("good_handshake")))
    assert len(await log.of("info")) == 1
    assert await log.of("debug") == []
    assert await orders(log.server) == []


@pytest.mark.parametrize("version", versions.HANDSHAKE)
async def test_one_request_tells_the_level_in_every_version(manager: Manager, version: str) -> None:
    log = Log(manager, await manager.add("s", spec("good_handshake", era=version)))
    await log.server.set_log_level("debug")
    assert len(await log.of("debug")) == 1
    assert await orders(log.server) == [{"level": "debug"}]


@needs_spec
@pytest.mark.parametrize("version", [*versions.HANDSHAKE, *versions.STATELESS])
async def test_levels_are_told_as_the_schema_of_the_version_says(
    manager: Manager, version: str
) -> None:
    name = ERAS["stateless" if version in versions.STATELESS else "handshake"]
    server = await manager.add("s", spec(name, era=version))
    for level in LEVELS:
        await server.set_log_level(level)
        await server.call_tool("echo", {"text": "a"})
    for one in await journal(server):
        check_sent(version, {"jsonrpc": "2.0", **one})


async def test_no_level_sends_nothing_and_is_not_told_to_the_next_life(manager: Manager) -> None:
    log = Log(manager, await manager.add("s", spec("good_handshake")))
    await log.server.set_log_level("error")
    await log.server.set_log_level(None)
    assert await log.of("warning") == []
    assert await orders(log.server) == [{"level": "error"}]
    await log.server.restart()
    assert len(await log.of("warning")) == 1
    assert await orders(log.server) == []


@pytest.mark.parametrize("capabilities", [{"tools": {}}, {}, None])
async def test_a_server_that_did_not_declare_logging_is_not_told(
    manager: Manager, capabilities: Any
) -> None:
    server = await manager.add("s", puppet(capabilities=capabilities))
    with pytest.raises(LocalProtocolError) as caught:
        await server.set_log_level("info")
    assert str(caught.value) == (
        'the server did not declare "logging", so it takes no level; '
        "what it writes to stderr is in stderr_tail()"
    )
    await server.set_log_level(None)
    assert await orders(server) == []


async def test_a_refused_level_is_raised_and_not_told_to_the_next_life(manager: Manager) -> None:
    script = {SET_LEVEL: [result(), refusal(-32602, "Invalid log level")]}
    server = await manager.add("s", puppet(script, capabilities=LOGGING))
    await server.set_log_level("info")
    with pytest.raises(ReplyError, match="Invalid log level") as caught:
        await server.set_log_level("debug")
    assert caught.value.method == SET_LEVEL
    await server.restart()
    await server.call_tool("echo", {"text": "after it"})
    assert await orders(server) == [{"level": "info"}]


async def test_a_later_life_that_refuses_the_level_works_all_the_same(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("s", puppet({SET_LEVEL: [result()]}, capabilities=LOGGING))
    await server.set_log_level("info")
    await manager.reload({"s": puppet({SET_LEVEL: [refusal(-32603)]}, capabilities=LOGGING)})
    assert manager["s"] is server
    assert (await server.call_tool("echo", {"text": "here"})).text == "here"
    assert await orders(server) == [{"level": "info"}]
    # An answer that has neither a result nor an error.
    await manager.reload({"s": puppet({SET_LEVEL: [{}]}, capabilities=LOGGING)})
    assert (await server.call_tool("echo", {"text": "here"})).text == "here"
    await manager.reload({"s": puppet(capabilities={"tools": {}})})
    assert (await server.call_tool("echo", {"text": "here"})).text == "here"
    assert await orders(server) == []
    said = [one.getMessage() for one in caplog.records if "log level" in one.getMessage()]
    assert said == [
        's#2 ! does not take the log level: [-32603] no (logging/setLevel on "s")',
        's#3 ! does not take the log level: logging/setLevel on "s": '
        "the answer has neither a result nor an error",
        's#4 ! does not take the log level: the server did not declare "logging", so it takes no '
        "level; what it writes to stderr is in stderr_tail()",
    ]
    assert server.state == "up"


# -- the stateless era ---------------------------------------------------------------------


async def test_without_a_level_no_request_asks_for_logs(manager: Manager) -> None:
    log = Log(manager, await manager.add("s", spec("good_stateless")))
    assert await log.of("emergency") == []
    assert set(await levels(log.server)) == {None}


async def test_each_later_request_carries_the_level_until_it_is_taken_back(
    manager: Manager,
) -> None:
    log = Log(manager, await manager.add("s", spec("good_stateless")))
    server = log.server
    await server.call_tool("echo", {"text": "before"})
    await server.set_log_level("warning")
    await server.list_tools(cache="bypass")
    await server.read_resource("test://a", cache="bypass")
    await server.get_prompt("plain")
    await server.complete("greet", "name", "")
    assert len(await log.of("warning")) == 1
    await server.set_log_level("alert")
    await server.request("tools/list", {"_meta": {"com.example/x": 1}})
    await server.set_log_level(None)
    assert await log.of("emergency") == []
    # The probe, the echo; five requests; one; two, the journal among them.
    assert await levels(server) == [None] * 2 + ["warning"] * 5 + ["alert"] + [None] * 2
    assert await orders(server) == []


async def test_a_requests_own_level_wins_over_the_servers(manager: Manager) -> None:
    log = Log(manager, await manager.add("s", spec("good_stateless")))
    await log.server.set_log_level("emergency")
    own = {"_meta": {KEY: "debug", "io.modelcontextprotocol/protocolVersion": "1999-01-01"}}
    await log.server.request("tools/list", own)
    await log.server.request("tools/list", {"_meta": {"com.example/x": 1}})
    [first, second] = [one["params"]["_meta"] for one in await journal(log.server, "tools/list")]
    assert first[KEY] == "debug"
    assert first["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
    assert second[KEY] == "emergency"
    assert second["com.example/x"] == 1


async def test_the_level_of_one_server_is_no_other_servers(manager: Manager) -> None:
    loud = await manager.add("loud", spec("good_stateless"))
    quiet = await manager.add("quiet", spec("good_stateless"))
    await loud.set_log_level("debug")
    await quiet.call_tool("echo", {"text": "a"})
    assert set(await levels(quiet)) == {None}
    assert (await levels(loud))[-1] == "debug"


# -- like every verb -----------------------------------------------------------------------


@both
async def test_impatient_verbs_refuse_unless_it_is_up_and_share_the_level(
    manager: Manager, era: str
) -> None:
    log = Log(manager, await manager.add("s", spec(ERAS[era])))
    with pytest.raises(ServerUnavailable, match="it is not up but idle"):
        await log.server.no_wait.set_log_level("debug")
    await log.server.start()
    await log.server.no_wait.set_log_level("debug")
    await log.server.restart()
    assert len(await log.of("debug")) == 1


async def test_a_level_that_is_not_answered_in_time_is_not_kept(manager: Manager) -> None:
    server = await manager.add("s", puppet(capabilities=LOGGING))
    await hold(server, SET_LEVEL)
    with pytest.raises(TimeoutError, match="logging/setLevel"):
        await server.set_log_level("debug", timeout=0.05)
    await server.restart()
    await server.call_tool("echo", {"text": "after it"})
    assert await orders(server) == []
