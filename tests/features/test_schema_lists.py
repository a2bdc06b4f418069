"""Where output schemas come from, and how it is asked for that results are checked."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import anyio
import pytest

from mcpclient import (
    CallTimedOut,
    ConfigError,
    Manager,
    OutputInvalid,
    RemoteProtocolError,
    ReplyError,
    Server,
    ServerSpec,
    ServerUnavailable,
)
from tests.conftest import ROOT, eventually, spec
from tests.features.checking import ERAS, counts, raised, schemas, told, warnings


@pytest.fixture(params=ERAS)
async def strict(manager: Manager, request: pytest.FixtureRequest) -> Server:
    return await manager.add("s", schemas(era=request.param))


# -- the list of tools ---------------------------------------------------------------------


async def test_the_list_is_asked_for_once_by_however_many_call(strict: Server) -> None:
    async def call(number: int) -> None:
        found = await told(strict, "number", structuredContent={"a": number})
        assert found.structured == {"a": number}

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(call, number)
    await raised(strict, "tree", structuredContent={})
    assert (await counts(strict))["lists"] == 1


async def test_a_list_that_the_user_asked_for_is_not_asked_for_again(strict: Server) -> None:
    assert await strict.list_tools()
    await raised(strict, "number", structuredContent={})
    assert (await counts(strict))["lists"] == 1
    # And what it says counts, also where a server forgets to tell of a change.
    await strict.list_tools(cache="refresh")
    await raised(strict, "number", structuredContent={})
    assert (await counts(strict))["lists"] == 2


async def test_after_a_change_the_new_schema_counts(strict: Server) -> None:
    await raised(strict, "number", structuredContent={"a": "x"})
    if strict.era == "stateless":
        # The server must have been asked to tell.
        while (await counts(strict))["listens"] == 0:
            await anyio.sleep(0.005)
    other = {"properties": {"a": {"type": "string"}}}
    await strict.call_tool("change", {"name": "number", "schema": other})
    assert (await told(strict, "number", structuredContent={"a": "x"})).structured == {"a": "x"}
    problem = await raised(strict, "number", structuredContent={"a": 1})
    assert problem.problems == ("/a must be of the type string",)
    assert (await counts(strict))["lists"] == 2


async def test_a_result_may_fit_what_its_tool_became_while_it_ran(manager: Manager) -> None:
    server = await manager.add("s", schemas())
    other = {"properties": {"a": {"type": "string"}}}
    result: Any = {"content": [], "structuredContent": {"a": "x"}}
    found = await server.invoke_tool("number", {"change": other, "result": result})
    assert found.structured == {"a": "x"}
    assert (await counts(server))["lists"] == 2
    # But not if it fits neither.
    result["structuredContent"] = {"a": 1}
    with pytest.raises(OutputInvalid) as caught:
        await server.invoke_tool("number", {"change": {"type": "null"}, "result": result})
    assert caught.value.problems == ("the value must be of the type null",)


async def test_each_life_has_its_own_list(strict: Server) -> None:
    await strict.call_tool("change", {"name": "number", "schema": {}})
    assert (await told(strict, "number", structuredContent={"a": "x"})).structured == {"a": "x"}
    await strict.restart()
    await raised(strict, "number", structuredContent={"a": "x"})
    assert (await counts(strict))["lists"] == 1


async def test_those_who_do_not_wait_are_checked_by_the_same_list(strict: Server) -> None:
    with pytest.raises(ServerUnavailable):
        await strict.no_wait.invoke_tool("number")
    await strict.wait_ready()
    for _ in range(2):
        with pytest.raises(OutputInvalid):
            await strict.no_wait.invoke_tool("number", {"result": {"structuredContent": {}}})
    await raised(strict, "number", structuredContent={})
    assert (await counts(strict))["lists"] == 1


@pytest.mark.parametrize("resend", ["never", "safe"])
async def test_what_may_be_sent_again_is_checked_as_well(manager: Manager, resend: str) -> None:
    server = await manager.add("s", schemas(resend=resend))
    await raised(server, "number", structuredContent={})
    assert (await told(server, "number", structuredContent={"a": 1})).structured == {"a": 1}


@pytest.mark.parametrize(
    ("spoilt", "kind", "said"),
    [("refused", ReplyError, "no list today"), ("broken", RemoteProtocolError, "the list")],
)
async def test_without_a_list_strict_calls_nothing_and_warn_goes_on(
    manager: Manager,
    caplog: pytest.LogCaptureFixture,
    spoilt: str,
    kind: type[Exception],
    said: str,
) -> None:
    server = await manager.add("s", schemas(f"list={spoilt}"))
    for _ in range(2):
        with pytest.raises(kind) as caught:
            await told(server, "number", structuredContent={})
        assert said in str(caught.value)
        assert not isinstance(caught.value, OutputInvalid)
    assert await counts(server) == {"lists": 2, "calls": 0, "listens": 0}
    other = await manager.add("w", schemas(f"list={spoilt}", validate="warn"))
    for _ in range(3):
        assert (await told(other, "number", structuredContent={})).structured == {}
    assert await counts(other) == {"lists": 1, "calls": 3, "listens": 0}
    (line,) = warnings(caplog)
    assert line.startswith("w ! results are not checked: ")
    assert said in line


async def test_a_list_that_does_not_come_takes_no_more_than_the_time_of_the_call(
    manager: Manager, caplog: pytest.LogCaptureFixture
) -> None:
    server = await manager.add("s", schemas("list=silent"))
    await server.wait_ready()
    with pytest.raises(CallTimedOut) as caught:
        await server.invoke_tool("number", timeout=0.1)
    assert caught.value.method == "tools/list"
    assert not caught.value.maybe_done
    assert "no answer within 100 ms for the list of tools, so no tool was called" in str(
        caught.value
    )
    assert (await counts(server))["calls"] == 0
    other = await manager.add("w", schemas("list=silent", validate="warn"))
    await other.wait_ready()
    result = {"content": [], "structuredContent": {}}
    assert (await other.invoke_tool("number", {"result": result}, timeout=1.0)).structured == {}
    assert (await counts(other))["calls"] == 1
    (line,) = warnings(caplog)
    assert line.startswith("w ! results are not checked: tools/list on")


async def test_those_who_wait_for_the_list_may_be_in_a_hurry_each_for_itself(
    manager: Manager,
) -> None:
    server = await manager.add("s", schemas("list=silent"))
    await server.wait_ready()
    ended: list[float] = []

    async def call(timeout: float) -> None:
        with pytest.raises(CallTimedOut):
            await server.invoke_tool("number", timeout=timeout)
        ended.append(timeout)

    async with anyio.create_task_group() as group:
        group.start_soon(call, 0.6)
        await eventually(lambda: server.status().in_flight == 1)
        group.start_soon(call, 0.1)
    assert ended == [0.1, 0.6]


# -- how it is asked for -------------------------------------------------------------------


def test_by_default_nothing_is_checked_and_nothing_loaded() -> None:
    assert ServerSpec("x").validate == "off"
    code = """
