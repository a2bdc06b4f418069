"""Servers that we did not write, run as a user would: what they offer, answer and announce.

What is right for each was observed by hand and stands in `cases/real-servers.md` of the shared
notes. All that are set up run under one manager at the same time, so that starting and stopping
them is waited for once.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcpclient import (
    ImageContent,
    Manager,
    ReplyError,
    ResourceLink,
    Server,
    ServerSpec,
    Timeouts,
    ToolError,
)
from tests.conftest import alive, eventually, real_servers

COMMANDS = real_servers()
STATELESS = ("stateless", "2026-07-28")
HANDSHAKE = ("handshake", "2025-11-25")
# Name: era and version, and how many tools, resources, templates and prompts it lists.
FACTS = {
    "time": (STATELESS, (2, 0, 0, 0)),
    "git": (STATELESS, (12, 0, 0, 0)),
    "fetch": (STATELESS, (1, 0, 0, 1)),
    "sqlite": (HANDSHAKE, (6, 1, 0, 1)),
    "everything": (HANDSHAKE, (13, 7, 2, 4)),
    "filesystem": (HANDSHAKE, (14, 0, 0, 0)),
    "memory": (HANDSHAKE, (9, 1, 0, 0)),
    "sequential-thinking": (HANDSHAKE, (1, 0, 0, 0)),
}
NEEDS_NPM = ("everything", "filesystem", "memory", "sequential-thinking")
UPDATED = "notifications/resources/updated"

needs_any = pytest.mark.skipif(not COMMANDS, reason="no real server is set up: run `make real`")


def needs(name: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(name not in COMMANDS, reason=absent(name))


def absent(name: str) -> str:
    what = "Node.js and its packages" if name in NEEDS_NPM else "its environment"
    return f"the server {name!r} is not set up here ({what}): run `make real`"


def real(name: str, *arguments: str, **options: Any) -> ServerSpec:
    command, *rest = COMMANDS[name]
    options.setdefault("timeouts", Timeouts(eof=5.0, term=2.0))
    return ServerSpec(command, [*rest, *arguments], **options)


def all_of_them(folder: Path) -> dict[str, ServerSpec]:
    """Return the specs of all servers that are set up, each at home in the folder."""
    (folder / "files").mkdir()
    (folder / "files" / "a.txt").write_text("some text\nof two lines ü\n")
    make_repository(folder / "repository")
    arguments = {
        "git": ["--repository", str(folder / "repository")],
        "sqlite": ["--db-path", str(folder / "base.db")],
        "filesystem": [str(folder / "files")],
    }
    env = {"memory": {"MEMORY_FILE_PATH": str(folder / "memory.jsonl")}}
    return {
        name: real(name, *arguments.get(name, []), env=env.get(name, {}))
        for name in FACTS
        if name in COMMANDS
    }


def make_repository(folder: Path) -> None:
    """Make a small git repository: one commit, and one change that is not staged."""
    if shutil.which("git") is None:
        pytest.skip("git itself is not installed")
    folder.mkdir()

    def git(*words: str) -> None:
        # Whatever this user's own configuration says must not matter.
        env = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
        subprocess.run(["git", *words], cwd=folder, env=env, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    git("config", "user.name", "Ada")
    git("config", "user.email", "ada@example.com")
    git("config", "commit.gpgsign", "false")
    (folder / "a.txt").write_text("one\n")
    git("add", ".")
    git("commit", "--message=first")
    (folder / "a.txt").write_text("one\ntwo\n")


@pytest.mark.parametrize("name", FACTS)
def test_it_is_set_up(name: str) -> None:
    if name not in COMMANDS:
        pytest.skip(absent(name))
    assert Path(COMMANDS[name][0]).exists()


# -- what each of them does ----------------------------------------------------------------


async def check_opening_and_lists(server: Server) -> None:
    era, counts = FACTS[server.name]
    tools = await server.list_tools()
    found = (
        len(tools),
        len(await server.list_resources()),
        len(await server.list_resource_templates()),
        len(await server.list_prompts()),
    )
    assert (server.era, server.protocol_version) == era, server.name
    assert found == counts, server.name
    assert server.info["name"]
    assert server.info["version"]
    assert all(tool.description and tool.input_schema["type"] == "object" for tool in tools)


async def check_an_unknown_tool(server: Server) -> None:
    """Some servers refuse it, some say that it failed, and one that it went well."""
    if server.era == "stateless":
        with pytest.raises(ReplyError) as caught:
            await server.invoke_tool("no_such_tool")
        assert (caught.value.code, caught.value.message) == (
            -32602,
            "Unknown tool: no_such_tool",
        )
    elif server.name == "sqlite":
        found = await server.invoke_tool("no_such_tool", {"x": 1})
        assert (found.text, found.is_error) == ("Error: Unknown tool: no_such_tool", False)
    else:
        with pytest.raises(ToolError) as failed:
            await server.invoke_tool("no_such_tool")
        assert failed.value.message == "MCP error -32602: Tool no_such_tool not found"


async def check_time(server: Server, folder: Path) -> None:
    noon = {"source_timezone": "UTC", "time": "12:30", "target_timezone": "Asia/Tokyo"}
    found = await server.invoke_tool("convert_time", noon)
    assert found.structured["target"]["datetime"].endswith("T21:30:00+09:00")
    assert found.structured["time_difference"] == "+9.0h"
    assert json.loads(found.text) == found.structured
    with pytest.raises(ToolError) as caught:
        await server.invoke_tool("convert_time", {**noon, "target_timezone": "Mars/Base"})
    assert "No time zone found with key Mars/Base" in caught.value.message


async def check_git(server: Server, folder: Path) -> None:
    here = {"repo_path": str(folder / "repository")}
    diff = (await server.invoke_tool("git_diff_unstaged", here)).text
    assert diff.startswith("Unstaged changes:\ndiff --git a/a.txt b/a.txt\n")
    assert diff.endswith("\n one\n+two")
    added = await server.invoke_tool("git_add", {**here, "files": ["a.txt"]})
    assert added.text == "Files staged successfully"
    committed = (await server.invoke_tool("git_commit", {**here, "message": "second"})).text
    assert committed.startswith("Changes committed successfully with hash ")
    log = (await server.invoke_tool("git_log", {**here, "max_count": 1})).text
    assert committed.split()[-1] in log
    assert "Author: Ada\n" in log
    assert log.endswith("Message: second\n")
    status = (await server.invoke_tool("git_status", here)).text
    assert status.endswith("On branch main\nnothing to commit, working tree clean")
    with pytest.raises(ToolError) as caught:
        await server.invoke_tool("git_status", {"repo_path": "/"})
    assert "is outside the allowed repository" in caught.value.message


async def check_fetch(server: Server, folder: Path) -> None:
    url = {"url": "http://127.0.0.1:9/"}
    with pytest.raises(ToolError) as caught:
        await server.invoke_tool("fetch", url)
    assert "127.0.0.1, which is not a public address" in caught.value.message
    [prompt] = await server.list_prompts()
    [argument] = prompt.arguments or []
    assert (prompt.name, argument.name, argument.required) == ("fetch", "url", True)
    found = await server.get_prompt("fetch", url)
    assert found.text.startswith("Refused to fetch http://127.0.0.1:9/: ")
    assert found.raw["messages"][0]["content"]["text"] == found.text


async def check_sqlite(server: Server, folder: Path) -> None:
    async def query(tool: str, text: str) -> str:
        return (await server.invoke_tool(tool, {"query": text})).text

    assert await query("create_table", "create table t (a int, b text)") == (
        "Table created successfully"
    )
    insert = "insert into t values (1, 'x'), (2, 'ü')"
    assert await query("write_query", insert) == "[{'affected_rows': 2}]"
    assert await query("read_query", "select * from t order by a") == (
        "[{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'ü'}]"
    )
    assert (await server.invoke_tool("list_tables")).text == "[{'name': 't'}]"
    # The memo is kept until the server says that it changed.
    before = await server.read_resource("memo://insights")
    assert before.text == "No business insights have been discovered yet."
    assert await server.read_resource("memo://insights") == before
    added = await server.invoke_tool("append_insight", {"insight": "two rows"})
    assert added.text == "Insight added to memo"
    after = await server.read_resource("memo://insights")
    assert after.text.endswith("Key Insights Discovered:\n\n- two rows")
    demo = await server.get_prompt("mcp-demo", {"topic": "tea"})
    assert demo.description == "Demo template for tea"
    assert demo.text.startswith("The assistants goal is to walkthrough an informative demo of MCP.")


async def check_everything(server: Server, folder: Path) -> None:
    assert (await server.invoke_tool("echo", {"message": "hi"})).text == "Echo: hi"
    told: list[Any] = []
    long = await server.invoke_tool(
        "trigger-long-running-operation",
        {"duration": 0.4, "steps": 4},
        on_progress=lambda *facts: told.append(facts),
    )
    assert told == [(step, 4, None) for step in (1, 2, 3, 4)]
    assert long.text == "Long running operation completed. Duration: 0.4 seconds, Steps: 4."
    weather = await server.invoke_tool("get-structured-content", {"location": "New York"})
    assert set(weather.structured) == {"temperature", "conditions", "humidity"}
    assert json.loads(weather.text) == weather.structured
    image = (await server.invoke_tool("get-tiny-image")).content[1]
    assert isinstance(image, ImageContent)
    assert image.decode().startswith(b"\x89PNG")
    links = (await server.invoke_tool("get-resource-links", {"count": 2})).content[1:]
    uris = [link.uri for link in links if isinstance(link, ResourceLink)]
    assert uris == ["demo://resource/dynamic/blob/1", "demo://resource/dynamic/text/2"]
    # The text tells the time; a second read of it does not.
    first = await server.read_resource("demo://resource/dynamic/text/1")
    assert first.text.startswith("Resource 1: This is a plaintext resource created at ")
    assert await server.read_resource("demo://resource/dynamic/text/1") == first
    blob = await server.read_resource("demo://resource/dynamic/blob/3")
    assert blob.contents[0].decode().startswith(b"Resource 3: This is a base64 blob created at ")
    documents = await server.list_resources()
    assert all(one.uri.startswith("demo://resource/static/document/") for one in documents)
    text = await server.read_resource(documents[0].uri)
    assert (text.contents[0].mime_type, text.text[:2]) == ("text/markdown", "# ")
    assert (await server.get_prompt("simple-prompt")).text == (
        "This is a simple prompt without arguments."
    )
    asked = await server.get_prompt("args-prompt", {"city": "Paris"})
    assert asked.text == "What's weather in Paris?"
    with pytest.raises(ReplyError) as caught:
        await server.get_prompt("args-prompt")
    assert caught.value.code == -32602
    assert "expected string, received undefined" in caught.value.message


async def check_filesystem(server: Server, folder: Path) -> None:
    files = folder / "files"
    read = await server.invoke_tool("read_text_file", {"path": str(files / "a.txt")})
    assert read.text == "some text\nof two lines ü\n"
    assert read.structured == {"content": read.text}
    new = str(files / "b.txt")
    written = await server.invoke_tool("write_file", {"path": new, "content": "\u2028 ü\n"})
    assert written.text == f"Successfully wrote to {new}"
    assert Path(new).read_text() == "\u2028 ü\n"
    allowed = await server.invoke_tool("list_allowed_directories")
    assert allowed.text == f"Allowed directories:\n{files}"
    with pytest.raises(ToolError) as caught:
        await server.invoke_tool("read_text_file", {"path": "/etc/passwd"})
    assert caught.value.message.startswith("Access denied - path outside allowed directories")


async def check_memory(server: Server, folder: Path) -> None:
    ada = {"name": "Ada", "entityType": "person", "observations": ["writes ü"]}
    made = await server.invoke_tool("create_entities", {"entities": [ada]})
    assert made.structured == {"entities": [ada]}
    graph = await server.invoke_tool("read_graph")
    assert graph.structured == json.loads(graph.text) == {"entities": [ada], "relations": []}
    found = await server.invoke_tool("search_nodes", {"query": "nobody"})
    assert found.structured == {"entities": [], "relations": []}
    kept = json.loads((folder / "memory.jsonl").read_text())
    assert kept == {"type": "entity", **ada}
    read = await server.read_resource("memory://knowledge-graph")
    assert json.loads(read.text)["entities"] == [ada]


async def check_thinking(server: Server, folder: Path) -> None:
    for number in (1, 2):
        thought = {
            "thought": f"number {number}",
            "thoughtNumber": number,
            "totalThoughts": 2,
            "nextThoughtNeeded": number < 2,
        }
        found = await server.invoke_tool("sequentialthinking", thought)
        assert found.structured == {
            "thoughtNumber": number,
            "totalThoughts": 2,
            "nextThoughtNeeded": number < 2,
            "branches": [],
            "thoughtHistoryLength": number,
        }


CHECKS: dict[str, Callable[[Server, Path], Awaitable[None]]] = {
    "time": check_time,
    "git": check_git,
    "fetch": check_fetch,
    "sqlite": check_sqlite,
    "everything": check_everything,
    "filesystem": check_filesystem,
    "memory": check_memory,
    "sequential-thinking": check_thinking,
}


@needs_any
async def test_all_of_them_do_what_they_are_known_for_at_the_same_time(tmp_path: Path) -> None:
    specs = all_of_them(tmp_path)
    updates: list[Any] = []

    async def check(server: Server) -> None:
        await check_opening_and_lists(server)
        await CHECKS[server.name](server, tmp_path)
        await check_an_unknown_tool(server)

    async with Manager(specs) as manager:
        manager.on_notification(UPDATED, lambda server, params: updates.append((server, params)))
        async with anyio.create_task_group() as group:
            for name in specs:
                group.start_soon(check, manager[name])
        if "sqlite" in specs:
            await eventually(lambda: updates)
            assert updates == [(manager["sqlite"], {"uri": "memo://insights"})]
        for one in manager.status().servers:
            assert (one.state, one.generation, one.in_flight) == ("up", 1, 0)
            assert (one.late, one.stray, one.noise, one.oversize, one.dropped) == (0, 0, 0, 0, 0)
            assert one.last_incident == ""


@needs_any
async def test_all_of_them_come_back_after_a_kill_and_stop_cleanly(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "mcpclient")
    specs = all_of_them(tmp_path)
    pids: list[int] = []

    async def live(server: Server) -> None:
        await server.start()
        first = server.pid
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await eventually(lambda: server.generation == 2 and server.state == "up", within=30)
        [incident] = server.incidents
        assert (incident.phase, incident.generation) == ("up", 1)
        assert incident.exit is not None
        assert incident.exit.signal == signal.SIGKILL
        assert len(await server.list_tools()) == FACTS[server.name][1][0]
        second = server.pid
        assert second is not None
        pids.extend([first, second])
        await server.stop()
        assert (server.state, server.pid, len(server.incidents)) == ("idle", None, 1)

    async with Manager(specs) as manager, anyio.create_task_group() as group:
        for name in specs:
            group.start_soon(live, manager[name])
    assert [pid for pid in pids if alive(pid)] == []
    assert len(set(pids)) == 2 * len(specs)
    ends = dict(message.split("#2 x ") for message in caplog.messages if "#2 x " in message)
    if ends.get("everything") == "killed by SIGTERM":
        ends["everything"] = "exit code 0"  # it does not always end at EOF, and need not
    assert ends == dict.fromkeys(specs, "exit code 0")


# -- two with a will of their own ----------------------------------------------------------


@needs("everything")
async def test_one_that_lives_on_after_eof_is_ended_by_the_next_rung(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "mcpclient")
    impatient = Timeouts(eof=0.3, term=5.0)
    async with Manager({"everything": real("everything", timeouts=impatient)}) as manager:
        server = manager["everything"]
        # Its timer keeps it alive for ever, with nobody to talk to.
        started = await server.invoke_tool("toggle-simulated-logging")
        assert started.text.startswith("Started simulated, random-leveled logging")
        pid = server.pid
        await server.stop()
        assert pid is not None
        assert not alive(pid)
        assert "everything#1 x killed by SIGTERM" in caplog.messages
        assert server.incidents == []


@needs("filesystem")
async def test_the_roots_replace_the_directories_that_it_was_given(tmp_path: Path) -> None:
    given, root = tmp_path / "given", tmp_path / "root"
    for folder in (given, root):
        folder.mkdir()
    servers = {"filesystem": real("filesystem", str(given))}

    async with Manager(servers, roots=[root]) as manager:
        server = manager["filesystem"]
        allowed = ""
        with anyio.fail_after(10):
            while str(root) not in allowed:  # it asks for them when it is up already
                allowed = (await server.invoke_tool("list_allowed_directories")).text
        assert allowed == f"Allowed directories:\n{root}"
        assert manager.status().servers[0].asks == 1
