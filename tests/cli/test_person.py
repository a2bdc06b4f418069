"""Servers ask the person at a real terminal: forms, secrets, pages, and every way out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pexpect
import pytest

from mcpclient.cli.out import Out
from tests.cli.driving import EVIL, Shell, acting, config, entry, started, terminal
from tests.conftest import alive, real_servers

ASKING = Path(__file__).with_name("asking_server.py")
SEND = "the number of what to change: "
FORM = {
    "message": f"{EVIL}Who are you?",
    "requestedSchema": {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2, "title": EVIL},
            "password": {"type": "string"},
            "hero": {"type": "string", "oneOf": [{"const": "h1", "title": "Superman"}]},
            "size": {"type": "integer", "default": 3},
        },
        "required": ["name", "password"],
    },
}
ASK = ("call", "shake", "ask", "method=elicitation/create", f"params:={json.dumps(FORM)}")


@pytest.fixture
def home(shell: Shell) -> Path:
    """A folder with servers of both eras that ask."""
    servers = {
        "shake": entry("asks_handshake"),
        "rounds": entry("asks_stateless_rounds"),
        "all": entry("everything"),
        "odd": entry(ASKING, cwd=str(shell.folder)),
    }
    config(shell.folder, **servers).rename(".mcp.json")
    return shell.folder


def answer(child: pexpect.spawn, *pairs: tuple[str, str]) -> None:
    """Wait for each prompt, then type."""
    for prompt, line in pairs:
        child.expect_exact(prompt)
        child.sendline(line)


def ended(child: pexpect.spawn) -> tuple[int, str]:
    """Wait for the end; return the exit code, and the last line that was shown."""
    child.expect(pexpect.EOF)
    shown = child.before.splitlines()
    child.close()
    return child.exitstatus, shown[-1]


def test_a_form_is_filled_in_and_checked_and_its_secret_never_shown(home: Path) -> None:
    with terminal(*ASK, cwd=home) as child:
        child.expect_exact('"shake" asks:\r\n  | ')
        answer(child, ("name: ", "A"), ("at least 2 characters", "Ada"), ("password: ", "hunter2"))
        shown = child.before
        child.expect_exact("1  Superman (h1)\r\n")
        answer(child, ("hero: ", "1"), ("size [3]: ", "many"), ("! say a whole number", ""))
        child.expect_exact(SEND)
        shown += child.before
        child.sendline("yes")
        code, result = ended(child)
    assert "hunter2" not in shown
    assert not acting(shown)
    [reply] = json.loads(result)
    content = {"name": "Ada", "password": "hunter2", "hero": "h1", "size": 3}
    assert (code, reply["result"]) == (0, {"action": "accept", "content": content})


def test_the_time_that_a_person_takes_is_nobodys_time_out_and_no_bar_disturbs_them(
    home: Path,
) -> None:
    with terminal("read", "shake", "test://asking", "-t", "2", cwd=home) as child:
        child.expect_exact("name: ")
        # The fact is the time itself: longer than the call may take, and than a bar waits.
        assert child.expect([pexpect.TIMEOUT, "."], timeout=2.3) == 0
        child.sendline("Ada")
        answer(child, ("size [3]: ", ""), (SEND, ""))
        code, result = ended(child)
    assert code == 0
    assert json.loads(result)["result"]["content"] == {"name": "Ada", "size": 3}


def test_a_bar_makes_place_for_a_question_and_comes_back_behind_it(home: Path) -> None:
    with terminal("call", "odd", "late", cwd=home) as child:
        child.expect_exact("to ask")
        (home / "ask").touch()
        child.expect_exact("name: ")
        assert child.before.rindex("\x1b[?25h") > child.before.rindex("to ask")  # the cursor
        child.sendline("Ada")
        child.expect_exact(SEND)
        assert "to ask" not in child.before
        assert "\x1b" not in child.before
        child.sendline("")
        child.expect_exact("to end")
        (home / "end").touch()
        child.expect_exact('"Ada"')
        assert ended(child)[0] == 0


def test_a_question_that_is_taken_back_is_gone_and_the_call_goes_on(home: Path) -> None:
    with terminal("call", "odd", "fickle", cwd=home) as child:
        child.expect_exact("name: ")
        (home / "back").touch()
        child.expect_exact('! "odd" does not ask any more\r\n')
        assert ended(child) == (0, "never mind")


def test_a_line_that_the_terminal_cut_is_not_taken_for_the_answer(home: Path) -> None:
    with terminal("read", "shake", "test://asking", cwd=home) as child:
        answer(child, ("name: ", "x" * 5000))
        answer(child, ("at most 4094 bytes; this one was cut\r\nname: ", "y" * 4000))
        answer(child, ("size [3]: ", ""), (SEND, ""))
        assert json.loads(ended(child)[1])["result"]["content"]["name"] == "y" * 4000


def test_one_declines_by_word_and_by_ctrl_d_in_both_eras(home: Path) -> None:
    with terminal("read", "rounds", "test://asking/x", cwd=home) as child:
        child.expect_exact('"rounds" asks:\r\n  | Whose?\r\n')
        answer(child, ("name: ", "!decline"))
        assert ended(child) == (0, '{"action": "decline"}')
    with terminal("read", "shake", "test://asking", cwd=home) as child:
        child.expect_exact("name: ")
        child.sendeof()
        code, shown = ended(child)
        assert code == 0
        assert '"result": {"action": "decline"}' in shown


@pytest.mark.parametrize("words", [ASK, ("read", "rounds", "test://asking/x")])
def test_ctrl_c_ends_the_call_and_the_terminal_is_as_it_was(
    words: tuple[str, ...], home: Path
) -> None:
    (home / "words.json").write_text(json.dumps(words))
    code = "import json; from mcpclient.cli import main; main(json.load(open('words.json')))"
    with started("bash", ["--norc", "--noprofile"], cwd=home, PS1="> ", TERM="xterm") as child:
        child.expect_exact("> ")
        child.sendline(f'{sys.executable} -c "{code}"; echo left with $?; stty -a')
        child.expect_exact("\nname: ")
        if words is ASK:
            child.sendline("Ada")
            child.expect_exact("\npassword: ")
        child.sendintr()
        child.expect_exact("left with 130")
        assert "does not ask" not in child.before
        child.expect(r" icanon ")
        child.expect(r" echo ")


def test_ctrl_c_leaves_no_server(home: Path) -> None:
    with terminal(*ASK, "-v", cwd=home) as child:
        child.expect(r"shake#1 \+ pid (\d+)")
        pid = int(child.match[1])
        child.expect_exact("name: ")
        child.sendintr()
        assert ended(child)[0] == 130
    assert not alive(pid)


def visited(home: Path, choice: str, url: str) -> tuple[str, str]:
    """Answer a question about a page; return what was shown, and what the browser got."""
    browser = home / "browser"
    browser.write_text(f'#!/bin/sh\necho noise\nprintf "%s" "$1" >> {home}/seen\n')
    browser.chmod(0o755)
    with terminal("call", "all", "visit_page", f"url={url}", cwd=home, BROWSER=str(browser)) as one:
        answer(one, ("yourself; no: ", choice))
        shown = one.before
        if choice != "no":
            answer(one, ("go on at once: ", ""))
        assert ended(one)[0] == 0
        shown += one.before
    seen = home / "seen"
    return shown, seen.read_text() if seen.exists() else ""


def test_a_page_is_opened_if_the_person_says_so_and_never_else(home: Path) -> None:
    url = "https://x.example/a?b=$(touch%20PWNED);c&d='e'"
    shown, seen = visited(home, "yes", url)
    assert f"  host  x.example\r\n  page  {url}\r\n" in shown
    assert "the person said accept" in shown
    assert seen == ""
    shown, seen = visited(home, "no", url)
    assert "the person said decline" in shown
    assert seen == ""
    shown, seen = visited(home, "open", url)
    assert "the person said accept" in shown
    assert seen == url
    assert "noise" not in shown


def test_a_call_that_wants_a_page_visited_first_goes_on_when_that_is_done(home: Path) -> None:
    with terminal("call", "shake", "login", cwd=home) as child:
        answer(child, ("yourself; no: ", "yes"), ("go on at once: ", ""))
        assert ended(child) == (0, "granted")


def capabilities(journal: str) -> Any:
    """Return what the client offered, by the server's journal."""
    [opening] = [one for one in json.loads(journal) if one["method"] == "initialize"]
    return opening["params"]["capabilities"]


