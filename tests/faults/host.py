"""A host that runs five servers and ends as it is told: `host.py BACKEND HOW`.

It prints the pids of all that must not outlive it, as one line of JSON, when all servers are up.
HOW: `waits` to be killed, `exits` by os._exit, `crashes` in native code, `forks` a child that lives
on before it is killed, `execs` another program in its place, `raises` through its loop.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

import anyio

from mcpclient import Manager, Server, ServerSpec, Timeouts

SERVERS = Path(__file__).resolve().parent.parent.parent / "fixtures" / "servers"
NAMES = ("good_handshake", "good_stateless", "ignores_eof", "ignores_eof_and_term", "grandchild")


async def main(how: str) -> None:
    servers = {
        name: ServerSpec(
            sys.executable, [str(SERVERS / f"{name}.py")], timeouts=Timeouts(eof=0.3, term=0.3)
        )
        for name in NAMES
    }
    async with Manager(servers) as manager:
        async with anyio.create_task_group() as group:
            for name in manager:
                group.start_soon(manager[name].start)
        grandchild = int((await manager["grandchild"].invoke_tool("pid")).text)
        watchdog = manager._watchdog
        assert watchdog is not None
        found = {
            "servers": [manager[name].pid for name in manager],
            "grandchild": grandchild,
            "watchdog": watchdog.pid,
            "heir": os.fork() if how == "forks" else None,
        }
        if how == "forks" and found["heir"] == 0:
            time.sleep(60)
            os._exit(0)
        os.write(1, json.dumps(found).encode() + b"\n")
        end(how)
        await busy(manager["good_handshake"])


def end(how: str) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    match how:
        case "exits":
            os._exit(3)
        case "crashes":
            ctypes.string_at(0)
        case "forks":
            os.kill(os.getpid(), signal.SIGKILL)
        case "execs":
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(60)"])
        case "raises":
            raise SystemExit(4)


async def busy(server: Server) -> None:
    while True:
        await server.invoke_tool("slow", {"seconds": 0.05})


if __name__ == "__main__":
    anyio.run(main, sys.argv[2], backend=sys.argv[1])
