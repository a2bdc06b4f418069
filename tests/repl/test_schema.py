"""A JSON Schema becomes parameters, whatever is in it."""

from __future__ import annotations

import time
from typing import Any, Literal

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpclient.protocol.types import Prompt, ResourceTemplate
from mcpclient.repl.calling import brief, documented, signature
from mcpclient.repl.schema import Parameters, of_prompt, of_schema, of_template, spelled


def one(schema: Any, **root: Any) -> Any:
    """Return the single parameter of a tool that takes such a value."""
    found = of_schema({"type": "object", "properties": {"x": schema}, **root})
    return found.listed[0]


@pytest.mark.parametrize(
    ("schema", "spelling"),
    [
        ({"type": "string"}, "str"),
        ({"type": "integer"}, "int"),
        ({"type": "number"}, "float"),
        ({"type": "boolean"}, "bool"),
        ({"type": "null"}, "None"),
        ({"type": "object"}, "dict"),
        ({"properties": {}}, "dict"),
        ({"type": "array"}, "list"),
        ({"type": "array", "items": {"type": "string"}}, "list[str]"),
        ({"type": "array", "items": {"type": "array", "items": {}}}, "list[list]"),
        ({"type": ["string", "null"]}, "str | None"),
        ({"type": ["integer", "number"]}, "float"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "int | None"),
        ({"anyOf": [{"type": "integer"}, {}]}, "Any"),
        ({"enum": ["a", "b"]}, "Literal['a', 'b']"),
        ({"type": "string", "enum": ["a"]}, "Literal['a']"),
        ({"enum": ["a", None]}, "Literal['a', None]"),
        ({"enum": [1.5, "a"]}, "float | str"),
        ({"enum": []}, "Any"),
        ({"enum": [f"v{n}" for n in range(21)]}, "str"),
        ({"const": "only"}, "Literal['only']"),
        ({"const": {"a": 1}}, "dict"),
        ({"$ref": "#/$defs/Mode"}, "Literal['r', 'w']"),
        ({"allOf": [{"$ref": "#/$defs/Mode"}]}, "Literal['r', 'w']"),
        ({"allOf": [{}, {"type": "string"}]}, "str"),
        ({"$ref": "#/$defs/a~1b"}, "int"),
        ({"$ref": "#/$defs/Loop"}, "Any"),
        ({"$ref": "#/nowhere"}, "Any"),
        ({"$ref": "https://example.com/schema"}, "Any"),
        ({"type": "date"}, "Any"),
        ({"type": 5}, "Any"),
        ({}, "Any"),
        (True, "Any"),
        (None, "Any"),
        ("text", "Any"),
    ],
)  # fmt: skip
def test_a_type_is_spelled_in_the_words_of_python(schema: Any, spelling: str) -> None:
    defs = {
        "Mode": {"type": "string", "enum": ["r", "w"]},
        "a/b": {"type": "integer"},
        "Loop": {"$ref": "#/$defs/Loop"},
    }
    assert spelled(one(schema, **{"$defs": defs}).annotation) == spelling


def test_required_arguments_come_first_each_kind_in_the_order_of_the_schema() -> None:
    schema = {
        "properties": {"d": {}, "c": {}, "b": {"default": 3}, "a": {}},
        "required": ["a", "c", "unlisted"],
    }
    found = of_schema(schema)
    assert [p.wire for p in found.listed] == ["c", "a", "unlisted", "d", "b"]
    assert str(signature(found)) == (
        "(c: Any, a: Any, unlisted: Any, d: Any = ..., b: Any = 3)"
    )  # fmt: skip


def test_names_that_python_does_not_take_are_mapped_and_the_docstring_says_so() -> None:
    found = of_schema({"properties": {"from": {"type": "string"}, "dry-run": {"type": "boolean"}}})
    assert [(p.name, p.wire) for p in found.listed] == [("from_", "from"), ("dry_run", "dry-run")]
    assert brief(found) == "(from_: str = ..., dry_run: bool = ...)"
    assert "    from_ (str, optional): The server calls it 'from'." in documented(found, "t", "")


def test_the_values_of_an_enum_are_listed_through_references_and_alternatives() -> None:
    assert one({"enum": ["a", "b"]}).values == ("a", "b")
    assert one({"type": "boolean"}).values == (True, False)
    assert one({"type": ["boolean", "null"]}).values == (True, False)
    assert one({"anyOf": [{"enum": ["a"]}, {"const": "c"}, {"type": "null"}]}).values == ("a", "c")
    assert one({"$ref": "#/$defs/M"}, **{"$defs": {"M": {"enum": [1, 2]}}}).values == (1, 2)
    assert one({"type": "string"}).values == ()


