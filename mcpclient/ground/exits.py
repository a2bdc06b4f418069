"""How a process or a connection ended, as a value. Has never killed or waited for one."""

from __future__ import annotations

import signal

from msgspec import Struct


class Exit(Struct, frozen=True, gc=False):
    """The end of one process: an exit code, a signal, or neither if somebody else reaped it.

    Where the process is not ours there is neither, but words.

    Attributes:
        code: The exit code, or None if a signal ended the process or the status was lost.
        signal: The number of the signal that ended it, or None.
        words: How a connection to a server that others run ended; else an empty string.
        expired: Whether only a conversation ended, which the server let go and will open anew.
    """

    code: int | None = None
    signal: int | None = None
    words: str = ""
    expired: bool = False

    @property
    def clean(self) -> bool:
        """Whether the process ended by itself with exit code 0."""
        return self.code == 0

    def __str__(self) -> str:
        if self.signal is not None:
            try:
                return f"killed by {signal.Signals(self.signal).name}"
            except ValueError:
                return f"killed by signal {self.signal}"
        if self.code is not None:
            return f"exit code {self.code}"
        return self.words or "exit status unknown"
