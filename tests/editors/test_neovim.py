"""The Neovim plugin, in a real headless Neovim: servers, tools and prompts."""

from __future__ import annotations

import json

from tests.editors.editor import FREE, GOOD, NOTES, Editor, eventually


def write(editor: Editor, *lines: str) -> None:
    """Put lines into the buffer that is edited."""
    editor.request("nvim_buf_set_lines", 0, 0, -1, False, lines)


def result(editor: Editor) -> str:
    """Return what a tool answered, once its window says so."""
    return str(
        eventually(
            lambda: (
                None
                if "is running" in (text := editor.text("mcp-result://"))
                else text or editor.told()
            )
        )
    )


def rows(editor: Editor) -> dict[str, str]:
    """Return the state of each server as the table says it."""
    lines = editor.text("mcp-servers://").partition("\n\n")[0].split("\n")
    return {words[0]: words[1] for words in map(str.split, lines[1:])}


# -- servers ---------------------------------------------------------------------------------


def test_the_table_of_servers_follows_their_states_by_itself(editor: Editor) -> None:
    editor.set_up({"good": GOOD, "free": FREE})
    editor.command("McpServers")
    eventually(lambda: rows(editor) == {"free": "idle", "good": "idle"})
    editor.command("McpStart good")
    eventually(lambda: rows(editor) == {"free": "idle", "good": "up"})
    pid = editor.servers()["good"]["pid"]
    assert f"handshake  2025-11-25  {pid}  1" in editor.text("mcp-servers://")
    editor.command("McpRestart good")
    eventually(lambda: editor.servers()["good"]["life"] == 2 and rows(editor)["good"] == "up")
    editor.command("McpStop good")
    eventually(lambda: rows(editor)["good"] == "idle")
    eventually(lambda: "mcpclient: good is stopped" in editor.told())
    assert editor.told() == [f"mcpclient: good is {done}" for done in ("up", "up again", "stopped")]


def test_the_keys_of_the_table_act_on_the_server_of_their_line(editor: Editor) -> None:
    editor.set_up({"good": GOOD, "free": FREE})
    editor.command("McpServers")
    eventually(lambda: len(editor.servers()) == 2)
    editor.press("2Gs")  # they stand in the order of their names
    eventually(lambda: rows(editor)["free"] == "up")
    editor.press("x")
    eventually(lambda: rows(editor) == {"free": "idle", "good": "idle"})
    editor.press("Gs")  # no server stands there
    assert editor.told() == ["mcpclient: free is up", "mcpclient: free is stopped"]


def test_nothing_starts_before_the_first_command(editor: Editor) -> None:
    editor.set_up({"good": GOOD})
    assert editor.backend() == 0
    assert editor.lua("return package.loaded['mcpclient.commands'] == nil")
    editor.command("McpServers")
    assert editor.backend() > 0
    eventually(lambda: list(editor.servers()) == ["good"])
    assert editor.servers()["good"]["state"] == "idle"


def test_a_stopped_server_refuses_with_what_to_do(editor: Editor) -> None:
    editor.set_up({"good": GOOD})
    editor.command("McpStop good")
    eventually(editor.told)
    editor.command("McpTool good echo text=x")
    eventually(lambda: len(editor.told()) == 2)
    assert editor.told()[1] == (
        'mcpclient: server "good": it was stopped; :McpStart good starts it'
    )


# -- tools -----------------------------------------------------------------------------------


def test_a_tool_gets_the_buffer_and_answers_in_a_window_beside_it(editor: Editor) -> None:
    editor.set_up({"good": GOOD})
    write(editor, "one  two", "", "it's \\three")
    editor.command("McpTool good echo text=%")
    assert len(editor.request("nvim_list_wins")) == 2
    assert editor.lines() == ["one  two", "", "it's \\three"], "the person stays where they were"
    assert result(editor) == "one  two\n\nit's \\three"
    number = editor.buffer("mcp-result://")
    for option, value in (("filetype", "markdown"), ("modifiable", False), ("modified", False)):
        assert editor.request("nvim_buf_get_option", number, option) == value
    assert editor.told() == []


