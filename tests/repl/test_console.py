"""Python's own console with await: what it runs, what it shows, and how it ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import mcpclient.repl
from mcpclient import ConfigError, UseAfterClose
from mcpclient.repl import Explorer, failures, namespace, run
from mcpclient.repl.console import Console
from mcpclient.repl.mistakes import NoSuchKey, NoSuchName, WrongCall
from tests.conftest import ROOT
from tests.repl.conftest import spec


class Recorded(Console):
    """A console that keeps what it writes."""

    def __init__(self, names: dict[str, Any]) -> None:
        super().__init__(names)
        self.wrote: list[str] = []

    def write(self, data: str) -> None:
        """Keep it."""
        self.wrote.append(data)


@pytest.fixture
def console() -> Iterator[Recorded]:
    """A console with a few names."""
    one = Recorded({"asyncio": asyncio})
    yield one
    one.close()


def test_await_stands_anywhere_and_one_loop_serves_all_of_it(
    console: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    console.push("loop = asyncio.get_running_loop()  # none yet")
    assert console.wrote[0].startswith("Traceback (most recent call last):\n")
    assert console.wrote[0].endswith("\nRuntimeError: no running event loop\n")
    console.push("async def running(): return asyncio.get_running_loop()\n")
    console.push("first = await running()")
    console.push("first is await running()")
    console.push("x = 5")
    assert console.push("for n in range(2):")
    console.push("    x += await asyncio.sleep(0, n)")
    console.push("")
    console.push("x")
    assert capsys.readouterr().out == "True\n6\n"


def test_our_errors_are_one_line_and_the_traceback_is_kept(
    console: Recorded, capsys: pytest.CaptureFixture[str]
) -> None:
    console._names["boom"] = UseAfterClose("the manager is closed")
    console.push("raise boom")
    console.push("await asyncio.sleep(0); raise boom")
    console.push("raise KeyboardInterrupt")
    assert console.wrote == [
        "UseAfterClose: the manager is closed\n",
        "UseAfterClose: the manager is closed\n",
        "KeyboardInterrupt\n",
    ]
    console.push("tb()")
    assert "KeyboardInterrupt" in capsys.readouterr().err
    assert isinstance(sys.last_value, KeyboardInterrupt)


@pytest.mark.parametrize("line", ["exit(3)", "await asyncio.sleep(0); exit(3)"])
def test_leaving_leaves(line: str, console: Recorded) -> None:
    with pytest.raises(SystemExit) as left:
        console.push(line)
    assert left.value.code == 3


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (WrongCall("x() has no argument 'a'"), "TypeError: x() has no argument 'a'"),
        (NoSuchName("no 'a'"), "AttributeError: no 'a'"),
        (NoSuchKey("no 'a'"), "KeyError: no 'a'"),
        (UseAfterClose("it\x1b[2J is closed"), "UseAfterClose: it\\x1b[2J is closed"),
        (KeyboardInterrupt(), "KeyboardInterrupt"),
    ],
)
def test_an_error_in_one_line_is_what_it_is_and_what_it_says(
    problem: BaseException, line: str
) -> None:
    assert failures.line(problem) == line


def test_the_names_at_the_prompt_hide_none_of_pythons() -> None:
    from mcpclient import blocking

    named = ["git", "my-files", "print", "class", "servers", "_x", "2nd"]
    with blocking.Manager({name: spec() for name in named}) as manager:
        names = namespace(manager)
        mine = [name for name, one in names.items() if isinstance(one, Explorer)]
        assert mine == ["git", "my_files", "class_"]
        assert names["manager"] is manager
        assert list(names["servers"]) == named
        banner = mcpclient.repl._banner(names, "plain", None)
        assert 'servers: git, my_files, servers["print"], class_, servers["servers"],' in banner


def test_a_shell_that_is_none_or_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match='shell must be "auto", "ipython" or "plain"'):
        run({}, shell="bash")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r'pip install "mcpclient\[repl\]"'):
        run({}, shell="ipython")


@pytest.mark.parametrize("code", [None, 0, 3])
def test_the_prompt_ends_with_the_code_it_was_left_with_and_the_servers_are_gone(
    code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    seen: dict[str, Any] = {}

    def interact(names: dict[str, Any], banner: str) -> None:
        seen.update(names)
        names["git"].start()
        raise SystemExit(code)

    monkeypatch.setattr("mcpclient.repl.console.interact", interact)
    if code:
        with pytest.raises(SystemExit) as left:
            run({"git": spec()})
        assert left.value.code == code
    else:
        run({"git": spec()})
    with pytest.raises(UseAfterClose):
        seen["manager"]["git"].start()


def test_importing_loads_no_shell_and_no_loop() -> None:
    heavy = ("asyncio", "trio", "IPython", "readline", "code", "mcpclient.blocking")
    code = f"import sys, mcpclient.repl; print([one for one in {heavy!r} if one in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("shell", ["plain", "ipython"])
def test_lines_that_are_piped_in_are_run_and_the_end_of_them_is_the_end(
    shell: str, tmp_path: Path
) -> None:
    if shell == "ipython":
        pytest.importorskip("IPython", reason="IPython is not installed")
    code = (
        "from mcpclient.repl import run; from tests.repl.conftest import spec; "
        f"run({{'git': spec()}}, shell={shell!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="git.tools.echo('hello').text * 2\n",
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(tmp_path)},
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "'hellohello'" in done.stdout
