"""Make the environments of the real servers. Knows pip and npm; has never heard of mcpclient.

    python3 scripts/setup_real.py             the servers: .real/py, .real/sqlite, .real/npm
    python3 scripts/setup_real.py sdk         the official SDK for the benchmark: .real/sdk
    python3 scripts/setup_real.py conformance the official conformance suite: .real/conformance
    python3 scripts/setup_real.py fastmcp     FastMCP's client for a test: .real/fastmcp

Standard library only: it runs before anything is installed. Each environment carries a stamp, a
hash of its pins, so a second run installs nothing. `.real/servers.json` tells which server starts
how; real/README.md describes it.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PINS = ROOT / "real"
REAL = ROOT / ".real"
STAMP = ".stamp"
SERVERS = ("py", "sqlite", "npm")
# Those of npm: where their pins are, and what a line about them calls them.
NPM = {"npm": (PINS, "the npm servers are"), "conformance": (PINS / "conformance", "the suite is")}
OLDEST_NODE = 18  # what the npm servers' own SDK asks for
PIP_SECONDS = 900.0
NPM_SECONDS = 300.0  # a registry that hangs must not hang the tests: the npm servers are optional


class StepFailed(Exception):
    """One step's command failed; the text is what to show."""


def say(line: str) -> None:
    """Print one line for one step."""
    print(f"real servers: {line}", flush=True)


def run(argv: list[str], *, cwd: Path, seconds: float) -> None:
    """Run a command, silent unless it fails."""
    quiet = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            env={**os.environ, **quiet},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StepFailed(f"{Path(argv[0]).name} took more than {seconds:.0f} s") from error
    if done.returncode != 0:
        tail = "\n".join(done.stdout.strip().splitlines()[-15:])
        raise StepFailed(f"{Path(argv[0]).name} ended with {done.returncode}:\n{tail}")


def stamp_of(*pins: Path) -> str:
    """Name what an environment was made from: its pins, its Python, its place."""
    digest = hashlib.sha256()
    for part in (str(ROOT), sys.version, *(path.read_text("utf-8") for path in pins)):
        digest.update(part.encode())
        digest.update(b"\0")
    return digest.hexdigest()


def is_made(home: Path, stamp: str) -> bool:
    """Tell whether `home` was finished from exactly these pins."""
    try:
        return (home / STAMP).read_text("utf-8") == stamp
    except FileNotFoundError:
        return False


def make_python(name: str) -> None:
    """Make `.real/<name>` from `real/requirements-<name>.txt`; raises StepFailed."""
    pins = PINS / f"requirements-{name}.txt"
    home = REAL / name
    stamp = stamp_of(pins)
    if is_made(home, stamp):
        return
    begun = time.monotonic()
    shutil.rmtree(home, ignore_errors=True)
    run([sys.executable, "-m", "venv", str(home)], cwd=ROOT, seconds=PIP_SECONDS)
    python = str(home / "bin" / "python")
    run([python, "-m", "pip", "install", "-qq", "-r", str(pins)], cwd=ROOT, seconds=PIP_SECONDS)
    (home / STAMP).write_text(stamp, "utf-8")
    say(f".real/{name} installed in {time.monotonic() - begun:.1f} s")


def node_problem() -> str | None:
    """Say why the npm servers cannot run here, or None."""
    node = shutil.which("node")
    if node is None or shutil.which("npm") is None:
        return "node and npm are not both on PATH"
    try:
        shown = subprocess.run(
            [node, "--version"], capture_output=True, text=True, timeout=30, check=True
        )
        major = int(shown.stdout.strip().lstrip("v").split(".")[0])
    except (OSError, subprocess.SubprocessError, ValueError):
        return "node does not tell its version"
    if major < OLDEST_NODE:
        return f"node {shown.stdout.strip()} is older than {OLDEST_NODE}"
    return None


def make_npm(name: str) -> None:
    """Make `.real/<name>` from its `package-lock.json` where Node.js is; say what is left out."""
    folder, what = NPM[name]
    pins = (folder / "package.json", folder / "package-lock.json")
    home = REAL / name
    stamp = stamp_of(*pins)
    problem = node_problem()
    if problem is not None:
        say(f"{what} left out: {problem}")
        return
    if is_made(home, stamp):
        return
    begun = time.monotonic()
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    for path in pins:
        shutil.copy(path, home / path.name)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        run(command, cwd=home, seconds=NPM_SECONDS)
    except StepFailed as error:
        one_line = " | ".join(str(error).splitlines()[:4])
        say(f"{what} left out: {one_line}")
        return
    (home / STAMP).write_text(stamp, "utf-8")
    say(f".real/{name} installed in {time.monotonic() - begun:.1f} s")


def write_servers() -> None:
    """Write `.real/servers.json`, which names the servers that can run here and no others."""
    servers: dict[str, dict[str, object]] = {}

    def pypi(name: str, home: str, *argv: str) -> None:
        if (REAL / home / STAMP).exists():
            program, *rest = argv
            command = [str(REAL / home / "bin" / program), *rest]
            servers[name] = {"command": command, "kind": "pypi"}

    pypi("time", "py", "python", "-m", "mcp_server_time")
    if shutil.which("git") is not None:
        pypi("git", "py", "python", "-m", "mcp_server_git")
    else:
        say("the git server is left out: git is not on PATH")
    pypi("fetch", "py", "python", "-m", "mcp_server_fetch")
    pypi("sqlite", "sqlite", "mcp-server-sqlite")  # the caller adds --db-path FILE

    node = shutil.which("node")
    if node is not None and node_problem() is None and (REAL / "npm" / STAMP).exists():
        packages = REAL / "npm" / "node_modules" / "@modelcontextprotocol"
        for name in ("everything", "filesystem", "memory", "sequential-thinking"):
            command = [node, str(packages / f"server-{name}" / "dist" / "index.js")]
            if name == "everything":
                command.append("stdio")
            # filesystem: the caller adds the directories it may touch
            servers[name] = {"command": command, "kind": "npm"}

    text = json.dumps(servers, indent=2) + "\n"
    target = REAL / "servers.json"
    if not target.exists() or target.read_text("utf-8") != text:
        fresh = target.with_suffix(".tmp")
        fresh.write_text(text, "utf-8")
        fresh.replace(target)  # a reader sees the old file or the new one, never half of one
        say(f"servers.json names {', '.join(servers)}")


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Hold the lock of `.real`: two runs at once would remove each other's work."""
    REAL.mkdir(exist_ok=True)
    with (REAL / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> int:
    """Make what the arguments name; return the exit code."""
    parser = argparse.ArgumentParser(description="Make the environments of the real servers.")
    what = "py, sqlite, npm, sdk, conformance, fastmcp (default: the first three)"
    parser.add_argument("names", nargs="*", metavar="NAME", help=what)
    names: list[str] = parser.parse_args().names or list(SERVERS)
    if unknown := set(names) - {*SERVERS, *NPM, "sdk", "fastmcp"}:
        parser.error(f"unknown environment: {', '.join(sorted(unknown))}")
    failed = False
    with one_at_a_time(), ThreadPoolExecutor(max_workers=2) as pool:
        making = {
            name: pool.submit(partial(make_npm if name in NPM else make_python, name))
            for name in names
        }
        for name, done in making.items():
            try:
                done.result()
            except StepFailed as error:
                failed = True
                say(f".real/{name} could not be made: {error}")
        write_servers()
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