def test_a_tool_gets_the_lines_of_a_range(editor: Editor) -> None:
    editor.set_up({"good": GOOD})
    write(editor, "one", "two", "three", "four")
    editor.command("2,3McpTool good echo text=<range>")
    assert result(editor) == "two\nthree"


def test_words_become_what_the_schema_says(editor: Editor) -> None:
    editor.set_up({"good": GOOD, "notes": NOTES})
    editor.command("McpTool good add a=2 b:=40.5")
    assert json.loads(result(editor)) == 42.5
    editor.command("bwipeout! " + str(editor.buffer("mcp-result://")))
    editor.command(
        """McpTool notes paint 'colour=light red' deep=yes shape:={"a":[1]} text="a b\""""
    )
    assert json.loads(result(editor)) == {
        "colour": "light red",
        "deep": True,
        "shape": {"a": [1]},
        "text": "a b",
    }


def test_with_a_bang_the_answer_replaces_the_lines(editor: Editor) -> None:
    editor.set_up({"notes": NOTES})
    write(editor, "one", "two", "three", "four")
    editor.command("2,3McpTool! notes code code=<range>")
    eventually(lambda: editor.lines() == ["one", "TWO", "THREE", "four"])
    editor.command("McpTool! notes code code=%")
    eventually(lambda: editor.lines() == ["ONE", "TWO", "THREE", "FOUR"])
    editor.command("4McpTool! notes code code=end")
    eventually(lambda: editor.lines() == ["ONE", "TWO", "THREE", "END"])
    editor.command("undo")
    assert editor.lines() == ["ONE", "TWO", "THREE", "FOUR"]
    assert len(editor.request("nvim_list_wins")) == 1
    assert editor.told() == []


def test_lines_that_moved_meanwhile_are_replaced_where_they_are(editor: Editor) -> None:
    editor.set_up({"notes": NOTES})
    write(editor, "one", "two", "three")
    editor.command("2McpTool! notes later")
    editor.request("nvim_buf_set_lines", 0, 0, 0, False, ["before", "it"])
    eventually(lambda: editor.call("notes", "go") == "1")
    eventually(lambda: "two" not in editor.lines())
    assert editor.lines() == ["before", "it", "one", "it is later", "three"]


def test_lines_that_were_changed_meanwhile_are_left_alone(editor: Editor) -> None:
    editor.set_up({"notes": NOTES})
    write(editor, "one", "two", "three")
    editor.command("1,2McpTool! notes later")
    editor.request("nvim_buf_set_lines", 0, 1, 2, False, ["mine"])
    eventually(lambda: editor.call("notes", "go") == "1")
    eventually(editor.told)
    assert editor.told() == [
        "mcpclient: the text was changed meanwhile; the answer of notes.later is in a window of "
        "its own"
    ]
    assert editor.lines() == ["one", "mine", "three"]
    assert editor.text("mcp-result://") == "it is later"


def test_a_tool_that_fails_says_why_in_one_line_and_all_of_it_in_its_window(
    editor: Editor,
) -> None:
    editor.set_up({"good": GOOD})
    editor.command("McpTool good fail")
    assert result(editor) == "it failed\n\nand here is why"
    assert editor.told() == ['mcpclient: tool "fail" failed: it failed']


