"""``tools``, ``resources`` and ``prompts``: what servers offer, as tables or to the letter."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import click

from mcpclient.cli import names
from mcpclient.cli.options import common, state_of
from mcpclient.cli.problems import Failure, exit_code, failure
from mcpclient.cli.schema import Argument, arguments
from mcpclient.cli.shell import completing
from mcpclient.cli.sources import unknown
from mcpclient.ground.errors import McpClientError, ReplyError
from mcpclient.ground.text import size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcpclient.cli.options import State
    from mcpclient.cli.running import Session
    from mcpclient.manager.server import Server
    from mcpclient.protocol.types import Item, Prompt, Tool

# Hints a server gives of a tool; whoever believes them believes the server.
_HINTS = {
    "readOnlyHint": "read-only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open world",
}


@click.command()
@click.argument(
    "words", nargs=-1, metavar="[SERVER [TOOL]]", shell_complete=completing("server", "tool")
)
@common
@click.pass_context
def tools(context: click.Context, words: tuple[str, ...]) -> int:
    """List tools, or say how one is called."""
    state = state_of(context)
    server, tool = _words(state, words, "TOOL")
    if tool is not None:
        return _run(state, server, lambda session: _one_tool(session, tool))
    return _listing(state, server, _tools_of, ("TOOL", "ARGUMENTS", "DESCRIPTION"), tool_row)


@click.command()
@click.argument("words", nargs=-1, metavar="[SERVER]", shell_complete=completing("server"))
@common
@click.pass_context
def resources(context: click.Context, words: tuple[str, ...]) -> int:
    """List resources and templates of resources."""
    state = state_of(context)
    server, more = _words(state, words, "nothing")
    if more is not None:
        raise click.UsageError(f"nothing follows a server's name; to read: mcpclient read {more}")
    head = ("URI", "TYPE", "SIZE", "NAME")
    return _listing(state, server, _resources_of, head, _resource_row)


@click.command()
@click.argument(
    "words", nargs=-1, metavar="[SERVER [PROMPT]]", shell_complete=completing("server", "prompt")
)
@common
@click.pass_context
def prompts(context: click.Context, words: tuple[str, ...]) -> int:
    """List prompts, or say how one is filled in."""
    state = state_of(context)
    server, prompt = _words(state, words, "PROMPT")
    if prompt is not None:
        return _run(state, server, lambda session: _one_prompt(session, prompt))
    head = ("PROMPT", "ARGUMENTS", "DESCRIPTION")
    return _listing(state, server, _prompts_of, head, _prompt_row)


# -- fetching; other commands use these ------------------------------------------------------


async def known_tools(session: Session, server: Server) -> list[Tool]:
    """Return a server's tools, and keep their names for completion."""
    found = await server.list_tools()
    keep(session, server, tools=found)
    return found


async def known_prompts(session: Session, server: Server) -> list[Prompt]:
    """Return a server's prompts, and keep their names for completion."""
    found = await server.list_prompts()
    keep(session, server, prompts=found)
    return found


async def known_resources(session: Session, server: Server) -> list[Item]:
    """Return a server's resources and then its templates, and keep them for completion."""
    found = await server.list_resources()
    try:
        templates = await server.list_resource_templates()
    except ReplyError:
        templates = []  # many a server has resources and knows of no templates
    keep(session, server, resources=found, templates=templates)
    return [*found, *templates]


def keep(session: Session, server: Server, **lists: Sequence[Any]) -> None:
    """Keep names for completion; of a server that follows ``--`` nobody could complete any."""
    if session.source.path is not None:
        import os

        names.store(server.name, session.source.entries[server.name], os.environ, **lists)


def usage_of(session: Session, server: str, tool: Tool) -> str:
    """Return how a tool is called."""
    where = [] if session.source.path is None else [_word(server)]
    parts = ["mcpclient call", *where, _word(tool.name)]
    return " ".join([*parts, *(one.usage for one in arguments(tool.input_schema))])


def _word(text: str) -> str:
    import shlex

    return shlex.quote(text)


def picked(found: Sequence[Any], what: str, name: str, server: str) -> Any:
    """Return the item of a name.

    Raises:
        Failure: There is none.
    """
    for one in found:
        if one.name == name:
            return one
    raise Failure(unknown(what, name, [one.name for one in found], f'on "{server}"'))


# -- lists -------------------------------------------------------------------------------------


def _words(state: State, words: tuple[str, ...], second: str) -> tuple[tuple[str, ...], str | None]:
    """Return the server that is meant, if one is, and what follows its name."""
    if state.adhoc:
        words = ("", *words)
    if len(words) > 2:
        raise click.UsageError(f'"{words[2]}" is one word too many')
    server = words[:1] if words and not state.adhoc else ()
    return server, words[1] if len(words) > 1 else None


