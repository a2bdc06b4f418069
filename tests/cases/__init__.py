"""The cases of the field reports as tests: the table of them, and what their tests share.

``@case("B01")`` says which cases a test shows; test_table.py holds the table against the reports.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
from msgspec import structs

from mcpclient import RestartPolicy, Server, ServerSpec, ServerUnavailable, Timeouts
from tests.conftest import SERVERS

F = TypeVar("F", bound=Callable[..., Any])

# case id -> the tests that show it
TESTED: dict[str, list[str]] = {}

# Cases of these kinds that no test here can show, and why.
ELSEWHERE: dict[str, str] = {}

# One life, and then an error that tells of it.
ONE_LIFE = RestartPolicy(when="never")


def case(*ids: str) -> Callable[[F], F]:
    """Tie a test to the cases it shows."""

    def tie(test: F) -> F:
        for id in ids:
            TESTED.setdefault(id, []).append(f"{test.__module__}.{test.__qualname__}")
        return test

    return tie


def hasty(**limits: float) -> Timeouts:
    """Return time-outs that are short where nothing is waited for, with those given."""
    return Timeouts(**{"eof": 1.0, "term": 0.5, **limits})


def inline(code: str, **options: Any) -> ServerSpec:
    """Return the spec of a server whose few lines stand in the test; it may import _wire."""
    options.setdefault("timeouts", hasty())
    return ServerSpec(sys.executable, ["-c", code], env={"PYTHONPATH": str(SERVERS)}, **options)


def counted(pids: Path, one: ServerSpec) -> ServerSpec:
    """Return a spec that writes the id of each process that is started for it into a file."""
    script = 'echo $$ >> "$0"; exec "$@"'
    return structs.replace(one, command="/bin/sh", args=["-c", script, str(pids), *one.argv])


def started(pids: Path) -> list[int]:
    """Return the processes that :func:`counted` noted, in order."""
    return [int(line) for line in pids.read_text().split()]


async def refused(server: Server, timeout: float = 10) -> ServerUnavailable:
    """Start a server that cannot be started, and return the error that says so."""
    with pytest.raises(ServerUnavailable) as caught:
        await server.start(timeout=timeout)
    assert server.state == "failed"
    assert server.pid is None
    return caught.value
