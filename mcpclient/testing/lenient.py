"""A recording served as a store of answers: any order, any number of times, by what is asked.

Each recorded request has a tail: what the server said on it, and after it until the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from mcpclient.protocol import methods
from mcpclient.testing import acts
from mcpclient.testing.acts import as_mapping, frame, parsed
from mcpclient.testing.names import Names, key
from mcpclient.testing.redaction import difference
from mcpclient.testing.strict import LAST, said, wanted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpclient.testing.acts import Act
    from mcpclient.testing.journal import Journal
    from mcpclient.testing.recording import Entry
    from mcpclient.testing.redaction import Redaction


class Exchange(Struct):
    """One recorded request, and what followed.

    Attributes:
        request: The request.
        tail: What the server said, and where it waited for an answer of the client.
        used: How often it was asked again.
    """

    request: Entry
    tail: list[Entry] = []
    used: int = 0


class Store(Struct):
    """What a recording holds, without its order.

    Attributes:
        greeting: What the server said before it was asked anything.
        exchanges: All requests.
    """

    greeting: list[Entry] = []
    exchanges: list[Exchange] = []

    @classmethod
    def of(cls, lives: Sequence[Sequence[Entry]]) -> Store:
        """Return the store of all lives of a recording."""
        store = cls([], [])
        for number, life in enumerate(lives):
            store.add(wanted(life), first=number == 0)
        return store

    def add(self, entries: Sequence[Entry], *, first: bool) -> None:
        """Take in one life."""
        latest: Exchange | None = None
        by_id: dict[str, Exchange] = {}
        by_token: dict[str, Exchange] = {}
        by_ask: dict[str, Exchange] = {}
        for entry in entries:
            id, meta = key(entry.body.get("id")), as_mapping(entry.params.get("_meta"))
            if entry.dir == ">" and entry.method is not None:
                if "id" in entry.body:
                    latest = by_id[id] = Exchange(entry, [])
                    by_token[key(meta.get("progressToken"))] = latest
                    self.exchanges.append(latest)
                continue
            home = latest
            if entry.dir == ">":
                home = by_ask.get(id)
            elif entry.method is None and entry.body:
                home = by_id.get(id)
            elif entry.method == methods.PROGRESS:
                home = by_token.get(key(entry.params.get("progressToken")), latest)
            elif "id" in entry.body and latest is not None:
                by_ask[id] = latest
            if home is not None:
                home.tail.append(entry)
            elif first and entry.dir == "<":
                self.greeting.append(entry)

    def find(
        self, message: dict[str, Any], redaction: Redaction, ignore: frozenset[str]
    ) -> tuple[Exchange | None, str]:
        """Return the exchange of a request, the one used least; or why there is none."""
        method = message.get("method")
        params = {name: one for name, one in _params(message).items() if name != "_meta"}
        params = redaction.message(params)
        fits, problem = [], f"the recording has no {method}"
        for one in self.exchanges:
            if one.request.method != method:
                continue
            recorded = {name: it for name, it in one.request.params.items() if name != "_meta"}
            opening = method in (methods.INITIALIZE, methods.DISCOVER)
            found = None if opening else difference(recorded, params, ignore)
            if found is None:
                fits.append(one)
            else:
                problem = f"the recording has {method} only otherwise (line {one.request.line}):"
                problem = f"{problem} {found}"
        if not fits:
            return None, problem
        unused = [one for one in fits if not one.used]
        return (unused[0] if unused else fits[-1]), ""


class _Telling:
    def __init__(self, tail: Sequence[Entry], now: float, then: float, id: Any) -> None:
        self.tail = tail
        self.place = 0
        self.began = now
        self.then = then
        self.due: float | None = None
        self.id = id
        # What was asked, by its recorded id: whether it was answered.
        self.asked: dict[str, bool] = {}
        self.halted = False


class LenientPart:
    """The part of a recorded server in one life, whatever it is asked in it."""

    def __init__(
        self,
        store: Store,
        *,
        path: str,
        life: int,
        journal: Journal,
        redaction: Redaction,
        ignore: frozenset[str] = frozenset(),
        pace: float = 0.0,
    ) -> None:
        """Prepare a life; arguments as for :class:`~mcpclient.testing.strict.StrictPart`."""
        self._store = store
        self._path = path
        self._life = life
        self._journal = journal
        self._redaction = redaction
        self._ignore = ignore
        self._pace = pace
        self._names = Names(redaction)
        self._telling: list[_Telling] = []
        self._asking: dict[str, tuple[_Telling, str]] = {}
        self._questions = 0

    @property
    def due(self) -> float | None:
        """See :class:`~mcpclient.testing.acts.Part`."""
        return min((one.due for one in self._telling if one.due is not None), default=None)

    def begin(self, now: float) -> list[Act]:
        """See :class:`~mcpclient.testing.acts.Part`."""
        return self._tell(_Telling(self._store.greeting, now, 0.0, None), now)

    def tick(self, now: float) -> list[Act]:
        """See :class:`~mcpclient.testing.acts.Part`."""
        found: list[Act] = []
        for one in [one for one in self._telling if one.due is not None and one.due <= now]:
            self._telling.remove(one)
            found += self._tell(one, now)
        return found

    def receive(self, line: bytes, now: float) -> list[Act]:
        """See :class:`~mcpclient.testing.acts.Part`."""
        message = parsed(line)
        if message is None:
            return []
        self._journal.write("got", life=self._life, message=message)
        method, id = message.get("method"), message.get("id")
        if method is None:
            telling, asked = self._asking.pop(key(id), (None, ""))
            if telling is None:
                return []
            telling.asked[asked] = True
            if not telling.halted:
                return []
            telling.halted = False
            telling.began, telling.then = now, telling.tail[telling.place].t
            return self._tell(telling, now)
        if id is None:
            return []
        if method == methods.PING:
            return [acts.Write(frame({"id": id, "result": {}}))]
        exchange, problem = self._store.find(message, self._redaction, self._ignore)
        if exchange is None:
            if method in LAST:
                return [acts.Write(frame({"id": id, "result": {}}))]
            if method == methods.DISCOVER:
                return self._refuse(id, methods.METHOD_NOT_FOUND, "Method not found")
            problem = f"{self._path}: {problem}; got {said(message)}"
            self._journal.write("fault", life=self._life, text=problem)
            return self._refuse(id, methods.INVALID_PARAMS, f"not as recorded: {problem}")
        exchange.used += 1
        self._journal.write("matched", life=self._life, line=exchange.request.line)
        self._names.same(exchange.request.body, message)
        return self._tell(_Telling(exchange.tail, now, exchange.request.t, id), now)

    @staticmethod
    def _refuse(id: Any, code: int, text: str) -> list[Act]:
        return [acts.Write(frame({"id": id, "error": {"code": code, "message": text}}))]

    def _tell(self, telling: _Telling, now: float) -> list[Act]:
        telling.due = None
        found: list[Act] = []
        while telling.place < len(telling.tail):
            entry = telling.tail[telling.place]
            due = telling.began + max(entry.t - telling.then, 0.0) * self._pace
            if self._pace and due > now:
                telling.due = due
                self._telling.append(telling)
                return found
            if entry.dir == ">" and not telling.asked.get(key(entry.body.get("id")), True):
                telling.halted = True
                return found
            telling.place += 1
            if entry.dir == ">":
                continue
            if entry.method is not None and "id" in entry.body:
                self._questions += 1
                telling.asked[key(entry.body["id"])] = False
                self._asking[f'"ask-{self._questions}"'] = (telling, key(entry.body["id"]))
                asked = {**entry.body, "id": f"ask-{self._questions}"}
                asked.pop("jsonrpc", None)
                found.append(acts.Write(frame(self._redaction.here(asked))))
                continue
            last = telling.place < len(telling.tail) and telling.tail[telling.place].dir == "x"
            if entry.method is None and entry.body and telling.id is not None:
                # By the call that is being told, since the same one may be told twice at once.
                found += [acts.Write(frame(self._answer(entry, telling.id)))]
            else:
                found += self._names.said(entry, last=last)
        return found

    def _answer(self, entry: Entry, id: Any) -> dict[str, Any]:
        answer = {**self._redaction.here(entry.body), "id": id}
        answer.pop("jsonrpc", None)
        return answer


def _params(message: dict[str, Any]) -> dict[str, Any]:
    return as_mapping(message.get("params"))
