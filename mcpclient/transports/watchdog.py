"""Sees to it that no server outlives its host, however the host ends. Knows only numbers.

A host that is killed with SIGKILL, runs out of memory or crashes in native code cleans up
nothing, and a server may ignore the end of its input. So a tiny process holds the other end of a
pipe: while it is open the host lives; when it closes, what is still listed gets SIGTERM and, a
second later, SIGKILL. Signals tied to the death of a parent would not do: they follow the thread
that started the process and never reach its own children.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import weakref

# The shell, since it is there and small (an interpreter would be ten times as much), and the
# words it reads: "+ target" and "- target", a target being what kill takes: a group is negative.
_SHELL = "/bin/sh"
_SCRIPT = """
trap '' HUP INT TERM QUIT PIPE
targets=
while read -r word target; do
    if [ "$word" = + ]; then
        targets="$targets $target"
    else
        left=
        for known in $targets; do [ "$known" = "$target" ] || left="$left $known"; done
        targets=$left
    fi
done
[ -n "$targets" ] || exit 0
exec 2>/dev/null
for target in $targets; do kill -s TERM -- "$target"; done
sleep 1
for target in $targets; do kill -s KILL -- "$target"; done
"""

_all: weakref.WeakSet[Watchdog] = weakref.WeakSet()


class Watchdog:
    """Guards the servers of one manager. Starts with the first of them. Safe in any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._targets: set[int] = set()
        self._pid: int | None = None
        self._fd = -1
        _all.add(self)

    @property
    def pid(self) -> int | None:
        """The process id of the guard, or None while there is nothing to guard."""
        return self._pid

    def guard(self, target: int) -> None:
        """Have a process ended if the host ends; a negative number is a group."""
        with self._lock:
            self._targets.add(target)
            self._tell("+", target)

    def release(self, target: int) -> None:
        """Leave a process alone from now on: before it is reaped, so that its number is its own."""
        with self._lock:
            if target in self._targets:
                self._targets.remove(target)
                self._tell("-", target)

    def close(self) -> None:
        """End the guard. What it still guards is ended too, so release it first."""
        with self._lock:
            self._end()

    def __del__(self) -> None:
        # A manager that was never closed: its servers are gone or about to be killed.
        self._end()

    def _tell(self, word: str, target: int) -> None:
        line = f"{word} {target}\n".encode()
        if self._pid is not None:
            try:
                os.write(self._fd, line)
            except OSError:
                self._end()  # somebody killed the guard
            else:
                return
        if self._targets:
            self._start()

    def _start(self) -> None:
        try:
            reading, self._fd = os.pipe()
        except OSError:
            return  # no descriptor is left; the next server tries again
        try:
            popen = subprocess.Popen(
                [_SHELL, "-c", _SCRIPT],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={"PATH": os.defpath},
                start_new_session=True,
            )
        except OSError:
            # No shell: servers run all the same, but nobody sees to them if the host is killed.
            os.close(self._fd)
            self._fd = -1
            return
        finally:
            os.close(reading)
        self._pid = popen.pid
        popen.returncode = 0  # we reap it ourselves
        with contextlib.suppress(OSError):  # if it is dead already, the next word finds that out
            os.write(self._fd, b"".join(b"+ %d\n" % target for target in self._targets))

    def _end(self) -> None:
        pid, self._pid = self._pid, None
        if pid is None:
            return
        os.close(self._fd)
        self._fd = -1
        with contextlib.suppress(ProcessLookupError):
            if not self._targets:
                # It ends by itself, but not sooner for waiting; nothing is lost by haste.
                os.kill(pid, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)

    def _forget(self) -> None:
        """In a forked child: the pipe must be the host's alone, or its end goes unseen."""
        if self._pid is not None:
            os.close(self._fd)
        self._lock = threading.Lock()
        self._targets = set()
        self._pid = None
        self._fd = -1


def _forked() -> None:
    for watchdog in _all:
        watchdog._forget()


os.register_at_fork(after_in_child=_forked)
