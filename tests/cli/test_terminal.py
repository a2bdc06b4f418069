"""At a real terminal: watch, top, long calls, Ctrl-C, and completion in real shells."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pexpect
import pytest
from msgspec import Raw

from mcpclient.cli import names
from mcpclient.protocol.types import Prompt, Tool
from tests.cli.driving import Shell, config, entry, environment, started, terminal
from tests.conftest import alive

DEMO = Path(__file__).parents[2] / "mcpclient" / "cli" / "demo_server.py"


@pytest.fixture
def home(shell: Shell) -> Path:
    """A folder with a lawful server and the demo's."""
    config(shell.folder, good=entry("good_handshake"), demo=entry(DEMO)).rename(".mcp.json")
    return shell.folder


def test_watch_shows_lines_until_ctrl_c(home: Path) -> None:
    with terminal("watch", "good", cwd=home) as child:
        child.expect(r"\d\d:\d\d:\d\d  good  starting\r\n")
        child.expect_exact("up: handshake, 2025-11-25, life 1, good-handshake 1.0.0\r\n")
        child.sendintr()
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 130


def test_top_draws_over_itself_and_q_leaves_the_terminal_as_it_was(home: Path) -> None:
    with started("bash", ["--norc", "--noprofile"], cwd=home, PS1="> ", TERM="xterm") as child:
        child.expect_exact("> ")
        child.sendline(f"{sys.executable} -m mcpclient top -i 0.2; echo left with $?; stty -a")
        child.expect_exact("\x1b[?1049h")  # another screen
        child.expect(r"good +up +handshake +1 ")
        child.expect(r"good +up +handshake +1 .* ms .* MB")
        child.send("q")
        child.expect_exact("\x1b[?1049l")
        child.expect_exact("left with 0")
        child.expect(r" icanon ")
        child.expect(r" echo ")


def test_ctrl_c_leaves_top_and_the_terminal_as_it_was(home: Path) -> None:
    with started("bash", ["--norc", "--noprofile"], cwd=home, PS1="> ", TERM="xterm") as child:
        child.expect_exact("> ")
        child.sendline(f"{sys.executable} -m mcpclient top -i 0.2; echo left with $?; stty -a")
        child.expect(r"good +up ")
        child.sendintr()
        child.expect_exact("\x1b[?1049l")
        child.expect_exact("left with 130")
        child.expect(r" icanon ")
        child.expect(r" echo ")


def test_a_long_call_shows_a_bar_and_its_result_without_it(home: Path) -> None:
    with terminal("call", "demo", "count", "to=60", cwd=home) as child:
        child.expect(r"\d+/60")
        child.expect_exact("counted to 60\r\n")
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 0


def test_a_long_call_in_a_pipe_shows_nothing_but_its_result(shell: Shell, home: Path) -> None:
    ran = shell("call", "demo", "count", "to=15")
    assert (ran.out, ran.err) == ("counted to 15\n", "")


def test_ctrl_c_ends_a_call_and_its_server(home: Path) -> None:
    with terminal("call", "demo", "hang", "-v", cwd=home) as child:
        child.expect(r"demo#1 \+ pid (\d+)")
        pid = int(child.match[1])
        child.expect_exact("opening → up")
        child.sendintr()
        child.expect(pexpect.EOF)
        child.close()
        assert child.exitstatus == 130
    assert not alive(pid)


def test_a_person_is_told_in_colour_and_a_pipe_or_no_color_is_not(home: Path) -> None:
    with terminal("tools", "none", cwd=home) as child:
        child.expect_exact("\x1b[31merror:\x1b[0m no server is named")
    with terminal("tools", "none", cwd=home, NO_COLOR="1") as child:
        child.expect(pexpect.EOF)
        assert child.before.startswith("error: no server is named")


def test_a_table_is_cut_to_the_width_of_the_terminal(home: Path) -> None:
    with terminal("tools", "good", cwd=home, width=60, NO_COLOR="1") as child:
        child.expect(pexpect.EOF)
    lines = child.before.splitlines()
    assert max(map(len, lines)) == 60
    assert lines[6].endswith("…")


def test_bytes_do_not_go_to_a_terminal(home: Path) -> None:
    with terminal("read", "good", "test://blob", "-o", "-", cwd=home) as child:
        child.expect_exact("bytes would spoil this terminal: give -o a file, or pipe it on")


# -- completion ----------------------------------------------------------------------------


@pytest.fixture
def completing(shell: Shell, home: Path) -> Path:
    """What was listed is known to completion; and mcpclient is on PATH."""
    assert shell("status").code == 0
    place = home / "bin"
    place.mkdir()
    script = place / "mcpclient"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -m mcpclient "$@"\n')
    script.chmod(0o755)
    return home


