"""A real headless Neovim with the plugin, and a small client for it in which no wait is endless."""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, SERVERS, alive

PLUGIN = ROOT / "examples" / "neovim"
# How long anything may take that is not meant to take long: the machine may be busy.
DEADLINE = 12.0


@functools.cache
def lacking() -> str:
    """Return why there is no Neovim to test in, or an empty text."""
    program = shutil.which("nvim")
    if program is None:
        return "there is no nvim: apt-get install neovim"
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    version = re.match(r"NVIM v(\d+)\.(\d+)", said.stdout)
    if version is None or (int(version[1]), int(version[2])) < (0, 7):
        return f"this nvim is too old: {said.stdout.splitlines()[0]}"
    try:
        import pynvim  # noqa: F401 - the backend needs it
    except ModuleNotFoundError:
        return "there is no pynvim: pip install pynvim"
    return ""


def fixture(name: str, *arguments: str) -> list[str]:
    """Return the command of a fixture server."""
    return [sys.executable, str(SERVERS / f"{name}.py"), *arguments]


GOOD = fixture("good_handshake")
FREE = fixture("good_stateless")
NOTES = [sys.executable, str(Path(__file__).with_name("server.py"))]


class EditorError(Exception):
    """Neovim answered a request with an error."""


class Editor:
    """One Neovim.

    Attributes:
        pid: Its process.
        home: A folder of its own.
    """

    def __init__(self, *arguments: str) -> None:
        """Start it and connect."""
        self.home = Path(tempfile.mkdtemp(prefix="nv"))
        address = str(self.home / "s")
        env = {
            **os.environ,
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home),
            "XDG_DATA_HOME": str(self.home),
            "XDG_STATE_HOME": str(self.home),
            "XDG_CACHE_HOME": str(self.home),
            "NVIM_LOG_FILE": str(self.home / "log"),
            # The tree's own package, whatever is installed.
            "PYTHONPATH": str(ROOT),
            "PYTHONWARNINGS": "ignore",
        }
        env.pop("MCPCLIENT_CONFIG", None)
        self._process = subprocess.Popen(
            [
                *("nvim", "--headless", "--clean", "-n", "--listen", address),
                *("--cmd", f"set rtp^={PLUGIN}", *arguments),
            ],
            cwd=self.home,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self.pid = self._process.pid
        self._numbers = iter(range(1, 1_000_000))
        import msgpack  # it comes with pynvim, without which we are not here

        self._pack = msgpack.packb
        self._unpacker = msgpack.Unpacker(raw=False, strict_map_key=False)
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(DEADLINE)
        try:
            eventually(lambda: self._connects(address))
        except BaseException:
            self.close()
            raise

    def _connects(self, address: str) -> bool:
        try:
            self._socket.connect(address)
        except OSError:
            return False
        return True

    # -- asked -----------------------------------------------------------------------------

    def request(self, method: str, *arguments: Any) -> Any:
        """Return what Neovim answers."""
        number = next(self._numbers)
        self._socket.sendall(self._pack([0, number, method, arguments]))
        while True:
            for message in self._unpacker:
                if message[0] == 1 and message[1] == number:
                    if message[2] is not None:
                        raise EditorError(message[2][1])
                    return message[3]
            data = self._socket.recv(65536)
            if not data:
                raise EOFError("the editor has gone")
            self._unpacker.feed(data)

    def lua(self, code: str, *arguments: Any) -> Any:
        """Run Lua, and return what it returns."""
        return self.request("nvim_exec_lua", code, arguments)

    def command(self, text: str) -> None:
        """Run a command."""
        self.request("nvim_command", text)

    def press(self, keys: str) -> None:
        """Press keys, as a person does."""
        self.request("nvim_input", keys)

    def complete(self, line: str) -> list[str]:
        """Return what the last word of a command line may become."""
        return list(self.request("nvim_call_function", "getcompletion", [line, "cmdline"]))

    def lines(self, buffer: int = 0) -> list[str]:
        """Return the lines of a buffer."""
        return list(self.request("nvim_buf_get_lines", buffer, 0, -1, False))

    def buffer(self, pattern: str) -> int:
        """Return the number of the loaded buffer whose name has this in it, or 0."""
        return int(
            self.lua(
                "for _, b in ipairs(vim.api.nvim_list_bufs()) do"
                " if vim.api.nvim_buf_is_loaded(b) and"
                " vim.api.nvim_buf_get_name(b):find(..., 1, true) then return b end end"
                " return 0",
                pattern,
            )
        )

    def text(self, pattern: str) -> str:
        """Return the text of the buffer whose name has this in it; empty if there is none."""
        number = self.buffer(pattern)
        return "\n".join(self.lines(number)) if number else ""

    # -- the plugin ------------------------------------------------------------------------

    def set_up(self, servers: dict[str, Any] | None = None, **options: Any) -> None:
        """Set the plugin up, and have what it tells the person kept."""
        if servers is not None:
            options["servers"] = servers
        self.lua(
            "_G.told = {}; vim.notify = function(text) table.insert(_G.told, text) end;"
            ' require("mcpclient").setup(...)',
            {"python": sys.executable, **options},
        )

    def told(self) -> list[str]:
        """Return what the person was told."""
        return list(self.lua("return _G.told"))

    def backend(self) -> int:
        """Return the process of the backend, or 0."""
        return int(
            self.lua(
                'local job = require("mcpclient.backend").process();'
                " return job and vim.fn.jobpid(job) or 0"
            )
        )

    def servers(self) -> dict[str, dict[str, Any]]:
        """Return what the editor knows of the servers."""
        rows = self.lua('return require("mcpclient.backend").servers')
        return {row["name"]: row for row in rows}

    def processes(self, count: int = 0) -> set[int]:
        """Return the backend and the servers that are known to run, once they are so many."""

        def known() -> set[int]:
            found = {self.backend(), *(row["pid"] for row in self.servers().values())}
            return found - {0}

        if count:
            eventually(lambda: len(known()) == count)
        return known()

    def call(self, server: str, tool: str, **arguments: Any) -> Any:
        """Call a tool through the plugin's Lua and return its text; AssertionError if it fails."""
        key = self.lua(
            "_G.answers = _G.answers or {}; local key = #_G.answers + 1; _G.answers[key] = false;"
            " local s, t, a = ...; require('mcpclient').call_tool(s, t, a, function(p, r)"
            " _G.answers[key] = {p or '', r and r.text or {}} end); return key",
            *(server, tool, arguments),
        )
        problem, text = eventually(lambda: self.lua("return _G.answers[...]", key))
        assert not problem, problem
        return "\n".join(text)

    # -- its end ---------------------------------------------------------------------------

    def ended(self) -> bool:
        """Return whether it has ended."""
        return self._process.poll() is not None

    def kill(self) -> None:
        """End it as the system would, without a word."""
        self._process.kill()
        self._process.wait(DEADLINE)

    def close(self) -> None:
        """End it, and wait until nothing of it is left."""
        left: set[int] = set()
        try:
            if not self.ended():
                left = self.processes()
                self._socket.sendall(
                    self._pack([2, "nvim_command", ["qa!"]])  # nobody answers this
                )
                self._process.wait(DEADLINE)
        except (OSError, EOFError, EditorError, subprocess.TimeoutExpired):
            pass  # it is ended below, and the test that left it so tells why
        finally:
            self._socket.close()
            if not self.ended():
                self.kill()
            try:
                eventually(lambda: not any(map(alive, left)))
            finally:
                shutil.rmtree(self.home, ignore_errors=True)


def eventually(fact: Callable[[], Any], within: float = DEADLINE) -> Any:
    """Wait until a fact holds and return it; fail if it does not in time."""
    end = time.monotonic() + within
    while not (found := fact()):
        if time.monotonic() > end:
            pytest.fail(f"did not come true within {within} s")
        time.sleep(0.01)
    return found


def end(pid: int) -> None:
    """Kill one process."""
    os.kill(pid, signal.SIGKILL)
