"""Forms: what was left out is filled in, what does not fit is told in a sentence."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from mcpclient.features.forms import filled, problems
from mcpclient.ground.errors import LocalProtocolError


def form(*required: str, **fields: Any) -> dict[str, Any]:
    """Return a form with these fields."""
    return {"type": "object", "properties": fields, "required": list(required)}


def problem(field: Any, value: Any) -> str | None:
    """Return what is wrong with a value of a field `x`, or None."""
    found = problems(form(x=field), {"x": value})
    assert len(found) <= 1
    return found[0].removeprefix('the field "x" ') if found else None


# -- defaults ------------------------------------------------------------------------------

# The form of the official suite's scenario elicitation-sep1034-client-defaults.
DEFAULTS = form(
    name={"type": "string", "description": "User name", "default": "John Doe"},
    age={"type": "integer", "description": "User age", "default": 30},
    score={"type": "number", "description": "User score", "default": 95.5},
    status={
        "type": "string",
        "description": "User status",
        "enum": ["active", "inactive", "pending"],
        "default": "active",
    },
    verified={"type": "boolean", "description": "Verification status", "default": True},
)
ALL = {"name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": True}


def test_an_empty_answer_is_sent_with_all_the_defaults_of_the_official_suite() -> None:
    for nothing in ({}, None):
        found = filled(DEFAULTS, nothing)
        assert found == ALL
        assert found["verified"] is True
        assert problems(DEFAULTS, found) == []


def test_what_was_entered_wins_over_defaults_even_if_it_is_false_empty_or_null() -> None:
    entered = {"name": "", "age": 0, "verified": False, "status": None}
    found = filled(DEFAULTS, entered)
    assert found == {**entered, "score": 95.5}
    assert problems(DEFAULTS, found) == ['the field "status" must not be null; leave it out']


def test_a_default_serves_a_required_field_too() -> None:
    # The form of checklist §4.4.
    schema = form("n", n={"type": "string", "default": "x"})
    assert filled(schema, {}) == {"n": "x"}
    assert problems(schema, filled(schema, {})) == []


@pytest.mark.parametrize(
    "field",
    [
        {"type": "integer", "default": "30"},
        {"type": "integer", "default": True},
        {"type": "string", "default": None},
        {"type": "string", "enum": ["a", "b"], "default": "c"},
        {"type": "string", "format": "date", "default": "tomorrow"},
        {"type": "array", "items": {"enum": ["a"]}, "default": ["b"]},
        {"type": "object", "default": {"a": {"b": "c"}}},
        {"default": [[["deep"]]]},
        ["default"],
        "default",
    ],
)
def test_a_default_that_does_not_fit_its_own_field_is_left_out(field: Any) -> None:
    assert filled(form(x=field, y={"type": "string", "default": "y"}), {}) == {"y": "y"}


def test_the_form_and_what_was_entered_stay_as_they_are() -> None:
    picks = {"type": "array", "items": {"enum": ["a", "b"]}, "default": ["a"]}
    schema = form(picks=picks, name={"type": "string"})
    entered: dict[str, Any] = {"name": "n", "extra": ["kept"]}
    before = copy.deepcopy((schema, entered))
    found = filled(schema, entered)
    assert found == {"name": "n", "extra": ["kept"], "picks": ["a"]}
    found["picks"].append("b")
    found["new"] = 1
    problems(schema, found)
    assert (schema, entered) == before


@pytest.mark.parametrize("content", [[], "text", 3, [["name", "x"]]])
def test_what_was_entered_must_be_a_mapping(content: Any) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        filled(DEFAULTS, content)
    kind = type(content).__name__
    assert str(caught.value) == f"what was entered must be a mapping by field, not {kind}"


# -- types ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "fitting"),
    [
        ({"type": "string"}, ["", "text", "😀\n"]),
        ({"type": "number"}, [0, -1, 42.5, 42, 10**300]),
        ({"type": "integer"}, [0, -1, 42, 42.0, -0.0, 1e300]),
        ({"type": "boolean"}, [True, False]),
        ({"type": "array", "items": {"type": "string"}}, [[], ["a"], ("a", "b")]),
        ({"type": "string", "enum": ["a", "b"]}, ["a", "b"]),
        ({"type": "string", "enum": ["a"], "enumNames": ["Letter A"]}, ["a"]),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, ["a"]),
        ({"type": "string", "anyOf": [{"const": "a"}, {"const": "b"}]}, ["b"]),
        ({"type": "integer", "enum": [1, 2]}, [1, 2.0]),
        ({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, [[], ["b", "a"]]),
        ({"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}, [["a"]]),
        ({"type": "array", "items": {"oneOf": [{"const": "a", "title": "A"}]}}, [["a"]]),
        ({"type": "array"}, [[], ["anything"]]),
        ({}, ["text", 1, 1.5, True, ["a"]]),
    ],
)
def test_values_of_the_right_type_fit(field: Any, fitting: list[Any]) -> None:
    for value in fitting:
        assert problem(field, value) is None, value


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ({"type": "string"}, 1, "must be text, not a number"),
        ({"type": "string"}, True, "must be text, not true or false"),
        ({"type": "string"}, ["a"], "must be text, not a list"),
        ({"type": "string"}, {"a": "b"}, "must be text, not dict"),
        ({"type": "number"}, "1", "must be a number, not text"),
        ({"type": "number"}, True, "must be a number, not true or false"),
        ({"type": "number"}, float("nan"), "must be a number, not one that JSON cannot say"),
        ({"type": "number"}, float("inf"), "must be a number, not one that JSON cannot say"),
        ({"type": "number"}, 10**400, "must be a number, not one that JSON cannot say"),
        ({"type": "integer"}, "1", "must be a whole number, not text"),
        ({"type": "integer"}, True, "must be a whole number, not true or false"),
        ({"type": "integer"}, 42.5, "must be a whole number"),
        ({"type": "integer"}, -1e999, "must be a whole number, not one that JSON cannot say"),
        ({"type": "boolean"}, 1, "must be true or false, not a number"),
        ({"type": "boolean"}, "true", "must be true or false, not text"),
        ({"type": "array"}, "a", "must be a list of texts, not text"),
        ({"type": "array"}, [1], "must be a list of texts, not a list"),
        ({"type": "array"}, [["a"]], "must be a list of texts, not a list"),
        ({"type": "array"}, {"a"}, "must be a list of texts, not set"),
        ({"type": "string", "enum": ["a", "b"]}, "c", 'must be one of "a", "b"'),
        # A name for people is no value.
        ({"type": "string", "enum": ["a"], "enumNames": ["A"]}, "A", 'must be one of "a"'),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}]}, "A", 'must be one of "a"'),
        ({"type": "integer", "enum": [0, 2]}, 1, "must be one of 0, 2"),
        ({"enum": [0, "x", True, 2.5]}, False, 'must be one of 0, "x", true, 2.5'),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, ["a", "c"], 'may hold only "a", "b"'),
        ({"type": "array", "items": {"anyOf": [{"const": "a"}]}}, ["b"], 'may hold only "a"'),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_type_is_reported_by_field(
    field: Any, value: Any, sentence: str
) -> None:
    assert problem(field, value) == sentence


@pytest.mark.parametrize("kind", ["string", "number", "integer", "boolean", "array", "odd", None])
def test_null_fits_no_field(kind: Any) -> None:
    assert problem({"type": kind}, None) == "must not be null; leave it out"


def test_what_the_protocol_cannot_carry_is_a_problem_whatever_the_form_says() -> None:
    for value in ({"a": 1}, [1, 2], [None], object(), float("nan")):
        for field in ({}, {"type": "object"}, {"type": ["string", "null"]}, True, None):
            sentence = problem(field, value)
            assert sentence == "must be text, a number, true or false, or a list of texts"


# -- bounds and formats --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ({"type": "string", "minLength": 2}, "a", "must have at least 2 characters"),
        ({"type": "string", "minLength": 2}, "ab", None),
        ({"type": "string", "maxLength": 2.0}, "abc", "must have at most 2 characters"),
        ({"type": "string", "maxLength": 2}, "😀😀", None),
        ({"type": "number", "minimum": 1.5}, 1.5, None),
        ({"type": "number", "minimum": 1.5}, 1.4, "must be at least 1.5"),
        ({"type": "number", "maximum": 10}, 10.0, None),
        ({"type": "number", "maximum": 10}, 10.1, "must be at most 10"),
        ({"type": "integer", "minimum": 18}, 17, "must be at least 18"),
        ({"type": "integer", "minimum": 18, "maximum": 99}, 18.0, None),
        ({"type": "integer", "maximum": 99}, 100, "must be at most 99"),
        ({"type": "array", "minItems": 1}, [], "must have at least 1 of the choices"),
        ({"type": "array", "maxItems": 1}, ["a", "b"], "must have at most 1 of the choices"),
        ({"type": "array", "minItems": 1, "maxItems": 2}, ["a", "b"], None),
    ],
)
def test_bounds_are_kept(field: Any, value: Any, sentence: str | None) -> None:
    assert problem(field, value) == sentence


@pytest.mark.parametrize(
    ("name", "what", "good", "bad"),
    [
        (
            "email",
            "an e-mail address",
            ["a@b", "a.b+c@example.com", "ü@exämple.com", '"a b@c"@example.com'],
            ["", "a", "@b", "a@", "a@b@c", "a b@c", "a@b c", "a@b..c", "a@.b", "a@b.", "a@b\n"],
        ),
        (
            "uri",
            "a URI, such as https://example.com/",
            ["https://example.com/a?b=c#d", "file:///a%20b", "mailto:a@b", "test:", "a+b.c-1:x"],
            ["", "a", "/a/b", "//a/b", "1a:b", "https://a b", "https://ü", "a:%2", "a:\n", "a:<>"],
        ),
        (
            "date",
            "a date as YYYY-MM-DD",
            ["2026-07-28", "2024-02-29", "0001-01-01"],
            ["", "2026-7-28", "2026-02-29", "2026-13-01", "20260728", "2026-W01-1", "٢٠٢٦-07-28",
             "2026-07-28\n", "2026-07-28T00:00:00Z", "0000-01-01"],
        ),
        (
            "date-time",
            "a date and time as YYYY-MM-DDThh:mm:ssZ",
            ["2026-07-28T12:34:56Z", "2026-07-28t12:34:56.789z", "2026-07-28T12:34:56+05:30",
             "2016-12-31T23:59:60Z"],
            ["", "2026-07-28", "2026-07-28 12:34:56Z", "2026-07-28T12:34:56", "2026-07-28T12:34Z",
             "2026-07-28T24:00:00Z", "2026-07-28T12:60:00Z", "2026-07-28T12:34:61Z",
             "2026-02-30T12:34:56Z", "2026-07-28T12:34:56+25:00", "2026-07-28T12:34:56.Z",
             "2026-07-28T12:34:56Z\n"],
        ),
    ],
)  # fmt: skip
def test_each_format_takes_the_good_and_refuses_the_bad(
    name: str, what: str, good: list[str], bad: list[str]
) -> None:
    field = {"type": "string", "format": name}
    for value in good:
        assert problem(field, value) is None, value
    for value in bad:
        assert problem(field, value) == f"must be {what}", value


# -- whole forms ---------------------------------------------------------------------------


def test_missing_and_unknown_fields_are_reported_with_the_rest() -> None:
    schema = form("name", "age", "name", name={"type": "string"}, age={"type": "integer"})
    content = {"age": "old", "nmae": "Ada", "": 1}
    assert problems(schema, content) == [
        'the field "name" is required',
        'the field "age" must be a whole number, not text',
        'the form has no field "nmae"',
        'the form has no field ""',
    ]
    assert problems(schema, {"name": "Ada", "age": 36}) == []


def test_a_form_without_fields_takes_nothing() -> None:
    assert problems(form(), {}) == []
    assert problems(form(), {"a": 1}) == ['the form has no field "a"']


def test_no_sentence_holds_what_was_entered() -> None:
    secret = "hunter2"
    fields: list[dict[str, Any]] = [
        {"type": kind} for kind in ("number", "integer", "boolean", "array", "object")
    ]
    fields += [{"type": "string", "format": name} for name in ("email", "uri", "date", "date-time")]
    fields += [{"enum": ["a"]}, {"type": "string", "pattern": "^x$"}]
    fields += [{"type": "string", "minLength": 99}, {"type": "string", "maxLength": 1}]
    for field in fields:
        for value in (secret, [secret], {secret: secret}):
            assert secret not in str(problem(field, value))


def test_the_names_and_choices_in_a_sentence_are_cut_and_printable() -> None:
    choices = [f"choice {number}\x1b[2J" for number in range(1000)]
    [sentence] = problems(form(x={"type": "string", "enum": choices}), {"x": "y"})
    assert sentence.endswith(r'"choice 9\x1b[2J" and 990 more')
    [sentence] = problems(form(), {"\x1b[2J" + "n" * 10_000: 1})
    assert sentence.startswith(r'the form has no field "\x1b[2Jnnn')
    assert len(sentence) < 200


def test_a_thousand_problems_are_told_in_twenty_sentences() -> None:
    found = problems(form(*[f"f{number}" for number in range(1000)]), {})
    assert found[:2] == ['the field "f0" is required', 'the field "f1" is required']
    assert len(found) == 21
    assert found[-1] == "there are more problems"
