"""Resources as buffers of Neovim: read, followed, drawn without moving anything, let go."""

from __future__ import annotations

import json

from tests.editors.editor import FREE, GOOD, NOTES, Editor, eventually, fixture


def test_a_resource_is_a_buffer_that_follows_its_changes(editor: Editor) -> None:
    editor.set_up({"notes": NOTES})
    editor.command("McpResource notes notes://list")
    eventually(lambda: len(editor.lines()) == 30)
    assert editor.lua("return vim.api.nvim_buf_get_name(0)") == "mcp://notes/notes://list"
    assert editor.request("nvim_buf_get_option", 0, "modifiable") is False
    editor.press("20Gzt3l")
    eventually(lambda: editor.lua("return vim.fn.getpos('.')") == [0, 20, 4, 0])
    before = editor.lua("return vim.fn.winsaveview()")
    lines = [f"new note {number}" for number in range(1, 41)]
    editor.call("notes", "write", lines=lines)
    eventually(lambda: editor.lines() == lines)
    assert editor.lua("return vim.fn.winsaveview()") == before
    assert editor.lua("return vim.bo.modified") is False
    assert editor.lua("return vim.b.mcpclient.follows") is True
    editor.call("notes", "write", lines=["only one"])
    eventually(lambda: editor.lines() == ["only one"])
    assert editor.told() == []


def test_the_buffer_follows_in_windows_that_are_not_the_current_one(editor: Editor) -> None:
    editor.set_up({"notes": NOTES})
    editor.command("McpResource notes notes://list")
    eventually(lambda: len(editor.lines()) == 30)
    editor.command("normal! 15G")
    editor.command("split")
    editor.command("normal! 5G")
    editor.command("new")
    editor.call("notes", "write", lines=["x"] * 20)
    eventually(lambda: editor.text("notes://list") == "\n".join("x" * 20))
    windows = editor.request("nvim_list_wins")
    assert [editor.request("nvim_win_get_cursor", one)[0] for one in windows] == [1, 5, 15]
    assert editor.lines() == [""]


def test_a_resource_of_the_stateless_era_is_followed_too(editor: Editor) -> None:
    editor.set_up({"free": FREE})
    editor.command("McpResource free test://counter")
    first = eventually(lambda: "".join(editor.lines()))
    editor.call("free", "notify", n=1, uri="test://counter")
    eventually(lambda: int("".join(editor.lines())) > int(first))


def test_editing_it_again_reads_it_again(editor: Editor) -> None:
    editor.set_up({"good": GOOD})
    editor.command("McpResource good test://counter")
    first = int(eventually(lambda: "".join(editor.lines())))
    editor.command("edit")
    eventually(lambda: int("".join(editor.lines())) == first + 1)


def test_wiping_the_buffer_ends_the_subscription(editor: Editor) -> None:
    editor.set_up({"notes": NOTES})
    editor.command("McpResource notes notes://list")
    eventually(lambda: len(editor.lines()) == 30)
    assert json.loads(editor.call("notes", "subscribed")) == ["notes://list"]
    editor.command("edit")
    eventually(lambda: editor.lua("return vim.b.mcpclient.follows"))
    editor.command("bwipeout!")
    eventually(lambda: json.loads(editor.call("notes", "subscribed")) == [])


def test_a_resource_without_subscriptions_is_read_all_the_same(editor: Editor) -> None:
    editor.set_up({"asks": fixture("asks_handshake")})
    editor.command("McpResource asks test://a")
    eventually(lambda: "".join(editor.lines()))
    assert editor.lua("return vim.b.mcpclient.follows") is False
    assert editor.told() == []


def test_a_resource_that_cannot_be_read_is_told_in_one_line(editor: Editor) -> None:
    editor.set_up({"good": GOOD})
    editor.command("McpResource good other://x")
    eventually(editor.told)
    assert editor.told()[0].startswith("mcpclient: [-32002] ")
    assert len(editor.told()) == 1


def test_a_followed_resource_outlives_its_server(editor: Editor) -> None:
    editor.set_up({"notes": NOTES})
    editor.command("McpResource notes notes://list")
    eventually(lambda: len(editor.lines()) == 30)
    editor.call("notes", "write", lines=["of the first life"])
    eventually(lambda: editor.lines() == ["of the first life"])
    editor.command("McpRestart notes")
    eventually(lambda: len(editor.lines()) == 30)  # as a new life has it
    editor.call("notes", "write", lines=["of the second life"])
    eventually(lambda: editor.lines() == ["of the second life"])


def test_a_huge_resource_is_cut_and_says_so(editor: Editor) -> None:
    editor.set_up({"notes": NOTES})
    editor.command("McpResource notes notes://huge")
    eventually(lambda: editor.request("nvim_buf_line_count", 0) > 1000)
    last = editor.request("nvim_buf_get_lines", 0, -2, -1, False)
    assert last == ["… cut here: the whole has 5000000 characters"]
