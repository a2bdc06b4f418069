"""The kind handshake of the field reports: what may go wrong before a server is up."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallTimedOut,
    Exit,
    Manager,
    OpeningFailed,
    RestartsExhausted,
    ServerSpec,
    SpawnFailed,
)
from tests.cases import ONE_LIFE, case, counted, hasty, inline, refused, started
from tests.conftest import alive, eventually, spec


@case("B51")
async def test_what_comes_before_the_initialize_reply_aborts_nothing_and_is_delivered(
    manager: Manager,
) -> None:
    told: list[tuple[str, Any]] = []
    for method in (
        "notifications/tools/list_changed",
        "notifications/message",
        "window/logMessage",
    ):

        def take(server: object, params: Any, method: str = method) -> None:
            told.append((method, params))

        manager.on_notification(method, take)
    server = await manager.add("early", spec("early_notices"))
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    await eventually(lambda: len(told) == 3)
    assert told == [
        ("notifications/tools/list_changed", {}),
        ("notifications/message", {"level": "info", "data": "starting"}),
        ("window/logMessage", {"type": 3, "message": "no such method here"}),
    ]
    assert server.status().noise == 1
    assert (server.era, server.protocol_version) == ("handshake", "2025-11-25")


@case("B53")
@pytest.mark.parametrize(
    ("name", "named"),
    [("version_2099", "2099-01-01"), ("version_missing", "None"), ("version_number", "2025")],
)
async def test_a_version_we_do_not_have_ends_the_opening_and_is_named(
    manager: Manager, tmp_path: Path, name: str, named: str
) -> None:
    pids = tmp_path / "pids"
    server = await manager.add("future", counted(pids, spec(name)))
    failure = await refused(server)
    assert isinstance(failure, OpeningFailed)
    assert failure.final
    assert failure.server == "future"
    assert f"the server wants protocol version {named}" in str(failure)
    assert "offered was 2025-11-25, possible are 2024-11-05, 2025-03-26" in str(failure)
    # It was closed, and not tried again.
    [pid] = started(pids)
    assert not alive(pid)
    assert server.status().restarts == 0
    assert len(server.incidents) == 1
    assert server.incidents[0].phase == "opening"


@case("B53")
async def test_a_server_without_our_versions_is_asked_to_end_and_not_killed(
    manager: Manager, tmp_path: Path
) -> None:
    code = f"""
import _wire
for message in _wire.messages():
    answer = _wire.answer(message)
    if message["method"] == "initialize":
        answer["result"]["protocolVersion"] = "1999-12-31"
    _wire.send(answer)
open({str(tmp_path / "ended")!r}, "w").close()
"""
    server = await manager.add("past", inline(code, timeouts=hasty(eof=10)))
    assert "1999-12-31" in str(await refused(server))
    assert (tmp_path / "ended").exists()


@case("B54")
@pytest.mark.parametrize("key", ["expected", "supported"])
async def test_a_refused_version_is_replaced_once_by_the_one_the_server_names(
    manager: Manager, key: str
) -> None:
    server = await manager.add("choosy", spec("init_expected", "2024-11-05", key))
    await server.start()
    assert server.protocol_version == "2024-11-05"
    assert (await server.invoke_tool("attempts", {})).text == "2"


@case("B54")
async def test_a_refusal_that_names_no_version_of_ours_is_surfaced(manager: Manager) -> None:
    server = await manager.add("choosy", spec("init_expected", "2099-01-01"))
    failure = await refused(server)
    assert isinstance(failure, OpeningFailed)
    assert failure.final
    assert "the server refused initialize for 2025-11-25: [-32602]" in str(failure)
    assert "Unsupported protocol version (it speaks 2099-01-01)" in str(failure)


@case("B54")
async def test_refusals_are_never_answered_in_a_loop(manager: Manager, tmp_path: Path) -> None:
    # It names another version of ours each time, and takes none.
    log = tmp_path / "offers"
    code = f"""
import _wire
for message in _wire.messages():
    if message["method"] == "initialize":
        offer = message["params"]["protocolVersion"]
        with open({str(log)!r}, "a") as file:
            print(offer, file=file)
        other = "2025-06-18" if offer != "2025-06-18" else "2024-11-05"
        _wire.send(_wire.error(message["id"], -32602, "not that one", {{"expected": other}}))
    else:
        _wire.reply(message)
