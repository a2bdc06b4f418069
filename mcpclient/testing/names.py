"""What has another name today than in the recording: ids, tokens, the home directory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from mcpclient.protocol import methods
from mcpclient.testing import acts
from mcpclient.testing.acts import as_mapping, frame

if TYPE_CHECKING:
    from mcpclient.testing.acts import Act
    from mcpclient.testing.recording import Entry
    from mcpclient.testing.redaction import Redaction

_SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


def key(id: Any) -> str:
    """Return an id as a key: 1 and "1" are two, 1 and 1.0 are one."""
    return json.dumps(int(id) if isinstance(id, float) and id.is_integer() else id)


class Names:
    """The names of one life."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction
        self._ids: dict[str, Any] = {}
        self._tokens: dict[str, Any] = {}

    def same(self, recorded: dict[str, Any], now: dict[str, Any]) -> None:
        """Note that a request is the same as a recorded one."""
        if "id" in recorded and "method" in recorded:
            self._ids[key(recorded["id"])] = now.get("id")
            if (token := _token(recorded)) is not None:
                self._tokens[key(token)] = _token(now)

    def id(self, recorded: Any) -> Any:
        """Return what a recorded id of the client's is now."""
        return self._ids.get(key(recorded), recorded)

    def comparable(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return what of a message must be the same."""
        if "method" not in message:
            return {name: message[name] for name in ("result", "error") if name in message}
        params = as_mapping(message.get("params"))
        return {name: value for name, value in params.items() if name != "_meta"}

    def said(self, entry: Entry, *, last: bool = False) -> list[Act]:
        """Return what says an entry of the server's again.

        Args:
            entry: The entry.
            last: Whether the server ends after it, so that half a line is one.
        """
        if entry.dir == "x":
            # A server that ended because it was asked to will be asked to.
            return [] if entry.asked else [acts.End(entry.code, entry.signal)]
        if entry.message is UNSET:
            text = self._redaction.here(entry.raw or "")
            data = text.encode("utf-8", "surrogateescape")
            return [acts.Write(data if last else data + b"\n")]
        message = dict(entry.message)
        params = as_mapping(message.get("params"))
        if "method" not in message:
            message["id"] = self.id(message.get("id"))
        elif message["method"] == methods.PROGRESS:
            token = self._tokens.get(key(params.get("progressToken")))
            if token is None:
                return []  # its caller does not want to know this time
            message["params"] = {**params, "progressToken": token}
        elif _SUBSCRIPTION in (meta := as_mapping(params.get("_meta"))):
            stream = self.id(meta[_SUBSCRIPTION])
            message["params"] = {**params, "_meta": {**meta, _SUBSCRIPTION: stream}}
        message.pop("jsonrpc", None)
        return [acts.Write(frame(self._redaction.here(message)))]


def _token(message: dict[str, Any]) -> Any:
    meta = as_mapping(as_mapping(message.get("params")).get("_meta"))
    return meta.get("progressToken")