import sys, anyio
from mcpclient import Manager, ServerSpec
async def main():
    async with Manager({"s": ServerSpec(sys.executable, [sys.argv[1], "handshake"])}) as manager:
        found = await manager["s"].invoke_tool("number", {"result": {"structuredContent": 5}})
        print(found.structured, (await manager["s"].call_tool("counts")).structured["lists"])
    loaded = ("jsonschema", "regex", "referencing", "mcpclient.features.schemas")
    print([name for name in loaded if name in sys.modules])
anyio.run(main)
"""
    server = ROOT / "fixtures" / "servers" / "schemas.py"
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, str(server)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("5 0\n[]\n", "")


@pytest.mark.parametrize("mode", ["Strict", "", "on", None, True, 1])
def test_there_are_no_other_modes(mode: Any) -> None:
    with pytest.raises(ValueError) as caught:
        ServerSpec("x", validate=mode)
    assert str(caught.value) == f'validate must be "off", "warn" or "strict", not {mode!r}'


async def test_a_mapping_may_ask_for_it_too(manager: Manager) -> None:
    wanted = schemas()
    entry = {"command": wanted.command, "args": list(wanted.args), "validate": "strict"}
    server = await manager.add("s", entry)
    await raised(server, "number", structuredContent={})
    with pytest.raises(ConfigError) as caught:
        await manager.add("other", {**entry, "validate": "yes"})
    assert caught.value.problem == 'validate must be "off", "warn" or "strict", not \'yes\''


async def test_a_reload_changes_whether_it_is_checked(manager: Manager) -> None:
    server = await manager.add("s", schemas(validate="off"))
    assert (await told(server, "number", structuredContent={})).structured == {}
    await manager.reload({"s": schemas()})
    await raised(server, "number", structuredContent={})
    await manager.reload({"s": schemas(validate="off")})
    assert (await told(server, "number", structuredContent={})).structured == {}


@pytest.mark.parametrize("package", ["jsonschema", "regex"])
async def test_without_the_packages_the_manager_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    said = (
        f"s.validate: checking results needs {package}: pip install 'mcpclient[schema]', "
        'or leave it "off"'
    )
    monkeypatch.setitem(sys.modules, package, None)  # type: ignore[arg-type]  # "is not there"
    for mode in ("warn", "strict"):
        wanted = schemas(validate=mode)
        refusing = Manager({"first": spec("good_handshake", start="eager"), "s": wanted})
        with pytest.raises(ConfigError) as caught:
            await refusing.open()
        assert str(caught.value) == said
        assert caught.value.key == "s.validate"
        # Nothing was started; without the wish it opens.
        async with Manager({"s": schemas(validate="off")}) as manager:
            with pytest.raises(ConfigError) as caught:
                await manager.add("t", wanted)
            assert caught.value.key == "t.validate"
            with pytest.raises(ConfigError) as caught:
                await manager.reload({"s": wanted})
            assert str(caught.value) == said
            assert (await told(manager["s"], "number", structuredContent={})).structured == {}
