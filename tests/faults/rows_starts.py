"""Rows of the matrix: servers that cannot be started, or do not open."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import anyio

from mcpclient import (
    OpeningFailed,
    RestartPolicy,
    RestartsExhausted,
    ServerSpec,
    SpawnFailed,
    Timeouts,
)
from tests.cases import inline
from tests.conftest import QUICK, SERVERS, eventually
from tests.faults.matrix import (
    IMPATIENT,
    Fault,
    Scene,
    echoes,
    opening,
    sinner,
)

ONCE = RestartPolicy(when="never")


def without_path(command: str) -> ServerSpec:
    return ServerSpec(command, ["server"], env={"PATH": "/nowhere"}, restart=QUICK)


def not_executable(folder: Path) -> ServerSpec:
    (folder / "server.py").write_text("print('hello')\n")
    return ServerSpec(str(folder / "server.py"), restart=QUICK)


def no_program(folder: Path) -> ServerSpec:
    (folder / "server").write_text("neither a program nor a script\n")
    (folder / "server").chmod(0o755)
    return ServerSpec(str(folder / "server"), restart=QUICK)


def no_interpreter(folder: Path) -> ServerSpec:
    (folder / "server").write_text("#!/no/such/interpreter\n")
    (folder / "server").chmod(0o755)
    return ServerSpec(str(folder / "server"), restart=QUICK)


async def gone_before_the_call(scene: Scene) -> None:
    with contextlib.suppress(RestartsExhausted):  # it may be up for a moment
        await scene.server.start()
    await eventually(lambda: scene.server.incidents)
    await scene.call("echo", text="hello")


async def killed_while_opening(scene: Scene) -> None:
    server = scene.server
    async with anyio.create_task_group() as group:
        group.start_soon(server.start)
        await eventually(lambda: server.state == "opening")
        assert server.pid is not None
        os.kill(server.pid, signal.SIGKILL)


async def killed_before_it_answers(scene: Scene) -> str | None:
    """Kill the process before it can have read the probe: it was not the probe that did it."""
    server = scene.server
    server.begin()
    with anyio.fail_after(10):
        while (pid := server.pid) is None:
            await anyio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        while server.pid in (pid, None):
            # A number that was given back is never told as the server's.
            assert server.pid is None or Path(f"/proc/{pid}").exists()
            await anyio.sleep(0)
    await server.wait_ready()
    return server.era


def spoiled_by_an_update(folder: Path) -> ServerSpec:
    """Return a server whose first process is lawful; the others die of the probe and refuse us."""
    code = f"""
import os
import _wire
first = not os.path.exists({str(folder / "updated")!r})
open({str(folder / "updated")!r}, "w").close()
for message in _wire.messages():
    if not first and message["method"] == "server/discover":
        os._exit(1)
    if not first and message["method"] == "initialize":
        _wire.send(_wire.error(message["id"], -32603, "this version is broken"))
    else:
        _wire.reply(message)