def typed(child: pexpect.spawn, keys: str) -> list[str]:
    """Type a line with tabs, and return the words that the shell makes of it."""
    # Ctrl-A goes to the beginning of the line: what stands there prints the words.
    child.send(f"{keys}\x01printf '<%s>' \r")
    child.expect(r"\r\n?(<mcpclient>[^\r\n]*>)")
    return re.findall(r"<([^>]*)>", child.match[1])


LINES = [
    ("mcpclient ca\t", ["call"]),
    ("mcpclient call g\tec\tte\thi", ["call", "good", "echo", "text=hi"]),
    ("mcpclient call demo gr\tna\tx st\tlo\t", ["call", "demo", "greet", "name=x", "style=loud"]),
    ("mcpclient prompt de\tr\tto\tkind", ["prompt", "demo", "review", "tone=kind"]),
    ("mcpclient read good test://c\t", ["read", "good", "test://counter"]),
    ("mcpclient tools --js\t", ["tools", "--json"]),
]


def test_bash_completes_commands_servers_tools_arguments_and_values(completing: Path) -> None:
    path = f"{completing}/bin:/usr/bin:/bin"
    options = ["--norc", "--noprofile"]
    with started("bash", options, cwd=completing, PATH=path, PS1="> ", TERM="dumb") as child:
        child.expect_exact("> ")
        child.sendline('bind "set enable-bracketed-paste off"; eval "$(mcpclient completion bash)"')
        child.sendline("echo rea''dy")
        child.expect_exact("ready")
        for keys, words in LINES:
            assert typed(child, keys) == ["mcpclient", *words]


def test_zsh_completes_servers_tools_and_arguments(completing: Path) -> None:
    zsh = shutil.which("zsh")
    if zsh is None:
        pytest.skip("zsh is not installed")
    path = f"{completing}/bin:/usr/bin:/bin"
    with started(zsh, ["-f", "-i"], cwd=completing, PATH=path, PS1="> ", TERM="dumb") as child:
        child.expect_exact("> ")
        child.sendline("unsetopt zle_bracketed_paste prompt_sp; bindkey -e; autoload -U compinit")
        child.sendline('compinit -u -D; eval "$(mcpclient completion zsh)"; echo rea""dy')
        child.expect_exact("ready\r\n")
        for keys, words in LINES[1:5:2]:
            assert typed(child, keys) == ["mcpclient", *words]


def test_fish_completes_commands_servers_tools_arguments_and_values(completing: Path) -> None:
    fish = shutil.which("fish")
    if fish is None:
        pytest.skip("fish is not installed")
    path = f"{completing}/bin:/usr/bin:/bin"
    asked = {
        "mcpclient cal": "call\tCall a tool.",
        "mcpclient call go": "good",
        "mcpclient call good ec": "echo\tReturns its text.",
        "mcpclient call good echo te": "text=",
        "mcpclient call demo greet style=l": "style=loud",
        "mcpclient tools --js": "--json\tPrint results as JSON, and errors as one line of JSON.",
    }
    script = "mcpclient completion fish | source\n" + "".join(
        f"complete -C '{line}'\n" for line in asked
    )
    import subprocess

    ran = subprocess.run(
        [fish, "--no-config", "-c", script],
        cwd=completing,
        env=environment(completing, PATH=path),
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert ran.stdout.splitlines() == list(asked.values())


def test_completing_what_a_server_named_runs_nothing(completing: Path) -> None:
    names_ = [
        "a;touch PWNED",
        "b$(touch PWNED)",
        "c`touch PWNED`",
        "d'x",
        'e"x',
        "f x",
        "g&touch P",
    ]
    tools = [Tool.from_wire(Raw(json.dumps({"name": one}).encode())) for one in names_]
    prompts = [Prompt.from_wire(Raw(json.dumps({"name": one}).encode())) for one in names_]
    entries = json.loads((completing / ".mcp.json").read_text())["mcpServers"]
    kept = {"XDG_CACHE_HOME": str(completing / "cache")}
    names.store("good", entries["good"], kept, tools=tools, prompts=prompts)
    path = f"{completing}/bin:/usr/bin:/bin"
    options = ["--norc", "--noprofile"]
    with started("bash", options, cwd=completing, PATH=path, PS1="> ", TERM="dumb") as child:
        child.expect_exact("> ")
        child.sendline('bind "set enable-bracketed-paste off"; eval "$(mcpclient completion bash)"')
        child.sendline("echo rea''dy")
        child.expect_exact("ready")
        for name in names_:
            words = typed(child, f"mcpclient call good {name[0]}\t")
            assert words == ["mcpclient", "call", "good", name]
    assert not list(completing.glob("P*"))
