"""Names that clash by the thousand, and parameters named like Python's own."""

from __future__ import annotations

import itertools

from mcpclient.repl import calling
from mcpclient.repl.names import identifiers
from mcpclient.repl.schema import of_schema


def test_names_that_clash_by_the_thousand_are_numbered_without_end_in_sight() -> None:
    # Counted anew for each of them, it would take an hour.
    names = ["a" + "".join(marks) for marks in itertools.product("-.", repeat=16)]
    words = identifiers(names)
    assert list(words.values()) == names
    assert list(words)[:3] == ["a" + "_" * 16, "a" + "_" * 16 + "_2", "a" + "_" * 16 + "_3"]
    assert list(words)[-1] == "a" + "_" * 16 + "_65536"


def test_names_that_clash_with_numbers_of_others_are_still_numbered_in_order() -> None:
    assert identifiers(["a-b", "a_b_2", "a.b", "a_b", "a:b"]) == {
        "a_b_3": "a-b",
        "a_b_2": "a_b_2",
        "a_b_4": "a.b",
        "a_b": "a_b",
        "a_b_5": "a:b",
    }


def test_parameters_named_like_pythons_own_are_told_apart_and_sent_as_the_server_has_them() -> None:
    wires = ["self", "return", "more", "a-b", "a_b", "class", "__init__", "", "\u202e", "ﬁ", "fi"]
    wires += ["1x", "None", "args", "kwargs", "a_b_2", "name", "parameters"]
    parameters = of_schema(
        {
            "properties": {wire: {} for wire in wires},
            "required": wires,
            "additionalProperties": True,
        }
    )
    signature = calling.signature(parameters)
    assert "**more_" in str(signature)
    given = {one.name: place for place, one in enumerate(parameters.listed)}
    found = calling.bind("tool", parameters, (), given)
    assert sorted(found) == sorted(wires)
    assert [found[one.wire] for one in parameters.listed] == list(range(len(wires)))
