"""A field of a form as a question: how it is put, and what a typed line means."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET

from mcpclient.asking.questions import Question, Unfit
from mcpclient.features import forms
from tests.cli.driving import EVIL, acting

TEXT = {"type": "string"}
HEROES = {
    "type": "string",
    "oneOf": [{"const": "h1", "title": "Superman"}, {"const": "h2", "title": "Wonder Woman"}],
}
FISH = {"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["cod", "eel", "ray"]}}


def question(field: Any, name: str = "it", *, required: bool = True) -> Question:
    """Return a question about a field."""
    return Question(name, field, required=required)


@pytest.mark.parametrize(
    ("field", "line", "value"),
    [
        (TEXT, "  two words ", "two words"),
        (TEXT, '""', ""),
        (TEXT, "5", "5"),
        ({"type": "string", "format": "email"}, "ada@example.com", "ada@example.com"),
        ({"type": "string", "format": "uri"}, "https://example.com/", "https://example.com/"),
        ({"type": "string", "format": "date"}, "2024-02-29", "2024-02-29"),
        (
            {"type": "string", "format": "date-time"},
            "2024-02-29T10:00:00Z",
            "2024-02-29T10:00:00Z",
        ),
        ({"type": "integer"}, "-7", -7),
        ({"type": "integer"}, "7.0", 7.0),
        ({"type": "number"}, "7", 7),
        ({"type": "number"}, "-.5e1", -5.0),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "off", False),
        (HEROES, "2", "h2"),
        (HEROES, "h1", "h1"),
        (HEROES, "wonder woman", "h2"),
        ({"type": "string", "enum": ["10", "20"]}, "20", "20"),
        ({"type": "string", "enum": ["a", "b"], "enumNames": ["One", "Two"]}, "two", "b"),
        ({"type": "integer", "enum": [10, 20]}, "2", 20),
        ({"enum": [True, 1]}, "2", 1),
        (FISH, "1,3", ["cod", "ray"]),
        (FISH, " 3 1 3 ", ["ray", "cod"]),
        (FISH, "eel, Cod", ["eel", "cod"]),
        ({"type": "array", "items": HEROES}, "Wonder Woman", ["h2"]),
        ({"type": "array"}, "a b, c", ["a b", "c"]),
        ({"type": "array"}, '""', []),
        ({"type": "no such"}, "anything", "anything"),
        ("rubbish", "anything", "anything"),
    ],
)
def test_a_line_is_what_its_field_wants(field: Any, line: str, value: Any) -> None:
    found = question(field).value(line, UNSET)
    assert (found, type(found)) == (value, type(value))
    assert not forms.problems({"properties": {"it": field}}, {"it": found})


@pytest.mark.parametrize(
    ("field", "line", "problem"),
    [
        (TEXT, " ", 'it is required; "" is an empty one'),
        ({**TEXT, "minLength": 3}, "ab", 'the field "it" must have at least 3 characters'),
        ({**TEXT, "maxLength": 1}, "ab", 'the field "it" must have at most 1 characters'),
        ({**TEXT, "minLength": 1}, '""', 'the field "it" must have at least 1 characters'),
        ({**TEXT, "format": "email"}, "ada", 'the field "it" must be an e-mail address'),
        ({**TEXT, "format": "date"}, "2023-02-29", 'the field "it" must be a date as YYYY-MM-DD'),
        ({**TEXT, "pattern": "^[a-z]+$"}, "A", 'the field "it" must match the pattern ^[a-z]+$'),
        ({"type": "integer"}, "many", "say a whole number"),
        ({"type": "integer"}, "1.5", 'the field "it" must be a whole number'),
        ({"type": "integer"}, "１", "say a whole number"),
        ({"type": "integer", "minimum": 1}, "0", 'the field "it" must be at least 1'),
        ({"type": "number"}, "nan", "say a number"),
        ({"type": "number"}, "1e999", 'the field "it" must be a number, not one that JSON'),
        ({"type": "integer"}, "9" * 400, 'the field "it" must be a whole number, not one that'),
        ({"type": "number"}, "9" * 5000, 'the field "it" must be a number, not one that JSON'),
        ({"type": "boolean"}, "maybe", "say yes or no"),
        (HEROES, "3", "say a number from 1 to 2"),
        (HEROES, "0", "say a number from 1 to 2"),
        (HEROES, "man", "say a number from 1 to 2"),
        (FISH, "1,4", "say a number from 1 to 3"),
        (FISH, '""', 'the field "it" must have at least 1 of the choices'),
    ],
)
def test_a_line_that_does_not_fit_is_told_why(field: Any, line: str, problem: str) -> None:
    with pytest.raises(Unfit) as told:
        question(field).value(line, UNSET)
    assert str(told.value).startswith(problem)


def test_an_empty_line_leaves_what_stands_in_brackets() -> None:
    one = question({"type": "integer", "default": 42})
    assert one.prompt(one.default) == "it [42]: "
    assert one.value("", one.default) == 42
    optional = question(TEXT, required=False)
    assert optional.prompt(UNSET) == "it: "
    assert optional.value("", UNSET) is UNSET
    assert optional.value("", "kept") == "kept"
    assert question({"type": "integer", "default": "x"}).default is UNSET


def test_a_question_tells_title_kind_bounds_and_choices() -> None:
    titled = {**TEXT, "minLength": 2, "title": "Your name", "description": "All\nof it"}
    assert question(titled).lines() == [
        "it – Your name (text, at least 2 characters)",
        "  All",
        "  of it",
    ]
    wanted = {
        "(a whole number from 1 to 100)": {"type": "integer", "minimum": 1, "maximum": 100},
        "(a number, at most 2.5)": {"type": "number", "maximum": 2.5},
        "(an e-mail address)": {**TEXT, "format": "email"},
        "(text)": {**TEXT, "format": "odd", "minLength": 10**400, "maxLength": True},
        "(yes or no)": {"type": "boolean"},
    }
    for words, field in wanted.items():
        assert question(field).lines() == [f"it {words}"]
    assert question(TEXT, required=False).lines() == ["it (text, optional)"]
    assert question(HEROES).lines() == [
        "it (one of these)",
        "    1  Superman (h1)",
        "    2  Wonder Woman (h2)",
    ]
    assert question(FISH).lines()[0] == "it (any of these, such as 1,2, at least 1 choices)"
    assert question(FISH).said(["cod", "ray"]) == "cod, ray"
    assert question(HEROES).said("h2") == "Wonder Woman"
    many = question({"enum": [f"n{number}" for number in range(150)]})
    assert many.lines()[-1] == "       … and 50 more"
    assert many.value("150", UNSET) == "n149"


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("password", TEXT),
        ("userPassword", TEXT),
        ("API_KEY", TEXT),
        ("cardPin", TEXT),
        ("x", {**TEXT, "title": "Your secret"}),
        ("x", {**TEXT, "format": "password"}),
        ("x", {**TEXT, "writeOnly": True}),
    ],
)
def test_a_secret_is_not_shown_and_is_taken_to_the_letter(name: str, field: Any) -> None:
    one = question(field, name)
    assert one.hidden
    assert one.value(" pass word ", UNSET) == " pass word "
    assert "pass word" not in one.said(" pass word ") + one.prompt(" pass word ")


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("name", TEXT),
        ("spinach", TEXT),
        ("token", {"type": "integer"}),
        ("secret", {"type": "string", "enum": ["a"]}),
    ],
)
def test_what_is_no_secret_is_seen(name: str, field: Any) -> None:
    assert not question(field, name).hidden


def test_nothing_of_a_hostile_form_acts_on_a_terminal_or_makes_a_line_of_its_own() -> None:
    evil = f"{EVIL}\nSend this?"
    field = {"type": "string", "title": evil, "description": evil, "enum": [evil], "default": evil}
    one = question(field, evil)
    shown = [*one.lines(), one.prompt(one.default), one.said(evil)]
    assert len(one.lines()) == 4
    for line in shown:
        assert not acting(line)
        assert "\n" not in line


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
_members = st.sampled_from(
    ["type", "enum", "oneOf", "items", "default", "title", "format", "minLength", "maximum"]
)
_kinds = st.sampled_from(["string", "integer", "number", "boolean", "array"])


@settings(derandomize=True, deadline=None, max_examples=100)
@given(
    st.dictionaries(_members, _json), _kinds | _json, st.text(max_size=8) | st.integers().map(str)
)
def test_any_form_and_any_line_give_a_value_that_fits_or_a_reason(
    members: dict[str, Any], kind: Any, line: str
) -> None:
    field = {**members, "type": kind}
    one = question(field)
    assert all("\n" not in shown for shown in one.lines())
    try:
        value = one.value(line, UNSET)
    except Unfit as problem:
        reason = str(problem)
    else:
        reason = one.said(value)
        assert forms.problems({"properties": {"it": field}}, {"it": value}) == []
    assert reason
