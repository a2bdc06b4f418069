"""A server whose every text tries something: none of it reaches a terminal as it is."""

from __future__ import annotations

import json

import pytest

from tests.cli.driving import EVIL, HOSTILE, Shell, acting, config, entry, terminal

SHOWN = "\\x1b[2J\\x1b]0;owned\\x07\\x9b31m\\x07\\x08\\x7f\\u202e\\u2066\\u2028[bold red]x[/]"


@pytest.fixture
def evil(shell: Shell) -> Shell:
    """The hostile server."""
    config(shell.folder, evil=entry(HOSTILE)).rename(".mcp.json")
    return shell


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("tools",), 0),
        (("tools", "evil", "evil"), 0),
        (("tools", "evil", "none of them"), 1),
        (("resources",), 0),
        (("prompts",), 0),
        (("prompts", "evil", f"p{EVIL}"), 0),
        (("call", "evil", "evil"), 0),
        (("call", "evil", "evil", "x=1"), 1),
        (("call", "evil", "evil", f"a{EVIL}=x"), 1),
        (("call", "evil", f"e{EVIL}"), 0),
        (("call", "evil", "fail"), 5),
        (("call", "evil", "refuse"), 5),
        (("read", "evil", f"evil://{EVIL}"), 5),
        (("prompt", "evil", f"p{EVIL}"), 5),
        (("prompt", "evil", f"p{EVIL}", f"{EVIL}=1"), 1),
        (("complete", "evil", "p", "a"), 0),
        (("status",), 0),
        (("doctor",), 0),
        (("top", "-n", "1", "-i", "0.1"), 0),
        (("call", "evil", "evil", "-vv"), 0),
    ],
)
def test_nothing_that_acts_comes_out_and_what_is_meant_stays_readable(
    evil: Shell, words: tuple[str, ...], code: int
) -> None:
    ran = evil(*words)
    assert acting(ran.out + ran.err) == set()
    assert ran.code == code
    if words != ("complete", "evil", "p", "a") and words[0] != "top":
        assert "[bold red]x[/]" in ran.out + ran.err
    told = evil(*words, "--json")
    assert acting(told.out + told.err) == set()


def test_json_means_what_the_server_said(evil: Shell) -> None:
    [content, *_] = evil("call", "evil", "evil", "--json").document["content"]
    assert content == {"type": "text", "text": EVIL}
    assert evil("tools", "evil", "--json").document[0]["description"] == EVIL


def test_a_terminal_gets_escapes_of_ours_only(evil: Shell) -> None:
    with terminal("call", "evil", "evil", cwd=evil.folder) as child:
        child.expect_exact(SHOWN)
        shown = child.before + child.after + child.read()
    assert acting(shown) == set()
    with terminal("tools", "evil", cwd=evil.folder, width=600) as child:
        child.expect_exact(SHOWN.replace("\\u2028", " "))  # white space is drawn together
        shown = child.before + child.after + child.read()
    assert acting(shown.replace("\x1b[2mTOOL", "TOOL").replace("\x1b[0m", "", 1)) == set()


def test_progress_is_shown_as_it_is_written_not_as_markup(evil: Shell) -> None:
    with terminal("call", "evil", "long", cwd=evil.folder, width=200) as child:
        child.expect_exact("[bold red]x")
        child.expect_exact("1/2")
        shown = child.before + child.after
        child.sendintr()
        shown += child.read()
        child.close()
        assert child.exitstatus == 130
    assert "\x1b]0;" not in shown
    assert "\x1b[2J" not in shown
    assert "\x9b" not in shown


def test_notifications_and_stderr_are_made_safe_while_they_are_followed(evil: Shell) -> None:
    for words in (("watch",), ("logs", "-f", "evil")):
        with terminal(*words, cwd=evil.folder, width=400) as child:
            child.expect_exact(f"error {SHOWN}")
            shown = child.before + child.after
            child.sendintr()
            shown += child.read()
            child.close()
            assert child.exitstatus == 130
        assert acting(shown) == set()


def test_what_is_kept_for_completion_completes_nothing_that_acts(evil: Shell) -> None:
    evil("tools")
    [path] = (evil.folder / "cache" / "mcpclient").glob("*.json")
    assert json.loads(path.read_text())["tools"][1]["name"] == f"e{EVIL}"
    for shell, expected in (("bash", "plain\tevil"), ("zsh", "plain\tevil\t"), ("fish", "")):
        answer = answered(evil, shell, "mcpclient call evil e")
        assert answer.startswith(expected)
        assert acting(answer) == set()


def answered(shell: Shell, name: str, line: str) -> str:
    """Return what completion answers the script of a shell."""
    shell._patch.setenv("_MCPCLIENT_COMPLETE", f"{name}_complete")
    shell._patch.setenv("COMP_WORDS", line)
    try:
        return shell().out
    finally:
        shell._patch.delenv("_MCPCLIENT_COMPLETE")