def test_without_a_person_nothing_is_offered(shell: Shell, home: Path) -> None:
    assert capabilities(shell("call", "shake", "journal").out) == {}
    refused = shell("read", "shake", "test://asking")
    assert "Method not found" in refused.out or "not supported" in refused.out
    with terminal("call", "shake", "journal", "--no-input", cwd=home) as child:
        assert capabilities(ended(child)[1]) == {}
    with terminal("call", "shake", "journal", "--json", cwd=home) as child:
        child.expect(pexpect.EOF)
        assert capabilities(json.loads(child.before)["content"][0]["text"]) == {}
    with terminal("call", "shake", "journal", cwd=home) as child:
        assert capabilities(ended(child)[1]) == {"elicitation": {"form": {}, "url": {}}}


def test_roots_are_offered_as_they_were_named(shell: Shell, home: Path) -> None:
    folder = home / "a folder"
    folder.mkdir()
    ran = shell("call", "shake", "ask", "method=roots/list", "--root", "a folder", "--root", home)
    [reply] = json.loads(ran.out)
    assert reply["result"]["roots"] == [
        {"uri": folder.as_uri(), "name": "a folder"},
        {"uri": home.as_uri(), "name": home.name},
    ]
    ran = shell("call", "shake", "ask", "method=roots/list")
    assert json.loads(ran.out)[0]["error"]["code"] == -32601
    ran = shell("call", "shake", "journal", "--root", "nowhere")
    assert ran.code == 1
    assert "Path 'nowhere' does not exist" in ran.err


