"""What happens to servers, as lines for people and as JSON lines for programs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from mcpclient.cli import safe
from mcpclient.protocol import methods

if TYPE_CHECKING:
    from mcpclient.cli.out import Out
    from mcpclient.manager.server import Server

MESSAGE = "notifications/message"
# What servers may tell without being asked, in any version of the protocol.
KNOWN = (
    MESSAGE,
    methods.TOOLS_CHANGED,
    methods.PROMPTS_CHANGED,
    methods.RESOURCES_CHANGED,
    methods.RESOURCE_UPDATED,
    methods.TASK_STATUS,
    methods.TASKS_NOTICE,
    "notifications/elicitation/complete",
)
# A server in these stays so: no call of ours would start it again.
OVER = ("failed", "idle")


def message(params: Any) -> str:
    """Return a log message of a server as one line: its level, its logger and what it says."""
    told = params if isinstance(params, dict) else {}
    data = told.get("data")
    words = data if isinstance(data, str) else safe.jsoned(data)
    logger = told.get("logger")
    level = told.get("level")
    parts = [str(level or "log"), *([f"{logger}:"] if isinstance(logger, str) else []), words]
    return safe.line(" ".join(parts))


def notification(method: str, params: Any) -> str:
    """Return a notification as one line."""
    if method == MESSAGE:
        return message(params)
    if method == methods.RESOURCE_UPDATED and isinstance(params, dict):
        return f"updated {params.get('uri')}"
    short = method.removeprefix("notifications/")
    if method in methods.CHANGED_BY:
        return f"{short.removesuffix('/list_changed')} changed"
    return f"{short} {safe.brief(safe.jsoned(params), 300)}"


def state(server: Server, name: str) -> str:
    """Return a change of state as one line, with what is known of the server by then."""
    if name == "up":
        told = server.info
        who = " ".join(str(told[key]) for key in ("name", "version") if told.get(key))
        facts = (server.era, server.protocol_version, f"life {server.generation}", who)
        return f"up: {', '.join(str(one) for one in facts if one)}"
    return name


def tell(out: Out, server: str, text: str, /, **facts: Any) -> None:
    """Tell one thing that happened: a line with the time, or a line of JSON."""
    now = time.time()
    if out.json:
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
        out.document({"at": at, "server": server, **facts}, stream=True)
    else:
        out.row(time.strftime("%H:%M:%S", time.localtime(now)), server, text)
