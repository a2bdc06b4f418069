"""What the tests of checked results share: the server that answers as it is told, and its verbs."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from mcpclient import OutputInvalid, Server, ServerSpec, Timeouts, ToolResult
from tests.conftest import spec

STRICT = Timeouts(eof=1.0, term=0.5, check=10.0)
ERAS = ["handshake", "stateless"]


def schemas(
    *words: str, era: str = "handshake", validate: str = "strict", **more: Any
) -> ServerSpec:
    """Return the spec of the server that answers as it is told."""
    more.setdefault("timeouts", STRICT)
    return spec("schemas", era, *words, validate=validate, **more)


async def told(
    server: Server, tool: str, *, verb: str = "invoke_tool", **result: Any
) -> ToolResult:
    """Call a tool that answers with this result."""
    found: ToolResult = await getattr(server, verb)(tool, {"result": result})
    return found


async def raised(server: Server, tool: str, **result: Any) -> OutputInvalid:
    """Call a tool that answers with this result, and return the error that it becomes."""
    with pytest.raises(OutputInvalid) as caught:
        await told(server, tool, **result)
    problem = caught.value
    assert (problem.tool, problem.server) == (tool, server.name)
    return problem


async def counts(server: Server) -> dict[str, int]:
    found: dict[str, int] = (await server.call_tool("counts")).structured
    return found


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the warnings of results, without what else is logged."""
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno == logging.WARNING and record.name == "mcpclient"
    ]
