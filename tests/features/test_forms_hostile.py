"""Forms that are none, or are meant to do harm: patterns without end, shapes of any kind."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpclient.features.forms import filled, problems
from mcpclient.ground.text import printable
from tests.features.test_forms import form, problem

quick = settings(derandomize=True, deadline=None, max_examples=100)

# -- patterns ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("^[A-Z]{3}-[0-9]+$", ["ABC-1"], ["abc-1", "ABC-", "xABC-1", "ABC-1\n"]),
        ("[0-9]", ["a1b"], ["ab"]),
        ("^a?b*c+.$", ["cx", "abbccx"], ["a", "ccx\ny"]),
        (r"^\d\w\D\W$", ["1a-!"], ["aa-!", "١a-!"]),
        (r"^\$[^\]x]{2,3}$", ["$ab", "$abc"], ["$a", "$ax", "$abcd"]),
        (r"\$", ["a$"], ["a"]),
        ("^$", [""], ["a"]),
        ("", ["", "a"], []),
    ],
)
def test_a_tame_pattern_is_checked(pattern: str, good: list[str], bad: list[str]) -> None:
    field = {"type": "string", "pattern": pattern}
    for value in good:
        assert problem(field, value) is None, value
    for value in bad:
        assert problem(field, value) == f"must match the pattern {pattern}", value


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        ("^(a+)+$", "a" * 5000 + "!"),
        ("^(a|a)*$", "a" * 5000 + "!"),
        ("^(.*)*$", "a" * 5000 + "\n"),
        ("a*" * 50 + "b", "a" * 5000),
        ("a*b", "a" * 5000),
        ("^" + "a?" * 60 + "a" * 60 + "$", "a" * 59),
        ("^" + "[ab]{0,9999}" * 15 + "c$", "a" * 5000),
        ("x" * 1_000_000, "y"),
        ("[" * 100_000, "y"),
        # What is no pattern, or means something else in Python.
        ("[z-a]", "y"),
        ("[^]", "y"),
        ("[[]", "y"),
        ("[a--b]", "y"),
        (r"\p{L}", "1"),
        (r"(?i)X", "y"),
        (r"(x)\1", "y"),
        ("x{3,2}", "y"),
        ("*", "y"),
        ("x{5000}{5000}", "y"),
        ("\\", "y"),
    ],
)
def test_a_pattern_that_might_not_end_or_is_not_understood_is_left_to_the_server(
    pattern: str, value: str
) -> None:
    assert problem({"type": "string", "pattern": pattern}, value) is None


def test_all_patterns_of_a_form_together_are_bounded_too() -> None:
    # Each takes about as long as one may; without the bound they would run for a minute.
    names = [f"f{number}" for number in range(5000)]
    field = {"type": "string", "pattern": "^[ab]*[ab]*[ab]*[cd]$", "default": "a" * 120}
    schema = form(**dict.fromkeys(names, field))
    content = filled(schema, {})
    assert list(content) == names
    sentence = "must match the pattern ^[ab]*[ab]*[ab]*[cd]$"
    assert problems(schema, content) == [f'the field "f0" {sentence}']


# -- hostile forms -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        None,
        True,
        "text",
        42,
        [],
        [["properties", {}]],
        {},
        {"type": "object"},
        {"type": "object", "properties": None},
        {"type": "object", "properties": ["a"]},
        {"type": "object", "properties": "a", "required": "a"},
        {"properties": {"a": None}},
        {"properties": {"a": ["string"]}},
        {"properties": {"a": {"type": {"a": "b"}}}},
        {"properties": {"a": {"type": ["string", "null"]}}},
        {"properties": {"a": {"type": "alien"}}, "required": {"b": 1}},
        {"properties": {"a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}},
        {"properties": {"a": {"$ref": "https://example.com/schema.json"}}},
        {"properties": {"a": {"type": "string", "enum": "text"}}, "required": [1, None, ["b"]]},
        {"properties": {"a": {"type": "string", "enum": []}}},
        {"properties": {"a": {"type": "string", "oneOf": [{"title": "A"}]}}},
        {"properties": {"a": {"type": "string", "oneOf": ["a"], "anyOf": {}}}},
        {"properties": {"a": {"type": "string", "minLength": "9", "maxLength": True}}},
        {"properties": {"a": {"type": "string", "minLength": 9.5, "maxLength": [1]}}},
        {"properties": {"a": {"type": "string", "minLength": 10**400}}},
        {"properties": {"a": {"type": "string", "maxLength": float("nan")}}},
        {"properties": {"a": {"type": "string", "format": ["date"], "pattern": {}}}},
        {"properties": {"a": {"type": "string", "format": "hostname", "x-odd": 1}}},
    ],
)
def test_a_part_of_a_form_that_is_not_understood_is_no_problem(schema: Any) -> None:
    assert problems(schema, {"a": "value"}) == []
    assert filled(schema, {"a": "value"}) == {"a": "value"}


@pytest.mark.parametrize(
    "field",
    [
        {"type": "integer", "minimum": "9", "maximum": True},
        {"type": "integer", "minimum": float("nan"), "maximum": [1]},
        {"type": "integer", "minimum": 10**400, "enum": [[], {}, 5]},
        {"type": "number", "maximum": {"a": 1}, "multipleOf": 3},
    ],
)
def test_odd_bounds_of_numbers_are_no_problem(field: Any) -> None:
    assert problem(field, 5) is None


@pytest.mark.parametrize(
    "field",
    [
        {"type": "array", "items": ["enum"], "minItems": "1", "maxItems": False},
        {"type": "array", "items": {"enum": "abc"}},
        {"type": "array", "items": {"enum": [["v"], {"v": 1}, "v"]}},
        {"type": "array", "items": {"anyOf": [{"const": ["v"]}, {"const": "v"}]}},
        {"type": "array", "items": {"$ref": "#"}, "uniqueItems": True},
    ],
)
def test_odd_lists_of_choices_are_no_problem(field: Any) -> None:
    assert problem(field, ["v"]) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
_BOUNDS = [f"{end}{what}" for end in ("min", "max") for what in ("imum", "Length", "Items")]
_KEYS = st.sampled_from(
    ["type", "default", "enum", "oneOf", "anyOf", "const", "items", "format", "pattern", *_BOUNDS]
)
_TYPES = st.sampled_from(["string", "number", "integer", "boolean", "array", "email", "date-time"])


@quick
@given(
    st.dictionaries(st.sampled_from("abc"), st.dictionaries(_KEYS, _JSON | _TYPES) | _JSON),
    _JSON,
    st.dictionaries(st.sampled_from("abcd"), _JSON),
)
def test_rubbish_is_judged_and_nothing_else_happens(
    fields: dict[str, Any], required: Any, content: dict[str, Any]
) -> None:
    schema = {"properties": fields, "required": required}
    before = json.dumps([schema, content])
    found = filled(schema, content)
    assert all(found[key] is content[key] for key in content)
    for sentence in problems(schema, found):
        assert sentence.startswith(("the field ", "the form has no field "))
        assert sentence == printable(sentence)
    assert json.dumps([schema, content]) == before


def test_what_was_filled_in_never_makes_a_new_problem() -> None:
    for default in (1, 1.5, True, None, "a", "2026-07-28", ["a"], {"a": 1}, [[]], 10**400):
        for kind in ("string", "number", "integer", "boolean", "array", "odd"):
            for extra in ({}, {"enum": ["a", 1]}, {"format": "date"}, {"minLength": 3}):
                schema = form(x={"type": kind, "default": default, **extra})
                assert problems(schema, filled(schema, {})) == []
