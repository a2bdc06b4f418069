"""The person at the prompt is asked while they wait for a call: at a terminal, in a notebook."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcpclient import InputRefused, Manager, blocking, repl
from tests.conftest import spec
from tests.repl import test_prompt
from tests.repl.test_kernel import WAIT, Kernel, loop_of_the_client  # noqa: F401 - a fixture
from tests.repl.test_prompt import Prompt, pexpect

SEND = "the number of what to change: "
FORM = {
    "message": "Who are you?\x1b[2J\u202e",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 2}, "token": {"type": "string"}},
        "required": ["name"],
    },
}
FORMS = f"dict(method='elicitation/create', params={FORM!r})"
CONTENT = {"action": "accept", "content": {"name": "Ada", "token": "hunter2"}}
_RUN = (
    "from mcpclient.repl import run; from tests.conftest import spec; "
    "run({'git': spec('asks_handshake'), 'later': spec('asks_stateless_rounds')}, shell=%r)"
)


@pytest.fixture(params=["ipython", "plain"])
def prompt(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Prompt]:
    """A prompt with two servers that ask."""
    if request.param == "ipython":
        pytest.importorskip("IPython", reason="IPython is not installed")
    monkeypatch.setattr(test_prompt, "_RUN", _RUN)
    one = Prompt(request.param, tmp_path)
    try:
        yield one
    finally:
        one.child.close(force=True)


def answered(prompt: Prompt, *pairs: tuple[str, str]) -> None:
    """Wait for each question, then answer it."""
    for question, line in pairs:
        prompt.type("", until=question)
        prompt.child.sendline(line)


@pytest.mark.filterwarnings("ignore:.*forkpty:DeprecationWarning")
def test_a_person_is_asked_at_the_prompt_declines_and_interrupts(prompt: Prompt) -> None:
    prompt.shown()
    prompt.run("import json")
    prompt.type(f"git.call_tool('ask', {FORMS}).text\r")
    before = len(prompt.screen.getvalue())
    answered(
        prompt,
        ('"git" asks:\r\n  | Who are you?\\x1b[2J\\u202e\r\n', ""),
        ("name: ", "A"),
        ("at least 2 characters", "Ada"),
        ("token: ", "hunter2"),
        (SEND, ""),
    )
    assert "hunter2" not in prompt.screen.getvalue()[before:]
    assert '"token": "hunter2"' in prompt.shown()

    # With progress asked for, the thread waits in another way; in the other era, by rounds.
    told = "later.read.using(on_progress=print)('test://asking/x').text"
    prompt.type(f"{told}\r")
    answered(prompt, ("name: ", "Ada"), ("size [3]: ", ""), (SEND, "yes"))
    assert '"size": 3' in prompt.shown()

    prompt.type("git.read('test://asking').text\r", until="name: ")
    prompt.child.sendeof()
    assert '"action": "decline"' in prompt.shown()

    # Ctrl-C: of the call and its question nothing is left, and the terminal shows what one types.
    prompt.type(f"git.call_tool('ask', {FORMS}).text\r")
    answered(prompt, ("name: ", "Ada"))
    prompt.type("", until="token: ")
    prompt.child.sendintr()
    interrupted = prompt.shown()
    assert "KeyboardInterrupt" in interrupted
    assert "Traceback" not in interrupted
    replies = prompt.run("print(json.loads(git.call_tool('replies').text)[-1]['result'])")
    assert "{'action': 'cancel'}" in replies

    # While the prompt itself waits, nobody can be asked.
    declined = prompt.run(f"h = git.tools.ask.start(**{FORMS}); print((await h).text)")
    assert '"action": "decline"' in declined
    assert "no call is waited for at the prompt; declined" in prompt.screen.getvalue()
    assert prompt.leave() == 0


def test_a_question_that_is_taken_back_ends_and_the_call_goes_on(tmp_path: Path) -> None:
    server = Path(__file__).parents[1] / "cli" / "asking_server.py"
    code = (
        "import sys; from mcpclient.repl import run; from mcpclient import ServerSpec; "
        f"run({{'odd': ServerSpec(sys.executable, [{str(server)!r}], cwd={str(tmp_path)!r})}}, "
        "shell='plain')"
    )
    child = pexpect.spawn(sys.executable, ["-c", code], encoding="utf-8", timeout=30)
    try:
        child.expect_exact(">>> ")
        child.send("odd.tools.fickle()\r")
        child.expect_exact("name: ")
        (tmp_path / "back").touch()
        child.expect_exact("! odd does not ask any more\r\nnever mind")
        child.expect_exact(">>> ")
    finally:
        child.close(force=True)


def test_without_a_terminal_nothing_is_offered() -> None:
    code = (
        "from mcpclient.repl import run; from tests.conftest import spec; "
        "run({'git': spec('asks_handshake')}, shell='plain')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input="print(git.call_tool('journal').text)\n",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert '"capabilities": {}' in done.stdout


def test_a_handler_of_ones_own_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    def interact(names: dict[str, Any], banner: str) -> None:
        found.append(names["git"].read("test://asking").text)

    def own(server: Any, params: Any) -> dict[str, Any]:
        return {"action": "accept", "content": {"name": "own"}}

    monkeypatch.setattr("mcpclient.repl.console.interact", interact)
    monkeypatch.setattr("mcpclient.repl.person.can_ask", lambda: True)
    repl.run({"git": spec("asks_handshake")}, shell="plain", on_elicit=own)
    assert '"name": "own"' in found[0]


async def test_over_the_async_manager_it_says_that_it_cannot() -> None:
    async with Manager({"git": spec("asks_stateless_rounds")}, on_elicit=repl.ask) as manager:
        with pytest.raises(InputRefused, match=r"for mcpclient\.blocking\.Manager only"):
            await manager["git"].read_resource("test://asking/x")


def test_where_nobody_is_at_a_terminal_the_question_is_declined() -> None:
    with blocking.Manager({"git": spec("asks_handshake")}, on_elicit=repl.ask) as manager:
        repl.explore(manager)
        text = manager["git"].read_resource("test://asking").text
    assert json.loads(text)["result"] == {"action": "decline"}


# -- notebooks -----------------------------------------------------------------------------

BEGIN = """
from mcpclient.blocking import Manager
from mcpclient.repl import ask, explore
from tests.conftest import spec
manager = Manager({"git": spec("asks_handshake")}, on_elicit=ask)
manager.open()
git = explore(manager).git
"""


def test_a_notebook_asks_by_its_own_input_and_declines_where_there_is_none() -> None:
    with tempfile.TemporaryDirectory(prefix="k") as folder:
        kernel = Kernel(Path(folder))
        try:
            assert kernel.run(BEGIN) == {}
            client = kernel.client
            cell = kernel.begin(f"print(git.call_tool('ask', {FORMS}).text)")
            asked = []
            for line in ("Ada", "hunter2", ""):
                content = client.get_stdin_msg(timeout=WAIT)["content"]
                asked.append((content["prompt"].splitlines()[-1], content["password"]))
                client.input(line)
            assert asked == [
                ("name: ", False),
                ("token: ", True),
                ('Send this to "git"? [yes], or the number of what to change: ', False),
            ]
            shown = kernel.finish(cell)["stdout"]
            assert '"git" asks:\n  | Who are you?\\x1b[2J\\u202e\n' in shown
            assert (
                json.loads(re.findall(r"^\[.*\]$", shown, re.MULTILINE)[0])[0]["result"] == CONTENT
            )

            silent = client.execute("print(git.read('test://asking').text)", allow_stdin=False)
            assert '"action": "decline"' in kernel.finish(str(silent))["stdout"]
            assert kernel.run("manager.close()") == {}
        finally:
            kernel.close()
