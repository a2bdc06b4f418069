"""The client under test: what a user of the library would write for each scenario.

    python tests/conformance/client.py [asyncio | trio] URL

The suite names the scenario, the version to speak, and for some what to do, in variables of the
environment. It ends with 0 if all went as it should.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from mcpclient import Manager, Server, ServerSpec

# Nothing the suite wants takes as long; and a shell that is killed leaves its children.
SECONDS = 50
Scenario = Callable[[Server], Awaitable[None]]


async def opening(server: Server) -> None:
    """Open, and list what there is."""
    await server.start()
    await server.list_tools()


async def adding(server: Server) -> None:
    """Call a tool with numbers."""
    result = await server.invoke_tool("add_numbers", {"a": 5, "b": 3})
    assert "8" in result.text, result.text


async def reconnecting(server: Server) -> None:
    """Call a tool whose answer comes on another stream than it was asked on."""
    result = await server.invoke_tool("test_reconnection", {})
    assert "success" in result.text, result.text


async def defaults(server: Server) -> None:
    """Call a tool that asks for a form, of which the person fills in nothing."""
    await server.invoke_tool("test_client_elicitation_defaults", {})


async def everything(server: Server) -> None:
    """Ask of all kinds, by what the lists name."""
    for tool in await server.list_tools():
        await server.invoke_tool(tool.name, {})
    for resource in await server.list_resources():
        await server.read_resource(resource.uri)
    for prompt in await server.list_prompts():
        await server.get_prompt(prompt.name, {})


async def replaying(server: Server) -> None:
    """Call the tools that the suite names, with its arguments."""
    await server.list_tools()
    for call in json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["toolCalls"]:
        await server.invoke_tool(call["name"], call["arguments"])


async def whatever_is_listed(server: Server) -> None:
    """Call all tools that the library lets one see."""
    values = {"string": "a text", "object": {}, "array": [], "number": 1.5, "null": None}
    for tool in await server.list_tools():
        properties = tool.input_schema.get("properties", {})
        arguments = {name: values[one["type"]] for name, one in properties.items()}
        await server.invoke_tool(tool.name, arguments)


async def rounds(server: Server) -> None:
    """Call tools that ask for more, and one that does not while another waits."""
    assert {tool.name for tool in await server.list_tools()} >= {"test_mrtr_echo_state"}
    for name in ("test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type"):
        result = await server.invoke_tool(name, {})
        assert result.text.endswith("ok"), result.text


async def echoing(server: Server) -> None:
    """Hand a schema back as it came."""
    tools = {tool.name: tool for tool in await server.list_tools()}
    schema = tools["json_schema_2020_12_tool"].input_schema
    await server.invoke_tool("json_schema_echo", {"schema": schema})


SCENARIOS: dict[str, Scenario] = {
    "initialize": opening,
    "tools_call": adding,
    "sse-retry": reconnecting,
    "elicitation-sep1034-client-defaults": defaults,
    "request-metadata": opening,
    "http-standard-headers": everything,
    "http-custom-headers": replaying,
    "http-invalid-tool-headers": whatever_is_listed,
    "sep-2322-client-request-state": rounds,
    "json-schema-ref-no-deref": opening,
    "json-schema-2020-12-preservation": echoing,
}


async def answer(server: Server, params: Any) -> dict[str, Any]:
    """Accept a form as it is; in the rounds, call another tool before."""
    if "confirmed" in params["requestedSchema"]["properties"]:
        await server.invoke_tool("test_mrtr_unrelated", {})
        return {"action": "accept", "content": {"confirmed": True}}
    return {"action": "accept", "content": {}}


def answer_nothing(server: Server, params: Any) -> dict[str, Any]:
    """Be a model that has nothing to say: no scenario asks it."""
    return {"role": "assistant", "model": "none", "content": {"type": "text", "text": ""}}


async def main() -> None:
    """Do what the scenario asks for."""
    scenario = SCENARIOS[os.environ["MCP_CONFORMANCE_SCENARIO"]]
    spec = ServerSpec(url=sys.argv[-1])
    async with Manager(
        {"suite": spec}, roots=[os.getcwd()], on_sample=answer_nothing, on_elicit=answer
    ) as manager:
        await scenario(manager["suite"])


if __name__ == "__main__":
    signal.alarm(SECONDS)
    anyio.run(main, backend=sys.argv[1] if len(sys.argv) > 2 else "asyncio")
