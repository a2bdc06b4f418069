"""``repl`` and ``completion``: the ways to other shells."""

from __future__ import annotations

from typing import Any

import click

from mcpclient.cli.options import common, state_of
from mcpclient.cli.problems import Failure
from mcpclient.cli.shell import SHELLS, completing

_HOW = """\
Print the completion script of a shell.

\b
  bash   eval "$(mcpclient completion bash)"            in ~/.bashrc
  zsh    eval "$(mcpclient completion zsh)"             in ~/.zshrc, after compinit
  fish   mcpclient completion fish > ~/.config/fish/completions/mcpclient.fish

Tools, prompts and their arguments are completed once they were listed, as by mcpclient status.
"""


@click.command(help=_HOW)
@click.argument("shell", type=click.Choice(list(SHELLS)))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    click.echo(SHELLS[shell].source_template, nl=False)


@click.command()
@click.argument("names", nargs=-1, metavar="[SERVER]...", shell_complete=completing("servers"))
@common
@click.pass_context
def repl(context: click.Context, names: tuple[str, ...]) -> int:
    """Explore servers in a Python shell."""
    state = state_of(context)
    try:
        from mcpclient import repl as shell
    except ImportError as lacking:
        raise Failure(
            f"the shell cannot be loaded ({lacking}): pip install 'mcpclient[repl]'"
        ) from None
    from mcpclient.cli.running import adapted

    source = state.source
    specs = {}
    for name in source.chosen(names):
        if problem := source.problems.get(name):
            state.out.aside(f"left out: {problem}")
        else:
            specs[name] = adapted(source.specs[name], state, lasting=True)
    more: dict[str, Any] = {}
    if state.roots:
        more["roots"] = state.roots
    if state.silent:
        more["on_elicit"] = None  # left out, the prompt asks
    shell.run(specs, config=source.path, **more)
    return 0
