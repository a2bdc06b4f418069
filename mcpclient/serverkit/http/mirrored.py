"""What headers repeat of a message, held against the message: a proxy may have gone by them. Pure.

https://modelcontextprotocol.io/specification/2026-07-28/basic/transports/streamable-http
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.ground.text import printable
from mcpclient.protocol import methods
from mcpclient.protocol.eras.stateless import VERSION_KEY
from mcpclient.protocol.mirror import Mirror
from mcpclient.serverkit.errors import RpcError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpclient.serverkit.components import Tool
    from mcpclient.serverkit.incoming import Request

_PARAM = "mcp-param-"


def mismatch(headers: Mapping[str, str], request: Request, tools: Mapping[str, Tool]) -> str | None:
    """Return what the headers of a request of the stateless era say otherwise than its body.

    Args:
        headers: By name in lower case.
        request: The request.
        tools: What there is to call.
    """
    version = headers.get("mcp-protocol-version")
    meant = request.meta.get(VERSION_KEY)
    if version is None:
        return "the header MCP-Protocol-Version is missing"
    if isinstance(meant, str) and version != meant:
        return _differs("MCP-Protocol-Version", version, meant)
    method = headers.get("mcp-method")
    if method is None:
        return "the header Mcp-Method is missing"
    if method != request.method:
        return _differs("Mcp-Method", method, request.method)
    name = request.name
    if name and (problem := _compared("Mcp-Name", headers.get("mcp-name"), name)):
        return problem
    if request.method == methods.TOOLS_CALL and name is not None and name in tools:
        return _params(headers, request, tools[name])
    return None


def decoded(value: str) -> str | None:
    """Return what a header's value means, or None if it is in Base64 that is none."""
    if not (value.startswith("=?base64?") and value.endswith("?=") and len(value) >= 11):
        return value
    try:
        return base64.b64decode(value[9:-2], validate=True).decode()
    except ValueError:
        return None


def _params(headers: Mapping[str, str], request: Request, tool: Tool) -> str | None:
    if not tool.header_params:
        return None
    mirror = Mirror()
    if mirror.learn(tool.name, tool.schema) is not None:
        return None  # no client may show such a tool, so none can know what to repeat
    try:
        arguments: dict[str, Any] = request.params.value("arguments", dict[str, Any], {})
    except RpcError:
        return None  # that is answered as what it is
    try:
        found = mirror.headers({"name": tool.name, "arguments": arguments})
    except LocalProtocolError as problem:
        return str(problem)
    wanted = {name.decode().lower(): value.decode() for name, value in found}
    for name in tool.header_params:
        key = _PARAM + name.lower()
        meant = decoded(wanted[key]) if key in wanted else None
        if told := _compared(f"Mcp-Param-{name}", headers.get(key), meant):
            return told
    return None


def _compared(name: str, value: str | None, meant: str | None) -> str | None:
    if value is None:
        return None if meant is None else f"the header {name} is missing"
    if meant is None:
        return f"the header {name} repeats what the body does not say"
    found = decoded(value)
    if found is None:
        return f"the header {name} is in Base64 that cannot be read"
    return None if found == meant else _differs(name, found, meant)


def _differs(name: str, said: str, meant: str) -> str:
    return f"the header {name} says {printable(said, 100)!r}, the body {printable(meant, 100)!r}"
