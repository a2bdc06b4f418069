"""Each command, its output for people and for programs, and its exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.driving import ROOT, Ran, Shell, config, entry, environment
from tests.conftest import SERVERS

GOOD = ("--", sys.executable, SERVERS / "good_handshake.py")


@pytest.fixture
def good(shell: Shell) -> Shell:
    """Two lawful servers, one of each era."""
    new = entry("good_stateless")
    config(shell.folder, good=entry("good_handshake"), new=new).rename(".mcp.json")
    return shell


# -- lists ---------------------------------------------------------------------------------


def test_tools_are_a_table_of_all_servers_or_of_one(good: Shell) -> None:
    ran = good("tools")
    assert (ran.code, ran.err) == (0, "")
    head, *rows = ran.out.splitlines()
    assert head == "SERVER  TOOL      ARGUMENTS               DESCRIPTION"
    assert rows[0] == "good    echo      text                    Returns its text."
    assert [row.split()[0] for row in rows] == ["good"] * 10 + ["new"] * 10
    alone = good("tools", "new")
    assert alone.out.splitlines()[1] == "echo      text                    Returns its text."


def test_a_tool_is_told_with_how_it_is_called(good: Shell) -> None:
    assert good("tools", "good", "add").out == (
        "add – Add\n"
        "Adds two numbers.\n"
        "\n"
        "mcpclient call good add a=NUMBER b=NUMBER\n"
        "\n"
        "ARGUMENT  TYPE\n"
        "a         NUMBER  required\n"
        "b         NUMBER  required\n"
    )


def test_lists_as_json_hold_all_that_the_server_said(good: Shell) -> None:
    first = good("tools", "--json").document[0]
    assert first["server"] == "good"
    assert first["inputSchema"]["required"] == ["text"]
    uris = [
        one.get("uri") or one["uriTemplate"] for one in good("resources", "good", "--json").document
    ]
    assert uris == ["test://counter", "test://a", "test://b", "test://blob", "test://item/{name}"]
    assert [one["name"] for one in good("prompts", "new", "--json").document] == ["greet", "plain"]
    assert good("tools", "good", "echo", "--json").document["name"] == "echo"


def test_resources_and_prompts_are_tables_too(good: Shell) -> None:
    assert good("resources", "good").out.splitlines()[:2] == [
        "URI                 TYPE                      NAME",
        "test://counter      text/plain                counter",
    ]
    assert good("prompts", "good").out.splitlines()[1] == "greet   name       Greets somebody."
    assert "mcpclient prompt good greet name=STRING\n" in good("prompts", "good", "greet").out


def test_a_server_that_follows_the_dashes_needs_no_name(shell: Shell) -> None:
    assert shell("tools", *GOOD).out.splitlines()[1].startswith("echo ")
    assert shell("call", "echo", "text=hi", *GOOD).out == "hi\n"
    assert shell("read", "test://a", *GOOD).out == "this is a\n"
    assert "mcpclient call add a=NUMBER b=NUMBER\n" in shell("tools", "add", *GOOD).out


def test_the_lists_of_servers_that_run_are_shown_beside_the_errors_of_the_others(
    shell: Shell,
) -> None:
    config(
        shell.folder, good=entry("good_handshake"), bad=entry("exit_3"), odd={"comand": "x"}
    ).rename(".mcp.json")
    ran = shell("prompts")
    assert ran.code == 4
    assert ran.out.splitlines()[1] == "good    greet   name       Greets somebody."
    dead, odd = ran.err.splitlines()
    assert dead == (
        'error: server "bad": the server ended while it was opened (exit code 3) '
        "(stderr: cannot start: the database is missing)"
    )
    assert odd == (
        "error: ./.mcp.json: mcpServers.odd.comand: unknown key 'comand'; did you mean 'command'?"
    )
    assert shell("prompts", "odd").code == 1


# -- call ----------------------------------------------------------------------------------


def test_a_call_prints_the_text_of_its_result(good: Shell) -> None:
    assert good("call", "good", "echo", "text=a=b") == Ran(0, "a=b\n", "")
    assert good("call", "new", "add", "a=1", "b:=2.5") == Ran(0, "3.5\n", "")
    assert good("--json", "call", "good", "add", "a=1", "b=2").document["structuredContent"] == {
        "sum": 3
    }


def test_arguments_may_come_from_stdin_and_words_count_more(good: Shell) -> None:
    assert good("call", "good", "echo", "-", stdin=b'{"text": "in"}').out == "in\n"
    assert good("call", "good", "echo", "-", "text=word", stdin=b'{"text": "in"}').out == "word\n"
    ran = good("call", "good", "echo", "-", stdin=b"[1]")
    assert (ran.code, ran.err) == (
        1,
        'error: stdin must hold a JSON object, such as {"name": "value"}\n',
    )
    assert good("call", "good", "echo", "-", stdin=b"{").err.startswith(
        "error: stdin holds no JSON"
    )


def test_stdin_is_left_alone_unless_it_is_asked_for(good: Shell) -> None:
    assert good("call", "good", "echo", "text=hi", stdin=b"not JSON").out == "hi\n"


def test_a_wrong_argument_names_the_nearest_and_the_usage(good: Shell) -> None:
    ran = good("call", "good", "add", "a=1", "bb=2")
    assert ran == Ran(
        1,
        "",
        'error: there is no argument "bb"; did you mean "b"?\n'
        "usage: mcpclient call good add a=NUMBER b=NUMBER\n",
    )
    assert good("call", "good", "ecko").err == (
        'error: no tool is named "ecko" on "good"; did you mean "echo"?\n'
    )


def test_what_is_no_text_is_told_or_saved(good: Shell) -> None:
    assert good("call", "good", "kinds").out == (
        "plain words\n"
        "[image] image/png, 70 B; -o FILE saves it\n"
        "[audio] audio/wav, 44 B; -o FILE saves it\n"
        "[link] test://a a text/plain\n"
        "this is a\n"
        "[blob test://blob] application/octet-stream, 256 B; -o FILE saves it\n"
        '[widget] {"type": "widget", "x": 1}\n'
    )
    assert "[saved] got.png, 70 B\n" in good("call", "good", "kinds", "-o", "got.png").out
    assert (good.folder / "got.png").read_bytes().startswith(b"\x89PNG")
    assert (good.folder / "got-2.png").read_bytes().startswith(b"RIFF")
    assert (good.folder / "got-3.png").read_bytes() == bytes(range(256))
    ran = good("call", "good", "echo", "text=x", "-o", "got.png")
    assert (ran.code, ran.err) == (
        1,
        "error: there is nothing to save: all of the result is text\n",
    )
    assert good("call", "good", "kinds", "-o", "none/got.png").err == (
        "error: none/got.png cannot be written: No such file or directory\n"
    )


def test_a_tool_that_fails_exits_with_5(good: Shell) -> None:
    ran = good("call", "good", "fail")
    assert ran == Ran(5, "", 'error: tool "fail" failed: it failed\nand here is why\n')
    ran = good("call", "good", "fail", "--json")
    assert (ran.code, ran.document["isError"]) == (5, True)
    assert ran.problem == {
        "error": 'tool "fail" failed: it failed\nand here is why',
        "type": "ToolError",
        "server": "good",
        "tool": "fail",
        "exit": 5,
    }


# -- read, prompt, complete ----------------------------------------------------------------


def test_a_resource_is_printed_or_saved_as_it_is(good: Shell) -> None:
    assert good("read", "good", "test://a").out == "this is a\n"
    assert good("read", "good", "test://item/{name}", "name=x y").code == 0
    assert good("read", "good", "test://blob").out == (
        "[blob] application/octet-stream, 256 B; -o FILE saves it\n"
    )
    ran = good("read", "good", "test://blob", "-o", "blob")
    assert (ran.out, ran.err) == ("", "[saved] blob, 256 B\n")
    assert (good.folder / "blob").read_bytes() == bytes(range(256))
    assert good("read", "good", "test://a", "--json").document["contents"][0]["text"] == "this is a"
    assert good("read", "good", "test://item/{name}", "nam=x").err == (
        'error: "test://item/{name}" has no variable "nam"\n'
    )


def test_a_blob_may_go_to_a_pipe_as_it_is(good: Shell) -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "mcpclient", "read", "good", "test://blob", "-o", "-"],
        env=environment(good.folder),
        capture_output=True,
        check=True,
    )
    assert ran.stdout == bytes(range(256))


def test_what_the_demo_s_server_does_not_have_is_told_by_its_name(shell: Shell) -> None:
    ran = shell("read", "demo://note", "--", sys.executable, "-m", "mcpclient.cli.demo_server")
    assert ran.code == 5
    assert "[-32002] there is no resource demo://note" in ran.err


def test_a_question_that_nobody_can_be_asked_names_the_terminal(shell: Shell) -> None:
    (shell.folder / "shop.py").write_text(
        "from mcpclient.serverkit import Frame, Schema, Server, serve_stdio\n"
        "class Order(Schema):\n    apples: int\n"
        "server = Server('shop', '1')\n"
        "@server.tool\nasync def buy(frame: Frame) -> str:\n"
        "    return str(await frame.elicit('How many?', Order))\n"
        "serve_stdio(server)\n"
    )
    ran = shell("call", "buy", "--", sys.executable, "shop.py")
    assert (ran.code, ran.out) == (5, "")
    assert "[-32021] the client does not declare elicitation" in ran.err
    assert "; it wants to ask you: run it at a terminal, without --json and" in ran.err


def test_what_a_server_refuses_exits_with_5(good: Shell) -> None:
    ran = good("read", "good", "none://x", "--json")
    assert (ran.code, ran.out) == (5, "")
    assert ran.problem["type"] == "ReplyError"
    assert ran.problem["code"] == -32002
    assert ran.problem["exit"] == 5


def test_a_prompt_is_filled_in(good: Shell) -> None:
    assert good("prompt", "good", "greet", "name=you").out == "Greet you.\n"
    assert good("prompt", "good", "greet").err == 'error: "name" is missing: add name=TEXT\n'
    assert good("prompt", "good", "greet", "nam=x").err == (
        'error: prompt "greet" has no argument "nam" (it takes: name)\n'
    )
    messages = good("prompt", "new", "plain", "--json").document["messages"]
    assert messages[0]["content"]["type"] == "text"


def test_completions_of_a_server_come_one_a_line(good: Shell) -> None:
    ran = good("complete", "good", "greet", "name")
    assert ran.code == 0
    values = ran.out.split()
    assert values
    begun = good("complete", "good", "greet", "name", values[0][:2]).out.split()
    assert values[0] in begun
    assert good("complete", "good", "test://item/{name}", "name", "--json").document["completion"]


# -- status, doctor ------------------------------------------------------------------------


def test_status_says_how_each_server_is(shell: Shell) -> None:
    config(shell.folder, good=entry("good_handshake"), bad=entry("exit_3")).rename(".mcp.json")
    ran = shell("status")
    head, good, bad = ran.out.splitlines()
    assert head.split()[:4] == ["SERVER", "STATE", "ERA", "VERSION"]
    assert good.split()[:4] == ["good", "up", "handshake", "2025-11-25"]
    assert good.split()[-5:] == ["10", "5", "2", "good-handshake", "1.0.0"]
    assert bad.split()[:2] == ["bad", "failed"]
    assert ran.code == 4
    ran = shell("status", "good", "--json")
    assert ran.code == 0
    [facts] = ran.document
    assert (facts["server"], facts["state"], facts["tools"]) == ("good", "up", 10)


def test_the_doctor_tells_which_file_what_is_wrong_and_what_to_do(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_TOKEN", "a-long-secret")
    monkeypatch.setenv("MY_PLACE", "a-place")
    env = {"A": "${MY_TOKEN}", "B": "${MY_PLACE}", "C": "${NOT_SET_C:-cc}"}
    monkeypatch.setenv("MY_WORD", "a-hidden-word")  # a secret by where it stands
    config(
        shell.folder,
        good=entry("good_handshake", env=env),
        bad=entry("exit_3", "--token", "${MY_WORD}"),
        none={"command": "no-such-command"},
        unset={"command": "x", "env": {"A": "${NOT_SET_A}"}},
        noisy=entry("log_lines"),
        off={"disabled": True},
    ).rename(".mcp.json")
    other = shell.folder / ".vscode"
    other.mkdir()
    (other / "mcp.json").write_text("{}")
    ran = shell("doctor")
    assert ran.code == 4
    assert "a-long-secret" not in ran.out + ran.err
    assert "a-hidden-word" not in ran.out + ran.err
    top, *parts = ran.out.split("\n\n")
    assert top == (
        "config  ./.mcp.json (the first that was found), 6 servers\n"
        "        ./.vscode/mcp.json exists too, and is not read\n"
        '        "off" is disabled'
    )
    shown = {part.splitlines()[0]: part.splitlines()[1:] for part in parts}
    assert list(shown) == ["good", "bad", "none", "unset", "noisy"]
    good = shown["good"]
    assert good[:3] == [
        "  ok    variable   MY_TOKEN = ••• (13 characters) (environment)",
        "  ok    variable   MY_PLACE = a-place (environment)",
        "  ok    variable   NOT_SET_C = cc (not set; the file's default)",
    ]
    assert good[3].startswith("  ok    command    ")
    assert good[4].startswith("  ok    starts     in ")
    assert good[5:] == [
        "  ok    speaks     handshake 2025-11-25, good-handshake 1.0.0",
        "  ok    offers     10 tools, 5 resources, 2 prompts",
    ]
    assert shown["bad"][2:] == [
        "  fail  starts     the server ended while it was opened (exit code 3)",
        "        stderr     cannot start: the database is missing",
        f"        do         run it by hand: {sys.executable} {SERVERS}/exit_3.py --token •••",
    ]
    assert shown["none"] == [
        "  fail  starts     'no-such-command' was not found on PATH",
        '        do         install it or give the full path in "command"',
    ]
    assert shown["unset"] == [
        "  fail  variable   NOT_SET_A is not set",
        "        do         export NOT_SET_A=…, or -e NOT_SET_A=…",
    ]
    assert any("are no messages were skipped" in line for line in shown["noisy"])


def test_the_doctor_s_findings_as_json(shell: Shell) -> None:
    path = config(shell.folder, bad=entry("exit_3"))
    ran = shell("doctor", "-c", path, "--json")
    assert ran.code == 4
    assert ran.document["config"] == str(path)
    assert ran.document["why"] == "-c"
    [server] = ran.document["servers"]
    assert (server["server"], server["ok"]) == ("bad", False)
    assert [one["what"] for one in server["steps"] if one["mark"] == "fail"] == ["starts"]


def test_the_doctor_looks_whether_a_url_can_be_reached(shell: Shell) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets it either
        port = taken.getsockname()[1]
        ran = shell("doctor", "-t", "5", "--", f"http://me:secret-word@127.0.0.1:{port}/mcp")
    assert ran.code == 4
    assert "secret-word" not in ran.out + ran.err
    assert f"  ok    url        http://•••@127.0.0.1:{port}/mcp\n" in ran.out
    assert f"  fail  reached    127.0.0.1:{port}: " in ran.out


# -- errors --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["cal"], 'there is no command "cal"; did you mean "call"?'),
        (["tools", "http://x/mcp"], '"http://x/mcp" is a URL: it stands behind the --, at the end'),
        (["call"], "SERVER is missing; see mcpclient call --help"),
        (["call", "good"], "TOOL is missing; see mcpclient call --help"),
        (["call", "god", "echo"], 'no server is named "god" in ./.mcp.json; did you mean "good"?'),
        (
            ["call", "good", "echo", "text"],
            '"text" is no argument: write NAME=VALUE, or NAME:=JSON',
        ),
        (["tools", "a", "b", "c"], '"c" is one word too many; see mcpclient tools --help'),
        (["tools", "-t", "0"], "must be above 0 seconds"),
        (["tools", "-e", "x"], "'x' is not NAME=VALUE"),
        (["tools", "-c", "none.json"], "none.json: the file cannot be read: No such file or dir"),
        (["watch", "-r", "x://y"], "--resource needs the one SERVER that has it"),
        (["logs", "good"], '"good" keeps no file of its stderr: add "stderr_file" to its entry'),
        (["complete", "good", "greet"], "ARGUMENT is missing: the name of what is to be completed"),
        (["tools", "--"], "nothing follows --: give the server's command or URL"),
    ],
)
def test_what_cannot_be_meant_exits_with_1_and_the_next_step(
    good: Shell, words: list[str], problem: str
) -> None:
    ran = good(*words)
    assert (ran.code, ran.out) == (1, "")
    assert problem in ran.err
    assert ran.err.startswith("error: ")
    place = words.index("--") if "--" in words else len(words)
    told = good(*words[:place], "--json", *words[place:]).problem
    assert problem in told["error"]
    assert told["exit"] == 1


def test_a_server_that_does_not_answer_in_time_exits_with_4(good: Shell) -> None:
    ran = good("call", "good", "slow", "seconds=60", "-t", "1", "--json")
    assert ran.code == 4
    assert ran.problem["type"] == "CallTimedOut"
    assert ran.problem["server"] == "good"


def test_verbose_tells_what_servers_do_and_quiet_nothing(good: Shell) -> None:
    ran = good("call", "good", "notify", "n=1", "log=error", "-v")
    assert "good#1 = opening → up" in ran.err
    assert "good error " in ran.err
    assert good("complete", "good", "greet", "name", "zzz").err == "none\n"
    assert good("-q", "complete", "good", "greet", "name", "zzz").err == ""


# -- the program ---------------------------------------------------------------------------


def test_without_click_it_says_in_one_line_what_to_install(tmp_path: Path) -> None:
    code = (
        "import sys; sys.modules['click'] = None; from mcpclient.cli import main; main(['tools'])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment(tmp_path), capture_output=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (1, b"")
    assert ran.stderr.decode() == (
        "mcpclient: the command line needs click and rich: pip install 'mcpclient[cli]'\n"
    )


def test_help_loads_no_loop_no_rich_and_no_command(tmp_path: Path) -> None:
    code = (
        "import sys\nfrom mcpclient.cli import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as left:\n    assert left.code == 0\n"
        "import json; print(json.dumps(sorted(sys.modules)), file=sys.stderr)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.startswith("Usage: mcpclient ")
    loaded = set(json.loads(ran.stderr))
    assert loaded & {"asyncio", "rich", "rich.console", "trio", "httpx2"} == set()
    ours = {one for one in loaded if one.startswith("mcpclient.cli.")}
    assert ours == {f"mcpclient.cli.{name}" for name in ("app", "options", "problems")}


def test_the_name_alone_shows_the_help(shell: Shell) -> None:
    assert shell().out == shell("--help").out != ""
    assert (shell().code, shell().err) == (0, "")


def test_each_command_explains_itself_in_the_words_of_the_list(shell: Shell) -> None:
    from mcpclient.cli.app import SECTIONS

    listed = shell("--help").out
    for section in SECTIONS.values():
        for name, (_, words) in section.items():
            assert words in listed
            said = " ".join(shell(name, "--help").out.split())
            assert said.startswith(f"Usage: mcpclient {name} ")
            assert words in said


def test_it_is_a_program_and_a_module(tmp_path: Path) -> None:
    import importlib.metadata

    [script] = importlib.metadata.entry_points(group="console_scripts", name="mcpclient")
    assert script.value == "mcpclient.cli:main"
    ran = subprocess.run(
        [sys.executable, "-m", "mcpclient", "--version"],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.startswith("mcpclient ")
    assert ROOT  # the package under test is this one


def test_the_demo_needs_nothing_but_the_package(shell: Shell) -> None:
    steps = [json.loads(line) for line in shell("demo", "--json").out.splitlines()]
    shown = {one["command"]: one["shown"] for one in steps}
    assert shown["call demo greet name=world style=loud"] == ["HELLO, WORLD!"]
    assert shown["call demo count to=30"] == ["counted to 30"]
    died, back = shown["top"]
    assert "the server died (killed by SIGKILL)" in died
    assert back.startswith("Hello, again!  (life 2, after ")
    assert shown[""][0].endswith("is gone")


def test_the_shell_of_python_gets_the_servers_of_the_file(
    good: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mcpclient import repl

    took = []
    monkeypatch.setattr(repl, "run", lambda servers, *, config: took.append((servers, config)))
    assert good("repl", "new", "-t", "7").code == 0
    [(servers, path)] = took
    assert path == "./.mcp.json"
    assert [*servers] == ["new"]
    assert servers["new"].timeouts.call == 7
