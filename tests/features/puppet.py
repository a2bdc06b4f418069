"""A server that does as it is told: `puppet.py SCRIPT`, so that a test says what is answered when.

SCRIPT is a JSON object: `era`, `capabilities` (null: declared without the member), and `answers`:
for each method a list of answers, used one after the other, the last one again and again. An
answer is an object with `result` or `error`; its `before` is a list of notifications sent with it
in one write, and `exit` a code to exit with at once after it.

Reads that have no scripted answer give how many reads there were. The tool `journal` gives all
messages received, the tool `exit` ends the process with `code`. These notifications are orders:

puppet/hold {method}             requests of the method get no answer until they are released
puppet/release {method, answer}  answers what is held of it, and holds no more
puppet/say {method, params, n}   sends a notification n times, once if not given
"""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "fixtures" / "servers"))

import _wire

script = json.loads(sys.argv[1])
stateless = script["era"] == "stateless"
journal, held, reads = [], {}, 0


def opened(message):
    id = message["id"]
    if stateless:
        reply = _wire.discover_result(id)
        if message["method"] != "server/discover":
            return _wire.method_not_found(message)
    elif message["method"] == "initialize":
        reply = _wire.initialize_result(id)
    else:
        return _wire.method_not_found(message)
    reply["result"]["capabilities"] = script["capabilities"]
    if script["capabilities"] is None:
        del reply["result"]["capabilities"]
    return reply


def default(message):
    """The answer to a request that the script does not tell of."""
    global reads
    params = _wire.params(message)
    if message["method"] in ("initialize", "server/discover"):
        return opened(message)
    if message["method"] == "resources/read":
        reads += 1
        contents = {"uri": params.get("uri"), "text": str(reads)}
        return _wire.result(message["id"], {"contents": [contents]})
    if _wire.called(message) == "journal":
        return _wire.text(message["id"], json.dumps(journal))
    if _wire.called(message) == "exit":
        os._exit(_wire.arguments(message)["code"])
    return _wire.answer(message)


def respond(message, answer=None):
    if answer is None:
        following = script["answers"].get(message["method"])
        # Of the tools only `sin` is scripted.
        if following and _wire.called(message) in (None, "sin"):
            answer = following.pop(0) if len(following) > 1 else following[0]
    if answer is None:
        answer = default(message)
    frame = {"jsonrpc": "2.0", "id": message["id"]}
    frame |= {key: answer[key] for key in ("result", "error") if key in answer}
    if stateless and isinstance(frame.get("result"), dict):
        frame["result"].setdefault("resultType", "complete")
    before = [
        _wire.notification(one["method"], one.get("params")) for one in answer.get("before", ())
    ]
    _wire.write(b"".join(map(_wire.line, [*before, frame])))
    if "exit" in answer:
        os._exit(answer["exit"])


def obey(method, params):
    if method == "puppet/hold":
        held[params["method"]] = []
    elif method == "puppet/release":
        for message in held.pop(params["method"], ()):
            respond(message, params.get("answer"))
    elif method == "puppet/say":
        notice = _wire.notification(params["method"], params.get("params"))
        _wire.write(_wire.line(notice) * params.get("n", 1))


for message in _wire.messages():
    method = message.get("method")
    if method is not None and not method.startswith("puppet/"):
        journal.append(message)
    if method is None:
        continue
    if "id" not in message:
        obey(method, _wire.params(message))
    elif method in held:
        held[method].append(message)
    else:
        respond(message)
os._exit(0)
