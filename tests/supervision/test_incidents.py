"""A recorded death, told to a person in one line."""

from __future__ import annotations

import signal
from typing import Any

import pytest

from mcpclient import Incident
from mcpclient.ground.exits import Exit


@pytest.mark.parametrize(
    ("facts", "text"),
    [
        (
            {"phase": "up", "uptime": 5.0, "exit": Exit(code=1)},
            "life 3 ended after 5 s up: exit code 1",
        ),
        (
            {"phase": "up", "uptime": 0.25, "exit": Exit(signal=signal.SIGKILL)},
            "life 3 ended after 250 ms up: killed by SIGKILL",
        ),
        (
            {"phase": "opening", "exit": Exit(code=2), "stderr_tail": "Traceback\n  boom\n\n"},
            "life 3 ended while opening: exit code 2 (stderr: Traceback | boom)",
        ),
        (
            {"phase": "starting", "problem": "'npx' was not found on PATH"},
            "life 3 ended while starting: 'npx' was not found on PATH",
        ),
        ({"phase": "starting"}, "life 3 ended while starting: no process"),
        (
            {"phase": "up", "uptime": 1.5, "exit": Exit()},
            "life 3 ended after 1.5 s up: exit status unknown",
        ),
        (
            {
                "phase": "up",
                "uptime": 60.0,
                "exit": Exit(signal=signal.SIGKILL),
                "problem": "the server closed its stdout",
                "stderr_tail": "bye",
            },
            "life 3 ended after 60 s up: the server closed its stdout (stderr: bye)",
        ),
    ],
)
def test_an_incident_says_which_life_ended_when_and_why(facts: dict[str, Any], text: str) -> None:
    assert str(Incident(generation=3, at=0.0, **facts)) == text


def test_the_last_words_are_said_once() -> None:
    problem = 'server "x": it refused (stderr: no key)'
    incident = Incident(
        generation=1, at=0.0, phase="opening", problem=problem, stderr_tail="no key"
    )
    assert str(incident).count("no key") == 1


def test_only_the_end_of_a_long_stderr_is_said_and_never_an_escape() -> None:
    tail = "\n".join(f"line {number} \x1b[31m" for number in range(1000))
    incident = Incident(generation=1, at=0.0, phase="opening", exit=Exit(code=1), stderr_tail=tail)
    text = str(incident)
    assert "line 999" in text
    assert "line 990" not in text
    assert "\x1b" not in text
    assert "\n" not in text
    assert incident.stderr_tail == tail, "as data it is whole"


def test_incidents_are_values() -> None:
    one = Incident(generation=1, at=2.0, phase="up", uptime=3.0, exit=Exit(code=1))
    same = Incident(generation=1, at=2.0, phase="up", uptime=3.0, exit=Exit(code=1))
    assert one == same
    with pytest.raises(AttributeError):
        one.at = 5.0  # type: ignore[misc]
