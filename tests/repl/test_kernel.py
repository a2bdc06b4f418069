"""A real Jupyter kernel runs both managers: results, pictures, completion, errors, interrupts."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT
from tests.repl.conftest import PIXEL

jupyter_client = pytest.importorskip("jupyter_client", reason="jupyter_client is not installed")
pytest.importorskip("ipykernel", reason="ipykernel is not installed")

BEGIN = """
%load_ext mcpclient.repl
from mcpclient import Manager, blocking
from mcpclient.repl import explore
from tests.repl.conftest import spec
"""
BOTH = """
awaited, blocked = Manager({"git": spec()}), blocking.Manager({"git": spec()})
await awaited.open(); blocked.open()
slow, git = explore(awaited).git, explore(blocked).git
"""
WAIT = 30.0


class Kernel:
    """A kernel and its client, as a notebook has them."""

    def __init__(self, folder: Path) -> None:
        import zmq

        self.context = zmq.Context()
        self.manager = jupyter_client.KernelManager(
            context=self.context, transport="ipc", ip=str(folder / "k"), kernel_name="python3"
        )
        env = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder)}
        self.manager.start_kernel(cwd=str(folder), env=env)
        self.client = self.manager.client()
        self.client.start_channels(hb=False)
        self.client.wait_for_ready(timeout=WAIT)

    def close(self) -> None:
        """End both, whatever they do."""
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()
        self.context.destroy(linger=0)

    def run(self, code: str) -> dict[str, Any]:
        """Run a cell; return what it shows, or what it says of its error, by kind."""
        return self.finish(self.begin(code))

    def begin(self, code: str) -> str:
        """Begin a cell. One that fails does not take the next one with it."""
        return str(self.client.execute(code, stop_on_error=False))

    def finish(self, cell: str) -> dict[str, Any]:
        """Wait for a cell that was begun, as :meth:`run` does."""
        shown: dict[str, Any] = {}
        while True:
            message = self.client.get_iopub_msg(timeout=WAIT)
            if message["parent_header"].get("msg_id") != cell:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "execute_result":
                shown |= content["data"]
            elif kind == "stream":
                shown[content["name"]] = shown.get(content["name"], "") + content["text"]
            elif kind == "error":
                shown["error"] = content["traceback"]
            elif kind == "status" and content["execution_state"] == "idle":
                return shown

    def completed(self, code: str) -> list[str]:
        """Return the lines that may become of a line."""
        found = self.client.complete(code, reply=True, timeout=WAIT)["content"]
        return [code[: found["cursor_start"]] + one for one in found["matches"]]


@pytest.fixture(scope="module", autouse=True)
def loop_of_the_client() -> Iterator[None]:
    """The client keeps one loop for all its waiting; that is no leak of a test."""
    from jupyter_core.utils import ensure_event_loop

    loop = ensure_event_loop()
    yield
    loop.close()


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    """A kernel with both managers open: ``slow`` over the async one, ``git`` over the other."""
    # The path of a socket may be no longer than about a hundred characters.
    with tempfile.TemporaryDirectory(prefix="k") as folder:
        one = Kernel(Path(folder))
        try:
            assert one.run(BEGIN) == {}
            assert one.run(BOTH) == {}
            yield one
            assert one.run("await awaited.close(); blocked.close()") == {}
        finally:
            one.close()


def test_a_notebook_runs_both_managers_and_shows_and_completes_the_same(kernel: Kernel) -> None:
    assert kernel.run("git.tools.echo('hello')") == {"text/plain": "hello"}
    assert kernel.run("await slow.tools.echo('hello')") == {"text/plain": "hello"}
    picture = {"text/plain": "[image/png, 70 B]", "image/png": PIXEL}
    assert kernel.run("git.tools.picture()") == picture
    assert kernel.run("await slow.tools.picture()") == picture
    album = kernel.run("git.tools.album()")
    assert album["image/png"] == PIXEL
    assert album["text/html"].startswith("<pre>&lt;b&gt;two</pre>\n<img src=")
    assert kernel.run("slow.prompts")["text/html"].startswith("<table>")
    assert "not read yet: await slow.refresh()" not in kernel.run("slow.tools")["text/plain"]
    both = kernel.run(
        "import asyncio\nawait asyncio.gather(slow.tools.echo('a'), slow.tools.echo('b'))"
    )
    assert both == {"text/plain": "[a, b]"}
    assert kernel.run("await git.tools.echo.start('hello')") == {"text/plain": "hello"}

    assert kernel.run("git.tools.fail()") == {"error": ["ToolError: it failed\nand why"]}
    assert kernel.run("await slow.tools.echo(txt=1)") == {
        "error": ["TypeError: echo() has no argument 'txt'; did you mean 'text'?"]
    }
    assert "Traceback" in kernel.run("%tb")["error"][0] + kernel.run("%tb")["error"][1]

    assert kernel.completed("git.tools.st") == ["git.tools.status"]
    assert kernel.completed("x = await slow.tools.st") == ["x = await slow.tools.status"]
    assert kernel.completed("git.tools.status(mo") == ["git.tools.status(mode="]
    assert kernel.completed("git.tools.status('.',\n  mode='l") == [
        "git.tools.status('.',\n  mode='long'"
    ]
    assert kernel.completed("slow.tools.status(mode='l") == ["slow.tools.status(mode='long'"]
    assert kernel.completed("git.prompts.review(style='st") == ["git.prompts.review(style='strict'"]
    assert kernel.completed('git.resources["file:///p') == ['git.resources["file:///pixel.png"']
    # What is not ours is completed as ever, and without the extension it is as before.
    assert "asyncio" in kernel.completed("asynci")
    again = kernel.run("import mcpclient.repl\nmcpclient.repl.run({})")["error"]
    assert again[0].startswith("LocalProtocolError: IPython runs here already: open a manager,")
    kernel.run("%unload_ext mcpclient.repl")
    assert kernel.run("git.tools.fail()")["error"] != ["ToolError: it failed\nand why"]


def test_an_interrupt_ends_the_call_at_the_server_too_and_the_notebook_goes_on(
    kernel: Kernel, tmp_path: Path
) -> None:
    for name, call, error in (
        ("git", "git.tools", "KeyboardInterrupt"),
        ("slow", "await slow.tools", "CancelledError"),
    ):
        mark = tmp_path / name
        cell = kernel.begin(f"{call}.slow(mark={str(mark)!r})")
        end = time.monotonic() + WAIT
        while not mark.exists():
            assert time.monotonic() < end, "the call has not reached the server"
            time.sleep(0.01)
        kernel.manager.interrupt_kernel()
        # A kernel whose cell awaits notices a signal only when its loop has something to do.
        kernel.client.kernel_info()
        assert error in str(kernel.finish(cell)["error"])
        assert kernel.run(f"{call}.cancelled()") == {"text/plain": "1"}
