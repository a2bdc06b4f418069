"""Drives `everything` with the official SDK's client, and prints what it saw as JSON.

    python official.py MODE,MODE URL            over HTTP
    python official.py MODE,MODE COMMAND ARGS…  over stdio

Runs in an environment that has `mcp`; imports nothing of ours.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters, stdio_client


class Seen:
    """What came unasked."""

    def __init__(self) -> None:
        self.logged: list[Any] = []
        self.updated = asyncio.Event()

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        self.logged.append(params.data)

    async def message(self, message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            self.updated.set()


async def sample(context: Any, params: types.CreateMessageRequestParams) -> Any:
    """Answer as a model."""
    content = types.TextContent(type="text", text="Paris")
    return types.CreateMessageResult(role="assistant", content=content, model="m")


async def elicit(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Answer as a person."""
    content: dict[str, Any] = {"username": "ann", "email": "ann@example.com", "name": "Ann"}
    wanted = params.requested_schema["properties"]
    return types.ElicitResult(
        action="accept", content={name: content[name] for name in wanted if name in content}
    )


async def roots(context: Any) -> types.ListRootsResult:
    """Tell a root."""
    return types.ListRootsResult(roots=[types.Root(uri="file:///data/a")])


def text(result: Any) -> str:
    """Return the first text of a result."""
    return str(result.content[0].text)


async def drive(mode: str, target: list[str]) -> dict[str, Any]:
    """Use all that the client has."""
    server: Any
    if target[0].startswith("http"):
        server = target[0]
    else:
        server = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    seen = Seen()
    found: dict[str, Any] = {}
    async with Client(
        server,
        mode=mode,
        read_timeout_seconds=30,
        sampling_callback=sample,
        elicitation_callback=elicit,
        list_roots_callback=roots,
        logging_callback=seen.log,
        log_level=None if mode == "legacy" else "info",
        message_handler=seen.message,
    ) as client:
        legacy = client.protocol_version < "2026"
        found["version"] = client.protocol_version
        found["server"] = client.server_info.name
        found["instructions"] = client.instructions
        found["tools"] = [tool.name for tool in (await client.list_tools()).tools]
        found["prompts"] = [one.name for one in (await client.list_prompts()).prompts]
        found["resources"] = [str(one.uri) for one in (await client.list_resources()).resources]
        templates = (await client.list_resource_templates()).resource_templates
        found["templates"] = [one.uri_template for one in templates]
        found["echo"] = text(await client.call_tool("echo", {"text": "grüße \u2028"}))
        found["add"] = (await client.call_tool("add", {"a": 1, "b": 2})).structured_content
        failed = await client.call_tool("fail", {"text": "why"})
        found["fail"] = [failed.is_error, *(block.text for block in failed.content)]
        kinds = (await client.call_tool("kinds")).content
        found["kinds"] = [block.type for block in kinds]
        progress: list[Any] = []

        async def tell(done: float, total: float | None, message: str | None) -> None:
            progress.append([done, total, message])

        slow = {"seconds": 0.3}
        found["slow"] = text(await client.call_tool("slow", slow, progress_callback=tell))
        found["progress"] = progress
        several = [client.call_tool("echo", {"text": str(n)}) for n in range(20)]
        found["several"] = [text(one) for one in await asyncio.gather(*several)]
        await client.call_tool("log", {"level": "warning", "n": 2})
        found["logged"] = seen.logged
        [motd] = (await client.read_resource("everything://motd")).contents
        found["motd"] = motd.text
        [blob] = (await client.read_resource("everything://bytes")).contents
        found["blob"] = blob.blob
        [hello] = (await client.read_resource("everything://greeting/Ada")).contents
        found["greeting"] = hello.text
        prompt = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "b"})
        found["prompt"] = [[one.role, one.content.text] for one in prompt.messages]
        ref = types.PromptReference(type="ref/prompt", name="test_prompt_with_arguments")
        completed = await client.complete(ref, {"name": "arg1", "value": "par"})
        found["completed"] = completed.completion.values
        found["sampled"] = text(await client.call_tool("test_sampling", {"prompt": "?"}))
        found["elicited"] = text(await client.call_tool("test_elicitation", {"message": "?"}))
        rooted = await client.call_tool("list_roots")
        found["roots"] = text(rooted)
        try:
            await client.call_tool("no_such_tool")
        except Exception as problem:  # whatever it is: the test reads it
            found["unknown"] = str(problem)
        if legacy:
            await client.send_ping()
            await client.subscribe_resource("everything://counter")
            await client.call_tool("update", {"uri": "everything://counter"})
            await asyncio.wait_for(seen.updated.wait(), 20)
            found["updated"] = "everything://counter"
        else:
            async with client.listen(resource_subscriptions=["everything://counter"]) as events:
                await client.call_tool("update", {"uri": "everything://counter"})
                event = await asyncio.wait_for(anext(aiter(events)), 20)
                found["updated"] = str(event.uri)
    return found


if __name__ == "__main__":
    modes = sys.argv[1].split(",")
    print(json.dumps({mode: asyncio.run(drive(mode, sys.argv[2:])) for mode in modes}))