@pytest.mark.parametrize(
    ("schema", "takes_others"),
    [
        ({"type": "object"}, True),
        ({}, True),
        ({"properties": {}}, False),
        ({"properties": {}, "additionalProperties": False}, False),
        ({"properties": {"a": {}}, "additionalProperties": True}, True),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "string"}}, True),
        ({"properties": None}, True),
        ({"properties": {f"p{n}": {} for n in range(300)}}, True),
    ],
)
def test_other_arguments_are_taken_only_where_the_schema_takes_them(
    schema: dict[str, Any], takes_others: bool
) -> None:
    assert of_schema(schema).open is takes_others


def test_a_schema_put_together_of_parts_gives_the_arguments_of_all_of_them() -> None:
    schema = {
        "$ref": "#/$defs/Base",
        "allOf": [{"properties": {"b": {}}, "required": ["b"]}],
        "oneOf": [
            {"properties": {"c": {}}, "required": ["c"]},
            {"properties": {"d": {}}, "required": ["d"]},
        ],
        "$defs": {"Base": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}},
    }
    # Of alternatives nobody can say here which holds, so their arguments may be left out.
    assert brief(of_schema(schema)) == "(a: int, b: Any, c: Any = ..., d: Any = ...)"


def test_the_docstring_holds_what_the_server_says_and_no_control_of_a_terminal() -> None:
    schema = {
        "properties": {
            "path": {"type": "string", "description": "Where.\nAll of it.\x1b[2J"},
            "mode": {"enum": ["a", "b"], "default": "a", "description": "How"},
        },
        "required": ["path"],
    }
    found = documented(of_schema(schema), "Title", "  Does it.\r\n\x9b31mTwice.  ", ["End."])
    assert found == (
        "Does it.\n"
        "\\x9b31mTwice.\n"
        "\n"
        "Args:\n"
        "    path (str): Where.\n"
        "        All of it.\\x1b[2J.\n"
        "    mode (Literal['a', 'b'], optional): How. Default: 'a'.\n"
        "\n"
        "End."
    )
    assert documented(Parameters(), "Its title", "") == "Its title"


def test_a_prompt_takes_text_and_the_required_first() -> None:
    wire = {
        "name": "review",
        "arguments": [
            {"name": "style", "description": "How."},
            {"name": "code", "required": True},
            {"name": "code", "required": False},
        ],
    }
    found = of_prompt(Prompt.from_wire(msgspec.Raw(msgspec.json.encode(wire))))
    assert brief(found) == "(code: str, style: str = ...)"
    nothing = of_prompt(Prompt.from_wire(msgspec.Raw(b'{"name": "x"}')))
    assert nothing == Parameters()


def test_of_a_template_only_what_stands_in_its_query_may_be_left_out() -> None:
    wire = {"uriTemplate": "db://{+host}/{table:3}{?limit,offset*}{&more}"}
    found = of_template(ResourceTemplate.from_wire(msgspec.Raw(msgspec.json.encode(wire))))
    assert brief(found) == (
        "(host: str, table: str, limit: str = ..., offset: str = ..., more: str = ...)"
    )


def test_a_schema_that_grows_without_end_is_read_to_a_bound() -> None:
    wide: dict[str, Any] = {"anyOf": [{"$ref": "#"}] * 50, "properties": {"x": {"$ref": "#"}}}
    begun = time.monotonic()
    of_schema(wide)
    # Without the bound it would take for ever.
    assert time.monotonic() - begun < 20
    many = of_schema({"properties": {f"p{n}": {"enum": list(range(5000))} for n in range(2000)}})
    assert len(many.listed) == 250
    assert len(many.listed[0].values) == 1000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.sampled_from(
            ["properties", "required", "enum", "anyOf", "allOf", "$ref", "type", "items", "default",
             "description", "const", "additionalProperties", "x"]
        ) | st.text(max_size=4), inner, max_size=5),
    max_leaves=30,
)  # fmt: skip


@settings(max_examples=100)
@given(st.dictionaries(st.sampled_from(["properties", "required", "allOf", "$ref"]), JSON))
def test_rubbish_for_a_schema_gives_a_signature_all_the_same(schema: dict[str, Any]) -> None:
    found = of_schema(schema)
    assert len(signature(found).parameters) == len(found.listed) + found.open
    assert documented(found, "t", "d")
    assert brief(found)


def test_a_literal_is_a_literal_for_tools_that_read_signatures() -> None:
    found = signature(of_schema({"properties": {"mode": {"enum": ["a", "b"]}}}))
    assert found.parameters["mode"].annotation == Literal["a", "b"]