"""
    server = await manager.add("never", inline(code))
    failure = await refused(server)
    assert "refused initialize for 2025-06-18: [-32602] not that one" in str(failure)
    assert log.read_text().split() == ["2025-11-25", "2025-06-18"]


@case("B56")
async def test_a_missing_script_fails_fast_and_tells_what_the_interpreter_said(
    manager: Manager,
) -> None:
    one = ServerSpec(sys.executable, ["missing.py"], restart=ONE_LIFE, timeouts=hasty())
    server = await manager.add("typo", one)
    with anyio.fail_after(10):
        failure = await refused(server, timeout=60)
    assert isinstance(failure, RestartsExhausted)
    [incident] = failure.incidents
    assert incident.exit == Exit(code=2)
    assert "missing.py" in incident.stderr_tail
    assert "exit code 2" in str(failure)
    assert "No such file or directory" in str(failure)


@case("B56")
async def test_a_missing_command_fails_before_anything_is_started(manager: Manager) -> None:
    server = await manager.add("typo", ServerSpec("no-such-command-anywhere"))
    failure = await refused(server)
    assert isinstance(failure, SpawnFailed)
    assert failure.command == "no-such-command-anywhere"
    assert "'no-such-command-anywhere' was not found on PATH" in str(failure)


@case("B57")
async def test_an_exit_right_after_the_start_is_told_with_code_and_stderr(
    manager: Manager, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    server = await manager.add("ends", counted(pids, spec("exit_3", restart=ONE_LIFE)))
    with anyio.fail_after(10):
        failure = await refused(server, timeout=60)
    assert isinstance(failure, RestartsExhausted)
    [incident] = failure.incidents
    assert incident.exit == Exit(code=3)
    assert incident.stderr_tail == "cannot start: the database is missing\n"
    text = str(failure)
    assert "the server ended while it was opened (exit code 3)" in text
    assert text.count("cannot start: the database is missing") == 1
    assert text.count('"ends"') == 1
    assert server.stderr_tail() == "cannot start: the database is missing\n"
    # It might have died of the probe, so it was given a second chance, and no third.
    assert len(started(pids)) == 2


@case("B57")
async def test_a_call_that_waits_for_the_start_is_told_of_the_exit_too(manager: Manager) -> None:
    server = await manager.add("ends", spec("exit_3", restart=ONE_LIFE))
    with pytest.raises(RestartsExhausted, match="the database is missing"):
        await server.invoke_tool("echo", {"text": "x"})
    # Nothing is started again for the next call: it failed for good.
    with pytest.raises(RestartsExhausted, match="the database is missing"):
        await server.invoke_tool("echo", {"text": "x"})
    assert server.generation == 1


@case("B59")
async def test_a_server_may_take_the_time_its_user_gave_it(manager: Manager) -> None:
    patient = spec("slow_open", 0.3, timeouts=hasty(open=10, probe=0.1))
    server = await manager.add("slow", patient)
    await server.start()
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert (server.generation, server.era) == (1, "handshake")


@case("B59")
async def test_a_server_over_its_time_has_a_state_and_a_reason(manager: Manager) -> None:
    hurried = spec("slow_open", 5, timeouts=hasty(open=0.2, eof=0.1), restart=ONE_LIFE)
    server = await manager.add("slow", hurried)
    failure = await refused(server)
    assert "the server did not open within 200 ms (Timeouts.open" in str(failure)
    [status] = manager.status().servers
    assert status.state == "failed"
    assert "did not open within 200 ms" in status.last_incident
    assert "did not open within 200 ms" in str(manager.status())


@case("B60")
async def test_one_slow_start_delays_no_other_server(manager: Manager, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = f"""
import os, time
import _wire
while not os.path.exists({str(ready)!r}):
    time.sleep(0.01)
for message in _wire.messages():
    _wire.reply(message)
