"""What an import costs and what it drags in, seen from outside: whole interpreters in turn."""

from __future__ import annotations

import json
import time

from bench.children import run
from bench.plan import Who
from bench.probe import Figures, median

STATEMENTS: dict[Who, tuple[str, str]] = {
    "ours": ("import mcpclient", "from mcpclient import Manager"),
    "sdk": ("import mcp", "from mcp import Client, StdioServerParameters"),
}

# The other ways in, which must not cost an editor more.
FACES: dict[Who, dict[str, str]] = {
    "ours": {
        "handles_ms": "import mcpclient.handles",
        "blocking_ms": "import mcpclient.blocking",
        "handles_first_name_ms": "from mcpclient.handles import Manager",
        "blocking_first_name_ms": "from mcpclient.blocking import Manager",
    },
    "sdk": {},
}

HTTP = [
    *["aiohttp", "h11", "h2", "http.client", "http.server", "httpcore", "httpcore2", "httpx"],
    *["httpx2", "httpx_sse", "requests", "sse_starlette", "starlette", "urllib.request"],
    *["urllib3", "uvicorn"],
]
LOOPS = ["anyio._backends._asyncio", "anyio._backends._trio", "asyncio", "trio", "uvloop"]


def seconds(python: str, code: str, limit: float) -> float:
    """Time one interpreter from its start to its end."""
    start = time.perf_counter()
    run([python, "-c", code], limit)
    return time.perf_counter() - start


def measure(who: Who, python: str, repeat: int, limit: float) -> Figures:
    """Compare a bare interpreter, the import, and the import of the first name one needs."""
    package, first_name = STATEMENTS[who]
    code = f"import json, sys\n{package}\nprint(json.dumps(sorted(sys.modules)))"
    modules = json.loads(run([python, "-c", code], limit))  # this also writes the byte code
    loaded = [name for name in HTTP + LOOPS if name in modules]
    run([python, "-c", first_name], limit)
    faces = FACES[who]
    for statement in faces.values():
        run([python, "-c", statement], limit)
    spans: dict[str, list[float]] = {
        statement: [] for statement in ("pass", package, first_name, *faces.values())
    }
    for _ in range(repeat):
        for statement, taken in spans.items():
            taken.append(seconds(python, statement, limit))
    bare = median(spans["pass"])
    return {
        "bare_ms": bare * 1e3,
        "import_ms": (median(spans[package]) - bare) * 1e3,
        "first_name_ms": (median(spans[first_name]) - bare) * 1e3,
        **{name: (median(spans[face]) - bare) * 1e3 for name, face in faces.items()},
        "loaded": loaded,
    }
