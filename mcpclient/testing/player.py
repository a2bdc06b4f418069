"""Plays a script or a recording as a child process: ``python -m mcpclient.testing.player FOLDER``.

Knows stdin, stdout and how to end. It ends with its client whatever was scripted: when its stdin
ends or nobody can read its stdout, and, if it was told to ignore that, when its parent is gone.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

import msgspec

from mcpclient.protocol.framing import LineSplitter
from mcpclient.testing import acts
from mcpclient.testing.journal import FileJournal
from mcpclient.testing.plan import Plan
from mcpclient.testing.play import Play
from mcpclient.testing.recording import RecordingError
from mcpclient.testing.replay import How, part_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcpclient.testing.acts import Act, Part

# How often the parent is looked at.
_LOOK = 0.5
# How long the last words may take to be read before the end comes without them.
_LAST = 1.0
# These cannot be set, and need not be.
_FIXED = (signal.SIGKILL, signal.SIGSTOP)
# As programs end that were given what they cannot read.
_USAGE = 2


class Played(msgspec.Struct):
    """What stands in the folder: one of these."""

    script: Plan | None = None
    replay: How | None = None


class Player:
    """One process that performs one life."""

    def __init__(self, part: Part, *, ignore_eof: bool = False) -> None:
        self._part = part
        self._stubborn = ignore_eof
        self._parent = os.getppid()
        self._lines = LineSplitter()
        self._out: list[bytes] = []
        self._listens = True
        self._ended = False
        self._mute = False

    def run(self) -> None:
        """Perform until the end; this does not return."""
        os.set_blocking(1, False)
        self._perform(self._part.begin(time.monotonic()))
        while True:
            self._turn()

    def _turn(self) -> None:
        now = time.monotonic()
        due = self._part.due
        patience = _LOOK if due is None else min(max(due - now, 0), _LOOK)
        poll = select.poll()
        if not self._ended:
            # Without POLLIN it still tells that the other end is closed.
            poll.register(0, select.POLLIN if self._listens else 0)
        if not self._mute:
            poll.register(1, select.POLLOUT if self._out else 0)
        for fd, events in poll.poll(patience * 1000 + 1):
            if fd == 1 and events & (select.POLLERR | select.POLLHUP):
                self._end(0)
            elif fd == 1:
                self._flush()
            elif events & select.POLLIN:
                self._read()
            elif events & (select.POLLHUP | select.POLLERR):
                self._eof()
        now = time.monotonic()
        if (due := self._part.due) is not None and due <= now:
            self._perform(self._part.tick(now))
        if os.getppid() != self._parent:
            self._end(0)

    def _read(self) -> None:
        chunk = os.read(0, 65536)
        if not chunk:
            self._eof()
            return
        for line in self._lines.feed(chunk):
            assert isinstance(line, bytes)  # it has no limit
            self._perform(self._part.receive(line, time.monotonic()))

    def _eof(self) -> None:
        self._ended = True
        if not self._stubborn:
            self._end(0)

    def _perform(self, what: Iterable[Act]) -> None:
        for act in what:
            match act:
                case acts.Write(data=data):
                    self._out.append(data)
                    self._flush()
                case acts.Complained(data=data):
                    try:
                        os.write(2, data)
                    except OSError:
                        pass  # nobody reads it any more
                case acts.End(code=code, signal=number):
                    self._end(code, number)
                case acts.Deaf():
                    self._listens = False
                case acts.Dumb():
                    self._drain()
                    os.close(1)
                    self._mute = True
                case _:
                    assert_never(act)

    def _flush(self) -> None:
        """Write what the pipe takes, each piece by a write of its own."""
        while self._out and not self._mute:
            try:
                count = os.write(1, self._out[0])
            except BlockingIOError:
                return
            except OSError:
                os._exit(0)  # nobody reads it any more
            if count == len(self._out[0]):
                del self._out[0]
            else:
                self._out[0] = self._out[0][count:]

    def _drain(self) -> None:
        until = time.monotonic() + _LAST
        while self._out and not self._mute and (left := until - time.monotonic()) > 0:
            select.select([], [1], [], left)
            self._flush()

    def _end(self, code: int | None = None, number: int | None = None) -> None:
        self._drain()
        if number is not None:
            if number not in _FIXED:
                signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        os._exit(code or 0)


def main(argv: list[str]) -> None:
    """Play what a folder holds."""
    if len(argv) != 1:
        print("usage: python -m mcpclient.testing.player FOLDER", file=sys.stderr)
        sys.exit(_USAGE)
    folder = Path(argv[0])
    try:
        played = msgspec.json.decode((folder / "played.json").read_bytes(), type=Played)
    except (OSError, msgspec.MsgspecError) as problem:
        print(f"there is nothing to play in {folder}: {problem}", file=sys.stderr)
        sys.exit(_USAGE)
    # Ctrl-C at the terminal is for the client, which then ends us.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    journal = FileJournal(folder)
    if played.script is not None:
        script = played.script
        if script.ignore_term:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        part: Part = Play(script, journal.new_life(), journal)
        Player(part, ignore_eof=script.ignore_eof).run()
    elif played.replay is not None:
        try:
            part = part_of(played.replay, journal.new_life(), journal)
        except RecordingError as problem:
            print(problem, file=sys.stderr)
            sys.exit(_USAGE)
        Player(part).run()


if __name__ == "__main__":
    main(sys.argv[1:])
