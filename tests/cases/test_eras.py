"""Which era a server belongs to: the decision table of the probe, with real processes.

Most tests are a row of section 1.2 of the client's checklist.
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import anyio
import pytest

from mcpclient import Manager, OpeningFailed, RestartsExhausted, Server, ServerSpec
from tests.cases import ONE_LIFE, counted, hasty, inline, refused, started
from tests.conftest import SERVERS, alive, eventually, spec

STATELESS = ("stateless", "2026-07-28")
NEWEST_HANDSHAKE = ("handshake", "2025-11-25")

# A stateless server whose first answer to the probe is up to each test.
PICKY = """
import _wire
probes = 0
for message in _wire.messages():
    if message.get("method") == "server/discover":
        probes += 1
        if probes <= {times}:
            _wire.send(_wire.error(message["id"], {code}, "not like that"))
            continue
    answer = _wire.answer_stateless(message)
    if message.get("method") == "initialize":
        answer = _wire.error(message["id"], -32603, "never send me that")
    if answer:
        _wire.send(answer)
"""


def found(server: Server) -> tuple[str | None, str | None]:
    """Return what the opening found out."""
    return server.era, server.protocol_version


async def echo(server: Server, text: str = "on") -> bool:
    """Return whether a server answers."""
    return (await server.invoke_tool("echo", {"text": text})).text == text


async def test_a_discover_result_with_our_version_opens_the_stateless_era(
    manager: Manager, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    server = await manager.add("modern", counted(pids, spec("good_stateless")))
    assert await echo(server)
    assert found(server) == STATELESS
    assert started(pids) == [server.pid]
    journal = json.loads((await server.invoke_tool("journal", {})).text)
    assert [message["method"] for message in journal] == [
        "server/discover",
        "tools/call",
        "tools/call",
    ]


async def test_a_discover_result_with_an_older_version_leads_to_that_handshake(
    manager: Manager, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    server = await manager.add("older", counted(pids, spec("discover_legacy")))
    assert await echo(server)
    assert found(server) == NEWEST_HANDSHAKE
    assert started(pids) == [server.pid]


async def test_a_discover_result_with_no_version_of_ours_fails_and_names_both_lists(
    manager: Manager,
) -> None:
    server = await manager.add("alien", spec("discover_alien"))
    failure = await refused(server)
    assert isinstance(failure, OpeningFailed)
    assert failure.final
    text = str(failure)
    assert "no common protocol version: the server speaks 2099-01-01; we speak 2024-11-05" in text
    assert "2026-07-28" in text
    assert server.generation == 1


async def test_32022_with_our_version_is_answered_by_one_more_probe(manager: Manager) -> None:
    server = await manager.add("picky", spec("discover_32022"))
    await server.start()
    assert found(server) == STATELESS
    attempts = json.loads((await server.invoke_tool("attempts", {})).text)
    assert attempts == {"server/discover": 2, "initialize": 0}


async def test_32022_twice_fails_and_never_falls_back(manager: Manager) -> None:
    server = await manager.add("stubborn", spec("discover_32022", "stubborn"))
    failure = await refused(server)
    assert isinstance(failure, OpeningFailed)
    assert failure.final
    assert "the server names 2026-07-28 as supported and refuses it" in str(failure)


async def test_32022_with_older_versions_leads_to_the_newest_common_handshake(
    manager: Manager,
) -> None:
    server = await manager.add("older", spec("discover_32022", "2024-11-05", "2025-06-18"))
    await server.start()
    assert found(server) == ("handshake", "2025-06-18")
    attempts = json.loads((await server.invoke_tool("attempts", {})).text)
    assert attempts == {"server/discover": 1, "initialize": 1}


async def test_32022_with_no_version_of_ours_fails_and_names_both_lists(manager: Manager) -> None:
    server = await manager.add("alien", spec("discover_32022", "2099-01-01", "2098-01-01"))
    failure = await refused(server)
    assert isinstance(failure, OpeningFailed)
    assert "the server speaks 2099-01-01, 2098-01-01; we speak 2024-11-05" in str(failure)


@pytest.mark.parametrize("code", [-32020, -32021])
async def test_the_other_codes_of_the_stateless_era_prove_it_too(
    manager: Manager, code: int
) -> None:
    server = await manager.add("picky", inline(PICKY.format(times=1, code=code)))
    assert await echo(server)
    assert found(server) == STATELESS
    stubborn = await manager.add("stubborn", inline(PICKY.format(times=9, code=code)))
    failure = await refused(stubborn)
    assert f"the server refused server/discover: [{code}] not like that" in str(failure)


@pytest.mark.parametrize("code", [-32601, -32602, -32600, -32000, -32004])
async def test_any_other_error_means_the_handshake_era(manager: Manager, code: int) -> None:
    answer = f"""
