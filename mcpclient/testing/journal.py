"""What happened to a played server, in memory or in a file that its process writes.

A script and a replay are judged by it, wherever they were performed.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any


class PlayFault(AssertionError):
    """The client did not do what a script or a recording says, or a script cannot be performed."""


class Journal:
    """What happened, oldest first, kept in memory.

    Attributes:
        used: How often each step of the script happened, by its number.
    """

    def __init__(self) -> None:
        self._entries: list[dict[str, Any]] = []
        self.used: Counter[int] = Counter()

    def write(self, kind: str, **facts: Any) -> None:
        """Note something."""
        self._entries.append({"kind": kind, **facts})

    def use(self, step: int, life: int) -> None:
        """Note that a step happens."""
        self.used[step] += 1
        self.write("step", step=step, life=life)

    def entries(self, *kinds: str) -> list[dict[str, Any]]:
        """Return what happened, of these kinds."""
        return [one for one in self._entries if one["kind"] in kinds]

    def new_life(self) -> int:
        """Return the number of a new life, from 1."""
        number = len(self.entries("life")) + 1
        self.write("life", life=number)
        return number


class FileJournal(Journal):
    """What happened, kept in a folder that several processes may write to."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        super().__init__()
        self._folder = Path(folder)
        self._path = self._folder / "journal.jsonl"
        self.used.update(entry["step"] for entry in self.entries("step"))

    def write(self, kind: str, **facts: Any) -> None:
        """Note something. One write a line: lines of several processes do not mix."""
        line = json.dumps({"kind": kind, **facts}).encode() + b"\n"
        fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(fd, line)
        finally:
            os.close(fd)

    def entries(self, *kinds: str) -> list[dict[str, Any]]:
        """Return what happened so far; what a process is just writing is left out."""
        try:
            lines = self._path.read_bytes().split(b"\n")[:-1]
        except FileNotFoundError:
            return []
        found = []
        for line in lines:
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # its writer was killed in the middle of it
            if entry["kind"] in kinds:
                found.append(entry)
        return found

    def new_life(self) -> int:
        """Return the number of a new life, from 1: the first that nobody has taken."""
        number = 1
        while True:
            try:
                os.close(os.open(self._folder / f"life-{number}", os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError:
                number += 1
            else:
                self.write("life", life=number)
                return number


class Journals(Journal):
    """One journal of what happens in memory and in processes, for who reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.file: FileJournal | None = None

    def entries(self, *kinds: str) -> list[dict[str, Any]]:
        """Return what happened in this process, then what happened in others."""
        theirs = self.file.entries(*kinds) if self.file is not None else []
        return [*super().entries(*kinds), *theirs]
