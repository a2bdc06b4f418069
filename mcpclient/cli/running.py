"""Runs a command's work: one loop, one manager, its servers, and the signals that end it.

Knows no command. Whatever ends the work, a result, an error, a signal or a reader that left, the
servers are stopped before the command is over.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import stat
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from msgspec import structs

from mcpclient.cli.problems import Failure, Hangup, Interrupted
from mcpclient.manager.manager import Manager
from mcpclient.supervision.policy import RestartPolicy

if TYPE_CHECKING:
    from mcpclient.cli.options import State
    from mcpclient.cli.out import Out
    from mcpclient.cli.person import Person
    from mcpclient.cli.sources import Source
    from mcpclient.manager.server import Server
    from mcpclient.manager.spec import ServerSpec

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
# After so long of stopping servers a person is told how to leave without them.
_PATIENCE = 1.0


@dataclass
class Session:
    """What a command's work has at hand.

    Attributes:
        manager: The servers, not started yet.
        names: Those that are meant, in order.
        out: The streams.
        source: Where the servers come from.
    """

    manager: Manager
    names: tuple[str, ...]
    out: Out
    source: Source

    def __getitem__(self, name: str) -> Server:
        """Return a server.

        Raises:
            ConfigError: Its entry cannot be meant.
        """
        if problem := self.source.problems.get(name):
            raise problem
        return self.manager[name]

    @property
    def server(self) -> Server:
        """The only server that is meant."""
        return self[self.names[0]]


Work = Callable[[Session], Awaitable[int | None]]


def run(
    state: State,
    work: Work,
    names: tuple[str, ...] = (),
    *,
    lasting: bool = False,
    asking: bool = False,
    change: Callable[[str, ServerSpec], ServerSpec] | None = None,
) -> int:
    """Do some work with servers, stop them, and return the exit code.

    Args:
        state: The command line.
        work: Called with the session.
        names: The servers that are meant; all if there are none.
        lasting: Whether it goes on until it is ended: then servers are restarted as the file
            says, and it ends when its reader leaves. Else a server that ends is an error at once.
        asking: Whether a person at a terminal is asked what servers want to know. It is offered
            to servers only if there is one.
        change: Changes how a server is run.

    Raises:
        Interrupted: A signal ended it. The servers are stopped.
        Hangup: Its reader left. The servers are stopped.
    """
    source = state.source
    chosen = source.chosen(names)
    specs = {
        name: adapted(source.specs[name], state, lasting) for name in chosen if name in source.specs
    }
    if change is not None:
        specs = {name: change(name, spec) for name, spec in specs.items()}

    async def whole() -> int | None:
        person = _person(state) if asking else None
        async with Manager(specs, roots=state.roots or None, on_elicit=person) as manager:
            try:
                return await work(Session(manager, chosen, state.out, source))
            finally:
                if person is not None:
                    person.leave()

    with _logged(state.out):
        return _finish(state.out, whole, lasting=lasting) or 0


def _person(state: State) -> Person | None:
    """Return who is asked, or None if nobody may be, or nobody is there."""
    if state.json or state.silent or sys.stdin is None or not sys.stdin.isatty():
        return None
    from mcpclient.cli import person  # only at a terminal

    return person.Person(state.out) if person.is_there() else None


def _finish(out: Out, whole: Callable[[], Any], *, lasting: bool) -> int | None:
    left: list[BaseException] = []
    with asyncio.Runner() as runner:
        loop = runner.get_loop()
        task = loop.create_task(whole())

        def hung_up() -> None:
            loop.remove_reader(sys.stdout)  # it stays so, and would be told for ever
            left.append(Hangup())
            task.cancel()

        def signalled(number: int, frame: object) -> None:
            # On the main thread, between two steps of Python. A second one is not asked to wait:
            # the manager's watchdog ends what is left.
            if any(isinstance(why, Interrupted) for why in left):
                if out.undo is not None:
                    out.undo()
                os._exit(128 + number)
            left.append(Interrupted(number))
            out.interrupted = True
            if out.writing:
                raise left[-1]  # whoever reads may never take it, and the loop waits for that
            loop.call_soon_threadsafe(task.cancel)
            loop.call_soon_threadsafe(loop.call_later, _PATIENCE, patience)

        def patience() -> None:
            if out.watched:
                out.note("stopping servers; once more to leave at once")

        before = {
            number: signal.signal(number, signalled)
            for number in _SIGNALS
            if signal.getsignal(number) is not signal.SIG_IGN  # as under nohup
        }
        piped = lasting and _is_pipe(sys.stdout)
        if piped:
            # The end to write to becomes "readable" when nobody can read at the other.
            loop.add_reader(sys.stdout, hung_up)
        try:
            answer = loop.run_until_complete(task)
        except asyncio.CancelledError:
            answer = None
        finally:
            if piped:
                loop.remove_reader(sys.stdout)
            for number, handler in before.items():
                signal.signal(number, handler)
    if left:
        raise left[0]
    assert answer is None or isinstance(answer, int)
    return answer


def _is_pipe(stream: Any) -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):
        return False


def adapted(spec: ServerSpec, state: State, lasting: bool) -> ServerSpec:
    """Return how a server is run for a command."""
    changes: dict[str, Any] = {}
    if state.timeout is not None:
        changes["timeouts"] = structs.replace(
            spec.timeouts, call=state.timeout, call_max=state.timeout
        )
    if not lasting:
        # A person waits: the first end is the answer, not the fifth.
        changes["restart"] = RestartPolicy(when="never")
    if spec.url:
        if state.headers:
            changes["headers"] = {**spec.headers, **state.headers}
    elif state.variables:
        changes["env"] = {**spec.env, **state.variables}
    try:
        return structs.replace(spec, **changes)
    except ValueError as problem:
        raise Failure(str(problem)) from None


class _Lines(logging.Handler):
    def __init__(self, out: Out) -> None:
        super().__init__()
        self._out = out

    def emit(self, record: logging.LogRecord) -> None:
        self._out.aside(record.getMessage())


@contextmanager
def _logged(out: Out) -> Iterator[None]:
    """Have the library's log told as far as somebody asked for it."""
    log = logging.getLogger("mcpclient")
    before = log.level, log.propagate
    levels = (logging.ERROR, logging.INFO, logging.DEBUG)
    log.setLevel(logging.CRITICAL if out.quiet else levels[min(out.verbose, 2)])
    log.propagate = False
    lines = _Lines(out)
    log.addHandler(lines)
    try:
        yield
    finally:
        log.removeHandler(lines)
        log.setLevel(before[0])
        log.propagate = before[1]
