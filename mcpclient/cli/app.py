"""The command line: which commands there are, and where each is found.

A command's module is loaded when the command is used; the list of them needs none.
"""

from __future__ import annotations

import signal
from importlib import import_module
from typing import Any

import click

from mcpclient.cli.options import common
from mcpclient.cli.problems import Interrupted
from mcpclient.ground.version import VERSION

# By section: the command's name, its module and what it is for, in the words of its docstring.
SECTIONS: dict[str, dict[str, tuple[str, str]]] = {
    "Ask a server": {
        "tools": ("lists", "List tools, or say how one is called."),
        "resources": ("lists", "List resources and templates of resources."),
        "prompts": ("lists", "List prompts, or say how one is filled in."),
        "call": ("ask", "Call a tool."),
        "read": ("ask", "Read a resource."),
        "prompt": ("ask", "Fill in a prompt."),
        "complete": ("ask", "Ask what an argument may be completed to."),
    },
    "See how servers do": {
        "status": ("status", "Start servers and say how they are."),
        "watch": ("watch", "Show notifications and changes of state, live."),
        "top": ("top", "Show a live table of servers."),
        "logs": ("logs", "Show what a server wrote to stderr, and its log messages."),
        "doctor": ("doctor", "Find out why a server does not work, and what to do."),
    },
    "More": {
        "repl": ("more", "Explore servers in a Python shell."),
        "demo": ("demo", "Show it all, with a server that is shipped along."),
        "completion": ("more", "Print the completion script of a shell."),
    },
}
_PLACES = {name: place for section in SECTIONS.values() for name, place in section.items()}

EPILOG = """\b
Servers come from the first of these that exists: -c FILE, $MCPCLIENT_CONFIG,
./.mcp.json, ./.vscode/mcp.json, ./.cursor/mcp.json, ~/.config/mcpclient/config.json;
or there is just one, whose command or URL follows --, and no SERVER is named.

\b
  mcpclient tools
  mcpclient call git git_log repo_path=. max_count:=3
  mcpclient tools -- npx -y @modelcontextprotocol/server-everything
  mcpclient call echo message=hello -- npx -y @modelcontextprotocol/server-everything
"""


class Commands(click.Group):
    """The commands, each loaded when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return all names, in the order of the help."""
        return list(_PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or None if there is none of the name."""
        if cmd_name not in _PLACES:
            return None
        module = import_module(f"mcpclient.cli.{_PLACES[cmd_name][0]}")
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; what Ctrl-C breaks off before its loop runs is interrupted as well."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted(signal.SIGINT) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that some words begin with; suggest the nearest if there is none."""
        if args and args[0] not in _PLACES and not ctx.resilient_parsing:
            import difflib  # only for this sentence

            near = difflib.get_close_matches(args[0], _PLACES, n=1)
            hint = f'did you mean "{near[0]}"?' if near else "see mcpclient --help"
            raise click.UsageError(f'there is no command "{args[0]}"; {hint}', ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands before the options: they are what one looks for."""
        self.format_commands(ctx, formatter)
        click.Command.format_options(self, ctx, formatter)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without loading any."""
        for section, commands in SECTIONS.items():
            with formatter.section(section):
                formatter.write_dl([(name, words) for name, (_, words) in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Complete a command's name without loading any."""
        from click.shell_completion import CompletionItem

        found = [
            CompletionItem(name, help=words)
            for name, (_, words) in _PLACES.items()
            if name.startswith(incomplete)
        ]
        # Options only if one was begun; the group's own completion would load every command.
        return (
            found
            if not incomplete.startswith("-")
            else click.Command.shell_complete(self, ctx, incomplete)
        )


@click.command(
    cls=Commands,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@common
@click.version_option(VERSION, "-V", "--version", message="mcpclient %(version)s")
def cli() -> None:
    """Use MCP servers from a terminal."""
