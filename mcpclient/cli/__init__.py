"""Layer 7: the terminal's face. ``mcpclient`` on a command line, from its words to its exit code.

Everything else of it is loaded by the command that needs it.
"""

from __future__ import annotations

import importlib.util
import os
import sys

_LACKING = "mcpclient: the command line needs click and rich: pip install 'mcpclient[cli]'"


def main(argv: list[str] | None = None) -> None:
    """Run the command line and leave with its exit code; ``docs/cli.md`` lists these.

    Args:
        argv: The words after the program's name; those of the process if not given.
    """
    try:
        code = _run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        # Before or after the loop ran, which handles signals itself.
        code = 130
    sys.exit(code)


def _run(argv: list[str]) -> int:
    try:
        import click

        # Told here, not in the middle; and not imported, for it is not needed yet.
        if importlib.util.find_spec("rich") is None:
            raise ModuleNotFoundError("rich")
    except ModuleNotFoundError:
        print(_LACKING, file=sys.stderr)
        return 1
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:  # closed by whoever started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for good
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")

    from mcpclient.cli.app import cli
    from mcpclient.cli.options import State
    from mcpclient.cli.problems import PIPE, Failure, Hangup, Interrupted, failure
    from mcpclient.ground.errors import McpClientError

    words: list[str] | None = None
    if "--" in argv:
        place = argv.index("--")
        argv, words = argv[:place], argv[place + 1 :]
    argv = argv or ["--help"]  # the name alone asks what there is
    state = State(words=words)
    if "_MCPCLIENT_COMPLETE" in os.environ:
        from mcpclient.cli import shell

        shell.register()
    try:
        answer = cli.main(argv, prog_name="mcpclient", standalone_mode=False, obj=state)
    except click.ClickException as wrong:
        state.json = state.json or "--json" in argv  # it may stand behind what was wrong
        problem: Failure | McpClientError = Failure(_usage(wrong))
    except click.Abort:
        return 130
    except Interrupted as interrupted:
        if state.json:
            state.out.problem(Failure("interrupted", interrupted.exit, type="Interrupted"))
        _discard()
        return interrupted.exit
    except (Hangup, BrokenPipeError):
        _discard()
        return PIPE
    except (Failure, McpClientError) as told:
        problem = told
    else:
        return answer if isinstance(answer, int) else 0
    told_as = failure(problem)
    state.out.problem(told_as)
    if state.out.broken:
        _discard()
    return told_as.exit


def _usage(wrong: object) -> str:
    import click

    assert isinstance(wrong, click.ClickException)
    text = wrong.format_message().rstrip(".")
    if text[1:2].islower():
        text = text[:1].lower() + text[1:]
    context = getattr(wrong, "ctx", None)
    if context is None or "mcpclient" in text or text.endswith(("?", "?)")):
        return text
    return f"{text}; see {context.command_path} --help"


def _discard() -> None:
    """Have what is still in stdout's buffer go nowhere: nobody reads there any more."""
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
    finally:
        os.close(null)