def test_the_shell_of_python_is_given_the_roots_and_whether_it_may_ask(
    shell: Shell, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcpclient import repl

    took: list[dict[str, Any]] = []
    monkeypatch.setattr(repl, "run", lambda servers, **options: took.append(options))
    assert shell("repl").code == 0
    assert shell("repl", "--root", home, "--no-input").code == 0
    source = {"config": "./.mcp.json"}
    assert took == [source, {**source, "roots": [str(home)], "on_elicit": None}]


def test_what_is_told_aside_waits_until_nobody_is_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = Out()
    with out.talking():
        out.aside("a line of a log")
        out.ask("name: ")
        for number in range(1000):
            out.aside(str(number))
    assert capsys.readouterr().err.startswith("name: 0\n1\n2\n")


# -- servers that others wrote -----------------------------------------------------------------


def real(name: str) -> list[str]:
    """Return the command of a server that we did not write."""
    if (command := real_servers().get(name)) is None:
        pytest.skip(f"the server {name} is not set up here (make real-servers)")
    return command


def test_the_reference_server_has_a_form_filled_in(home: Path) -> None:
    words = ("call", "trigger-elicitation-request", "--", *real("everything"))
    with terminal(*words, cwd=home) as child:
        child.expect_exact("1/13  name – String (text")
        answer(child, ("name: ", "Ada"), ("check", ""), ("firstLine", ""), ("email", "ada"))
        answer(child, ("! ", "ada@example.com"), ("homepage: ", ""), ("birthdate: ", ""))
        answer(child, ("integer [42]: ", "7"), ("number [3.14]: ", ""))
        answer(child, ("Enum [Monica]: ", "6"), ("Enum [Guitar]: ", "1,3"))
        answer(child, ("Enum [Superman]: ", "wonder woman"), ("Enum [", ""), ("Enum [", ""))
        answer(child, (SEND, ""))
        assert ended(child)[0] == 0
        shown = child.before
    assert '"email": "ada@example.com"' in shown
    assert '"untitledSingleSelectEnum": "Phoebe"' in shown


def test_the_reference_server_is_told_the_roots(shell: Shell, home: Path) -> None:
    command = real("everything")
    ran = shell("call", "get-roots-list", "--root", home, "--", *command)
    assert ran.code == 0, ran.err
    assert f"1. {home.name}\n   URI: {home.as_uri()}" in ran.out
