"""Asks the host for the trace context of each request. A request never fails for its trace.

The requests that open a conversation carry none: an old server is not to be tried with them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from mcpclient.ground.text import printable
from mcpclient.protocol.trace import context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpclient.protocol.trace import Trace

_log = logging.getLogger("mcpclient")


class Tracer:
    """Puts trace context into the params of the requests to one server."""

    __slots__ = ("_server", "_trace")

    def __init__(self, trace: Trace, server: str) -> None:
        self._trace = trace
        self._server = server

    def __call__(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return the params as they are to be sent."""
        try:
            kept, odd = context(self._trace(self._server, method) or {})
        except Exception:  # the user's code
            _log.exception("%s ! the trace callback raised at %s", self._server, method)
            return params
        for key in odd:
            told = printable(str(key), 100)
            _log.warning("%s ! %s of %s is no trace context; left out", self._server, told, method)
        if not kept:
            return params
        params = params or {}
        # What the caller of this very request says counts more.
        return {**params, "_meta": {**kept, **(params.get("_meta") or {})}}
