"""What servers answer, as lines of a buffer, and what went wrong, as one line for a person.

Knows the shapes of results and errors; knows no editor. A buffer may hold any character, so texts
stay as they are there; whatever ends up in a message or a table is made printable.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from mcpclient import (
    CallLost,
    McpClientError,
    RestartsExhausted,
    ServerUnavailable,
    SpawnFailed,
    ToolError,
)
from mcpclient.cli.problems import Failure, failure
from mcpclient.ground.text import printable, size
from mcpclient.protocol.content import (
    AudioContent,
    EmbeddedResource,
    ImageContent,
    ResourceContents,
    ResourceLink,
    TextContent,
)

if TYPE_CHECKING:
    from mcpclient import PromptResult, ResourceResult, ToolResult
    from mcpclient.handles import Server
    from mcpclient.protocol.content import Content

# What an editor takes in one go without a person noticing, in characters.
_MOST = 2 * 1024 * 1024
_FENCE = "`" * 4
_KINDS = {
    "application/json": "json",
    "application/xml": "xml",
    "application/yaml": "yaml",
    "text/css": "css",
    "text/html": "html",
    "text/javascript": "javascript",
    "text/markdown": "markdown",
    "text/x-python": "python",
    "text/xml": "xml",
}


def lines(text: str) -> list[str]:
    """Return a text as lines that an editor takes; what is too much is cut, and says so."""
    kept = text[:_MOST].encode("utf-8", "replace").decode("utf-8")
    found = kept.replace("\r\n", "\n").split("\n")
    if len(text) > _MOST:
        found.append(f"… cut here: the whole has {len(text)} characters")
    elif len(found) > 1 and not found[-1]:
        found.pop()  # the newline at the end ends a line, it begins none
    return found


def of_tool(result: ToolResult) -> list[str]:
    """Return a tool's result as Markdown."""
    parts = [_block(one) for one in result.content]
    if result.has_structured and not any(isinstance(one, TextContent) for one in result.content):
        parts.append(_fenced(json.dumps(result.structured, indent=2, ensure_ascii=False), "json"))
    return lines("\n\n".join(parts) or "(the tool answered nothing)")


def of_prompt(result: PromptResult) -> list[str]:
    """Return a prompt as Markdown, a heading for each of who speaks."""
    said = [f"## {printable(one.role, 50)}\n\n{_block(one.content)}" for one in result.messages]
    return lines("\n\n".join(said) or "(the prompt is empty)")


def of_resource(result: ResourceResult) -> dict[str, Any]:
    """Return a resource's ``lines``, and its ``filetype`` if that is known."""
    contents = result.contents
    kinds = {_KINDS.get((one.mime_type or "").partition(";")[0].strip()) for one in contents}
    kind = kinds.pop() if len(kinds) == 1 else None
    return {"lines": lines("\n".join(map(_contents, contents))), "filetype": kind or ""}


def of_log(server: Server, told: list[str]) -> list[str]:
    """Return what a server did and said of itself: its state, its deaths, stderr, its messages."""
    now = server.status()
    facts = [now.state, f"life {now.generation}"]
    facts += [str(one) for one in (now.pid and f"pid {now.pid}", now.era, now.version) if one]
    found = [f"# {printable(server.name)}: {', '.join(facts)}"]
    found += ["", "## Incidents", ""]
    found += [f"- {one}" for one in server.incidents] or ["(none)"]
    if told:
        found += ["", "## Messages", "", *told]
    return [*found, "", "## The end of stderr", "", *lines(server.stderr_tail() or "(nothing)")]


def row(server: Server) -> dict[str, Any]:
    """Return what a table shows of a server."""
    now = server.status()
    return {
        "name": server.name,
        "state": now.state,
        "era": now.era or "",
        "version": printable(now.version or "", 40),
        "pid": now.pid or 0,
        "life": now.generation,
        "calls": now.calls,
        "in_flight": now.in_flight,
        "last": printable(now.last_incident, 300),
    }


def sentence(problem: BaseException, server: str = "") -> str:
    """Return what went wrong as one printable line, with what to do next in the editor."""
    named = printable(server, 100)
    match problem:
        case ToolError():
            text = problem.message.strip().partition("\n")[0] or "it does not say why"
            text = f'tool "{problem.tool}" failed: {text}'
        case Failure() | McpClientError():
            text = str(failure(problem))
        case _:
            text = f"{type(problem).__name__}: {problem}"
    match problem:
        case RestartsExhausted():
            text += f"; :McpStart {named} tries again, :McpLog {named} tells more"
        case ServerUnavailable() if "start()" in text:
            text = text.replace("call start() first", f":McpStart {named} starts it")
        case SpawnFailed():
            pass  # it says what to do
        case ServerUnavailable() | CallLost() if named:
            text += f"; :McpLog {named} tells more"
    return printable("; ".join(text.split("\n")), 1000)


def details(problem: BaseException) -> list[str]:
    """Return all that there is to read of a problem, if that is more than its sentence."""
    return of_tool(problem.result) if isinstance(problem, ToolError) else []


def _block(one: Content) -> str:
    match one:
        case TextContent():
            return one.text
        case ImageContent() | AudioContent():
            return f"({_binary(one.mime_type, one.data)})"
        case ResourceLink():
            label = printable(one.title or one.name or one.uri, 200)
            return f"[{label}]({printable(one.uri)})"
        case EmbeddedResource():
            kind = _KINDS.get(one.resource.mime_type or "", "")
            return f"{printable(one.resource.uri)}\n{_fenced(_contents(one.resource), kind)}"
        case _:
            return _fenced(json.dumps(one.data, indent=2, ensure_ascii=False), "json")


def _contents(one: ResourceContents) -> str:
    return f"({_binary(one.mime_type, one.blob)})" if one.blob is not None else one.text or ""


def _binary(kind: str | None, data: str) -> str:
    return f"binary, {printable(kind or 'of no kind', 100)}, {size(len(data) * 3 // 4)}"


def _fenced(text: str, kind: str) -> str:
    fence = _FENCE
    while fence in text:
        fence += "`"
    return f"{fence}{kind}\n{text}\n{fence}"
