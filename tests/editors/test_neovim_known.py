"""What the Neovim plugin knows: its settings, its log, and what there is to complete."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.editors.editor import FREE, GOOD, NOTES, PLUGIN, Editor, eventually, fixture


def test_the_log_tells_stderr_and_deaths(editor: Editor) -> None:
    editor.set_up({"dies": fixture("dies_in_call", "3"), "good": GOOD})
    editor.command("McpTool dies sin")
    eventually(editor.told)
    assert ":McpLog dies tells more" in editor.told()[0]
    assert "the server died (exit code 3)" in editor.told()[0]
    eventually(lambda: editor.servers()["dies"]["last"])
    editor.command("McpLog dies")
    log = eventually(lambda: editor.text("mcp-log://dies"))
    assert log.startswith("# dies: ")
    assert "\n- life 1 ended after " in log
    assert "## The end of stderr" in log
    editor.command("McpLog")
    assert editor.told()[0] in "\n".join(editor.lines())
    editor.call("good", "notify", n=2, log="error")
    editor.command("McpLog good")
    eventually(lambda: "- error: {'message': 2}" in "\n".join(editor.lines()))


def completed(editor: Editor, line: str) -> list[str]:
    """Return what a line may become, once the server was asked in the background."""
    return list(eventually(lambda: editor.complete(line)))


def test_servers_tools_arguments_and_uris_are_completed(editor: Editor) -> None:
    editor.set_up({"good": GOOD, "notes": NOTES, "two words": FREE})
    assert editor.complete("McpTool ") == ["good", "notes", "two\\ words"]
    assert editor.complete("McpStart n") == ["notes"]
    assert editor.complete("%McpTool! g") == ["good"]
    assert completed(editor, "McpTool good ec") == ["echo"]
    assert editor.complete("McpTool good add ") == ["a=", "b="]
    assert editor.complete("McpTool good add a=1 ") == ["b="]
    assert editor.complete("McpTool good echo text=") == ["text=%", "text=<range>"]
    assert completed(editor, "McpTool notes p") == ["paint"]
    assert editor.complete("McpTool notes paint ") == ["colour=", "deep=", "shape:=", "text="]
    assert editor.complete("McpTool notes paint colour=") == [
        "colour=red",
        "colour=light\\ red",
        "colour=blue",
    ]
    assert editor.complete("McpTool notes paint deep=t") == ["deep=true"]
    assert completed(editor, "McpResource good test://c") == ["test://counter"]
    assert "test://item/{name}" in editor.complete("McpResource good ")
    assert completed(editor, "McpPrompt good g") == ["greet"]
    assert editor.complete("McpPrompt good greet ") == ["name="]
    assert completed(editor, "McpPrompt good greet name=A") == ["name=Ada", "name=Alan"]
    assert completed(editor, "McpPrompt good greet name=B") == ["name=Barbara"]
    assert editor.complete("McpTool nobody ") == []
    assert editor.complete("McpTool good echo 'text=") == []
    assert not any("odd" in one for one in editor.complete("McpTool notes "))
    assert editor.told() == [], "completing is no place for complaints"


def test_completion_of_what_is_not_known_yet_waits_for_nothing(editor: Editor) -> None:
    editor.set_up({"silent": fixture("silent"), "good": GOOD})
    assert editor.complete("McpTool silent ") == []
    assert editor.complete("McpTool s") == ["silent"]
    assert completed(editor, "McpTool good ec") == ["echo"]


def test_a_list_that_changes_changes_what_is_completed(editor: Editor) -> None:
    editor.set_up({"fake": fixture("fake")})
    assert completed(editor, "McpTool fake ech") == ["echo"]
    assert editor.complete("McpTool fake grown") == []
    editor.call("fake", "add_tool", name="grown", description="was not there")
    assert completed(editor, "McpTool fake grown") == ["grown"]


# -- setting up ------------------------------------------------------------------------------


def test_servers_may_come_from_a_file(editor: Editor) -> None:
    path = editor.home / "servers.json"
    entry = {"command": GOOD[0], "args": GOOD[1:], "env": {}}
    broken = {"command": "${NOWHERE_SET}"}
    path.write_text(json.dumps({"mcpServers": {"good": entry, "broken": broken}}))
    editor.set_up(config=str(path))
    editor.command("McpStart good")
    eventually(lambda: "mcpclient: good is up" in editor.told())
    assert "NOWHERE_SET" in editor.told()[0]
    assert "mcpServers.broken.command" in editor.told()[0]


def test_without_servers_the_next_step_is_told(editor: Editor) -> None:
    (editor.home / ".mcp.json").write_text(json.dumps({"mcpServers": {"evil": ["touch", "x"]}}))
    editor.set_up()
    editor.command("McpTool evil x")
    eventually(lambda: len(editor.told()) == 2)
    assert 'no servers: name some by require("mcpclient").setup{' in editor.told()[1]
    assert not (editor.home / "x").exists(), "a project's own file is read only if it is named"


def test_a_user_of_the_defaults_has_a_file_of_their_own(editor: Editor) -> None:
    (editor.home / "mcpclient").mkdir()
    text = json.dumps({"servers": {"mine": {"command": GOOD[0], "args": GOOD[1:]}}})
    (editor.home / "mcpclient" / "config.json").write_text(text)
    editor.set_up()
    editor.command("McpServers")
    assert eventually(lambda: list(editor.servers())) == ["mine"]


def test_setting_up_anew_ends_the_servers_of_before(editor: Editor) -> None:
    editor.set_up({"good": GOOD})
    assert editor.call("good", "echo", text="x") == "x"
    before = editor.backend()
    editor.set_up({"free": FREE})
    assert editor.call("free", "echo", text="y") == "y"
    assert editor.backend() != before
    assert list(editor.servers()) == ["free"]
    assert editor.told() == []


def test_another_plugin_may_call_tools(editor: Editor) -> None:
    editor.set_up({"good": GOOD})
    assert editor.call("good", "add", a=1, b=2) == "3"
    assert editor.call("good", "progress") == "3 steps done"
    found: dict[str, Any] = editor.lua(
        "_G.got = {}; require('mcpclient').call_tool('good', 'nothing', {}, function(p, r)"
        " _G.got = {problem = p, result = r == nil} end); return {}"
    )
    assert found in ({}, [])
    eventually(lambda: editor.lua("return _G.got.problem"))
    assert editor.lua("return _G.got.result")


def test_checkhealth_tells_what_is_there(editor: Editor) -> None:
    editor.set_up({"good": GOOD, "lost": ["no-such-program-here"]})
    editor.command("McpStart lost")
    eventually(lambda: "failed" in str(editor.told() and editor.servers()["lost"]))
    editor.command("checkhealth mcpclient")
    page = "\n".join(editor.lines())
    assert "OK: pynvim" in page
    assert "OK: good: idle" in page
    assert "ERROR: lost: failed, life 1 ended" in page
    assert ":McpLog lost" in page
    editor.set_up({"good": GOOD}, python="/no/such/python")
    editor.command("checkhealth mcpclient")
    assert "ERROR: /no/such/python cannot be run" in "\n".join(editor.lines())


def test_the_page_names_every_command_and_option() -> None:
    page = (PLUGIN / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r'command\("(\w+)"', (PLUGIN / "plugin" / "mcpclient.lua").read_text())
    assert len(commands) == 9
    for name in [f"`:{command}" for command in commands]:
        assert name in page or name.replace(":", ":[range]") in page
    options = re.findall(r"options\.(\w+)", (PLUGIN / "lua/mcpclient/backend.lua").read_text())
    assert set(options) == {"python", "servers", "config", "roots"}
    assert all(f"| `{option}` |" in page for option in options)
