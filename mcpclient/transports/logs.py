"""What one server says, kept in files that do not grow for ever. Secrets are not written.

A file that reaches its bound is renamed with ``.1`` at its end, over the one before, and begun
anew. A file that cannot be written is given up with one warning: no call fails of it.
"""

from __future__ import annotations

import logging
import os
import re
import time
from typing import TYPE_CHECKING

from mcpclient.ground.text import printable
from mcpclient.transports.tap import Tap

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcpclient.ground.errors import McpClientError
    from mcpclient.ground.exits import Exit
    from mcpclient.protocol.envelope import Outgoing
    from mcpclient.transports.base import Transport

_log = logging.getLogger("mcpclient")
# How much of one frame is written: the rest is data, and the sizes are told.
_FRAME = 4096
_SECRET_NAME = r"[^\"\\]*(?:token|secret|passw|api[-_]?key|authorization|cookie|credential)[^\"\\]*"
_SECRET = re.compile(rf'("{_SECRET_NAME}"\s*:\s*)"(?:[^"\\]|\\.)*"?', re.IGNORECASE)
_SECRET_WHOLE = re.compile(_SECRET_NAME, re.IGNORECASE)
_SECRET_VARIABLE = re.compile(r"token|secret|passw|key|auth|cookie|credential", re.IGNORECASE)


class BoundedFile:
    """A file that is appended to, up to a bound."""

    def __init__(self, path: str, limit: int) -> None:
        self._path = path
        self._limit = limit
        self._fd: int | None = None
        self._size = 0

    def write(self, data: bytes) -> None:
        """Append some bytes. Never raises."""
        if self._fd == -1:
            return
        try:
            if self._fd is None:
                self._open()
            elif self._size + len(data) > self._limit and self._size:
                os.close(self._fd)
                self._fd = None
                os.replace(self._path, f"{self._path}.1")
                self._open()
            assert self._fd is not None
            self._size += os.write(self._fd, data[-self._limit :])
        except OSError as problem:
            _log.warning("! %s cannot be written: %s", self._path, problem.strerror)
            self.close()

    def close(self) -> None:
        """Write nothing more. Twice is no fault."""
        if self._fd is not None and self._fd >= 0:
            os.close(self._fd)
        self._fd = -1

    def _open(self) -> None:
        # For the user's eyes only: it may hold what the user asked servers for.
        self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._size = os.fstat(self._fd).st_size


class WireLog(Tap):
    """A transport that writes down what another one carries.

    One frame a line: the time, ``>`` out or ``<`` in, its size, and its head with the values of
    what is named like a secret replaced, and those of the server's own secret variables.
    """

    def __init__(self, transport: Transport, path: str, limit: int, env: Mapping[str, str]) -> None:
        super().__init__(transport)
        self._file = BoundedFile(path, limit)
        self._hidden = list(hidden(env))

    def passed(self, sign: str, frame: bytes) -> None:
        """See :class:`~mcpclient.transports.tap.Tap`."""
        head = frame[:_FRAME].decode("utf-8", "replace").rstrip("\r\n")
        for secret in self._hidden:
            head = head.replace(secret, "***")
        more = "…" if len(frame) > _FRAME else ""
        self._write(sign, f"{len(frame)} {masked(head)}{more}")

    def missed(self, item: Outgoing, problem: McpClientError) -> None:
        """See :class:`~mcpclient.transports.tap.Tap`."""
        self._write("!", f"{item.method} {problem}")

    def ended(self, exit: Exit, reason: str) -> None:
        """See :class:`~mcpclient.transports.tap.Tap`."""
        self._write("x", f"{exit} {reason}".strip())
        self._file.close()

    def _write(self, sign: str, text: str) -> None:
        now = time.time()
        stamp = time.strftime("%H:%M:%S", time.localtime(now)) + f".{int(now % 1 * 1000):03d}"
        line = f"{stamp} {sign} {printable(text, 2 * _FRAME)}\n"
        self._file.write(line.encode("utf-8", "replace"))


def masked(text: str) -> str:
    """Return JSON, or what holds JSON, with the values of what is named like a secret replaced."""
    return _SECRET.sub(r'\1"***"', text)


def is_secret(name: str) -> bool:
    """Return whether what is named so is masked."""
    return _SECRET_WHOLE.fullmatch(name) is not None


def hidden(env: Mapping[str, str]) -> Iterable[str]:
    """Yield the values of variables that are named like a secret; short ones are none."""
    for name, value in env.items():
        if _SECRET_VARIABLE.search(name) and len(value) >= 6:
            yield value
