"""Which process starts how and dies how. Has never heard of JSON.

A server is the leader of a session and process group of its own: signals typed at the host's
terminal do not reach it, and its whole group can be ended. While the dead leader is unreaped,
its number cannot be given to another process, so only then, or while it lives, is the group
signalled; a pid that was reaped is never signalled.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcpclient.ground.errors import SpawnFailed
from mcpclient.ground.exits import Exit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpclient.transports.watchdog import Watchdog

_LAUNCHERS = {
    "npx": "install Node.js",
    "npm": "install Node.js",
    "node": "install Node.js",
    "uvx": "install uv",
    "uv": "install uv",
    "docker": "install Docker",
    "deno": "install Deno",
    "bun": "install Bun",
    "bunx": "install Bun",
    "pipx": "install pipx",
}


class Command(Struct, frozen=True):
    """How to start a process.

    Attributes:
        argv: The command and its arguments.
        env: Variables set for it.
        cwd: Its working directory, or None for the host's.
        inherit_env: Whether it also gets the host's variables.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str] = {}
    cwd: str | None = None
    inherit_env: bool = True

    def environment(self) -> dict[str, str]:
        """Return all variables that the process gets."""
        return {**(os.environ if self.inherit_env else {}), **self.env}


class Child:
    """One process and our ends of its three pipes, all non-blocking, none inheritable.

    Attributes:
        pid: Its process id, and that of its group.
        stdin: The descriptor to write to.
        stdout: The descriptor to read its answers from.
        stderr: The descriptor to read its complaints from.
        exit_fd: A descriptor that turns readable when it ends, or None where there is none.
    """

    def __init__(
        self, command: Command, *, kill_tree: bool, watchdog: Watchdog | None = None
    ) -> None:
        """Start the process; this blocks for milliseconds.

        Args:
            command: What to start.
            kill_tree: Whether its whole group is ended with it.
            watchdog: Who ends it if the host is killed, or None.

        Raises:
            SpawnFailed: It cannot be started.
        """
        argv = list(command.argv)
        env = command.environment()
        cwd = _directory(command)
        argv[0] = _executable(command, env, cwd)
        pipes: list[int] = []
        try:
            for _ in range(3):
                pipes += os.pipe()  # close-on-exec: no other child gets these (B121, B122)
            in_read, self.stdin, self.stdout, out_write, self.stderr, err_write = pipes
            # Popen itself starts the process without the interpreter's help in the child (no
            # preexec_fn), which keeps a large host from being copied first.
            popen = subprocess.Popen(
                argv,
                stdin=in_read,
                stdout=out_write,
                stderr=err_write,
                cwd=cwd,
                env=env,
                start_new_session=True,
            )
        except (OSError, ValueError, subprocess.SubprocessError) as problem:
            for fd in pipes:
                os.close(fd)
            raise _spawn_failed(command, problem) from problem
        for fd in (in_read, out_write, err_write):
            os.close(fd)
        for fd in (self.stdin, self.stdout, self.stderr):
            os.set_blocking(fd, False)
        self.pid = popen.pid
        # We reap it ourselves; Popen must neither do so nor complain that nobody did.
        popen.returncode = 0
        self._target = -self.pid if kill_tree else self.pid
        self._watchdog = watchdog
        if watchdog is not None:
            watchdog.guard(self._target)
        self._exit: Exit | None = None
        self.exit_fd: int | None = None
        with contextlib.suppress(OSError, AttributeError):
            self.exit_fd = os.pidfd_open(self.pid)

    def ended(self) -> bool:
        """Return whether the process has ended, without reaping it."""
        if self._exit is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            self._settle(Exit())  # the host reaps children itself (B112)
            return True

    def signal(self, number: int) -> None:
        """Send a signal to the whole group, or to the process alone if its tree is to live."""
        if self._exit is not None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(self._target, number)

    def sweep(self) -> None:
        """Kill what is left of the group of a process that ended by itself."""
        if self._target < 0:
            self.signal(signal.SIGKILL)

    def reap(self) -> Exit | None:
        """Return how the process ended and let its number go; None if it still runs."""
        if self._exit is None and self.ended() and self._exit is None:
            # The watchdog first, while the number is still this process's.
            if self._watchdog is not None:
                self._watchdog.release(self._target)
            try:
                _, status = os.waitpid(self.pid, 0)
            except ChildProcessError:
                self._exit = Exit()
            else:
                code = os.waitstatus_to_exitcode(status)
                self._exit = Exit(code=code) if code >= 0 else Exit(signal=-code)
        return self._exit

    def abandon(self) -> None:
        """Kill the process and wait for its end, which takes milliseconds; close everything."""
        if not self.ended():
            self.signal(signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                # Not WNOHANG: SIGKILL cannot be refused, and nobody else will wait.
                os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
        self.sweep()
        self.reap()
        self.close()

    def _settle(self, exit: Exit) -> None:
        if self._watchdog is not None:
            self._watchdog.release(self._target)
        self._exit = exit

    def close_stdin(self) -> None:
        """Close the server's stdin, which asks it to end. Twice is no fault."""
        fd, self.stdin = self.stdin, -1
        if fd >= 0:
            os.close(fd)

    def close(self) -> None:
        """Close all our descriptors. Twice is no fault."""
        self.close_stdin()
        for name in ("stdout", "stderr", "exit_fd"):
            fd = getattr(self, name)
            setattr(self, name, -1)
            if fd is not None and fd >= 0:
                os.close(fd)


class Ticket:
    """A claim on a child that a thread is starting. Whoever comes second cleans up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._void = False

    def spawn(
        self, command: Command, *, kill_tree: bool, watchdog: Watchdog | None = None
    ) -> Child:
        """Start the process (this blocks for a moment: call it in a thread)."""
        child = Child(command, kill_tree=kill_tree, watchdog=watchdog)
        with self._lock:
            self._child = child
            late = self._void
        if late:
            child.abandon()
        return child

    def void(self) -> None:
        """Give the claim up: the child, if there is or will be one, is killed."""
        with self._lock:
            self._void = True
            child = self._child
        if child is not None:
            child.abandon()


def _directory(command: Command) -> str | None:
    if command.cwd is None:
        try:
            os.getcwd()
        except OSError:
            # The host's own directory was deleted; a child cannot start there (B107).
            return os.path.expanduser("~")
        return None
    if not os.path.isdir(command.cwd):
        problem = "is not a directory" if os.path.exists(command.cwd) else "does not exist"
        raise SpawnFailed(
            f"the working directory {command.cwd!r} {problem}",
            command=command.argv[0],
            hint='give an existing directory in "cwd"',
        )
    return command.cwd


def _executable(command: Command, env: Mapping[str, str], cwd: str | None) -> str:
    """Return the command's path, found before anything is started."""
    name = command.argv[0]
    if os.sep in name:
        path = os.path.join(cwd or os.curdir, os.path.expanduser(name))
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path) if cwd else path
        if os.path.isdir(path):
            raise SpawnFailed(f"{name!r} is a directory", command=name, hint="name a program")
        if os.path.exists(path):
            raise SpawnFailed(
                f"{name!r} is not executable",
                command=name,
                hint="chmod +x it, or run it with its interpreter as the command",
            )
        hint = 'correct the path in "command"'
        if shutil.which(os.path.expanduser(name.split()[0])):
            hint = _whole_line(command) or hint
        raise SpawnFailed(f"{name!r} does not exist", command=name, hint=hint)
    found = shutil.which(name, path=env.get("PATH", os.defpath))
    if found is not None:
        return found
    advice = _LAUNCHERS.get(name)
    remedy = 'give the full path in "command"'
    raise SpawnFailed(
        f"{name!r} was not found on PATH",
        command=name,
        hint=_whole_line(command)
        or (f"{advice} or {remedy}" if advice else f"install it or {remedy}"),
    )


def _whole_line(command: Command) -> str:
    words = command.argv[0].split()
    if len(words) < 2 or command.argv[1:]:
        return ""
    return f'"command" is the program alone: the words behind {words[0]!r} are its "args"'


def _spawn_failed(command: Command, problem: Exception) -> SpawnFailed:
    name = command.argv[0]
    final = True
    match problem:
        case FileNotFoundError():
            hint = "the program exists, but the interpreter its first line names does not"
        case PermissionError():
            hint = "check the permissions of the program and of its folders"
        case OSError(errno=8):  # ENOEXEC
            hint = "it is no program: add a first line that names its interpreter"
        case OSError():
            hint = "close what is not needed, or raise the limits of this user"
            final = False  # the machine may have room for it again soon
        case _:
            hint = 'correct "command", "args" and "env": no part may hold a null character'
    text: Any = problem.strerror if isinstance(problem, OSError) and problem.strerror else problem
    return SpawnFailed(f"{name!r} cannot be started: {text}", command=name, hint=hint, final=final)
