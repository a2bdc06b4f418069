"""Drives `everything` with FastMCP's client, and prints what it saw as JSON.

    python fast.py MODE,MODE URL            over HTTP
    python fast.py MODE,MODE COMMAND ARGS…  over stdio

Runs in an environment that has `fastmcp`; imports nothing of ours.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import mcp_types as types
from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError

ANSWERS = {"username": "ann", "email": "ann@example.com"}


async def sample(messages: Any, params: Any, context: Any) -> str:
    """Answer as a model."""
    return "Paris"


async def elicit(message: str, kind: Any, params: Any, context: Any) -> ElicitResult[Any]:
    """Answer as a person."""
    return ElicitResult(action="accept", content=ANSWERS)


def text(result: Any) -> str:
    """Return the first text of a result."""
    return str(result.content[0].text)


async def drive(mode: str, target: list[str]) -> dict[str, Any]:
    """Use all that the client has."""
    server: Any = target[0]
    if not target[0].startswith("http"):
        server = StdioTransport(command=target[0], args=target[1:], keep_alive=False)
    logged: list[Any] = []
    found: dict[str, Any] = {}

    async def log(message: Any) -> None:
        logged.append(message.data)

    async with Client(
        server,
        mode=mode,
        timeout=30,
        roots=["file:///data/a"],
        sampling_handler=sample,
        elicitation_handler=elicit,
        log_handler=log,
    ) as client:
        found["version"] = client.protocol_version
        found["server"] = client.server_info.name
        found["instructions"] = client.instructions
        found["tools"] = [tool.name for tool in await client.list_tools()]
        found["prompts"] = [one.name for one in await client.list_prompts()]
        found["resources"] = [str(one.uri) for one in await client.list_resources()]
        found["templates"] = [one.uri_template for one in await client.list_resource_templates()]
        found["echo"] = text(await client.call_tool("echo", {"text": "grüße \u2028"}))
        found["add"] = (await client.call_tool("add", {"a": 1, "b": 2})).structured_content
        try:
            await client.call_tool("fail", {"text": "why"})
        except ToolError as problem:
            found["raised"] = str(problem)
        failed = await client.call_tool("fail", {"text": "why"}, raise_on_error=False)
        found["fail"] = [failed.is_error, *(block.text for block in failed.content)]
        kinds = (await client.call_tool("kinds", {})).content
        found["kinds"] = [block.type for block in kinds]
        progress: list[Any] = []

        async def tell(done: float, total: float | None, message: str | None) -> None:
            progress.append([done, total, message])

        slow = {"seconds": 0.3}
        found["slow"] = text(await client.call_tool("slow", slow, progress_handler=tell))
        found["progress"] = progress
        several = [client.call_tool("echo", {"text": str(n)}) for n in range(20)]
        found["several"] = [text(one) for one in await asyncio.gather(*several)]
        meta = {} if mode == "legacy" else {"io.modelcontextprotocol/logLevel": "info"}
        await client.call_tool("log", {"level": "warning", "n": 2}, meta=meta)
        found["logged"] = logged
        [motd] = await client.read_resource("everything://motd")
        found["motd"] = motd.text
        [blob] = await client.read_resource("everything://bytes")
        found["blob"] = blob.blob
        [hello] = await client.read_resource("everything://greeting/Ada")
        found["greeting"] = hello.text
        arguments = {"arg1": "a", "arg2": "b"}
        prompt = await client.get_prompt("test_prompt_with_arguments", arguments)
        found["prompt"] = [[one.role, one.content.text] for one in prompt.messages]
        ref = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        completed = await client.complete(ref, {"name": "arg1", "value": "par"})
        found["completed"] = completed.values
        found["sampled"] = text(await client.call_tool("test_sampling", {"prompt": "?"}))
        found["elicited"] = text(await client.call_tool("test_elicitation", {"message": "?"}))
        found["roots"] = text(await client.call_tool("list_roots", {}))
        try:
            await client.call_tool("no_such_tool", {})
        except Exception as problem:  # whatever it is: the test reads it
            found["unknown"] = str(problem)
        if mode == "legacy":
            assert await client.ping()
    return found


if __name__ == "__main__":
    modes = sys.argv[1].split(",")
    print(json.dumps({mode: asyncio.run(drive(mode, sys.argv[2:])) for mode in modes}))