import _wire
for message in _wire.messages():
    if message.get("method") == "server/discover":
        _wire.send(_wire.error(message["id"], {code}, "what?", {{"supported": ["2026-07-28"]}}))
    else:
        _wire.reply(message)
"""
    server = await manager.add("old", inline(answer))
    assert await echo(server)
    assert found(server) == NEWEST_HANDSHAKE
    assert server.generation == 1


@pytest.mark.parametrize("what", ["object", "empty", "list", "null", "text", "versions"])
async def test_a_result_that_is_no_discover_result_means_the_handshake_era(
    manager: Manager, what: str
) -> None:
    server = await manager.add("odd", spec("discover_garbage", what))
    assert await echo(server)
    assert found(server) == NEWEST_HANDSHAKE
    assert server.generation == 1


async def test_silence_means_the_handshake_era_and_the_process_is_kept(
    manager: Manager, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    one = counted(pids, spec("ignores_probe", timeouts=hasty(probe=0.1)))
    server = await manager.add("deaf", one)
    assert await echo(server)
    assert found(server) == NEWEST_HANDSHAKE
    assert started(pids) == [server.pid]


async def test_after_silence_initialize_is_the_next_message_and_the_probe_is_not_cancelled(
    manager: Manager,
) -> None:
    code = """
import _wire
received = []
for message in _wire.messages():
    received.append(message["method"])
    if _wire.called(message) == "sin":
        _wire.send(_wire.text(message["id"], " ".join(received)))
    elif message["method"] != "server/discover":
        _wire.reply(message)
"""
    server = await manager.add("deaf", inline(code, timeouts=hasty(probe=0.1)))
    assert (await server.invoke_tool("sin", {})).text.split() == [
        "server/discover",
        "initialize",
        "notifications/initialized",
        "tools/call",
    ]


async def test_after_silence_32022_to_initialize_is_answered_by_one_more_probe(
    manager: Manager, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    one = counted(pids, spec("late_discover", 0.3, timeouts=hasty(probe=0.1)))
    server = await manager.add("late", one)
    await server.start()
    assert found(server) == STATELESS
    assert await echo(server)
    # The answer to the first probe comes when all is settled, and disturbs nobody.
    await eventually(lambda: server.status().in_flight == 0)
    assert await echo(server)
    status = server.status()
    assert (status.stray, status.noise) == (0, 0)
    assert started(pids) == [server.pid]


async def test_a_late_discover_result_wins_over_an_initialize_under_way(
    manager: Manager, tmp_path: Path
) -> None:
    # A slow start: both openings wait in the pipe, and are answered one after the other.
    code = """
import time
import _wire
time.sleep(1.2)
for message in _wire.messages():
    answer = _wire.answer_stateless(message)
    if message.get("method") == "initialize":
        time.sleep(1.0)
    if answer:
        _wire.send(answer)
"""
    pids = tmp_path / "pids"
    one = counted(pids, inline(code, timeouts=hasty(probe=0.1)))
    server = await manager.add("slow", one)
    await server.start()
    assert found(server) == STATELESS
    assert await echo(server)
    # The refusal of initialize came meanwhile, for a request that nobody waits for any more.
    status = server.status()
    assert (status.late, status.stray, status.noise) == (1, 0, 0)
    assert started(pids) == [server.pid]


async def test_a_late_refusal_of_the_probe_changes_nothing(manager: Manager) -> None:
    server = await manager.add("slow", spec("slow_open", 0.3, timeouts=hasty(probe=0.1)))
    await server.start()
    assert found(server) == NEWEST_HANDSHAKE
    assert await echo(server)
    status = server.status()
    assert (status.late, status.stray, status.noise) == (0, 0, 0)


async def test_a_closed_stdout_at_the_probe_is_a_death_even_if_the_process_lives(
    manager: Manager, tmp_path: Path
) -> None:
    code = """
