"""A server worth exploring: odd names, enums, pictures, and texts that would take over a terminal.

Of the handshake era, on the standard library alone. `slow {mark}` makes a file and is never
answered; `cancelled` tells how many requests were cancelled, `asked` which methods came. `grow`
adds a tool and tells so.
"""

import json
import os
import sys

PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5E"
    "rkJggg=="
)
EVIL = "\x1b]0;owned\x07\x1b[2J"
MARKDOWN = "# Read\x1b[2J me\n\n<script>alert(1)</script> ![x](http://example.com/x.png)\n"


def tool(name, description="", required=(), **properties):
    schema = {"type": "object", "properties": properties, "required": list(required)}
    return {"name": name, "description": description, "inputSchema": schema}


TEXT = {"type": "string"}
TOOLS = [
    tool(
        "status",
        f"Tells its arguments.\nAll of them{EVIL}.",
        ["path"],
        mode={"enum": ["short", "long", 'q"uote'], "default": "short", "description": "How much"},
        path={"type": "string", "description": f"Where{EVIL}"},
        deep={"type": "boolean"},
        **{"max-count": {"type": "integer"}, "from": TEXT},
    ),
    tool("echo", "Returns its text.", ["text"], text=TEXT),
    tool("odd-name", "Has a hyphen."),
    tool("class", "Is a keyword."),
    tool("_repr_html_", "Wants to be called by a notebook."),
    tool("keys", "Is called as a method of a dict."),
    tool("picture", "A picture."),
    tool("album", "Words and two pictures."),
    tool("evil", "Tells the terminal what to do."),
    tool("json", "JSON as text."),
    tool("fail", "Fails, in two lines."),
    tool("slow", "Makes a file and is never answered.", mark=TEXT),
    tool("cancelled", "How many requests were cancelled."),
    tool("asked", "Which methods came."),
    tool("grow", "Adds a tool and tells so."),
    tool("die", "Ends the server."),
    {"name": "anything", "inputSchema": {"type": "object"}},
    {
        "name": "hinted",
        "inputSchema": {"type": "object", "properties": {}},
        "annotations": {"readOnlyHint": True, "destructiveHint": False},
    },
]
PROMPTS = [
    {
        "name": "review",
        "description": "Reviews code.",
        "arguments": [{"name": "style"}, {"name": "code", "required": True}],
    }
]
RESOURCES = [
    {"uri": "file:///read.md", "name": "read", "mimeType": "text/markdown", "size": 2048},
    {"uri": "file:///data.json", "name": "data", "mimeType": "application/json"},
    {"uri": "file:///pixel.png", "name": "pixel", "mimeType": "image/png"},
]
TEMPLATES = [{"uriTemplate": "test://item/{name}{?rev}", "name": "item"}]
STYLES = ["kind", "kinder", "strict"]
cancelled = 0
asked = []


def send(message):
    os.write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def block(text):
    return {"content": [{"type": "text", "text": text}]}


def image(kind="image/png"):
    return {"type": "image", "mimeType": kind, "data": PIXEL}


def call(name, arguments):
    if name == "picture":
        return {"content": [image()]}
    if name == "album":
        return {"content": [{"type": "text", "text": "<b>two"}, image(), image("image/svg+xml")]}
    if name == "evil":
        return block(f"one\n\ttwo{EVIL}")
    if name == "json":
        return block('{"b": [1, "\\u00fc"]}')
    if name == "fail":
        return {**block("it failed\nand why"), "isError": True}
    if name == "cancelled":
        return block(str(cancelled))
    if name == "asked":
        return block(json.dumps(asked))
    if name == "grow":
        TOOLS.append(tool("grown", "Was not there before."))
        send({"method": "notifications/tools/list_changed"})
        return block("grown")
    if name == "die":
        os._exit(3)
    return block(arguments["text"] if name == "echo" else json.dumps(arguments))


def read(uri):
    if uri.endswith(".md"):
        return {"uri": uri, "mimeType": "text/markdown", "text": MARKDOWN}
    if uri.endswith(".png"):
        return {"uri": uri, "mimeType": "image/png", "blob": PIXEL}
    return {"uri": uri, "mimeType": "application/json", "text": json.dumps({"uri": uri})}


def complete(params):
    reference, argument = params["ref"], params["argument"]
    words = STYLES if reference.get("name") == "review" else ["one", "two"]
    if (params.get("context") or {}).get("arguments", {}).get("code") == "shout":
        words = [word.upper() for word in words]
    return {"values": [word for word in words if word.startswith(argument["value"])]}


def answer(method, params):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {
                "tools": {"listChanged": True},
                "resources": {},
                "prompts": {},
                "completions": {},
            },
            "serverInfo": {"name": "explored", "version": f"1.0{EVIL}"},
            "instructions": "Look around.\nAnd be careful.",
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        return call(params["name"], params.get("arguments") or {})
    if method == "prompts/list":
        return {"prompts": PROMPTS}
    if method == "prompts/get":
        text = f"{params['arguments']}"
        return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}
    if method == "resources/list":
        return {"resources": RESOURCES}
    if method == "resources/templates/list":
        return {"resourceTemplates": TEMPLATES}
    if method == "resources/read":
        return {"contents": [read(params["uri"])]}
    if method == "completion/complete":
        return {"completion": complete(params)}
    return None


for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method", "")
    if method == "notifications/cancelled":
        cancelled += 1
    if "id" not in message:
        continue
    asked.append(method)
    params = message.get("params") or {}
    if method == "tools/call" and params["name"] == "slow":
        if mark := (params.get("arguments") or {}).get("mark"):
            open(mark, "x").close()
        continue
    found = answer(method, params)
    if found is None:
        send({"id": message["id"], "error": {"code": -32601, "message": f"no {method}"}})
    else:
        send({"id": message["id"], "result": found})
