"""A recorded session as a file: one JSON object a line, written as it happens, read with care.

The first line says what it is. The others are frames of one life, ``>`` to the server or ``<``
from it, with the seconds since the life began, and the end of each life.
"""

from __future__ import annotations

import fcntl
import json
import os
import time
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

if TYPE_CHECKING:
    from mcpclient.ground.exits import Exit
    from mcpclient.testing.redaction import Redaction

FORMAT = 1


class RecordingError(ValueError):
    """A file is no recording, or a damaged one; the text names the line."""


class Head(Struct):
    """The first line.

    Attributes:
        recording: The number of the format.
        server: What the recorded server was called.
        home: Whether ``${HOME}`` stands for the home directory.
    """

    recording: int
    server: str = ""
    home: bool = False


class Entry(Struct, omit_defaults=True):
    """Another line.

    Attributes:
        life: Which life of the server it belongs to, from 1.
        t: Seconds since that life began.
        dir: ``>`` to the server, ``<`` from it, ``x`` for its end.
        message: The message; absent if the frame was none.
        raw: What stood there instead.
        code: At the end, the exit code.
        signal: At the end, the signal.
        asked: At the end, whether the client ended it.
        line: Where it stands in the file; not written.
    """

    life: int
    t: float
    dir: str
    message: dict[str, Any] | UnsetType = UNSET
    raw: str | None = None
    code: int | None = None
    signal: int | None = None
    asked: bool = False
    line: int = 0

    @property
    def body(self) -> dict[str, Any]:
        """The message, or an empty one."""
        return {} if self.message is UNSET else self.message

    @property
    def method(self) -> str | None:
        """Its method, or None for an answer or no message."""
        found = self.body.get("method")
        return found if isinstance(found, str) else None

    @property
    def params(self) -> dict[str, Any]:
        """Its params."""
        found = self.body.get("params")
        return found if isinstance(found, dict) else {}


class Recording(Struct):
    """What was recorded.

    Attributes:
        path: Where it was read from.
        head: The first line.
        lives: The entries of each life, oldest first.
    """

    path: str
    head: Head
    lives: list[list[Entry]]

    def __str__(self) -> str:
        return self.path


class Track:
    """Writes down one life. What cannot be written must not hurt the session: it is told once."""

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        redaction: Redaction,
        server: str = "",
        *,
        anew: bool = False,
    ) -> None:
        """Begin a life.

        Args:
            path: The file; a new one is begun, to one that is there a life is added. None: none.
            redaction: Takes out what must not be written.
            server: The server's name.
            anew: Whether a recording that is there is replaced.

        Raises:
            OSError: The file cannot be written.
            RecordingError: It is something else than a recording.
        """
        self._path = path
        self._redaction = redaction
        self._begun = time.monotonic()
        self.entries: list[Entry] = []
        self.life = 1
        if path is not None:
            self.life = self._born(path, Head(FORMAT, server, redaction.home), anew=anew)

    @staticmethod
    def _born(path: str | os.PathLike[str], head: Head, *, anew: bool) -> int:
        # Under a lock: several relays may begin at the same time.
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            with os.fdopen(os.dup(fd), "rb") as file:
                data = file.read()
            if data and anew:
                _head(data.split(b"\n", 1)[0], os.fspath(path))  # nothing else is overwritten
                os.ftruncate(fd, 0)
                data = b""
            if not data:
                os.write(fd, msgspec.json.encode(head) + b"\n")
                life = 1
            else:
                if not data.endswith(b"\n"):
                    data = data[: data.rfind(b"\n") + 1]
                    os.ftruncate(fd, len(data))  # its writer was killed in the middle of a line
                lives = parse(data, str(path)).lives
                life = len(lives) + 1
            # Taken at once, so that the next one counts it.
            os.write(fd, msgspec.json.encode(Entry(life, 0.0, "+")) + b"\n")
        finally:
            os.close(fd)
        return life

    def frame(self, sign: str, frame: bytes) -> None:
        """Write down a frame."""
        frame = frame.rstrip(b"\r\n")
        try:
            message = json.loads(frame)
            if not isinstance(message, dict):
                raise ValueError
            entry = self._entry(sign)
            entry.message = self._redaction.message(message)
        except (ValueError, RecursionError):
            entry = self._entry(sign)
            # Bytes that are no text survive this; what is secret in it does not.
            entry.raw = self._redaction.text(frame.decode("utf-8", "surrogateescape"))
        self._write(entry)

    def end(self, exit: Exit, *, asked: bool) -> None:
        """Write down the end."""
        entry = self._entry("x")
        entry.code, entry.signal, entry.asked = exit.code, exit.signal, asked
        self._write(entry)

    def _entry(self, sign: str) -> Entry:
        return Entry(self.life, round(time.monotonic() - self._begun, 4), sign)

    def _write(self, entry: Entry) -> None:
        self.entries.append(entry)
        if self._path is None:
            return
        # json and not msgspec: it writes lone surrogates, which stand for bytes that are no text.
        line = json.dumps(msgspec.to_builtins(entry)).encode() + b"\n"
        fd = os.open(self._path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)


def load(path: str | os.PathLike[str]) -> Recording:
    """Read a recording.

    Raises:
        RecordingError: There is no such file, or it is damaged; the text names the line.
    """
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as problem:
        raise RecordingError(
            f"{os.fspath(path)}: {problem.strerror}; record it by Recorder(path).spec(…), or by "
            "python -m mcpclient.testing.recorder"
        ) from None
    return parse(data, os.fspath(path))


def parse(data: bytes, path: str) -> Recording:
    """Return the recording that some bytes are. As :func:`load` does."""
    lines = data.split(b"\n")
    cut = lines.pop()
    if not lines:
        raise RecordingError(f"{path}:1: this is no recording: its first line does not end")
    head = _head(lines[0], path)
    if head.recording != FORMAT:
        raise RecordingError(
            f"{path}:1: it is of format {head.recording}, and only {FORMAT} is known; record anew"
        )
    lives: list[list[Entry]] = []
    for number, line in enumerate(lines[1:], 2):
        entry = _entry(line, f"{path}:{number}")
        entry.line = number
        if entry.dir == "+":
            if entry.life != len(lives) + 1:
                raise RecordingError(f"{path}:{number}: life {entry.life} begins out of order")
            lives.append([])
        elif not 1 <= entry.life <= len(lives):
            raise RecordingError(f"{path}:{number}: life {entry.life} has not begun")
        else:
            lives[entry.life - 1].append(entry)
    if cut:
        raise RecordingError(
            f"{path}:{len(lines) + 1}: the recording is cut off in the middle of this line; "
            "delete the line, or record anew"
        )
    return Recording(path, head, lives)


def _head(line: bytes, path: str) -> Head:
    try:
        return msgspec.json.decode(line, type=Head)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
        raise RecordingError(f"{path}:1: this is no recording: {problem}") from None


def _entry(line: bytes, place: str) -> Entry:
    try:
        # Lone surrogates again.
        entry = msgspec.convert(json.loads(line), Entry)
    except (ValueError, RecursionError) as problem:
        raise RecordingError(f"{place}: this line cannot be read: {problem}") from None
    if entry.dir not in ("+", ">", "<", "x"):
        raise RecordingError(f"{place}: {entry.dir!r} is no direction")
    if entry.dir in "<>" and entry.message is UNSET and entry.raw is None:
        raise RecordingError(f"{place}: there is no message in this line")
    return entry
