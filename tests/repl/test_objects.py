"""The objects: the same over the async and the blocking manager."""

from __future__ import annotations

import inspect
import pydoc
from typing import Literal

import pytest

import mcpclient
from mcpclient import LocalProtocolError, ToolError, ToolResult, handles
from mcpclient.blocking import Manager
from mcpclient.repl import Explorer, Mistake, NoSuchKey, NoSuchName, Servers, WrongCall, explore
from tests.conftest import eventually
from tests.repl.conftest import settled, spec


async def test_tools_prompts_and_resources_are_there_over_either_face(servers: Servers) -> None:
    git = servers.git
    assert str(await settled(git.tools.echo(text="hello"))) == "hello"
    assert str(await settled(git.tools["odd-name"]())) == "{}"
    said = await settled(git.tools.status(".", "long", max_count=3, from_="x"))
    assert said.text == '{"path": ".", "mode": "long", "max-count": 3, "from": "x"}'
    assert isinstance(said, ToolResult)
    prompt = await settled(git.prompts.review("x = 1", style="kind"))
    assert str(prompt) == "user:\n{'code': 'x = 1', 'style': 'kind'}"
    assert "me" in (await settled(git.resources["file:///read.md"])).text
    assert "me" in (await settled(git.read("file:///read.md", cache="refresh"))).text
    made = await settled(git.templates["test://item/{name}{?rev}"](name="a b", rev="1"))
    assert made.contents[0].uri == "test://item/a%20b?rev=1"
    assert (await settled(git.invoke_tool("echo", {"text": "raw"}))).text == "raw"
    assert servers["odd-one"] is servers.odd_one


async def test_a_mistake_is_told_before_anything_is_sent_over_either_face(
    servers: Servers,
) -> None:
    git = servers.git
    await settled(git.refresh())
    before = await settled(git.tools.asked())
    with pytest.raises(WrongCall, match="no argument 'txt'; did you mean 'text'"):
        git.tools.echo(txt="x")
    with pytest.raises(NoSuchName, match="git has no tool 'ecko'; did you mean 'echo'"):
        git.tools.ecko  # noqa: B018 - the look-up is what fails
    with pytest.raises(NoSuchKey, match="git has no prompt 'revue'; did you mean 'review'"):
        git.prompts["revue"]
    with pytest.raises(NoSuchName, match="no server is named 'gti'; did you mean 'git'"):
        servers.gti  # noqa: B018
    with pytest.raises(NoSuchName, match="git has no 'tols'; did you mean 'tools'"):
        git.tols  # noqa: B018
    after = await settled(git.tools.asked())
    assert after.text == before.text[:-1] + ', "tools/call"]'


async def test_without_a_list_the_call_itself_finds_the_mistake(servers: Servers) -> None:
    with pytest.raises((WrongCall, NoSuchName)):
        await settled(servers.git.tools.echo(txt="x"))
    assert str(await settled(servers.odd_one.tools.odd_name())) == "{}"
    with pytest.raises(NoSuchName, match="'nothing'"):
        await settled(servers.odd_one.tools.nothing())


async def test_a_changed_list_is_read_again_over_either_face(servers: Servers) -> None:
    git = servers.git
    await settled(git.refresh())
    assert "grown" not in git.tools
    await settled(git.tools.grow())
    await eventually(lambda: git._lists.fresh("tools") is None)
    await settled(git.tools.echo(text="reads the list first"))
    assert "grown" in git.tools
    assert str(await settled(git.tools.grown())) == "{}"


async def test_a_failed_tool_raises_over_either_face(servers: Servers) -> None:
    with pytest.raises(ToolError, match="it failed\nand why"):
        await settled(servers.git.tools.fail())


def test_a_signature_says_what_the_schema_says(git: Explorer) -> None:
    status = git.tools.status
    assert str(inspect.signature(status)).partition(" -> ")[0] == (
        "(path: str, mode: Literal['short', 'long', 'q\"uote'] = 'short', deep: bool = ..., "
        "max_count: int = ..., from_: str = ...)"
    )
    mode = inspect.signature(status).parameters["mode"]
    assert mode.annotation == Literal["short", "long", 'q"uote']
    assert repr(status).startswith("git.tools.status(path: str, mode: Literal['short', 'long', ")


def test_help_tells_of_a_tool_and_lets_no_escape_through(git: Explorer) -> None:
    told = pydoc.plain(pydoc.render_doc(git.tools.status))
    assert "status = git.tools.status(path: str, mode:" in told
    assert "Tells its arguments." in told
    assert (
        "mode (Literal['short', 'long', 'q\"uote'], optional): How much. Default: 'short'." in told
    )
    assert "The server calls it 'max-count'." in told
    assert "\x1b" not in told
    assert "\\x1b[2J" in told
    assert "The server says: it changes nothing." in str(git.tools.hinted.__doc__)


