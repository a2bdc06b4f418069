"""What a line says, read strictly: a request, a notice, an answer, or what is wrong with it.

An id is kept as the bytes it was written in, so that it goes back exactly so, a number of thirty
digits included. Knows no session and answers nothing but what cannot be read.

https://www.jsonrpc.org/specification
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec
from msgspec import Raw, Struct

from mcpclient.protocol import envelope, methods, oddlines
from mcpclient.protocol.envelope import NOTHING
from mcpclient.serverkit.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    PARSE_ERROR,
    RpcError,
)

T = TypeVar("T")
BROKEN = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
NULL = b"null"
_BOM = b"\xef\xbb\xbf"
# Which member of the params a proxy may route by (Mcp-Name over HTTP).
_NAMED_BY = {
    methods.TOOLS_CALL: "name",
    methods.PROMPTS_GET: "name",
    methods.RESOURCES_READ: "uri",
    methods.TASKS_GET: "taskId",
    methods.TASKS_UPDATE: "taskId",
    methods.TASKS_CANCEL: "taskId",
}


class Reply(Struct):
    """An answer on its way out.

    Attributes:
        frame: The line, its LF included.
        code: The code of the error that it is, or None for a result.
        status: The HTTP status that goes with it.
        data: The error's data, or None.
    """

    frame: bytes
    code: int | None = None
    status: int = 200
    data: Any = None


class Params:
    """The params of a message: its members undecoded, each read when it is needed."""

    __slots__ = ("_members", "raw")

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self._members: dict[str, Raw] = decoded(raw, dict[str, Raw], "params") if raw else {}

    def __contains__(self, name: str) -> bool:
        return name in self._members

    def get(self, name: str) -> Raw:
        """Return a member as received; empty if it is absent or null."""
        found = self._members.get(name, NOTHING)
        return NOTHING if len(memoryview(found)) == 4 and bytes(found) == NULL else found

    def text(self, name: str) -> str:
        """Return a member that must be text.

        Raises:
            RpcError: It is absent, or something else.
        """
        found = self.get(name)
        if not found:
            raise RpcError(INVALID_PARAMS, f"Missing parameter: {name}")
        return decoded(found, str, f"params.{name}")

    def value(self, name: str, type: type[T], default: T) -> T:
        """Return a member of a type, or the default if it is absent or null.

        Raises:
            RpcError: It is something else.
        """
        found = self.get(name)
        return decoded(found, type, f"params.{name}") if found else default

    def whole(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return decoded(self.raw, dict[str, Any], "params") if self.raw else {}


class Request(Struct):
    """A request.

    Attributes:
        id: Its id, the JSON as it was written.
        method: Its method.
        params: Its params.
        meta: Its ``_meta``.
        era: The era's rules for it, once that is known.
    """

    id: bytes
    method: str
    params: Params
    meta: dict[str, Any]
    era: Any = None

    @property
    def key(self) -> bytes:
        """What a cancellation names it by."""
        return key_of(self.id)

    @property
    def name(self) -> str | None:
        """What of it a proxy may route by, or None."""
        member = _NAMED_BY.get(self.method)
        try:
            return self.params.value(member, str, "") if member else None
        except RpcError:
            return None


class Notification(Struct):
    """A notification."""

    method: str
    params: Params


class Response(Struct):
    """An answer to what we asked.

    Attributes:
        id: The number that we gave it, or None if it is none of ours.
        result: The result, or empty.
        error: The error, or empty.
    """

    id: int | None
    result: Raw
    error: Raw


class Fault(Struct):
    """What cannot be taken, and the answer to it."""

    reply: Reply


class Batch(Struct):
    """Several messages on one line (2025-03-26)."""

    items: list[Request | Notification | Response | Fault]


Item = Request | Notification | Response | Fault | Batch


class _Wire(Struct):
    jsonrpc: Raw = NOTHING
    id: Raw = NOTHING
    method: Raw = NOTHING
    params: Raw = NOTHING
    result: Raw = NOTHING
    error: Raw = NOTHING


class _Error(Struct):
    code: int = 0
    message: str = ""
    data: Any = None


_decode = msgspec.json.Decoder(_Wire).decode
_decode_batch = msgspec.json.Decoder(list[Raw]).decode
_decode_text = msgspec.json.Decoder(str).decode
_NUMBER = frozenset(b"-0123456789")


def read(line: bytes, *, batches: bool = False, most: int = 1000) -> list[Item]:
    """Return what a line holds: nothing if it is blank, else one item. Never raises.

    Args:
        line: The line, with or without its end.
        batches: Whether several messages may stand in an array.
        most: How many.
    """
    line = line.removeprefix(_BOM).strip(b" \t\r\n")
    if not line:
        return []
    if line[:1] == b"[":
        return [_batch(line, most) if batches else _unbatched(line)]
    return [read_one(line)]


def read_one(
    line: bytes, *, null_is_absent: bool = False
) -> Request | Notification | Response | Fault:
    """Return the one message that some JSON is. Never raises.

    Args:
        line: The JSON.
        null_is_absent: Whether a request whose id is null is a notification, and not a fault.
    """
    try:
        if not line.isascii():
            line.decode()  # Raw would put the check of the text off
        wire = _decode(line)
    except msgspec.ValidationError:
        return fault(INVALID_REQUEST, "Invalid request: not a JSON object")
    except BROKEN:
        return fault(PARSE_ERROR, "Parse error: not one JSON value in UTF-8")
    id = legal_id(wire.id)
    if bytes(wire.jsonrpc) != b'"2.0"':
        return fault(INVALID_REQUEST, 'Invalid request: jsonrpc must be "2.0"', id or NULL)
    if not wire.method:
        return _answer(wire, id)
    try:
        method = _decode_text(wire.method)
    except BROKEN:
        return fault(INVALID_REQUEST, "Invalid request: method must be text", id or NULL)
    if null_is_absent and bytes(wire.id) == NULL:
        wire.id = NOTHING
    if wire.id and id is None:
        return fault(INVALID_REQUEST, "Invalid request: id must be text or a number")
    raw = NOTHING if bytes(wire.params) == NULL else wire.params
    try:
        params = Params(raw)
        meta = params.value("_meta", dict[str, Any], {})
    except RpcError as problem:
        if id is None:
            return Notification(method, Params(NOTHING))
        return fault(INVALID_PARAMS, problem.message, id)
    if id is None:
        return Notification(method, params)
    return Request(id, method, params, meta)


def fault(
    code: int, message: str, id: bytes = NULL, data: Any = None, *, status: int = 400
) -> Fault:
    """Return the refusal of what cannot be taken."""
    return Fault(refusal(id, RpcError(code, message, data), status))


def refusal(id: bytes, problem: RpcError, status: int = 200) -> Reply:
    """Return the reply that is a JSON-RPC error."""
    frame = envelope.refusal(Raw(id), problem.code, problem.message, problem.data)
    return Reply(frame, problem.code, status, problem.data)


def legal_id(id: Raw) -> bytes | None:
    """Return an id as it was written if it is text or a number, else None."""
    written = bytes(id)
    return written if written[:1] == b'"' or (written and written[0] in _NUMBER) else None


def key_of(id: bytes) -> bytes:
    """Return one key for all ways to write the same text; a number is what it was written as."""
    if id[:1] == b'"' and b"\\" in id:
        try:
            return msgspec.json.encode(_decode_text(id))
        except BROKEN:
            pass
    return id


def decoded(raw: Raw | bytes, type: type[T], what: str) -> T:
    """Return some JSON as a value.

    Raises:
        RpcError: It has another shape, or is not Unicode.
    """
    try:
        return msgspec.json.decode(raw, type=type)
    except msgspec.ValidationError as problem:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {told(problem, what)}") from None
    except BROKEN:
        raise RpcError(INVALID_PARAMS, f"Invalid params: {what} cannot be read") from None


def told(problem: Exception, what: str) -> str:
    """Return where something is wrong and why, from msgspec's words for it."""
    reason, _, place = str(problem).partition(" - at `$")
    return f"{what}{place.rstrip('`')}: {reason}"


