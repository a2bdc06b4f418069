"""Servers that we did not write, explored: real schemas, prompts and pictures."""

from __future__ import annotations

import inspect

import pytest

from mcpclient.blocking import Manager
from mcpclient.repl import explore
from mcpclient.repl.completion import offers
from tests.conftest import ROOT, real_servers

COMMANDS = real_servers()


@pytest.mark.skipif("git" not in COMMANDS, reason="mcp-server-git is not set up: run `make real`")
def test_a_git_server_tells_of_a_repository() -> None:
    with Manager({"git": COMMANDS["git"]}) as manager:
        git = explore(manager).git
        assert str(inspect.signature(git.tools.git_diff)).startswith(
            "(repo_path: str, target: str, context_lines: int = 3)"
        )
        assert "Shows the commit logs" in str(git.tools.git_log.__doc__)
        with pytest.raises(TypeError, match="did you mean 'repo_path'"):
            git.tools.git_status(repo_pth=".")
        log = git.tools.git_log(str(ROOT), max_count=1)
        assert "Commit: " in str(log)


@pytest.mark.skipif(
    "everything" not in COMMANDS, reason="server-everything is not set up: run `make real`"
)
def test_a_server_with_everything_is_completed_and_shown() -> None:
    with Manager({"every-thing": COMMANDS["everything"]}) as manager:
        names = {"it": (it := explore(manager)["every-thing"])}
        city = offers('it.tools.get_structured_content(location="Ch', names)
        assert city is not None
        assert city.texts == ('"Chicago"',)
        # What fits the second argument depends on the first.
        name = offers("it.prompts.completable_prompt('Engineering', name='A", names)
        assert name is not None
        assert name.texts == ("'Alice'",)
        prompt = it.prompts.completable_prompt("Engineering", "Alice")
        assert str(prompt).startswith("user:\nPlease promote Alice")
        image = it.tools.get_tiny_image()._repr_mimebundle_()
        assert "[image/png, " in image["text/plain"]
        assert image["image/png"].startswith("iVBOR")
        made = it.templates["demo://resource/dynamic/text/{resourceId}"](resourceId=1)
        assert "This is a plaintext resource" in str(made)
        assert it.tools.get_sum(2, b=3).text == "The sum of 2 and 3 is 5."
