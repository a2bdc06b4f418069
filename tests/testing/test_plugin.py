"""The fixtures, as users' tests have them: in pytest runs of their own, with each async plugin."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

HEAD = """
import asyncio
import pytest
from mcpclient import CallTimedOut, ReplyError, ServerDied
from mcpclient.testing import connect
"""
SCRIPTED = """
async def test_scripted(mcp_script):
    mcp_script.on("tools/call", name="add").text("3")
    async with connect(mcp_script) as server:
        assert (await server.invoke_tool("add", {"a": 1})).text == "3"
    async with connect(mcp_script.spec()) as server:
        assert [tool.name for tool in await server.list_tools()] == ["add"]

async def test_turned(mcp_script, mcp_clock):
    mcp_script.on("tools/call", name="slow").silence()
    async with connect(mcp_script) as server:
        with mcp_clock.turning(), pytest.raises(CallTimedOut):
            await server.invoke_tool("slow")

async def test_recorded_and_replayed(mcp_script, mcp_recorder, mcp_replay):
    mcp_script.on("tools/call", name="add").text("3")
    async with connect(mcp_recorder.spec(mcp_script)) as server:
        await server.invoke_tool("add")
    async with connect(mcp_replay(mcp_recorder.path)) as server:
        assert (await server.invoke_tool("add")).text == "3"
"""


def run(folder: Path, code: str, *options: str, ini: str = "") -> tuple[int, str]:
    """Run tests in a pytest of their own; return its exit code and what it printed."""
    (folder / "pytest.ini").write_text(f"[pytest]\nfilterwarnings = error\n{ini}")
    (folder / "test_it.py").write_text(HEAD + code)
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    env["PYTHONPATH"] = str(ROOT)
    if "-p" not in options:
        options = ("-p", "no:asyncio", *options)  # it warns of its own settings
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    ran = subprocess.run(
        argv, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False
    )
    return ran.returncode, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("options", "ini", "count"),
    [
        pytest.param(["-p", "no:asyncio"], "anyio_mode = auto\n", 6, id="anyio"),
        pytest.param(["-p", "no:anyio"], "asyncio_mode = auto\n", 3, id="pytest-asyncio"),
    ],
)
def test_the_fixtures_work_with_each_async_plugin(
    tmp_path: Path, options: list[str], ini: str, count: int
) -> None:
    if "asyncio" in ini:
        ini += "asyncio_default_fixture_loop_scope = function\n"
    code, out = run(tmp_path, SCRIPTED, *options, ini=ini)
    assert code == 0, out
    assert f"{count} passed" in out


def test_the_fixtures_work_without_any_async_plugin_and_without_trio(tmp_path: Path) -> None:
    (tmp_path / "trio.py").write_text("raise ImportError('no trio here')\n")
    plain = SCRIPTED.replace("async def test_", "async def _") + (
        "\n"
        "def test_scripted(mcp_script):\n    asyncio.run(_scripted(mcp_script))\n"
        "def test_turned(mcp_script, mcp_clock):\n    asyncio.run(_turned(mcp_script, mcp_clock))\n"
        "def test_blocking(mcp_script, mcp_blocking):\n"
        "    mcp_script.on('tools/call', name='add').text('3')\n"
        "    server = mcp_blocking(mcp_script, name='sums')\n"
        "    assert server.name == 'sums'\n"
        "    assert server.invoke_tool('add').text == '3'\n"
    )
    code, out = run(
        tmp_path, plain, "-p", "no:asyncio", "-p", "no:anyio", "-p", "no:hypothesispytest"
    )
    assert code == 0, out
    assert "3 passed" in out


def test_what_went_otherwise_fails_the_test_that_scripted_it_with_the_line(tmp_path: Path) -> None:
    code, out = run(
        tmp_path,
        """
async def use(script):
    async with connect(script) as server:
        with pytest.raises(ReplyError):
            await server.invoke_tool("sub")

def test_it(mcp_script):
    mcp_script.on("tools/call", name="add").text("3")
    mcp_script.tool("sub")
    asyncio.run(use(mcp_script))
""",
    )
    assert code == 1
    assert "1 passed, 1 error" in out
    assert 'nothing was scripted for tools/call {"name": "sub", "arguments": {}}' in out
    assert re.search(r"step 1 \(.*\"add\".*scripted in test_it.py:13\) never happened", out), out
    assert "plugin.py" not in out  # no traceback of ours


def test_each_of_several_scripts_is_checked(tmp_path: Path) -> None:
    code, out = run(
        tmp_path,
        """
def test_it(mcp_scripts):
    mcp_scripts(name="one").on("tools/call")
    mcp_scripts(name="two", era="stateless").on("tools/call")
""",
    )
    assert code == 1
    assert "the script 'one':" in out
    assert "the script 'two':" in out


def test_a_replay_is_found_beside_the_test_and_checked(tmp_path: Path) -> None:
    lines = ['{"recording":1}', '{"life":1,"t":0,"dir":"+"}']
    lines += ['{"life":1,"t":0,"dir":">","message":{"id":1,"method":"tools/list"}}']
    (tmp_path / "r.jsonl").write_text("\n".join(lines) + "\n")
    code, out = run(tmp_path, "\ndef test_it(mcp_replay):\n    mcp_replay('r.jsonl')\n")
    assert code == 1
    assert "life 1 of the recording never began" in out


def test_the_plugin_loads_nothing_but_itself_when_pytest_starts() -> None:
    code = (
        "import pytest, sys\n"
        "before = set(sys.modules)\n"
        "import mcpclient.testing.plugin\n"
        "ours = {name for name in set(sys.modules) - before}\n"
        "print(*sorted(name for name in ours if not name.startswith('mcpclient')))\n"
        "print(*sorted(name for name in ours if name.startswith('mcpclient')))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert ran.stdout.splitlines() == ["", "mcpclient mcpclient.testing mcpclient.testing.plugin"]


def test_the_fixtures_are_listed_with_what_they_are_for(tmp_path: Path) -> None:
    _, out = run(tmp_path, "", "--fixtures")
    for name in ("script", "scripts", "recorder", "replay", "clock", "blocking"):
        assert re.search(rf"^mcp_{name} .*\n    [A-Z].*", out, re.MULTILINE), out


def test_the_tests_on_the_page_about_testing_pass(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```py\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 4
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    (tmp_path / "shop.py").write_text(blocks.pop(0))
    code, out = run(tmp_path, "\n".join(blocks), ini="anyio_mode = auto\n")
    assert code == 0, out


def test_every_public_name_can_be_imported_and_no_other() -> None:
    import mcpclient.testing

    for name in mcpclient.testing.__all__:
        assert getattr(mcpclient.testing, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        mcpclient.testing.nothing  # noqa: B018
