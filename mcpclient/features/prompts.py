"""Getting prompts. Knows that their arguments are text.

https://modelcontextprotocol.io/specification/2026-07-28/server/prompts
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.protocol.methods import PROMPTS_GET
from mcpclient.protocol.types import PromptResult

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mcpclient.connection.caller import Caller, Timeout
    from mcpclient.protocol.types import Prompt


async def get(
    caller: Caller,
    name: str,
    arguments: Mapping[str, str] | None,
    timeout: Timeout,
    known: Iterable[Prompt] = (),
) -> PromptResult:
    """Return a prompt with its arguments filled in.

    Args:
        caller: Who asks.
        name: The prompt's name.
        arguments: Text by name.
        timeout: Seconds.
        known: The prompts that are known without asking.
    """
    for key, value in (arguments or {}).items():
        if not isinstance(value, str):
            raise LocalProtocolError(
                f"the argument {key!r} of the prompt {name!r} must be text, "
                f"not {type(value).__name__}; write it as a string"
            )
    declared = next((one.arguments for one in known if one.name == name), None) or ()
    for argument in declared:
        # An empty text is a value (B197).
        if argument.required and argument.name not in (arguments or {}):
            raise LocalProtocolError(
                f"the prompt {name!r} requires the argument {argument.name!r}; nothing was sent"
            )
    params = {"name": name, "arguments": arguments or {}}
    return PromptResult(await caller.request(PROMPTS_GET, params, timeout))
