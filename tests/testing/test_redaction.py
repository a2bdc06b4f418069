"""What is secret does not reach a recording, and its absence does not make two values differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mcpclient.testing.redaction import MASK, Redaction, difference


@pytest.mark.parametrize(
    ("message", "clean"),
    [
        ({"token": "abc"}, {"token": MASK}),
        ({"apiKey": "abc", "api_key": ["a", 1]}, {"apiKey": MASK, "api_key": [MASK, 1]}),
        ({"a": [{"Authorization": "abc"}]}, {"a": [{"Authorization": MASK}]}),
        ({"_meta": {"progressToken": "abc"}}, {"_meta": {"progressToken": "abc"}}),
        ({"maxTokens": 100}, {"maxTokens": 100}),
        # A schema of a secret is none.
        (
            {"properties": {"token": {"type": "string"}}},
            {"properties": {"token": {"type": "string"}}},
        ),
        ({"text": '{"password": "x y", "a": 1}'}, {"text": '{"password": "***", "a": 1}'}),
        (
            {"text": "curl -H 'Authorization: Bearer abcdef.ghi'"},
            {"text": "curl -H 'Authorization: Bearer ***'"},
        ),
        ({"text": "the bearer of news"}, {"text": "the bearer of news"}),
        ({"text": "it is hunter2!"}, {"text": "it is ***!"}),
        ({"hunter2": 1}, {MASK: 1}),
        ({"text": "card 1234-5678"}, {"text": "card ***"}),
    ],
)
def test_secrets_are_taken_out_and_nothing_else(message: Any, clean: Any) -> None:
    before = json.dumps(message)
    env = {"DB_PASSWORD": "hunter2", "SHORT_KEY": "x", "HOME": "text"}
    redaction = Redaction([r"\d{4}-\d{4}"], env=env)
    assert redaction.message(message) == clean
    assert json.dumps(message) == before


def test_the_user_has_the_last_word() -> None:
    def custom(message: Any) -> Any:
        return {**message, "seen": message["token"]}

    assert Redaction(custom=custom).message({"token": "abc"}) == {"token": MASK, "seen": MASK}


def test_the_home_directory_is_written_as_a_name_and_is_todays_when_replayed() -> None:
    home = str(Path.home())
    redaction = Redaction(home=True)
    assert redaction.message({"uri": f"file://{home}/a"}) == {"uri": "file://${HOME}/a"}
    assert redaction.here({"uri": ["${HOME}/a"]}) == {"uri": [f"{home}/a"]}
    assert Redaction().here("${HOME}") == "${HOME}"
    assert Redaction().message({"uri": home}) == {"uri": home}


@pytest.mark.parametrize(
    ("recorded", "got", "told"),
    [
        ({"a": 1}, {"a": 1.0}, None),
        ({"a": True}, {"a": 1}, "a is 1; recorded was true"),
        ({"a": 1}, {"a": 2}, "a is 2; recorded was 1"),
        ({"a": 1}, {}, "a is missing; recorded was 1"),
        ({}, {"a": {"b": 2}}, 'a = {"b": 2} was not there in the recording'),
        (
            {"a": {"b": [1, {"c": "x"}]}},
            {"a": {"b": [1, {"c": "y"}]}},
            'a.b[1].c is "y"; recorded was "x"',
        ),
        ({"a": [1]}, {"a": [1, 2]}, "a has 2 items; recorded were 1"),
        ({"a": MASK}, {"a": "anything\nat all"}, None),
        ({"a": f"Bearer {MASK}"}, {"a": "Bearer x.y"}, None),
        (
            {"a": f"Bearer {MASK}"},
            {"a": "Basic x.y"},
            'a is "Basic x.y"; recorded was "Bearer ***"',
        ),
        ({"a": MASK}, {"a": 7}, 'a is 7; recorded was "***"'),
        ({"when": 1, "a": {"when": 1}}, {"when": 2, "a": {"when": 3}}, None),
        ({"x": 1}, {"x": 1, "when": 3}, None),
        (None, {}, "it is {}; recorded was null"),
    ],
)
def test_a_difference_is_told_with_its_place(recorded: Any, got: Any, told: str | None) -> None:
    assert difference(recorded, got, {"when", "a.when"}) == told


def test_a_long_value_is_cut_in_the_telling() -> None:
    told = difference("x" * 1000, "y")
    assert told is not None
    assert told.endswith(f'"{"x" * 199}…')
