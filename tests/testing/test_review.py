"""Secrets that a recording must not keep, and scripts that must not pass."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mcpclient.testing import Script
from mcpclient.testing.redaction import MASK, Redaction

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("git clone https://ann:hunter22@host/x.git", "git clone https://ann:***@host/x.git"),
        ("postgres://:hunter22@db:5432/x", "postgres://:***@db:5432/x"),
        ("GET /a?x=1&access_token=abc&y=2", "GET /a?x=1&access_token=***&y=2"),
        ("https://h/?key=AIza#frag", "https://h/?key=***#frag"),
        ("https://h/#id_token=abc", "https://h/#id_token=***"),
        ("PATH=/bin\nGITHUB_TOKEN=abc\nHOME=/root", "PATH=/bin\nGITHUB_TOKEN=***\nHOME=/root"),
        ("AWS_SECRET_ACCESS_KEY=a/b+c", "AWS_SECRET_ACCESS_KEY=***"),
        (f"it is {JWT}.", "it is ***."),
        (f"use ghp_{'a1B2' * 9} now", "use *** now"),
        (f"sk-proj-{'a1B2' * 9}", MASK),
        ("AKIAIOSFODNN7EXAMPLE", MASK),
        (f"here:\n{KEY}\nend", "here:\n***\nend"),
        # And what is none.
        ("https://host:8080/a@b", "https://host:8080/a@b"),
        ("a?monkey=1&x=2", "a?monkey=1&x=2"),
        ("MONKEY=1 and 2 = 2", "MONKEY=1 and 2 = 2"),
        ("the sk-learn library", "the sk-learn library"),
        ("mailto:ann@example.com", "mailto:ann@example.com"),
    ],
)
def test_secrets_in_texts_and_addresses_are_taken_out_and_nothing_else(
    text: str, clean: str
) -> None:
    assert Redaction().text(text) == clean
    message = {"result": {"content": [{"type": "text", "text": text}]}}
    found = Redaction().message(message)
    assert found["result"]["content"][0]["text"] == clean


@pytest.mark.parametrize(
    ("message", "clean"),
    [
        ({"credentials": {"user": "ann", "n": 1}}, {"credentials": {"user": MASK, "n": 1}}),
        (
            {"secrets": [{"value": "a"}, {"b": ["c"]}]},
            {"secrets": [{"value": MASK}, {"b": [MASK]}]},
        ),
        (
            {"authorization": {"type": "basic", "v": "x"}},
            {"authorization": {"type": MASK, "v": MASK}},
        ),
        ({"private_key": "x", "privateKey": "y"}, {"private_key": MASK, "privateKey": MASK}),
        (
            {"passphrase": "x", "auth": "y", "pwd": "z"},
            {"passphrase": MASK, "auth": MASK, "pwd": MASK},
        ),
        # The schemas of secrets, and what only sounds like one.
        (
            {"apiKey": {"type": ["string", "null"], "title": "K"}},
            {"apiKey": {"type": ["string", "null"], "title": "K"}},
        ),
        ({"token": {"anyOf": [{"type": "string"}]}}, {"token": {"anyOf": [{"type": "string"}]}}),
        (
            {"author": "ann", "key": "a", "authority": "x"},
            {"author": "ann", "key": "a", "authority": "x"},
        ),
    ],
)
def test_what_stands_below_a_secrets_name_is_secret_unless_it_is_its_schema(
    message: Any, clean: Any
) -> None:
    assert Redaction().message(message) == clean


def test_a_secret_of_the_environment_is_known_in_every_form_it_is_written_in() -> None:
    secret = 'p"a/s s&wörd'
    redaction = Redaction(env={"MY_SECRET": secret})
    encoded = base64.b64encode(secret.encode()).decode()
    for text in (
        f"it is {secret} here",
        "https://h/?q=p%22a%2Fs%20s%26w%C3%B6rd",
        json.dumps({"inner": secret}),
        f"Authorization {encoded}",
    ):
        found = redaction.text(text)
        assert MASK in found, text
        for form in ("s s&w", "s%20s", encoded[:12]):
            assert form not in found, text


def test_a_question_that_the_client_never_answered_fails_the_check() -> None:
    script = Script()
    script.on("tools/call", name="a").ask("roots/list", expect={"roots": []}).text("thanks")
    part = script.part()
    part.begin(0.0)
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}}
    assert part.receive(json.dumps(call).encode(), 0.0)
    [problem] = script.problems()
    assert problem.startswith("life 1: ")
    assert problem.endswith("roots/list was never answered")
    answer = {"jsonrpc": "2.0", "id": "ask-1", "result": {"roots": []}}
    part.receive(json.dumps(answer).encode(), 0.0)
    assert script.problems() == []


def test_a_clock_within_a_clock_leaves_the_outer_one_in_use() -> None:
    # In a process of its own: what was turned stays turned.
    code = (
        "import time\n"
        "from mcpclient.testing import Clock\n"
        "with Clock() as outer:\n"
        "    with Clock():\n"
        "        pass\n"
        "    before = time.monotonic()\n"
        "    outer.turn(1000)\n"
        "    assert time.monotonic() - before >= 1000\n"
        "print('turned')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout == "turned\n", done.stderr


def test_a_test_that_fails_with_a_turned_clock_leaves_time_going_forward(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import time\n"
        "seen = []\n"
        "def test_one(mcp_clock):\n"
        "    mcp_clock.turn(500)\n"
        "    seen.append(time.monotonic())\n"
        "    assert False\n"
        "def test_two():\n"
        "    assert time.monotonic() >= seen[0]\n"
    )
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert "1 failed, 1 passed" in done.stdout, done.stdout


def test_the_plugin_can_be_left_out(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import sys\n"
        "import pytest\n"
        "@pytest.fixture\n"
        "def mcp_script():\n"
        "    return 'my own'\n"
        "def test_one(mcp_script):\n"
        "    assert mcp_script == 'my own'\n"
        "    assert 'mcpclient.testing.script' not in sys.modules\n"
    )
    for more in ([], ["-p", "no:mcpclient"]):
        argv = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            *more,
            str(tmp_path),
        ]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, cwd=tmp_path)
        assert "1 passed" in done.stdout, done.stdout
