"""The options that every command takes, before or after its name, and what they amount to."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpclient.cli.out import Out
    from mcpclient.cli.sources import Source

F = TypeVar("F", bound="Callable[..., Any]")


@dataclass
class State:
    """What was said on the command line, besides the command's own arguments.

    Attributes:
        words: The server's command or URL that follows ``--``, or None.
        config: The file given with ``-c``.
        json: Whether results are JSON.
        timeout: Seconds for each call, or None for what the file says.
        variables: Of the environment, given with ``-e``.
        headers: For servers behind a URL, given with ``-H``.
        roots: What servers are told of the files they may use.
        silent: Whether the person is never asked.
        quiet: Whether only results and errors are told.
        verbose: How much more is told.
    """

    words: list[str] | None = None
    config: str | None = None
    json: bool = False
    timeout: float | None = None
    variables: dict[str, str] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)
    roots: list[str] = field(default_factory=list)
    silent: bool = False
    quiet: bool = False
    verbose: int = 0

    @cached_property
    def out(self) -> Out:
        """The streams."""
        from mcpclient.cli.out import Out

        return Out(json=self.json, quiet=self.quiet, verbose=self.verbose)

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that a file's entries may refer to."""
        return {**os.environ, **self.variables}

    @cached_property
    def source(self) -> Source:
        """Where the servers come from."""
        from mcpclient.cli import sources

        if self.words is not None:
            return sources.ad_hoc(self.words)
        return sources.read(self.config, self.environment)

    @property
    def adhoc(self) -> bool:
        """Whether the server follows ``--``, so that no command takes a server's name."""
        return self.words is not None


def common(function: F) -> F:
    """Give a command the options that all have. They may stand before its name too."""
    for option in reversed(_OPTIONS):
        function = option(function)
    return function


def state_of(context: click.Context) -> State:
    """Return what was said so far; there is one for the whole command line."""
    return context.find_root().ensure_object(State)


def _told(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
    def take(context: click.Context, parameter: click.Parameter, value: Any) -> None:
        if value is not None and value is not False and value != 0 and value != ():
            setattr(state_of(context), name, value)

    return take


def _variables(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> None:
    for pair in value:
        name, equals, text = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{pair!r} is not NAME=VALUE")
        state_of(context).variables[name] = text


def _headers(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> None:
    for pair in value:
        name, colon, text = pair.partition(":")
        if not colon or not name.strip():
            # Not the value itself: it may be a secret.
            raise click.BadParameter('a header is "Name: value"')
        state_of(context).headers[name.strip()] = text.strip()


def _roots(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> None:
    state_of(context).roots.extend(value)


def _seconds(context: click.Context, parameter: click.Parameter, value: float | None) -> None:
    if value is not None:
        if not 0 < value < 1e9:
            raise click.BadParameter("must be above 0 seconds")
        state_of(context).timeout = value


def _option(*names: str, take: Callable[..., None], **settings: Any) -> Callable[[F], F]:
    # Eager, so that they are known when a command's own arguments are looked at.
    return click.option(*names, expose_value=False, is_eager=True, callback=take, **settings)


_OPTIONS = (
    _option(
        "-c",
        "--config",
        metavar="FILE",
        type=click.Path(dir_okay=False),
        take=_told("config"),
        help="The file that names the servers.",
    ),
    _option(
        "--json",
        "as_json",
        is_flag=True,
        take=_told("json"),
        help="Print results as JSON, and errors as one line of JSON.",
    ),
    _option(
        "-t",
        "--timeout",
        metavar="SECONDS",
        type=float,
        take=_seconds,
        help="How long each call may take, its server's start included.",
    ),
    _option(
        "-e",
        "--env",
        metavar="NAME=VALUE",
        multiple=True,
        take=_variables,
        help="A variable for the servers, and for ${NAME} in the file.",
    ),
    _option(
        "-H",
        "--header",
        metavar="'NAME: VALUE'",
        multiple=True,
        take=_headers,
        help="A header for servers behind a URL.",
    ),
    _option(
        "--root",
        metavar="PATH",
        multiple=True,
        type=click.Path(exists=True),
        take=_roots,
        help="A file or folder that servers are told to use.",
    ),
    _option(
        "--no-input",
        "no_input",
        is_flag=True,
        take=_told("silent"),
        help="Never ask you what a server wants to know.",
    ),
    _option("-q", "--quiet", is_flag=True, take=_told("quiet"), help="Tell nothing but results."),
    _option(
        "-v",
        "--verbose",
        count=True,
        take=_told("verbose"),
        help="Tell what servers do, on stderr; twice: every message.",
    ),
)
