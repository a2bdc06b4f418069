"""How fast a kit server is on stdio: from its spawn to its first answer, and in calls a second.

    python tests/serverkit/measure.py [LIVES] [CALLS]

Figures mean something only on a machine that does nothing else, with the bytecode written.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

SERVER = '''
from mcpclient.serverkit import Server, serve_stdio

server = Server("echo", "1.0.0")

@server.tool
async def echo(text: str) -> str:
    """Returns its text."""
    return text

serve_stdio(server)
'''
OPENING = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "measure", "version": "1"},
}


def line(method: str, params: object, id: int) -> bytes:
    """Return the line of a request."""
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
    return json.dumps(message).encode() + b"\n"


def spawned(script: str) -> subprocess.Popen[bytes]:
    """Start a server and wait for its first answer."""
    process = subprocess.Popen(
        [sys.executable, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line("initialize", OPENING, 0))
    process.stdin.flush()
    assert b'"result"' in process.stdout.readline()
    return process


def up(script: str, lives: int) -> list[float]:
    """Return how many milliseconds each life took to answer, the shortest first."""
    found = []
    for _ in range(lives):
        begun = time.perf_counter()
        process = spawned(script)
        found.append((time.perf_counter() - begun) * 1000)
        process.communicate()
    return sorted(found)


def rate(script: str, calls: int) -> float:
    """Return how many calls a second are answered to a client that does not wait for answers."""
    process = spawned(script)
    arguments = {"name": "echo", "arguments": {"text": "x" * 100}}
    frames = [line("tools/call", arguments, id) for id in range(1, calls + 1)]
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    def write() -> None:
        for start in range(0, calls, 50):
            stdin.write(b"".join(frames[start : start + 50]))
            stdin.flush()

    begun = time.perf_counter()
    threading.Thread(target=write).start()
    for _ in range(calls):
        stdout.readline()
    took = time.perf_counter() - begun
    process.communicate()
    return calls / took


def main() -> None:
    """Print the figures."""
    lives, calls = [*map(int, sys.argv[1:]), 30, 50_000][:2]
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "echo_server.py"
        script.write_text(SERVER)
        times = up(str(script), lives)
        print(f"up: median {times[lives // 2]:.0f} ms, best {times[0]:.0f} ms, of {lives}")
        print(f"echo: {rate(str(script), calls):,.0f} calls/s")


if __name__ == "__main__":
    main()
