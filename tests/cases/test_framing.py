"""The kind framing of the field reports: what stands on stdout and is no plain message."""

from __future__ import annotations

import json
import logging
import os
import signal
from pathlib import Path

import anyio
import pytest

from mcpclient import (
    Limits,
    LocalProtocolError,
    Manager,
    OpeningFailed,
    RemoteProtocolError,
    ServerDied,
)
from tests.cases import ONE_LIFE, case, hasty, inline, refused
from tests.conftest import eventually, spec

# Whatever some reader takes for the end of a line, a byte order mark, and text of four bytes.
ODD_TEXT = "\ufeffa\u2028b\u2029c\x85d\x0be\x0cf\x1cg\x1dh\x1ei\r\nj\tk — ü 日本 \U0001f600\ufeff"


@case("B01", "B30")
async def test_log_lines_on_stdout_are_skipped_counted_and_sampled(manager: Manager) -> None:
    server = await manager.add("chatty", spec("log_lines", limits=Limits(noise=100)))
    assert (await server.invoke_tool("echo", {"text": "hello"})).text == "hello"
    # One before each of the three answers, two more before that to initialize.
    assert server.status().noise == 5
    assert (server.state, server.generation) == ("up", 1)
    pid = server.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: server.incidents)
    sample = server.incidents[0].noise
    assert sample.startswith("[info] handling server/discover\ndocs service ready\nlevel=info")
    assert len(sample) <= 100
    # The number is over all lives; the second was not probed again.
    await eventually(lambda: server.state == "up")
    assert server.status().noise == 5 + 3


@case("B30")
async def test_a_time_out_of_the_opening_shows_the_noise_and_the_stderr(manager: Manager) -> None:
    code = r"""
import os
os.write(1, b"level=info msg=mem.init budget_mb=1\n")
os.write(2, b"waiting for the licence server\n")
while os.read(0, 65536): pass
"""
    timeouts = hasty(probe=0.1, open=2.0)
    server = await manager.add("mute", inline(code, timeouts=timeouts, restart=ONE_LIFE))
    text = str(await refused(server))
    assert "the server did not open within 2 s (Timeouts.open" in text
    assert "level=info msg=mem.init budget_mb=1" in text
    assert "stderr: waiting for the licence server" in text
    assert server.incidents[0].noise == "level=info msg=mem.init budget_mb=1"
    assert server.incidents[0].stderr_tail == "waiting for the licence server\n"
    assert server.stderr_tail() == "waiting for the licence server\n"


@case("B03")
async def test_terminal_escapes_before_a_frame_are_taken_off(manager: Manager) -> None:
    server = await manager.add("titled", spec("osc_title"))
    # The first two answers have an OSC and nothing; these go twice through all five.
    for number in range(10):
        assert (await server.invoke_tool("echo", {"text": f"{number}"})).text == f"{number}"
    assert server.status().noise == 0


