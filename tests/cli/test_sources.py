"""Which file wins, which entries can be meant, and what completion keeps on disk."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from mcpclient import Manager, ServerSpec
from mcpclient.cli import names, sources
from mcpclient.cli.problems import Failure
from mcpclient.protocol.types import Tool
from tests.cli.driving import Shell, config, entry
from tests.conftest import spec


def put(path: Path, **servers: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def test_the_first_file_that_exists_wins_and_the_others_are_told(shell: Shell) -> None:
    home = shell.folder
    usual = [
        home / ".mcp.json",
        home / ".vscode" / "mcp.json",
        home / ".cursor" / "mcp.json",
        home / ".config" / "mcpclient" / "config.json",
    ]
    shown = ["./.mcp.json", "./.vscode/mcp.json", "./.cursor/mcp.json", str(usual[3])]
    for path in usual:
        put(path)
    for place in range(4):
        assert sources.find(None, os.environ) == (shown[place], "found", shown[place + 1 :])
        assert sources.find("x.json", {"MCPCLIENT_CONFIG": "y.json"})[:2] == ("x.json", "-c")
        found = sources.find(None, {**os.environ, "MCPCLIENT_CONFIG": "y.json"})
        assert found == ("y.json", "MCPCLIENT_CONFIG", shown[place:])
        usual[place].unlink()
    with pytest.raises(Failure, match=r"no servers: name some in ./.mcp.json .* after|command"):
        sources.find(None, os.environ)


def test_the_user_s_own_folder_may_be_elsewhere_but_not_relative(shell: Shell) -> None:
    path = put(shell.folder / "own" / "mcpclient" / "config.json")
    assert sources.places({"XDG_CONFIG_HOME": str(shell.folder / "own")})[-1] == str(path)
    assert sources.places({"XDG_CONFIG_HOME": "own"})[-1].startswith("/")


def test_a_file_that_others_can_write_is_not_run_unless_it_is_named(shell: Shell) -> None:
    path = put(shell.folder / ".mcp.json", good=entry("good_handshake"))
    path.chmod(0o666)
    ran = shell("tools")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error: ./.mcp.json can be written by anybody: chmod o-w ./.mcp.json\n"
    assert shell("tools", "-c", ".mcp.json").code == 0


def test_a_file_of_another_user_is_not_run_unless_it_is_named(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(shell.folder / ".mcp.json")
    if os.geteuid() == 0:
        os.chown(path, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    with pytest.raises(Failure) as refused:
        sources.find(None, os.environ)
    assert str(refused.value) == (
        "./.mcp.json belongs to another user; read it, then name it: -c ./.mcp.json"
    )


def test_one_entry_that_cannot_be_meant_does_not_cost_the_others(shell: Shell) -> None:
    path = config(shell.folder, good={"command": "x"}, odd={"comand": "x"}, off={"disabled": True})
    source = sources.read(str(path), {})
    assert source.specs == {"good": ServerSpec("x")}
    assert str(source.problems["odd"]).endswith("did you mean 'command'?")
    assert source.disabled == ["off"]
    assert source.chosen(()) == ("good", "odd")
    with pytest.raises(Failure, match='server "off" is disabled'):
        source.chosen(("off",))
    with pytest.raises(Failure, match=r'no server is named "god" .*; did you mean "good"'):
        source.chosen(("god",))


def test_a_variable_of_the_command_line_reaches_the_file_and_the_server(shell: Shell) -> None:
    env = {"SHOWN": "${GIVEN}-${DEFAULTED:-there}"}
    path = config(shell.folder, tells=entry("tells", env=env))
    ran = shell("call", "tells", "env", "name=SHOWN", "-c", path, "-e", "GIVEN=here")
    assert (ran.code, json.loads(ran.out)) == (0, "here-there")
    ran = shell("call", "tells", "env", "name=GIVEN", "-c", path, "-e", "GIVEN=here")
    assert json.loads(ran.out) == "here"


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["npx", "-y", "@scope/some-server@1.2"], "some-server"),
        (["uvx", "mcp-server-git", "--repository", "."], "mcp-server-git"),
        (["/usr/bin/python3.12", "-m", "my_server"], "my_server"),
        (["python", "servers/thing.py", "x"], "thing"),
        (["docker", "run", "--rm", "mcp/fetch"], "fetch"),
        (["mcp-server-time"], "mcp-server-time"),
        (["https://user:pass@example.com:8080/mcp?x=1"], "example.com:8080"),
        (["unix:///run/some/notes.sock"], "notes"),
        (["./"], "."),
    ],
)
def test_a_server_that_follows_the_dashes_gets_a_name(words: list[str], name: str) -> None:
    assert list(sources.ad_hoc(words).specs) == [name]


def test_a_url_after_the_dashes_is_a_url_and_nothing_is_refused() -> None:
    [spec] = sources.ad_hoc(["https://example.com/mcp"]).specs.values()
    assert spec.url == "https://example.com/mcp"
    with pytest.raises(Failure, match='"--json" follows a URL: options and arguments stand before'):
        sources.ad_hoc(["https://example.com/mcp", "--json"])
    with pytest.raises(Failure, match="nothing follows --"):
        sources.ad_hoc([])


# -- names for completion ------------------------------------------------------------------


async def tools() -> list[Tool]:
    async with Manager({"good": spec("good_handshake")}) as manager:
        return await manager["good"].list_tools()


async def test_what_is_kept_can_be_read_again_and_holds_no_secret(tmp_path: Path) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    written = {"command": "x", "env": {"TOKEN": "literal-secret"}}
    names.store("git", written, env, tools=await tools())
    names.store("git", written, env, prompts=[])
    known = names.load("git", written, env)
    assert [one["name"] for one in known["tools"]][:2] == ["echo", "add"]
    assert known["tools"][0]["arguments"][0]["name"] == "text"
    assert known["prompts"] == []
    # Another entry of the same name is another server.
    assert names.load("git", {"command": "y"}, env) == {}
    [path] = (tmp_path / "mcpclient").iterdir()
    assert "literal-secret" not in path.read_text()
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("data", [b"", b"{", b"[1]", b"\xff", b"[" * 100_000])
def test_a_file_that_cannot_be_read_is_as_none(tmp_path: Path, data: bytes) -> None:
    env = {"XDG_CACHE_HOME": str(tmp_path)}
    path = names.path_of("git", [], env)
    path.parent.mkdir()
    path.write_bytes(data)
    assert names.load("git", [], env) == {}


async def test_the_folder_does_not_grow_for_ever_and_its_lack_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = (await tools())[:1]
    monkeypatch.setattr(names, "_FILES", 3)
    for number in range(6):
        names.store(f"s{number}", [], {"XDG_CACHE_HOME": str(tmp_path)}, tools=listed)
    assert len(list((tmp_path / "mcpclient").iterdir())) == 3
    (tmp_path / "file").write_text("no folder")
    names.store("s", [], {"XDG_CACHE_HOME": str(tmp_path / "file")}, tools=listed)
