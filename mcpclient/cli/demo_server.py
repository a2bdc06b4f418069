"""The server that ``mcpclient demo`` runs: the standard library and 2025-11-25, nothing else.

Run as a script, so that it shares no code with the client that it is shown with.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

VERSION = "2025-11-25"
NOTES = "demo://notes"

notes = ["The first note was here before you."]
followed = False

TOOLS = [
    {
        "name": "greet",
        "description": "Greets somebody.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": {"type": "string", "description": "Whom to greet."},
                "style": {"type": "string", "enum": ["plain", "loud"], "default": "plain"},
            },
            "required": ["name"],
        },
    },
    {
        "name": "count",
        "description": "Counts, and tells how far it is.",
        "inputSchema": {
            "type": "object",
            "properties": {"to": {"type": "integer", "minimum": 1, "maximum": 1000}},
            "required": ["to"],
        },
    },
    {
        "name": "note",
        "description": "Adds a note.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        },
    },
    {
        "name": "hang",
        "description": "Never answers.",
        "inputSchema": {"type": "object", "properties": {}},
    },
]
PROMPT = {
    "name": "review",
    "description": "Asks for a review of the notes.",
    "arguments": [{"name": "tone", "description": "How it should sound.", "required": True}],
}


def send(message: dict[str, Any]) -> None:
    """Write one message."""
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def told(text: str) -> dict[str, Any]:
    """Return text as a tool's result."""
    return {"content": [{"type": "text", "text": text}]}


def call(params: dict[str, Any]) -> dict[str, Any] | None:
    """Run a tool; None if it does not answer."""
    given = params.get("arguments") or {}
    match params.get("name"):
        case "greet":
            text = f"Hello, {given.get('name')}!"
            return told(text.upper() if given.get("style") == "loud" else text)
        case "count":
            token = (params.get("_meta") or {}).get("progressToken")
            total = min(int(given.get("to", 10)), 1000)
            for done in range(1, total + 1):
                time.sleep(0.05)
                if token is not None:
                    progress = {"progressToken": token, "progress": done, "total": total}
                    send({"method": "notifications/progress", "params": progress})
            return told(f"counted to {total}")
        case "note":
            notes.append(str(given.get("text")))
            if followed:
                send({"method": "notifications/resources/updated", "params": {"uri": NOTES}})
            return told(f"{len(notes)} notes")
        case "hang":
            return None
    return {**told("there is no such tool"), "isError": True}


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request; None if it has none. Raises LookupError: what is wrong."""
    global followed
    match method:
        case "initialize":
            capabilities = {"tools": {}, "resources": {"subscribe": True}, "prompts": {}}
            info = {"name": "demo", "version": "1"}
            return {"protocolVersion": VERSION, "capabilities": capabilities, "serverInfo": info}
        case "tools/list":
            return {"tools": TOOLS}
        case "tools/call":
            return call(params)
        case "resources/list":
            return {"resources": [{"uri": NOTES, "name": "notes", "mimeType": "text/plain"}]}
        case "resources/templates/list":
            return {"resourceTemplates": []}
        case "resources/read" if params.get("uri") == NOTES:
            return {"contents": [{"uri": NOTES, "text": "\n".join(notes)}]}
        case "resources/read":
            raise LookupError(-32002, f"there is no resource {params.get('uri')}")
        case "resources/subscribe":
            followed = True
            return {}
        case "prompts/list":
            return {"prompts": [PROMPT]}
        case "prompts/get":
            tone = (params.get("arguments") or {}).get("tone", "kind")
            text = f"Review these notes, be {tone}:\n" + "\n".join(notes)
            return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
        case "ping" | "resources/unsubscribe":
            return {}
    raise LookupError(-32601, f"there is no method {method}")


def main() -> None:
    """Answer until stdin ends."""
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        try:
            result = answer(message["method"], message.get("params") or {})
        except LookupError as problem:
            code, words = problem.args
            send({"id": message["id"], "error": {"code": code, "message": words}})
            continue
        if result is not None:
            send({"id": message["id"], "result": result})


if __name__ == "__main__":
    main()
