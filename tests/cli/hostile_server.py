"""A server whose every text tries something on a terminal. The standard library only."""

import json
import sys

# Clears the screen, sets the title, an 8-bit CSI, a bell, turns text around; and looks like markup.
EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\x07\x08\x7f\u202e\u2066\u2028[bold red]x[/] "
URI = f"evil://{EVIL}"
TOOLS = [
    {
        "name": "evil",
        "title": EVIL,
        "description": EVIL,
        "inputSchema": {
            "type": "object",
            "properties": {f"a{EVIL}": {"enum": [EVIL], "description": EVIL}},
        },
    },
    {"name": f"e{EVIL}", "inputSchema": {"type": "object"}},
    {"name": "fail", "inputSchema": {"type": "object"}},
    {"name": "refuse", "inputSchema": {"type": "object"}},
    {"name": "long", "inputSchema": {"type": "object"}},
]


def send(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tool(id, params):
    text = {"type": "text", "text": EVIL}
    if params["name"] == "fail":
        return {"content": [text], "isError": True}
    if params["name"] == "refuse":
        return None
    if params["name"] == "long":
        token = params["_meta"]["progressToken"]
        send(
            {
                "method": "notifications/progress",
                "params": {"progressToken": token, "progress": 1, "total": 2, "message": EVIL},
            }
        )
        return "later"
    link = {"type": "resource_link", "uri": URI, "name": EVIL, "mimeType": EVIL}
    blob = {"type": "resource", "resource": {"uri": URI, "mimeType": EVIL, "blob": "AAAA"}}
    image = {"type": "image", "mimeType": EVIL, "data": "AAAA"}
    return {"content": [text, link, blob, image, {"type": EVIL, "x": EVIL}]}


def main():
    sys.stderr.write(EVIL + "\n")
    sys.stderr.flush()
    for line in sys.stdin:
        message = json.loads(line)
        method, params, id = message["method"], message.get("params") or {}, message.get("id")
        result = None
        if method == "initialize":
            result = {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "logging": {}},
                "serverInfo": {"name": EVIL, "version": EVIL},
            }
        elif method == "notifications/initialized":
            data = {"level": "error", "logger": EVIL, "data": EVIL}
            send({"method": "notifications/message", "params": data})
            send({"method": "notifications/resources/updated", "params": {"uri": URI}})
            continue
        elif method == "tools/list":
            result = {"tools": TOOLS}
        elif method == "resources/list":
            result = {"resources": [{"uri": URI, "name": EVIL, "mimeType": EVIL}]}
        elif method == "prompts/list":
            arguments = [{"name": f"p{EVIL}", "description": EVIL}]
            result = {"prompts": [{"name": f"p{EVIL}", "title": EVIL, "arguments": arguments}]}
        elif method == "tools/call":
            result = tool(id, params)
            if result == "later":
                continue
        elif method in ("ping", "logging/setLevel"):
            result = {}
        if id is None:
            continue
        if result is None:
            send({"id": id, "error": {"code": -32601, "message": EVIL, "data": EVIL}})
        else:
            send({"id": id, "result": result})


main()
