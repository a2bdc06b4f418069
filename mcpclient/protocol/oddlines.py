"""Lines that are no plain message: repaired where the meaning is clear, else described.

Servers print logs, colours, byte order marks, half messages and arrays on their stdout. What
is told here about a line never guesses at its content; only its dress is taken off.
"""

from __future__ import annotations

import re

import msgspec
from msgspec import Raw, Struct

from mcpclient.ground.errors import RemoteProtocolError
from mcpclient.protocol.envelope import NOTHING, Envelope, decode_envelope

# A byte order mark, OSC and CSI sequences and control characters that a terminal would eat.
_DRESS = re.compile(
    rb"(?:\xef\xbb\xbf|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b\[[0-?]*[ -/]*[@-~]"
    rb"|[\x00-\x20\x7f])+"
)
_ANSWER_HEAD = re.compile(
    rb'\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18})\s*,\s*'
    rb'(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"(?:result|error)"'
)
_ANSWER_START = re.compile(rb'\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"(?:result|error)"\s*:')
_ANSWER_TAIL = re.compile(rb'"id"\s*:\s*(\d{1,18})\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*\Z')
LSP = "LSP framing: the server writes Content-Length headers, MCP is one JSON per line"
_HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
_STATE = re.compile(rb'"requestState"\s*:\s*("(?:[^"\\]|\\.)*")')
_NAN = re.compile(rb"[:,\[]\s*-?(?:NaN|Infinity)\b")


class Unreadable(Struct, frozen=True, gc=False):
    """A line that is no message.

    Attributes:
        line: The line.
        hint: What it looks like, or an empty string.
        id: The id of the call it meant to answer, if that much can be read.
    """

    line: bytes
    hint: str = ""
    id: int | None = None


class _Loose(Struct, gc=False):
    jsonrpc: Raw = NOTHING
    id: Raw = NOTHING
    method: Raw = NOTHING
    params: Raw = NOTHING
    result: Raw = NOTHING
    error: Raw = NOTHING


_decode_loose = msgspec.json.Decoder(_Loose).decode
_decode_id = msgspec.json.Decoder(int | str | float | None).decode
_decode_batch = msgspec.json.Decoder(list[Raw]).decode
_BROKEN = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def read(line: bytes) -> list[Envelope | Unreadable]:
    """Return what an odd line holds: one message, several (a batch), none if it is blank."""
    dress = _DRESS.match(line)
    bare = line[dress.end() :] if dress else line
    if not bare:
        return []
    if _HALF_PAIR.search(bare):
        # Half a surrogate pair spoils a line for msgspec wherever it stands (B27).
        if b'"input_required"' in bare and _state_is_halved(bare):
            # Repaired, the server would not get back what it gave (MRTR-04).
            hint = "the requestState is no Unicode text, so it cannot be given back as it came"
            return [Unreadable(line, hint, salvage(bare[:512], bare[-512:]))]
        try:
            bare = repaired(bare)
        except RemoteProtocolError:
            pass
    if bare[:1] == b"[":
        batch = _batch(bare)
        if batch is not None:
            return batch
    return [_one(bare)]


def salvage(head: bytes, tail: bytes) -> int | None:
    """Return the id of the call that a broken or skipped line meant to answer, or None."""
    dress = _DRESS.match(head)
    start = dress.end() if dress else 0
    found = _ANSWER_HEAD.match(head, start)
    if found is None and _ANSWER_START.match(head, start):
        found = _ANSWER_TAIL.search(tail)
    return int(found.group(1)) if found else None


def repaired(payload: bytes) -> bytes:
    """Return a payload with bad UTF-8 and lone surrogates replaced by U+FFFD.

    Raises:
        RemoteProtocolError: It is not JSON for another reason.
    """
    import json  # only what is broken needs it

    try:
        value = json.loads(payload.decode("utf-8", "replace"), parse_constant=_no_constant)
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (ValueError, RecursionError) as problem:
        raise RemoteProtocolError(f"the server's JSON cannot be read: {problem}") from None
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def _state_is_halved(line: bytes) -> bool:
    import json

    found = _STATE.search(line)
    try:
        state = json.loads(found.group(1).decode("utf-8", "replace")) if found else ""
    except ValueError:
        return False
    return any("\ud800" <= one <= "\udfff" for one in state)


def _batch(line: bytes) -> list[Envelope | Unreadable] | None:
    # 2025-03-26 allows arrays of messages (BASE-14); from others they are read all the same.
    try:
        members = _decode_batch(line)
    except _BROKEN:
        return None
    found: list[Envelope | Unreadable] = []
    for member in members:
        try:
            found.append(decode_envelope(member))
        except _BROKEN:
            found.append(_one(bytes(member)))
    return found or [Unreadable(line, "an empty array")]


def _one(line: bytes) -> Envelope | Unreadable:
    for attempt in (bytes, _valid_utf8):
        try:
            return decode_envelope(attempt(line))
        except _BROKEN:
            pass
        loose = _loosely(attempt(line))
        if loose is not None:
            return loose
    return Unreadable(line, _hint(line), salvage(line[:512], line[-512:]))


def _valid_utf8(line: bytes) -> bytes:
    return line.decode("utf-8", "replace").encode()


def _loosely(line: bytes) -> Envelope | None:
    """Read a JSON object whose members have odd types; None if it is not even that."""
    try:
        loose = _decode_loose(line)
    except _BROKEN:
        return None
    envelope = Envelope(params=loose.params, result=loose.result, error=loose.error)
    envelope.jsonrpc = bytes(loose.jsonrpc).decode("utf-8", "replace").strip('"') or None
    if bytes(loose.method) not in (b"", b"null"):
        try:
            envelope.method = msgspec.json.decode(loose.method, type=str)
        except _BROKEN:
            return None
    if loose.id:
        try:
            envelope.id = _decode_id(loose.id)
        except _BROKEN:
            # An id of no legal type matches none of ours and cannot be given back.
            envelope.id = None
    return envelope


def _hint(line: bytes) -> str:
    if line[:15].lower() == b"content-length:":
        return LSP
    if line.strip() in (b"{", b"["):
        return "multi-line JSON: each message must stand on one line"
    if line[:1] == b"{":
        if _NAN.search(line):
            return "NaN or Infinity, which is not JSON"
        if line.count(b"[") + line.count(b"{") > 500:
            return "JSON that is nested too deeply, or broken"
        return "broken JSON"
    return ""


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")