import os, time
import _wire
opened = False
for message in _wire.messages():
    opened = opened or message.get("method") == "initialize"
    if not opened:
        os.close(1)
        time.sleep(300)
    _wire.reply(message)
"""
    pids = tmp_path / "pids"
    one = counted(pids, inline(code, timeouts=hasty(eof=0.1)))
    server = await manager.add("mute", one)
    with anyio.fail_after(10):
        await server.start()
    assert found(server) == NEWEST_HANDSHAKE
    first, second = started(pids)
    assert server.pid == second
    assert not alive(first)


async def test_a_second_death_is_the_end(manager: Manager, tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    code = "import _wire; next(_wire.messages()); raise SystemExit(4)"
    server = await manager.add("frail", counted(pids, inline(code, restart=ONE_LIFE)))
    failure = await refused(server)
    assert isinstance(failure, RestartsExhausted)
    assert "exit code 4" in str(failure)
    assert len(started(pids)) == 2


async def test_a_server_that_changed_its_era_between_two_lives_is_found_out(
    manager: Manager, tmp_path: Path
) -> None:
    pids, upgraded = tmp_path / "pids", tmp_path / "upgraded"
    script = 'echo $$ >> "$1"; if [ -e "$2" ]; then exec "$3" "$5"; else exec "$3" "$4"; fi'
    python = spec("crlf").command
    old, new = (str(SERVERS / f"good_{era}.py") for era in ("handshake", "stateless"))
    argv = ["-c", script, "sh", str(pids), str(upgraded), python, old, new]
    server = await manager.add("app", ServerSpec("/bin/sh", argv, timeouts=hasty()))
    assert await echo(server)
    assert found(server) == NEWEST_HANDSHAKE
    upgraded.touch()
    await server.restart()
    assert found(server) == STATELESS
    assert await echo(server)
    # It was offered initialize, which it refuses; then it was probed, in a fresh process.
    assert len(started(pids)) == 3
    upgraded.unlink()
    await server.restart()
    assert found(server) == NEWEST_HANDSHAKE
    assert len(started(pids)) == 4


async def test_start_tries_again_what_had_failed(manager: Manager, tmp_path: Path) -> None:
    once = {"FAKE_ONCE": str(tmp_path / "once")}
    server = await manager.add("moody", spec("fake", "init-error", env=once))
    failure = await refused(server)
    assert isinstance(failure, OpeningFailed)
    # A call does not, and gets a copy of the error: one raised twice mixes its tracebacks.
    with pytest.raises(OpeningFailed) as caught:
        await server.invoke_tool("echo", {"text": "x"})
    assert str(caught.value) == str(failure)
    assert caught.value is not failure
    assert server.generation == 1
    await server.start()
    assert server.state == "up"
    assert server.generation == 2
    assert len(server.incidents) == 1


async def test_a_start_under_way_is_joined_by_all_who_call(
    manager: Manager, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    server = await manager.add("slow", counted(pids, spec("slow_open", 0.2)))
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(echo, server)
            group.start_soon(server.start)
    assert started(pids) == [server.pid]
    assert server.generation == 1


async def test_what_a_life_found_out_is_still_told_when_it_is_over(manager: Manager) -> None:
    server = await manager.add("good", spec("good_stateless"))
    assert found(server) == (None, None)
    assert server.info == {}
    await server.start()
    info = server.info
    assert info["name"]
    assert "tools" in server.capabilities
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    await eventually(lambda: server.incidents)
    assert found(server) == STATELESS
    await server.stop()
    assert found(server) == STATELESS
    assert server.info == info
