"""The pytest plugin: fixtures for tests of what is built on mcpclient. Loads nothing before use.

None of the fixtures is asynchronous, so they work with anyio's plugin, pytest-asyncio, pytest-trio
and in plain tests alike.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from mcpclient.testing.clock import Clock
    from mcpclient.testing.recorder import Recorder
    from mcpclient.testing.replay import Replay
    from mcpclient.testing.script import Script


@pytest.fixture
def mcp_script(tmp_path: Path) -> Iterator[Script]:
    """A scripted server; in the end it fails the test unless all went as scripted."""
    from mcpclient.testing.script import Script

    script = Script(folder=tmp_path / "mcp_script")
    yield script
    _judge([script])


@pytest.fixture
def mcp_scripts(tmp_path: Path) -> Iterator[Callable[..., Script]]:
    """Make scripted servers: called with the arguments of ``Script``; each is checked."""
    from mcpclient.testing.script import Script

    made: list[Script] = []

    def make(**options: Any) -> Script:
        options.setdefault("folder", tmp_path / f"mcp_script_{len(made) + 1}")
        made.append(Script(**options))
        return made[-1]

    yield make
    _judge(made)


@pytest.fixture
def mcp_recorder(tmp_path: Path) -> Recorder:
    """A recorder into the test's own folder: ``mcp_recorder.spec(server)`` is recorded."""
    from mcpclient.testing.recorder import Recorder

    return Recorder(tmp_path / "recording.jsonl")


@pytest.fixture
def mcp_replay(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., Replay]]:
    """Serve recordings: called with a path, as seen from the test's file, and the arguments of
    ``Replay``; each is checked in the end."""
    from mcpclient.testing.replay import Replay

    made: list[Replay] = []

    def make(path: Any, **options: Any) -> Replay:
        options.setdefault("folder", tmp_path / f"mcp_replay_{len(made) + 1}")
        made.append(Replay(request.path.parent / path, **options))
        return made[-1]

    yield make
    _judge(made)


@pytest.fixture
def mcp_clock() -> Iterator[Clock]:
    """A clock that may be turned forward. Open managers after it, in the test."""
    from mcpclient.testing.clock import Clock

    with Clock() as clock:
        yield clock


@pytest.fixture
def mcp_blocking() -> Iterator[Callable[..., Any]]:
    """Run servers for tests without await: called with what ``connect`` takes, it returns the
    server of a ``mcpclient.blocking`` manager that is up; all are stopped in the end."""
    from contextlib import ExitStack

    from mcpclient.blocking import Manager
    from mcpclient.testing.connecting import split

    with ExitStack() as stack:

        def run(source: Any, *, name: str = "server", wait: bool = True, **options: Any) -> Any:
            spec, rest = split(source, options)
            server = stack.enter_context(Manager({name: spec}, **rest))[name]
            if wait:
                server.start()
            return server

        yield run


def _judge(served: list[Any]) -> None:
    from mcpclient.testing.journal import PlayFault

    problems = []
    for one in served:
        try:
            one.check()
        except PlayFault as fault:
            problems.append(str(fault))
    if problems:
        # The text says where to look, which no traceback of a fixture does.
        pytest.fail("\n".join(problems), pytrace=False)