def error_of(raw: Raw) -> tuple[int, str, Any]:
    """Return code, message and data of an error that a client answered, however odd it is."""
    try:
        found = msgspec.json.decode(raw, type=_Error)
    except BROKEN:
        return 0, bytes(raw).decode("utf-8", "replace"), None
    return found.code, found.message, found.data


def _answer(wire: _Wire, id: bytes | None) -> Response | Fault:
    if not (wire.result or wire.error):
        return fault(INVALID_REQUEST, "Invalid request: method is missing", id or NULL)
    number = int(id) if id is not None and id.isdigit() and len(id) < 19 else None
    error = NOTHING if bytes(wire.error) == NULL else wire.error
    return Response(number, wire.result, error)


def _unbatched(line: bytes) -> Fault:
    try:
        _decode_batch(line)
    except BROKEN:
        return fault(PARSE_ERROR, "Parse error: not one JSON value in UTF-8")
    return fault(
        INVALID_REQUEST, "Invalid request: one message at a time, arrays are of 2025-03-26"
    )


def _batch(line: bytes, most: int) -> Batch | Fault:
    try:
        if not line.isascii():
            line.decode()
        members = _decode_batch(line)
    except BROKEN:
        return fault(PARSE_ERROR, "Parse error: not one JSON value in UTF-8")
    if not members:
        return fault(INVALID_REQUEST, "Invalid request: an empty array")
    if len(members) > most:
        # Two bytes ask for an answer of a hundred.
        return fault(INVALID_REQUEST, f"Invalid request: over {most} messages in one array")
    items = [read_one(bytes(member)) for member in members]
    for place, item in enumerate(items):
        if isinstance(item, Request) and item.method == methods.INITIALIZE:
            items[place] = fault(INVALID_REQUEST, "initialize must stand alone", item.id)
    return Batch(items)


def plain(raw: Raw, what: str) -> Any:
    """Return what a client answered as plain values.

    Raises:
        RemoteProtocolError: It cannot be read.
    """
    try:
        return msgspec.json.decode(raw)
    except BROKEN:
        return msgspec.json.decode(oddlines.repaired(bytes(raw)))
