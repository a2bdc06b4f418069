"""What servers ask, in Neovim: a person answers it when there is time, and nothing else waits."""

from __future__ import annotations

import json
from typing import Any

from tests.editors.editor import Editor, eventually, fixture

ASKS = fixture("asks_handshake")
# The person: answers each select and each input by the next of these, a moment later.
PERSON = """
_G.asked, _G.replies = {}, ...
local function reply(prompt, done)
  table.insert(_G.asked, prompt)
  local answer = table.remove(_G.replies, 1)
  vim.schedule(function() done(answer) end)
end
vim.ui.select = function(choices, options, done)
  reply(options.prompt .. " " .. table.concat(choices, "|"), function(index)
    if type(index) == "number" then done(choices[index], index) else done(nil, nil) end
  end)
end
vim.ui.input = function(options, done)
  reply(options.prompt .. (options.default or ""), function(text)
    if type(text) == "string" then done(text) else done(nil) end
  end)
end
"""
FORM = {
    "message": "Who\n\x1b[2Jare you?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2, "description": "Your name"},
            "size": {"type": "integer", "default": 3},
            "colour": {"type": "string", "enum": ["red", "blue"]},
        },
        "required": ["name"],
    },
}


def ask(editor: Editor, params: dict[str, Any] = FORM, tool: str = "ask") -> int:
    """Have the server ask; return the key of the tool's answer."""
    # As JSON: a table of Lua would not keep the order of the fields.
    words = ["method=elicitation/create", f"params:={json.dumps(params)}"]
    return int(
        editor.lua(
            "_G.done = _G.done or {}; local tool, words = ...; local key = #_G.done + 1;"
            " _G.done[key] = false;"
            " require('mcpclient.backend').request('tool', {'asks', tool, words},"
            " function(p, r) _G.done[key] = p and p.text or r.text[1] end); return key",
            *(tool, words),
        )
    )


def replied(editor: Editor, key: int) -> Any:
    """Return what the server was answered."""
    (reply,) = json.loads(eventually(lambda: editor.lua("return _G.done[...]", key)))
    return reply.get("result") or reply.get("error")


def asked(editor: Editor) -> list[str]:
    """Return what the person was asked so far."""
    return list(editor.lua("return _G.asked"))


def test_a_form_is_filled_in_field_by_field(editor: Editor) -> None:
    editor.set_up({"asks": ASKS})
    editor.lua(PERSON, [1, "Ada", "7", 2])
    result = replied(editor, ask(editor))
    assert result == {"action": "accept", "content": {"name": "Ada", "size": 7, "colour": "blue"}}
    assert asked(editor) == [
        "asks asks: Who\\n\\x1b[2Jare you? Answer|Decline",
        "Your name [STRING]: ",
        "size (may be left out) [INTEGER]: 3",
        "colour (may be left out) red|blue|(leave it out)",
    ]


def test_what_does_not_fit_is_asked_again_with_the_reason(editor: Editor) -> None:
    editor.set_up({"asks": ASKS})
    editor.lua(PERSON, [1, "Ada", "many", 3, 1, "Ada", "8", 3])
    result = replied(editor, ask(editor))
    assert result == {"action": "accept", "content": {"name": "Ada", "size": 8}}
    again = asked(editor)[4:]
    assert again[0].endswith('are you? ("size" must be a whole number) Answer|Decline')
    assert again[1:3] == [
        "Your name [STRING]: Ada",
        "size (may be left out) [INTEGER]: many",
    ]


def test_a_person_may_decline_or_leave(editor: Editor) -> None:
    editor.set_up({"asks": ASKS})
    editor.lua(PERSON, [2, False, 1, False])
    assert replied(editor, ask(editor)) == {"action": "decline"}
    assert replied(editor, ask(editor)) == {"action": "cancel"}
    assert replied(editor, ask(editor)) == {"action": "cancel"}
    assert len(asked(editor)) == 4


def test_a_page_is_opened_only_with_consent(editor: Editor) -> None:
    editor.set_up({"asks": ASKS})
    editor.lua(PERSON, [2])
    page = {"mode": "url", "message": "Log in", "url": "https://x.example/", "elicitationId": "1"}
    assert replied(editor, ask(editor, page)) == {"action": "decline"}
    assert asked(editor) == ["asks asks: Log in https://x.example/ Open the page|Decline"]


def test_a_question_waits_until_nothing_is_being_typed(editor: Editor) -> None:
    editor.set_up({"asks": ASKS})
    editor.lua(PERSON, [1, "Ada", "", 3])
    editor.press("ihello")
    key = ask(editor)
    waiting = 'return require("mcpclient.asks").count()'
    eventually(lambda: editor.lua(waiting) == 1)
    status = 'return require("mcpclient").statusline()'
    # The states come in a picture of their own, a moment later perhaps.
    eventually(lambda: editor.lua(status) == "mcp ask, 1 question")
    editor.press(" world")
    eventually(lambda: editor.lines() == ["hello world"])
    assert asked(editor) == []
    editor.press("<Esc>")
    assert replied(editor, key) == {"action": "accept", "content": {"name": "Ada", "size": 3}}


def test_questions_come_one_after_the_other(editor: Editor) -> None:
    editor.set_up({"asks": ASKS})
    editor.lua(PERSON, [1, "Ada", "", 3, 2])
    editor.press("i")
    keys = []
    for count in (1, 2):
        keys.append(ask(editor))
        waiting = 'return require("mcpclient.asks").count()'
        eventually(lambda: editor.lua(waiting) == count)  # noqa: B023 - it is awaited here
    editor.press("<Esc>")
    assert [replied(editor, key)["action"] for key in keys] == ["accept", "decline"]


def test_a_question_that_is_taken_back_is_not_put(editor: Editor) -> None:
    editor.set_up({"asks": ASKS})
    editor.lua(PERSON, [2])
    editor.press("i")
    ask(editor, tool="withdraw")
    key = ask(editor)
    eventually(lambda: editor.lua("return _G.done[1]") == "taken back")
    eventually(lambda: editor.lua('return require("mcpclient.asks").count()') == 1)
    editor.press("<Esc>")
    assert replied(editor, key) == {"action": "decline"}
    assert len(asked(editor)) == 1


def test_neovims_own_dialogues_do_and_let_the_rest_go_on(editor: Editor) -> None:
    editor.set_up({"asks": ASKS})
    key = ask(editor)
    running = "vim.fn.getcmdtype() == '@' and vim.fn.getcmdline()"
    for prompt, keys in (
        # What is no choice is asked again.
        ("", "x<CR>"),
        ("", "1<CR>"),
        ("", "Ada<CR>"),
        ("3", "<C-u><CR>"),  # left out
        ("", "2<CR>"),
    ):
        # Neovim is asking, and answers us at the same time.
        eventually(lambda: editor.lua(f"return {running}") == prompt)  # noqa: B023 - awaited here
        assert editor.request("nvim_get_mode") == {"mode": "c", "blocking": False}
        editor.press(keys)
    result = replied(editor, key)
    assert result == {"action": "accept", "content": {"name": "Ada", "size": 3, "colour": "blue"}}
    key = ask(editor)
    eventually(lambda: editor.lua(f"return {running}") == "")
    editor.press("<C-c>")
    assert replied(editor, key) == {"action": "cancel"}
