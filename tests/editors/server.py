"""A server for an editor: a resource of many lines, tools that take their time, hostile texts.

Of the handshake era, on the standard library alone. Resources `notes://list` (the lines that the
tool `write {lines}` gave it), `notes://evil` and `notes://huge`. Tools: `hold {n, of}` reports
progress and is never answered, `later` is answered at `go`, `subscribed` and `cancelled` tell what
came, `evil` fails with texts that would take over a terminal, `paint` has choices and returns its
arguments, `code {code}` returns it in capitals.
"""

import json
import os
import sys

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b2J"
TEXT = {"type": "string"}
TOOLS = {
    "write": {"lines": {"type": "array", "items": TEXT}},
    "hold": {"n": {"type": "integer"}, "of": {"type": "integer"}},
    "later": {},
    "go": {},
    "subscribed": {},
    "cancelled": {},
    "evil": {},
    "paint": {
        "colour": {"enum": ["red", "light red", "blue"]},
        "deep": {"type": "boolean"},
        "shape": {"type": "object"},
        "text": TEXT,
    },
    "code": {"code": TEXT},
    f"odd{EVIL}": {},
}
notes = [f"note {number}" for number in range(1, 31)]
subscribed = []
cancelled = 0
waiting = []


def send(message):
    data = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
    while data:
        data = data[os.write(1, data) :]


def block(text, **more):
    return {"content": [{"type": "text", "text": text}], **more}


def call(name, arguments, meta, id):
    global notes
    if name == "later":
        waiting.append(id)
        return None
    if name == "go":
        for one in waiting:
            send({"id": one, "result": block("it is later")})
        return block(str(len(waiting)))
    if name == "write":
        notes = arguments["lines"]
        send({"method": "notifications/resources/updated", "params": {"uri": "notes://list"}})
        return block("written")
    if name == "hold":
        progress = {
            "progressToken": meta["progressToken"],
            "progress": arguments["n"],
            "total": arguments["of"],
            "message": f"100% sure{EVIL}",
        }
        send({"method": "notifications/progress", "params": progress})
        return None
    if name == "subscribed":
        return block(json.dumps(subscribed))
    if name == "cancelled":
        return block(str(cancelled))
    if name == "evil":
        return block(f"it{EVIL} failed\nand why{EVIL}", isError=True)
    if name == "code":
        return block(arguments["code"].upper() + "\n")
    return block(json.dumps(arguments))


def read(uri):
    if uri == "notes://evil":
        return {"text": f"{EVIL}\nvim: set tabstop=13 :", "mimeType": "text/markdown"}
    if uri == "notes://huge":
        return {"text": "line\n" * 1_000_000}
    return {"text": "\n".join(notes)}


def answer(method, params, id):
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}, "resources": {"subscribe": True}},
            "serverInfo": {"name": "notes", "version": f"1.0{EVIL}"},
        }
    if method == "tools/list":
        listed = []
        for name, properties in TOOLS.items():
            schema = {"type": "object", "properties": properties}
            listed.append({"name": name, "inputSchema": schema})
        return {"tools": listed}
    if method == "tools/call":
        return call(params["name"], params.get("arguments") or {}, params.get("_meta") or {}, id)
    if method == "resources/list":
        names = ("list", "evil", "huge")
        return {"resources": [{"uri": f"notes://{name}", "name": name} for name in names]}
    if method == "resources/templates/list":
        return {"resourceTemplates": []}
    if method == "resources/read":
        return {"contents": [{"uri": params["uri"], **read(params["uri"])}]}
    if method == "resources/subscribe":
        subscribed.append(params["uri"])
        return {}
    if method == "resources/unsubscribe":
        subscribed.remove(params["uri"])
        return {}
    raise KeyError(method)


for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "notifications/cancelled":
        cancelled += 1
    if "id" not in message:
        continue
    try:
        result = answer(message["method"], message.get("params") or {}, message["id"])
    except KeyError as unknown:
        send({"id": message["id"], "error": {"code": -32601, "message": f"no {unknown}"}})
    else:
        if result is not None:
            send({"id": message["id"], "result": result})
