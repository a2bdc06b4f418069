"""The kit over HTTP: an ASGI application for any host, and a way to run it alone.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
"""

from __future__ import annotations

from mcpclient.serverkit.http.alone import serve_http
from mcpclient.serverkit.http.app import AsgiApp, asgi
from mcpclient.serverkit.http.options import Bearer, HttpLimits, Identity

__all__ = ["AsgiApp", "Bearer", "HttpLimits", "Identity", "asgi", "serve_http"]
