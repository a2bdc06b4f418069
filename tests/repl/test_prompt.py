"""The prompt in a real terminal, with IPython and without: calls, Tab, errors, Ctrl-C, the end."""

from __future__ import annotations

import io
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ROOT, alive

pexpect = pytest.importorskip("pexpect", reason="pexpect is not installed")

# A terminal's own language; what a server sends must never be among it.
_CONTROLS = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|[>=]|\([B0])|\x1b\][^\x07]*\x07|[\r\x07]")
_WAIT = 30.0
_RUN = (
    "from mcpclient.repl import run; from tests.repl.conftest import spec; "
    "run({'git': spec(), 'print': spec()}, shell=%r, config='some.json')"
)


class Prompt:
    """A prompt in a terminal of its own."""

    def __init__(self, shell: str, folder: Path) -> None:
        self.shell = shell
        self.number = 0
        env = {
            **os.environ,
            "TERM": "xterm",
            "PAGER": "cat",
            "PYTHONPATH": str(ROOT),
            "IPYTHONDIR": str(folder),
            # A terminal that answers questions about its cursor is not to be had here.
            "PROMPT_TOOLKIT_NO_CPR": "1",
        }
        self.child = pexpect.spawn(
            sys.executable,
            ["-c", _RUN % shell],
            cwd=str(folder),
            env=env,
            encoding="utf-8",
            timeout=_WAIT,
            dimensions=(40, 150),
        )
        self.screen = self.child.logfile_read = io.StringIO()

    def shown(self) -> str:
        """Wait for the next prompt and return what came before it, without the colours."""
        self.number += 1
        colour = r"(?:\x1b\[[0-9;]*m)*"
        numbered = rf"In \[{colour}{self.number}{colour}\]: "
        self.child.expect(numbered if self.shell == "ipython" else ">>> ")
        return _CONTROLS.sub("", self.child.before)

    def run(self, line: str) -> str:
        """Type a line and return what it shows."""
        self.type(f"{line}\r")
        return self.shown()

    def type(self, text: str, until: str = "") -> None:
        """Type, and wait until something is to be seen."""
        self.child.send(text)
        if until:
            self.child.expect_exact(until)

    def leave(self) -> int | None:
        """Say ``exit()`` and return the exit code."""
        self.type("exit()\r")
        self.child.expect(pexpect.EOF)
        self.child.close()
        code: int | None = self.child.exitstatus
        return code


@pytest.fixture(params=["ipython", "plain"])
def prompt(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Prompt]:
    """A prompt that is ready, with IPython and without."""
    if request.param == "ipython":
        pytest.importorskip("IPython", reason="IPython is not installed")
    one = Prompt(request.param, tmp_path)
    try:
        yield one
    finally:
        one.child.close(force=True)


@pytest.mark.filterwarnings("ignore:.*forkpty:DeprecationWarning")
def test_a_person_explores_a_server_interrupts_a_call_and_leaves_nothing(
    prompt: Prompt, tmp_path: Path
) -> None:
    assert 'servers: git, servers["print"] (from some.json)' in prompt.shown()
    assert "idle" in prompt.run("servers")

    # Tab: a tool, and a value of its argument.
    prompt.type("git.tools.stat\t", until="us")
    prompt.type("('.', mode='l\t", until="ong")
    assert '"mode": "long"' in prompt.run(")")
    prompt.type('git.resources["file:///re\t', until="d.md")
    assert "# Read\\x1b[2J me" in prompt.run("]")

    assert "one\n\ttwo\\x1b]0;owned\\x07\\x1b[2J" in prompt.run("git.tools.evil()")
    helped = prompt.run("help(git.tools.status)")
    assert "mode (Literal['short', 'long', 'q\"uote'], optional): How much." in helped
    assert "hello" in prompt.run("await git.tools.echo.start('hello')")
    assert "hello" in prompt.run("servers['print'].tools.echo('hello')")
    assert [line.split()[:2] for line in prompt.run("servers").splitlines() if " up " in line] == [
        ["git", "up"],
        ["print", "up"],
    ]

    # Errors: in one line, the rest on demand.
    failed = prompt.run("git.tools.fail()")
    assert "ToolError: it failed\nand why" in failed
    assert "Traceback" not in failed
    wrong = prompt.run("git.tools.status(pth='.')")
    assert "TypeError: status() has no argument 'pth'; did you mean 'path'?" in wrong
    assert "Traceback" not in wrong
    whole = prompt.run("%tb" if prompt.shell == "ipython" else "tb()")
    assert "Traceback" in whole
    assert "did you mean 'path'?" in whole
    assert "ZeroDivisionError" in prompt.run("1/0")

    # Ctrl-C: the call ends, at the server too, and the prompt is there again.
    mark = tmp_path / "mark"
    prompt.type(f"git.tools.slow({str(mark)!r})\r")
    _wait_for(mark)
    prompt.child.sendintr()
    interrupted = prompt.shown()
    assert "KeyboardInterrupt" in interrupted
    assert "Traceback" not in interrupted
    assert re.search(r"^(Out\[\d+\]: )?1$", prompt.run("git.tools.cancelled()"), re.MULTILINE)

    found = re.search(r"\((\d+), (\d+)\)", prompt.run("git.pid, servers['print'].pid"))
    assert found is not None
    pids = [int(found[1]), int(found[2])]
    assert all(map(alive, pids))
    assert prompt.leave() == 0
    assert not any(map(alive, pids))
    assert "owned\x07" not in prompt.screen.getvalue()


def _wait_for(path: Path) -> None:
    end = time.monotonic() + _WAIT
    while not path.exists():
        assert time.monotonic() < end, "the call has not reached the server"
        time.sleep(0.01)
