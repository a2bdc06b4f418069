"""A server kit: for tests, fixtures and small tools, in both eras of the protocol.

Not a framework for production; see docs/serverkit.md for what it is for and what it is not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcpclient.serverkit.asks import Ask, Elicited, Root, Sampled
from mcpclient.serverkit.components import Component, Prompt, Resource, Tool
from mcpclient.serverkit.errors import (
    AskFailed,
    AskInvalid,
    AskRefused,
    AskTimedOut,
    MissingCapability,
    NotFound,
    RpcError,
    ToolFailure,
)
from mcpclient.serverkit.exchange import Peer
from mcpclient.serverkit.frame import Frame
from mcpclient.serverkit.hooks import NEXT
from mcpclient.serverkit.options import KitLimits
from mcpclient.serverkit.response import Response
from mcpclient.serverkit.schema import Schema
from mcpclient.serverkit.server import Server
from mcpclient.serverkit.session import Session
from mcpclient.serverkit.stdio import serve_stdio
from mcpclient.serverkit.stores import MemoryStore, SqliteStore, Store
from mcpclient.serverkit.tasks import TaskOptions

if TYPE_CHECKING:
    from mcpclient.serverkit.http import Bearer, HttpLimits, Identity, asgi, serve_http

__all__ = [
    "NEXT",
    "Ask",
    "AskFailed",
    "AskInvalid",
    "AskRefused",
    "AskTimedOut",
    "Bearer",
    "Component",
    "Elicited",
    "Frame",
    "HttpLimits",
    "Identity",
    "KitLimits",
    "MemoryStore",
    "MissingCapability",
    "NotFound",
    "Peer",
    "Prompt",
    "Resource",
    "Response",
    "Root",
    "RpcError",
    "Sampled",
    "Schema",
    "Server",
    "Session",
    "SqliteStore",
    "Store",
    "TaskOptions",
    "Tool",
    "ToolFailure",
    "asgi",
    "serve_http",
    "serve_stdio",
]

_HTTP = frozenset({"Bearer", "HttpLimits", "Identity", "asgi", "serve_http"})


def __getattr__(name: str) -> Any:
    # A server on stdio starts without them.
    if name in _HTTP:
        from mcpclient.serverkit import http

        return getattr(http, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