@case("B04")
async def test_coloured_log_lines_neither_flood_the_log_nor_colour_it(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("coloured", spec("ansi_colour"))
    with caplog.at_level(logging.DEBUG, "mcpclient"):
        assert (await server.invoke_tool("sin", {"n": 2500})).text == "coloured"
    assert server.status().noise == 2 + 2500
    lines = [r.getMessage() for r in caplog.records if "not a message" in r.getMessage()]
    assert len(lines) == 12  # the first ten, the 1000th and the 2000th
    assert lines[0].endswith(r"not a message (1 so far): [2026-11-29] [INFO] connected\x1b[0m")
    assert not any("\x1b" in record.getMessage() for record in caplog.records)


@case("B06")
@pytest.mark.parametrize("how", ["whole", "split"])
async def test_a_byte_order_mark_before_a_frame_is_dropped(manager: Manager, how: str) -> None:
    server = await manager.add("marked", spec("bom", how))
    assert (await server.invoke_tool("echo", {"text": "\ufeffin\ufeff"})).text == "\ufeffin\ufeff"
    assert [tool.name for tool in await server.list_tools()] == ["echo", "sin"]
    assert server.status().noise == 0


@case("B07")
async def test_a_frame_may_end_in_cr_lf(manager: Manager) -> None:
    server = await manager.add("crlf", spec("crlf"))
    assert (await server.invoke_tool("echo", {"text": "a\r\nb"})).text == "a\r\nb"
    assert server.status().noise == 0


@case("B06", "B09")
async def test_only_lf_ends_a_line_whatever_else_looks_like_a_break(manager: Manager) -> None:
    server = await manager.add("separated", spec("line_separators"))
    text = (await server.invoke_tool("sin", {})).text
    assert text == "a\u2028b\u2029c\u0085d\x0be\x0cf\x1cg\x1dh\x1ei"
    # Raw as well; with a byte order mark inside the string, which stays.
    assert (await server.invoke_tool("echo", {"text": ODD_TEXT})).text == ODD_TEXT
    assert server.status().noise == 0


@case("B10")
async def test_what_we_send_is_ascii_and_one_line_for_any_reader(manager: Manager) -> None:
    server = await manager.add("reader", spec("echo_ascii"))
    seen = (await server.invoke_tool("sin", {"s": ODD_TEXT, ODD_TEXT: [ODD_TEXT]})).text
    assert json.loads(seen) == {"ascii": True, "physical_lines": 1}
    assert (await server.invoke_tool("echo", {"text": ODD_TEXT})).text == ODD_TEXT


@case("B12")
async def test_a_byte_that_is_no_utf8_is_replaced_and_the_rest_delivered(manager: Manager) -> None:
    server = await manager.add("windows", spec("cp1252"))
    result = await server.invoke_tool("sin", {})
    assert result.text == "it\ufffds broken"
    assert result.raw == {"content": [{"type": "text", "text": "it\ufffds broken"}]}
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert server.generation == 1


@case("B13")
async def test_characters_that_arrive_in_pieces_are_whole(manager: Manager) -> None:
    server = await manager.add("dripping", spec("byte_by_byte"))
    assert (await server.invoke_tool("sin", {})).text == "em dash — and emoji \U0001f600"
    assert (await server.invoke_tool("echo", {"text": "ü\u20ac\U0001f600"})).text == "ü€\U0001f600"
    assert server.status().noise == 0


@case("B15")
async def test_several_frames_in_one_write_are_all_taken(manager: Manager) -> None:
    changed: list[str] = []
    manager.on_notification(
        "notifications/tools/list_changed", lambda server, params: changed.append(server.name)
    )
    server = await manager.add("bursts", spec("two_in_one"))
    for number in range(3):
        assert (await server.invoke_tool("echo", {"text": f"{number}"})).text == f"{number}"
    await eventually(lambda: changed)
    assert set(changed) == {"bursts"}


@case("B15")
async def test_a_burst_of_frames_is_taken_whole_and_in_order(manager: Manager) -> None:
    code = """
import _wire
for message in _wire.messages():
    answer = _wire.answer(message)
    if answer:
        notices = [_wire.notification("notifications/message", {"data": n}) for n in range(50)]
        _wire.write(b"".join(map(_wire.line, [*notices[:25], answer, *notices[25:]])))
"""
    told: list[int] = []
    manager.on_notification("notifications/message", lambda _, params: told.append(params["data"]))
    server = await manager.add("bursts", inline(code))
    assert (await server.invoke_tool("echo", {"text": "amid"})).text == "amid"
    # With each of the three answers.
    await eventually(lambda: len(told) >= 150)
    assert told == [*range(50)] * 3


@case("B16")
async def test_a_line_whose_handling_raises_costs_no_other_line(manager: Manager) -> None:
    class Broken(logging.Handler):
        """A handler of the host's that raises where most only complain on stderr."""

        raised = 0

        def emit(self, record: logging.LogRecord) -> None:
            if "not a message" in record.getMessage():
                self.raised += 1
                raise RuntimeError("the disk of the log is full")

    code = """
import _wire
for message in _wire.messages():
    answer = _wire.answer(message)
    if answer:
        _wire.write(b"noise\\n" + _wire.line(answer))
"""
    broken = Broken()
    logger = logging.getLogger("mcpclient")
    logger.addHandler(broken)
    try:
        server = await manager.add("noisy", inline(code, timeouts=hasty(open=5, call=5)))
        assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
        assert (await server.invoke_tool("echo", {"text": "and on"})).text == "and on"
    finally:
        logger.removeHandler(broken)
    assert broken.raised == 4
    assert server.status().noise == 4


@case("B16")
async def test_a_server_that_can_say_nothing_any_more_does_not_look_connected(
    manager: Manager,
) -> None:
    one = spec("stdout_closed", timeouts=hasty(eof=0.1))
    server = await manager.add("mute", one)
    await server.start()
    first = server.pid
    with pytest.raises(ServerDied) as caught:
        await server.invoke_tool("sin", {})
    assert caught.value.maybe_done
    assert (await server.invoke_tool("echo", {"text": "again"})).text == "again"
    assert server.pid != first
    assert server.generation == 2


@case("B24")
async def test_blank_lines_are_skipped_silently_and_trace_lines_are_noise(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("traced", spec("blank_lines"))
    with caplog.at_level(logging.WARNING, "mcpclient"):
        assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"
    assert server.status().noise == 3
    assert len(caplog.records) == 3
    assert all(record.getMessage().endswith("+ set -x") for record in caplog.records)


@case("B25")
@pytest.mark.parametrize("era", ["auto", "handshake"])
async def test_lsp_framing_is_told_at_once(manager: Manager, era: str) -> None:
    server = await manager.add("lsp", spec("lsp_framing", era=era))
    with anyio.fail_after(10):
        failure = await refused(server, timeout=60)
    assert isinstance(failure, OpeningFailed)
    assert failure.final
    assert "LSP framing: the server writes Content-Length headers" in str(failure)
    assert server.generation == 1


@case("B25", "B01")
async def test_a_header_in_the_log_of_an_open_server_is_only_noise(manager: Manager) -> None:
    code = """
import _wire
for message in _wire.messages():
    if _wire.called(message) == "sin":
        _wire.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 45\\r\\n\\r\\n")
    _wire.reply(message)
"""
    server = await manager.add("fetches", inline(code))
    assert (await server.invoke_tool("sin", {})).text == "sin"
    assert server.status().noise == 2


@case("B27")
async def test_half_a_surrogate_pair_is_delivered_and_can_be_sent_back(
    manager: Manager, tmp_path: Path
) -> None:
    problems: list[str] = []

    class Log(logging.FileHandler):
        """A log in a file, where half a character cannot be written."""

        def handleError(self, record: logging.LogRecord) -> None:
            problems.append(str(record.msg))

    log = Log(tmp_path / "log", encoding="utf-8")
    logger = logging.getLogger("mcpclient")
    level = logger.level
    logger.addHandler(log)
    logger.setLevel(logging.DEBUG)
    try:
        server = await manager.add("half", spec("lone_surrogate"))
        assert (await server.invoke_tool("sin", {})).text == "half \ufffd gone"
        arguments = {"text": "back \ud83d again", "\udc00": ["\ud83d"]}
        assert (await server.invoke_tool("echo", arguments)).text == "back \ufffd again"
        await server.notify("notifications/\ud83d", {"\ud83d": "\udfff"})
        assert (await server.invoke_tool("echo", {"text": "\U0001f600"})).text == "\U0001f600"
    finally:
        logger.setLevel(level)
        logger.removeHandler(log)
        log.close()
    assert problems == []
    assert server.generation == 1


@case("B28")
async def test_nan_in_an_answer_fails_its_call_at_once(manager: Manager) -> None:
    # As for B22: the id is there, so the call need not wait for its time-out.
    server = await manager.add("nan", spec("nan"))
    with pytest.raises(RemoteProtocolError) as caught, anyio.fail_after(10):
        await server.invoke_tool("sin", {}, timeout=60)
    assert "NaN or Infinity, which is not JSON" in str(caught.value)
    assert (await server.invoke_tool("echo", {"text": "on"})).text == "on"


@case("B28")
@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
async def test_nan_is_refused_before_anything_is_sent(manager: Manager, number: float) -> None:
    server = await manager.add("good", spec("good_handshake"))
    await server.start()
    with pytest.raises(LocalProtocolError, match="NaN or an infinity"):
        await server.invoke_tool("echo", {"text": "x", "deep": [{"in": (1, number)}]})
    assert server.status().calls == 0
    # null is not NaN, and no id was used up.
    assert (await server.invoke_tool("echo", {"text": "x", "deep": [None, 1.5]})).text == "x"
    journal = json.loads((await server.invoke_tool("journal", {})).text)
    ids = [message["id"] for message in journal if message.get("method") == "tools/call"]
    assert ids == [3, 4]


@case("B31")
async def test_a_server_that_answers_only_at_the_end_fails_to_open_and_nothing_breaks(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    one = spec("late_flush", timeouts=hasty(probe=0.1, open=0.3), restart=ONE_LIFE)
    server = await manager.add("late", one)
    with caplog.at_level(logging.INFO, "mcpclient"):
        failure = await refused(server)
    assert "the server did not open within 300 ms (Timeouts.open" in str(failure)
    # At the end of its stdin it answered both openings and exited; nobody was disturbed.
    lines = [record.getMessage() for record in caplog.records]
    assert "late#1 x exit code 0" in lines
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.ERROR] == []
    assert not any("not a message" in line for line in lines)