def test_what_cannot_be_meant_is_told_in_one_line_and_leaves_no_window(editor: Editor) -> None:
    editor.set_up({"good": GOOD, "lost": ["no-such-program-here"], "bad": {"command": 3}})
    wanted = {
        "McpTool good ech text=x": 'no tool is named "ech" on "good"; did you mean "echo"?',
        "McpTool god echo": 'no server is named "god" here; did you mean "good"?',
        "McpTool good echo": '"text" is missing; usage: :McpTool good echo text=STRING',
        "McpTool good echo text=x y": '"y" is no argument: write NAME=VALUE, or NAME:=JSON',
        "McpTool good add a=x b=1": (
            '"a" must be a number, not "x"; usage: :McpTool good add a=NUMBER b=NUMBER'
        ),
        "McpTool good": "give a server and a tool: :McpTool SERVER TOOL [name=value | name:=json]…",
        "McpTool good echo text='x": "the quote ' is not closed",
        "McpTool good echo text=<range>": "<range> needs one: :%McpTool …, or lines selected",
        "%McpTool good echo text=x": (
            "the range goes nowhere: give it to an argument, as in text=<range>"
        ),
        "McpTool! good echo text=x": (
            "! replaces lines: give a range, or the whole buffer by an argument text=%"
        ),
        "McpPrompt good greet": "[-32602]",
        "McpPrompt good greet name:=3": '"name" can only be text here: write name=VALUE',
        "McpResource good": "give a server and a URI: :McpResource SERVER URI",
        "McpStart lost": "'no-such-program-here' was not found on PATH (server \"lost\")",
        "McpStart bad": "servers.bad.command",
        "McpLog nobody": 'no server is named "nobody" here',
    }
    for number, (command, told) in enumerate(wanted.items(), start=2):
        editor.command(command)
        eventually(lambda: len(editor.told()) >= number)  # noqa: B023 - it is awaited here
        assert editor.told()[-1].startswith(f"mcpclient: {told}"), command
    assert "servers.bad.command" in editor.told()[0], "told as soon as it is known"
    eventually(lambda: not editor.text("mcp-result://"))
    assert len(editor.told()) == len(wanted) + 1


def test_a_running_tool_tells_how_far_it_is_and_closing_its_window_cancels_it(
    editor: Editor,
) -> None:
    editor.set_up({"notes": NOTES})
    editor.command("McpTool notes hold n=1 of=4")
    eventually(lambda: "hold 25% 100% sure" in editor.text("mcp-result://"))
    line = "%{%v:lua.require'mcpclient'.statusline()%}"
    status = editor.request("nvim_eval_statusline", line, {})["str"]
    assert status == "mcp hold 25% 100% sure\\x1b]0;owned\\x07\\x1b[2J\\x9b2J"
    editor.command("bwipeout! " + str(editor.buffer("mcp-result://")))
    assert eventually(lambda: editor.call("notes", "cancelled") == "1")
    eventually(lambda: editor.lua('return require("mcpclient").statusline()') == "mcp 1/1")


def test_cancelling_ends_all_that_runs(editor: Editor) -> None:
    editor.set_up({"notes": NOTES})
    write(editor, "mine")
    editor.command("1McpTool! notes hold n=1 of=4")
    editor.command("McpTool notes hold n=2 of=4")
    running = 'return require("mcpclient.backend").running'
    eventually(lambda: {one["percent"] for one in editor.lua(running)} == {25, 50})
    editor.command("McpCancel")
    eventually(lambda: editor.call("notes", "cancelled") == "2")
    assert editor.told() == ["mcpclient: notes.hold is cancelled"] * 2
    assert editor.lines() == ["mine"]
    assert len(editor.request("nvim_list_wins")) == 1


def test_a_prompt_comes_as_markdown(editor: Editor) -> None:
    editor.set_up({"good": GOOD})
    editor.command("McpPrompt good greet name=Ada")
    assert result(editor) == "## user\n\nGreet Ada."


def test_each_kind_of_content_is_shown(editor: Editor) -> None:
    editor.set_up({"good": GOOD})
    editor.command("McpTool good kinds")
    shown = result(editor)
    for part in (
        "plain words",
        "(binary, image/png, ",
        "(binary, audio/wav, 45 B)",
        "[a](test://a)",
        "````\nthis is a\n````",
        "(binary, application/octet-stream, 25",
        '"type": "widget"',
    ):
        assert part in shown
