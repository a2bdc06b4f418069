"""Asks the person at the prompt what a server wants to know, while they wait for a call.

The main thread asks, though the question comes on the manager's: Ctrl-C, a notebook's input and
the terminal are the main thread's own. It can only while it waits for a call of the blocking
manager; else the prompt itself reads what is typed, and the question is declined.
"""

from __future__ import annotations

import concurrent.futures
import logging
import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from mcpclient.asking.talk import Open, Read, Talk, talk
from mcpclient.features.asks import Refuse
from mcpclient.ground.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mcpclient.asking.talk import Asked

_log = logging.getLogger("mcpclient")
# How often the one who is asked is looked away from, to see whether the server still asks.
_LOOK = 0.25
_DECLINE = {"action": "decline"}
_NOBODY = "! %s asks something, but no call is waited for at the prompt; declined"


class Withdrawn(Exception):
    """The question is no longer open."""


async def asked(server: Any, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a person answers; see :func:`mcpclient.repl.ask`."""
    owner = getattr(server, "_owner", None)
    if owner is None:
        raise Refuse("repl.ask answers for mcpclient.blocking.Manager only", code=-32603)
    errand = _Errand(server.name, params)
    errands = owner._portal.errands
    if errands is None or not errands.give(errand):
        _log.warning(_NOBODY, printable(server.name))
        return dict(_DECLINE)
    import asyncio  # the loop is one of its, and runs

    answer: dict[str, Any] = await asyncio.wrap_future(errand.answer)
    return answer


def can_ask() -> bool:
    """Return whether a person sits at the terminal that this process has."""
    return all(one is not None and one.isatty() for one in (sys.stdin, sys.stdout))


def take_errands(manager: Any) -> None:
    """Have the main thread ask while it waits for a call of a blocking manager."""
    portal = getattr(manager, "_portal", None)
    if portal is not None and portal.errands is None:
        from mcpclient.engine.errands import Errands

        portal.errands = Errands()


def unasked(server: Any) -> AbstractContextManager[None]:
    """Within this nobody is asked, though a call is waited for: completion must not take long."""
    owner = getattr(server, "_owner", None)
    errands = None if owner is None else owner._portal.errands
    return nullcontext() if errands is None else errands.aloof()


class _Errand:
    """One question for the main thread.

    Attributes:
        answer: What comes of it.
    """

    def __init__(self, server: str, params: Mapping[str, Any]) -> None:
        self.answer: concurrent.futures.Future[dict[str, Any]] = concurrent.futures.Future()
        self._server = server
        self._talk = talk(server, params)

    def do(self) -> None:
        """See :class:`~mcpclient.engine.errands.Errand`."""
        if self.answer.cancelled():
            return
        try:
            found = _means(self._talk, self.answer.cancelled)
        except Withdrawn:
            print(f"! {printable(self._server)} does not ask any more")
        except Exception as problem:  # whoever asks gets it; the call goes on
            self._end(None, problem)
        except BaseException:  # Ctrl-C: it ends the call as well
            self._end({"action": "cancel"})
            raise
        else:
            self._end(found)

    def drop(self) -> None:
        """See :class:`~mcpclient.engine.errands.Errand`."""
        self._end(dict(_DECLINE))

    def _end(self, found: dict[str, Any] | None, problem: Exception | None = None) -> None:
        try:
            if problem is not None:
                self.answer.set_exception(problem)
            elif found is not None:
                self.answer.set_result(found)
        except concurrent.futures.InvalidStateError:
            pass  # the server took it back just now


def _means(begun: Talk, over: Callable[[], bool]) -> dict[str, Any]:
    """Talk by the means that there are; without any, decline."""
    if _in_notebook():
        return _talked(begun, _by_input)
    if not can_ask():
        return dict(_DECLINE)
    from mcpclient.asking.terminal import Terminal

    with Terminal(_show) as terminal:
        return _talked(begun, lambda read: _typed(terminal, read, over))


def _talked(begun: Talk, read: Callable[[Read], str | None]) -> dict[str, Any]:
    line: str | None = None
    try:
        while True:
            line = _did(begun.send(line), read)
    except StopIteration as end:
        answer: dict[str, Any] = end.value
        return answer


def _did(step: Asked, read: Callable[[Read], str | None]) -> str | None:
    if isinstance(step, Open):
        from mcpclient.asking.browser import opened

        return "" if opened(step.url) else None
    return read(step)


# -- a terminal --------------------------------------------------------------------------------


def _show(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _typed(terminal: Any, read: Read, over: Callable[[], bool]) -> str | None:
    from select import select

    terminal.ask(read)
    while True:
        ready, _, _ = select([terminal.fd], [], [], _LOOK)
        if over():
            _show("\n")
            raise Withdrawn
        if ready and (line := terminal.take()) is not UNSET:
            found: str | None = line
            return found


# -- a notebook --------------------------------------------------------------------------------


def _in_notebook() -> bool:
    if "ipykernel" not in sys.modules:
        return False
    from IPython.core.getipython import get_ipython

    return getattr(get_ipython(), "kernel", None) is not None


def _by_input(read: Read) -> str | None:
    """Read as notebooks do: the kernel puts its own functions in place of these two."""
    import getpass

    _show(read.text)
    try:
        return (getpass.getpass if read.hidden else input)(read.prompt)
    except (EOFError, NotImplementedError):  # a frontend where nobody can type
        return None
