"""One life of a recording, played as it was: the same requests, in the same order.

The answers of a client to what it was asked may come in between others; all else has its place.
What differs is refused, with what was expected instead, and so is all that follows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpclient.protocol import methods
from mcpclient.testing import acts
from mcpclient.testing.acts import frame, parsed
from mcpclient.testing.names import Names, key
from mcpclient.testing.redaction import difference

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpclient.testing.acts import Act
    from mcpclient.testing.journal import Journal
    from mcpclient.testing.recording import Entry
    from mcpclient.testing.redaction import Redaction

DEVIATED = -32600


# What the client library sends in its own time, and so is neither waited for nor compared.
_ANYTIME = frozenset({methods.PING, methods.CANCELLED})
# What it may send last, or not any more, depending on how soon it is closed.
LAST = frozenset({methods.UNSUBSCRIBE})


def wanted(entries: Sequence[Entry]) -> list[Entry]:
    """Return what of a life is played: all but what comes when it likes, such as pings."""
    pings = {
        (entry.dir, key(entry.body.get("id"))) for entry in entries if entry.method == methods.PING
    }
    found = []
    for entry in entries:
        other = "<" if entry.dir == ">" else ">"
        answers = entry.method is None and (other, key(entry.body.get("id"))) in pings
        anytime = entry.method == methods.PING or (entry.dir == ">" and entry.method in _ANYTIME)
        if not anytime and not answers:
            found.append(entry)
    return found


class StrictPart:
    """The part of a recorded server in one life."""

    def __init__(
        self,
        entries: Sequence[Entry],
        *,
        path: str,
        life: int,
        journal: Journal,
        redaction: Redaction,
        ignore: frozenset[str] = frozenset(),
        pace: float = 0.0,
    ) -> None:
        """Prepare a life.

        Args:
            entries: What happened in the recorded one.
            path: Where that stands, for complaints.
            life: Its number.
            journal: Where it is written down what happened.
            redaction: How the recording was redacted.
            ignore: Dotted paths of params that may differ.
            pace: How much of the recorded time passes before each answer: 1 for all of it.
        """
        self._entries = wanted(entries)
        self._path = path
        self._life = life
        self._journal = journal
        self._redaction = redaction
        self._ignore = ignore
        self._pace = pace
        self._place = 0
        self._met: set[int] = set()
        self._lost = ""
        self._names = Names(redaction)
        self._since: tuple[float, float] | None = None
        self.due: float | None = None

    def begin(self, now: float) -> list[Act]:
        """See :class:`~mcpclient.testing.acts.Part`."""
        self._since = (now, 0.0)
        return self._go_on(now)

    def tick(self, now: float) -> list[Act]:
        """See :class:`~mcpclient.testing.acts.Part`."""
        return self._go_on(now)

    def receive(self, line: bytes, now: float) -> list[Act]:
        """See :class:`~mcpclient.testing.acts.Part`."""
        message = parsed(line)
        if message is None:
            return []
        self._journal.write("got", life=self._life, message=message)
        method = message.get("method")
        if method == methods.CANCELLED:
            return []
        if method == methods.PING:
            return [acts.Write(frame({"id": message.get("id"), "result": {}}))]
        if method in LAST and not any(one.line not in self._met for one in self._calls()):
            return [acts.Write(frame({"id": message.get("id"), "result": {}}))]
        if self._lost:
            return self._refuse(message)
        entry = self._next_answer(message) if method is None else self._next_call(message)
        problem = self._judge(entry, message)
        if entry is None and method == methods.DISCOVER and self._opens(methods.INITIALIZE):
            # It was recorded without a probe, and is replayed with one.
            return self._refusal(message, methods.METHOD_NOT_FOUND, "Method not found")
        if problem is not None:
            self._lost = problem
            self._journal.write("fault", life=self._life, text=problem)
            return self._refuse(message)
        assert entry is not None
        self._met.add(entry.line)
        self._journal.write("matched", life=self._life, line=entry.line)
        self._names.same(entry.body, message)
        self._since = (now, entry.t)
        return self._go_on(now)

    # -- what comes ------------------------------------------------------------------------

    def _next_call(self, message: dict[str, Any]) -> Entry | None:
        for entry in self._entries:
            if entry.dir != ">" or entry.line in self._met or entry.method is None:
                continue
            if entry.method == methods.DISCOVER and message.get("method") == methods.INITIALIZE:
                self._skip(entry)  # it was recorded with a probe, and is replayed without
                continue
            if message.get("method") == methods.DISCOVER != entry.method:
                return None
            return entry
        return None

    def _next_answer(self, message: dict[str, Any]) -> Entry | None:
        for entry in self._entries:
            if entry.dir == ">" and entry.method is None and entry.line not in self._met:
                if key(entry.body.get("id")) == key(message.get("id")):
                    return entry
        return None

    def _skip(self, probe: Entry) -> None:
        self._met.add(probe.line)
        self._journal.write("matched", life=self._life, line=probe.line)
        answered = key(probe.body.get("id"))
        self._entries = [
            entry
            for entry in self._entries
            if not (
                entry.dir == "<" and entry.method is None and key(entry.body.get("id")) == answered
            )
        ]

    def _calls(self) -> list[Entry]:
        return [one for one in self._entries if one.dir == ">" and one.body]

    def _opens(self, method: str) -> bool:
        calls = [one for one in self._calls() if one.line not in self._met]
        return bool(calls) and calls[0].method == method

    def _judge(self, entry: Entry | None, message: dict[str, Any]) -> str | None:
        got = said(message)
        if entry is None:
            following = next((one for one in self._calls() if one.line not in self._met), None)
            if following is None:
                return f"{self._path}: the recording of this life ends, and then came {got}"
            return f"{self._path}:{following.line}: expected {said(following.body)}, got {got}"
        place = f"{self._path}:{entry.line}"
        if entry.method != message.get("method"):
            return f"{place}: expected {said(entry.body)}, got {got}"
        if ("id" in entry.body) != ("id" in message):
            return f"{place}: expected {said(entry.body)}; it is no request, or is one now"
        if entry.method in (methods.INITIALIZE, methods.DISCOVER):
            return None  # of the client's version and abilities, not of the test's doing
        recorded, now = self._names.comparable(entry.body), self._names.comparable(message)
        found = difference(recorded, self._redaction.message(now), self._ignore)
        return None if found is None else f"{place}: {said(entry.body)} came otherwise: {found}"

    def _refuse(self, message: dict[str, Any]) -> list[Act]:
        return self._refusal(message, DEVIATED, f"not as recorded: {self._lost}")

    @staticmethod
    def _refusal(message: dict[str, Any], code: int, text: str) -> list[Act]:
        if "method" not in message or "id" not in message:
            return []
        return [acts.Write(frame({"id": message["id"], "error": {"code": code, "message": text}}))]

    # -- what is said ----------------------------------------------------------------------

    def _go_on(self, now: float) -> list[Act]:
        """Say what was said until something is to come first, in word or in time."""
        self.due = None
        found: list[Act] = []
        while self._place < len(self._entries) and not self._lost:
            entry = self._entries[self._place]
            if entry.dir == ">" and entry.line not in self._met:
                break
            if entry.dir != ">" and self._pace and self._since is not None:
                began, then = self._since
                due = began + max(entry.t - then, 0.0) * self._pace
                if due > now:
                    self.due = due
                    break
            self._place += 1
            if entry.dir != ">":
                following = self._entries[self._place : self._place + 1]
                last = bool(following) and following[0].dir == "x"
                found += self._names.said(entry, last=last)
        return found


def said(message: dict[str, Any]) -> str:
    """Return a message in a few words, for a sentence."""
    import json

    method = message.get("method")
    if not isinstance(method, str):
        return f"an answer to {message.get('id')!r}"
    params = message.get("params")
    shown = {} if not isinstance(params, dict) else params
    text = json.dumps({name: value for name, value in shown.items() if name != "_meta"})
    text = text if len(text) <= 300 else f"{text[:300]}…"
    return method if text == "{}" else f"{method} {text}"
