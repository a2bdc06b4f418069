"""Getting prompts. Knows that their arguments are text.

https://modelcontextprotocol.io/specification/2026-07-28/server/prompts
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.protocol.methods import PROMPTS_GET
from mcpclient.protocol.types import PromptResult

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcpclient.connection.caller import Caller, Timeout


async def get(
    caller: Caller,
    name: str,
    arguments: Mapping[str, str] | None,
    timeout: Timeout,
) -> PromptResult:
    """Return a prompt with its arguments filled in."""
    for key, value in (arguments or {}).items():
        if not isinstance(value, str):
            raise LocalProtocolError(
                f"the argument {key!r} of the prompt {name!r} must be text, "
                f"not {type(value).__name__}; write it as a string"
            )
    params = {"name": name, "arguments": arguments or {}}
    return PromptResult(await caller.request(PROMPTS_GET, params, timeout))
