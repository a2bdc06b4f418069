"""``call``, ``read``, ``prompt`` and ``complete``: one question to one server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mcpclient.cli.options import common, state_of
from mcpclient.cli.problems import REFUSED, Failure
from mcpclient.cli.shell import completing

if TYPE_CHECKING:
    from mcpclient.cli.options import State
    from mcpclient.cli.running import Session, Work

_file = click.option(
    "-o",
    "--output",
    "file",
    metavar="FILE",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Save images, sounds and other binary parts there; - is stdout.",
)


@click.command()
@_file
@click.argument(
    "words",
    nargs=-1,
    metavar="SERVER TOOL [NAME=VALUE | NAME:=JSON | -]...",
    shell_complete=completing("server", "tool", "arguments"),
)
@common
@click.pass_context
def call(context: click.Context, file: str | None, words: tuple[str, ...]) -> int:
    """Call a tool.

    NAME=VALUE becomes what the tool's schema says: text, a number, a boolean; one that is a list
    may be given several times. NAME:=JSON is JSON to the letter. With - the arguments are read
    from stdin, one JSON object, and are not checked.
    """
    from mcpclient.cli import blocks, lists
    from mcpclient.cli.bar import progress
    from mcpclient.cli.words import converted, from_stdin, pairs

    state = state_of(context)
    server, (tool, *rest) = _asked(state, words, "TOOL")
    given, base = from_stdin(list(rest))
    pairs(given)  # what is wrong with them is told before a server starts

    async def work(session: Session) -> int:
        asked = session.server
        _show_messages(session)
        if base is None:
            found = await lists.known_tools(session, asked)
            known = lists.picked(found, "tool", tool, asked.name)
            usage = f"usage: {lists.usage_of(session, asked.name, known)}"
            arguments = converted(given, known.input_schema, usage)
        else:
            arguments = {**base, **converted(given, None, "")}
        async with progress(session.out, tool) as told:
            result = await asked.call_tool(tool, arguments, on_progress=told)
        if result.is_error:
            if session.out.json:
                session.out.document(result.raw)
            raise Failure(
                f'tool "{tool}" failed: {result.error_text.strip() or "it does not say why"}',
                REFUSED,
                type="ToolError",
                server=asked.name,
                tool=tool,
            )
        blocks.show_result(session.out, result, file)
        return 0

    return _run(state, server, work)


@click.command()
@_file
@click.argument(
    "words",
    nargs=-1,
    metavar="SERVER URI [NAME=VALUE]...",
    shell_complete=completing("server", "resource"),
)
@common
@click.pass_context
def read(context: click.Context, file: str | None, words: tuple[str, ...]) -> int:
    """Read a resource.

    If the URI is a template, NAME=VALUE fills it in. What shows is safe for a terminal; -o gives
    the bytes as they are.
    """
    from mcpclient.cli import blocks
    from mcpclient.cli.bar import progress
    from mcpclient.cli.words import texts
    from mcpclient.protocol import templates

    state = state_of(context)
    server, (uri, *rest) = _asked(state, words, "URI")
    variables = texts(rest)
    if variables:
        unknown = set(variables) - set(templates.variables(uri))
        if unknown:
            raise Failure(f'"{uri}" has no variable "{sorted(unknown)[0]}"')
        uri = templates.expand(uri, variables)

    async def work(session: Session) -> None:
        _show_messages(session)
        async with progress(session.out, uri) as told:
            result = await session.server.read_resource(uri, on_progress=told)
        blocks.show_contents(session.out, result, file)

    return _run(state, server, work)


@click.command()
@click.argument(
    "words",
    nargs=-1,
    metavar="SERVER PROMPT [NAME=VALUE]...",
    shell_complete=completing("server", "prompt", "arguments"),
)
@common
@click.pass_context
def prompt(context: click.Context, words: tuple[str, ...]) -> int:
    """Fill in a prompt."""
    from mcpclient.cli import blocks, lists
    from mcpclient.cli.words import texts

    state = state_of(context)
    server, (name, *rest) = _asked(state, words, "PROMPT")
    arguments = texts(rest)

    async def work(session: Session) -> None:
        out, asked = session.out, session.server
        known = lists.picked(await lists.known_prompts(session, asked), "prompt", name, asked.name)
        listed = [one.name for one in known.arguments or ()]
        required = [one.name for one in known.arguments or () if one.required]
        for wrong in [one for one in arguments if one not in listed]:
            takes = ", ".join(listed) or "none"
            raise Failure(f'prompt "{name}" has no argument "{wrong}" (it takes: {takes})')
        for missing in [one for one in required if one not in arguments]:
            raise Failure(f'"{missing}" is missing: add {missing}=TEXT')
        result = await asked.get_prompt(name, arguments)
        if out.json:
            return out.document(result.raw)
        for number, message in enumerate(result.messages):
            # The one message of most prompts is what people pipe on.
            if len(result.messages) > 1:
                out.heading(("\n" if number and not out.terminal else "") + f"[{message.role}]")
            blocks.show(out, message.content)
        return None

    return _run(state, server, work)


@click.command()
@click.argument(
    "words",
    nargs=-1,
    metavar="SERVER PROMPT|TEMPLATE ARGUMENT [BEGUN] [NAME=VALUE]...",
    shell_complete=completing("server", "reference", "argument"),
)
@common
@click.pass_context
def complete(context: click.Context, words: tuple[str, ...]) -> int:
    """Ask what an argument may be completed to.

    BEGUN is what was typed so far. NAME=VALUE are arguments that are chosen already.
    """
    from mcpclient.cli.words import texts

    state = state_of(context)
    server, (reference, *rest) = _asked(state, words, "PROMPT or TEMPLATE")
    if not rest:
        raise click.UsageError("ARGUMENT is missing: the name of what is to be completed", context)
    argument, *more = rest
    begun = more.pop(0) if more and "=" not in more[0] else ""
    chosen = texts(more)

    async def work(session: Session) -> None:
        found = await session.server.complete(reference, argument, begun, context=chosen)
        if session.out.json:
            session.out.document(found.raw)
            return
        for value in found.values:
            session.out.row(value)
        if found.has_more:
            total = f" of {found.total}" if found.total is not None else ""
            session.out.note(f"the first {len(found.values)}{total}")
        elif not found.values:
            session.out.note("none")

    return _run(state, server, work)


def _asked(state: State, words: tuple[str, ...], second: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the server that is meant, if it has to be named, and what follows its name."""
    context = click.get_current_context()
    if state.adhoc:
        if not words:
            raise click.UsageError(f"{second} is missing before the --", context)
        return (), list(words)
    if len(words) < 2:
        missing = second if words else "SERVER"
        raise click.UsageError(f"{missing} is missing", context)
    return words[:1], list(words[1:])


def _run(state: State, server: tuple[str, ...], work: Work) -> int:
    from mcpclient.cli.running import run  # with it come the loop and the manager

    return run(state, work, server, asking=True)


def _show_messages(session: Session) -> None:
    """With ``-v``, tell what servers log meanwhile."""
    if session.out.verbose:
        from mcpclient.cli.telling import message

        def told(server: Any, params: Any) -> None:
            session.out.aside(f"{server} {message(params)}")

        session.manager.on_notification("notifications/message", told)
