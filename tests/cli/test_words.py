"""Arguments from words: what the schema says, JSON to the letter, and clear refusals."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpclient.cli.problems import Failure
from mcpclient.cli.schema import Unfit, arguments
from mcpclient.cli.words import converted, pairs, texts

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "deep": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"$ref": "#/$defs/size"}},
        "where": {"type": "object"},
        "colour": {"type": "string", "enum": ["red", "green"]},
        "level": {"enum": [1, 2, "3", True, None]},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"type": ["string", "integer"]},
        "shape": {"$ref": "#/$defs/shape"},
        "any": {"description": "anything"},
        "always": True,
    },
    "$defs": {
        "size": {"type": "integer"},
        "shape": {"anyOf": [{"const": "round"}, {"const": "square"}, {"type": "null"}]},
    },
}


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("text=5", "5"),
        ("text=true", "true"),
        ("text=", ""),
        ("text=a=b:=c", "a=b:=c"),
        ("text={}", "{}"),
        ("count=5", 5),
        ("count=-5", -5),
        ("count=5.0", 5),
        ("ratio=2.5", 2.5),
        ("ratio=1e3", 1000.0),
        ("ratio=7", 7),
        ("deep=true", True),
        ("deep=No", False),
        ("tags=a", ["a"]),
        ("tags=5", ["5"]),
        ('tags=["a", "b"]', ["a", "b"]),
        ("sizes=5", [5]),
        ('where={"x": 1}', {"x": 1}),
        ("colour=red", "red"),
        ("level=1", 1),
        ("level=3", "3"),
        ("level=true", True),
        ("level=null", None),
        ("maybe=5", 5),
        ("maybe=null", None),
        ("either=5", "5"),
        ("shape=round", "round"),
        ("any=5", "5"),
        ("always=5", "5"),
        ("text:=5", 5),
        ("count:=[1]", [1]),
        ('any:={"a": null}', {"a": None}),
    ],
)
def test_a_value_becomes_what_the_schema_says(word: str, value: Any) -> None:
    name = pairs([word])[0][0]
    made = converted([word], SCHEMA, "usage")
    assert made == {name: value}
    assert type(made[name]) is type(value)


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("count=five", '"count" must be a whole number, not "five"'),
        ("count=5.5", '"count" must be a whole number, not "5.5"'),
        ("count=", '"count" must be a whole number, not ""'),
        ("ratio=nan", '"ratio" must be a number, not "nan"'),
        ("ratio=1e999", '"ratio" must be a number, not "1e999"'),
        ("deep=maybe", '"deep" must be true or false, not "maybe"'),
        ("where=x", '"where" must be a JSON object, not "x"'),
        ("where=[1]", '"where" must be a JSON object, not "[1]"'),
        ("sizes=x", '"sizes" must be a whole number, not "x"'),
        ("colour=blue", '"colour" must be one of red, green, not "blue"'),
        ("shape=flat", '"shape" must be one of round, square, not "flat"'),
        ("maybe=x", '"maybe" must be a whole number or null, not "x"'),
        ("colr=red", 'there is no argument "colr"; did you mean "colour"?'),
        ("count:=five", "\"count:=\" takes JSON, and 'five' is none"),
        ("count:=NaN", "\"count:=\" takes JSON, and 'NaN' is none (NaN is not JSON)"),
        ("text", '"text" is no argument: write NAME=VALUE, or NAME:=JSON'),
        ("=x", '"=x" is no argument'),
    ],
)
def test_what_does_not_fit_is_refused_in_words(word: str, problem: str) -> None:
    with pytest.raises(Failure) as refused:
        converted([word], SCHEMA, "usage: as it is called")
    assert str(refused.value).startswith(problem)
    assert refused.value.exit == 1


def test_a_list_is_given_item_by_item_and_anything_else_once() -> None:
    made = converted(["tags=a", "tags=b", "sizes=1", "sizes=2"], SCHEMA, "usage")
    assert made == {"tags": ["a", "b"], "sizes": [1, 2]}
    for words in (["text=a", "text=b"], ["text=a", "text:=1"], ["tags=[]", "tags=a"]):
        with pytest.raises(Failure, match="is given twice"):
            converted(words, SCHEMA, "usage")


def test_what_is_required_and_missing_is_named_with_the_usage() -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {}}, "required": ["a", "b", 5]}
    with pytest.raises(Failure) as refused:
        converted([], schema, "usage: mcpclient call s t a=VALUE b=VALUE")
    assert str(refused.value) == '"a", "b" are missing\nusage: mcpclient call s t a=VALUE b=VALUE'


def test_a_name_that_the_schema_leaves_open_is_passed_on_as_text() -> None:
    for schema in (
        {"properties": {"a": {}}, "additionalProperties": True},
        {"properties": {"a": {}}, "patternProperties": {"^x": {}}},
        {"type": "object"},
    ):
        assert converted(["x=5"], schema, "usage") == {"x": "5"}
    assert converted(["x=5"], None, "usage") == {"x": "5"}
    with pytest.raises(Failure, match=r'there is no argument "x": it takes none'):
        converted(["x=5"], {"properties": {}, "additionalProperties": False}, "usage")


def test_where_only_text_is_taken_json_is_refused() -> None:
    assert texts(["a=1", "b="]) == {"a": "1", "b": ""}
    with pytest.raises(Failure, match=r'"a" can only be text here: write a=VALUE'):
        texts(["a:=1"])


def test_the_usage_tells_kinds_choices_and_what_may_be_left_out() -> None:
    schema = {**SCHEMA, "required": ["count", "tags", "where"]}
    shown = {one.name: one.usage for one in arguments(schema)}
    assert list(shown)[:3] == ["count", "tags", "where"]
    assert shown["count"] == "count=INTEGER"
    assert shown["tags"] == "tags=STRING…"
    assert shown["where"] == "where:=JSON"
    assert shown["colour"] == "[colour=red|green]"
    assert shown["maybe"] == "[maybe=INTEGER]"
    assert shown["any"] == "[any=VALUE]"


def test_references_that_turn_in_circles_or_lead_nowhere_may_be_anything() -> None:
    schema = {
        "properties": {
            "round": {"$ref": "#/$defs/a"},
            "nowhere": {"$ref": "#/$defs/none/at/all"},
            "far": {"$ref": "https://example.com/schema"},
            "self": {"$ref": "#"},
            "tree": {"type": "array", "items": {"$ref": "#/properties/tree"}},
        },
        "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
    }
    made = converted(["round=1", "nowhere=2", "far=3", "self=4"], schema, "usage")
    assert made == {"round": "1", "nowhere": "2", "far": "3", "self": "4"}
    assert converted(["tree=[[]]"], schema, "usage") == {"tree": [[]]}


def test_a_schema_of_a_thousand_nested_alternatives_is_read_at_once() -> None:
    schema: Any = {"type": "integer"}
    for _ in range(300):
        schema = {"anyOf": [schema, schema]}
    [one] = arguments({"properties": {"deep": schema}})
    assert one.convert("x") == "x"  # deeper than anybody looks


WORDS = "type enum const anyOf allOf $ref items properties required default description title x"
rubbish = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(WORDS.split()),
            inner | st.sampled_from(["string", "integer", "array", "#/properties/x", "#"]),
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(rubbish, st.text(max_size=10))
def test_rubbish_instead_of_a_schema_gives_arguments_or_refusals(schema: Any, text: str) -> None:
    listed = arguments(schema if isinstance(schema, dict) else {"properties": {"x": schema}})
    for one in listed:
        assert one.usage
        try:
            json.dumps(one.convert(text))
        except Unfit as unfit:
            wanted = str(unfit)
            assert wanted
