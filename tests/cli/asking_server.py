"""A server that asks its person, and waits for the files that a test makes.

`late` tells of progress until the file `ask` is there, asks, tells on until `end` is there.
`fickle` asks, and takes the question back once the file `back` is there.
"""

import json
import os
import sys
import time


def put(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def get():
    return json.loads(sys.stdin.readline() or "null")


def tell(token, name):
    done = 0
    while not os.path.exists(name):
        done += 1
        params = {"progressToken": token, "progress": done, "total": 1000, "message": f"to {name}"}
        put(method="notifications/progress", params=params)
        time.sleep(0.05)


def asked():
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    put(id="q", method="elicitation/create", params={"message": "Who?", "requestedSchema": schema})


def call(id, params):
    token = (params.get("_meta") or {}).get("progressToken")
    if params["name"] == "late":
        tell(token, "ask")
        asked()
        while (message := get()) and message.get("id") != "q":
            pass
        tell(token, "end")
        return json.dumps(message["result"])
    asked()
    while not os.path.exists("back"):
        time.sleep(0.02)
    put(method="notifications/cancelled", params={"requestId": "q"})
    return "never mind"


while message := get():
    id, method = message.get("id"), message.get("method")
    if method == "initialize":
        info = {"name": "asking", "version": "1"}
        opened = {"capabilities": {"tools": {}}, "serverInfo": info}
        put(id=id, result={"protocolVersion": "2025-11-25", **opened})
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("late", "fickle")]
        put(id=id, result={"tools": tools})
    elif method == "tools/call":
        text = call(id, message["params"])
        put(id=id, result={"content": [{"type": "text", "text": text}]})
    elif id is not None and method is not None:
        put(id=id, error={"code": -32601, "message": "no such method"})
