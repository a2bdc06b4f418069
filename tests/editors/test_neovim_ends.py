"""The Neovim plugin never makes the editor wait, takes no orders from servers, leaves nothing."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest

from tests.conftest import alive
from tests.editors.editor import GOOD, NOTES, PLUGIN, Editor, end, eventually, fixture, lacking

# A clock on the editor's own loop: the longest that it did not come round, in milliseconds.
CLOCK = """
local clock, last = vim.loop.new_timer(), vim.loop.hrtime()
_G.gap = 0
clock:start(0, 20, vim.schedule_wrap(function()
  local now = vim.loop.hrtime()
  _G.gap, last = math.max(_G.gap, (now - last) / 1e6), now
end))
"""
# A server that floods: one call after the other, until it is told to stop.
FLOOD = """
local call = require("mcpclient").call_tool
_G.floods, _G.flooding = 0, true
local function flood()
  if _G.flooding then
    call("flood", "notify", {n = 5000, log = "error"}, function(problem)
      _G.floods = _G.floods + (problem and 0 or 1)
      flood()
    end)
  end
end
flood()
"""
# A tool that takes two seconds; between a clock that stops for it and one that does not there is
# room for a machine that has no time for us.
SLOW = """
require("mcpclient").call_tool("good", "slow", {seconds = 2}, function(_, result)
  _G.slow = result.text[1]
end)
"""
BOUND = 1500


@pytest.fixture
def fleeting() -> Any:
    """Return a function that starts a Neovim that the test itself ends."""
    if reason := lacking():
        pytest.skip(reason)
    started: list[Editor] = []

    def start() -> Editor:
        started.append(Editor())
        return started[-1]

    yield start
    for editor in started:
        editor.close()


# -- it never waits ----------------------------------------------------------------------------


def test_the_editor_goes_on_while_servers_flood_and_a_tool_is_slow(editor: Editor) -> None:
    editor.set_up({"good": GOOD, "flood": GOOD})
    editor.command("McpServers")
    eventually(lambda: len(editor.servers()) == 2)
    editor.command("new")
    editor.lua(CLOCK)
    editor.lua(FLOOD)
    editor.lua(SLOW)
    editor.press("itext typed meanwhile<Esc>")
    eventually(lambda: editor.lua("return _G.slow") == "waited 2")
    assert editor.lines() == ["text typed meanwhile"]
    gap, floods = editor.lua("_G.flooding = false; return {_G.gap, _G.floods}")
    assert floods >= 1, "it was a flood"
    assert gap < BOUND
    # The same clock does see a call that waits.
    editor.lua("vim.fn.system({'sleep', '2'})")
    eventually(lambda: editor.lua("return _G.gap") > 1900 > BOUND)
    assert editor.told() == []


def test_no_code_of_the_plugin_waits_for_the_backend() -> None:
    files = [*PLUGIN.rglob("*.lua")]
    assert len(files) > 5
    for path in files:
        text = path.read_text(encoding="utf-8")
        for waits in ("vim.fn.rpcrequest", "vim.rpcrequest", "vim.wait", "jobwait"):
            assert waits not in text, path.name


def test_a_long_message_asks_for_no_key(editor: Editor) -> None:
    editor.request("nvim_ui_attach", 60, 20, {})
    editor.lua(
        'require("mcpclient").setup(...)', {"python": sys.executable, "servers": {"good": GOOD}}
    )
    editor.command("McpTool good echo " + "text" * 100 + "=1")
    said = 'return table.concat(require("mcpclient.report").said, "|")'
    eventually(lambda: "text" in editor.lua(said))
    assert editor.request("nvim_get_mode") == {"mode": "n", "blocking": False}
    shown = editor.lua("return vim.fn.execute('messages')")
    assert shown.strip().endswith("… :McpLog")
    assert len(shown.strip()) <= 60


def test_leaving_does_not_wait_for_servers_that_will_not_go(fleeting: Any) -> None:
    editor = fleeting()
    stubborn = fixture("ignores_eof_and_term")
    # They need longer to go than anybody waits here.
    slow = {"command": stubborn[0], "args": stubborn[1:], "timeouts": {"eof": 60, "term": 60}}
    editor.set_up({"stubborn": slow})
    assert editor.call("stubborn", "echo", text="x") == "x"
    left = editor.processes(2)
    backend = editor.backend()
    editor.request("nvim_command", "autocmd VimLeave * call writefile(['left'], 'left')")
    try:
        editor.request("nvim_input", ":qa!<CR>")
        eventually(editor.ended)
        assert (editor.home / "left").exists()
        assert all(map(alive, left)), "they go on ending by themselves"
    finally:
        end(backend)  # what is left to its servers' watchdog is tested elsewhere
    eventually(lambda: not any(map(alive, left)))


# -- it leaves nothing -------------------------------------------------------------------------


def test_nothing_is_left_when_the_editor_is_left(fleeting: Any) -> None:
    editor = fleeting()
    editor.set_up({"good": GOOD, "notes": NOTES})
    editor.call("good", "echo", text="x")
    editor.call("notes", "code", code="x")
    left = editor.processes(3)
    editor.press(":qa!<CR>")
    eventually(editor.ended)
    eventually(lambda: not any(map(alive, left)))


def test_nothing_is_left_when_the_editor_is_killed(fleeting: Any) -> None:
    editor = fleeting()
    editor.set_up({"good": GOOD, "grand": fixture("grandchild")})
    editor.call("good", "echo", text="x")
    left = {int(editor.call("grand", "pid")), *editor.processes(3)}
    assert len(left) == 4
    editor.kill()
    eventually(lambda: not any(map(alive, left)))


def test_a_killed_backend_is_told_once_and_comes_back_with_the_next_command(
    editor: Editor,
) -> None:
    editor.set_up({"notes": NOTES})
    editor.command("McpResource notes notes://list")
    eventually(lambda: len(editor.lines()) == 30)
    editor.call("notes", "write", lines=["changed"])
    eventually(lambda: editor.lines() == ["changed"])
    editor.command("McpTool notes hold n=1 of=2")
    eventually(lambda: "50%" in editor.text("mcp-result://"))
    left = editor.processes(2)
    end(editor.backend())
    eventually(lambda: not any(map(alive, left)))
    eventually(editor.told)
    assert editor.lines() == ["changed"], "what was read stays"
    eventually(lambda: not editor.text("mcp-result://"))
    assert editor.backend() == 0
    editor.command("McpServers")
    assert editor.backend() not in {0, *left}
    # The buffer is followed again, by the new backend, at a new server.
    eventually(lambda: editor.text("notes://list").endswith("note 30"))
    editor.call("notes", "write", lines=["changed again"])
    eventually(lambda: editor.text("notes://list") == "changed again")
    assert editor.told() == [
        "mcpclient: the backend ended (exit code 137); the next command starts it again"
    ]


def test_a_python_that_cannot_be_the_backend_is_told_with_what_to_do(editor: Editor) -> None:
    editor.set_up({"good": GOOD}, python="/no/such/python")
    editor.command("McpStart good")
    (told,) = editor.told()
    assert told.startswith('mcpclient: "/no/such/python" cannot be run')
    assert told.endswith('require("mcpclient").setup{python = "…"}')
    bare = editor.home / "python"
    bare.write_text(f'#!/bin/sh\nunset PYTHONPATH\nexec "{sys.executable}" -S -E "$@"\n')
    bare.chmod(0o755)
    editor.set_up({"good": GOOD}, python=str(bare))
    editor.command("McpStart good")
    eventually(editor.told)
    (told,) = editor.told()
    assert "the backend ended (exit code 1): " in told
    assert " -m pip install mcpclient pynvim; the next command starts it again" in told


def test_the_backend_ends_when_it_is_told_to(editor: Editor) -> None:
    editor.set_up({"good": GOOD})
    editor.call("good", "echo", text="x")
    left = editor.processes(2)
    os.kill(editor.backend(), 15)
    eventually(lambda: not any(map(alive, left)))
    eventually(editor.told)
    assert editor.call("good", "echo", text="y") == "y"


# -- it takes no orders ------------------------------------------------------------------------


def test_what_servers_say_reaches_no_message_raw(editor: Editor) -> None:
    editor.set_up({"notes": NOTES})
    editor.command("McpTool notes evil")
    eventually(editor.told)
    (told,) = editor.told()
    assert told == ('mcpclient: tool "evil" failed: it\\x1b]0;owned\\x07\\x1b[2J\\x9b2J failed')
    # In a buffer they are only characters.
    eventually(lambda: "and why\x1b]0;owned" in editor.text("mcp-result://"))
    editor.command("McpServers")
    assert not any(not line.isprintable() for line in editor.lines())
    editor.command("McpLog notes")
    eventually(lambda: editor.text("mcp-log://notes"))
    assert "\x1b" not in editor.text("mcp-log://notes")


def test_a_resource_sets_no_options(editor: Editor) -> None:
    editor.set_up({"notes": NOTES})
    editor.command("set modeline modelines=5")
    editor.command("McpResource notes notes://evil")
    eventually(lambda: len(editor.lines()) == 2)
    editor.command("edit")
    editor.command("doautocmd BufRead")
    assert editor.lua("return {vim.bo.tabstop, vim.bo.filetype}") == [8, "markdown"]
    assert editor.lines()[0] == "\x1b]0;owned\x07\x1b[2J\x9b2J"


# -- the words of a command line ---------------------------------------------------------------

WORDS = 'local found, problem = require("mcpclient.words").split(...) return {found, problem}'


def split(editor: Editor, line: str, *more: bool) -> list[str]:
    """Return the words of a line."""
    return [word["text"] for word in editor.lua(WORDS, line, *more)[0]]


def test_words_are_split_as_people_expect_of_text_and_of_json(editor: Editor) -> None:
    cases = {
        "": [],
        "  a  b\t": ["a", "b"],
        "a\\ b": ["a b"],
        "text='two words' \"x y\"=z": ["text=two words", "x y=z"],
        'text="say \\"so\\" \\\\"': ['text=say "so" \\'],
        "text=it's fine": ["text=it's", "fine"],
        'a:={"b":"c\\n"} d:="e"': ['a:={"b":"c\\n"}', 'd:="e"'],
        "'a:={\"b\": 1}'": ['a:={"b": 1}'],
        "path=C:\\dir\\x": ["path=C:\\dir\\x"],
        "text=\\% \\'": ["text=%", "'"],
        "text='' ''": ["text=", ""],
    }
    for line, wanted in cases.items():
        assert split(editor, line) == wanted, line
    assert split(editor, "a ", True) == ["a", ""]
    found, problem = editor.lua(WORDS, "a='b c")
    assert found[0]["text"] == "a=b c"
    assert problem == "the quote ' is not closed"


def test_any_line_cut_anywhere_has_words(editor: Editor) -> None:
    line = """text='two \\' w' "x\\" y"=\\z a:={"b":[1]} \\  \\'q\\\\ é=%"""
    rubbish = "".join(chr(number) for number in range(1, 0x180)) * 2
    for text in (line, rubbish):
        cuts = editor.lua(
            'local words, text = require("mcpclient.words"), ...; local found = {}'
            " for size = 0, #text do local list = words.split(text:sub(1, size), true)"
            " table.insert(found, #list > 0 and list[#list].raw ~= nil) end return found",
            text,
        )
        assert len(cuts) == len(text.encode()) + 1
        assert all(cuts)