def test_a_tool_that_names_no_arguments_takes_any(git: Explorer) -> None:
    assert git.tools.anything(a=1, b=[None]).text == '{"a": 1, "b": [null]}'


def test_a_tool_is_not_mistaken_for_a_method_of_its_collection(git: Explorer) -> None:
    assert str(git.tools.keys()) == "{}"
    assert str(git.tools.class_()) == "{}"
    # What begins with an underscore is asked for by notebooks; it is there in brackets.
    assert git.tools._repr_html_().startswith("<table>")
    assert str(git.tools["_repr_html_"]()) == "{}"
    assert "_repr_html_" not in dir(git.tools)
    assert {"status", "odd_name", "class_", "keys"} < set(dir(git.tools))


def test_options_of_a_call_are_given_apart_from_the_arguments_of_the_tool(git: Explorer) -> None:
    with pytest.raises(TimeoutError, match='on "git": no answer within 50 ms'):
        git.tools.slow.using(timeout=0.05)()
    assert git.tools.cancelled().text == "1"
    with pytest.raises(WrongCall, match="no option 'timout'; did you mean 'timeout'"):
        git.tools.slow.using(timout=1)
    assert git.read.using(timeout=5)("file:///data.json").text


def test_a_reference_to_a_tool_that_is_kept_learns_of_changes(git: Explorer) -> None:
    echo = git.tools.echo
    git.stop()
    git.start()
    assert echo("again").text == "again"
    assert git.tools.asked().text.count("tools/list") == 1


def test_a_server_that_was_removed_and_added_again_is_another() -> None:
    with Manager({"git": spec()}) as manager:
        servers = explore(manager)
        first = servers.git
        assert servers.git is first
        manager.remove("git")
        with pytest.raises(NoSuchName):
            servers.git  # noqa: B018
        assert list(servers) == []
        manager.add("git", spec())
        assert servers.git is not first
        assert servers.git.tools.echo("x").text == "x"


def test_explorers_that_are_dropped_are_not_held_by_the_manager(git: Explorer) -> None:
    import gc
    import weakref

    manager = git.server._home
    dropped = weakref.ref(explore(manager))
    gc.collect()
    assert dropped() is None
    git.tools.grow()  # what it listened for comes, and nobody minds
    assert git.tools.echo("x").text == "x"


def test_a_table_shows_what_there_is_and_errors_instead_of_a_traceback(git: Explorer) -> None:
    lines = repr(git.tools).splitlines()
    assert lines[0] == "tools of git"
    assert lines[1].split() == ["tool", "arguments", "description"]
    assert lines[2].split()[:6] == ["status", "path", "[mode]", "[deep]", "[max_count]", "[from_]"]
    assert "\x1b" not in repr(git.tools)
    assert [line.split()[0] for line in repr(git.prompts).splitlines()[2:]] == ["review"]
    assert "2.0 kB" in repr(git.resources)
    assert "test://item/{name}{?rev}" in repr(git.templates)
    assert "explored 1.0\\x1b]0;owned" in repr(git)
    assert "says" in repr(git)
    with Manager({"no": ["/nowhere/at/all"]}) as manager:
        found = explore(manager)
        assert "/nowhere/at/all" in repr(found.no.tools)
        assert "idle" in repr(found) or "failed" in repr(found)


def test_the_table_of_servers_shows_states_as_text_and_as_html(git: Explorer) -> None:
    servers = explore(git.server._home)
    assert [line.split()[:2] for line in repr(servers).splitlines()] == [
        ["server", "state"],
        ["git", "idle"],
    ]
    git.start()
    assert "up" in repr(servers)
    assert "<td" in servers._repr_html_()


def test_a_call_that_is_started_gives_a_handle_at_once(git: Explorer) -> None:
    slow = git.tools.slow.start()
    echo = git.tools.echo.start("hello")
    assert str(echo.result(10)) == "hello"
    assert not slow.done()
    assert slow.cancel()
    assert git.tools.cancelled().text == "1"
    with pytest.raises(WrongCall):
        git.tools.echo.start(txt="x")


async def test_a_handle_can_be_awaited(git: Explorer) -> None:
    assert str(await git.tools.echo.start("hello")) == "hello"


def test_handles_are_not_explored() -> None:
    with pytest.raises(LocalProtocolError, match=r"use mcpclient\.Manager or mcpclient\.blocking"):
        explore(handles.Manager())


async def test_over_the_async_manager_there_are_no_handles() -> None:
    async with mcpclient.Manager({"git": spec()}) as manager:
        with pytest.raises(Mistake, match="create_task"):
            explore(manager).git.tools.echo.start("x")
