"""What is written between the parentheses becomes what is sent, or a mistake."""

from __future__ import annotations

from typing import Any

import pytest

from mcpclient.repl.calling import UNTOLD, bind
from mcpclient.repl.mistakes import Mistake, NoSuchKey, NoSuchName, WrongCall
from mcpclient.repl.schema import Parameters, of_schema

FOUND = of_schema(
    {
        "properties": {
            "path": {"type": "string"},
            "dry-run": {"type": "boolean", "default": False},
            "from": {"type": "string"},
        },
        "required": ["path"],
    }
)


@pytest.mark.parametrize(
    ("args", "kwargs", "sent"),
    [
        (["a"], {}, {"path": "a"}),
        ([], {"path": "a"}, {"path": "a"}),
        (["a", True, "b"], {}, {"path": "a", "dry-run": True, "from": "b"}),
        (["a"], {"from_": "b"}, {"path": "a", "from": "b"}),
        (["a"], {"from": "b", "dry-run": None}, {"path": "a", "from": "b", "dry-run": None}),
        (["a", ...], {"from_": UNTOLD}, {"path": "a"}),
    ],
)
def test_arguments_go_by_the_names_of_the_server(
    args: list[Any], kwargs: dict[str, Any], sent: dict[str, Any]
) -> None:
    assert bind("status", FOUND, args, kwargs) == sent


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        (["a"], {"pth": 1}, "status() has no argument 'pth'; did you mean 'path'?"),
        (["a"], {"zz": 1}, "status() has no argument 'zz' (known: path, dry_run, from_)"),
        (["a"], {"path": "b"}, "status() got 'path' twice; give it once"),
        (["a"], {"from": 1, "from_": 2}, "status() got 'from_' twice; give it once"),
        (
            [],
            {},
            "status() needs 'path'; it is status(path: str, dry_run: bool = False, "
            "from_: str = ...)",
        ),
        ([...], {}, "status() needs 'path'; it is status(path: str, dry_run: bool = False, "
                    "from_: str = ...)"),
        (
            [1, 2, 3, 4],
            {},
            "status() takes at most 3 arguments and got 4; it is status(path: str, "
            "dry_run: bool = False, from_: str = ...)",
        ),
    ],
)  # fmt: skip
def test_a_mistake_is_a_type_error_that_names_what_was_meant(
    args: list[Any], kwargs: dict[str, Any], text: str
) -> None:
    with pytest.raises(TypeError) as caught:
        bind("status", FOUND, args, kwargs)
    assert isinstance(caught.value, WrongCall)
    assert str(caught.value) == text


def test_where_a_server_takes_anything_anything_is_passed_on() -> None:
    assert bind("any", Parameters(open=True), [], {"a": 1, "b": ...}) == {"a": 1}


def test_mistakes_are_the_errors_that_python_itself_would_raise() -> None:
    assert issubclass(NoSuchName, AttributeError)
    assert issubclass(NoSuchKey, KeyError)
    assert issubclass(NoSuchKey, Mistake)
    assert str(NoSuchKey("no 'x'")) == "no 'x'"
