"""One recorded death. A value; knows no process."""

from __future__ import annotations

from msgspec import Struct

from mcpclient.ground.errors import last_words
from mcpclient.ground.exits import Exit
from mcpclient.ground.text import printable, seconds


class Incident(Struct, frozen=True, kw_only=True):
    """A life of a server that ended without being asked to, or did not come about.

    Attributes:
        generation: The number of the life.
        at: When it ended, on the monotonic clock, in seconds.
        phase: The phase it ended in: ``starting``, ``opening`` or ``up``.
        uptime: How long it had been up, in seconds; 0 if it never was.
        exit: How the process ended; None if there was none, or it had to be ended.
        problem: What went wrong, in one line; empty if the exit says it all.
        stderr_tail: The last of what it wrote to stderr.
        noise: A sample of what stood on its stdout and was no message.
    """

    generation: int
    at: float
    phase: str
    uptime: float = 0.0
    exit: Exit | None = None
    problem: str = ""
    stderr_tail: str = ""
    noise: str = ""

    def __str__(self) -> str:
        facts = printable(self.problem) or str(self.exit or "no process")
        lived = f" after {seconds(self.uptime)} up" if self.uptime else f" while {self.phase}"
        words = "" if "(stderr: " in facts else last_words(self.stderr_tail)
        return f"life {self.generation} ended{lived}: {facts}{words}"
