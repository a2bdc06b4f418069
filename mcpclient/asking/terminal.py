"""The terminal of the person who is asked: lines as they are typed, seen or not.

It leaves waiting to others: whoever asks waits until the descriptor is readable, and may give up.
"""

from __future__ import annotations

import contextlib
import os
import sys
import termios
from typing import TYPE_CHECKING, Self

from msgspec import UNSET, UnsetType

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcpclient.asking.talk import Read

# The kernel keeps no more of a line, newline included, and drops the rest without a word.
_LONGEST = 4096


class Terminal:
    """Shows prompts and takes lines. The kernel's own editing of a line stays as it is.

    Attributes:
        fd: What becomes readable when a line is there.
    """

    def __init__(self, write: Callable[[str], object]) -> None:
        """Take the terminal that is stdin; what was typed before is no answer, and dropped.

        Args:
            write: Shows a text.

        Raises:
            OSError, termios.error: There is none.
        """
        self._write = write
        stdin = sys.stdin.fileno()
        try:
            # An open file of our own, so that not to wait is nobody else's mode as well.
            self.fd = os.open(os.ttyname(stdin), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError:
            self.fd = os.dup(stdin)  # a terminal that has no name here, as in some containers
        try:
            termios.tcflush(self.fd, termios.TCIFLUSH)
            self._mode = termios.tcgetattr(self.fd)
        except BaseException:  # Ctrl-C too: nobody else closes it
            os.close(self.fd)
            raise
        self._read: Read | None = None
        self._begun = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.restore()
        with contextlib.suppress(OSError):
            os.close(self.fd)

    def restore(self) -> None:
        """Let what is typed be seen again."""
        with contextlib.suppress(OSError, termios.error):  # it may be gone
            termios.tcsetattr(self.fd, termios.TCSADRAIN, self._mode)

    def ask(self, read: Read) -> None:
        """Show a prompt. The line that answers it is for :meth:`take`."""
        self._read, self._begun = read, b""
        mode = list(self._mode)
        if read.hidden:
            mode[3] = (mode[3] & ~termios.ECHO) | termios.ECHONL
        termios.tcsetattr(self.fd, termios.TCSADRAIN, mode)
        self._write(f"{read.text}{read.prompt}")

    def take(self) -> str | UnsetType | None:
        """Return the line that was typed, None at the end of input, UNSET if there is none yet."""
        try:
            data = os.read(self.fd, _LONGEST)
        except BlockingIOError:
            return UNSET
        except OSError:
            data = b""  # the terminal is gone
        if not data:
            self._write("\n")
            return None
        self._begun += data
        if not self._begun.endswith(b"\n"):
            return UNSET  # Ctrl-D in the middle of a line
        line, self._begun = self._begun, b""
        if len(line) >= _LONGEST:
            self._write(f"! a line here has at most {_LONGEST - 2} bytes; this one was cut\n")
            assert self._read is not None
            self._write(self._read.prompt)
            return UNSET
        return line.rstrip(b"\r\n").decode("utf-8", "replace")
