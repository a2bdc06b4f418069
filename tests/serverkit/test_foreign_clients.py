"""Two clients that nobody here wrote drive `everything`, over stdio and HTTP, in both eras."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT, SERVERS
from tests.serverkit.test_asgi_life import everything

DRIVERS = Path(__file__).parent / "drivers"
# Which driver runs in which environment, and what makes that.
CLIENTS = {
    "official": ("py", "scripts/setup_real.py"),
    "fast": ("fastmcp", "scripts/setup_real.py fastmcp"),
}
VERSIONS = {"legacy": "2025-11-25", "auto": "2026-07-28"}
TRANSPORTS = ("stdio", "http")


@cache
def driven(client: str, transport: str) -> dict[str, dict[str, Any]]:
    """Return what a client saw, by its mode; one process for both."""
    environment, _ = CLIENTS[client]
    python = ROOT / ".real" / environment / "bin" / "python"
    command = [str(python), str(DRIVERS / f"{client}.py"), ",".join(VERSIONS)]
    if transport == "stdio":
        return _run([*command, sys.executable, str(SERVERS / "everything.py")])
    with everything() as (_, host, port):
        return _run([*command, f"http://{host}:{port}/mcp"])


def _run(command: list[str]) -> dict[str, dict[str, Any]]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-4000:]
    found: dict[str, dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("mode", VERSIONS)
@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_that_we_did_not_write_finds_all_that_there_is(
    client: str, transport: str, mode: str
) -> None:
    environment, made_by = CLIENTS[client]
    if not (ROOT / ".real" / environment / ".stamp").exists():
        pytest.skip(f".real/{environment} is not there (python {made_by})")
    seen = driven(client, transport)[mode]
    assert (seen["version"], seen["server"]) == (VERSIONS[mode], "everything")
    assert seen["instructions"] == "A fixture server; all its tools are harmless."
    assert len(seen["tools"]) > 40
    assert seen["tools"] == sorted(seen["tools"])
    assert "test_prompt_with_arguments" in seen["prompts"]
    assert "everything://motd" in seen["resources"]
    assert "everything://greeting/{name}" in seen["templates"]
    assert seen["echo"] == "grüße \u2028"
    assert seen["add"] == {"sum": 3.0}
    assert seen["fail"] == [True, "it failed", "why"]
    assert seen["kinds"] == ["text", "image", "audio", "resource_link", "resource", "resource"]
    assert seen["slow"] == "waited 0.3"
    assert seen["progress"] == [[n, 3.0, f"step {n} of 3"] for n in range(3)]
    assert seen["several"] == [str(number) for number in range(20)]
    assert seen["logged"] == [{"message": 1}, {"message": 2}]
    assert seen["motd"] == "Everything in its place."
    assert base64.b64decode(seen["blob"]) == bytes(range(256))
    assert seen["greeting"] == "Hello, Ada!"
    assert seen["prompt"] == [["user", "Prompt with arguments: arg1='a', arg2='b'"]]
    assert seen["completed"] == ["paris", "park", "party"]
    assert seen["sampled"] == "LLM response: Paris"
    person = '{"username": "ann", "email": "ann@example.com"}'
    assert seen["elicited"] == f"User response: action=accept, content={person}"
    assert seen["roots"] == '["file:///data/a"]'
    assert "Tool not found: no_such_tool" in seen["unknown"]
    if client == "official":
        assert seen["updated"] == "everything://counter"
    else:
        assert seen["raised"] == "it failed"
