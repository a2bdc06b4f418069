"""A recording is written line by line, and read with the line of what is wrong in it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mcpclient import Exit
from mcpclient.testing import RecordingError
from mcpclient.testing.recording import Track, load, parse
from mcpclient.testing.redaction import Redaction

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}}
ANSWER = {"jsonrpc": "2.0", "id": 1, "result": {"content": []}}


def written(path: Path) -> bytes:
    """Return a recording of two lives."""
    for code in (0, 7):
        track = Track(path, Redaction(), "git")
        track.frame(">", json.dumps(CALL).encode() + b"\n")
        track.frame("<", json.dumps(ANSWER).encode())
        track.frame("<", b"\xff rubbish")
        track.end(Exit(code=code), asked=code == 0)
    return path.read_bytes()


def complaint(data: bytes) -> str:
    """Return what is wrong with a recording, or nothing."""
    try:
        parse(data, "r")
    except RecordingError as problem:
        return str(problem)
    return ""


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    written(path)
    assert path.stat().st_mode & 0o777 == 0o600
    recording = load(path)
    assert recording.head.server == "git"
    assert len(recording.lives) == 2
    for life, (code, asked) in zip(recording.lives, [(0, True), (7, False)], strict=True):
        call, answer, rubbish, end = life
        assert (call.dir, call.body, call.method) == (">", CALL, "tools/call")
        assert (answer.dir, answer.body, answer.method) == ("<", ANSWER, None)
        assert (rubbish.raw or "").encode("utf-8", "surrogateescape") == b"\xff rubbish"
        assert rubbish.body == {}
        assert (end.dir, end.code, end.asked) == ("x", code, asked)
    assert [entry.line for entry in recording.lives[0]] == [3, 4, 5, 6]


def test_a_recording_that_is_cut_anywhere_is_read_or_says_in_which_line_it_is_cut(
    tmp_path: Path,
) -> None:
    data = written(tmp_path / "r.jsonl")
    whole = 0
    for size in range(len(data) + 1):
        line = data[:size].count(b"\n") + 1
        told = complaint(data[:size])
        if told:
            assert told.startswith(f"r:{line}: "), (size, told)
        else:
            whole += 1
            assert data[:size].endswith(b"\n")
    assert whole == data.count(b"\n")


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([b"{}"], "r:1: this is no recording: Object missing required field `recording`"),
        ([b"\xff\xfe"], "r:1: this is no recording: "),
        ([b'{"recording":2}'], "r:1: it is of format 2, and only 1 is known; record anew"),
        ([b'{"recording":1}', b"nonsense"], "r:2: this line cannot be read: "),
        ([b'{"recording":1}', b"[" * 100_000], "r:2: this line cannot be read: "),
        ([b'{"recording":1}', b'{"life":1,"t":0,"dir":">"}'], "r:2: there is no message in this"),
        ([b'{"recording":1}', b'{"life":1,"t":0,"dir":"x"}'], "r:2: life 1 has not begun"),
        ([b'{"recording":1}', b'{"life":2,"t":0,"dir":"+"}'], "r:2: life 2 begins out of order"),
        ([b'{"recording":1}', b'{"life":1,"t":0,"dir":"="}'], "r:2: '=' is no direction"),
        ([b'{"recording":1}', b'{"life":1,"t":0,"dir":"<","message":[]}'], "r:2: this line"),
    ],
)
def test_what_is_no_recording_is_refused_with_the_line(lines: list[bytes], told: str) -> None:
    with pytest.raises(RecordingError) as raised:
        parse(b"".join(line + b"\n" for line in lines), "r")
    assert str(raised.value).startswith(told)


def test_rubbish_is_never_another_error() -> None:
    import random

    chance = random.Random(7)
    head = b'{"recording":1}\n{"life":1,"t":0,"dir":"+"}\n'
    for _ in range(500):
        rubbish = bytes(chance.choice(b'{}[]":,\n\\ud8 1<>lifetdr\xff') for _ in range(60))
        for data in (rubbish, head + rubbish + b"\n"):
            told = complaint(data)
            assert not told or told.startswith("r:")


def test_a_file_that_is_not_there_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"No such file.*Recorder\(path\)\.spec"):
        load(tmp_path / "none.jsonl")


def test_a_new_life_repairs_the_end_that_a_killed_writer_left(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    data = written(path)
    path.write_bytes(data[:-10])
    assert Track(path, Redaction()).life == 3
    lives = load(path).lives
    assert [len(life) for life in lives] == [4, 3, 0]


def test_another_file_is_neither_overwritten_nor_added_to(tmp_path: Path) -> None:
    path = tmp_path / "thesis.txt"
    path.write_text("My thesis\n")
    for anew in (False, True):
        with pytest.raises(RecordingError, match="this is no recording"):
            Track(path, Redaction(), anew=anew)
    assert path.read_text() == "My thesis\n"


def test_secrets_of_broken_lines_are_taken_out_too(tmp_path: Path) -> None:
    track = Track(tmp_path / "r", Redaction(env={"API_KEY": "hunter2"}))
    track.frame("<", b'{"token": "abc')
    track.frame("<", b"hunter2 \x1b[31m")
    assert [entry.raw for entry in track.entries] == ['{"token": "***"', "*** \x1b[31m"]
    assert b"hunter2" not in (tmp_path / "r").read_bytes()


def test_a_folder_that_is_not_there_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        Track(tmp_path / "none" / "r", Redaction())
