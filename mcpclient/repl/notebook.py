"""IPython and Jupyter: completion of what this package made, and errors in one line.

``%load_ext mcpclient.repl`` turns both on, in a terminal and in a notebook. IPython is imported
only here, and only once it runs.
"""

from __future__ import annotations

from types import TracebackType
from typing import Any

from mcpclient.ground.errors import LocalProtocolError
from mcpclient.repl import failures
from mcpclient.repl.completion import offers

_NAME = "mcpclient"


def load(shell: Any, *, also: tuple[type[BaseException], ...] = ()) -> None:
    """Turn it on in a shell; twice is as once.

    Args:
        shell: The running ``InteractiveShell``.
        also: More kinds of errors that are shown in one line.
    """
    from IPython.core.completer import SimpleCompletion, context_matcher

    unload(shell)

    @context_matcher(identifier=_NAME, priority=1000)  # type: ignore[untyped-decorator]
    def mcpclient(context: Any) -> Any:
        lines = context.full_text.split("\n")
        above = lines[: context.cursor_line]
        line = lines[context.cursor_line]
        before, after = line[: context.cursor_position], line[context.cursor_position :]
        text = "\n".join([*above, before])
        offer = offers(text, shell.user_ns, after)
        if offer is None:
            return {"completions": []}
        fragment = text[offer.start :]
        return {
            "completions": [SimpleCompletion(one, type="instance") for one in offer.texts],
            "matched_fragment": fragment,
            "ordered": True,
            # Whoever completes what we made without knowing it would offer wrong things.
            "suppress": True,
        }

    shell.Completer.custom_matchers.append(mcpclient)
    shell.set_custom_exc((*failures.OURS, *also), _show)


def unload(shell: Any) -> None:
    """Turn it off again."""
    matchers = shell.Completer.custom_matchers
    kept = [one for one in matchers if getattr(one, "matcher_identifier", "") != _NAME]
    if len(kept) < len(matchers):
        matchers[:] = kept
        shell.set_custom_exc((), None)


def _show(
    shell: Any,
    kind: type[BaseException],
    problem: BaseException,
    traceback: TracebackType | None,
    tb_offset: int | None = None,
) -> None:
    """Show an error in one line; ``%tb`` shows the rest."""
    failures.remember(problem, traceback)
    # What IPython itself calls at the end, and what a kernel replaces to send it to the notebook.
    shell._showtraceback(kind, problem, [failures.line(problem)])


def interact(namespace: dict[str, Any], banner: str) -> None:
    """Talk to a person, with their own configuration of IPython, until they leave.

    Raises:
        LocalProtocolError: There is an IPython here already.
    """
    from IPython.core.getipython import get_ipython
    from IPython.terminal.ipapp import TerminalIPythonApp
    from traitlets.config import Config

    if get_ipython() is not None:
        raise LocalProtocolError(
            "IPython runs here already: open a manager, and use mcpclient.repl.explore(manager)"
        )
    config = Config()
    config.TerminalInteractiveShell.banner1 = banner
    # Jedi reads code and cannot see what a server offers; without it, IPython looks at objects.
    config.Completer.use_jedi = False
    app: Any = TerminalIPythonApp.instance(config=config, user_ns=namespace)
    try:
        app.initialize(argv=[])
        load(app.shell, also=(KeyboardInterrupt,))
        app.start()
    finally:
        TerminalIPythonApp.clear_instance()