"""
    return inline(code, restart=QUICK, timeouts=IMPATIENT)


async def updated(scene: Scene) -> None:
    os.kill(await scene.pid(), signal.SIGKILL)
    await eventually(lambda: scene.server.state == "failed")
    await scene.call("echo", text="hello")


STARTS = [
    # -- no process
    Fault(
        name="its command is not on PATH",
        server=without_path("no-such-server"),
        act=opening,
        error=SpawnFailed,
        says=("'no-such-server' was not found on PATH", 'server "sinner"', "give the full path"),
        after="failed",
        incident="was not found on PATH",
    ),
    Fault(
        name="npx is missing",
        server=without_path("npx"),
        act=opening,
        error=SpawnFailed,
        says=("'npx' was not found on PATH", "install Node.js or give the full path"),
        after="failed",
        incident="was not found on PATH",
    ),
    Fault(
        name="uvx is missing",
        server=without_path("uvx"),
        act=opening,
        error=SpawnFailed,
        says=("'uvx' was not found on PATH", "install uv or give the full path"),
        after="failed",
        incident="was not found on PATH",
    ),
    Fault(
        name="docker is missing",
        server=without_path("docker"),
        act=opening,
        error=SpawnFailed,
        says=("'docker' was not found on PATH", "install Docker or give the full path"),
        after="failed",
        incident="was not found on PATH",
    ),
    Fault(
        name="its file is not executable",
        server=not_executable,
        act=opening,
        error=SpawnFailed,
        says=("is not executable", "chmod +x it, or run it with its interpreter"),
        after="failed",
        incident="is not executable",
    ),
    Fault(
        name="its file is no program",
        server=no_program,
        act=opening,
        error=SpawnFailed,
        says=("Exec format error", "add a first line that names its interpreter"),
        after="failed",
        incident="Exec format error",
    ),
    Fault(
        name="the interpreter its first line names is missing",
        server=no_interpreter,
        act=opening,
        error=SpawnFailed,
        says=("the interpreter its first line names does not",),
        after="failed",
        incident="cannot be started",
    ),
    Fault(
        name="its working directory does not exist",
        server=sinner("good_handshake", cwd="/no/such/place"),
        act=opening,
        error=SpawnFailed,
        says=("the working directory '/no/such/place' does not exist", 'in "cwd"'),
        after="failed",
        incident="the working directory '/no/such/place' does not exist",
        cases=("B106",),
    ),
    Fault(
        name="its working directory is a file",
        server=sinner("good_handshake", cwd=str(SERVERS / "README.md")),
        act=opening,
        error=SpawnFailed,
        says=("README.md' is not a directory", 'in "cwd"'),
        after="failed",
        incident="is not a directory",
        cases=("B106",),
    ),
    # -- no conversation
    Fault(
        name="it exits at once, every time",
        server=sinner("exit_3"),
        act=opening,
        error=RestartsExhausted,
        says=("it ended 6 times in a row", "exit code 3", "call start() to try again"),
        after="failed",
        life=6,
        incident="ended while opening: the server ended while it was opened (exit code 3)",
        deaths=6,
    ),
    Fault(
        name="it exits when it is probed",
        server=sinner("dies_on_probe"),
        act=opening,
    ),
    Fault(
        name="it is of the stateless era, and killed before it answers the probe",
        server=sinner("good_stateless"),
        act=killed_before_it_answers,
        gives="stateless",
        also=echoes,
    ),
    Fault(
        name="it is broken by an update between two lives",
        server=spoiled_by_an_update,
        act=updated,
        error=OpeningFailed,
        says=("[-32603] this version is broken",),
        after="failed",
        life=2,
        incident="[-32603] this version is broken",
        deaths=2,
    ),
    Fault(
        name="it refuses initialize",
        server=sinner("fake", "init-error"),
        act=opening,
        error=OpeningFailed,
        says=("refused initialize", "[-32603] the fake refuses to initialize"),
        after="failed",
        incident="[-32603] the fake refuses to initialize",
    ),
    Fault(
        name="it wants a protocol version that nobody has",
        server=sinner("version_2099"),
        act=opening,
        error=OpeningFailed,
        says=("the server wants protocol version 2099-01-01", "offered was 2025-11-25"),
        after="failed",
        incident="2099-01-01",
    ),
    Fault(
        name="it frames its messages as language servers do",
        server=sinner("lsp_framing"),
        act=opening,
        error=OpeningFailed,
        says=("LSP framing: the server writes Content-Length headers",),
        after="failed",
        incident="LSP framing",
    ),
    Fault(
        name="it never answers the opening",
        server=sinner("silent", restart=ONCE, timeouts=Timeouts(open=0.3, probe=0.1, eof=0.2)),
        act=opening,
        error=RestartsExhausted,
        says=("did not open within 300 ms (Timeouts.open", "(stderr: "),
        after="failed",
        incident="did not open within 300 ms",
    ),
    Fault(
        name="it closes its stdin before it reads",
        server=sinner("no_stdin", restart=ONCE, timeouts=Timeouts(probe=0.3, eof=0.2)),
        act=opening,
        error=RestartsExhausted,
        says=("the server closed its stdin (Broken pipe)", "stdin is not for me"),
        after="failed",
        incident="the server closed its stdin (Broken pipe)",
        cases=("B115",),
    ),
    Fault(
        name="it answers initialize and exits with 7",
        server=sinner("fake", "crash-after-init", restart=ONCE),
        act=gone_before_the_call,
        error=RestartsExhausted,
        says=("exit code 7", "RestartPolicy.when is 'never'"),
        after="failed",
        incident="exit code 7",
        cases=("B88",),
    ),
    Fault(
        name="it is killed while it opens",
        server=sinner("slow_open", "0.2", era="handshake"),
        act=killed_while_opening,
        life=2,
        incident="ended while opening: the server ended while it was opened (killed by SIGKILL)",
        also=echoes,
    ),
]
