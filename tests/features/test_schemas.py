"""Results of tools against the output schemas they declare: off, warned of, or raised."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import (
    Limits,
    Manager,
    OutputInvalid,
    RemoteProtocolError,
    Server,
    Timeouts,
    ToolError,
)
from tests.conftest import spec
from tests.features.checking import ERAS, STRICT, counts, raised, schemas, told, warnings

TEXT = {"type": "text", "text": "words"}
UNUSABLE = {
    "dialect": "dialect",
    "missing_ref": "reference",
    "cyclic_ref": "reference",
    "text": "schema",
    "elephant": "schema",
}


@pytest.fixture(params=ERAS)
async def strict(manager: Manager, request: pytest.FixtureRequest) -> Server:
    return await manager.add("s", schemas(era=request.param))


@pytest.fixture(params=ERAS)
async def warned(manager: Manager, request: pytest.FixtureRequest) -> Server:
    return await manager.add("s", schemas(era=request.param, validate="warn"))


# -- strict --------------------------------------------------------------------------------


async def test_a_result_that_fits_is_returned_as_without_a_check(strict: Server) -> None:
    fitting = await told(strict, "number", content=[TEXT], structuredContent={"a": 1, "b": "more"})
    assert fitting.structured == {"a": 1, "b": "more"}
    assert fitting.text == "words"
    unchecked = await told(
        strict, "number", verb="call_tool", content=[TEXT], structuredContent={"a": 1, "b": "more"}
    )
    assert fitting == unchecked


async def test_a_result_that_does_not_fit_is_raised_with_all_of_it(strict: Server) -> None:
    problem = await raised(strict, "number", content=[TEXT], structuredContent={"a": "secret"})
    assert isinstance(problem, RemoteProtocolError)
    assert problem.reason == "value"
    assert problem.problems == ("/a must be of the type integer",)
    assert problem.result.structured == {"a": "secret"}
    assert problem.result.text == "words"
    assert str(problem) == (
        "the result of tool 'number' on \"s\": /a must be of the type integer; the result is kept "
        "in .result, and call_tool() does not check"
    )
    again = problem.again()
    assert (again.problems, again.result, again.reason) == (
        problem.problems,
        problem.result,
        "value",
    )


async def test_call_tool_never_checks(strict: Server) -> None:
    for tool in ("number", "nothing", "missing_ref", "elephant"):
        found = await told(strict, tool, verb="call_tool", content=[], structuredContent={"a": "x"})
        assert found.structured == {"a": "x"}
    assert (await counts(strict))["lists"] == 0


async def test_the_value_alone_is_checked_and_not_what_is_around_it(manager: Manager) -> None:
    # B167: the schema allows no other members, and the result has some.
    server = await manager.add("s", spec("tool_results", validate="strict", timeouts=STRICT))
    assert (await server.invoke_tool("fitting")).structured == {"a": 1}
    with pytest.raises(OutputInvalid) as caught:
        await server.invoke_tool("misfit")
    assert caught.value.problems == (
        "/a must be of the type integer",
        "/b is not allowed",
    )
    assert caught.value.result.structured == {"a": "text", "b": 2}


async def test_a_failure_is_a_failure_whatever_its_content(manager: Manager) -> None:
    # B165
    server = await manager.add("s", spec("tool_results", validate="strict", timeouts=STRICT))
    with pytest.raises(ToolError) as caught:
        await server.invoke_tool("misfit_error")
    assert caught.value.message == "words"
    assert caught.value.result.structured == {"error": "x"}


async def test_content_without_its_structure_is_raised_with_the_content(manager: Manager) -> None:
    # B168: stripped on the way.
    server = await manager.add("s", spec("tool_results", validate="strict", timeouts=STRICT))
    with pytest.raises(OutputInvalid) as caught:
        await server.invoke_tool("stripped")
    assert caught.value.reason == "missing"
    assert caught.value.problems == (
        "it declares an output schema, but gave no structured content",
    )
    assert caught.value.result.text == "words"
    assert not caught.value.result.has_structured


async def test_a_tool_that_declares_nothing_may_answer_anything(strict: Server) -> None:
    assert (await told(strict, "none", content=[TEXT])).text == "words"
    assert (await told(strict, "none", content=[], structuredContent={"x": 1})).structured == {
        "x": 1
    }


# -- any value, by presence ----------------------------------------------------------------


@pytest.mark.parametrize("value", [None, 0, False, "", [], [0], "text", 1.5])
async def test_any_json_value_is_structured_content_of_the_newer_era(
    manager: Manager, value: Any
) -> None:
    # TOOL-05: null is a value, not the absence of one.
    server = await manager.add("s", schemas(era="stateless"))
    found = await told(server, "any", content=[], structuredContent=value)
    assert found.has_structured
    assert found.structured == value
    assert type(found.structured) is type(value)


async def test_a_value_that_python_takes_for_nothing_is_checked_too(manager: Manager) -> None:
    server = await manager.add("s", schemas(era="stateless"))
    assert (await told(server, "null", content=[], structuredContent=None)).structured is None
    for value in (0, False, "", []):
        problem = await raised(server, "null", content=[], structuredContent=value)
        assert problem.problems == ("the value must be of the type null",)
    problem = await raised(server, "number", content=[], structuredContent=None)
    assert (problem.reason, problem.problems) == (
        "value",
        ("the value must be of the type object",),
    )


@pytest.mark.parametrize("value", [None, 0, False, "", [1, 2], "text"])
async def test_in_the_older_era_what_is_no_object_counts_as_not_given(
    manager: Manager, caplog: pytest.LogCaptureFixture, value: Any
) -> None:
    # TOOL-06, even where the schema would allow it; the content is there to fall back to.
    server = await manager.add("s", schemas())
    problem = await raised(server, "any", content=[TEXT], structuredContent=value)
    assert problem.reason == "missing"
    assert problem.problems == ("its structured content must be an object by its version",)
    assert problem.result.text == "words"
    other = await manager.add("w", schemas(validate="warn"))
    found = await told(other, "any", content=[TEXT], structuredContent=value)
    assert found.text == "words"
    assert warnings(caplog) == [
        "w#1 ! tool any: its structured content must be an object by its version"
    ]


async def test_integers_are_checked_to_their_last_digit(manager: Manager) -> None:
    # B179
    exact = 1915883588174806058
    schema = {"properties": {"id": {"const": exact}, "big": {"type": "integer"}}}
    server = await manager.add("s", schemas(f"exact={json.dumps(schema)}"))
    value = {"id": exact, "big": 2**70}
    assert (await told(server, "exact", structuredContent=value)).structured == value
    problem = await raised(server, "exact", structuredContent={"id": exact + 1})
    assert problem.problems == (f"/id does not fit const {exact}",)


# -- warn ----------------------------------------------------------------------------------


async def test_what_does_not_fit_is_logged_and_returned(
    warned: Server, caplog: pytest.LogCaptureFixture
) -> None:
    found = await told(warned, "number", content=[TEXT], structuredContent={"a": "secret"})
    assert found.structured == {"a": "secret"}
    stripped = await told(warned, "number", content=[TEXT])
    assert stripped.text == "words"
    assert (await told(warned, "number", structuredContent={"a": 1})).structured == {"a": 1}
    assert warnings(caplog) == [
        "s#1 ! tool number: /a must be of the type integer",
        "s#1 ! tool number: it declares an output schema, but gave no structured content",
    ]


async def test_a_failure_is_raised_in_warn_mode_too_and_not_warned_of(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("s", spec("tool_results", validate="warn", timeouts=STRICT))
    with pytest.raises(ToolError):
        await server.invoke_tool("misfit_error")
    assert warnings(caplog) == []


async def test_a_name_of_a_tool_or_member_cannot_forge_a_line_of_the_log(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    schema = json.dumps({"additionalProperties": False})
    server = await manager.add("s", schemas(f"a\n\x1b[2J={schema}", validate="warn"))
    await told(server, "a\n\x1b[2J", structuredContent={"b\n\x1b]0;t\x07": 1})
    assert warnings(caplog) == [
        "s#1 ! tool a\\n\\x1b[2J: /b\\n\\x1b]0;t\\x07 is not allowed",
    ]


# -- schemas that cannot be used -----------------------------------------------------------


@pytest.mark.parametrize(("tool", "reason"), UNUSABLE.items())
async def test_a_schema_that_cannot_be_used_is_told_and_costs_only_its_own_tool(
    manager: Manager, caplog: pytest.LogCaptureFixture, tool: str, reason: str
) -> None:
    # B173
    server = await manager.add("s", schemas())
    problem = await raised(server, tool, content=[TEXT], structuredContent={"a": 1})
    assert problem.reason == reason
    assert problem.problems[0].startswith("its output schema cannot be used: ")
    assert problem.result.structured == {"a": 1}
    assert (await told(server, "number", structuredContent={"a": 1})).structured == {"a": 1}
    other = await manager.add("w", schemas(validate="warn"))
    for _ in range(3):
        found = await told(other, tool, content=[TEXT], structuredContent={"a": 1})
        assert found.structured == {"a": 1}
    assert warnings(caplog) == [f"w#1 ! tool {tool}: {problem.problems[0]}"]


async def test_a_list_of_faulty_tools_is_a_list_all_the_same(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    # B170, B171, B173, B174: read only when their tool is called.
    server = await manager.add("s", spec("bad_tool_schema", validate="warn", timeouts=STRICT))
    names = {tool.name for tool in await server.list_tools()}
    assert {"only_marker", "no_schema", "missing_ref", "cyclic_ref", "tree"} <= names
    caplog.clear()
    for name in ("only_marker", "no_schema", "null_schema", "null_fields", "text_schema", "tree"):
        assert (await server.invoke_tool(name)).text == name
    assert warnings(caplog) == []
    assert (await server.invoke_tool("missing_ref")).text == "missing_ref"
    assert (await server.invoke_tool("cyclic_ref")).text == "cyclic_ref"
    assert warnings(caplog) == [
        "s#1 ! tool missing_ref: its output schema cannot be used: it refers to '#/$defs/X', "
        "which leads nowhere",
        "s#1 ! tool cyclic_ref: its output schema cannot be used: it refers to '#/$defs/X', "
        "which is itself",
    ]


async def test_a_schema_that_refers_to_itself_is_followed_as_far_as_the_value_goes(
    strict: Server,
) -> None:
    # B174
    tree: Any = {"name": "leaf"}
    for level in range(50):
        tree = {"name": f"level {level}", "children": [tree, {"name": "leaf"}]}
    assert (await told(strict, "tree", structuredContent=tree)).structured == tree
    tree["children"][0]["children"][0]["name"] = 5
    problem = await raised(strict, "tree", structuredContent=tree)
    assert problem.problems == ("/children/0/children/0/name must be of the type string",)


async def test_a_reference_to_the_network_is_refused_and_never_followed(
    manager: Manager, tmp_path: Path
) -> None:
    # SCH-04, SCH-06
    part = tmp_path / "part.json"
    part.write_text("true")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        uri = f"http://127.0.0.1:{listener.getsockname()[1]}/part.json"
        words = [
            f"net={json.dumps({'properties': {'a': {'$ref': uri}}})}",
            f"file={json.dumps({'$ref': part.as_uri()})}",
            f"dialect={json.dumps({'$schema': uri})}",
        ]
        server = await manager.add("s", schemas(*words))
        for tool, reason in (("net", "reference"), ("file", "reference"), ("dialect", "dialect")):
            problem = await raised(server, tool, structuredContent={"a": 1})
            assert problem.reason == reason
            assert problem.result.structured == {"a": 1}
        with pytest.raises(BlockingIOError):
            listener.accept()


async def test_a_schema_over_its_limit_is_not_read(manager: Manager) -> None:
    server = await manager.add("s", schemas(limits=Limits(schemas=200)))
    problem = await raised(server, "huge", structuredContent={})
    assert problem.reason == "bounds"
    assert problem.problems[0].endswith(" bytes (Limits.schemas)")
    # Those that fit in are read anew where they do not fit in together.
    for _ in range(2):
        for tool in ("number", "tree", "list"):
            with pytest.raises(OutputInvalid) as caught:
                await told(server, tool, structuredContent={"name": 5})
            assert caught.value.reason == "value"


# -- the loop goes on ----------------------------------------------------------------------

QUICK_CHECK = Timeouts(eof=1.0, term=0.5, check=0.3)


async def turns_during(call: Any) -> int:
    """Return how often others got their turn while something was awaited."""
    turns = 0
    async with anyio.create_task_group() as group:

        async def count() -> None:
            nonlocal turns
            while True:
                turns += 1
                await anyio.sleep(0.001)

        group.start_soon(count)
        await call
        group.cancel_scope.cancel()
    return turns


@pytest.mark.parametrize(
    ("tool", "value"),
    [
        ("doubling", {}),
        ("slow_pattern", {"a": "10" * 200_000}),
        ("huge", {}),
        ("rows", {"rows": [{"a": number} for number in range(100_000)]}),
    ],
)
async def test_a_check_that_takes_too_long_ends_and_holds_nobody_up(
    manager: Manager, tool: str, value: Any
) -> None:
    server = await manager.add("s", schemas(timeouts=QUICK_CHECK))
    await told(server, "number", structuredContent={"a": 1})
    found: list[OutputInvalid] = []

    async def call() -> None:
        found.append(await raised(server, tool, structuredContent=value))

    assert await turns_during(call()) > 10
    assert found[0].reason == "bounds"
    assert found[0].problems == (
        "its output schema cannot be used: checking it takes longer than 300 ms",
    )
    assert found[0].result.structured == value


async def test_a_large_result_is_checked_whole(strict: Server) -> None:
    rows: list[Any] = [{"a": number, "text": "x" * 20} for number in range(5000)]
    assert (
        len((await told(strict, "rows", structuredContent={"rows": rows})).structured["rows"])
        == 5000
    )
    rows[4321]["a"] = "secret"
    problem = await raised(strict, "rows", structuredContent={"rows": rows})
    assert problem.problems == ("/rows/4321/a must be of the type integer",)


async def test_a_call_that_is_cancelled_while_it_is_checked_ends_at_once(manager: Manager) -> None:
    server = await manager.add("s", schemas(timeouts=Timeouts(eof=1.0, term=0.5, check=1.0)))
    await told(server, "doubling", verb="call_tool", content=[])
    with anyio.move_on_after(0.1) as scope:
        await told(server, "doubling", structuredContent={})
    assert scope.cancelled_caught
    assert (await told(server, "number", structuredContent={"a": 1})).structured == {"a": 1}
