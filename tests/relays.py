"""Fixture servers on sockets, and listeners that a test plays itself."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.conftest import SERVERS

# A path in a test's own directory may be too long for a socket.
_SHORT = tempfile.gettempdir()


class Relay:
    """One fixture server, or a script, served on a socket by a process of its own.

    Attributes:
        url: Where it listens.
    """

    def __init__(self, address: str, server: str, *args: object) -> None:
        argv = [sys.executable, str(SERVERS / "socket_relay.py"), address, server, *map(str, args)]
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().decode().strip()
        assert self.url, "the relay does not listen"

    def stop(self) -> None:
        """End it and its servers, in good order."""
        self._process.communicate(timeout=20)

    def kill(self) -> None:
        """End it and its servers as the crash of a machine does."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self.stop()


@contextmanager
def relays() -> Iterator[Callable[..., Relay]]:
    """Give a function that makes relays: of ``unix`` or ``tcp``, a server and its arguments."""
    made: list[Relay] = []
    with tempfile.TemporaryDirectory(dir=_SHORT) as folder:

        def make(kind: str, server: str, *args: object, address: str = "") -> Relay:
            new = "0" if kind == "tcp" else str(Path(folder) / str(len(made)))
            made.append(Relay(address or new, server, *args))
            return made[-1]

        yield make
        for relay in made:
            relay.stop()


class Listener:
    """A listening socket whose connections a test takes itself, or does not.

    Attributes:
        url: Where it listens.
        path: Its path, if it is of the file system.
    """

    def __init__(self, kind: str, folder: str, backlog: int = 8) -> None:
        self.path = ""
        if kind == "unix":
            self.path = os.path.join(folder, f"listener-{len(os.listdir(folder))}")
            self._socket = socket.socket(socket.AF_UNIX)
            self._socket.bind(self.path)
            self.url = f"unix://{self.path}"
        else:
            self._socket = socket.socket()
            self._socket.bind(("127.0.0.1", 0))
            self.url = f"tcp://127.0.0.1:{self._socket.getsockname()[1]}"
        self._socket.listen(backlog)
        self._socket.settimeout(20)
        self._taken: list[socket.socket] = []

    def take(self) -> socket.socket:
        """Return the other end of the next connection; it blocks until there is one."""
        taken, _ = self._socket.accept()
        taken.settimeout(20)
        self._taken.append(taken)
        return taken

    def close(self) -> None:
        """Listen no more, and end all connections."""
        for one in (*self._taken, self._socket):
            one.close()


@contextmanager
def listeners() -> Iterator[Callable[..., Listener]]:
    """Give a function that makes listeners: of ``unix`` or ``tcp``."""
    made: list[Listener] = []
    with tempfile.TemporaryDirectory(dir=_SHORT) as folder:

        def make(kind: str, backlog: int = 8) -> Listener:
            made.append(Listener(kind, folder, backlog))
            return made[-1]

        yield make
        for listener in made:
            listener.close()
