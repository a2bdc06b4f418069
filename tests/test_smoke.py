from __future__ import annotations
from mcpclient import Manager
from tests.conftest import spec

async def test_a_tool_answers(manager: Manager) -> None:
    server = await manager.add("good", spec("good_handshake"))
    assert (await server.invoke_tool("echo", {"text": "hi"})).text == "hi"

def test_sync() -> None:
    pass
