"""A recorded session served as a server, so that the real one need not be there.

Strictly: the client must do what it did. Leniently: it gets the answers it got, whatever it asks
in whatever order. What differs is refused, and fails when the replay is checked.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import msgspec

from mcpclient.testing.journal import Journals, PlayFault
from mcpclient.testing.lenient import LenientPart, Store
from mcpclient.testing.recording import Recording, load
from mcpclient.testing.redaction import Redaction
from mcpclient.testing.script import Folder
from mcpclient.testing.strict import LAST, StrictPart, said, wanted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mcpclient.manager.spec import ServerSpec
    from mcpclient.testing.acts import Part
    from mcpclient.testing.journal import Journal


class Replay:
    """A recording that is served.

    Attributes:
        recording: What is served.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        strict: bool = True,
        ignore: Iterable[str] = (),
        patterns: Iterable[str] = (),
        pace: float = 0.0,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        """Read a recording.

        Args:
            path: The file.
            strict: Whether requests must come in the recorded order, each once. Ids, ``_meta``
                and the params of the opening are never compared; pings and cancellations come
                when they like.
            ignore: Members of params that may differ, as dotted paths: ``arguments.when``.
            patterns: The patterns that the recording was redacted by, if there were any.
            pace: How much of the recorded time passes before the server says what it said; 1 for
                all of it.
            folder: As for :class:`Script`.

        Raises:
            RecordingError: The file is not there, or damaged; the text names the line.
        """
        self.recording = load(path)
        self._how = How(
            path=os.path.abspath(path),
            strict=strict,
            ignore=list(ignore),
            patterns=list(patterns),
            pace=pace,
        )
        self._shown = os.fspath(path)
        self._journal = Journals()
        self._folder = Folder(folder)
        self._store = Store.of(self.recording.lives)

    # -- serving ---------------------------------------------------------------------------

    def part(self) -> Part:
        """Return the part of the next life, to be performed in this process."""
        life = self._journal.new_life()
        return _part(self.recording, self._how, life, self._journal, self._store, self._shown)

    def spec(self, **options: Any) -> ServerSpec:
        """Return the spec of a child process that serves the recording.

        Args:
            options: As for :class:`ServerSpec`.
        """
        data = msgspec.json.encode({"replay": self._how})
        return self._folder.spec(data, self._journal, options)

    # -- what happened ---------------------------------------------------------------------

    def problems(self) -> list[str]:
        """Return how the client differed from the recording, a sentence each."""
        found = [f"life {one['life']}: {one['text']}" for one in self._journal.entries("fault")]
        if not self._how.strict:
            return found
        begun = len(self._journal.entries("life"))
        matched = {(one["life"], one["line"]) for one in self._journal.entries("matched")}
        for number, entries in enumerate(self.recording.lives, 1):
            if number > begun:
                found.append(f"life {number} of the recording never began")
                continue
            if any(one["life"] == number for one in self._journal.entries("fault")):
                continue  # of what came after it nothing can be said
            missing = [
                one
                for one in wanted(entries)
                if one.dir == ">" and one.body and (number, one.line) not in matched
            ]
            while missing and missing[-1].method in LAST:
                missing.pop()
            for one in missing[:_SHOWN]:
                place = f"{self._shown}:{one.line}"
                found.append(f"life {number}: {place}: {said(one.body)} never came")
            if len(missing) > _SHOWN:
                found.append(f"life {number}: and {len(missing) - _SHOWN} more never came")
        return found

    def check(self) -> None:
        """Fail unless the client did what it had done; if lenient, unless all had its answer.

        Raises:
            PlayFault: It did otherwise; the text names the line of the recording and what came
                instead. It is an AssertionError.
        """
        if problems := self.problems():
            raise PlayFault(f"the replay of {self._shown}:\n  " + "\n  ".join(problems))


_SHOWN = 5


class How(msgspec.Struct, kw_only=True):
    """How a recording is served; arguments as for :class:`Replay`."""

    path: str
    strict: bool = True
    ignore: list[str] = []
    patterns: list[str] = []
    pace: float = 0.0


def part_of(how: How, life: int, journal: Journal) -> Part:
    """Return the part of one life, for a process that plays only this.

    Raises:
        RecordingError: As for :class:`Replay`.
    """
    recording = load(how.path)
    store = Store.of(recording.lives)
    return _part(recording, how, life, journal, store, os.path.basename(how.path))


def _part(
    recording: Recording, how: How, life: int, journal: Journal, store: Store, shown: str
) -> Part:
    redaction = Redaction(how.patterns, home=recording.head.home)
    options: dict[str, Any] = {
        "path": shown,
        "life": life,
        "journal": journal,
        "redaction": redaction,
        "ignore": frozenset(how.ignore),
        "pace": how.pace,
    }
    if not how.strict:
        return LenientPart(store, **options)
    if life > len(recording.lives):
        # It will be asked something, and then say that there is nothing more.
        return StrictPart([], **options)
    return StrictPart(recording.lives[life - 1], **options)
