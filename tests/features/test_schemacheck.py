"""JSON Schemas of strangers: every dialect, nothing fetched, and an end to everything."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpclient.features.schemacheck import Schema, Unusable
from mcpclient.features.schemawords import DIALECTS

NEWEST, D2019, D7, D6, D4 = DIALECTS
BIG = 1915883588174806058


def check(schema: Any, value: Any, limit: float = 10.0) -> list[str]:
    return Schema(schema, limit).problems(value, limit)


def refused(schema: Any, limit: float = 10.0) -> Unusable:
    """Return why a schema cannot be used."""
    with pytest.raises(Unusable) as caught:
        Schema(schema, limit)
    return caught.value


def nested(levels: int, word: str, leaf: Any) -> Any:
    for _ in range(levels):
        leaf = {word: leaf}
    return leaf


# -- what schemas say ----------------------------------------------------------------------

# A schema, the values that fit, and those that do not.
MEANINGS: list[tuple[Any, list[Any], list[Any]]] = [
    (True, [None, 0, {}], []),
    ({}, [None, [], ""], []),
    (False, [], [None, {}]),
    ({"type": "integer"}, [1, 1.0, -(2**63), 2**70], [True, 1.5, "1", None]),
    ({"type": ["string", "null"]}, ["", None], [0, []]),
    ({"enum": [1, "a", [1], {"b": None}]}, [1.0, "a", [1.0], {"b": None}], [True, [True], "1"]),
    ({"enum": [False]}, [False], [0]),
    ({"const": [0, {"a": 1}]}, [[0, {"a": 1.0}]], [[False, {"a": 1}], [0]]),
    ({"const": None}, [None], [0, False, ""]),
    ({"minimum": BIG}, [BIG, "x"], [BIG - 1]),
    ({"exclusiveMaximum": BIG}, [BIG - 1], [BIG]),
    ({"multipleOf": 0.01}, [19.99, 5, "x", 0.07], [19.999]),
    ({"multipleOf": 3}, [BIG - BIG % 3], [BIG - BIG % 3 + 1]),
    ({"minLength": 2, "maxLength": 2}, ["éé", "😀😀"], ["a", "abc"]),
    ({"pattern": "^(?!\\.)[^@]+@\\w+$"}, ["a@b", 5], [".a@b"]),
    ({"uniqueItems": True}, [[1, True, "1"], [{"a": 1}, {"a": 2}]], [[1, 1.0], [{"a": 1}] * 2]),
    ({"items": {"type": "integer"}, "maxItems": 2}, [[1, 2]], [[1, "2"], [1, 2, 3]]),
    ({"prefixItems": [{"const": 1}], "items": False}, [[], [1]], [[2], [1, 2]]),
    ({"contains": {"const": 1}, "maxContains": 1}, [[1, 2]], [[], [1, 1]]),
    ({"required": ["a"]}, [{"a": None}], [{}]),
    ({"dependentRequired": {"a": ["b"]}}, [{"b": 1}, {"a": 1, "b": 1}], [{"a": 1}]),
    ({"dependentSchemas": {"a": {"minProperties": 2}}}, [{"b": 1}], [{"a": 1}]),
    ({"propertyNames": {"maxLength": 1}}, [{"a": 1}], [{"ab": 1}]),
    (
        {"properties": {"a": {}}, "patternProperties": {"^x": {"const": 1}}}
        | {"additionalProperties": False},
        [{"a": 1, "x": 1, "xy": 1}],
        [{"b": 1}, {"x": 2}],
    ),
    ({"additionalProperties": {"type": "null"}}, [{"a": None}], [{"a": 1}]),
    ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, [1, 2], [0, 3]),
    ({"anyOf": [{"type": "null"}, {"type": "string"}]}, [None, ""], [1]),
    ({"oneOf": [{"minimum": 1}, {"maximum": 2}]}, [0, 3], [1, 2]),
    ({"not": {"type": "null"}}, [0], [None]),
    ({"if": {"required": ["a"]}, "then": {"maxProperties": 1}}, [{"a": 1}], [{"a": 1, "b": 1}]),
    (
        {"allOf": [{"properties": {"a": True}}], "unevaluatedProperties": False},
        [{"a": 1}],
        [{"a": 1, "b": 1}],
    ),
    (
        {"anyOf": [{"patternProperties": {"^x": True}}, {"required": ["z"]}]}
        | {"unevaluatedProperties": {"const": 1}},
        [{"x1": 5, "y": 1}],
        [{"x1": 5, "y": 2}],
    ),
    (
        {"anyOf": [{"prefixItems": [True, True]}], "contains": {"const": 5}}
        | {"unevaluatedItems": False},
        [[1, 5], [1, 2, 5]],
        [[1, 5, 2]],
    ),
    (
        {"$defs": {"n": {"$anchor": "n", "type": "integer"}}, "items": {"$ref": "#n"}},
        [[1]],
        [["1"]],
    ),
    (
        {"$id": "https://example.com/root", "$ref": "inner", "$defs": {"i": {"$id": "inner"}}},
        [1],
        [],
    ),
    (
        # The recursion of the tree reaches the stricter one that is outside.
        {
            "$id": "https://example.com/strict",
            "$dynamicAnchor": "node",
            "$ref": "tree",
            "unevaluatedProperties": False,
            "$defs": {
                "tree": {
                    "$id": "tree",
                    "$dynamicAnchor": "node",
                    "properties": {"kids": {"items": {"$dynamicRef": "#node"}}},
                }
            },
        },
        [{"kids": [{"kids": []}]}],
        [{"kids": [{"kid": []}]}],
    ),
    ({"$ref": NEWEST}, [{"type": "integer"}], [{"type": "elephant"}]),
    ({"format": "email", "contentEncoding": "base64", "unknown": {"$ref": "http://x/"}}, ["?"], []),
    # Each older dialect by something that the newest reads in another way.
    (
        {"$schema": D2019, "items": [{"const": 1}], "unevaluatedItems": False},
        [[], [1]],
        [[2], [1, 1]],
    ),
    (
        {"$schema": D2019, "$recursiveAnchor": True, "items": {"$recursiveRef": "#"}}
        | {"type": "array"},
        [[[], [[]]]],
        [[1]],
    ),
    ({"$schema": D7, "items": [{"const": 1}], "additionalItems": False}, [[1]], [[1, 1]]),
    ({"$schema": f"{D7}#", "dependencies": {"a": ["b"]}}, [{"b": 1}], [{"a": 1}]),
    (
        # Beside a reference nothing counts.
        {"$schema": D7, "$ref": "#/definitions/a", "maximum": 1, "definitions": {"a": True}},
        [5],
        [],
    ),
    ({"$schema": D7.replace("http:", "https:"), "items": [{"const": 1}]}, [[1, 2]], [[2]]),
    ({"$schema": D6, "exclusiveMinimum": 1, "contains": {"const": 2}}, [[2], 2], [1, [3]]),
    ({"$schema": D4, "minimum": 1, "exclusiveMinimum": True, "type": "integer"}, [2], [1, 2.0]),
    ({"$schema": D4, "id": "http://x/", "allOf": [{"$ref": "#/definitions/a"}]}
     | {"definitions": {"a": {"type": "string"}}}, ["x"], [1]),
    (
        # A part may be in a dialect of its own.
        {
            "items": {
                "$id": "http://x/a",
                "$schema": D7,
                "allOf": [{"$ref": "#/definitions/a", "maximum": 1}],
                "definitions": {"a": {"type": "integer"}},
            }
        },
        [[5]],
        [["5"]],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "fitting", "others"), MEANINGS, ids=lambda part: str(part)[:60])
def test_a_schema_means_what_its_dialect_says(
    schema: Any, fitting: list[Any], others: list[Any]
) -> None:
    made = Schema(schema, 10.0)
    for value in fitting:
        assert made.problems(value, 10.0) == [], value
    for value in others:
        assert made.problems(value, 10.0) != [], value


def test_a_schema_can_be_used_again_and_on_many_threads() -> None:
    made = Schema({"items": {"pattern": "^a+$", "$ref": "#/$defs/x"}, "$defs": {"x": {}}}, 10.0)
    wrong: list[Any] = []

    def use() -> None:
        for _ in range(50):
            if made.problems(["a", "aa"], 10.0) or len(made.problems(["b", "a", "c"], 10.0)) != 2:
                wrong.append("once")

    users = [threading.Thread(target=use) for _ in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert not wrong


# -- what is told --------------------------------------------------------------------------

SENTENCES: list[tuple[Any, Any, list[str]]] = [
    ({"type": "integer"}, "secret", ["the value must be of the type integer"]),
    ({"type": ["integer", "null"]}, "secret", ["the value must be of the type integer or null"]),
    (
        {"properties": {"a/b": {"items": {"const": 1}}}},
        {"a/b": [1, "secret"]},
        ["/a~1b/1 does not fit const 1"],
    ),
    ({"required": ["a"]}, {}, ["the value lacks a member: 'a' is a required property"]),
    ({"additionalProperties": False}, {"b": "secret"}, ["/b is not allowed"]),
    ({"unevaluatedProperties": False}, {"b": "secret"}, ["/b is not allowed"]),
    ({"items": False}, ["secret"], ["the value does not fit items False"]),
    (False, "secret", ["the value is not allowed"]),
    ({"uniqueItems": True}, ["secret"] * 2, ["the value must not hold the same twice"]),
    ({"minimum": 5}, 4, ["the value does not fit minimum 5"]),
    ({"maximum": 10**3000}, 10**3001, None),  # type: ignore[list-item]  # only that it is told
    (
        {"anyOf": [{"type": "null"}, {"items": {"type": "integer"}, "type": "array"}]},
        ["secret"],
        ["the value does not fit anyOf (/0 must be of the type integer)"],
    ),
    ({"oneOf": [{}, {}]}, "secret", ["the value fits more than one of oneOf"]),
    ({"not": {}}, "secret", ["the value does not fit not"]),
    ({"properties": {"a\x1b[2J": False}}, {"a\x1b[2J": 1}, ["/a\\x1b[2J is not allowed"]),
]


@pytest.mark.parametrize(("schema", "value", "said"), SENTENCES, ids=lambda part: str(part)[:50])
def test_a_sentence_tells_where_and_what_but_never_the_value(
    schema: Any, value: Any, said: list[str] | None
) -> None:
    found = check(schema, value)
    assert found == said or (said is None and len(found) == 1)
    assert "secret" not in str(found)


def test_of_many_problems_the_first_are_told() -> None:
    found = check({"items": {"type": "null"}}, list(range(1000)))
    assert found[0] == "/0 must be of the type null"
    assert len(found) == 11
    assert found[-1] == "and more"
    assert len(check({"items": {"type": "null"}}, list(range(10)))) == 10


# -- what is no schema, or none that can be used -------------------------------------------


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("object", "it is a text, and a schema is an object"),
        ([], "it is a list, and a schema is an object"),
        (5, "it is a number, and a schema is an object"),
        (None, "it is null, and a schema is an object"),
        ({"type": "elephant"}, "it is no schema: /type does not fit anyOf"),
        ({"properties": [1]}, "it is no schema: /properties must be of the type object"),
        ({"$ref": 5}, "it is no schema: /$ref must be of the type string"),
        ({"minLength": -1}, "it is no schema: /minLength does not fit minimum 0"),
        ({"$schema": D4, "$ref": 5, "required": []}, "it is no schema: /required"),
        ({"pattern": "[a"}, "its pattern '[a' is none: a set of characters has no end"),
        ({"patternProperties": {"(?R)": {}}}, "its pattern '(?R)' is none: "),
        ({"items": {"allOf": [{"pattern": "*"}]}}, "its pattern '*' is none: "),
    ],
)
def test_what_is_no_schema_is_told_in_time(schema: Any, why: str) -> None:
    problem = refused(schema)
    assert problem.reason == "schema"
    assert problem.problem.startswith(why)
    assert str(problem) == problem.problem


@pytest.mark.parametrize(
    "uri",
    [
        "https://example.com/mine",
        "http://json-schema.org/draft-03/schema#",
        "https://json-schema.org/draft/2020-12/schem",
        "",
        5,
        None,
        ["a"],
    ],
)
def test_a_dialect_that_is_not_supported_is_refused_by_name(uri: Any) -> None:
    problem = refused({"$schema": uri, "type": "integer"})
    assert problem.reason == "dialect"
    assert problem.problem == (
        f"its dialect {str(uri)!r} is not supported; "
        "those of 2020-12, 2019-09, draft-07, draft-06, draft-04 are"
    )


def test_a_part_in_a_dialect_that_is_not_supported_is_refused_too() -> None:
    part = {"$id": "http://x/a", "$schema": "https://example.com/mine"}
    assert refused({"properties": {"a": part}}).reason == "dialect"
    # What merely looks like one is none.
    assert check({"const": part, "default": part}, part) == []
    assert check({"properties": {"$schema": {"const": 1}}}, {"$schema": 1}) == []


@pytest.mark.parametrize("dialect", [NEWEST, D2019, D7])
@pytest.mark.parametrize("ref", ["#/$defs/X", "#anchor", "#/%zz", "#/properties/a/b"])
def test_a_reference_that_leads_nowhere_is_refused_before_any_value(ref: str, dialect: str) -> None:
    # It stands where no value would lead the validator.
    problem = refused({"$schema": dialect, "properties": {"a": {"not": {"$ref": ref}}}})
    assert problem.reason == "reference"
    assert problem.problem == f"it refers to {ref!r}, which leads nowhere"


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/X", "$defs": {"X": {"$ref": "#/$defs/X"}}},
        {"$ref": "#"},
        {"$schema": D7, "allOf": [{"$ref": "#/allOf/1"}, {"$ref": "#/allOf/0"}]},
    ],
)
def test_a_reference_to_itself_is_refused(schema: Any) -> None:
    problem = refused(schema)
    assert problem.reason == "reference"
    assert problem.problem.endswith("which is itself")


# -- nothing is fetched --------------------------------------------------------------------


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Whoever fetches from here is seen: a connection would wait to be accepted."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


@pytest.mark.parametrize("dialect", list(DIALECTS))
@pytest.mark.parametrize("word", ["$ref", "$dynamicRef"])
def test_no_reference_is_fetched_from_the_network(
    listener: socket.socket, dialect: str, word: str
) -> None:
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    name = "id" if dialect == D4 else "$id"
    schemas: list[Any] = [
        {word: f"{base}/a.json#/x"},
        {"properties": {"a": {word: f"{base}/a.json"}}},
        {name: f"{base}/root.json", "allOf": [{word: "other.json"}]},
    ]
    for schema in schemas:
        known = word == "$ref" or dialect == NEWEST
        if not known:
            assert check({"$schema": dialect, **schema}, {"a": 1}) == []
            continue
        problem = refused({"$schema": dialect, **schema})
        assert problem.reason == "reference"
        assert problem.problem.endswith("which is not part of it, and nothing is fetched")
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_a_dialect_is_not_fetched_either(listener: socket.socket) -> None:
    base = f"http://127.0.0.1:{listener.getsockname()[1]}"
    assert refused({"$schema": f"{base}/dialect.json"}).reason == "dialect"
    with pytest.raises(BlockingIOError):
        listener.accept()


def test_no_reference_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "part.json"
    path.write_text("true")
    for ref in (path.as_uri(), str(path), f"file:{path}"):
        problem = refused({"$ref": ref})
        assert problem.reason == "reference"
        assert problem.problem.endswith("which is not part of it, and nothing is fetched")


# -- an end to everything ------------------------------------------------------------------


@pytest.mark.parametrize("word", ["properties", "items", "not", "additionalProperties", "if"])
def test_a_schema_that_is_nested_too_deeply_is_refused(word: str) -> None:
    schema: Any = {}
    for _ in range(450):
        schema = {word: {"a": schema}} if word == "properties" else {word: {word: schema}}
    problem = refused(schema)
    assert problem.reason == "bounds"
    assert problem.problem == "it is nested too deeply, or without end"


def test_a_value_that_is_nested_too_deeply_is_not_checked() -> None:
    tree = Schema({"properties": {"a": {"$ref": "#"}}, "type": "object"}, 10.0)
    assert tree.problems(nested(100, "a", {}), 10.0) == []
    assert tree.problems(nested(100, "a", 1), 10.0) == [f"{'/a' * 100} must be of the type object"]
    with pytest.raises(Unusable) as caught:
        tree.problems(nested(sys.getrecursionlimit(), "a", {}), 10.0)
    assert caught.value.reason == "bounds"
    # Nothing of it stays behind.
    assert tree.problems({"a": {}}, 10.0) == []


ENDLESS: list[Any] = [
    {"allOf": [{"not": {"$ref": "#"}}]},
    {"$dynamicAnchor": "a", "anyOf": [{"$dynamicRef": "#a"}]},
    {"$schema": D2019, "$recursiveAnchor": True, "anyOf": [{"$recursiveRef": "#"}]},
    {"properties": {"a": {"$ref": "#"}}, "if": {"$ref": "#"}},
    {"unevaluatedProperties": False, "anyOf": [{"$ref": "#"}]},
    {"$id": "http://x/a", "allOf": [{"$id": "http://x/b", "oneOf": [{"$ref": "a"}]}]},
]


@pytest.mark.parametrize("schema", ENDLESS)
def test_a_schema_without_end_is_given_up(schema: Any) -> None:
    with pytest.raises(Unusable) as caught:
        check(schema, {"a": 1})
    assert caught.value.reason == "bounds"


@pytest.mark.parametrize("schema", ENDLESS)
def test_however_full_the_stack_is_no_native_code_meets_its_end(schema: Any) -> None:
    # It panics there, with an exception that nobody catches.
    made = Schema(schema, 10.0)

    def from_below(levels: int) -> None:
        if levels:
            from_below(levels - 1)
            return
        with pytest.raises(Unusable) as caught:
            made.problems({"a": 1}, 10.0)
        assert caught.value.reason == "bounds"

    for levels in range(0, 850, 17):
        from_below(levels)


def doubling(levels: int, **more: Any) -> dict[str, Any]:
    parts = {
        str(level): {"anyOf": [{"$ref": f"#/$defs/{level + 1}"}] * 2, **more}
        for level in range(levels)
    }
    return {"$ref": "#/$defs/0", "$defs": {**parts, str(levels): {"type": "null"}}}


LISTS: Any = 1
for _ in range(40):
    LISTS = [LISTS]

SLOW: list[tuple[Any, Any]] = [
    (doubling(40), 1),
    (doubling(40, unevaluatedProperties=False), {"a": 1}),
    (doubling(40, unevaluatedItems=False), [1]),
    ({"anyOf": [{"items": {"$ref": "#"}}] * 2, "type": "array"}, [LISTS]),
    ({"items": {"not": {"contains": {"const": 1}}}}, [list(range(2, 2000))] * 2000),
    ({"pattern": "1[01]{600}2"}, "10" * 500_000),
    ({"patternProperties": {"1[01]{600}2": True}}, {"10" * 500_000: 1}),
    ({"additionalProperties": {}, "patternProperties": {"1[01]{600}2": {}}}, {"10" * 500_000: 1}),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value"), SLOW, ids=lambda part: str(part)[:40])
def test_a_check_that_takes_too_long_is_given_up(schema: Any, value: Any) -> None:
    made = Schema(schema, 10.0)
    with pytest.raises(Unusable) as caught:
        made.problems(value, 0.05)
    assert caught.value.reason == "bounds"
    assert caught.value.problem == "checking it takes longer than 50 ms"


def test_what_was_found_when_the_time_is_over_is_told() -> None:
    made = Schema({"required": ["z"], **doubling(40)}, 10.0)
    found = made.problems({}, 0.3)
    assert found == ["the value lacks a member: 'z' is a required property", "and perhaps more"]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {str(n): {"type": "integer"} for n in range(20_000)}},
        {"anyOf": [{"const": n} for n in range(20_000)]},
        {"$defs": {str(n): {"$ref": f"#/$defs/{n + 1}"} for n in range(20_000)}},
    ],
    ids=["properties", "anyOf", "references"],
)
def test_a_schema_of_too_many_parts_is_given_up(schema: Any) -> None:
    problem = refused(schema, 0.05)
    assert problem.reason == "bounds"
    assert problem.problem == "checking it takes longer than 50 ms"


def test_long_lists_are_compared_in_no_time() -> None:
    # Each with each it would be minutes.
    rows: list[Any] = [{"n": [number]} for number in range(20_000)]
    made = Schema({"uniqueItems": True}, 10.0)
    assert made.problems(rows, 10.0) == []
    assert made.problems([*rows, {"n": [19_999.0]}], 10.0) != []
    evens: list[Any] = [*range(5000), "odd"]
    seen = Schema({"anyOf": [{"contains": {"type": "integer"}}], "unevaluatedItems": False}, 10.0)
    assert seen.problems(evens, 10.0) == ["/5000 is not allowed"]


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 10**4000, -(10**4000), "\ud83d"])
def test_odd_values_are_told_of_or_fit(value: Any) -> None:
    schema = {"multipleOf": 0.1, "maximum": 5, "pattern": "^a", "enum": [1]}
    assert check(schema, value)
    assert check({"type": ["number", "string"]}, value) == []
