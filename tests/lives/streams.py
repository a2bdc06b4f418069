"""What the tests of servers on sockets share: their specs, and a call that must be answered."""

from __future__ import annotations

from typing import Any

from mcpclient import RestartPolicy, Server, ServerSpec
from tests.faults.matrix import IMPATIENT

KINDS = ("unix", "tcp")
# It goes on for ever, as is the default behind a URL, but does not wait for long.
SOON = RestartPolicy(burst=None, first=0.001, cap=0.005, jitter=0.0)
GONE = "the server closed the connection"


def at(url: str, **options: Any) -> ServerSpec:
    """Return the spec of a server at a URL, which is given little time."""
    return ServerSpec(url=url, **{"timeouts": IMPATIENT, "restart": SOON, **options})


async def echoed(server: Server, text: str) -> None:
    """See that a server answers."""
    assert (await server.invoke_tool("echo", {"text": text})).text == text