"""
    slow = await manager.add("slow", inline(code, start="eager"))
    names = [f"fast{number}" for number in range(5)]
    answers = {}
    for name in names:
        server = await manager.add(name, spec("crlf"))
        answers[name] = (await server.invoke_tool("echo", {"text": name})).text
    assert answers == {name: name for name in names}
    assert slow.state in ("starting", "opening")
    ready.touch()
    assert (await slow.invoke_tool("echo", {"text": "late"})).text == "late"
    assert slow.generation == 1


@case("B60")
async def test_a_call_that_times_out_does_not_abort_the_start_it_waits_for(
    manager: Manager,
) -> None:
    server = await manager.add("slow", spec("slow_open", 0.3))
    with pytest.raises(CallTimedOut) as caught:
        await server.invoke_tool("echo", {"text": "x"}, timeout=0.1)
    assert not caught.value.maybe_done
    assert "the server was not up within 100 ms (it is " in str(caught.value)
    pid = await eventually(lambda: server.pid)
    await server.wait_ready(timeout=10)
    assert (server.pid, server.generation) == (pid, 1)


@case("B62")
async def test_a_server_that_dies_of_the_probe_is_opened_in_a_fresh_process(
    manager: Manager, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    server = await manager.add("touchy", counted(pids, spec("dies_on_probe")))
    await server.start()
    assert (server.generation, server.era) == (1, "handshake")
    assert server.incidents == []
    first, second = started(pids)
    assert server.pid == second
    assert not alive(first)
    # The era is remembered: the next life needs one process.
    os.kill(second, signal.SIGKILL)
    await eventually(lambda: server.generation == 2 and server.state == "up")
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert started(pids)[2:] == [server.pid]
    # Also after a stop, and for good.
    await server.restart()
    assert started(pids)[3:] == [server.pid]
    assert server.generation == 3


@case("B62")
async def test_an_exit_with_code_0_on_the_probe_is_a_death_too(
    manager: Manager, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    server = await manager.add("touchy", counted(pids, spec("dies_on_probe", 0)))
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert len(started(pids)) == 2


@case("B63", "B65")
async def test_a_server_that_ignores_the_probe_is_opened_in_the_same_process(
    manager: Manager, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    one = counted(pids, spec("ignores_probe", timeouts=hasty(probe=0.1)))
    server = await manager.add("deaf", one)
    with anyio.fail_after(10):
        await server.start()
    assert (server.era, server.protocol_version) == ("handshake", "2025-11-25")
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert started(pids) == [server.pid]
    assert server.stderr_tail() == "unknown method: server/discover\n"
    # The second life is not probed.
    await server.restart()
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert server.stderr_tail() == ""
    status = server.status()
    assert (status.late, status.stray, status.noise) == (0, 0, 0)


@case("B66")
@pytest.mark.parametrize("size", [8 * 1024, 128 * 1024, 256 * 1024])
async def test_a_server_that_fills_its_stderr_at_the_probe_opens_all_the_same(
    manager: Manager, size: int
) -> None:
    server = await manager.add("loud", spec("stderr_on_probe", size))
    with anyio.fail_after(10):
        await server.start(timeout=60)
    assert server.generation == 1
    await eventually(lambda: len(server.stderr_tail()) == min(size, 64 * 1024))
    assert "unknown method server/discover" in server.stderr_tail()
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"


@case("B69", "B65")
async def test_a_silent_server_fails_with_its_command_the_time_and_what_it_said_aside(
    manager: Manager, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pids = tmp_path / "pids"
    one = counted(pids, spec("silent", timeouts=hasty(probe=0.1, open=2.0), restart=ONE_LIFE))
    server = await manager.add("silent", one)
    with caplog.at_level(logging.WARNING, "mcpclient"):
        failure = await refused(server)
    assert isinstance(failure, RestartsExhausted)
    text = str(failure)
    assert "the server did not open within 2 s (Timeouts.open" in text
    assert "its command is '/bin/sh'" in text
    assert "(stderr: error: the API key is missing)" in text
    # The log tells it too, and initialize was tried in the one process there was.
    assert "the API key is missing" in caplog.text
    assert len(started(pids)) == 1


@case("B69")
async def test_a_time_out_of_a_call_tells_what_the_server_said_on_stderr(
    manager: Manager,
) -> None:
    code = """
import os, _wire
for message in _wire.messages():
    if _wire.called(message) == "sin":
        _wire.write(b"loading the index ...\\n")
        os.write(2, b"warning: the upstream is slow\\n")
    else:
        _wire.reply(message)
"""
    server = await manager.add("slow", inline(code))
    await server.start()
    with pytest.raises(CallTimedOut) as caught:
        await server.invoke_tool("sin", {}, timeout=1.5)
    text = str(caught.value)
    assert text.startswith('tools/call on "slow": no answer within 1.5 s')
    assert "not a message of the protocol: 'loading the index ...'" in text
    assert "(stderr: warning: the upstream is slow)" in text
