"""Layer 7, exploring: servers as Python objects, in a notebook, a script or at a prompt.

``explore(manager)`` gives the objects; ``run(servers)`` is what ``mcpclient repl`` does;
``%load_ext mcpclient.repl`` makes a notebook complete them and tell errors in one line.
"""

from __future__ import annotations

import builtins
import platform
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from mcpclient.ground.errors import ConfigError, LocalProtocolError
from mcpclient.ground.text import printable
from mcpclient.ground.version import VERSION
from mcpclient.repl.explorer import Explorer, Servers
from mcpclient.repl.mistakes import Mistake, NoSuchKey, NoSuchName, WrongCall
from mcpclient.repl.names import identifiers

if TYPE_CHECKING:
    import os

__all__ = [
    "Explorer",
    "Mistake",
    "NoSuchKey",
    "NoSuchName",
    "Servers",
    "WrongCall",
    "ask",
    "explore",
    "load_ipython_extension",
    "run",
    "unload_ipython_extension",
]

# What a server's name must not hide at the prompt.
_TAKEN = {*dir(builtins), "manager", "servers", "tb", "In", "Out", "get_ipython", "open"}


def explore(manager: Any) -> Servers:
    """Return the servers of an open manager as Python objects: ``explore(manager).git.tools``.

    Over :class:`mcpclient.blocking.Manager` calls return results, over
    :class:`mcpclient.Manager` what is to be awaited.

    Args:
        manager: The manager. It stays open as long as whoever opened it wants; nothing is asked
            of a server before it is needed.

    Raises:
        LocalProtocolError: It is a manager of handles, which nobody waits for.
    """
    if hasattr(manager, "set_wakeup"):
        raise LocalProtocolError(
            "a manager of handles cannot be explored: use mcpclient.Manager or "
            "mcpclient.blocking.Manager"
        )
    from mcpclient.repl import person

    person.take_errands(manager)
    return Servers(manager)


async def ask(server: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Ask the person at the prompt what a server wants to know: ``Manager(…, on_elicit=ask)``.

    For :class:`mcpclient.blocking.Manager`, once :func:`explore` was called. The person is asked
    on the main thread while it waits for a call: in a terminal, or in a notebook whose frontend
    takes input. At any other time the answer is ``decline``. Ctrl-C ends the call that waits; the
    server is told ``cancel``.

    Args:
        server: Who asks.
        params: What it asks, of ``elicitation/create``.

    Raises:
        Refuse: It asks to visit what must not be opened, or is no server of a blocking manager.

    See https://modelcontextprotocol.io/specification/2026-07-28/client/elicitation
    """
    from mcpclient.repl.person import asked

    return await asked(server, params)


def run(
    servers: Mapping[str, Any],
    *,
    config: str | os.PathLike[str] | None = None,
    shell: str = "auto",
    **options: Any,
) -> None:
    """Let a person explore servers at a prompt until they leave; then all servers are stopped.

    At the prompt each server has its name, and there are ``servers`` and the blocking
    ``manager``.

    Args:
        servers: As for :class:`mcpclient.Manager`.
        config: The file that they come from, to be told to the person.
        shell: ``ipython``, ``plain`` for Python's own, or ``auto``: the first of them that is
            installed.
        options: The keyword arguments of :class:`mcpclient.blocking.Manager`. Without
            ``on_elicit`` it is :func:`ask`, at a terminal; None offers nothing.

    Raises:
        ConfigError: An entry cannot be meant, or IPython is asked for and not installed.
        LocalProtocolError: IPython runs here already.
        SystemExit: The person left with an exit code.
    """
    from mcpclient.blocking import Manager
    from mcpclient.repl import console, notebook, person

    if shell not in ("auto", "ipython", "plain"):
        raise ConfigError(f'shell must be "auto", "ipython" or "plain", not {shell!r}')
    chosen = _chosen(shell)
    if person.can_ask():
        options.setdefault("on_elicit", ask)
    with Manager(servers, **options) as manager:
        names = namespace(manager)
        words = _banner(names, chosen, config)
        try:
            if chosen == "plain":
                console.interact(names, words)
            else:
                notebook.interact(names, words)
        except SystemExit as leaving:
            if leaving.code not in (None, 0):
                raise


def namespace(manager: Any) -> dict[str, Any]:
    """Return the names of a prompt: each server by its own, ``servers`` and ``manager``."""
    found = explore(manager)
    mine = {
        word: found[name]
        for word, name in identifiers(found).items()
        if word not in _TAKEN and not word.startswith("_")
    }
    return {**mine, "servers": found, "manager": manager}


def load_ipython_extension(shell: Any) -> None:
    """Complete what :func:`explore` made, and tell errors in one line: ``%load_ext``."""
    from mcpclient.repl import notebook

    notebook.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Leave completion and errors to IPython again: ``%unload_ext``."""
    from mcpclient.repl import notebook

    notebook.unload(shell)


def _chosen(shell: str) -> str:
    if shell == "plain":
        return shell
    from importlib.util import find_spec  # only a prompt asks

    if find_spec("IPython") is not None:
        return "ipython"
    if shell == "ipython":
        raise ConfigError('IPython is not installed: pip install "mcpclient[repl]"')
    return "plain"


def _banner(names: Mapping[str, Any], shell: str, config: str | os.PathLike[str] | None) -> str:
    found: Servers = names["servers"]
    words = {one.server.name: word for word, one in names.items() if isinstance(one, Explorer)}
    listed = ", ".join(words.get(name) or f'servers["{name}"]' for name in found) or "none"
    source = f" (from {printable(str(config))})" if config is not None else ""
    some = next(iter(words.values()), 'servers["…"]')
    trace, leave = ("%tb", "exit") if shell == "ipython" else ("tb()", "exit()")
    return (
        f"mcpclient {VERSION} on Python {platform.python_version()}\n"
        f"servers: {listed}{source}\n"
        f"{some}.tools shows its tools, Tab completes, help({some}.tools.NAME) tells more, "
        f"{trace} shows a whole traceback, {leave} leaves\n"
    )