def _run(
    state: State, server: tuple[str, ...], work: Callable[[Session], Awaitable[int | None]]
) -> int:
    from mcpclient.cli.running import run  # with it come the loop and the manager

    return run(state, work, server, asking=True)


def _listing(
    state: State,
    server: tuple[str, ...],
    fetch: Callable[[Session, Server], Awaitable[Sequence[Item]]],
    head: tuple[str, ...],
    row: Callable[[Any], tuple[str, ...]],
) -> int:
    async def work(session: Session) -> int:
        async def one(name: str) -> Sequence[Item] | McpClientError:
            try:
                return await fetch(session, session[name])
            except McpClientError as problem:
                return problem  # the others' are listed all the same

        answers = await asyncio.gather(*map(one, session.names))
        code = 0
        lines: list[tuple[str, ...]] = []
        documents: list[dict[str, Any]] = []
        for name, answer in zip(session.names, answers, strict=True):
            if isinstance(answer, McpClientError):
                code = max(code, exit_code(answer))
                continue
            lines += [(name, *row(item)) for item in answer]
            documents += [{**item.raw, "server": name} for item in answer]
        out = session.out
        if out.json:
            out.document(documents)
        elif lines:
            # One server's name in front of every line would tell nothing.
            alone = len(session.names) == 1
            out.table(head if alone else ("SERVER", *head), [one[alone:] for one in lines])
        elif not code:
            out.note("none")
        for answer in answers:
            if isinstance(answer, McpClientError):
                out.problem(failure(answer))
        return code

    return _run(state, server, work)


async def _tools_of(session: Session, server: Server) -> Sequence[Item]:
    return await known_tools(session, server)


async def _prompts_of(session: Session, server: Server) -> Sequence[Item]:
    return await known_prompts(session, server)


async def _resources_of(session: Session, server: Server) -> Sequence[Item]:
    return await known_resources(session, server)


def tool_row(tool: Tool) -> tuple[str, ...]:
    """Return the row of a table about a tool."""
    return tool.name, _short(arguments(tool.input_schema)), tool.description or tool.label


def _prompt_row(prompt: Prompt) -> tuple[str, ...]:
    return prompt.name, _short(_of_prompt(prompt)), prompt.description or prompt.title or ""


def _resource_row(resource: Any) -> tuple[str, ...]:
    uri = getattr(resource, "uri", None) or resource.uri_template
    bytes_ = getattr(resource, "size", None)
    shown = size(bytes_) if bytes_ is not None and bytes_ >= 0 else ""
    return uri, resource.mime_type or "", shown, resource.title or resource.name


def _short(listed: Sequence[Argument]) -> str:
    return " ".join(one.name if one.required else f"[{one.name}]" for one in listed)


def _of_prompt(prompt: Prompt) -> list[Argument]:
    return [
        Argument(
            one.name,
            frozenset({"string"}),
            bool(one.required),
            description=one.description or one.title or "",
        )
        for one in prompt.arguments or ()
    ]


# -- one ---------------------------------------------------------------------------------------


async def _one_tool(session: Session, name: str) -> None:
    out = session.out
    tool = picked(await known_tools(session, session.server), "tool", name, session.server.name)
    if out.json:
        return out.document(tool.raw)
    out.heading(tool.name if tool.label == tool.name else f"{tool.name} – {tool.label}")
    if tool.description:
        out.text(tool.description.strip())
    out.text("")
    out.text(usage_of(session, session.server.name, tool))
    _arguments(session, arguments(tool.input_schema))
    hints = [word for key, word in _HINTS.items() if tool.annotations.get(key) is True]
    if hints:
        out.text(f"\nThe server says that it is {', '.join(hints)}.")
    return None


async def _one_prompt(session: Session, name: str) -> None:
    out = session.out
    server = session.server
    prompt = picked(await known_prompts(session, server), "prompt", name, server.name)
    if out.json:
        return out.document(prompt.raw)
    out.heading(prompt.name if not prompt.title else f"{prompt.name} – {prompt.title}")
    if prompt.description:
        out.text(prompt.description.strip())
    where = [] if session.source.path is None else [_word(server.name)]
    listed = _of_prompt(prompt)
    words = ["mcpclient prompt", *where, _word(prompt.name), *(one.usage for one in listed)]
    out.text("")
    out.text(" ".join(words))
    _arguments(session, listed)
    return None


def _arguments(session: Session, listed: Sequence[Argument]) -> None:
    if not listed:
        return
    rows = []
    for one in listed:
        need = "required" if one.required else f"default {one.default}" if one.default else ""
        rows.append((one.name, one.kind, need, one.description))
    session.out.text("")
    session.out.table(("ARGUMENT", "TYPE", "", "DESCRIPTION"), rows)
