"""Holds every frame that a connection of this process sends against the published schemas.

It is on in all tests, and so must cost little: what a schema can tell apart in a frame is its
shape, and each shape is checked once. It does not know what a test is about.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

from jsonschema import ValidationError

from mcpclient.connection.connection import Connection
from mcpclient.connection.inflight import Call
from mcpclient.protocol.envelope import Outgoing
from mcpclient.protocol.events import Ask
from mcpclient.protocol.session import Session
from mcpclient.protocol.versions import HANDSHAKE, STATELESS
from tests.protocol.schemas import SPEC, TASKS, check_sent, schema

# Shapes that are remembered at most; those of a whole run are some thousands.
_MOST = 50_000
# No schema looks deeper into a message of ours.
_DEEP = 40


class Odd(NamedTuple):
    """A frame that is not as its version's schema says.

    Attributes:
        version: The version it was sent in.
        what: Its method, or the method it answers.
        frame: The frame.
        complaint: What the schema has against it.
    """

    version: str
    what: str
    frame: bytes
    complaint: str

    def __str__(self) -> str:
        cut = self.frame if len(self.frame) <= 600 else self.frame[:600] + b"..."
        return f"{self.what} in {self.version}: {self.complaint}\n    {cut!r}"


class Frames:
    """What was sent since the last test was judged.

    Attributes:
        seen: How often what was sent: by version, then method, ``answer`` or ``refusal``, then the
            method that it answers.
        odd: What should not have been, the first few.
    """

    def __init__(self) -> None:
        self.seen: Counter[tuple[str, str, str]] = Counter()
        self.odd: list[Odd] = []
        # By the identity of what is on its way; it is kept, so that none comes twice.
        self._asked: dict[int, tuple[Outgoing, str]] = {}
        self._complaints: dict[Any, str] = {}

    def answers(self, item: Outgoing, asked: str) -> None:
        """Note which request of the server a frame answers."""
        self._asked[id(item)] = (item, asked)

    def sent(self, item: Outgoing) -> None:
        """Look at a frame on its way."""
        _, asked = self._asked.pop(id(item), (None, ""))
        kind = item.method
        try:
            if not (found := _unlike_a_line(item.frame)):
                message = json.loads(item.frame)
                kind = message.get("method") or ("refusal" if "error" in message else "answer")
                found = self._complaint(item, message, asked)
        except Exception as problem:  # it is the test that fails, never what is tested
            found = f"cannot be looked at: {problem!r}"
        self.seen[item.version, kind, asked] += 1
        if found and len(self.odd) < 20:
            self.odd.append(Odd(item.version, asked or kind, item.frame, found))

    def judge(self, excuse: str | None, *, passed: bool) -> str:
        """Return what is wrong with what a test sent, or nothing; and forget it.

        Args:
            excuse: Why the test may send odd frames, if it may.
            passed: Whether it did all that it wanted to.
        """
        odd, self.odd = self.odd, []
        self.seen.clear()
        self._asked.clear()
        if excuse is not None and not excuse:
            return "odd_frames wants a reason"
        if excuse is None:
            return "\n".join(["sent what its schema forbids:", *map(str, odd)]) if odd else ""
        if passed and not odd and SPEC.is_dir():
            return f"sent no odd frame, and needs no excuse any more: {excuse}"
        return ""

    def _complaint(self, item: Outgoing, message: dict[str, Any], asked: str) -> str:
        if item.method != message.get("method", ""):
            return f"is sent for {item.method!r}"
        key = item.version, asked, shape(message)
        if (found := self._complaints.get(key)) is None:
            if len(self._complaints) >= _MOST:
                self._complaints.clear()
            found = self._complaints[key] = _complaint(item.version, message, asked)
        return found


def _unlike_a_line(frame: bytes) -> str:
    fine = frame.isascii() and frame.endswith(b"\n") and frame.count(b"\n") == 1
    return "" if fine else "is not one line of ASCII"


def _complaint(version: str, message: dict[str, Any], asked: str) -> str:
    """Return what the schema of its version has against a message, or nothing."""
    try:
        check_sent(version, message, asked)
        said = said_version(message)
        assert said in (None, version), f"names version {said}"
    except ValidationError as problem:
        return f"{problem.json_path.removeprefix('$.')}: {problem.message[:600]}"
    except AssertionError as problem:
        return str(problem) or "has members that none should have"
    return ""


def said_version(message: dict[str, Any]) -> Any:
    """Return the version that a message itself says it is of, or None."""
    params = message.get("params") or {}
    if message.get("method") == "initialize":
        return params["protocolVersion"]
    return (params.get("_meta") or {}).get("io.modelcontextprotocol/protocolVersion")


def shape(value: Any, depth: int = 0) -> Any:
    """Return what a schema can tell of a value: members, types, and the words that it knows."""
    kind = type(value)
    if kind is str:
        return value if value in words() else str
    if kind is dict:
        if depth > _DEEP:
            return dict
        return tuple([(key, shape(one, depth + 1)) for key, one in value.items()])
    if kind is list:
        if depth > _DEEP:
            return list
        return frozenset([shape(one, depth + 1) for one in value])
    if kind is int or kind is float:
        # 1.0 is an integer; 0 and 1 are the only bounds in what we send.
        return float if value != value // 1 else int, (value > 0) + (value > 1) - (value < 0)
    return kind


@cache
def words() -> frozenset[str]:
    """Return every text that a schema tells from others, and the versions' names."""
    found = set[str]((*HANDSHAKE, *STATELESS))
    todo: list[Any] = [schema(one) for one in (*HANDSHAKE, *STATELESS, TASKS)]
    while todo:
        one = todo.pop()
        if isinstance(one, dict):
            enum = one.get("enum")  # of a property with that name it is a schema
            told = [one.get("const"), *(enum if isinstance(enum, list) else ())]
            found |= {word for word in told if isinstance(word, str)}
            todo += one.values()
        elif isinstance(one, list):
            todo += one
    return frozenset(found)


FRAMES = Frames()


def watch() -> Frames:
    """Have every connection's frames looked at from now on; return where they are found."""
    if SPEC.is_dir() and not hasattr(Connection.send, "__wrapped__"):
        _before(Connection, "send", lambda connection, item: FRAMES.sent(item))
        _before(Connection, "_file", _filed)
        _answering()
    return FRAMES


def _filed(connection: Connection, call: Call) -> None:
    FRAMES.sent(call.item)


def _before(owner: type, name: str, look: Callable[[Any, Any], None]) -> None:
    real = getattr(owner, name)

    @functools.wraps(real)
    def looking(self: Any, thing: Any) -> None:
        look(self, thing)
        real(self, thing)

    setattr(owner, name, looking)


def _answering() -> None:
    # Only here an answer and the request that it answers are seen together.
    real = Session.answer

    @functools.wraps(real)
    def noting(self: Session, ask: Ask, result: Any) -> Outgoing:
        item = real(self, ask, result)
        FRAMES.answers(item, ask.method)
        return item

    setattr(Session, "answer", noting)  # noqa: B010
